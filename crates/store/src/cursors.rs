//! The cursors of `SCAN`: numbers that stand for keys.
//!
//! A scan goes through the keys in order, so the last returned key is its position, and it returns
//! every key that is present from its start to its end. A client holds only a 64-bit number for
//! that key; this table maps the number to the key.
//!
//! The table is bounded. Cursors that have been resumed from are forgotten first, oldest first:
//! their scan has moved on to another cursor. Then come cursors that no scan has resumed from,
//! oldest first. A forgotten cursor stands for the beginning: its scan returns some elements again,
//! as `SCAN` may, but misses none. This happens to a scan only if, since its last call,
//! as many other scans as there may be cursors ([`MAX_CURSORS`] by default) have begun without
//! going on, or their keys fill the bytes that there are ([`MAX_CURSOR_BYTES`]).
//!
//! Scans that stop at the same key of the same database share a cursor, so that many clients that
//! read only the first few keys take one entry.

use crate::Key;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

/// The most cursors kept, by default: enough for every client to have a scan or two under way.
pub const MAX_CURSORS: usize = 32_768;

/// The most bytes of keys that the cursors hold, by default, unless there is only one cursor.
pub const MAX_CURSOR_BYTES: usize = 64 << 20;

/// The quotas of cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorQuotas {
    /// The most cursors kept.
    pub cursors: usize,
    /// The most bytes of keys that they hold, unless there is only one cursor.
    pub bytes: usize,
}

impl CursorQuotas {
    /// [`MAX_CURSORS`] and [`MAX_CURSOR_BYTES`].
    pub const DEFAULT: Self = Self {
        cursors: MAX_CURSORS,
        bytes: MAX_CURSOR_BYTES,
    };
}

/// The position of a scan: behind this key of this database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The number of the database.
    pub database: usize,
    /// The key that the scan goes on behind.
    pub after: Key,
}

/// The order in which cursors are forgotten: first those that were resumed from, then by age.
type Rank = (bool, u64);

/// The cursors of one server.
pub struct Cursors {
    positions: HashMap<u64, (Position, Rank)>,
    cursors: HashMap<Position, u64>,
    /// All cursors, the next one to forget first. `false` sorts before `true`, so the first part of
    /// a rank says whether no scan has resumed from the cursor yet.
    forget_order: BTreeMap<Rank, u64>,
    bytes: usize,
    quotas: CursorQuotas,
    next_cursor: u64,
    next_stamp: u64,
}

impl Default for Cursors {
    fn default() -> Self {
        Self::new(CursorQuotas::DEFAULT)
    }
}

impl Cursors {
    /// No cursors.
    #[must_use]
    pub fn new(quotas: CursorQuotas) -> Self {
        // Random, so that a cursor from before a restart does not refer to another key. Below 2^63,
        // because some clients keep cursors in signed numbers.
        let first = RandomState::new().hash_one(0) >> 2;
        Self {
            positions: HashMap::new(),
            cursors: HashMap::new(),
            forget_order: BTreeMap::new(),
            bytes: 0,
            quotas,
            next_cursor: first.max(1),
            next_stamp: 0,
        }
    }

    /// The key behind which a scan of `database` with this cursor goes on. `None` is the beginning,
    /// also for an unknown cursor.
    pub fn resume(&mut self, cursor: u64, database: usize) -> Option<Key> {
        let (position, _) = self.positions.get(&cursor)?;
        let after = (position.database == database).then(|| position.after.clone())?;
        self.rank(cursor, false);
        Some(after)
    }

    /// The cursor of a scan that goes on at `position`.
    pub fn suspend(&mut self, position: Position) -> u64 {
        if let Some(cursor) = self.cursors.get(&position).copied() {
            self.rank(cursor, true);
            return cursor;
        }
        let cursor = self.next_cursor;
        self.next_cursor += 1;
        self.bytes += position.after.as_bytes().len();
        self.cursors.insert(position.clone(), cursor);
        self.positions.insert(cursor, (position, (true, u64::MAX)));
        self.rank(cursor, true);
        self.forget_surplus(cursor);
        cursor
    }

    /// How many cursors there are, and the bytes of their keys.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        (self.positions.len(), self.bytes)
    }

    /// Makes `cursor` the youngest of those that no scan has resumed from, or else of the others.
    fn rank(&mut self, cursor: u64, waited_for: bool) {
        if let Some((_, rank)) = self.positions.get_mut(&cursor) {
            self.forget_order.remove(rank);
            *rank = (waited_for, self.next_stamp);
            self.forget_order.insert(*rank, cursor);
            self.next_stamp += 1;
        }
    }

    fn forget_surplus(&mut self, kept: u64) {
        while self.positions.len() > self.quotas.cursors || self.bytes > self.quotas.bytes {
            let Some((_, cursor)) = self.forget_order.pop_first() else {
                return;
            };
            if cursor == kept {
                // The only cursor left, whose key alone exceeds the bound.
                self.rank(cursor, true);
                return;
            }
            if let Some((position, _)) = self.positions.remove(&cursor) {
                self.bytes -= position.after.as_bytes().len();
                self.cursors.remove(&position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(key: &[u8]) -> Position {
        Position {
            database: 0,
            after: Key::from(key),
        }
    }

    fn check(cursors: &Cursors) {
        assert_eq!(cursors.positions.len(), cursors.cursors.len());
        assert_eq!(cursors.positions.len(), cursors.forget_order.len());
        assert!(cursors.positions.len() <= MAX_CURSORS);
    }

    #[test]
    fn a_cursor_means_its_key_in_its_database_only() {
        let mut cursors = Cursors::default();
        let cursor = cursors.suspend(position(b"k"));
        assert_eq!(cursors.suspend(position(b"k")), cursor);
        assert_eq!(cursors.resume(cursor, 0), Some(Key::from(&b"k"[..])));
        assert_eq!(cursors.resume(cursor, 1), None);
        assert_eq!(cursors.resume(cursor + 1, 0), None);
    }

    #[test]
    fn a_busy_scan_does_not_push_out_a_slow_one() {
        let mut cursors = Cursors::default();
        let slow = cursors.suspend(position(b"slow"));
        let mut busy = cursors.suspend(position(b"start"));
        for step in 0..3 * MAX_CURSORS {
            cursors.resume(busy, 0);
            busy = cursors.suspend(position(&step.to_be_bytes()));
        }
        check(&cursors);
        assert!(cursors.resume(slow, 0).is_some());
    }

    #[test]
    fn scans_left_alone_are_forgotten_oldest_first() {
        let mut cursors = Cursors::default();
        let all: Vec<_> = (0..MAX_CURSORS + 10)
            .map(|step| cursors.suspend(position(&step.to_be_bytes())))
            .collect();
        check(&cursors);
        assert!(
            all[..10]
                .iter()
                .all(|cursor| cursors.resume(*cursor, 0).is_none())
        );
        assert!(
            all[10..]
                .iter()
                .all(|cursor| cursors.resume(*cursor, 0).is_some())
        );
    }

    #[test]
    fn long_keys_are_bounded_by_their_bytes() {
        let mut cursors = Cursors::default();
        let mut key = vec![0; MAX_CURSOR_BYTES / 4 + 1];
        for step in 0..6 {
            key[0] = step;
            cursors.suspend(position(&key));
            assert!(cursors.bytes <= MAX_CURSOR_BYTES);
        }
        let cursor = cursors.suspend(position(&vec![0; MAX_CURSOR_BYTES + 1]));
        assert!(cursors.resume(cursor, 0).is_some());
        check(&cursors);
    }
}
