//! Maps that are each wrong in one way: a correct map with a flaw around it.
//!
//! The flaws do nothing to be noticed: where one step is two, only the schedule and the dawdling of
//! keys and values let another thread come in between.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tremula_check::map::{Kind, Operation, Response, Span};
use tremula_check::record::{Dawdler, Indexed, Subject};
use tremula_index::{Direction, Locked};

/// What is wrong with a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A scan reads the lower and the upper half of its range one after the other.
    ScanInHalves,
    /// A scan looks up the value of each entry that it has found.
    SnapshotThenValues,
    /// An update reads, decides and inserts.
    UpdateInTwoSteps,
    /// An insertion if absent first looks, and then inserts.
    InsertIfAbsentInTwoSteps,
    /// Many entries are inserted one by one.
    InsertManyOneByOne,
    /// A range is removed key by key.
    RemoveRangeKeyByKey,
    /// A pop looks at the first entry, and returns it even if another thread has removed it
    /// meanwhile.
    PopWithoutLooking,
    /// The first key is found, and its value is looked up afterwards.
    FirstThenGet,
    /// `next` goes up key by key.
    NextByProbing,
    /// A lookup may answer with what a lookup a few calls ago found.
    StaleCache,
    /// An insertion over an old value removes it first.
    InsertThroughAbsence,
    /// A removal marks the key, and removes it later, after it has returned.
    RemoveLater,
    /// Some writes are dropped.
    LostInsert,
    /// A counter beside the map is read before a write, and written after it.
    CounterLosesUpdates,
    /// A range visits a key twice where it continues after a batch.
    RangeRepeats,
}

impl Flaw {
    pub(crate) const ALL: [Self; 15] = [
        Self::ScanInHalves,
        Self::SnapshotThenValues,
        Self::UpdateInTwoSteps,
        Self::InsertIfAbsentInTwoSteps,
        Self::InsertManyOneByOne,
        Self::RemoveRangeKeyByKey,
        Self::PopWithoutLooking,
        Self::FirstThenGet,
        Self::NextByProbing,
        Self::StaleCache,
        Self::InsertThroughAbsence,
        Self::RemoveLater,
        Self::LostInsert,
        Self::CounterLosesUpdates,
        Self::RangeRepeats,
    ];

    /// The flaws that show in the calls on single keys.
    pub(crate) const IN_ONE_KEY: [Self; 6] = [
        Self::UpdateInTwoSteps,
        Self::InsertIfAbsentInTwoSteps,
        Self::StaleCache,
        Self::InsertThroughAbsence,
        Self::RemoveLater,
        Self::LostInsert,
    ];
}

/// A map with a flaw.
pub(crate) struct Broken {
    flaw: Flaw,
    inner: Indexed<Dawdler, Dawdler, Locked<Dawdler, Dawdler>>,
    /// The number of calls so far, by which some flaws choose when to show.
    calls: AtomicU64,
    /// Earlier lookups, or removals yet to be done.
    remembered: Mutex<Vec<(u64, Option<u64>)>>,
    /// A length beside the map.
    len: AtomicU64,
}

