//! Random writes to a store, and a copy that knows only what a watcher is shown.

use rand::RngExt;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::ops::Bound;
use tremula_log::Sequence;
use tremula_store::{
    Direction, Effects, Event, Expiry, Happened, Key, KeyRange, Lifetime, Previous, Span, Store,
    Update, Value,
};

pub(crate) type Entries = BTreeMap<Vec<u8>, (Vec<u8>, Option<Expiry>)>;

pub(crate) fn key(number: u16) -> Key {
    Key::from(&number.to_be_bytes()[..])
}

/// What a watcher makes of what it is shown.
#[derive(Clone, Default, Debug, PartialEq)]
pub(crate) struct Copy {
    pub(crate) entries: Entries,
    /// The sequence of the last event.
    pub(crate) last: Sequence,
    /// The sequence of the last part of the snapshot, once it has been shown.
    pub(crate) complete: Option<Sequence>,
    /// The rows of the snapshot, those of one sequence together.
    pub(crate) parts: Vec<(Sequence, Entries)>,
    /// The sequences of all events.
    pub(crate) seen: Vec<Sequence>,
    /// Whether the log has what was before each change.
    pub(crate) has_previous: bool,
}

impl Copy {
    /// An empty copy of the same store.
    pub(crate) fn like(other: &Self) -> Self {
        Self {
            has_previous: other.has_previous,
            ..Self::default()
        }
    }

    /// Applies an event. Sequences rise: no event comes twice.
    pub(crate) fn apply(&mut self, event: &Event<'_>) {
        let is_row = matches!(event.what, Happened::Row { .. } | Happened::Complete);
        assert!(
            event.sequence > self.last || is_row,
            "{event:?} behind {}",
            self.last
        );
        self.last = self.last.max(event.sequence);
        if !is_row {
            self.seen.push(event.sequence);
            self.check_previous(event);
        }
        match &event.what {
            Happened::Row { key, value, expiry } => {
                let row = (value.to_vec(), *expiry);
                if self
                    .parts
                    .last()
                    .is_none_or(|(ends, _)| *ends < event.sequence)
                {
                    self.parts.push((event.sequence, Entries::new()));
                }
                if let Some((_, rows)) = self.parts.last_mut() {
                    rows.insert(key.to_vec(), row.clone());
                }
                let before = self.entries.insert(key.to_vec(), row);
                assert!(before.is_none(), "the row {key:?} comes twice");
            }
            Happened::Complete => self.complete = Some(event.sequence),
            Happened::Set { key, value, expiry } => {
                self.entries.insert(key.to_vec(), (value.to_vec(), *expiry));
            }
            Happened::Append { key, offset, bytes } => {
                if let Some((value, _)) = self.entries.get_mut(&**key) {
                    let offset = usize::try_from(*offset).expect("an offset");
                    assert!(offset <= value.len(), "bytes are missing before {offset}");
                    value.truncate(offset);
                    value.extend_from_slice(bytes);
                }
            }
            Happened::Expire { key, expiry } => {
                if let Some((_, old)) = self.entries.get_mut(&**key) {
                    *old = *expiry;
                }
            }
            Happened::Remove { key } => {
                self.entries.remove(&**key);
            }
            Happened::RemoveRange { low, high } => {
                let gone =
                    |key: &[u8]| *key >= **low && high.as_ref().is_none_or(|high| *key < **high);
                self.entries.retain(|key, _| !gone(key));
            }
            other => panic!("{other:?} is not known"),
        }
    }

    /// What was before a change is what all events before it have made of its key. What has expired
    /// is not there: its removal may have been shown, or come later.
    fn check_previous(&self, event: &Event<'_>) {
        let (true, Some(key)) = (self.has_previous, event.key()) else {
            assert!(!self.has_previous, "{event:?} is about many keys");
            assert_eq!(event.previous, Previous::Unknown, "{event:?}");
            return;
        };
        let alive = |row: &(Vec<u8>, Option<Expiry>)| {
            let is_alive = row.1.is_none_or(|expiry| expiry > Expiry::now());
            is_alive.then(|| row.clone())
        };
        let shown = match &event.previous {
            Previous::Unknown => panic!("{event:?} without what was before"),
            Previous::Absent => None,
            Previous::Was { value, expiry } => alive(&(value.to_vec(), *expiry)),
        };
        let known = self.entries.get(key).and_then(alive);
        assert_eq!(shown, known, "{event:?}");
    }

