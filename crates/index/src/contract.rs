//! The types in which ordered indexes speak, and the trait that engines implement.

use crate::form::{Form, Sought, sought};
use crate::snapshot::{NOT_BEGUN_HERE, SnapshotCursor};
use crate::transactional::Transactional;
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::ptr;

/// What an index can keep, as a key (if it is also `Ord`) or a value: anything that can be cloned,
/// and that any thread may share and drop at any time.
pub trait Storable: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> Storable for T {}

/// What the closure of an `update` decides to do with the entry that it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update<V> {
    /// Store this value under the key, whether or not it was present.
    Put(V),
    /// Leave the entry (or its absence) as it is.
    Keep,
    /// Remove the entry, if there is one.
    Remove,
}

/// The order in which a scan visits keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the smallest key to the largest.
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

impl Direction {
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::Ascending => Self::Descending,
            Self::Descending => Self::Ascending,
        }
    }
}

/// A range of keys: a lower and an upper bound, each inclusive, exclusive or open.
///
/// A range whose lower bound lies above its upper bound is empty; no method panics on it.
#[derive(Debug)]
pub struct KeyRange<'a, K> {
    #[doc(hidden)]
    pub low: Bound<Sought<'a, K>>,
    #[doc(hidden)]
    pub high: Bound<Sought<'a, K>>,
}

impl<K> Clone for KeyRange<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for KeyRange<'_, K> {}

