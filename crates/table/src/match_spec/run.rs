//! Runs a program on a row.

use super::MatchSpec;
use super::budget::Budget;
use super::evaluate;
use super::function::{Comparison, Compute, Project};
use super::program::{
    Clause, Make, Operand, Operands, Operation, Program, Shape, TailTest, Test, is_atom,
};
use crate::term::{Atom, Bounds, Elements, List, OutOfBounds, Term, Tuple, pairs};

/// The content of a register: a part of the row or of a constant, or a term that was made.
#[derive(Debug)]
enum Value<'r> {
    Borrowed(&'r Term),
    Owned(Term),
}

const _: () = assert!(size_of::<Value<'_>>() == size_of::<Term>());

impl Value<'_> {
    #[inline]
    fn term(&self) -> &Term {
        match self {
            Self::Borrowed(term) => term,
            Self::Owned(term) => term,
        }
    }
}

/// Runs a specification on one row after another, with registers that it keeps from row to row: use
/// one matcher for a whole scan.
///
/// A row that fails allocates only what its guards make: a list, a tuple, a map, a big integer, the
/// rest of a list.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec: Term = "[{{'$1', '$2'}, [{'>', '$2', 10}], ['$1']}]".parse()?;
/// let spec = MatchSpec::compile(&spec)?;
/// let rows: Term = "[{a, 7}, {b, 17}, {c, 11}, other]".parse()?;
/// let Term::List(rows) = &rows else { panic!("a list") };
/// let mut matcher = spec.matcher();
/// let found: Vec<_> = rows
///     .iter()
///     .filter_map(|row| match row {
///         Term::Tuple(row) => matcher.run(row),
///         _ => None,
///     })
///     .collect();
/// assert_eq!(Term::list(found), "[b, c]".parse::<Term>()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Matcher<'s> {
    program: &'s Program,
    /// Empty between rows.
    registers: Vec<Value<'static>>,
    budget: Budget,
}

impl MatchSpec {
    /// Makes a matcher, which runs it on rows in one thread.
    #[must_use]
    pub const fn matcher(&self) -> Matcher<'_> {
        Matcher {
            program: &self.program,
            registers: Vec::new(),
            budget: Budget::NONE,
        }
    }

    /// Runs it on one row; `None` if no clause matches. For many rows use a
    /// [`matcher`](Self::matcher), which keeps its memory.
    #[must_use]
    pub fn run(&self, row: &Tuple) -> Option<Term> {
        self.matcher().run(row)
    }
}

/// The number of registers on the stack; clauses that need more use the matcher's memory. It is
/// small, because these registers are cleared for every row.
const FEW_REGISTERS: usize = 4;

