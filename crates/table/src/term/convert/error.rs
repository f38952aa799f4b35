//! A term that is not what was expected.

use crate::term::Term;
use std::error::Error;
use std::fmt;

/// A term that the expected Rust type cannot hold.
///
/// ```
/// use tremula_table::Term;
///
/// let row: Term = "{7, {ada, 300}}".parse()?;
/// let error = <(i64, (String, u8))>::try_from(&row).unwrap_err();
/// assert_eq!(error.to_string(), "element 2, element 1: ada is not a binary in UTF-8");
/// # Ok::<(), tremula_table::term::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UnexpectedTerm {
    /// The term.
    pub term: Term,
    /// What was expected, with its article.
    pub expected: &'static str,
    /// Where the term is: the positions of the elements that lead to it, counted from 1, the
    /// outermost first. Keys and values of maps have no position.
    pub path: Vec<usize>,
}

impl UnexpectedTerm {
    /// The error about this term. `expected` completes the sentence "it is not …".
    ///
    /// ```
    /// use tremula_table::{Term, term::UnexpectedTerm};
    ///
    /// let error = UnexpectedTerm::new(&Term::from(7), "a colour");
    /// assert_eq!(error.to_string(), "7 is not a colour");
    /// ```
    #[must_use]
    pub fn new(term: &Term, expected: &'static str) -> Self {
        let (term, path) = (term.clone(), Vec::new());
        Self {
            term,
            expected,
            path,
        }
    }

    /// The same error about an element at this position (from 0) of a larger term.
    pub(super) fn within(mut self, place: usize) -> Self {
        self.path.insert(0, place + 1);
        self
    }
}

impl fmt::Display for UnexpectedTerm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, position) in self.path.iter().enumerate() {
            let comma = if level == 0 { "" } else { ", " };
            write!(formatter, "{comma}element {position}")?;
        }
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(formatter, "{colon}{} is not {}", self.term, self.expected)
    }
}

impl Error for UnexpectedTerm {}
