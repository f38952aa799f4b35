//! The greatest size and depth of terms that are kept.

use super::extent::Extent;
use super::external::{MOST_A_BYTE, is_longer};
use super::{Term, Tuple};
use thiserror::Error;

/// Bounds of the terms that a node's tables keep, and of those that match specifications make. A
/// few short operations can share parts of a term so often that its text would not fit into any
/// memory; a bounded term takes bounded time to compare, to print and to send.
///
/// ```
/// use tremula_table::{Options, Tables, Term, term::Bounds};
///
/// let bounds = Bounds { bytes: 1000, depth: 3 };
/// let table = Tables::bounded(bounds).create("t", Options::new())?;
/// assert_eq!(
///     table.insert("{key, {{{}}, {{a}}}}".parse().unwrap()).unwrap_err().to_string(),
///     "insert, argument 2: terms are nested 4 deep; the limit is 3"
/// );
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most [bytes](Term::heap_bytes) of a term; shared parts count in full. What a
    /// table [with a log](crate::Tables::for_log) keeps has no more in the external term format
    /// either, where each atom is written out.
    pub bytes: usize,
    /// The greatest [depth](Term::depth) of a term.
    pub depth: usize,
}

impl Bounds {
    /// No bounds, as in Erlang: the default of a node.
    pub const NONE: Self = Self {
        bytes: usize::MAX,
        depth: usize::MAX,
    };

    /// How many bytes a match specification may compare and copy for one row: as many as a few
    /// comparisons of the largest terms.
    pub(crate) const fn work(self) -> usize {
        self.bytes.saturating_mul(4)
    }

    /// Refuses a term beyond the bounds. Takes constant time.
    ///
    /// # Errors
    ///
    /// The term is larger, or nested deeper.
    #[inline]
    pub fn check(&self, term: &Term) -> Result<(), OutOfBounds> {
        self.check_extent(term.extent())
    }

    #[inline]
    pub(crate) fn check_row(&self, row: &Tuple) -> Result<(), OutOfBounds> {
        self.check_extent(row.extent())
    }

    /// Refuses a term whose external form is too long for the log of a table. Takes constant time
    /// for terms of up to a hundredth of the bound; O(n) for larger ones, shared parts in full.
    pub(crate) fn check_written(&self, term: &Term) -> Result<(), OutOfBounds> {
        if !self.has_room(term.extent()) && is_longer(term, self.bytes) {
            return Err(OutOfBounds::External { limit: self.bytes });
        }
        Ok(())
    }

    /// As [`check_written`](Self::check_written), of a row.
    #[inline]
    pub(crate) fn check_written_row(&self, row: &Tuple) -> Result<(), OutOfBounds> {
        if self.has_room(row.extent()) {
            return Ok(());
        }
        self.check_written(&Term::Tuple(row.clone()))
    }

    /// Whether the external form is short enough, whatever the term is.
    #[inline]
    const fn has_room(&self, extent: Extent) -> bool {
        extent.bytes().saturating_mul(MOST_A_BYTE) <= self.bytes as u64
    }

    #[inline]
    fn check_extent(&self, extent: Extent) -> Result<(), OutOfBounds> {
        if extent.bytes() > self.bytes as u64 {
            return Err(OutOfBounds::Bytes {
                bytes: extent.bytes(),
                limit: self.bytes,
            });
        }
        if extent.depth() > self.depth as u64 {
            return Err(OutOfBounds::Depth {
                depth: extent.depth(),
                limit: self.depth,
            });
        }
        Ok(())
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::NONE
    }
}

/// A term beyond the [`Bounds`], or the work of a match specification.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OutOfBounds {
    /// The term is too large.
    #[error("a term of {bytes} bytes, with shared parts counted in full; the limit is {limit}")]
    Bytes {
        /// Its size.
        bytes: u64,
        /// The greatest size.
        limit: usize,
    },
    /// The external form of what is to be kept is too long.
    #[error(
        "a term of more than {limit} bytes in the external term format, where each atom is written out; the limit is {limit}"
    )]
    External {
        /// The most bytes.
        limit: usize,
    },
    /// The term is nested too deep.
    #[error("terms are nested {depth} deep; the limit is {limit}")]
    Depth {
        /// Its depth.
        depth: u64,
        /// The greatest depth.
        limit: usize,
    },
    /// A match specification compares and copies too much for one row.
    #[error("the match specification compares and copies more than {limit} bytes for one row")]
    Work {
        /// The most bytes for a row.
        limit: usize,
    },
}
