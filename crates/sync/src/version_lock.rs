//! The optimistic lock: readers note a version, read, and validate; only writers write it.

use crate::Backoff;
use crate::atomic::{AtomicU64, Ordering, fence};
use std::fmt;

/// Set when the node that the lock guards is unlinked: for good, or until the node is used again.
const OBSOLETE: u64 = 0b01;
/// Set while a writer holds the lock.
const LOCKED: u64 = 0b10;
/// Set, beside `LOCKED`, while no thread holds the lock that was left locked.
const LEFT: u64 = 0b100;
/// What one change adds to the version.
const STEP: u64 = 0b1000;

/// An attempt has met a change, and must begin again.
///
/// The idiom is a function that makes one attempt and returns `Result<T, Restart>`, with `?` after
/// each step, called in a loop by [`retry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart;

/// Runs `attempt` until it succeeds. After each [`Restart`] it calls `restarted` and waits, a
/// little longer each time.
///
/// ```
/// use tremula_sync::{Restart, VersionLock, retry};
///
/// let lock = VersionLock::new();
/// let seen = retry(|| {
///     let version = lock.read()?;
///     let value = 42; // read something that the lock guards
///     lock.validate(version)?;
///     Ok(value)
/// }, || ());
/// assert_eq!(seen, 42);
/// ```
#[inline]
pub fn retry<T>(mut attempt: impl FnMut() -> Result<T, Restart>, restarted: impl Fn()) -> T {
    // The first attempt nearly always succeeds, so the back-off is set up only after it fails.
    if let Ok(done) = attempt() {
        return done;
    }
    retry_slowly(attempt, restarted)
}

#[cold]
fn retry_slowly<T>(mut attempt: impl FnMut() -> Result<T, Restart>, restarted: impl Fn()) -> T {
    let backoff = Backoff::new();
    loop {
        restarted();
        backoff.wait();
        if let Ok(done) = attempt() {
            return done;
        }
    }
}

/// A version of what a [`VersionLock`] guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// How often what the lock guards had changed at this version.
    #[must_use]
    pub const fn changes(self) -> u64 {
        self.0 / STEP
    }
}

/// A lock whose readers write nothing: they note its version, read what it guards, and validate
/// that the version is still the same. Writers exclude one another and change the version.
///
/// Until it has validated, a reader may see a mixture of old and new. So everything that the lock
/// guards is an atomic, read and written with `Relaxed`. A reader follows a pointer among them only
/// after validation, and a [collector](crate::reclaim::Collector) keeps what the pointer leads to.
///
/// The lock is one word: an *obsolete* bit (the guarded node has been unlinked, so every thread
/// that reaches it restarts), a *locked* bit, a *left* bit (it stays locked until somebody takes it
/// over, so nobody waits for it), and a version of 61 bits, which does not wrap within a century.
/// Waiting threads spin, then yield the core.
///
/// Source: Leis, Scheibner, Kemper, Neumann, "The ART of practical synchronization", DaMoN 2016.
///
/// ```
/// use tremula_sync::VersionLock;
///
/// let lock = VersionLock::new();
/// let version = lock.read().unwrap();
/// drop(lock.upgrade(version).unwrap()); // somebody writes
/// assert!(lock.validate(version).is_err());
/// ```
#[repr(transparent)]
pub struct VersionLock {
    word: AtomicU64,
}

impl VersionLock {
    /// A lock that is free.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// A lock that is obsolete, for a node that is not in use yet.
    #[must_use]
    pub fn new_obsolete() -> Self {
        Self {
            word: AtomicU64::new(OBSOLETE),
        }
    }

