//! Operations that look for borrowed forms of keys.

use super::OrderedMap;
use crate::contract::{Direction, KeyRange};
use crate::form::{FormOf, KeyForm, Sought};
use crate::{OrderedIndex, Update};
use std::ops::{Bound, Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys whose bounds are borrowed forms: `"a".."m"`, say, or a pair of [`Bound`]s.
pub trait FormRange<'q, Q: ?Sized> {
    /// The two bounds.
    fn bounds(self) -> (Bound<&'q Q>, Bound<&'q Q>);
}

macro_rules! form_range {
    ($($Range:ty, $range:pat => $bounds:expr;)*) => { $(
        impl<'q, Q: ?Sized> FormRange<'q, Q> for $Range {
            fn bounds(self) -> (Bound<&'q Q>, Bound<&'q Q>) {
                let $range = self;
                $bounds
            }
        }
    )* };
}

form_range! {
    (Bound<&'q Q>, Bound<&'q Q>), bounds => bounds;
    Range<&'q Q>, range => (Bound::Included(range.start), Bound::Excluded(range.end));
    RangeInclusive<&'q Q>, range => {
        let (low, high) = range.into_inner();
        (Bound::Included(low), Bound::Included(high))
    };
    RangeFrom<&'q Q>, range => (Bound::Included(range.start), Bound::Unbounded);
    RangeTo<&'q Q>, range => (Bound::Unbounded, Bound::Excluded(range.end));
    RangeToInclusive<&'q Q>, range => (Bound::Unbounded, Bound::Included(range.end));
}

