//! Counters of snapshots and of what they copied.

use crate::{Key, Value};
use tremula_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the snapshots of one server, for `INFO`. They are updated one by one, in no order.
#[derive(Default)]
pub struct Snapshots {
    taken: AtomicU64,
    refused: AtomicU64,
    copied: AtomicU64,
    held: AtomicU64,
}

/// The copies of one snapshot. They count as held until they are dropped.
pub struct Copies<'a> {
    entries: Vec<(Key, Value)>,
    account: &'a Snapshots,
}

impl Snapshots {
    /// Counts a snapshot and its copies.
    pub fn hold(&self, entries: Vec<(Key, Value)>) -> Copies<'_> {
        let count = entries.len() as u64;
        self.taken.fetch_add(1, Relaxed);
        self.copied.fetch_add(count, Relaxed);
        self.held.fetch_add(count, Relaxed);
        Copies {
            entries,
            account: self,
        }
    }

    /// Counts a snapshot that was refused because of its length.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Names and values of the counters.
    pub fn figures(&self) -> [(&'static str, u64); 4] {
        [
            ("snapshots_taken", self.taken.load(Relaxed)),
            ("snapshots_refused", self.refused.load(Relaxed)),
            ("snapshot_keys_copied", self.copied.load(Relaxed)),
            ("snapshot_keys_held", self.held.load(Relaxed)),
        ]
    }
}

impl Copies<'_> {
    /// The copies, in the order of the scan.
    #[must_use]
    pub fn entries(&self) -> &[(Key, Value)] {
        &self.entries
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        let count = self.entries.len() as u64;
        self.account.held.fetch_sub(count, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_on_the_account_as_long_as_they_are_held() {
        let account = Snapshots::default();
        let figures = || account.figures().map(|(_, value)| value);
        let entry = (Key::from(&b"k"[..]), Value::from(&b"v"[..]));
        let copies = account.hold(vec![entry.clone(), entry]);
        account.refuse();
        assert_eq!(figures(), [1, 1, 2, 2]);
        drop(copies);
        assert_eq!(figures(), [1, 1, 2, 0]);
    }
}