    /// What is there at a time.
    pub(crate) fn alive(&self, now: Expiry) -> Entries {
        let mut entries = self.entries.clone();
        entries.retain(|_, (_, expiry)| expiry.is_none_or(|expiry| expiry > now));
        entries
    }
}

/// What the store has of a span, without what has expired.
pub(crate) fn stored(store: &Store, database: usize, span: &Span) -> Entries {
    let mut found = Vec::new();
    let (all, direction) = (KeyRange::all(), Direction::Ascending);
    store
        .database(database)
        .scan(all, direction, usize::MAX, &mut found);
    let values = store.values(database);
    let within = found
        .into_iter()
        .filter(|(key, _)| span.contains(key.as_bytes()));
    let text = |(key, value): (Key, Value)| {
        let text = values.text(&key, &value)?.to_vec();
        Some((key.as_bytes().to_vec(), (text, value.expiry())))
    };
    within.filter_map(text).collect()
}

/// A write of some kind to a database with this number of different keys. Times are long past or
/// far away, so that no test depends on the clock.
pub(crate) fn write(store: &Store, random: &mut SmallRng, number: usize, keys: u16) {
    let database = store.database(number);
    let one = key(random.random_range(0..keys));
    let expiry = match random.random_range(0..8) {
        0 => Expiry::from_millis(random.random_range(1..9)),
        1 => Expiry::from_millis(Expiry::LAST_MILLIS - random.random_range(0..9_u64)),
        _ => None,
    };
    let length = random.random_range(0..60);
    let bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
    let value = Value::from(bytes.clone()).expiring(expiry);
    let commit = |write: &mut dyn FnMut(&mut Effects<'_>)| {
        store
            .commit(|effects| write(effects))
            .expect("a log that takes all");
    };
    let mut entry = Some((one.clone(), value));
    match random.random_range(0..20) {
        0..9 => commit(&mut |effects| {
            let (key, value) = entry.take().expect("one call");
            let old = database.insert(effects, key, value);
            store.values(number).dropped(old);
        }),
        9..12 => commit(&mut |effects| {
            let old = database.remove(effects, &one);
            store.values(number).dropped(old);
        }),
        12..14 => commit(&mut |effects| {
            let values = store.values(number);
            let appended = values.append(effects, one.clone(), &bytes, usize::MAX, usize::MAX);
            appended.expect("no limit");
        }),
        14 => commit(&mut |effects| {
            let values = store.values(number);
            values.update(effects, one.clone(), Lifetime::Kept, &mut |old| {
                let old = old.unwrap_or_default();
                Update::Put(Value::from([old, &bytes[..]].concat()))
            });
        }),
        15 => commit(&mut |effects| {
            database.update_expiry(effects, one.clone(), &mut |_| Update::Put(expiry));
        }),
        16 => {
            let low = random.random_range(0..keys);
            let high = key(low.saturating_add(random.random_range(0..40.min(keys))));
            let low = key(low);
            commit(&mut |effects| {
                let (low, high) = (Bound::Excluded(&low), Bound::Included(&high));
                database.remove_range(effects, low, high);
            });
        }
        17..19 => {
            let entries: Vec<_> = (0..random.random_range(1..5))
                .map(|_| key(random.random_range(0..keys)))
                .map(|key| (key, Value::from(&bytes[..])))
                .collect();
            commit(&mut |effects| {
                for old in database.insert_together(effects, entries.clone()) {
                    store.values(number).dropped(Some(old));
                }
            });
        }
        _ => {
            store.expire(3).expect("a log that takes all");
            store.forward();
        }
    }
}
