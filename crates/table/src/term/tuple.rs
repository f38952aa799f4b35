//! Tuples.

use super::{Term, reclaim};
use std::ops::Deref;
use triomphe::ThinArc;

/// A fixed number of terms. Dereferences to the slice of its elements; clones share them.
///
/// ```
/// use tremula_table::Term;
///
/// let Term::Tuple(row) = "{42, <<\"a value\">>}".parse()? else { panic!("a tuple") };
/// assert_eq!(row.len(), 2);
/// assert_eq!(row[0], Term::from(42));
/// # Ok::<(), tremula_table::term::ParseError>(())
/// ```
#[derive(Clone, Default)]
pub struct Tuple(
    /// `None` if it has no elements.
    Option<ThinArc<(), Term>>,
);

impl Tuple {
    /// A tuple of these elements.
    pub fn new<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = Term, IntoIter: ExactSizeIterator>,
    {
        let elements = elements.into_iter();
        let some = elements.len() > 0;
        Self(some.then(|| ThinArc::from_header_and_iter((), elements)))
    }

    /// The elements.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> &[Term] {
        self.0.as_ref().map_or(&[], |elements| &elements.slice)
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
