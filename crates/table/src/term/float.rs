//! Finite floats; Erlang has no others.

use super::Term;
use super::order::{Whole, whole};
use std::fmt;
use thiserror::Error;

/// A finite float. Erlang has neither infinities nor a NaN, so floats are totally ordered.
///
/// `-0.0` keeps its sign in both written forms, and equals `0.0` in every comparison and hash. Up
/// to OTP 26 `0.0 =:= -0.0` is true, and this crate is tested against such an Erlang. (From OTP 27
/// on the two differ under `=:=`.)
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Float(f64);

/// A float that is no term.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("{0} is no float that a term can hold: it is not finite")]
pub struct NotFinite(pub f64);

impl Float {
    /// The float, if it is finite.
    ///
    /// # Errors
    ///
    /// It is infinite or not a number.
    pub const fn new(value: f64) -> Result<Self, NotFinite> {
        if value.is_finite() {
            Ok(Self(value))
        } else {
            Err(NotFinite(value))
        }
    }

    /// The value.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// The integer that equals it exactly, if there is one.
    ///
    /// ```
    /// use tremula_table::{Term, term::Float};
    ///
    /// assert_eq!(Float::new(2.0)?.to_integer().unwrap().to_string(), "2");
    /// assert!(Float::new(2.5)?.to_integer().is_none());
    /// # Ok::<(), tremula_table::term::NotFinite>(())
    /// ```
    #[must_use]
    pub fn to_integer(self) -> Option<Term> {
        whole(self.0).map(|whole| match whole {
            Whole::Small(value) => Term::Integer(value),
            Whole::Big(value) => Term::from(value),
        })
    }
}

impl TryFrom<f64> for Float {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        Self::new(value)
    }
}

impl TryFrom<f64> for Term {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        Float::new(value).map(Self::Float)
    }
}

/// Erlang's text: the fewest digits that read back as the same float.
impl fmt::Display for Float {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::text::write_float(*self, formatter)
    }
}
