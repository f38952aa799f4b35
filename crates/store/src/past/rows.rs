//! The keys of a range, as records change them.

use crate::effects::record::Recorded;
use crate::{Expiry, Key, Span, Value, Version};
use std::collections::BTreeMap;
use std::ops::Bound;

/// What a row counts as besides its bytes: its place in the map, and what the allocator adds.
const ROW: usize = 128;

/// A value, whose bytes may still grow.
struct Row {
    text: Vec<u8>,
    version: Version,
    expiry: Option<Expiry>,
}

/// Which keys are of interest, apart from the range.
pub(super) type Filter = Box<dyn Fn(&[u8]) -> bool + Send>;

/// The rows of a range at some record.
pub(super) struct Rows {
    span: Span,
    filter: Option<Filter>,
    rows: BTreeMap<Box<[u8]>, Row>,
    bytes: usize,
}

impl Rows {
    pub(super) fn new(span: Span, filter: Option<Filter>) -> Self {
        Self {
            span,
            filter,
            rows: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// What they count as.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }

    /// Whether a key is one of those that are read.
    fn wants(&self, key: &[u8]) -> bool {
        self.span.contains(key) && self.filter.as_ref().is_none_or(|filter| filter(key))
    }

    /// Gives a key a value.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        text: &[u8],
        version: Version,
        expiry: Option<Expiry>,
    ) {
        if self.wants(key) {
            let text = text.to_vec();
            self.insert(
                key,
                Row {
                    text,
                    version,
                    expiry,
                },
            );
        }
    }

    fn insert(&mut self, key: &[u8], row: Row) {
        self.bytes += row.text.capacity();
        match self.rows.get_mut(key) {
            Some(old) => {
                self.bytes -= old.text.capacity();
                *old = row;
            }
            None => {
                self.bytes += key.len() + ROW;
                self.rows.insert(key.into(), row);
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(row) = self.rows.remove(key) {
            self.bytes -= row.text.capacity() + key.len() + ROW;
        }
    }

    /// Makes true what a record says, as a store that applies its log does.
    pub(super) fn apply(&mut self, version: Version, what: &Recorded<'_>) {
        match *what {
            Recorded::Put(key, text, expiry) => self.put(key, text, version, expiry),
            Recorded::Delete(key) => self.remove(key),
            Recorded::Expire(key, expiry) => {
                if let Some(row) = self.rows.get_mut(key) {
                    (row.expiry, row.version) = (expiry, version);
                }
            }
            Recorded::DeleteRange(low, high) => {
                let gone = Span::new(low, high);
                let (low, high) = (Bound::Included(gone.low()), gone.high());
                if gone.is_empty() {
                    return;
                }
                let range = (low, high.map_or(Bound::Unbounded, Bound::Excluded));
                let keys: Vec<Box<[u8]>> = self
                    .rows
                    .range::<[u8], _>(range)
                    .map(|(key, _)| key.clone())
                    .collect();
                keys.iter().for_each(|key| self.remove(key));
            }
            Recorded::Tail(key, offset, bytes) => self.append(key, offset, bytes, version),
        }
    }

    /// Makes a value `bytes` from `offset` on. If it is shorter, a later record replaces it.
    fn append(&mut self, key: &[u8], offset: u64, bytes: &[u8], version: Version) {
        let Some(row) = self.rows.get_mut(key) else {
            return self.put(key, bytes, version, None);
        };
        let before = row.text.capacity();
        row.text
            .truncate(usize::try_from(offset).unwrap_or(usize::MAX));
        row.text.extend_from_slice(bytes);
        row.version = version;
        self.bytes = self.bytes - before + row.text.capacity();
    }

    /// The rows that have not expired at some time, in the order of their keys.
    pub(super) fn into_entries(self, at: Option<Expiry>) -> Vec<(Key, Value)> {
        let is_alive = |row: &Row| match (row.expiry, at) {
            (Some(expiry), Some(at)) => expiry > at,
            _ => true,
        };
        let rows = self.rows.into_iter().filter(|(_, row)| is_alive(row));
        let entries = rows.map(|(key, row)| {
            let mut value = Value::from(row.text).expiring(row.expiry);
            value.stamp(row.version);
            (Key::from(&*key), value)
        });
        entries.collect()
    }
}
