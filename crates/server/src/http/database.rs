//! A database as a map of the page.

use crate::lock::lock;
use crate::server::Shared;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tremula_observe::{KeyInfo, Keys, Leaf, MapInfo, ObservedMap, Sampled, SlowKey};
use tremula_store::{Direction, Key, KeyRange};

/// Commands of the slow log that are searched for keys of a range.
pub(super) const SLOW: usize = 1000;

/// Bytes of a key that a list shows: keys may have half a gigabyte.
const MOST_KEY: usize = 1024;

/// What was sampled of each database and not taken yet.
pub(super) type Samples = Mutex<Vec<Vec<Sampled>>>;

/// A database of the server.
pub(super) struct OfDatabase {
    pub(super) server: Arc<Shared>,
    pub(super) number: usize,
    pub(super) samples: Arc<Samples>,
}

impl ObservedMap for OfDatabase {
    fn info(&self) -> MapInfo {
        let database = self.server.store.database(self.number);
        let engine = database.engine();
        let walked = database
            .walk_parts(&mut |_| ControlFlow::Break(()))
            .is_some();
        MapInfo {
            id: format!("db{}", self.number),
            name: format!("database {}", self.number),
            kind: "database",
            engine: engine.to_owned(),
            keys: database.len() as u64,
            walked,
            reason: (!walked).then(|| {
                format!(
                    "{engine} has no leaves with locks of their own; aspen, b_tree and ca_tree do"
                )
            }),
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)> {
        let database = self.server.store.database(self.number);
        let adapted = database.walk_parts(&mut |part| {
            visit(&Leaf {
                low: part.low.as_ref().map(Key::as_bytes),
                entries: part.entries,
                waits: part.waits,
                acquisitions: part.acquisitions,
                format: part.format,
            })
        })?;
        Some((adapted.splits, adapted.joins))
    }

    fn bytes_at(&self, low: &[u8]) -> Option<u64> {
        let found = self.scan(Bound::Included(low), Bound::Unbounded, 1);
        let (key, value) = found.first()?;
        Some((key.as_bytes().len() + value.len()) as u64)
    }

    fn text(&self, key: &[u8]) -> String {
        text(key)
    }

    fn keys(&self, from: &[u8], to: Option<&[u8]>, limit: usize) -> Result<Keys, String> {
        let high = to.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = self.scan(Bound::Included(from), high, limit + 1);
        let more = found.len() > limit;
        found.truncate(limit);
        let keys = found.iter().map(|(key, value)| KeyInfo {
            text: text(beginning(key.as_bytes())),
            raw: hex(beginning(key.as_bytes())),
            kind: "string".to_owned(),
            size: value.len() as u64,
        });
        Ok(Keys {
            keys: keys.collect(),
            more,
            slow: self.slow(from, to),
        })
    }

    fn take_samples(&self, into: &mut Vec<Sampled>) {
        let mut samples = lock(&self.samples);
        if let Some(own) = samples.get_mut(self.number) {
            into.append(own);
        }
    }
}

impl OfDatabase {
    fn scan(
        &self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        limit: usize,
    ) -> Vec<(Key, tremula_store::Value)> {
        let (low, high) = (low.map(Key::from), high.map(Key::from));
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        let mut found = Vec::new();
        if !range.is_empty() {
            let database = self.server.store.database(self.number);
            database.scan(range, Direction::Ascending, limit, &mut found);
        }
        found
    }

    /// The slow commands whose first key is in a range. The slow log does not say in
    /// which database.
    fn slow(&self, from: &[u8], to: Option<&[u8]>) -> Vec<SlowKey> {
        let entries = self.server.slowlog.newest(SLOW).into_iter();
        let in_range = |key: &[u8]| key >= from && to.is_none_or(|to| key < to);
        let shown = entries.filter_map(|entry| {
            let name = entry.arguments.first()?;
            let command = crate::commands::lookup_full(name)?;
            let key = entry.arguments.get(1)?;
            let has_keys = !command.keys().is_empty();
            (has_keys && in_range(key)).then(|| SlowKey {
                at: millis(entry.time),
                us: micros(entry.took),
                command: text(name),
                key: text(key),
            })
        });
        shown.collect()
    }
}

/// What is shown of a key in a list.
fn beginning(key: &[u8]) -> &[u8] {
    &key[..key.len().min(MOST_KEY)]
}

/// A key for people: its text, or its bytes with escapes.
pub(super) fn text(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
