//! Tuples.

use super::extent::{Extent, Shared, share};
use super::{Term, reclaim};
use std::ops::Deref;
use tremula_index::kit::prefetch;

/// A fixed number of terms. Dereferences to the slice of its elements; clones share them. Compares
/// and hashes as the term does, and prints in Erlang's syntax.
///
/// ```
/// use tremula_table::term::Tuple;
///
/// let row = Tuple::from((42, "a value"));
/// assert_eq!(row.len(), 2);
/// assert_eq!(row[0], 42);
/// assert_eq!(row, (42, "a value"));
/// assert_eq!(format!("{row:?}"), "{42,<<\"a value\">>}");
/// let (number, text): (i64, String) = row.try_into()?;
/// # Ok::<(), tremula_table::term::UnexpectedTerm>(())
/// ```
#[derive(Clone, Default)]
pub struct Tuple(
    /// `None` if it has no elements.
    TupleWord,
);

/// What a tuple is as a Rust value.
pub(crate) type TupleWord = Option<Shared<(), Term>>;

impl Tuple {
    /// A tuple of these elements.
    pub fn new<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = Term, IntoIter: ExactSizeIterator>,
    {
        let elements = elements.into_iter();
        let some = elements.len() > 0;
        Self(some.then(|| share((), elements)))
    }

    /// The elements.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> &[Term] {
        self.0.as_ref().map_or(&[], |elements| &elements.slice)
    }

    /// The whole of it.
    #[inline]
    pub(crate) const fn word(&self) -> &TupleWord {
        &self.0
    }

    /// Asks for the memory of the first elements, and of all that stands before them.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(elements) = &self.0 {
            // Three elements and the header take 72 bytes, wherever in a line they begin.
            let start = elements.heap_ptr();
            prefetch(start);
            prefetch(start.wrapping_byte_add(56));
        }
    }

    pub(crate) fn extent(&self) -> Extent {
        let header = self.0.as_ref().map(|elements| &elements.header.header);
        header.map_or(Extent::default(), |header| header.extent)
    }
}

impl Deref for Tuple {
    type Target = [Term];

    #[inline]
    fn deref(&self) -> &[Term] {
        self.elements()
    }
}

impl Drop for Tuple {
    #[inline]
    fn drop(&mut self) {
        if let Some(elements) = self.0.take() {
            reclaim::release(elements, |elements| Term::Tuple(Self(Some(elements))));
        }
    }
}