impl<'s> Matcher<'s> {
    /// The same matcher, for which a term beyond these bounds, or more
    /// [work](OutOfBounds::Work) for one row than they allow, is an exception that
    /// [`reached`](Self::reached) reports.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term, term::{Bounds, Tuple}};
    ///
    /// let spec = MatchSpec::compile(&"[{{'$1'}, [], [{{'$1', '$1'}}]}]".parse()?)?;
    /// let mut matcher = spec.matcher().bounded(Bounds { bytes: 1000, depth: 10 });
    /// assert_eq!(matcher.run(&Tuple::from((1,))), Some("{1, 1}".parse()?));
    /// assert_eq!(matcher.reached(), None);
    /// matcher.run(&Tuple::from((vec![1; 50],)));
    /// assert_eq!(
    ///     matcher.reached().unwrap().to_string(),
    ///     "a term of 1736 bytes, with shared parts counted in full; the limit is 1000",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn bounded(mut self, bounds: Bounds) -> Self {
        self.budget.bounds = bounds;
        self
    }

    /// The first bound that a run has reached. What that run has returned is not a result.
    #[must_use]
    pub const fn reached(&self) -> Option<&OutOfBounds> {
        self.budget.reached.as_ref()
    }

    /// The value of the first clause that matches this row; `None` if none does. Takes time in
    /// proportion to the specification, and to the terms that it compares and makes.
    #[inline]
    pub fn run(&mut self, row: &Tuple) -> Option<Term> {
        self.run_row(Row {
            fields: row,
            whole: Whole::Tuple(row),
        })
    }

    /// Does the same as [`run`](Self::run) for any term. A term that is no tuple matches a head
    /// that is a variable, `'_'` or a pattern of such a term.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term};
    ///
    /// let spec = "[{['$1' | '_'], [], ['$1']}, {{'$1'}, [], ['$1']}]";
    /// let spec = MatchSpec::compile(&spec.parse()?)?;
    /// let mut matcher = spec.matcher();
    /// assert_eq!(matcher.run_term(&"[a, b]".parse()?), Some("a".parse()?));
    /// assert_eq!(matcher.run_term(&"{c}".parse()?), Some("c".parse()?));
    /// assert_eq!(matcher.run_term(&Term::from(7)), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run_term(&mut self, term: &Term) -> Option<Term> {
        if let Term::Tuple(row) = term {
            return self.run(row);
        }
        let row = Row {
            fields: std::slice::from_ref(term),
            whole: Whole::OnlyField,
        };
        self.budget.begin_row();
        let fits = |clause: &&Clause| matches!(clause.shape, Shape::Any | Shape::NoTuple);
        let mut clauses = self.program.clauses.iter().filter(fits);
        clauses.find_map(|clause| self.attempt(clause, row))
    }

    /// Does the same as [`run`](Self::run) for a row that is not a tuple in memory. If the
    /// specification uses the whole row, a tuple is made of the fields.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term, match_spec::Returns};
    ///
    /// let spec = MatchSpec::from_pattern(&"{'$1', '_'}".parse()?, Returns::Row)?;
    /// let row = spec.matcher().run_fields(&[Term::from(1), Term::from(2)]);
    /// assert_eq!(row, Some("{1, 2}".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn run_fields(&mut self, fields: &[Term]) -> Option<Term> {
        self.run_row(Row {
            fields,
            whole: Whole::Fields,
        })
    }

    #[inline]
    fn run_row(&mut self, row: Row<'_>) -> Option<Term> {
        self.budget.begin_row();
        for clause in &self.program.clauses {
            let fits = match clause.shape {
                Shape::Size(size) => row.fields.len() == size,
                Shape::Any => true,
                Shape::NoTuple => false,
            };
            if fits && let Some(result) = self.attempt(clause, row) {
                return Some(result);
            }
        }
        None
    }

    #[inline]
    fn attempt(&mut self, clause: &Clause, row: Row<'_>) -> Option<Term> {
        if clause.guard_registers > 0 {
            if clause.registers > FEW_REGISTERS {
                return self.attempt_with_many(clause, row);
            }
            let mut registers = [const { Value::Owned(Term::NIL) }; FEW_REGISTERS];
            return self.frame(row, &mut registers).attempt(clause);
        }
        // Most rows fail; those of simple clauses do so before a register is made.
        let mut frame = self.frame(row, &mut []);
        if !frame.head_and_guards(clause) {
            return None;
        }
        if clause.registers == 0 {
            return Some(frame.take(clause.result));
        }
        self.attempt_with_many(clause, row)
    }

    fn frame<'r, 'm>(&'m mut self, row: Row<'r>, registers: &'m mut [Value<'r>]) -> Frame<'r, 'm>
    where
        's: 'r,
    {
        Frame {
            program: self.program,
            row,
            registers,
            budget: &mut self.budget,
        }
    }

    #[inline(never)]
    fn attempt_with_many(&mut self, clause: &Clause, row: Row<'_>) -> Option<Term> {
        let mut registers = again(std::mem::take(&mut self.registers));
        registers.resize_with(clause.registers, || Value::Owned(Term::NIL));
        let result = self.frame(row, &mut registers).attempt(clause);
        self.registers = again(registers);
        result
    }
}

/// An empty vector in the same memory, for values with another lifetime. The standard library
/// collects in place if the element sizes are equal.
#[inline]
#[allow(
    clippy::unnecessary_filter_map,
    reason = "`filter` would keep the type, and so the lifetime"
)]
fn again<'b>(mut values: Vec<Value<'_>>) -> Vec<Value<'b>> {
    values.clear();
    values.into_iter().filter_map(|_| None).collect()
}

/// The state of running a program.
struct Frame<'r, 'm> {
    program: &'r Program,
    row: Row<'r>,
    registers: &'m mut [Value<'r>],
    budget: &'m mut Budget,
}

#[derive(Clone, Copy)]
struct Row<'r> {
    fields: &'r [Term],
    whole: Whole<'r>,
}

/// The form of the whole row.
#[derive(Clone, Copy)]
enum Whole<'r> {
    /// A tuple in memory.
    Tuple(&'r Tuple),
    /// A tuple that has to be made of the fields.
    Fields,
    /// The only field, which is no tuple.
    OnlyField,
}

