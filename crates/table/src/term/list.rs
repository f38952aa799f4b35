//! Lists, proper and improper.

use super::extent::{Extent, Shared, share};
use super::{Term, reclaim};
use std::fmt;
use std::slice;

/// A list: elements, and a tail, which is the empty list if the list is proper.
///
/// Erlang's lists are pairs of an element and the rest. Here consecutive elements are contiguous in
/// *chunks*; a chunk's tail is the next chunk or the end of the list. An element takes 16 bytes, as
/// in Erlang, but a chunk is a single allocation, and there is no pointer to follow from one
/// element to the next. The division into chunks affects only speed. The disadvantage is that
/// taking the [rest](Self::rest) of a list copies its first chunk.
#[derive(Clone, Default)]
pub struct List(
    /// A chunk's elements, at least one, with its tail as the header; `None` for the empty list.
    Option<Shared<Term, Term>>,
);

/// The end of every proper list.
static NIL: Term = Term::NIL;

impl List {
    /// The empty list, `[]`.
    pub const EMPTY: Self = Self(None);

    /// A proper list of these elements.
    pub fn new<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = Term, IntoIter: ExactSizeIterator>,
    {
        let elements = elements.into_iter();
        let some = elements.len() > 0;
        Self(some.then(|| share(Term::NIL, elements)))
    }

    /// Whether it is `[]`.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The first element.
    #[must_use]
    pub fn first(&self) -> Option<&Term> {
        self.chunk().0.first()
    }

    /// The list without its first element; `None` for the empty list. Takes time in proportion to
    /// the first chunk, which is the whole list if it was made at once.
    #[must_use]
    pub fn rest(&self) -> Option<Term> {
        let (elements, tail) = self.chunk();
        let (_, rest) = elements.split_first()?;
        Some(Term::list_with_tail(rest.iter().cloned(), tail.clone()))
    }

    /// The elements; at its end the iterator has the tail.
    #[must_use]
    pub fn iter(&self) -> Elements<'_> {
        let (elements, tail) = self.chunk();
        Elements {
            chunk: elements.iter(),
            tail,
        }
    }

    /// The number of elements of a proper list, as `length/1`. Takes time in proportion to the
    /// number of chunks.
    #[must_use]
    pub fn proper_len(&self) -> Option<usize> {
        let (length, tail) = self.iter().remaining();
        tail.is_nil().then_some(length)
    }

    /// Whether its tail is the empty list.
    #[must_use]
    pub fn is_proper(&self) -> bool {
        self.proper_len().is_some()
    }

    /// The first chunk's elements, and its tail.
    #[inline]
    pub(super) fn chunk(&self) -> (&[Term], &Term) {
        match &self.0 {
            Some(chunk) => (&chunk.slice, &chunk.header.header.more),
            None => (&[], &NIL),
        }
    }

    pub(super) fn extent(&self) -> Extent {
        let header = self.0.as_ref().map(|chunk| &chunk.header.header);
        header.map_or(Extent::default(), |header| header.extent)
    }
}

impl Term {
    /// A list of these elements that ends in `tail`; `tail` itself if there are no elements.
    pub fn list_with_tail<I>(elements: I, tail: Self) -> Self
    where
        I: IntoIterator<Item = Self, IntoIter: ExactSizeIterator>,
    {
        let elements = elements.into_iter();
        if elements.len() == 0 {
            return tail;
        }
        Self::List(List(Some(share(tail, elements))))
    }
}

impl<'a> IntoIterator for &'a List {
    type Item = &'a Term;
    type IntoIter = Elements<'a>;

    fn into_iter(self) -> Elements<'a> {
        self.iter()
    }
}

impl Drop for List {
    #[inline]
    fn drop(&mut self) {
        if let Some(chunk) = self.0.take() {
            reclaim::release(chunk, |chunk| Term::List(Self(Some(chunk))));
        }
    }
}

/// The elements of a list, from [`List::iter`].
#[derive(Clone)]
pub struct Elements<'a> {
    chunk: slice::Iter<'a, Term>,
    /// The chunk's tail; when the iterator has ended, the list's tail.
    tail: &'a Term,
}

impl<'a> Elements<'a> {
    /// The list's tail, once all elements have been taken: `[]` if the list is proper.
    #[must_use]
    pub const fn tail(&self) -> &'a Term {
        self.tail
    }

    /// The remaining elements as a list, or the list's tail if no element is left. Copies the rest
    /// of one chunk.
    #[must_use]
    pub fn to_term(&self) -> Term {
        Term::list_with_tail(self.chunk.as_slice().iter().cloned(), self.tail.clone())
    }

    /// Whether both iterators have the same elements in memory, which need no comparison.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (self.chunk.as_slice(), other.chunk.as_slice());
        std::ptr::eq(one, two) && !one.is_empty()
    }

    /// How many elements are left, and the list's tail.
    pub(crate) fn remaining(mut self) -> (usize, &'a Term) {
        let mut count = self.chunk.len();
        while self.enter_tail() {
            count += self.chunk.len();
        }
        (count, self.tail)
    }

    /// Whether only the end of a proper list is left.
    pub(super) fn is_over(&self) -> bool {
        self.chunk.as_slice().is_empty() && self.tail.is_nil()
    }

    /// Moves to the next chunk; `false` at the end of the list.
    fn enter_tail(&mut self) -> bool {
        match self.tail {
            Term::List(list) if !list.is_empty() => {
                *self = list.iter();
                true
            }
            _ => false,
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a Term;

    #[inline]
    fn next(&mut self) -> Option<&'a Term> {
        match self.chunk.next() {
            Some(element) => Some(element),
            None if self.enter_tail() => self.chunk.next(),
            None => None,
        }
    }
}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(of: std::ops::Range<i64>) -> Vec<Term> {
        of.map(Term::from).collect()
    }

    #[test]
    fn chunks_show_nowhere() {
        let whole = Term::list(numbers(0..6));
        let tail = Term::list_with_tail(numbers(4..6), Term::NIL);
        let cut = Term::list_with_tail(numbers(0..1), Term::list_with_tail(numbers(1..4), tail));
        assert_eq!(whole, cut);
        assert_eq!(whole.to_string(), cut.to_string());
        let (Term::List(whole), Term::List(cut)) = (whole, cut) else {
            panic!("lists")
        };
        assert_eq!(whole.proper_len(), Some(6));
        assert_eq!(cut.proper_len(), Some(6));
        assert_eq!(whole.rest(), cut.rest());
        assert_eq!(cut.first(), Some(&Term::from(0)));
        assert_eq!(cut.iter().count(), 6);
    }

    #[test]
    fn the_tail_of_an_improper_list_is_found() {
        let list = Term::list_with_tail(
            numbers(0..2),
            Term::list_with_tail(numbers(2..3), Term::from(9)),
        );
        let Term::List(list) = list else {
            panic!("a list")
        };
        assert!(!list.is_proper());
        let mut elements = list.iter();
        assert_eq!(elements.by_ref().count(), 3);
        assert_eq!(elements.tail(), &Term::from(9));
    }

    #[test]
    fn a_list_without_elements_is_its_tail() {
        assert!(Term::list([]).is_nil());
        assert_eq!(Term::list_with_tail([], Term::from(1)), Term::from(1));
        assert_eq!(List::EMPTY.proper_len(), Some(0));
        assert!(List::EMPTY.rest().is_none());
    }
}
