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
    copies: u64,
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
    }
}
