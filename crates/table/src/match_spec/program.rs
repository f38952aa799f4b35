//! What a specification is compiled to.
//!
//! A clause is a list of operations on *operands*: fields of the row, constants of the
//! specification, and registers, each of which is known at compile time to be written before it
//! is read. A variable that the head binds to a field of the row *is* that field, so that the
//! head `{'$1', '$2', '_'}` is but the test that the row has three fields, and `{'>', '$2', 10}` one
//! comparison of a field with a constant: no register is written for a row that fails.

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

/// Some of the specification's lists of operands, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operands {
    pub(super) start: u32,
    pub(super) count: u32,
}

/// What has to follow the elements that a list pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TailTest {
    /// The end of a proper list.
    Nil,
    /// Anything.
    Any,
    /// Something that is no list: it goes into the register behind those of the elements.
    Improper,
}

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Test(Test),
    /// Fails unless the operand is `true`.
    Require(Operand),
    /// Fails unless the comparison holds.
    RequireComparison {
        comparison: Comparison,
        one: Operand,
        two: Operand,
    },
    /// Fails.
    Never,
    /// Puts a value into a register. Where there is none, the clause fails in a guard; in a body
    /// it is `'EXIT'`.
    Put {
        to: u32,
        value: Make,
    },
    /// If `of` is the boolean that `decides`, or none at all, that is the value, as above, and the
    /// program goes on at `end`.
    Branch {
        of: Operand,
        decides: bool,
        to: u32,
        end: u32,
    },
}

impl Operation {
    /// How many registers there have to be for it.
    pub(super) const fn registers(&self) -> u32 {
        match self {
            Self::Test(Test::Element { to, .. } | Test::Value { to, .. })
            | Self::Put { to, .. }
            | Self::Branch { to, .. } => *to + 1,
            Self::Test(Test::List { to, count, .. }) => *to + *count + 1,
            _ => 0,
        }
    }
}

/// A step of a head: a test, which makes the clause fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// `of` is a tuple of this size.
    Tuple { of: Operand, size: u32 },
    /// An element of what is known to be a tuple with it goes into a register.
    Element { of: Operand, index: u32, to: u32 },
    /// `of` is a list that begins with `count` elements, which go into registers from `to` on.
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
    /// Both are the same, under `=:=`.
    Same { one: Operand, two: Operand },
    /// `of` is the float zero with this sign: patterns tell `0.0` from `-0.0`, though `=:=` does not.
    Zero { of: Operand, negative: bool },
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// The whole row.
    Row,
    /// That of an operand.
    Copy(Operand),
    /// What follows the first `skip` elements of what is known to be a list that has them.
    Rest {
        of: Operand,
        skip: u32,
    },
    Comparison {
        comparison: Comparison,
        one: Operand,
        two: Operand,
    },
    /// That of a function.
    Compute {
        function: Compute,
        arguments: Operands,
    },
    /// That of a function whose value is a part of its last argument.
    Project {
        function: Project,
        arguments: Operands,
    },
    Tuple(Operands),
    /// The last operand is the tail.
    List(Operands),
    /// Keys and values by turns.
    Map(Operands),
}

/// Which rows a clause can match, by their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Any,
    Size(usize),
    /// None: the head is a pattern of something else, which it takes for the only field. Only
    /// [`run_term`](super::Matcher::run_term) meets such terms.
    NoTuple,
}

/// A compiled clause.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) shape: Shape,
    pub(super) operations: Box<[Operation]>,
    /// Where in `operations` the body begins.
    pub(super) body: usize,
    pub(super) result: Operand,
    pub(super) registers: usize,
    /// Those that the head and the guards use.
    pub(super) guard_registers: usize,
    /// The head, and what its variables are: for finding the keys that it can match.
    pub(super) head: Term,
    /// The list of the body's expressions, as they were written.
    pub(super) expressions: Term,
    pub(super) variables: BTreeMap<u64, Binding>,
}

/// What a variable is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    Operand(Operand),
    /// The row itself: the head is but this variable.
    Row,
    /// The rest of a list, which is made when it is needed.
    Rest {
        of: Operand,
        skip: u32,
    },
}

/// All clauses of a specification and what they have in common.
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

/// The number of the variable that an atom is: `'$0'`, `'$1'`, … without leading zeros.
pub(super) fn variable(term: &Term) -> Option<u64> {
    let Term::Atom(atom) = term else { return None };
    let digits = atom.text().strip_prefix('$')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits == "0" || !digits.starts_with('0');
    (plain && canonical).then(|| digits.parse().ok()).flatten()
}
