//! When the rows of keys expire: the times of one table, and the agenda of a node.
//!
//! ```text
//!  table                                    node
//!  by key    1 -> 500   7 -> 300            agenda   (250, table 4)  (300, table 9) ...
//!  by time   (300, 7)   (500, 1)                      the first times, the earliest first
//! ```
//!
//! # Invariants
//!
//! 1. A key has a time only while it has rows. A thread changes the time of a key only under the
//!    lock of that key in the store, or under the gate, held exclusively. Where it removes the last
//!    row of a key, it forgets the time under that same lock. So a key that goes and comes anew
//!    never goes by an old time.
//! 2. `by_key` and `by_time` have the same entries.
//! 3. A table that has a time is in the agenda once, at its first time or an earlier one.
//!
//! A table without times costs a look at a flag with each write. The flag is set under the gate,
//! held exclusively. A write looks at it while it holds the gate: if it does not see the flag, the
//! first time of the table comes after the write has let go of the gate.
//!
//! Locks are taken in this order: the gate, a key in the store, the times of the table, the agenda.

use super::store::{Garbage, OrderedKey};
use crate::match_spec::KeyInterval;
use crate::term::{Exact, Term};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use tremula_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tremula_sync::{Arc, Mutex};

/// A time: milliseconds since 1970 began.
pub(super) type Millis = u64;

/// The tables of a node in which keys have times.
#[derive(Default)]
pub(super) struct Agenda {
    /// A time, and the number of a table in which no key expires earlier.
    tables: Mutex<BTreeSet<(Millis, u64)>>,
    /// The keys that have a time.
    keys: AtomicUsize,
}

impl Agenda {
    /// The keys of all tables that have a time.
    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Up to `most` tables in which a key may expire up to this time, the earliest first.
    pub(super) fn due(&self, now: Millis, most: usize) -> Vec<u64> {
        let tables = self.tables.lock();
        let due = tables.iter().take_while(|(first, _)| *first <= now);
        due.take(most).map(|(_, table)| *table).collect()
    }

    /// Moves a table. The caller holds the lock of its times.
    fn relist(&self, table: u64, before: Option<Millis>, after: Option<Millis>) {
        if before == after {
            return;
        }
        let mut tables = self.tables.lock();
        if let Some(before) = before {
            tables.remove(&(before, table));
        }
        if let Some(after) = after {
            tables.insert((after, table));
        }
    }
}

/// A key as its table compares it; all keys of a table are of one of these.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TimedKey {
    /// Of an `ordered_set`.
    ByValue(OrderedKey),
    Exact(Exact),
}

impl TimedKey {
    fn term(&self) -> &Term {
        match self {
            Self::ByValue(key) => key.term(),
            Self::Exact(Exact(term)) => term,
        }
    }
}

/// The times of the keys of one table.
pub(super) struct Times {
    table: u64,
    by_value: bool,
    is_used: AtomicBool,
    noted: Mutex<Noted>,
    agenda: Arc<Agenda>,
}

#[derive(Default)]
struct Noted {
    by_key: BTreeMap<TimedKey, Millis>,
    by_time: BTreeSet<(Millis, TimedKey)>,
    /// Where the table is in the agenda.
    listed: Option<Millis>,
}

impl Noted {
    fn first(&self) -> Option<Millis> {
        self.by_time.first().map(|(time, _)| *time)
    }
}

impl Times {
    /// No times, of the table with this number.
    pub(super) fn new(table: u64, by_value: bool, agenda: &Arc<Agenda>) -> Self {
        Self {
            table,
            by_value,
            is_used: AtomicBool::new(false),
            noted: Mutex::default(),
            agenda: Arc::clone(agenda),
        }
    }

    /// Whether a key may have a time. The caller holds the gate, or this only says whether it is
    /// worth a look.
    #[inline]
    pub(super) fn are_used(&self) -> bool {
        // Relaxed: the gate orders this with `use_from_now`.
        self.is_used.load(Ordering::Relaxed)
    }

