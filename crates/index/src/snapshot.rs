//! A range as of one moment.

use crate::contract::KeyRange;
use crate::{aspen, b_tree};
use std::fmt;

/// What a range was at one moment: a handle that keeps it as long as wanted.
///
/// It owns copies of the entries, in ascending order: so it holds back no writer and no memory of
/// the index, and takes the memory of these copies.
///
/// ```
/// use tremula_index::{Engine, KeyRange};
///
/// let index = Engine::Aspen.create::<u64, &str>();
/// index.insert(1, "one");
/// index.insert(2, "two");
/// let steps = index.transactional().ok_or("not this engine")?;
/// let before = steps.snapshot(KeyRange::all());
/// index.remove(&1);
/// assert_eq!(before.get(&1), Some(&"one"));
/// assert_eq!(before.range(KeyRange::all()).next_back(), Some((&2, &"two")));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<K, V> {
    entries: Vec<(K, V)>,
}

impl<K: Ord, V> Snapshot<K, V> {
    /// Of entries in ascending order.
    pub(crate) const fn new(entries: Vec<(K, V)>) -> Self {
        Self { entries }
    }

    /// The value under `key`. O(log n).
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.entries.binary_search_by(|(other, _)| other.cmp(key));
        Some(&self.entries.get(at.ok()?)?.1)
    }

    /// The entries of `range`, ascending, and from the other end descending. O(log n) until the
    /// first.
    pub fn range(&self, range: KeyRange<'_, K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        let below = |(key, _): &(K, V)| !range.starts_before(key);
        let from = self.entries.partition_point(below);
        let rest = self.entries.get(from..).unwrap_or_default();
        let to = rest.partition_point(|(key, _)| range.ends_after(key));
        rest[..to].iter().map(|(key, value)| (key, value))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries themselves, ascending.
    #[must_use]
    pub fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }
}

/// How far a range has been read that is shown as of one moment: see
/// [`OrderedIndex::begin_snapshot`](crate::OrderedIndex::begin_snapshot).
///
/// It holds no lock and keeps no memory of the index from being freed, however long it lives. It
/// takes the memory of the entries that have been copied for it and not been read. Dropping it ends
/// the snapshot.
pub struct SnapshotCursor<K, V>(pub(crate) Reading<K, V>);

/// How far an engine has read a snapshot that it has begun.
pub(crate) enum Reading<K, V> {
    BTree(b_tree::Reading<K, V>),
    Aspen(aspen::Reading),
}

/// What is wrong with a cursor that is given to an index which has not begun it.
pub(crate) const NOT_BEGUN_HERE: &str = "a snapshot is read from the index that has begun it";

impl<K, V> SnapshotCursor<K, V> {
    /// The number of entries that have been copied for it and not been read.
    #[must_use]
    pub fn held(&self) -> usize {
        match &self.0 {
            Reading::BTree(reading) => reading.held(),
            Reading::Aspen(reading) => reading.held(),
        }
    }
}

impl<K, V> fmt::Debug for SnapshotCursor<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SnapshotCursor")
            .field("held", &self.held())
            .finish_non_exhaustive()
    }
}
