//! Erlang's text: `{42, <<"a value">>, [1, 2 | x], #{a => 1.5}}`.
//!
//! The text is read as by `io:read` and printed as by `io_lib:format("~0p")`, so that each side
//! reads what the other prints as the same term. What Erlang prints but cannot read has its own
//! forms here: `#Pid<…>`, `#Port<…>`, `#Ref<…>` (see [`Pid`](super::Pid)).
//!
//! - `parse`: nested terms; `scan`: characters, blanks, comments; `number`, `quoted`, `segments`
//!   (binaries), `word` (atoms, functions), `opaque`: the rest.
//! - `print`: writing; `float`, `atom`: digits and quotes.
//! - `print`: writing; `float`, `atom`: the digits of one, the quotes of the other.

mod atom;
mod error;
mod float;
mod number;
mod opaque;
mod parse;
mod print;
mod quoted;
mod scan;
mod segments;
mod word;

pub(super) use atom::write_atom;
pub use error::{ParseError, ParseProblem};
pub(super) use float::write_float;

use super::{Limits, Term};
use std::str::FromStr;

/// The text of bytes in Latin-1, which are the first code points.
pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

impl Term {
    /// Reads a term from Erlang's text. A full stop may follow it; blanks and comments (`% …`) may
    /// be between all parts.
    ///
    /// It accepts what Erlang's `io:read` accepts, except binaries inside binaries
    /// (`<<(<<1>>)/binary>>`) and terms in parentheses, and also the opaque forms that this crate
    /// prints. Takes time in proportion to the text, except for long integers.
    ///
    /// ```
    /// use tremula_table::{Term, term::Limits};
    ///
    /// let term = Term::parse("[16#FF, $a, 'an atom' | <<5:3>>].", &Limits::default())?;
    /// assert_eq!(term.to_string(), "[255,97,'an atom'|<<5:3>>]");
    /// let error = Term::parse("{a, B}", &Limits::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "byte 4: B is a variable; a term has none");
    /// # Ok::<(), tremula_table::term::ParseError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The text is not one term, or it exceeds a limit.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, ParseError> {
        parse::parse(text, limits)
    }

    /// Does the same as [`parse`](Self::parse) with bytes that should be UTF-8.
    ///
    /// # Errors
    ///
    /// The bytes are not UTF-8; otherwise those of [`parse`](Self::parse).
    pub fn parse_bytes(text: &[u8], limits: &Limits) -> Result<Self, ParseError> {
        match std::str::from_utf8(text) {
            Ok(text) => parse::parse(text, limits),
            Err(error) => Err(ParseError {
                offset: error.valid_up_to(),
                problem: ParseProblem::NotUtf8,
            }),
        }
    }
}

/// [`Term::parse`] with the default limits.
impl FromStr for Term {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::parse(text, &Limits::default())
    }
}

#[cfg(test)]
mod tests;