    /// Lets keys have times from now on. The caller holds the gate exclusively.
    pub(super) fn use_from_now(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// The number of keys that have a time.
    pub(super) fn len(&self) -> usize {
        if !self.are_used() {
            return 0;
        }
        self.noted.lock().by_key.len()
    }

    fn key(&self, key: &Term) -> TimedKey {
        if self.by_value {
            TimedKey::ByValue(OrderedKey::Key(key.clone()))
        } else {
            TimedKey::Exact(Exact(key.clone()))
        }
    }

    /// The time of a key. O(log times).
    pub(super) fn get(&self, key: &Term) -> Option<Millis> {
        if !self.are_used() {
            return None;
        }
        self.noted.lock().by_key.get(&self.key(key)).copied()
    }

    /// Gives a key a time, or takes it away. The caller holds the lock of the key, which has rows
    /// if it gets a time. O(log times).
    pub(super) fn set(&self, key: &Term, time: Option<Millis>) {
        debug_assert!(self.are_used(), "a time in a table without times");
        let key = self.key(key);
        let mut noted = self.noted.lock();
        let noted = &mut *noted;
        let before = match time {
            Some(time) => noted.by_key.insert(key.clone(), time),
            None => noted.by_key.remove(&key),
        };
        match (before, time) {
            (None, Some(_)) => drop(self.agenda.keys.fetch_add(1, Ordering::Relaxed)),
            (Some(_), None) => drop(self.agenda.keys.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        let mut entry = (0, key);
        if let Some(before) = before {
            entry.0 = before;
            noted.by_time.remove(&entry);
        }
        if let Some(time) = time {
            entry.0 = time;
            noted.by_time.insert(entry);
            if noted.listed.is_none_or(|listed| time < listed) {
                self.agenda.relist(self.table, noted.listed, Some(time));
                noted.listed = Some(time);
            }
        }
    }

    /// Forgets the times of the keys in an interval. The caller holds the gate exclusively.
    /// O(times in it · log times).
    pub(super) fn forget_range(&self, interval: &KeyInterval) {
        if !self.are_used() {
            return;
        }
        let end = |bound: &Option<_>| {
            bound.as_ref().map_or(Bound::Unbounded, |bound| {
                Bound::Excluded(TimedKey::ByValue(OrderedKey::bound(bound)))
            })
        };
        let (low, high) = (end(&interval.low), end(&interval.high));
        if let (Bound::Excluded(low), Bound::Excluded(high)) = (&low, &high)
            && low >= high
        {
            return;
        }
        let noted = self.noted.lock();
        let within = noted.by_key.range((low, high));
        let keys: Vec<Term> = within.map(|(key, _)| key.term().clone()).collect();
        drop(noted);
        for key in &keys {
            self.set(key, None);
        }
    }

    /// Forgets all times. The caller holds the gate exclusively, or has deleted the table. O(1);
    /// the memory is still to be freed.
    pub(super) fn take_all(&self) -> Garbage {
        let mut garbage = Garbage::default();
        if self.are_used() {
            let mut noted = self.noted.lock();
            let all = std::mem::take(&mut *noted);
            self.agenda.relist(self.table, all.listed, None);
            let count = all.by_key.len();
            self.agenda.keys.fetch_sub(count, Ordering::Relaxed);
            garbage.add(all.by_key);
            garbage.add(all.by_time);
        }
        garbage
    }

    /// Up to `most` keys that expire up to this time, the earliest first, with their times. Sees to
    /// it that the agenda has the table where its first time is.
    pub(super) fn due(&self, now: Millis, most: usize) -> Vec<(Term, Millis)> {
        let mut noted = self.noted.lock();
        let first = noted.first();
        self.agenda.relist(self.table, noted.listed, first);
        noted.listed = first;
        let due = noted.by_time.iter().take_while(|(time, _)| *time <= now);
        let due = due.map(|(time, key)| (key.term().clone(), *time));
        due.take(most).collect()
    }

    /// Checks invariants 2 and 3, and that `has_rows` says so of each key (1). Nobody uses the
    /// table meanwhile.
    #[cfg(test)]
    pub(super) fn check(&self, has_rows: impl Fn(&Term) -> bool) {
        let noted = self.noted.lock();
        assert_eq!(noted.by_key.len(), noted.by_time.len());
        for (time, key) in &noted.by_time {
            assert!(has_rows(key.term()), "{} has no rows", key.term());
            assert_eq!(noted.by_key.get(key), Some(time), "{}", key.term());
        }
        let tables = self.agenda.tables.lock();
        let listed: Vec<_> = tables
            .iter()
            .filter(|(_, table)| *table == self.table)
            .map(|(time, _)| *time)
            .collect();
        assert_eq!(listed, Vec::from_iter(noted.listed));
        if let Some(first) = noted.first() {
            assert!(noted.listed.is_some_and(|listed| listed <= first));
        }
    }
}
