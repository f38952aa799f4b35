//! Counters of snapshots and of what they copied.

use tremula_sync::atomic::{AtomicU64, Ordering::Relaxed};
use tremula_sync::system::Arc;

/// Counters of the snapshots of one server, for `INFO`. They are updated one by one, in no order.
#[derive(Default)]
pub struct Snapshots {
    taken: AtomicU64,
    refused: AtomicU64,
    copied: AtomicU64,
    held: AtomicU64,
}

/// The copies of one snapshot. They count as held until this is dropped.
pub struct Held {
    /// Those that are there now.
    copies: u64,
    /// All that were made.
    copied: u64,
    account: Arc<Snapshots>,
}

impl Snapshots {
    /// Counts a snapshot and its copies.
    #[must_use]
    pub fn hold(self: &Arc<Self>, copies: usize) -> Held {
        let copies = copies as u64;
        self.taken.fetch_add(1, Relaxed);
        self.copied.fetch_add(copies, Relaxed);
        self.held.fetch_add(copies, Relaxed);
        Held {
            copies,
            copied: copies,
            account: Arc::clone(self),
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

impl Held {
    /// Counts further copies: `copied` in all, of which `copies` are there now.
    pub fn goes_on(&mut self, copied: u64, copies: u64) {
        let more = copied.saturating_sub(self.copied);
        self.account.copied.fetch_add(more, Relaxed);
        self.copied += more;
        // Wraps if there are fewer, and so does the sum.
        let difference = copies.wrapping_sub(self.copies);
        self.account.held.fetch_add(difference, Relaxed);
        self.copies = copies;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.held.fetch_sub(self.copies, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_on_the_account_as_long_as_they_are_held() {
        let account = Arc::new(Snapshots::default());
        let figures = || account.figures().map(|(_, value)| value);
        let copies = account.hold(2);
        account.refuse();
        assert_eq!(figures(), [1, 1, 2, 2]);
        drop(copies);
        assert_eq!(figures(), [1, 1, 2, 0]);
        let mut copies = account.hold(0);
        copies.goes_on(10, 4);
        assert_eq!(figures(), [2, 1, 12, 4]);
        copies.goes_on(11, 1);
        assert_eq!(figures(), [2, 1, 13, 1]);
        drop(copies);
        assert_eq!(figures(), [2, 1, 13, 0]);
    }
}