impl<'a, K> KeyRange<'a, K> {
    /// Every key.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        }
    }

    /// The range between two bounds.
    #[must_use]
    #[inline]
    pub const fn new(low: Bound<&'a K>, high: Bound<&'a K>) -> Self {
        Self {
            low: sought(low),
            high: sought(high),
        }
    }

    /// One key.
    #[must_use]
    #[inline]
    pub const fn only(key: &'a K) -> Self {
        Self::new(Bound::Included(key), Bound::Included(key))
    }

    /// The key, if this is the range of [`only`](Self::only) one.
    #[inline]
    pub(crate) fn only_key(&self) -> Option<&'a K> {
        match (self.low, self.high) {
            (Bound::Included(Sought::Key(low)), Bound::Included(Sought::Key(high))) => {
                ptr::eq(low, high).then_some(low)
            }
            _ => None,
        }
    }

    /// The range between two bounds that may be borrowed forms.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn between(low: Bound<Sought<'a, K>>, high: Bound<Sought<'a, K>>) -> Self {
        Self { low, high }
    }

    /// The part of the range behind `key` in this direction.
    #[must_use]
    pub const fn behind(self, key: &'a K, direction: Direction) -> Self {
        let behind = Bound::Excluded(Sought::Key(key));
        match direction {
            Direction::Ascending => Self::between(behind, self.high),
            Direction::Descending => Self::between(self.low, behind),
        }
    }

    /// Whether `key` lies at or above the lower bound.
    #[must_use]
    pub fn starts_before(&self, key: &K) -> bool
    where
        K: Ord,
    {
        match self.low {
            Bound::Included(low) => low.compare(key).is_le(),
            Bound::Excluded(low) => low.compare(key).is_lt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether `key` lies at or below the upper bound.
    #[must_use]
    pub fn ends_after(&self, key: &K) -> bool
    where
        K: Ord,
    {
        match self.high {
            Bound::Included(high) => high.compare(key).is_ge(),
            Bound::Excluded(high) => high.compare(key).is_gt(),
            Bound::Unbounded => true,
        }
    }

    /// Whether the range continues beyond a boundary between two nodes; the boundary key belongs to
    /// the right one.
    pub(crate) fn goes_beyond(&self, boundary: &K, direction: Direction) -> bool
    where
        K: Ord,
    {
        match direction {
            Direction::Ascending => self.ends_after(boundary),
            // Keys below the boundary are in the range if the range begins below the boundary.
            Direction::Descending => match self.low {
                Bound::Included(low) | Bound::Excluded(low) => low.compare(boundary).is_lt(),
                Bound::Unbounded => true,
            },
        }
    }

    /// Copies of the bounds, which are keys.
    pub(crate) fn to_keys(self) -> (Bound<K>, Bound<K>)
    where
        K: Clone,
    {
        let copy = |bound: Bound<Sought<'_, K>>| bound.map(|sought| sought.key().clone());
        (copy(self.low), copy(self.high))
    }

    /// Whether no bound is a borrowed form, so that [`to_keys`](Self::to_keys) can copy them.
    pub(crate) const fn is_of_keys(&self) -> bool {
        const fn is_form<K>(bound: &Bound<Sought<'_, K>>) -> bool {
            matches!(
                bound,
                Bound::Included(Sought::Form(_)) | Bound::Excluded(Sought::Form(_))
            )
        }
        !is_form(&self.low) && !is_form(&self.high)
    }

    /// Whether a key that is looked for lies inside the range, of which no bound is a form.
    pub(crate) fn has(&self, sought: Sought<'_, K>) -> bool
    where
        K: Ord,
    {
        let above = match self.low {
            Bound::Included(low) => sought.compare(low.key()).is_ge(),
            Bound::Excluded(low) => sought.compare(low.key()).is_gt(),
            Bound::Unbounded => true,
        };
        above
            && match self.high {
                Bound::Included(high) => sought.compare(high.key()).is_le(),
                Bound::Excluded(high) => sought.compare(high.key()).is_lt(),
                Bound::Unbounded => true,
            }
    }

    /// The bounds that are borrowed forms.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &'a dyn Form<K>> {
        [self.low, self.high]
            .into_iter()
            .filter_map(|bound| match bound {
                Bound::Included(Sought::Form(form)) | Bound::Excluded(Sought::Form(form)) => {
                    Some(form)
                }
                _ => None,
            })
    }

    /// Whether a bound is a borrowed form.
    pub(crate) fn has_forms(&self) -> bool {
        self.forms().next().is_some()
    }

    /// Whether `key` lies inside the range.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool
    where
        K: Ord,
    {
        match self.only_key() {
            Some(only) => only.cmp(key).is_eq(),
            None => self.starts_before(key) && self.ends_after(key),
        }
    }

    /// Whether the two bounds alone show that no key can lie inside the range. Two borrowed forms
    /// cannot be compared with each other, and show nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool
    where
        K: Ord,
    {
        match (self.low, self.high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => {
                low.compare_sought(high).is_some_and(Ordering::is_gt)
            }
            (
                Bound::Included(low) | Bound::Excluded(low),
                Bound::Included(high) | Bound::Excluded(high),
            ) => low.compare_sought(high).is_some_and(Ordering::is_ge),
        }
    }
}

/// What an index looks like now: named figures for the lab, the server and curious users.
///
/// The figures are gathered while the index is in use, so they add up exactly only when it is
/// quiescent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// The engine's name, as [`OrderedIndex::engine`](crate::OrderedIndex::engine) returns it.
    pub engine: &'static str,
    /// Name and value of each figure, in reading order. Sizes are in bytes, all others are counts.
    pub figures: Vec<(&'static str, u64)>,
}

impl Shape {
    /// The shape of an index on this engine, with these figures.
    #[must_use]
    pub const fn new(engine: &'static str, figures: Vec<(&'static str, u64)>) -> Self {
        Self { engine, figures }
    }

    /// The figure called `name`, if this engine has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.figures
            .iter()
            .find(|(figure, _)| *figure == name)
            .map(|(_, value)| *value)
    }
}

/// The closure of an `update`.
#[doc(hidden)]
pub type Decide<'d, V> = dyn FnMut(Option<&V>) -> Update<V> + 'd;

/// The size of the first batch, in entries, that
/// [`OrderedIndex::range`](crate::OrderedIndex::range) copies out. Each further batch is twice as
/// large, up to [`LAST_BATCH`].
pub const FIRST_BATCH: usize = 32;
/// The size of the largest batch, in entries.
pub const LAST_BATCH: usize = 1024;

