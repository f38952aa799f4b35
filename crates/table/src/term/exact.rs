//! A term under `=:=`.

use super::Term;
use std::fmt;

/// A term whose `==`, order and hash are those of identity, Erlang's `=:=`: the key of a `set` or a
/// `bag`. Its order is the map order ([`Term::cmp_exact`]).
///
/// ```
/// use std::collections::HashMap;
/// use tremula_table::{Term, term::Exact};
///
/// let mut table = HashMap::new();
/// table.insert(Exact(Term::from(1)), "integer");
/// table.insert(Exact(Term::try_from(1.0)?), "float");
/// assert_eq!(table.len(), 2);
/// # Ok::<(), tremula_table::term::NotFinite>(())
/// ```
#[derive(Clone, Default)]
pub struct Exact(pub Term);

impl From<Term> for Exact {
    fn from(term: Term) -> Self {
        Self(term)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
