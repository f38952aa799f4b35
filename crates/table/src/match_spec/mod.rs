//! Match specifications: a small language, written as terms, that picks rows and says what to make
//! of them.

#[macro_use]
mod builder;
mod compile;
mod error;
mod evaluate;
mod function;
mod program;
mod range;
mod run;

pub use builder::{
    Expression, Functions, IntoExpression, Variable, all_variables, call, expansion, whole_row,
};
pub use error::{SpecError, SpecProblem, Step};
pub use range::{KeyBound, KeyInterval};
pub use run::Matcher;

use crate::term::{Atom, Pid, Term};
use program::Program;

/// A compiled match specification.
#[derive(Clone, Debug)]
pub struct MatchSpec {
    program: Program,
}

/// What `{self}` and `{node}` stand for.
#[derive(Clone, Debug)]
pub struct Environment {
    /// `{self}`: whoever asks.
    pub myself: Pid,
    /// `{node}`: where it is asked.
    pub node: Atom,
}

/// A process that there is not, on a node that is not distributed.
impl Default for Environment {
    fn default() -> Self {
        Self {
            myself: Pid::new(Atom::NO_NODE, 0, 0, 0),
            node: Atom::NO_NODE,
        }
    }
}

/// What a pattern alone makes of the rows that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// The list of its variables' values, in the order of their numbers: `match/2`.
    Bindings,
    /// The row: `match_object/2`.
    Row,
    /// `true`: `match_delete/2`.
    True,
}

impl MatchSpec {
    /// Checks and compiles a specification.
    ///
    /// # Errors
    ///
    /// It is none: the error tells the part that is wrong, and the way to it.
    pub fn compile(spec: &Term) -> Result<Self, SpecError> {
        Self::compile_in(spec, &Environment::default())
    }

    /// As [`compile`](Self::compile), with what `{self}` and `{node}` stand for.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn compile_in(spec: &Term, environment: &Environment) -> Result<Self, SpecError> {
        let program = compile::compile(spec, environment)?;
        Ok(Self { program })
    }

    /// What a specification makes of one row: `ets:test_ms/2`, for trying out. `None` if no clause
    /// matches (Erlang says `false` then, which it says of a result `false`, too).
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term};
    ///
    /// let spec = "[{{'$1', '$2'}, [{is_list, '$2'}], [{{'$1', {length, '$2'}}}]}]".parse()?;
    /// assert_eq!(MatchSpec::test(&spec, &"{a, [x, y]}".parse()?)?, Some("{a, 2}".parse()?));
    /// assert_eq!(MatchSpec::test(&spec, &"{a, b}".parse()?)?, None);
    /// assert!(MatchSpec::test(&spec, &Term::from(1)).is_err(), "1 is no row");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The specification is none, or the row is no tuple.
    pub fn test(spec: &Term, row: &Term) -> Result<Option<Term>, SpecError> {
        let compiled = Self::compile(spec)?;
        match row {
            Term::Tuple(row) => Ok(compiled.run(row)),
            _ => Err(SpecError {
                path: Vec::new(),
                term: row.clone(),
                problem: SpecProblem::NotARow,
            }),
        }
    }

    /// The specification of one clause that is but a pattern.
    ///
    /// # Errors
    ///
    /// A map in it has a variable or `'_'` as a key.
    pub fn from_pattern(pattern: &Term, returns: Returns) -> Result<Self, SpecError> {
        let program = compile::compile_pattern(pattern, returns)?;
        Ok(Self { program })
    }
}
