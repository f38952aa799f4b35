//! The beginnings of keys.
//!
//! The beginning of a term is a sequence of *pieces*, in order from left to right: the keys `{user,
//! {17, _}, _}` begin with a tuple of three, `user`, a tuple of two, `17`. Keys are compared in
//! this order, too, so all keys with a common beginning are contiguous.

use crate::term::{Atom, Elements, Term};
use std::cmp::Ordering;
use std::slice;

/// A part of the beginning of a key.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// A tuple of this size, whose elements follow.
    Tuple(usize),
    /// A list with an element, which follows, and then its rest.
    Pair,
    Term(Term),
}

/// How the keys of one beginning lie relative to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    Greater,
    Equal,
    /// The other beginning's keys are among these.
    Holds,
    /// These keys are among the other beginning's.
    Within,
}

impl From<Ordering> for Relation {
    fn from(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Less => Self::Less,
            Ordering::Equal => Self::Equal,
            Ordering::Greater => Self::Greater,
        }
    }
}

/// The next part of a beginning or a key.
enum Item<'a> {
    Tuple(usize),
    Pair,
    Term(&'a Term),
    /// A list that is not empty, or its final tail.
    Rest(Elements<'a>),
}

/// A beginning or a whole key, piece by piece. It opens a term where the other side has opened one.
pub(super) struct Stream<'a> {
    pieces: slice::Iter<'a, Piece>,
    /// The remaining parts of opened terms, the next one last. They come before the pieces.
    open: Vec<Item<'a>>,
}

impl<'a> Stream<'a> {
    pub(super) fn of_pieces(pieces: &'a [Piece]) -> Self {
        Self {
            pieces: pieces.iter(),
            open: Vec::new(),
        }
    }

    pub(super) fn of_term(term: &'a Term) -> Self {
        Self {
            pieces: [].iter(),
            open: vec![Item::Term(term)],
        }
    }

    fn next(&mut self) -> Option<Item<'a>> {
        match self.open.pop() {
            Some(Item::Rest(elements)) => Some(match elements.clone().next() {
                Some(_) => Item::Rest(elements),
                None => Item::Term(elements.tail()),
            }),
            Some(item) => Some(item),
            None => self.pieces.next().map(|piece| match piece {
                Piece::Tuple(size) => Item::Tuple(*size),
                Piece::Pair => Item::Pair,
                Piece::Term(term) => Item::Term(term),
            }),
        }
    }

    /// Opens a list that is known to have an element.
    fn enter_list(&mut self, mut elements: Elements<'a>) {
        if let Some(first) = elements.next() {
            self.open.push(Item::Rest(elements));
            self.open.push(Item::Term(first));
        }
    }
}

/// Compares two beginnings.
pub(super) fn compare(mut one: Stream<'_>, mut two: Stream<'_>) -> Relation {
    loop {
        let ordering = match (one.next(), two.next()) {
            (None, None) => return Relation::Equal,
            (None, Some(_)) => return Relation::Holds,
            (Some(_), None) => return Relation::Within,
            (Some(Item::Term(one)), Some(Item::Term(two))) => one.cmp(two),
            (Some(item @ (Item::Tuple(_) | Item::Pair)), Some(other)) => {
                opened(&item, other, &mut two)
            }
            (Some(item), Some(other @ (Item::Tuple(_) | Item::Pair))) => {
                opened(&other, item, &mut one).reverse()
            }
            (Some(Item::Rest(one)), Some(Item::Rest(two))) => one.to_term().cmp(&two.to_term()),
            (Some(Item::Rest(one)), Some(Item::Term(two))) => one.to_term().cmp(two),
            (Some(Item::Term(one)), Some(Item::Rest(two))) => one.cmp(&two.to_term()),
        };
        if ordering.is_ne() {
            return ordering.into();
        }
    }
}

/// Compares an opening of a beginning with an item of the other side, and opens that item if it is
/// of the same kind.
fn opened<'a>(item: &Item<'_>, other: Item<'a>, stream: &mut Stream<'a>) -> Ordering {
    match (item, other) {
        (Item::Tuple(size), Item::Tuple(other)) => size.cmp(&other),
        (Item::Tuple(size), Item::Term(Term::Tuple(tuple))) => {
            let ordering = size.cmp(&tuple.len());
            if ordering.is_eq() {
                stream.open.extend(tuple.iter().rev().map(Item::Term));
            }
            ordering
        }
        // Any tuple serves for comparison with another kind of term.
        (Item::Tuple(_), Item::Term(other)) => Term::tuple([]).cmp(other),
        (Item::Tuple(_), Item::Pair | Item::Rest(_)) => Ordering::Less,
        (_, Item::Pair) => Ordering::Equal,
        (_, Item::Rest(elements)) => {
            stream.enter_list(elements);
            Ordering::Equal
        }
        (_, Item::Term(Term::List(list))) if !list.is_empty() => {
            stream.enter_list(list.iter());
            Ordering::Equal
        }
        // Only bit strings are greater than a non-empty list.
        (_, Item::Term(Term::Bitstring(_))) => Ordering::Less,
        (_, Item::Term(_) | Item::Tuple(_)) => Ordering::Greater,
    }
}

/// The term that these pieces begin, with `'_'` for the missing parts.
pub(super) fn term_of(pieces: &[Piece]) -> Term {
    let mut parts = Vec::new();
    let next = |parts: &mut Vec<Term>| parts.pop().unwrap_or(Term::Atom(Atom::UNDERSCORE));
    for piece in pieces.iter().rev() {
        let term = match piece {
            Piece::Term(term) => term.clone(),
            Piece::Tuple(size) => {
                let elements: Vec<_> = (0..*size).map(|_| next(&mut parts)).collect();
                Term::tuple(elements)
            }
            Piece::Pair => {
                let first = next(&mut parts);
                Term::list_with_tail([first], next(&mut parts))
            }
        };
        parts.push(term);
    }
    next(&mut parts)
}