/// Visits a range by scans of [`FIRST_BATCH`] to [`LAST_BATCH`] entries. `scan` appends the first
/// entries of a range, up to a limit.
pub(crate) fn visit_in_batches<K: Clone, V>(
    range: KeyRange<'_, K>,
    direction: Direction,
    mut scan: impl FnMut(KeyRange<'_, K>, usize, &mut Vec<(K, V)>),
    visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
) {
    let mut batch = Vec::new();
    let mut size = FIRST_BATCH;
    let mut resume: Option<K> = None;
    loop {
        let rest = match (&resume, direction) {
            (None, _) => range,
            (Some(key), _) => range.behind(key, direction),
        };
        batch.clear();
        scan(rest, size, &mut batch);
        for (key, value) in &batch {
            if visit(key, value).is_break() {
                return;
            }
        }
        if batch.len() < size {
            return;
        }
        resume = batch.pop().map(|(key, _)| key);
        size = (size * 2).min(LAST_BATCH);
    }
}

/// What an engine implements: the methods of [`OrderedIndex`](crate::OrderedIndex), where their
/// docs are. Every implementation is an `OrderedIndex` through a layer that, in a debug build,
/// detects a closure that calls its own index (`reentry`).
///
/// Only the engines use this trait, under the name `OrderedIndex`.
#[doc(hidden)]
pub trait Implementation<K: Ord + Clone, V: Clone>: Send + Sync {
    fn engine(&self) -> &'static str;

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool;

    fn get(&self, key: &K) -> Option<V> {
        let mut found = None;
        self.get_with(key, &mut |value| found = Some(value.clone()));
        found
    }

    fn contains_key(&self, key: &K) -> bool {
        self.get_with(key, &mut |_| ())
    }

    /// Whether [`seek`](Self::seek), and the methods that are given a range, can look for a form.
    fn can_seek(&self, form: &dyn Form<K>) -> bool;

    /// Does what `get_with` does, for the key that a form stands for.
    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool;

    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        out.extend(keys.iter().map(|key| self.get(key)));
    }

    fn insert(&self, key: K, value: V) -> Option<V>;

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V>;

    fn remove(&self, key: &K) -> Option<V>;

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V>;

    fn first(&self) -> Option<(K, V)>;

    fn last(&self) -> Option<(K, V)>;

    fn next(&self, key: &K) -> Option<(K, V)>;

    fn prev(&self, key: &K) -> Option<(K, V)>;

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        let entry = match direction {
            Direction::Ascending => self.next(key),
            Direction::Descending => self.prev(key),
        };
        entry.map(|(key, value)| read(&key, &value)).is_some()
    }

    fn pop_first(&self) -> Option<(K, V)>;

    fn pop_last(&self) -> Option<(K, V)>;

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    );

    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        visit_in_batches(
            range,
            direction,
            |rest, size, batch| self.scan(rest, direction, size, batch),
            visit,
        );
    }

    fn snapshot(&self, range: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        let mut entries = Vec::with_capacity(match (range.low, range.high) {
            (Bound::Unbounded, Bound::Unbounded) => self.len(),
            _ => 0,
        });
        self.scan(range, Direction::Ascending, usize::MAX, &mut entries);
        Some(entries)
    }

    fn begin_snapshot(&self, _range: KeyRange<'_, K>) -> Option<SnapshotCursor<K, V>> {
        None
    }

    fn read_snapshot(
        &self,
        _cursor: &mut SnapshotCursor<K, V>,
        _wanted: usize,
        _out: &mut Vec<(K, V)>,
    ) -> bool {
        panic!("{NOT_BEGUN_HERE}");
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize;

    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shape(&self) -> Shape;

    fn transactional(&self) -> Option<&dyn Transactional<K, V>> {
        None
    }

    /// Panics, and names the invariant, if an invariant on the state of the index does not hold.
    /// Checks only in a debug build, and only in an engine whose invariants are functions. No other
    /// thread may use the index meanwhile.
    fn check_invariants(&self) {}
}

pub(crate) use Implementation as OrderedIndex;