impl Broken {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            inner: Indexed::new(Locked::new()),
            calls: AtomicU64::new(0),
            remembered: Mutex::default(),
            len: AtomicU64::new(0),
        }
    }

    fn get(&self, key: u64) -> Option<u64> {
        match self.inner.call(&Operation::Get(key)) {
            Response::Value(value) => value,
            other => panic!("{other}"),
        }
    }

    fn entry(&self, operation: Operation) -> Option<(u64, u64)> {
        match self.inner.call(&operation) {
            Response::Entry(entry) => entry,
            other => panic!("{other}"),
        }
    }

    fn entries(&self, operation: Operation) -> Vec<(u64, u64)> {
        match self.inner.call(&operation) {
            Response::Entries(entries) => entries,
            other => panic!("{other}"),
        }
    }

    /// Whether this is one of every `calls` calls.
    fn every(&self, calls: u64) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % calls == calls - 1
    }

    fn scan_in_halves(&self, span: Span, way: Direction, limit: usize) -> Vec<(u64, u64)> {
        let keys = self.entries(Operation::Scan(span, way, limit));
        let Some(&(middle, _)) = keys.get(keys.len() / 2) else {
            return keys;
        };
        let below = Span {
            high: std::ops::Bound::Excluded(middle),
            ..span
        };
        let above = Span {
            low: std::ops::Bound::Included(middle),
            ..span
        };
        let halves = match way {
            Direction::Ascending => [below, above],
            Direction::Descending => [above, below],
        };
        let mut entries = self.entries(Operation::Scan(halves[0], way, limit));
        let left = limit - entries.len();
        entries.extend(self.entries(Operation::Scan(halves[1], way, left)));
        entries
    }

    /// The flawed answer to an operation; `None` if the flaw does not affect it.
    fn flawed(&self, operation: &Operation) -> Option<Response> {
        use Flaw as F;
        use Operation as O;
        Some(match (self.flaw, operation.clone()) {
            (F::ScanInHalves, O::Scan(span, way, limit)) => {
                Response::Entries(self.scan_in_halves(span, way, limit))
            }
            (F::ScanInHalves, O::Snapshot(span)) => {
                Response::Entries(self.scan_in_halves(span, Direction::Ascending, usize::MAX))
            }
            (F::SnapshotThenValues, O::Snapshot(span)) => {
                let found = self.entries(O::Snapshot(span));
                let again = |(key, _)| Some((key, self.get(key)?));
                Response::Entries(found.into_iter().filter_map(again).collect())
            }
            (F::UpdateInTwoSteps, O::Update(key, change)) => {
                let shown = self.get(key);
                let returned = match change.decide(shown) {
                    tremula_index::Update::Put(value) => {
                        self.inner.call(&O::Insert(key, value));
                        shown
                    }
                    tremula_index::Update::Keep => None,
                    tremula_index::Update::Remove => {
                        self.inner.call(&O::Remove(key));
                        shown
                    }
                };
                Response::Updated {
                    shown: vec![shown],
                    returned,
                }
            }
            (F::InsertIfAbsentInTwoSteps, O::InsertIfAbsent(key, value)) => {
                let absent = self.get(key).is_none();
                if absent {
                    self.inner.call(&O::Insert(key, value));
                }
                Response::Flag(absent)
            }
            (F::InsertManyOneByOne, O::InsertMany(entries)) => {
                for &(key, value) in entries.iter() {
                    self.inner.call(&O::Insert(key, value));
                }
                Response::Done
            }
            (F::RemoveRangeKeyByKey, O::RemoveRange(span)) => {
                let keys = self.entries(O::Snapshot(span));
                let removed = keys
                    .iter()
                    .filter(|(key, _)| self.inner.call(&O::Remove(*key)) != Response::Value(None));
                Response::Count(removed.count())
            }
            (F::PopWithoutLooking, O::PopFirst) => {
                let entry = self.entry(O::First);
                if let Some((key, _)) = entry {
                    self.inner.call(&O::Remove(key));
                }
                Response::Entry(entry)
            }
            (F::FirstThenGet, O::First) => {
                let first = self.entry(O::First);
                Response::Entry(first.and_then(|(key, _)| Some((key, self.get(key)?))))
            }
            (F::NextByProbing, O::Next(key)) => {
                let keys = self.entries(O::Snapshot(Span::ALL));
                let above = keys.into_iter().filter(|&(other, _)| other > key);
                let mut present = above.filter_map(|(key, _)| Some((key, self.get(key)?)));
                Response::Entry(present.next())
            }
            (F::StaleCache, O::Get(key)) => {
                let now = self.get(key);
                let mut remembered = self.remembered.lock().unwrap();
                let old = remembered.iter().find(|(other, _)| *other == key).copied();
                remembered.retain(|(other, _)| *other != key);
                remembered.push((key, now));
                drop(remembered);
                let stale = self.every(4);
                Response::Value(old.filter(|_| stale).map_or(now, |(_, value)| value))
            }
            (F::InsertThroughAbsence, O::Insert(key, value)) => {
                let old = self.inner.call(&O::Remove(key));
                self.inner.call(&O::Insert(key, value));
                old
            }
            (F::RemoveLater, O::Remove(key)) => {
                let value = self.get(key);
                let mut later = self.remembered.lock().unwrap();
                let due = std::mem::take(&mut *later);
                later.push((key, value));
                drop(later);
                for (key, _) in due {
                    self.inner.call(&O::Remove(key));
                }
                Response::Value(value)
            }
            (F::LostInsert, O::Insert(key, _)) if self.every(64) => Response::Value(self.get(key)),
            (F::CounterLosesUpdates, O::Insert(..) | O::Remove(_)) => {
                let len = self.len.load(Ordering::SeqCst);
                let response = self.inner.call(operation);
                let found = response != Response::Value(None);
                let change = match (operation.kind(), found) {
                    (Kind::Insert, false) => 1,
                    (Kind::Remove, true) => u64::MAX,
                    _ => 0,
                };
                self.len.store(len.wrapping_add(change), Ordering::SeqCst);
                response
            }
            (F::CounterLosesUpdates, O::Len) => {
                Response::Count(self.len.load(Ordering::SeqCst) as usize)
            }
            (F::RangeRepeats, O::Range(span, way, limit)) if limit > 4 => {
                let mut entries = self.entries(O::Range(span, way, limit));
                if let Some(&third) = entries.get(2)
                    && self.every(2)
                {
                    entries.insert(3, third);
                    entries.truncate(limit);
                }
                Response::Entries(entries)
            }
            _ => return None,
        })
    }
}

impl Subject for Broken {
    fn offers(&self, kind: Kind) -> bool {
        // Only the operations that the flawed counter counts.
        match self.flaw {
            Flaw::CounterLosesUpdates => matches!(
                kind,
                Kind::Get | Kind::Insert | Kind::Remove | Kind::Scan | Kind::Len
            ),
            Flaw::InsertManyOneByOne => true,
            // With `StaleCache` only `get` uses the cache; one kind of lookup suffices.
            _ => self.inner.offers(kind),
        }
    }

    fn call(&self, operation: &Operation) -> Response {
        self.flawed(operation)
            .unwrap_or_else(|| self.inner.call(operation))
    }
}