/// Calls `work` with a key that is looked for.
#[inline]
fn with_sought<K, Q: KeyForm<K> + ?Sized, R>(key: &Q, work: impl FnOnce(Sought<'_, K>) -> R) -> R {
    match key.as_key() {
        Some(key) => work(Sought::Key(key)),
        None => work(Sought::Form(&FormOf(key))),
    }
}

fn with_bound<K, Q: KeyForm<K> + ?Sized, R>(
    bound: Bound<&Q>,
    work: impl FnOnce(Bound<Sought<'_, K>>) -> R,
) -> R {
    match bound {
        Bound::Included(key) => with_sought(key, |key| work(Bound::Included(key))),
        Bound::Excluded(key) => with_sought(key, |key| work(Bound::Excluded(key))),
        Bound::Unbounded => work(Bound::Unbounded),
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> OrderedMap<K, V, E> {
    /// The first entry in this direction beyond `key`, or at it if `inclusive`.
    pub(super) fn nearest<Q: KeyForm<K> + ?Sized>(
        &self,
        key: &Q,
        inclusive: bool,
        direction: Direction,
    ) -> Option<(K, V)> {
        let mut nearest = Vec::with_capacity(1);
        with_sought(key, |key| {
            let bound = if inclusive {
                Bound::Included(key)
            } else {
                Bound::Excluded(key)
            };
            let range = match direction {
                Direction::Ascending => KeyRange::between(bound, Bound::Unbounded),
                Direction::Descending => KeyRange::between(Bound::Unbounded, bound),
            };
            self.engine.scan(range, direction, 1, &mut nearest);
        });
        nearest.pop()
    }

    /// The key that is stored for a borrowed form.
    pub(super) fn stored_key<Q: KeyForm<K> + ?Sized>(&self, form: &Q) -> Option<K> {
        let (key, _) = self.nearest(form, true, Direction::Ascending)?;
        form.equivalent(&key).then_some(key)
    }

    /// Does what [`update`](Self::update) does, and makes the key from a borrowed form.
    ///
    /// ```
    /// use tremula_index::{OrderedMap, Update};
    ///
    /// let words: OrderedMap<String, u32> = OrderedMap::new();
    /// for word in ["tree", "leaf", "tree"] {
    ///     words.update_by(word, |count| Update::Put(count.copied().unwrap_or(0) + 1));
    /// }
    /// assert_eq!(words.get("tree"), Some(2));
    /// ```
    pub fn update_by<'q, Q>(
        &self,
        key: &'q Q,
        decide: impl FnOnce(Option<&V>) -> Update<V>,
    ) -> Option<V>
    where
        Q: KeyForm<K> + ?Sized,
        K: From<&'q Q>,
    {
        self.update(K::from(key), decide)
    }

    /// Does what [`get_or_insert_with`](Self::get_or_insert_with) does, and makes the key from a
    /// borrowed form if the key is absent.
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<String, usize> = [("oak".to_owned(), 7)].into();
    /// assert_eq!(map.get_or_insert_by("oak", || unreachable!()), 7); // allocates nothing
    /// assert_eq!(map.get_or_insert_by("elm", || 3), 3);
    /// ```
    pub fn get_or_insert_by<'q, Q>(&self, key: &'q Q, make: impl FnOnce() -> V) -> V
    where
        Q: KeyForm<K> + ?Sized,
        K: From<&'q Q>,
    {
        match self.get(key) {
            Some(value) => value,
            None => self.get_or_insert_with(K::from(key), make),
        }
    }

    /// For each of `keys` in turn, a copy of its value or `None`, as [`get`](Self::get) returns it.
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<String, usize> = [("oak".to_owned(), 7)].into();
    /// assert_eq!(map.get_many_by(["elm", "oak"]), [None, Some(7)]);
    /// ```
    pub fn get_many_by<'q, Q: KeyForm<K> + ?Sized + 'q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Vec<Option<V>> {
        keys.into_iter().map(|key| self.get(key)).collect()
    }

    /// The entries between two borrowed forms, as [`range`](Self::range) returns them. Takes two
    /// lookups more, one for each bound.
    ///
    /// ```
    /// let trees: tremula_index::OrderedMap<String, usize> =
    ///     ["ash", "elm", "fir", "oak"].map(|tree| (tree.to_owned(), tree.len())).into();
    /// let some: Vec<_> = trees.range_by("b".."g").map(|(tree, _)| tree).collect();
    /// assert_eq!(some, ["elm", "fir"]);
    /// ```
    pub fn range_by<'q, Q: KeyForm<K> + ?Sized + 'q>(
        &self,
        range: impl FormRange<'q, Q>,
    ) -> impl DoubleEndedIterator<Item = (K, V)> {
        let (low, high) = range.bounds();
        // A range keeps its bounds, so they are stored keys: those next to the forms. What other
        // threads insert between such a key and the form does not belong to the range.
        let outside = |bound, direction| match bound {
            Bound::Included(form) | Bound::Excluded(form) => self
                .nearest(form, false, direction)
                .map_or(Bound::Unbounded, |(key, _)| Bound::Excluded(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let bounds = (
            outside(low, Direction::Descending),
            outside(high, Direction::Ascending),
        );
        self.range(bounds)
            .filter(move |(key, _)| contains(low, high, key))
    }

    /// The first `limit` entries between two borrowed forms in this direction, as of one moment if
    /// the engine promises it ([`Scans::OneMoment`](crate::Scans::OneMoment)).
    ///
    /// ```
    /// use tremula_index::{Direction, OrderedMap};
    ///
    /// let trees: OrderedMap<String, usize> =
    ///     ["ash", "elm", "fir", "oak"].map(|tree| (tree.to_owned(), tree.len())).into();
    /// let last = trees.scan_by("b".., Direction::Descending, 2);
    /// assert_eq!(last, [("oak".to_owned(), 3), ("fir".to_owned(), 3)]);
    /// ```
    pub fn scan_by<'q, Q: KeyForm<K> + ?Sized + 'q>(
        &self,
        range: impl FormRange<'q, Q>,
        direction: Direction,
        limit: usize,
    ) -> Vec<(K, V)> {
        let mut entries = Vec::new();
        let (low, high) = range.bounds();
        // Forms cannot be compared with each other. If a key lies between them, their order is
        // right; if not, there is nothing to return.
        let (Bound::Included(form) | Bound::Excluded(form)) = low else {
            with_bound(high, |high| {
                let range = KeyRange::between(Bound::Unbounded, high);
                self.engine.scan(range, direction, limit, &mut entries);
            });
            return entries;
        };
        let first = self.nearest(form, true, Direction::Ascending);
        if !first.is_some_and(|(key, _)| contains(Bound::Unbounded, high, &key)) {
            return entries;
        }
        with_bound(low, |low| {
            with_bound(high, |high| {
                let range = KeyRange::between(low, high);
                self.engine.scan(range, direction, limit, &mut entries);
            });
        });
        entries
    }
}

fn contains<K, Q: KeyForm<K> + ?Sized>(low: Bound<&Q>, high: Bound<&Q>, key: &K) -> bool {
    let above = match low {
        Bound::Included(low) => low.compare(key).is_le(),
        Bound::Excluded(low) => low.compare(key).is_lt(),
        Bound::Unbounded => true,
    };
    above
        && match high {
            Bound::Included(high) => high.compare(key).is_ge(),
            Bound::Excluded(high) => high.compare(key).is_gt(),
            Bound::Unbounded => true,
        }
}
