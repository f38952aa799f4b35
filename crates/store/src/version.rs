//! Which change made a value.

use std::cell::Cell;
use std::fmt;
use tremula_sync::system::atomic::{AtomicU64, Ordering::Relaxed};

/// Versions that a thread takes at once, where no log numbers the changes: the counter that all
/// threads share is written once in some thousand changes, and a thread that ends has wasted fewer.
const BLOCK: u64 = 1 << 12;

/// The number of the change that made a value: every change of a key gives its value another one,
/// also if the bytes are the same, and so does every change of the time at which the key expires.
///
/// With a log it is the [`Sequence`](tremula_log::Sequence) of the record that says so. Then
/// versions are ordered as the changes are, over all keys; they outlive a restart; and two values
/// of a key with one version are one value. What a crash has taken from the end of the log had
/// numbers that come again: who acts on a version of which that must not be true waits until its
/// record is durable, as for any effect.
///
/// Without a log it is a number that no other change in this process has had. Threads take
/// these numbers in blocks, so they are *not* ordered: equal or not is all that they say.
///
/// It has 48 bits, which a million changes a second use up in nine years; then it begins anew.
///
/// ```
/// use tremula_store::{Engine, Key, Store, StoreConfig, Value, Version};
///
/// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
/// let (key, database) = (Key::from(&b"tree"[..]), store.database(0));
/// let put = |bytes: &[u8]| {
///     store.commit(|effects| database.insert(effects, key.clone(), Value::from(bytes)))
/// };
/// let version = || database.get(&key).map(|value| value.version());
/// put(b"aspen")?;
/// let first = version();
/// assert_eq!(version(), first);
/// put(b"aspen")?;
/// assert_ne!(version(), first);
/// assert_eq!(Value::from(&b"aspen"[..]).version(), Version::NONE);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u8; Self::BYTES]);

impl Version {
    /// The bytes of a version; they are ordered as the numbers are.
    const BYTES: usize = 6;

    /// The largest number.
    pub const LAST: u64 = (1 << (8 * Self::BYTES)) - 1;

    /// Of a value that was not stored yet. No stored value has it.
    pub const NONE: Self = Self([0; Self::BYTES]);

    /// The version with this number; `None` if it is above [`LAST`](Self::LAST).
    ///
    /// ```
    /// use tremula_store::Version;
    ///
    /// let version = Version::new(17).expect("a small number");
    /// assert_eq!(version.get(), 17);
    /// assert!(version > Version::NONE);
    /// assert_eq!(Version::new(Version::LAST + 1), None);
    /// ```
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        if number > Self::LAST {
            return None;
        }
        Some(Self::wrapping(number))
    }

    /// The version of the change with this number.
    #[inline]
    pub(crate) const fn wrapping(number: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

/// A version that no other call returns.
#[inline]
pub(crate) fn fresh() -> Version {
    tremula_sync::system::thread_local! {
        /// The next one of this thread; none is left if it is a multiple of [`BLOCK`].
        static NEXT: Cell<u64> = const { Cell::new(0) };
    }
    NEXT.with(|next| {
        let mut number = next.get();
        if number.is_multiple_of(BLOCK) {
            number = take_block();
        }
        next.set(number + 1);
        Version::wrapping(number)
    })
}

/// The first number of a block that no other thread takes. Numbers that are multiples of [`BLOCK`]
/// are no versions, so none wraps to [`Version::NONE`].
#[cold]
fn take_block() -> u64 {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the numbers need only be distinct.
    TAKEN.fetch_add(BLOCK, Relaxed) + 1
}

impl fmt::Debug for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Version({})", self.get())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_changes_without_a_log_have_one_version() {
        let take = || -> Vec<Version> {
            let versions = (0..3 * BLOCK).map(|_| fresh());
            versions.collect()
        };
        let all: Vec<Version> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let taken = threads.into_iter().map(|thread| thread.join());
            taken.flat_map(|taken| taken.expect("no panic")).collect()
        });
        assert!(!all.contains(&Version::NONE));
        let distinct: HashSet<Version> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn the_order_is_that_of_the_numbers() {
        let numbers = [0, 1, 255, 256, 1 << 40, Version::LAST];
        for one in numbers {
            for other in numbers {
                let versions = [one, other].map(|number| Version::new(number).expect("48 bits"));
                assert_eq!(versions[0].cmp(&versions[1]), one.cmp(&other));
                assert_eq!(versions[0].get(), one);
            }
        }
    }
}
