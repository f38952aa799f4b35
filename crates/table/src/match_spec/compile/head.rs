//! Patterns.
//!
//! The fields of one tuple, list or map are tested in order; what is inside them is tested later,
//! the last field first. Erlang's programs use the same order. It decides which of two zeros a
//! variable is bound to: the one that is tested first.

use super::{Compiled, Compiler};
use crate::match_spec::error::{Path, SpecProblem, Step};
use crate::match_spec::program::{
    Binding, Make, Operand, Operation, Shape, TailTest, Test, is_atom, variable,
};
use crate::term::{Atom, List, Map, Term, Tuple};

/// A nested pattern, with the location of the value that it has to match.
pub(super) struct Pending<'t> {
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

impl<'t> Compiler<'t> {
    pub(super) fn head(&mut self, head: &'t Term, path: Path) -> Compiled {
        let shape = match head {
            Term::Tuple(tuple) => {
                for (index, element) in tuple.iter().enumerate() {
                    let path = self.step(path, Step::Element(index + 1));
                    let field = Operand::Field(self.count(index, head, path)?);
                    self.one(field, element, path)?;
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
                    self.one(Operand::Field(0), head, path)?;
                    Shape::NoTuple
                }
            },
        };
        self.clause.shape = Some(shape);
        while let Some(Pending { of, pattern, path }) = self.pending.pop() {
            match pattern {
                Term::Tuple(tuple) => self.tuple(of, tuple, path)?,
                Term::List(list) => self.list(of, list, path)?,
                Term::Map(map) => self.map(of, map, path)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a new register for a part of the matched term.
    fn part(&mut self, pattern: &Term, path: Path) -> Compiled<u32> {
        let register = self.count(self.clause.head_registers as usize, pattern, path)?;
        self.clause.head_registers = register + 1;
        Ok(register)
    }

    /// Compiles a pattern without its nested patterns, which become pending.
    fn one(&mut self, of: Operand, pattern: &'t Term, path: Path) -> Compiled {
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
                self.pending.push(Pending { of, pattern, path });
            }
            _ => {
                let two = self.constant(pattern, path)?;
                self.emit(Operation::Test(Test::Same { one: of, two }));
            }
        }
        Ok(())
    }

    /// The location of a bound variable's value, while the head is being tested.
    fn bound_in_head(&mut self, number: u64, pattern: &Term, path: Path) -> Compiled<Operand> {
        match self.binding(number) {
            Some(Binding::Operand(operand)) => Ok(operand),
            Some(Binding::Rest { of, skip }) => {
                let to = self.part(pattern, path)?;
                self.emit(Operation::Put(to, Make::Rest { of, skip }));
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

    fn tuple(&mut self, of: Operand, tuple: &'t Tuple, path: Path) -> Compiled {
        let size = self.count(tuple.len(), &Term::NIL, path)?;
        self.emit(Operation::Test(Test::Tuple { of, size }));
        for (index, element) in (0..).zip(tuple.iter()) {
            if is_atom(element, Atom::UNDERSCORE) {
                continue;
            }
            let path = self.step(path, Step::Element(index as usize + 1));
            let to = self.part(element, path)?;
            self.emit(Operation::Test(Test::Element { of, index, to }));
            self.one(Operand::Register(to), element, path)?;
        }
        Ok(())
    }

    fn list(&mut self, of: Operand, list: &'t List, path: Path) -> Compiled {
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
            let path = self.step(path, Step::Element(index as usize + 1));
            self.one(Operand::Register(to + index), element, path)?;
        }
        let path = self.step(path, Step::Tail);
        match variable(tail) {
            Some(number) if self.binding(number).is_none() => {
                self.bind(number, Binding::Rest { of, skip: count });
            }
            Some(_) => {
                let rest = self.part(tail, path)?;
                self.emit(Operation::Put(rest, Make::Rest { of, skip: count }));
                self.one(Operand::Register(rest), tail, path)?;
            }
            None if test == TailTest::Improper => {
                self.one(Operand::Register(to + count), tail, path)?;
            }
            None => {}
        }
        Ok(())
    }

    fn map(&mut self, of: Operand, map: &'t Map, path: Path) -> Compiled {
        let size = self.count(map.len(), &Term::NIL, path)?;
        self.emit(Operation::Test(Test::Map { of, size }));
        for (index, (key, value)) in map.entries().iter().enumerate() {
            if variable(key).is_some() || is_atom(key, Atom::UNDERSCORE) {
                let path = self.step(path, Step::Key(index + 1));
                return Err(self.error(path, key, SpecProblem::OpenKey));
            }
            let path = self.step(path, Step::Value(index + 1));
            let Operand::Constant(key) = self.constant(key, path)? else {
                continue;
            };
            let to = self.part(value, path)?;
            self.emit(Operation::Test(Test::Value { of, key, to }));
            self.one(Operand::Register(to), value, path)?;
        }
        Ok(())
    }
}