/// The methods of [`OrderedIndex`], for a type that dereferences to an index.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate_to_target {
    () => {
        fn engine(&self) -> &'static str {
            (**self).engine()
        }

        fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
            (**self).get_with(key, read)
        }

        fn get(&self, key: &K) -> Option<V> {
            (**self).get(key)
        }

        fn contains_key(&self, key: &K) -> bool {
            (**self).contains_key(key)
        }

        fn can_seek(&self, form: &dyn $crate::kit::Form<K>) -> bool {
            (**self).can_seek(form)
        }

        fn seek(&self, form: &dyn $crate::kit::Form<K>, read: &mut dyn FnMut(&V)) -> bool {
            (**self).seek(form, read)
        }

        fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
            (**self).get_many(keys, out);
        }

        fn insert(&self, key: K, value: V) -> Option<V> {
            (**self).insert(key, value)
        }

        fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
            (**self).insert_if_absent(key, value)
        }

        fn remove(&self, key: &K) -> Option<V> {
            (**self).remove(key)
        }

        fn update(
            &self,
            key: K,
            decide: &mut dyn FnMut(Option<&V>) -> $crate::Update<V>,
        ) -> Option<V> {
            (**self).update(key, decide)
        }

        fn first(&self) -> Option<(K, V)> {
            (**self).first()
        }

        fn last(&self) -> Option<(K, V)> {
            (**self).last()
        }

        fn next(&self, key: &K) -> Option<(K, V)> {
            (**self).next(key)
        }

        fn prev(&self, key: &K) -> Option<(K, V)> {
            (**self).prev(key)
        }

        fn step_with(
            &self,
            key: &K,
            direction: $crate::Direction,
            read: &mut dyn FnMut(&K, &V),
        ) -> bool {
            (**self).step_with(key, direction, read)
        }

        fn pop_first(&self) -> Option<(K, V)> {
            (**self).pop_first()
        }

        fn pop_last(&self) -> Option<(K, V)> {
            (**self).pop_last()
        }

        fn scan(
            &self,
            range: $crate::KeyRange<'_, K>,
            direction: $crate::Direction,
            limit: usize,
            out: &mut Vec<(K, V)>,
        ) {
            (**self).scan(range, direction, limit, out);
        }

        fn range(
            &self,
            range: $crate::KeyRange<'_, K>,
            direction: $crate::Direction,
            visit: &mut dyn FnMut(&K, &V) -> ::std::ops::ControlFlow<()>,
        ) {
            (**self).range(range, direction, visit);
        }

        fn snapshot(&self, range: $crate::KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
            (**self).snapshot(range)
        }

        fn begin_snapshot(
            &self,
            range: $crate::KeyRange<'_, K>,
        ) -> Option<$crate::SnapshotCursor<K, V>> {
            (**self).begin_snapshot(range)
        }

        fn read_snapshot(
            &self,
            cursor: &mut $crate::SnapshotCursor<K, V>,
            wanted: usize,
            out: &mut Vec<(K, V)>,
        ) -> bool {
            (**self).read_snapshot(cursor, wanted, out)
        }

        fn remove_range(&self, range: $crate::KeyRange<'_, K>) -> usize {
            (**self).remove_range(range)
        }

        fn len(&self) -> usize {
            (**self).len()
        }

        fn is_empty(&self) -> bool {
            (**self).is_empty()
        }

        fn shape(&self) -> $crate::Shape {
            (**self).shape()
        }

        fn transactional(&self) -> Option<&dyn $crate::Transactional<K, V>> {
            (**self).transactional()
        }
    };
}
/// A pointer to an index is an index.
macro_rules! pointer_to_an_index {
    ($Pointer:ty $(, $Sized:tt Sized)?) => {
        impl<K, V, I> Implementation<K, V> for $Pointer
        where
            K: Ord + Clone,
            V: Clone,
            I: crate::OrderedIndex<K, V> $(+ $Sized Sized)?,
        {
            delegate_to_target!();
        }
    };
}

pointer_to_an_index!(&I, ?Sized);
pointer_to_an_index!(Box<I>, ?Sized);
// Under the checkers the counted pointer takes only types whose size is known.
#[cfg(not(any(loom, shuttle, tremula_tsan)))]
pointer_to_an_index!(tremula_sync::Arc<I>, ?Sized);
#[cfg(any(loom, shuttle, tremula_tsan))]
pointer_to_an_index!(tremula_sync::Arc<I>);
