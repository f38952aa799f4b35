//! What is wrong with a text that should be a term.

use super::super::AtomError;
use thiserror::Error;

/// A text that is no term.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {problem}")]
#[non_exhaustive]
pub struct ParseError {
    /// The byte at which the wrong part begins.
    pub offset: usize,
    /// What is wrong.
    pub problem: ParseProblem,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseProblem {
    /// Something else must be here.
    #[error("{wanted} is missing; '{found}' is here")]
    Unexpected {
        /// What is here.
        found: char,
        /// What must be here.
        wanted: &'static str,
    },
    /// The text ends within a term.
    #[error("{wanted} is missing; the text ends here")]
    Ended {
        /// What must be here.
        wanted: &'static str,
    },
    /// The text is not UTF-8.
    #[error("this byte is not UTF-8")]
    NotUtf8,
    /// More text after the term.
    #[error("'{0}' is behind the term; one term is expected")]
    Trailing(char),
    /// A variable.
    #[error("{0} is a variable; a term has none")]
    Variable(String),
    /// A reserved word without quotes.
    #[error("{0} is a reserved word; the atom is '{0}'")]
    Reserved(String),
    /// The atom cannot be made.
    #[error("{0}")]
    Atom(AtomError),
    /// The atom does not exist, and the limits allow no new ones.
    #[error("the atom '{0}' is not known, and new ones are not allowed")]
    NewAtom(String),
    /// A quote that is never closed.
    #[error("this {0} is never closed")]
    Unclosed(char),
    /// A backslash before a character that cannot be escaped.
    #[error("this escape stands for no character")]
    Escape,
    /// An impossible base of an integer.
    #[error("{0} is no base; 2 to 36 are")]
    Base(String),
    /// An integer beyond the limit.
    #[error("an integer of up to {bits} bits; {limit} are allowed")]
    IntegerTooLong {
        /// An upper bound of its length, from the number of digits.
        bits: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// A float that is too large.
    #[error("a float out of range")]
    FloatTooLarge,
    /// Terms within terms beyond the limit.
    #[error("terms are nested deeper than {0}")]
    TooDeep(usize),
    /// A number that is too large for its place.
    #[error("a number too large for its place")]
    NumberTooLarge,
    /// A segment of a binary whose type, size or unit does not fit its value or the others.
    #[error("{0}")]
    Segment(&'static str),
    /// Binaries that are too large.
    #[error("binaries of more than {0} bytes")]
    ExpandsTooFar(usize),
    /// A function in a form that does not contain all of it.
    #[error("a function that only the external term format can tell")]
    LocalFun,
}
