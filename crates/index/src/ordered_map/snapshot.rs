//! An iterator over a range as of one moment.

use super::OrderedMap;
use crate::contract::{FIRST_BATCH, LAST_BATCH};
use crate::{OrderedIndex, SnapshotCursor};
use std::iter::FusedIterator;
use std::ops::{Deref, RangeBounds};
use std::vec;

/// An iterator over a range of an [`OrderedMap`] as of the moment at which it was made, by
/// [`OrderedMap::snapshot_iter`] or [`OrderedMap::snapshot_iter_of`]. `M` leads to the map.
///
/// It costs what [`OrderedIndex::begin_snapshot`] says. Dropping it ends the snapshot.
pub struct SnapshotIter<K, V, M> {
    map: M,
    /// `None` at the end.
    cursor: Option<SnapshotCursor<K, V>>,
    /// What has been copied and not been returned.
    entries: vec::IntoIter<(K, V)>,
    /// The size of the next batch.
    size: usize,
}

impl<K, V, E> OrderedMap<K, V, E>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
{
    /// An iterator over `range`, ascending, as it is at this moment, however long it takes and
    /// whatever is written meanwhile; `None` from an engine that cannot give one moment. It copies
    /// as it goes on if the engine [can](OrderedIndex::begin_snapshot), otherwise all at once.
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<String, u32> =
    ///     (0..5).map(|n| (n.to_string(), n)).collect();
    /// let before = map.snapshot_iter(..).ok_or("not this engine")?;
    /// map.clear();
    /// assert!(before.map(|(_, n)| n).eq(0..5));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn snapshot_iter(&self, range: impl RangeBounds<K>) -> Option<SnapshotIter<K, V, &Self>> {
        Self::snapshot_iter_of(self, range)
    }

    /// What [`snapshot_iter`](Self::snapshot_iter) returns, with a map that the iterator keeps: in
    /// an `Arc`, say.
    pub fn snapshot_iter_of<M: Deref<Target = Self>>(
        map: M,
        range: impl RangeBounds<K>,
    ) -> Option<SnapshotIter<K, V, M>> {
        let cursor = map.engine.begin_snapshot(super::bounds(&range));
        let copies = match cursor {
            Some(_) => Vec::new(),
            None => map.engine.snapshot(super::bounds(&range))?,
        };
        Some(SnapshotIter::new(map, copies, cursor))
    }
}

impl<K, V, M> SnapshotIter<K, V, M> {
    /// What is left to read, behind what has been copied.
    pub(super) fn new(map: M, copies: Vec<(K, V)>, cursor: Option<SnapshotCursor<K, V>>) -> Self {
        Self {
            map,
            cursor,
            entries: copies.into_iter(),
            size: FIRST_BATCH,
        }
    }
}

impl<K, V, E, M> Iterator for SnapshotIter<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        while let (0, Some(cursor)) = (self.entries.len(), &mut self.cursor) {
            let mut entries = Vec::new();
            let engine = &self.map.engine;
            if !engine.read_snapshot(cursor, self.size, &mut entries) {
                self.cursor = None;
            }
            self.entries = entries.into_iter();
            self.size = (self.size * 2).min(LAST_BATCH);
        }
        self.entries.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let copied = self.entries.len();
        (copied, self.cursor.is_none().then_some(copied))
    }
}

impl<K, V, E, M> FusedIterator for SnapshotIter<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
}
