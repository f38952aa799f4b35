//! Key and value types to run the same tests on.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::thread;
use tremula_index::ByteKey;

/// A type whose values are made from numbers, a different one for every number below 65,536.
pub(crate) trait Make: Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The value for `number`. The order of keys need not be the order of their numbers.
    fn make(number: u32) -> Self;
}

/// A key type to test with.
pub(crate) trait Key: Make + Ord {}
impl<K: Make + Ord> Key for K {}

/// A value type to test with.
pub(crate) trait Value: Make {}
impl<V: Make> Value for V {}

impl Make for u64 {
    fn make(number: u32) -> Self {
        number.into()
    }
}

impl Make for String {
    fn make(number: u32) -> Self {
        format!("a key longer than the inline part {number:05}")
    }
}

impl Make for (u8, String) {
    fn make(number: u32) -> Self {
        // The first part makes ties, the second has many lengths.
        ((number % 7) as u8, number.to_string())
    }
}

impl Make for Box<[u8]> {
    fn make(number: u32) -> Self {
        // No bytes for 0, otherwise prefixes of one another.
        let bytes = number.to_be_bytes();
        bytes[number.leading_zeros() as usize / 8..].into()
    }
}

/// The value of no size.
impl Make for () {
    fn make(_: u32) -> Self {}
}

/// A key that yields the processor in the middle of some comparisons. If an operation must be one
/// step and is two, another thread then comes in between, even on few cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dawdler(pub(crate) u64);

impl Dawdler {
    /// One comparison in this many dawdles. A prime, so that all depths of a search are affected.
    const EVERY: u32 = 61;
}

impl Ord for Dawdler {
    fn cmp(&self, other: &Self) -> Ordering {
        thread_local!(static COMPARISONS: Cell<u32> = const { Cell::new(0) });
        let comparisons = COMPARISONS.get().wrapping_add(1);
        COMPARISONS.set(comparisons);
        if comparisons.is_multiple_of(Self::EVERY) {
            thread::yield_now();
        }
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Dawdler {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Dawdler {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Dawdler {}

/// A byte form is made from the number, and dawdles like a comparison.
impl ByteKey for Dawdler {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        // The comparison with itself is only there to dawdle.
        let _ = self.cmp(self);
        self.0.with_bytes(read)
    }
}
