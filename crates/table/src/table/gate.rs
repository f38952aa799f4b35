//! The gate of a table: a readers-writer lock for changes, and a sequence lock for lookups.
//!
//! A list insert changes many keys, one after another, and no other thread may see or change the
//! table in between: it takes the gate *exclusively*. An operation that changes one key takes it
//! *shared*, and writes only to a cache line of its own thread for it ([`StatisticsLock`]). An
//! operation that only reads takes no lock: it reads a version before and after, as under a
//! sequence lock, and reads again if an exclusive change ran meanwhile.
//!
//! ```text
//!  reader                        exclusive
//!  version even?     (Acquire)   version <- odd
//!  read the store                change the store, by its locks
//!  version the same? (fence)     version <- even, next   (Release)
//! ```
//!
//! A reader that has seen a part of an exclusive change has synchronized with that thread through
//! the store, so it sees the odd version, or a later one, when it reads the version again. A reader
//! that has seen no part of it read before it. It returns only what an unchanged version confirms,
//! and so never an order of events that the store did not go through.
//!
//! Readers need not exclude shared changes, because each of these is one step of the store.

use tremula_sync::atomic::{AtomicU64, Ordering, fence};
use tremula_sync::{Arc, LockDomain, ReadGuard, StatisticsLock, WriteGuard};

/// Set in the version while a thread holds the gate exclusively.
const EXCLUSIVE: u64 = 1;

/// Set in the version once the table is deleted; it stays set.
const DELETED: u64 = 1 << 63;

/// How many times a reader reads without the lock before it takes the lock.
const READS: usize = 3;

pub(super) struct Gate {
    version: AtomicU64,
    lock: StatisticsLock<()>,
}

/// The table has been deleted.
#[derive(Debug)]
pub(super) struct Deleted;

/// The gate, held exclusively until this is dropped.
pub(super) struct Exclusive<'a> {
    gate: &'a Gate,
    _guard: WriteGuard<'a, ()>,
}

impl Gate {
    pub(super) fn new(domain: &Arc<LockDomain>) -> Self {
        Self {
            version: AtomicU64::new(0),
            lock: StatisticsLock::new((), Arc::clone(domain)),
        }
    }

    /// What `read` returns when no exclusive change ran during it. It may run several times.
    #[inline]
    pub(super) fn read<R>(&self, mut read: impl FnMut() -> R) -> Result<R, Deleted> {
        for _ in 0..READS {
            // Acquire: pairs with the Release writes of `Exclusive`. A reader that sees the new
            // version sees the changes, too.
            let before = self.version.load(Ordering::Acquire);
            if before & DELETED != 0 {
                return Err(Deleted);
            }
            if before & EXCLUSIVE != 0 {
                break;
            }
            let result = read();
            // Acquire: all that `read` reads comes before the second load of the version. Pairs
            // with the Release fence in `exclusive`: if `read` has seen a change of a thread that
            // holds the gate exclusively, the load sees that thread's odd version or a later one.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == before {
                return Ok(result);
            }
        }
        let _guard = self.shared()?;
        Ok(read())
    }

    /// Takes the gate shared: until the guard is dropped no thread holds it exclusively.
    #[inline]
    pub(super) fn shared(&self) -> Result<ReadGuard<'_, ()>, Deleted> {
        let guard = self.lock.read();
        if self.is_deleted() {
            return Err(Deleted);
        }
        Ok(guard)
    }

    /// Takes the gate exclusively: waits until no other thread holds it.
    pub(super) fn exclusive(&self) -> Result<Exclusive<'_>, Deleted> {
        let guard = self.lock.write();
        // Relaxed, here and in `drop`: only the thread that holds the lock changes the version.
        let version = self.version.load(Ordering::Relaxed);
        if version & DELETED != 0 {
            return Err(Deleted);
        }
        self.version.store(version | EXCLUSIVE, Ordering::Relaxed);
        // Release: pairs with the Acquire fence in `read`. A reader that sees one of the changes
        // that follow sees this store, too, because each change ends by releasing a lock of the
        // store.
        fence(Ordering::Release);
        Ok(Exclusive {
            gate: self,
            _guard: guard,
        })
    }

    /// Whether a thread holds the gate exclusively now.
    #[inline]
    pub(super) fn is_exclusive(&self) -> bool {
        self.version.load(Ordering::Relaxed) & EXCLUSIVE != 0
    }

    #[inline]
    pub(super) fn is_deleted(&self) -> bool {
        self.version.load(Ordering::Acquire) & DELETED != 0
    }
}

impl Exclusive<'_> {
    /// Marks the table as deleted: from now on the gate refuses every thread.
    pub(super) fn delete(&self) {
        self.gate.version.fetch_or(DELETED, Ordering::Release);
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        let version = self.gate.version.load(Ordering::Relaxed);
        let next = (version & !EXCLUSIVE).wrapping_add(2) & !DELETED | version & DELETED;
        // Release: pairs with the first load in `read`.
        self.gate.version.store(next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tremula_sync::StatisticsConfig;

    fn gate() -> Gate {
        Gate::new(&Arc::new(LockDomain::new(StatisticsConfig::default())))
    }

    #[test]
    fn a_read_that_somebody_came_into_is_read_again() {
        let gate = gate();
        let mut reads = 0;
        let seen = gate.read(|| {
            reads += 1;
            if reads == 1 {
                drop(gate.exclusive().unwrap());
            }
            reads
        });
        assert_eq!(seen.unwrap(), 2);
    }

    #[test]
    fn a_deleted_table_lets_nobody_in() {
        let gate = gate();
        gate.exclusive().unwrap().delete();
        assert!(gate.read(|| ()).is_err());
        assert!(gate.shared().is_err());
        assert!(gate.exclusive().is_err());
    }

    /// Fails if a reader sees the two numbers differ: an exclusive change sets them one after the
    /// other.
    #[test]
    fn nobody_sees_a_half_made_change() {
        let gate = gate();
        let numbers = [AtomicUsize::new(0), AtomicUsize::new(0)];
        const CHANGES: usize = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for change in 1..=CHANGES {
                    let _exclusive = gate.exclusive().unwrap();
                    numbers[0].store(change, Ordering::Release);
                    numbers[1].store(change, Ordering::Release);
                }
            });
            scope.spawn(|| {
                loop {
                    let read = || numbers.each_ref().map(|n| n.load(Ordering::Acquire));
                    let [one, two] = gate.read(read).unwrap();
                    assert_eq!(one, two);
                    if one == CHANGES {
                        break;
                    }
                }
            });
        });
    }
}
