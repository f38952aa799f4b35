//! What two ordered sets have in common, and what not.

use crate::{OrderedIndex, OrderedSet};
use std::cmp::Ordering;
use std::iter::Peekable;

/// Which of two sets have a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    First,
    Second,
    Both,
}

/// The keys of two ascending sequences, ascending, each once.
struct Merged<A: Iterator, B: Iterator> {
    first: Peekable<A>,
    second: Peekable<B>,
}

impl<K: Ord, A: Iterator<Item = K>, B: Iterator<Item = K>> Iterator for Merged<A, B> {
    type Item = (In, K);

    fn next(&mut self) -> Option<(In, K)> {
        let order = match (self.first.peek(), self.second.peek()) {
            (Some(one), Some(other)) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => Some((In::First, self.first.next()?)),
            Ordering::Greater => Some((In::Second, self.second.next()?)),
            Ordering::Equal => {
                self.second.next();
                Some((In::Both, self.first.next()?))
            }
        }
    }
}

/// Operations on two sets. They read both sets from end to end, in batches as
/// [`iter`](Self::iter) does, and hold no lock in between: O(keys of both), with a copy of each
/// key. A key that another thread inserts or removes meanwhile may be taken for present or absent.
impl<K: Ord + Clone, E: OrderedIndex<K, ()>> OrderedSet<K, E> {
    /// The keys that are where `wanted` says.
    fn found<'a, F: OrderedIndex<K, ()>>(
        &'a self,
        other: &'a OrderedSet<K, F>,
        wanted: impl Fn(In) -> bool,
    ) -> impl Iterator<Item = K> {
        let merged = Merged {
            first: self.iter().peekable(),
            second: other.iter().peekable(),
        };
        merged.filter_map(move |(place, key)| wanted(place).then_some(key))
    }

    /// The keys that are in this set, in the other, or in both, ascending.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let (waders, divers) = (OrderedSet::from(["heron", "stilt"]), OrderedSet::from(["gannet"]));
    /// assert!(waders.union(&divers).eq(["gannet", "heron", "stilt"]));
    /// ```
    pub fn union<'a, F: OrderedIndex<K, ()>>(
        &'a self,
        other: &'a OrderedSet<K, F>,
    ) -> impl Iterator<Item = K> {
        self.found(other, |_| true)
    }

    /// The keys that are in both sets, ascending.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let (odd, prime) = (OrderedSet::from([1, 3, 5]), OrderedSet::from([2, 3, 5]));
    /// assert!(odd.intersection(&prime).eq([3, 5]));
    /// ```
    pub fn intersection<'a, F: OrderedIndex<K, ()>>(
        &'a self,
        other: &'a OrderedSet<K, F>,
    ) -> impl Iterator<Item = K> {
        self.found(other, |place| place == In::Both)
    }

    /// The keys that are in this set and not in the other, ascending.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let (odd, prime) = (OrderedSet::from([1, 3, 5]), OrderedSet::from([2, 3, 5]));
    /// assert!(odd.difference(&prime).eq([1]));
    /// ```
    pub fn difference<'a, F: OrderedIndex<K, ()>>(
        &'a self,
        other: &'a OrderedSet<K, F>,
    ) -> impl Iterator<Item = K> {
        self.found(other, |place| place == In::First)
    }

    /// The keys that are in one of the two sets and not in both, ascending.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let (odd, prime) = (OrderedSet::from([1, 3, 5]), OrderedSet::from([2, 3, 5]));
    /// assert!(odd.symmetric_difference(&prime).eq([1, 2]));
    /// ```
    pub fn symmetric_difference<'a, F: OrderedIndex<K, ()>>(
        &'a self,
        other: &'a OrderedSet<K, F>,
    ) -> impl Iterator<Item = K> {
        self.found(other, |place| place != In::Both)
    }

    /// Whether each key of this set is in the other.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let (odd, digits) = (OrderedSet::from([1, 3, 5]), (0..10).collect::<OrderedSet<_>>());
    /// assert!(odd.is_subset(&digits) && digits.is_superset(&odd));
    /// assert!(!odd.is_superset(&digits));
    /// ```
    pub fn is_subset<F: OrderedIndex<K, ()>>(&self, other: &OrderedSet<K, F>) -> bool {
        self.difference(other).next().is_none()
    }

    /// Whether each key of the other set is in this one.
    pub fn is_superset<F: OrderedIndex<K, ()>>(&self, other: &OrderedSet<K, F>) -> bool {
        other.is_subset(self)
    }

    /// Whether no key is in both sets.
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// assert!(OrderedSet::from([1, 3]).is_disjoint(&OrderedSet::from([2, 4])));
    /// ```
    pub fn is_disjoint<F: OrderedIndex<K, ()>>(&self, other: &OrderedSet<K, F>) -> bool {
        self.intersection(other).next().is_none()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::Engine;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Some keys, of so few that two sets often have one in common; more than a batch of a scan.
    fn keys() -> impl Strategy<Value = BTreeSet<u16>> {
        prop_oneof![
            proptest::collection::btree_set(0_u16..30, 0..20),
            proptest::collection::btree_set(0_u16..3000, 0..1500),
        ]
    }

    proptest! {
        #[test]
        fn they_are_those_of_the_standard_library(one in keys(), other in keys()) {
            let set: OrderedSet<u16> = one.iter().copied().collect();
            let second = OrderedSet::with_engine(Engine::BTree);
            other.iter().for_each(|key| assert!(second.insert(*key)));
            prop_assert!(set.union(&second).eq(one.union(&other).copied()));
            prop_assert!(set.intersection(&second).eq(one.intersection(&other).copied()));
            prop_assert!(set.difference(&second).eq(one.difference(&other).copied()));
            prop_assert!(
                set.symmetric_difference(&second).eq(one.symmetric_difference(&other).copied())
            );
            prop_assert_eq!(set.is_subset(&second), one.is_subset(&other));
            prop_assert_eq!(set.is_superset(&second), one.is_superset(&other));
            prop_assert_eq!(set.is_disjoint(&second), one.is_disjoint(&other));
        }
    }
}