impl Row<'_> {
    fn term(self) -> Term {
        match self.whole {
            Whole::Tuple(tuple) => Term::Tuple(tuple.clone()),
            Whole::Fields => Term::tuple(self.fields.iter().cloned()),
            Whole::OnlyField => self.fields[0].clone(),
        }
    }
}

impl<'r> Frame<'r, '_> {
    #[inline]
    fn attempt(&mut self, clause: &Clause) -> Option<Term> {
        self.head_and_guards(clause).then(|| {
            self.run::<true>(&clause.operations, clause.body);
            self.take(clause.result)
        })
    }

    #[inline]
    fn head_and_guards(&mut self, clause: &Clause) -> bool {
        self.run::<false>(&clause.operations[..clause.body], 0)
    }

    /// Runs operations; `false` if one failed. In a `BODY` none fails: a missing value is `'EXIT'`.
    #[inline]
    fn run<const BODY: bool>(&mut self, operations: &[Operation], from: usize) -> bool {
        let mut at = from;
        while let Some(operation) = operations.get(at) {
            at += 1;
            match *operation {
                Operation::RequireComparison(comparison, one, two) => {
                    if self.compare(comparison, one, two) != Some(true) {
                        return false;
                    }
                }
                Operation::Require(of) => {
                    if !is_atom(self.get(of), Atom::TRUE) {
                        return false;
                    }
                }
                Operation::Never => return false,
                Operation::Test(test) => {
                    if self.test(test).is_none() {
                        return false;
                    }
                }
                Operation::Put(to, value) => match self.make(value) {
                    Some(value) => self.set(to, value),
                    None if BODY => self.set(to, Value::Owned(Atom::EXIT.into())),
                    None => return false,
                },
                Operation::Branch {
                    of,
                    decides,
                    to,
                    end,
                } => {
                    let (value, leaves) = match evaluate::boolean(self.get(of)) {
                        Some(value) => (Atom::boolean(value), value == decides),
                        None if BODY => (Atom::EXIT, true),
                        None => return false,
                    };
                    if leaves {
                        self.set(to, Value::Owned(value.into()));
                        at = end as usize;
                    }
                }
            }
        }
        true
    }

    /// Runs a step of a head; `None` if it fails.
    #[inline]
    fn test(&mut self, test: Test) -> Option<()> {
        let holds = match test {
            Test::Tuple { of, size } => {
                matches!(self.get(of), Term::Tuple(tuple) if tuple.len() == size as usize)
            }
            Test::Element { of, index, to } => {
                let element = self.part(of, |term| element(term, index as usize))?;
                self.set(to, element);
                true
            }
            Test::List {
                of,
                count,
                tail,
                to,
            } => self.list(of, count, tail, to),
            Test::Map { of, size } => {
                matches!(self.get(of), Term::Map(map) if map.len() >= size as usize)
            }
            Test::Value { of, key, to } => {
                let key = &self.program.constants[key as usize];
                let value = self.part(of, |term| value_of(term, key))?;
                self.set(to, value);
                true
            }
            Test::Same { one, two } => self.compare(Comparison::Identical, one, two)?,
            Test::Zero { of, negative } => match self.get(of) {
                Term::Float(float) => {
                    float.value() == 0.0 && float.value().is_sign_negative() == negative
                }
                _ => false,
            },
        };
        holds.then_some(())
    }

    /// Makes a value; `None` is an exception.
    #[inline]
    fn make(&mut self, value: Make) -> Option<Value<'r>> {
        let made = match value {
            Make::Row => self.row.term(),
            Make::Copy(of) => return Some(self.copy(of)),
            Make::Rest { of, skip } => {
                self.budget.spend(self.get(of).heap_bytes())?;
                return self.rest(of, skip);
            }
            Make::Comparison(comparison, one, two) => self.compare(comparison, one, two)?.into(),
            Make::Compute(function, arguments) => {
                let arguments = self.program.operands(arguments);
                let bytes = evaluate::work(function, arguments.iter().map(|one| self.get(*one)));
                self.budget.spend(bytes)?;
                let made = self.compute(function, arguments)?;
                if let Term::Bitstring(_) = made {
                    self.budget.spend(made.heap_bytes())?;
                }
                made
            }
            Make::Project(function, arguments) => {
                let arguments = self.program.operands(arguments);
                if let (Project::MapGet, &[key, _]) = (function, arguments) {
                    let bytes = self.get(key).heap_bytes();
                    self.budget.spend(bytes.saturating_mul(evaluate::PASSES))?;
                }
                return self.project(function, arguments);
            }
            Make::Tuple(elements) => Term::tuple(self.clones(elements)),
            Make::List(elements) => {
                let mut elements = self.clones(elements);
                let tail = elements.pop().unwrap_or_default();
                Term::list_with_tail(elements, tail)
            }
            Make::Map(entries) => {
                let entries = pairs(self.clones(entries).into_iter());
                // Sorting compares each key with some others.
                let keys = entries.iter().map(|(key, _)| key.heap_bytes());
                let bytes = keys.fold(0, usize::saturating_add);
                let rounds = entries
                    .len()
                    .checked_ilog2()
                    .map_or(0, |rounds| rounds as usize + 1);
                self.budget.spend(bytes.saturating_mul(rounds))?;
                Term::map(entries)
            }
        };
        self.budget.admit(made).map(Value::Owned)
    }

    /// Whether a comparison holds; `None` if it would take more work than is left.
    #[inline]
    fn compare(&mut self, comparison: Comparison, a: Operand, b: Operand) -> Option<bool> {
        let (one, two) = (self.get(a), self.get(b));
        if let (Term::Integer(_), _) | (_, Term::Integer(_)) = (one, two) {
            return Some(evaluate::compare(comparison, one, two));
        }
        let bytes = one.heap_bytes().min(two.heap_bytes());
        self.budget.spend(bytes)?;
        Some(evaluate::compare(comparison, self.get(a), self.get(b)))
    }

    #[inline]
    fn get(&self, operand: Operand) -> &Term {
        match operand {
            Operand::Field(index) => &self.row.fields[index as usize],
            Operand::Register(index) => self.registers[index as usize].term(),
            Operand::Constant(index) => &self.program.constants[index as usize],
        }
    }

    #[inline]
    fn set(&mut self, register: u32, value: Value<'r>) {
        self.registers[register as usize] = value;
    }

    /// Takes the value of an operand that is not used again.
    fn take(&mut self, operand: Operand) -> Term {
        match operand {
            Operand::Register(index) => {
                let register = &mut self.registers[index as usize];
                match std::mem::replace(register, Value::Owned(Term::NIL)) {
                    Value::Borrowed(term) => term.clone(),
                    Value::Owned(term) => term,
                }
            }
            _ => self.get(operand).clone(),
        }
    }

    /// A borrowed operand, or a reference to one that was made.
    #[inline]
    fn whole(&self, operand: Operand) -> Result<&'r Term, &Term> {
        match operand {
            Operand::Field(index) => Ok(&self.row.fields[index as usize]),
            Operand::Constant(index) => Ok(&self.program.constants[index as usize]),
            Operand::Register(index) => match &self.registers[index as usize] {
                Value::Borrowed(term) => Ok(term),
                Value::Owned(term) => Err(term),
            },
        }
    }

    fn copy(&self, operand: Operand) -> Value<'r> {
        match self.whole(operand) {
            Ok(term) => Value::Borrowed(term),
            Err(term) => Value::Owned(term.clone()),
        }
    }

    /// A part of an operand, borrowed if the operand is.
    #[inline]
    fn part(
        &self,
        operand: Operand,
        part: impl for<'t> FnOnce(&'t Term) -> Option<&'t Term>,
    ) -> Option<Value<'r>> {
        match self.whole(operand) {
            Ok(term) => part(term).map(Value::Borrowed),
            Err(term) => part(term).cloned().map(Value::Owned),
        }
    }

    fn clones(&self, operands: Operands) -> Vec<Term> {
        let operands = self.program.operands(operands);
        operands.iter().map(|&one| self.get(one).clone()).collect()
    }

    /// Puts the elements of a list into registers; `false` if the list does not fit the pattern.
    fn list(&mut self, of: Operand, count: u32, tail: TailTest, to: u32) -> bool {
        let registers = to as usize..=(to + count) as usize;
        match self.whole(of) {
            Ok(term) => {
                let registers = &mut self.registers[registers];
                spread(term, tail, registers, Value::Borrowed)
            }
            Err(term) => {
                let term = term.clone();
                let registers = &mut self.registers[registers];
                spread(&term, tail, registers, |term| Value::Owned(term.clone()))
            }
        }
    }

    /// What follows the first elements of a list.
    fn rest(&self, of: Operand, skip: u32) -> Option<Value<'r>> {
        match self.whole(of) {
            Ok(Term::List(list)) => {
                let elements = after(list, skip);
                let mut ahead = elements.clone();
                Some(match ahead.next() {
                    Some(_) => Value::Owned(elements.to_term()),
                    None => Value::Borrowed(ahead.tail()),
                })
            }
            Err(Term::List(list)) => Some(Value::Owned(after(list, skip).to_term())),
            _ => None,
        }
    }

    #[inline]
    fn compute(&self, function: Compute, arguments: &[Operand]) -> Option<Term> {
        match function {
            Compute::And => self.all(arguments, false),
            Compute::Or => self.all(arguments, true),
            _ => match *arguments {
                [one] => evaluate::unary(function, self.get(one)),
                [one, two] => evaluate::binary(function, self.get(one), self.get(two)),
                [one, two, three] => {
                    evaluate::ternary(function, self.get(one), self.get(two), self.get(three))
                }
                _ => None,
            },
        }
    }

    /// `and` and `or` of arguments that must all be booleans: whether one of them decides.
    fn all(&self, arguments: &[Operand], decides: bool) -> Option<Term> {
        let mut result = !decides;
        for &argument in arguments {
            if evaluate::boolean(self.get(argument))? == decides {
                result = decides;
            }
        }
        Some(result.into())
    }

    #[inline]
    fn project(&self, function: Project, arguments: &[Operand]) -> Option<Value<'r>> {
        match (function, arguments) {
            (Project::Head, &[list]) => self.part(list, |term| match term {
                Term::List(list) => list.first(),
                _ => None,
            }),
            (Project::Element, &[index, tuple]) => {
                let Term::Integer(index) = *self.get(index) else {
                    return None;
                };
                let index = usize::try_from(index).ok()?.checked_sub(1)?;
                self.part(tuple, |term| element(term, index))
            }
            (Project::MapGet, &[key, map]) => {
                let key = self.get(key);
                self.part(map, |term| value_of(term, key))
            }
            _ => None,
        }
    }
}

