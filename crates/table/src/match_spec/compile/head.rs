//! Patterns.
//!
//! The fields of one tuple, list or map are tested in order; what is inside them is tested later,
//! the last field first. Erlang's programs use the same order. It decides which of two zeros a
//! variable is bound to: the one that is tested first.

use super::Compiler;
use crate::match_spec::error::{Path, SpecError, SpecProblem, Step};
use crate::match_spec::program::{
    Binding, Make, Operand, Operation, Shape, TailTest, Test, is_atom, variable,
};
use crate::term::{Atom, List, Map, Term, Tuple};

/// A nested pattern, with the location of the value that it has to match.
struct Pending<'t> {
    of: Operand,
    pattern: &'t Term,
    path: Path,
}

/// The most terms visited to see whether a pattern is a constant. A larger pattern is compared part
/// by part instead of at once, with the same result.
const CONSTANT_TERMS: usize = 64;

/// Whether a pattern matches exactly the terms identical to it.
fn is_constant(pattern: &Term) -> bool {
    let mut left = vec![pattern];
    let mut seen = 0;
    while let Some(term) = left.pop() {
        seen += 1;
        if seen + left.len() > CONSTANT_TERMS || variable(term).is_some() {
            return false;
        }
        match term {
            _ if is_atom(term, Atom::UNDERSCORE) => return false,
            // A map pattern also matches larger maps.
            Term::Map(_) => return false,
            Term::Float(float) if float.value() == 0.0 => return false,
            Term::Tuple(tuple) if tuple.len() <= CONSTANT_TERMS => left.extend(tuple.iter()),
            Term::Tuple(_) => return false,
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                left.extend(elements.by_ref().take(CONSTANT_TERMS));
                // If elements remain, the pattern has too many terms, so the tail does not matter.
                left.push(elements.tail());
                if elements.next().is_some() {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}

impl Compiler<'_> {
    pub(super) fn head(&mut self, head: &Term, path: Path) -> Result<(), SpecError> {
        let mut pending = Vec::new();
        let shape = match head {
            Term::Tuple(tuple) => {
                for (index, element) in tuple.iter().enumerate() {
                    let path = self.paths.step(Some(path), Step::Element(index + 1));
                    let field = Operand::Field(self.count(index, head, path)?);
                    self.one(field, element, path, &mut pending)?;
                }
                Shape::Size(tuple.len())
            }
            _ if is_atom(head, Atom::UNDERSCORE) => Shape::Any,
            _ => match variable(head) {
                Some(number) => {
                    self.bind(number, Binding::Row);
                    Shape::Any
                }
                None => {
                    self.one(Operand::Field(0), head, path, &mut pending)?;
                    Shape::NoTuple
                }
            },
        };
        self.clause.shape = Some(shape);
        while let Some(Pending { of, pattern, path }) = pending.pop() {
            match pattern {
                Term::Tuple(tuple) => self.tuple(of, tuple, path, &mut pending)?,
                Term::List(list) => self.list(of, list, path, &mut pending)?,
                Term::Map(map) => self.map(of, map, path, &mut pending)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a new register for a part of the matched term.
    fn part(&mut self, pattern: &Term, path: Path) -> Result<u32, SpecError> {
        let register = self.count(self.clause.head_registers as usize, pattern, path)?;
        self.clause.head_registers = register + 1;
        Ok(register)
    }

    /// Compiles a pattern without its nested patterns, which it adds to `pending`.
    fn one<'t>(
        &mut self,
        of: Operand,
        pattern: &'t Term,
        path: Path,
        pending: &mut Vec<Pending<'t>>,
    ) -> Result<(), SpecError> {
        if let Some(number) = variable(pattern) {
            match self.binding(number) {
                None => self.bind(number, Binding::Operand(of)),
                Some(_) => {
                    let one = self.bound_in_head(number, pattern, path)?;
                    self.emit(Operation::Test(Test::Same { one, two: of }));
                }
            }
            return Ok(());
        }
        match pattern {
            _ if is_atom(pattern, Atom::UNDERSCORE) => {}
            Term::Float(float) if float.value() == 0.0 => {
                let negative = float.value().is_sign_negative();
                self.emit(Operation::Test(Test::Zero { of, negative }));
            }
            Term::Tuple(_) | Term::List(_) | Term::Map(_) if !is_constant(pattern) => {
                pending.push(Pending { of, pattern, path });
            }
            _ => {
                let two = self.constant(pattern, path)?;
                self.emit(Operation::Test(Test::Same { one: of, two }));
            }
        }
        Ok(())
    }

    /// The location of a bound variable's value, while the head is being tested.
    fn bound_in_head(
        &mut self,
        number: u64,
        pattern: &Term,
        path: Path,
    ) -> Result<Operand, SpecError> {
        match self.binding(number) {
            Some(Binding::Operand(operand)) => Ok(operand),
            Some(Binding::Rest { of, skip }) => {
                let to = self.part(pattern, path)?;
                self.emit(Operation::Put {
                    to,
                    value: Make::Rest { of, skip },
                });
                let operand = Operand::Register(to);
                self.bind(number, Binding::Operand(operand));
                Ok(operand)
            }
            // A head that binds the row has no other variables.
            Some(Binding::Row) | None => {
                let problem = SpecProblem::Unbound(pattern.clone());
                Err(self.error(path, pattern, problem))
            }
        }
    }

    fn tuple<'t>(
        &mut self,
        of: Operand,
        tuple: &'t Tuple,
        path: Path,
        pending: &mut Vec<Pending<'t>>,
    ) -> Result<(), SpecError> {
        let size = self.count(tuple.len(), &Term::NIL, path)?;
        self.emit(Operation::Test(Test::Tuple { of, size }));
        for (index, element) in (0..).zip(tuple.iter()) {
            if is_atom(element, Atom::UNDERSCORE) {
                continue;
            }
            let path = self
                .paths
                .step(Some(path), Step::Element(index as usize + 1));
            let to = self.part(element, path)?;
            self.emit(Operation::Test(Test::Element { of, index, to }));
            self.one(Operand::Register(to), element, path, pending)?;
        }
        Ok(())
    }

    fn list<'t>(
        &mut self,
        of: Operand,
        list: &'t List,
        path: Path,
        pending: &mut Vec<Pending<'t>>,
    ) -> Result<(), SpecError> {
        let mut elements = list.iter();
        let length = elements.by_ref().count();
        let tail = elements.tail();
        let count = self.count(length, tail, path)?;
        let test = match tail {
            _ if is_atom(tail, Atom::UNDERSCORE) => TailTest::Any,
            _ if variable(tail).is_some() => TailTest::Any,
            _ if tail.is_nil() => TailTest::Nil,
            _ => TailTest::Improper,
        };
        let to = self.clause.head_registers;
        for _ in 0..=length {
            self.part(tail, path)?;
        }
        self.emit(Operation::Test(Test::List {
            of,
            count,
            tail: test,
            to,
        }));
        for (index, element) in (0..).zip(list) {
            let path = self
                .paths
                .step(Some(path), Step::Element(index as usize + 1));
            self.one(Operand::Register(to + index), element, path, pending)?;
        }
        let path = self.paths.step(Some(path), Step::Tail);
        match variable(tail) {
            Some(number) if self.binding(number).is_none() => {
                self.bind(number, Binding::Rest { of, skip: count });
            }
            Some(_) => {
                let rest = self.part(tail, path)?;
                self.emit(Operation::Put {
                    to: rest,
                    value: Make::Rest { of, skip: count },
                });
                self.one(Operand::Register(rest), tail, path, pending)?;
            }
            None if test == TailTest::Improper => {
                self.one(Operand::Register(to + count), tail, path, pending)?;
            }
            None => {}
        }
        Ok(())
    }

    fn map<'t>(
        &mut self,
        of: Operand,
        map: &'t Map,
        path: Path,
        pending: &mut Vec<Pending<'t>>,
    ) -> Result<(), SpecError> {
        let size = self.count(map.len(), &Term::NIL, path)?;
        self.emit(Operation::Test(Test::Map { of, size }));
        for (index, (key, value)) in map.entries().iter().enumerate() {
            if variable(key).is_some() || is_atom(key, Atom::UNDERSCORE) {
                let path = self.paths.step(Some(path), Step::Key(index + 1));
                return Err(self.error(path, key, SpecProblem::OpenKey));
            }
            let path = self.paths.step(Some(path), Step::Value(index + 1));
            let Operand::Constant(key) = self.constant(key, path)? else {
                continue;
            };
            let to = self.part(value, path)?;
            self.emit(Operation::Test(Test::Value { of, key, to }));
            self.one(Operand::Register(to), value, path, pending)?;
        }
        Ok(())
    }
}
