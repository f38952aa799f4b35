//! The program that a specification is compiled to.
//!
//! A clause is a list of operations on *operands*: fields of the row, constants of the
//! specification, and registers. The compiler guarantees that each register is written before it is
//! read. A variable that the head binds to a field of the row *is* that field. So the head `{'$1',
//! '$2', '_'}` only tests that the row has three fields, and `{'>', '$2', 10}` only compares a
//! field with a constant: a row that fails writes no register.

use super::function::{Comparison, Compute, Project};
use crate::term::{Atom, Term};
use std::collections::BTreeMap;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A field of the row, counted from zero.
    Field(u32),
    Register(u32),
    /// A constant of the specification.
    Constant(u32),
}

/// A range of the specification's list of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operands {
    pub(super) start: u32,
    pub(super) count: u32,
}

/// What must follow the elements that a list pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TailTest {
    /// The end of a proper list.
    Nil,
    /// Anything.
    Any,
    /// A term that is no list. It goes into the register after those of the elements.
    Improper,
}

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Test(Test),
    /// Fails unless the operand is `true`.
    Require(Operand),
    /// Fails unless the comparison holds.
    RequireComparison(Comparison, Operand, Operand),
    /// Fails.
    Never,
    /// Puts a value into a register. If there is no value, the clause fails in a guard, and the
    /// value is `'EXIT'` in a body.
    Put(u32, Make),
    /// If `of` is the boolean `decides`, or has no value, this becomes the value as in `Put`, and
    /// the program continues at `end`.
    Branch {
        of: Operand,
        decides: bool,
        to: u32,
        end: u32,
    },
}

impl Operation {
    /// How many registers it needs.
    pub(super) const fn registers(&self) -> u32 {
        match self {
            Self::Test(Test::Element { to, .. } | Test::Value { to, .. })
            | Self::Put(to, _)
            | Self::Branch { to, .. } => *to + 1,
            Self::Test(Test::List { to, count, .. }) => *to + *count + 1,
            _ => 0,
        }
    }

    /// The comparison of a variable with a constant, if that is what it requires.
    pub(super) fn compares(&self, variable: Operand) -> Option<(Comparison, u32)> {
        match *self {
            Self::RequireComparison(comparison, one, Operand::Constant(two)) if one == variable => {
                Some((comparison, two))
            }
            Self::RequireComparison(comparison, Operand::Constant(one), two) if two == variable => {
                Some((comparison.swapped(), one))
            }
            _ => None,
        }
    }
}

/// A step of a head: a test that makes the clause fail if it does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// `of` is a tuple of this size.
    Tuple { of: Operand, size: u32 },
    /// An element of a tuple, which is known to exist, goes into a register.
    Element { of: Operand, index: u32, to: u32 },
    /// `of` is a list that begins with `count` elements; they go into registers from `to` on.
    List {
        of: Operand,
        count: u32,
        tail: TailTest,
        to: u32,
    },
    /// `of` is a map of at least this size.
    Map { of: Operand, size: u32 },
    /// `of` is a map with this key, a constant; its value goes into a register.
    Value { of: Operand, key: u32, to: u32 },
    /// Both are identical (`=:=`).
    Same { one: Operand, two: Operand },
    /// `of` is the float zero with this sign: patterns distinguish `0.0` from `-0.0`, `=:=` does
    /// not.
    Zero { of: Operand, negative: bool },
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// The whole row.
    Row,
    /// The value of an operand.
    Copy(Operand),
    /// What follows the first `skip` elements of a list that is known to have them.
    Rest {
        of: Operand,
        skip: u32,
    },
    Comparison(Comparison, Operand, Operand),
    /// The value of a function.
    Compute(Compute, Operands),
    /// The value of a function that selects a part of its last argument.
    Project(Project, Operands),
    Tuple(Operands),
    /// The last operand is the tail.
    List(Operands),
    /// Keys and values alternate.
    Map(Operands),
}

/// Which rows a clause can match, by their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Any,
    Size(usize),
    /// No row: the head is a pattern of a term that is no tuple, which counts as the only field.
    /// Only [`run_term`](super::Matcher::run_term) gets such terms.
    NoTuple,
}

/// A compiled clause.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) shape: Shape,
    pub(super) operations: Box<[Operation]>,
    /// The index in `operations` at which the body begins.
    pub(super) body: usize,
    pub(super) result: Operand,
    pub(super) registers: usize,
    /// How many registers the head and the guards use.
    pub(super) guard_registers: usize,
    /// The head and its variables, for finding the keys that the clause can match.
    pub(super) head: Term,
    /// The list of the body's expressions, as written.
    pub(super) expressions: Term,
    pub(super) variables: BTreeMap<u64, Binding>,
}

/// What a variable is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Operand(Operand),
    /// The row itself: the head is only this variable.
    Row,
    /// The rest of a list, made when it is needed.
    Rest {
        of: Operand,
        skip: u32,
    },
}

/// All clauses of a specification, with their shared constants and operands.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) clauses: Box<[Clause]>,
    pub(super) constants: Box<[Term]>,
    pub(super) operands: Box<[Operand]>,
}

impl Program {
    pub(super) fn operands(&self, of: Operands) -> &[Operand] {
        let start = of.start as usize;
        &self.operands[start..start + of.count as usize]
    }
}

/// Whether a term is this atom.
#[inline]
pub(super) fn is_atom(term: &Term, this: Atom) -> bool {
    matches!(term, Term::Atom(atom) if *atom == this)
}

/// The number of a variable: `'$0'`, `'$1'`, … without leading zeros.
pub(super) fn variable(term: &Term) -> Option<u64> {
    let Term::Atom(atom) = term else { return None };
    let digits = atom.text().strip_prefix('$')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits == "0" || !digits.starts_with('0');
    (plain && canonical).then(|| digits.parse().ok()).flatten()
}