fn element(tuple: &Term, index: usize) -> Option<&Term> {
    match tuple {
        Term::Tuple(tuple) => tuple.get(index),
        _ => None,
    }
}

fn value_of<'t>(map: &'t Term, key: &Term) -> Option<&'t Term> {
    match map {
        Term::Map(map) => map.get(key),
        _ => None,
    }
}

/// What follows the first elements of a list.
fn after(list: &List, skip: u32) -> Elements<'_> {
    let mut elements = list.iter();
    let _ = elements.by_ref().take(skip as usize).count();
    elements
}

/// Puts the first elements of a list into all registers but the last. If an improper tail must
/// follow, it goes into the last one.
fn spread<'t, 'r>(
    term: &'t Term,
    tail: TailTest,
    registers: &mut [Value<'r>],
    value: impl Fn(&'t Term) -> Value<'r>,
) -> bool {
    let (Term::List(list), Some((last, registers))) = (term, registers.split_last_mut()) else {
        return false;
    };
    let mut elements = list.iter();
    for register in registers {
        let Some(element) = elements.next() else {
            return false;
        };
        *register = value(element);
    }
    match tail {
        TailTest::Any => true,
        TailTest::Nil => elements.next().is_none() && elements.tail().is_nil(),
        TailTest::Improper => {
            let over = elements.next().is_none();
            *last = value(elements.tail());
            over
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_kept_from_row_to_row() {
        let spec = "[{{{'$1', '$2', '$3', '$4', '$5'}}, [{'>', {'+', '$1', '$5'}, 100}], [x]}]";
        let spec = MatchSpec::compile(&spec.parse().unwrap()).unwrap();
        assert!(spec.program.clauses[0].registers > FEW_REGISTERS);
        let row: Term = "{{1, 2, 3, 4, 5}}".parse().unwrap();
        let Term::Tuple(row) = row else {
            panic!("a row")
        };
        let mut matcher = spec.matcher();
        assert_eq!(matcher.run(&row), None);
        let (place, capacity) = (matcher.registers.as_ptr(), matcher.registers.capacity());
        assert!(capacity > 0 && matcher.registers.is_empty());
        for _ in 0..3 {
            assert_eq!(matcher.run(&row), None);
            assert_eq!(matcher.registers.as_ptr(), place);
            assert_eq!(matcher.registers.capacity(), capacity);
        }
    }

    #[test]
    fn simple_guards_need_no_registers() {
        let spec = "[{{'$1', '$2'}, [{'andalso', {'>', '$1', 5}, {'=<', '$2', a}}], ['$1']}]";
        let spec = MatchSpec::compile(&spec.parse().unwrap()).unwrap();
        assert_eq!(spec.program.clauses[0].registers, 0);
    }
}
