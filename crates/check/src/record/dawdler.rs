//! Keys and values that let other threads run in the middle of calls.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;
use std::thread;
use tremula_index::ByteKey;

/// A number that sometimes yields the processor when it is compared, cloned or read byte by byte.
/// If an operation must be one step and is two, another thread then runs in between, even on few
/// cores.
///
/// Only threads that [record](super::record_sessions) dawdle, so filling a map takes no longer. As
/// a key it affects all engines, as a value all that clone values.
pub struct Dawdler(pub u64);

/// One comparison in this many dawdles, on average.
const COMPARISONS: u32 = 24;

/// One clone in this many dawdles, on average. Clones are rarer than comparisons, and happen where
/// results are made: in the middle of scans, and between finding and returning.
const CLONES: u32 = 6;

thread_local! {
    /// The state of this thread's random generator; zero in threads that do not dawdle.
    static STATE: Cell<u32> = const { Cell::new(0) };
}

/// Makes this thread dawdle from now on, with this seed.
pub(super) fn dawdle_from_now_on(seed: usize) {
    STATE.set((seed as u32).wrapping_mul(0x9e37_79b9) | 1);
}

fn one_in(chances: u32) {
    let mut state = STATE.get();
    if state == 0 {
        return;
    }
    // Marsaglia's xorshift, which never reaches zero.
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    STATE.set(state);
    if state.is_multiple_of(chances) {
        thread::yield_now();
    }
}

impl From<u64> for Dawdler {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl From<Dawdler> for u64 {
    fn from(dawdler: Dawdler) -> Self {
        dawdler.0
    }
}

impl fmt::Debug for Dawdler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Clone for Dawdler {
    fn clone(&self) -> Self {
        one_in(CLONES);
        Self(self.0)
    }
}

impl Ord for Dawdler {
    fn cmp(&self, other: &Self) -> Ordering {
        one_in(COMPARISONS);
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
        self.cmp(other).is_eq()
    }
}

impl Eq for Dawdler {}

/// The byte form of the number. Reading it dawdles like a comparison.
impl ByteKey for Dawdler {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        one_in(COMPARISONS);
        self.0.with_bytes(read)
    }
}
