//! Snapshots: the entries of a range at one moment, to be read later.

use super::contents::{EntryRef, OwnedTree};
use crate::contract::{Direction, KeyRange, Storable};
use crate::key::{ByteHead, KeyHead};
use crate::kit::{Parameters, SearchKey, SearchRange, Sought};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// The entries of a range as they were at one moment, made by
/// [`LfcaTree::capture`](super::LfcaTree::capture).
///
/// It shares memory with the tree, and making it copies no entry. While it lives, the first change
/// in a leaf that it shares copies the entries of that leaf, and what the tree removes stays
/// allocated until the snapshot is dropped. It does not borrow the tree, pins no epoch, may be sent
/// to other threads and read by several, and may outlive the tree.
///
/// ```
/// use tremula_index::{KeyRange, LfcaTree, OrderedIndex};
///
/// let tree = LfcaTree::<u64, u64>::new();
/// (0..1000).for_each(|key| drop(tree.insert(key, key)));
/// let before = tree.capture(KeyRange::all());
/// tree.remove_range(KeyRange::all());
/// tree.insert(7, 8);
/// assert_eq!((before.len(), before.get(&7)), (1000, Some(7)));
/// ```
pub struct Snapshot<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    low: Bound<K>,
    high: Bound<K>,
    /// In ascending order. The first and the last may have entries outside the range.
    trees: Vec<OwnedTree<Parameters<K, V, H>>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Snapshot<K, V, H> {
    pub(super) fn new(range: KeyRange<'_, K>, trees: Vec<OwnedTree<Parameters<K, V, H>>>) -> Self {
        let (low, high) = range.to_keys();
        Self { low, high, trees }
    }

    /// A copy of the value that was under `key`. O(log n).
    #[must_use]
    pub fn get(&self, key: &K) -> Option<V> {
        if !KeyRange::new(self.low.as_ref(), self.high.as_ref()).contains(key) {
            return None;
        }
        let probe = SearchKey::new(key);
        // A key is in the last tree that begins at or below it.
        let tree = self.trees.iter().rev().find(|tree| {
            let first = tree.view().end(Direction::Ascending);
            first.is_some_and(|first| first.with(|first, _| first <= key))
        })?;
        let value = tree.view().get(&probe)?;
        // SAFETY: the snapshot has a count of the tree.
        Some(unsafe { value.with(V::clone) })
    }

    /// The number of entries, counted. O(n).
    #[must_use]
    pub fn len(&self) -> usize {
        let span = SearchRange::new(KeyRange::new(self.low.as_ref(), self.high.as_ref()));
        self.trees.iter().map(|tree| tree.view().count(span)).sum()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut is_empty = true;
        self.range(KeyRange::all(), Direction::Ascending, |_, _| {
            is_empty = false;
            ControlFlow::Break(())
        });
        is_empty
    }

    /// Visits the entries of `range` in `direction` until `visit` breaks. O(log n + visited).
    pub fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let range = KeyRange::new(
            inner(
                self.low.as_ref(),
                range.low.map(Sought::key),
                Ordering::Greater,
            ),
            inner(
                self.high.as_ref(),
                range.high.map(Sought::key),
                Ordering::Less,
            ),
        );
        let span = SearchRange::new(range);
        let mut walk = |tree: &OwnedTree<Parameters<K, V, H>>| {
            let mut visit = |entry: EntryRef<'_, Parameters<K, V, H>>| entry.with(&mut visit);
            tree.view().walk(span, direction, &mut visit)
        };
        let _ = match direction {
            Direction::Ascending => self.trees.iter().try_for_each(&mut walk),
            Direction::Descending => self.trees.iter().rev().try_for_each(&mut walk),
        };
    }

    /// A copy of all entries, ascending.
    #[must_use]
    pub fn to_vec(&self) -> Vec<(K, V)> {
        let mut entries = Vec::new();
        self.range(KeyRange::all(), Direction::Ascending, |key, value| {
            entries.push((key.clone(), value.clone()));
            ControlFlow::Continue(())
        });
        entries
    }
}

/// The narrower of two bounds: the one whose key compares as `inside` with that of the other.
fn inner<'a, K: Ord>(one: Bound<&'a K>, other: Bound<&'a K>, inside: Ordering) -> Bound<&'a K> {
    use Bound::{Excluded, Included, Unbounded};
    match (one, other) {
        (Unbounded, bound) | (bound, Unbounded) => bound,
        (Included(a) | Excluded(a), Included(b) | Excluded(b)) => match a.cmp(b) {
            Ordering::Equal if matches!(one, Excluded(_)) => one,
            Ordering::Equal => other,
            order if order == inside => one,
            _ => other,
        },
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Clone for Snapshot<K, V, H> {
    /// Shares its contents with the clone. O(base nodes).
    fn clone(&self) -> Self {
        Self {
            low: self.low.clone(),
            high: self.high.clone(),
            trees: self.trees.clone(),
        }
    }
}

impl<K, V, H> fmt::Debug for Snapshot<K, V, H>
where
    K: Ord + Storable + fmt::Debug,
    V: Storable,
    H: KeyHead<K>,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Snapshot")
            .field("low", &self.low)
            .field("high", &self.high)
            .finish_non_exhaustive()
    }
}
