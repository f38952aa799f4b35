//! What is wrong with a match specification, and where.

use crate::term::Term;
use std::fmt;
use thiserror::Error;

/// A term that is no match specification: the wrong part, its location, and the reason.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec: Term = "[{{'$1', '_'}, [{'>', {lenght, '$1'}, 3}], ['$_']}]".parse()?;
/// let error = MatchSpec::compile(&spec).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "clause 1, guard 1, argument 1: there is no function lenght/1, in {lenght,'$1'}",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub struct SpecError {
    /// The steps from the whole term to the part; empty for the whole term.
    pub path: Vec<Step>,
    /// The wrong part.
    pub term: Term,
    /// What is wrong with it.
    pub problem: SpecProblem,
}

/// A step from a term to a part of it. Numbers begin with 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// To a clause of the specification.
    Clause(usize),
    /// To a clause's head, its pattern.
    Head,
    /// To one of a clause's guards.
    Guard(usize),
    /// To all of a clause's guards.
    Guards,
    /// To one of the expressions of a clause's body.
    Expression(usize),
    /// To a clause's whole body.
    Body,
    /// To an argument of a function.
    Argument(usize),
    /// To an element of a tuple or a list.
    Element(usize),
    /// To the tail of a list.
    Tail,
    /// To a key of a map, counted in the order in which maps are printed.
    Key(usize),
    /// To a value of a map, counted in the order in which maps are printed.
    Value(usize),
}

/// What is wrong with a part of a match specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecProblem {
    /// It is not a list of clauses.
    #[error("a match specification is a list of clauses")]
    NotClauses,
    /// It has no clause.
    #[error("a match specification has one clause or more")]
    NoClauses,
    /// A clause has another shape.
    #[error("a clause is a tuple {{Head, Guards, Body}}")]
    NotAClause,
    /// Guards that are not in a list.
    #[error("guards are in a proper list")]
    NotGuards,
    /// A body that is not a list.
    #[error("a body is a proper list of one expression or more")]
    NotABody,
    /// A map pattern with a variable or `'_'` as a key.
    #[error("the keys of a map pattern are given: they are neither variables nor '_'")]
    OpenKey,
    /// A tuple that is no call.
    #[error("this is no function call; a tuple is written {{{{ ... }}}}")]
    NotACall,
    /// A function that does not exist.
    #[error("there is no function {name}/{arity}")]
    UnknownFunction {
        /// The name that was called.
        name: Term,
        /// The number of arguments in the call.
        arity: usize,
    },
    /// A function called with a wrong number of arguments.
    #[error("{name} takes {takes}, not {given}")]
    Arity {
        /// The function.
        name: Term,
        /// The allowed numbers, in words.
        takes: &'static str,
        /// The number of arguments in the call.
        given: usize,
    },
    /// A variable that the head does not bind.
    #[error("the head does not bind {0}")]
    Unbound(Term),
    /// More of something than a program can count.
    #[error("the specification is too large")]
    TooLarge,
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.path.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{step}")?;
        }
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(formatter, "{colon}{}, in {}", self.problem, self.term)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clause(number) => write!(formatter, "clause {number}"),
            Self::Head => formatter.write_str("head"),
            Self::Guard(number) => write!(formatter, "guard {number}"),
            Self::Guards => formatter.write_str("guards"),
            Self::Expression(number) => write!(formatter, "body expression {number}"),
            Self::Body => formatter.write_str("body"),
            Self::Argument(number) => write!(formatter, "argument {number}"),
            Self::Element(number) => write!(formatter, "element {number}"),
            Self::Tail => formatter.write_str("tail"),
            Self::Key(number) => write!(formatter, "key {number}"),
            Self::Value(number) => write!(formatter, "value {number}"),
        }
    }
}

/// The paths to the parts being compiled; each is a step from another path.
#[derive(Default)]
pub(super) struct Paths(Vec<(Option<Path>, Step)>);

/// A path in [`Paths`].
#[derive(Clone, Copy)]
pub(super) struct Path(usize);

impl Paths {
    pub(super) fn step(&mut self, from: Option<Path>, step: Step) -> Path {
        self.0.push((from, step));
        Path(self.0.len() - 1)
    }

    /// The error about the term at the end of this path.
    pub(super) fn error(&self, path: Option<Path>, term: &Term, problem: SpecProblem) -> SpecError {
        let mut steps = Vec::new();
        let mut next = path;
        while let Some(Path(at)) = next {
            let (from, step) = self.0[at];
            steps.push(step);
            next = from;
        }
        steps.reverse();
        SpecError {
            path: steps,
            term: term.clone(),
            problem,
        }
    }
}
