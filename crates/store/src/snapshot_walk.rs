//! A range as of one moment, read while others write.

use crate::database::Database;
use crate::keyspace::BATCH;
use crate::{Expiry, Key, Value};
use tremula_index::{KeyRange, SnapshotCursor};
use tremula_sync::atomic::Ordering::Relaxed;

impl Database<'_> {
    /// Begins to read `range`, ascending, as it is at this moment: see
    /// [`begin_snapshot`](tremula_index::OrderedIndex::begin_snapshot). `None` from an engine that
    /// would have to copy it, and in a step.
    #[must_use]
    pub fn begin_snapshot(&self, range: KeyRange<'_, Key>) -> Option<SnapshotWalk> {
        let time = || {
            let is_asked = !self.kept.deadlines.are_unused() && self.kept.expires.load(Relaxed);
            is_asked.then(|| self.index.now())
        };
        loop {
            let before = time();
            let cursor = self.index.begin_snapshot(range)?;
            // Otherwise the time of a key may have come meanwhile, and nobody can say on which side
            // of the moment.
            if before == time() {
                return Some(SnapshotWalk::new(cursor, before));
            }
        }
    }

    /// Appends the next entries of a snapshot that was begun here, `wanted` or some hundreds more.
    /// Returns whether it may go on.
    fn read_snapshot(
        &self,
        cursor: &mut SnapshotCursor<Key, Value>,
        wanted: usize,
        out: &mut Vec<(Key, Value)>,
    ) -> bool {
        self.kept.index.read_snapshot(cursor, wanted, out)
    }
}

/// A walk over a range, ascending, as it was when [`Database::begin_snapshot`] made this.
pub struct SnapshotWalk {
    /// `None` at the end.
    cursor: Option<SnapshotCursor<Key, Value>>,
    /// The time of the moment, if keys expire.
    time: Option<Expiry>,
    batch: std::vec::IntoIter<(Key, Value)>,
    copied: u64,
}

impl SnapshotWalk {
    fn new(cursor: SnapshotCursor<Key, Value>, time: Option<Expiry>) -> Self {
        Self {
            cursor: Some(cursor),
            time,
            batch: Vec::new().into_iter(),
            copied: 0,
        }
    }

    /// The next entry. Copies a batch if the last one has ended. `database` is the one that was
    /// asked for the walk.
    pub fn next(&mut self, database: Database<'_>) -> Option<(Key, Value)> {
        while let (0, Some(cursor)) = (self.batch.len(), &mut self.cursor) {
            let mut batch = Vec::new();
            if !database.read_snapshot(cursor, BATCH, &mut batch) {
                self.cursor = None;
            }
            self.copied += batch.len() as u64;
            if let Some(time) = self.time {
                batch.retain(|(_, value)| value.expiry().is_none_or(|expiry| expiry > time));
            }
            self.batch = batch.into_iter();
        }
        self.batch.next()
    }

    /// Ends the walk: writers copy nothing more for it.
    pub fn end(&mut self) {
        self.cursor = None;
        self.batch = Vec::new().into_iter();
    }

    /// The length of the batch of which [`next`](Self::next) returns the next entry without a copy;
    /// zero if it has to copy one.
    #[must_use]
    pub fn at_hand(&self) -> usize {
        self.batch.len()
    }

    /// How many entries writers have copied that the walk has not come to.
    #[must_use]
    pub fn ahead(&self) -> usize {
        self.cursor.as_ref().map_or(0, SnapshotCursor::held)
    }

    /// The entries that have been copied for the walk, and those of them that are still to come.
    #[must_use]
    pub fn copies(&self) -> (u64, u64) {
        let ahead = self.ahead() as u64;
        (self.copied + ahead, self.batch.len() as u64 + ahead)
    }
}
