//! Compares inner terms.

use super::super::{Elements, Kind, List, Map, Term};
use super::{Numbers, shallow};
use std::cmp::Ordering;

/// Pairs of terms to compare, in order.
pub(super) struct Frame<'a> {
    pairs: Pairs<'a>,
    numbers: Numbers,
}

enum Pairs<'a> {
    /// Two tuples of the same size.
    Elements(&'a [Term], &'a [Term]),
    List(Elements<'a>, Elements<'a>),
    /// Two maps of the same size: the entries whose keys are left to compare, and all entries.
    Keys(&'a [(Term, Term)], &'a [(Term, Term)], &'a Map, &'a Map),
    Values(&'a [(Term, Term)], &'a [(Term, Term)]),
}

/// The next step of a comparison.
enum Next<'a> {
    Compare(&'a Term, &'a Term, Numbers),
    Decided(Ordering),
    Nothing,
}

impl<'a> Frame<'a> {
    pub(super) fn elements(one: &'a [Term], two: &'a [Term], numbers: Numbers) -> Self {
        let pairs = Pairs::Elements(one, two);
        Self { pairs, numbers }
    }

    pub(super) fn list(one: &'a List, two: &'a List, numbers: Numbers) -> Self {
        let pairs = Pairs::List(one.iter(), two.iter());
        Self { pairs, numbers }
    }

    pub(super) fn map(one: &'a Map, two: &'a Map, numbers: Numbers) -> Self {
        let pairs = Pairs::Keys(one.entries(), two.entries(), one, two);
        Self { pairs, numbers }
    }

    /// Whether no pair is left, as far as can be seen without a search.
    fn is_done(&self) -> bool {
        match &self.pairs {
            Pairs::Elements(one, _) => one.is_empty(),
            Pairs::Values(one, _) => one.is_empty(),
            Pairs::List(one, two) => one.is_over() && two.is_over(),
            Pairs::Keys(..) => false,
        }
    }

    #[inline]
    fn next(&mut self) -> Next<'a> {
        match &mut self.pairs {
            Pairs::Elements(one, two) => match (one.split_first(), two.split_first()) {
                (Some((first, rest)), Some((second, other_rest))) => {
                    (*one, *two) = (rest, other_rest);
                    Next::Compare(first, second, self.numbers)
                }
                _ => Next::Nothing,
            },
            Pairs::List(one, two) => {
                if one.is_same(two) {
                    return Next::Nothing;
                }
                match (one.next(), two.next()) {
                    (Some(first), Some(second)) => Next::Compare(first, second, self.numbers),
                    // Compares a non-empty rest with the tail of the other list: `[]` or an
                    // improper one.
                    (Some(_), None) => Next::Decided(Kind::List.cmp(&two.tail().kind())),
                    (None, Some(_)) => Next::Decided(one.tail().kind().cmp(&Kind::List)),
                    (None, None) => {
                        let (one, two) = (one.tail(), two.tail());
                        self.pairs = Pairs::Elements(&[], &[]);
                        Next::Compare(one, two, self.numbers)
                    }
                }
            }
            Pairs::Keys(one, two, all, others) => match (one.split_first(), two.split_first()) {
                (Some(((key, _), rest)), Some(((other, _), other_rest))) => {
                    (*one, *two) = (rest, other_rest);
                    Next::Compare(key, other, Numbers::ByType)
                }
                _ => {
                    self.pairs = Pairs::Values(all.entries(), others.entries());
                    self.next()
                }
            },
            Pairs::Values(one, two) => match (one.split_first(), two.split_first()) {
                (Some(((_, value), rest)), Some(((_, other), other_rest))) => {
                    (*one, *two) = (rest, other_rest);
                    Next::Compare(value, other, self.numbers)
                }
                _ => Next::Nothing,
            },
        }
    }
}

/// Compares the pairs of a frame and their inner terms, depth first.
pub(super) fn compare(first: Frame<'_>) -> Ordering {
    let mut frame = first;
    // The frames around `frame`, without those that had no pair left.
    let mut outer = Vec::new();
    loop {
        match frame.next() {
            Next::Compare(one, two, numbers) => match shallow(one, two, numbers) {
                Ok(Ordering::Equal) => {}
                Ok(ordering) => return ordering,
                Err(inner) => {
                    let left = std::mem::replace(&mut frame, inner);
                    if !left.is_done() {
                        outer.push(left);
                    }
                }
            },
            Next::Decided(ordering) => return ordering,
            Next::Nothing => match outer.pop() {
                Some(left) => frame = left,
                None => return Ordering::Equal,
            },
        }
    }
}
