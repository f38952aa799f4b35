//! Values that count how often they are made and dropped.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use tremula_index::ByteKey;

/// Counts the [`Counted`] values made with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    made: AtomicUsize,
    dropped: AtomicUsize,
    dropped_twice: AtomicUsize,
}

impl Ledger {
    /// A value that this ledger counts.
    pub(crate) fn make<T>(&self, value: T) -> Counted<T> {
        self.0.made.fetch_add(1, Relaxed);
        Counted {
            value,
            alive: AtomicU32::new(ALIVE),
            ledger: self.clone(),
        }
    }

    /// The values that have been made and not dropped yet.
    pub(crate) fn alive(&self) -> usize {
        self.0.made.load(Relaxed) - self.0.dropped.load(Relaxed)
    }

    /// Panics if anything was dropped twice or not at all, or if nothing was made.
    pub(crate) fn assert_settled(&self) {
        assert_eq!(self.0.dropped_twice.load(Relaxed), 0, "dropped twice");
        let (made, dropped) = (self.0.made.load(Relaxed), self.0.dropped.load(Relaxed));
        assert_eq!(made, dropped, "made, dropped");
        assert_ne!(made, 0, "this test counts nothing");
    }
}

/// The mark of a value until it is dropped: a number that freed memory is unlikely to hold.
const ALIVE: u32 = 0x5eed_a11e;

/// A value that its [`Ledger`] counts. It compares like the value inside.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    pub(crate) value: T,
    alive: AtomicU32,
    ledger: Ledger,
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        if self.alive.swap(0, Relaxed) == ALIVE {
            self.ledger.0.dropped.fetch_add(1, Relaxed);
        } else {
            self.ledger.0.dropped_twice.fetch_add(1, Relaxed);
        }
    }
}

impl<T: Clone> Clone for Counted<T> {
    fn clone(&self) -> Self {
        self.ledger.make(self.value.clone())
    }
}

impl<T: PartialEq> PartialEq for Counted<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Counted<T> {}

impl<T: Ord> PartialOrd for Counted<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Counted<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

/// The byte form is that of the value inside. The head is never the key, because the key has to be
/// counted.
impl<T: ByteKey> ByteKey for Counted<T> {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.value.with_bytes(read)
    }
}
