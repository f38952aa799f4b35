//! User code that panics on demand. Each thread has a fuse, which is burnt by every comparison,
//! clone and reading of the bytes of a [`Fragile`] value and by every call of [`burn`], and which
//! blows at the chosen call.

use std::cell::Cell;
use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tremula_index::ByteKey;

thread_local! {
    /// The calls of user code left before the one that panics.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The payload of the panic of a blown fuse.
struct Blown;

/// Runs `operation` with a fuse for `calls` calls of user code: the next call panics. Returns
/// `None` if it did. Other panics go on.
pub(crate) fn with_fuse<R>(calls: u32, operation: impl FnOnce() -> R) -> Option<R> {
    LEFT.set(Some(calls));
    let outcome = catch_unwind(AssertUnwindSafe(operation));
    LEFT.set(None);
    match outcome {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Blown>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs `work` without burning the fuse that is set.
pub(crate) fn without_fuse<R>(work: impl FnOnce() -> R) -> R {
    let left = LEFT.take();
    let result = work();
    LEFT.set(left);
    result
}

/// A call of user code. Panics without a message if the fuse is set to this call.
pub(crate) fn burn() {
    match LEFT.get() {
        None => {}
        Some(0) => {
            // Code that runs while this panic unwinds must not panic again.
            LEFT.set(None);
            resume_unwind(Box::new(Blown));
        }
        Some(left) => LEFT.set(Some(left - 1)),
    }
}

/// A key or value whose comparisons, clones and byte form burn the fuse.
#[derive(Debug)]
pub(crate) struct Fragile<T>(pub(crate) T);

impl<T: Clone> Clone for Fragile<T> {
    fn clone(&self) -> Self {
        burn();
        Self(self.0.clone())
    }
}

impl<T: Ord> PartialEq for Fragile<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Fragile<T> {}

impl<T: Ord> PartialOrd for Fragile<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for Fragile<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        burn();
        self.0.cmp(&other.0)
    }
}

/// Making the byte form burns the fuse too.
impl<T: ByteKey> ByteKey for Fragile<T> {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        burn();
        self.0.with_bytes(read)
    }
}