    /// Locks an obsolete lock, for a node that comes to use again where it is. Its earlier versions
    /// stay invalid.
    ///
    /// # Panics
    ///
    /// If the lock is not obsolete. Of the threads that know of the node, only one may call this.
    pub fn renew(&self) -> VersionGuard<'_> {
        // Acquire: pairs with the Release of the thread that unlinked the node.
        let word = self.word.load(Ordering::Acquire);
        assert!(word & OBSOLETE != 0, "a node that is in use is not renewed");
        let version = Version(word & !OBSOLETE);
        // No other thread writes an obsolete lock. Relaxed: as the lock bit in `upgrade`, which the
        // fence in `locked` orders before what is written next.
        self.word.store(version.0 | LOCKED, Ordering::Relaxed);
        self.locked(version)
    }

    /// The current version, to validate against later. Waits while a writer holds the lock, so a
    /// thread that holds another version lock must not call it; [`try_lock`](Self::try_lock) does
    /// not wait.
    ///
    /// # Errors
    ///
    /// [`Restart`] if the lock is obsolete or was [left](VersionGuard::leave).
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn read(&self) -> Result<Version, Restart> {
        // Acquire: pairs with the Release of the writer that made this version: what it wrote, and
        // what its pointers lead to, is visible from here on.
        let word = self.word.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) == 0 {
            return Ok(Version(word));
        }
        self.read_slowly()
    }

    /// The current version, if no writer holds the lock. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Restart`] if the lock is held or obsolete.
    #[inline(always)]
    #[cfg_attr(sim, track_caller)]
    pub fn try_read(&self) -> Result<Version, Restart> {
        // Acquire: as in `read`.
        let word = self.word.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) == 0 {
            Ok(Version(word))
        } else {
            Err(Restart)
        }
    }

    #[cold]
    #[cfg_attr(sim, track_caller)]
    fn read_slowly(&self) -> Result<Version, Restart> {
        let backoff = Backoff::new();
        loop {
            // Acquire: as in `read`.
            let word = self.word.load(Ordering::Acquire);
            if word & (OBSOLETE | LEFT) != 0 {
                return Err(Restart);
            }
            if word & LOCKED == 0 {
                return Ok(Version(word));
            }
            backoff.wait();
        }
    }

    /// Checks that everything read since `version` was noted belongs to that version.
    ///
    /// # Errors
    ///
    /// [`Restart`] if a writer has come in between: the caller must discard what it read.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn validate(&self, version: Version) -> Result<(), Restart> {
        // Acquire fence: pairs with the Release fence in `locked`. If any of the reads before it
        // saw what a writer wrote, the load below sees that writer's lock bit or a later word.
        fence(Ordering::Acquire);
        if self.word.load(Ordering::Relaxed) == version.0 {
            Ok(())
        } else {
            Err(Restart)
        }
    }

    /// Locks, if the version is still `version`. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Restart`] if a writer has come in between, or holds the lock.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn upgrade(&self, version: Version) -> Result<VersionGuard<'_>, Restart> {
        // Acquire: pairs with the Release of the last writer. The reads since `version` are valid,
        // because a lock bit set in between would have changed the word.
        self.word
            .compare_exchange(
                version.0,
                version.0 | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .map_err(|_| Restart)?;
        Ok(self.locked(version))
    }

    /// Locks, if no thread holds the lock. Does not wait.
    ///
    /// # Errors
    ///
    /// [`Restart`] if the lock is held or obsolete, or another thread takes it first.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn try_lock(&self) -> Result<VersionGuard<'_>, Restart> {
        let word = self.word.load(Ordering::Relaxed);
        if word & (LOCKED | OBSOLETE) != 0 {
            return Err(Restart);
        }
        self.upgrade(Version(word))
    }

    /// Locks, and waits for the holder if there is one. Threads that hold several locks must all
    /// take them in the same order.
    ///
    /// # Errors
    ///
    /// [`Restart`] if the lock is obsolete or was [left](VersionGuard::leave).
    #[cfg_attr(sim, track_caller)]
    pub fn lock(&self) -> Result<VersionGuard<'_>, Restart> {
        loop {
            let version = self.read()?;
            if let Ok(guard) = self.upgrade(version) {
                return Ok(guard);
            }
        }
    }

    /// Takes over a lock that was [left](VersionGuard::leave) locked.
    ///
    /// # Panics
    ///
    /// If the lock was not left. Only one thread may call this, and it must know by other means
    /// that the lock was left, and that what the thread that left it wrote has become visible.
    pub fn take_over(&self) -> VersionGuard<'_> {
        let word = self.word.load(Ordering::Relaxed);
        assert!(word & LEFT != 0, "a lock that is free is not taken over");
        // The thread that left the lock has set the lock bit, and its fence stands behind that.
        self.word.store(word & !LEFT, Ordering::Relaxed);
        VersionGuard {
            lock: self,
            version: Version(word & !(LOCKED | LEFT)),
        }
    }

    /// How often what the lock guards has changed, without the change that is under way. Does not
    /// wait.
    #[must_use]
    #[cfg_attr(sim, track_caller)]
    pub fn changes(&self) -> u64 {
        // Relaxed: the number orders nothing.
        Version(self.word.load(Ordering::Relaxed)).changes()
    }

    /// Whether the lock has been made obsolete.
    #[must_use]
    #[cfg_attr(sim, track_caller)]
    pub fn is_obsolete(&self) -> bool {
        self.word.load(Ordering::Relaxed) & OBSOLETE != 0
    }

    /// Whether a thread that waits for the lock will get it: it is neither obsolete nor
    /// [left](VersionGuard::leave).
    #[must_use]
    pub fn is_worth_a_wait(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (OBSOLETE | LEFT) == 0
    }

    fn locked(&self, version: Version) -> VersionGuard<'_> {
        // Release fence: pairs with the Acquire fence in `validate`.
        fence(Ordering::Release);
        VersionGuard {
            lock: self,
            version,
        }
    }
}

impl Default for VersionLock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VersionLock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        out.debug_struct("VersionLock")
            .field("version", &(word / STEP))
            .field("locked", &(word & LOCKED != 0))
            .field("obsolete", &(word & OBSOLETE != 0))
            .finish()
    }
}

