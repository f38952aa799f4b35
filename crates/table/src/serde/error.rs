//! What is wrong with a value or a term.

use std::fmt::{self, Display};

/// Why a value has no term, or a term is not such a value. The text names the wrong part, and the
/// positions of the elements that lead to it, counted from 1.
///
/// ```
/// use tremula_table::serde::to_term;
///
/// let error = to_term(&(1, vec![0.5, f64::INFINITY])).unwrap_err();
/// let text = "element 2, element 2: inf is no float that a term can hold: it is not finite";
/// assert_eq!(error.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The positions, the innermost first.
    path: Vec<usize>,
    message: String,
}

impl Error {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let (path, message) = (Vec::new(), message.into());
        Self { path, message }
    }

    /// The error about the element at this place, from 0.
    pub(super) fn within(mut self, place: usize) -> Self {
        self.path.push(place + 1);
        self
    }
}

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, position) in self.path.iter().rev().enumerate() {
            let comma = if level == 0 { "" } else { ", " };
            write!(formatter, "{comma}element {position}")?;
        }
        let colon = if self.path.is_empty() { "" } else { ": " };
        write!(formatter, "{colon}{}", self.message)
    }
}

impl std::error::Error for Error {}

impl serde_core::ser::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl serde_core::de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