/// A held [`VersionLock`]. Dropping it unlocks and changes the version, also when a panic unwinds:
/// then readers only read again, which is never wrong.
#[must_use = "dropping the guard unlocks"]
#[derive(Debug)]
pub struct VersionGuard<'a> {
    lock: &'a VersionLock,
    /// The version when the lock was taken.
    version: Version,
}

impl VersionGuard<'_> {
    /// How often what the lock guards had changed when the lock was taken.
    #[must_use]
    #[cfg_attr(sim, track_caller)]
    pub fn changes(&self) -> u64 {
        self.version.changes()
    }

    /// Unlocks without changing the version. The holder must have written nothing that readers can
    /// see.
    pub fn unchanged(self) {
        let before = self.version.0;
        self.unlock(before);
    }

    /// Leaves the lock locked, for a thread that will [take it over](VersionLock::take_over).
    /// Nobody waits for it until then.
    pub fn leave(self) {
        let before = self.version.0;
        self.unlock(before | LOCKED | LEFT);
    }

    /// Unlocks for the last time: the node that the lock guards has been unlinked. Every thread
    /// that waits for the lock, or has noted a version of it, restarts.
    pub fn obsolete(self) {
        let after = self.version.0 + STEP;
        self.unlock(after | OBSOLETE);
    }

    fn unlock(self, word: u64) {
        let lock = self.lock;
        std::mem::forget(self);
        // Release: pairs with the Acquire of the threads that read this version or lock next.
        lock.word.store(word, Ordering::Release);
    }
}

impl Drop for VersionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: as in `unlock`.
        self.lock
            .word
            .store(self.version.0 + STEP, Ordering::Release);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_valid_until_something_is_written() {
        let lock = VersionLock::new();
        let version = lock.read().unwrap();
        lock.validate(version).unwrap();
        lock.upgrade(version).unwrap().unchanged();
        lock.validate(version).unwrap();
        assert_eq!(lock.try_read(), Ok(version));
        let guard = lock.upgrade(version).unwrap();
        assert_eq!(guard.changes(), 0);
        assert_eq!(lock.validate(version), Err(Restart));
        assert_eq!(lock.try_read(), Err(Restart));
        assert!(lock.upgrade(version).is_err() && lock.try_lock().is_err());
        drop(guard);
        assert_eq!(lock.validate(version), Err(Restart));
        assert!(lock.upgrade(version).is_err());
        drop(lock.try_lock().unwrap());
        drop(lock.lock().unwrap());
    }

    #[test]
    fn an_obsolete_lock_refuses_everyone() {
        let lock = VersionLock::new();
        let version = lock.read().unwrap();
        lock.lock().unwrap().obsolete();
        assert!(lock.is_obsolete());
        assert_eq!(lock.read(), Err(Restart));
        assert_eq!(lock.validate(version), Err(Restart));
        assert!(lock.upgrade(version).is_err() && lock.try_lock().is_err());
        assert!(lock.lock().is_err());
    }

    #[test]
    fn a_renewed_lock_accepts_no_earlier_version() {
        let lock = VersionLock::new_obsolete();
        assert_eq!(lock.read(), Err(Restart));
        drop(lock.renew());
        let first = lock.read().unwrap();
        lock.lock().unwrap().obsolete();
        let renewed = lock.renew();
        assert!(!lock.is_obsolete() && lock.try_lock().is_err());
        drop(renewed);
        assert_eq!(lock.validate(first), Err(Restart));
        assert!(lock.upgrade(first).is_err());
        lock.validate(lock.read().unwrap()).unwrap();
    }

    #[test]
    fn a_lock_that_was_left_is_locked_until_it_is_taken_over() {
        let lock = VersionLock::new();
        let version = lock.read().unwrap();
        lock.try_lock().unwrap().leave();
        assert!(lock.try_lock().is_err() && lock.validate(version).is_err());
        assert!(!lock.is_worth_a_wait() && lock.read().is_err() && lock.lock().is_err());
        let guard = lock.take_over();
        assert!(lock.is_worth_a_wait() && lock.try_read().is_err());
        guard.unchanged();
        lock.validate(version).unwrap();
        lock.try_lock().unwrap().leave();
        drop(lock.take_over());
        assert_eq!(lock.read().unwrap().changes(), 1);
    }

    #[test]
    #[should_panic(expected = "is free")]
    fn a_free_lock_is_not_taken_over() {
        drop(VersionLock::new().take_over());
    }

    #[test]
    #[should_panic(expected = "in use")]
    fn a_lock_that_is_in_use_is_not_renewed() {
        drop(VersionLock::new().renew());
    }

    #[test]
    fn a_retried_attempt_is_made_until_it_succeeds() {
        let tries = std::cell::Cell::new(0);
        let told = std::cell::Cell::new(0);
        let attempt = || {
            tries.set(tries.get() + 1);
            if tries.get() < 4 {
                Err(Restart)
            } else {
                Ok(tries.get())
            }
        };
        assert_eq!(retry(attempt, || told.set(told.get() + 1)), 4);
        assert_eq!(told.get(), 3);
    }
}
