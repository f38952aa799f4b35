//! What makes a list insert one step for everybody else, and lookups free of locks.
//!
//! A list insert changes many keys, one after another, and nobody may see, or do, anything in
//! between. So it goes through the gate *alone*; an operation that changes one key goes through
//! *shared*, which costs it a line of its own thread ([`StatisticsLock`]). An operation that only
//! reads takes no lock: it reads a version before and after, as under a sequence lock, and reads
//! again if somebody was, or had been, alone meanwhile.
//!
//! ```text
//!  reader                        alone
//!  version even?     (Acquire)   version <- odd
//!  read the store                change the store, by its locks
//!  version the same? (fence)     version <- even, next   (Release)
//! ```
//!
//! A reader that has seen a change made alone has synchronized with it through the store, so that
//! it must see the odd version, or a later one, when it looks again. One that has seen no such
//! change came before. Only what has come through the gate is made known, so no order of events is
//! seen that the store did not go through.
//!
//! Readers need not keep out single changes: each of these is one step of the store.

use tremula_sync::atomic::{AtomicU64, Ordering, fence};
use tremula_sync::{Arc, LockDomain, ReadGuard, StatisticsLock, WriteGuard};

/// Set in the version while somebody is alone.
const ALONE: u64 = 1;

/// Set in the version for ever once the table is deleted.
const DELETED: u64 = 1 << 63;

/// Times that a reader looks at the version before it waits for its turn at the lock.
const READS: usize = 3;

/// The gate of one table.
pub(super) struct Gate {
    version: AtomicU64,
    lock: StatisticsLock<()>,
}

/// The table has been deleted.
#[derive(Debug)]
pub(super) struct Deleted;

/// Somebody is alone until this is dropped.
pub(super) struct Alone<'a> {
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

    /// What `read` gives when nobody was alone during it. It may run several times.
    #[inline]
    pub(super) fn read<R>(&self, mut read: impl FnMut() -> R) -> Result<R, Deleted> {
        for _ in 0..READS {
            // Acquire: pairs with the Release stores of `Alone`, whose changes are to be seen.
            let before = self.version.load(Ordering::Acquire);
            if before & DELETED != 0 {
                return Err(Deleted);
            }
            if before & ALONE != 0 {
                break;
            }
            let result = read();
            // What was read is read before the version is, for the second time.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == before {
                return Ok(result);
            }
        }
        let _guard = self.shared()?;
        Ok(read())
    }

    /// Waits until nobody is alone and lets nobody be until the guard is dropped.
    #[inline]
    pub(super) fn shared(&self) -> Result<ReadGuard<'_, ()>, Deleted> {
        let guard = self.lock.read();
        if self.is_deleted() {
            return Err(Deleted);
        }
        Ok(guard)
    }

    /// Waits until everybody else is out, and keeps them out.
    pub(super) fn alone(&self) -> Result<Alone<'_>, Deleted> {
        let guard = self.lock.write();
        // Relaxed, here and below: changed under the lock only.
        let version = self.version.load(Ordering::Relaxed);
        if version & DELETED != 0 {
            return Err(Deleted);
        }
        self.version.store(version | ALONE, Ordering::Relaxed);
        // The changes that follow are made after this store for whoever sees them: each ends with
        // the release of a lock of the store.
        fence(Ordering::Release);
        Ok(Alone {
            gate: self,
            _guard: guard,
        })
    }

    #[inline]
    pub(super) fn is_deleted(&self) -> bool {
        self.version.load(Ordering::Acquire) & DELETED != 0
    }
}

impl Alone<'_> {
    /// Deletes the table: whoever comes to the gate from now on is turned away.
    pub(super) fn delete(&self) {
        self.gate.version.fetch_or(DELETED, Ordering::Release);
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        let version = self.gate.version.load(Ordering::Relaxed);
        let next = (version & !ALONE).wrapping_add(2) & !DELETED | version & DELETED;
        // Release: pairs with the first load of `read`.
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
                drop(gate.alone().unwrap());
            }
            reads
        });
        assert_eq!(seen.unwrap(), 2);
    }

    #[test]
    fn a_deleted_table_lets_nobody_in() {
        let gate = gate();
        gate.alone().unwrap().delete();
        assert!(gate.read(|| ()).is_err());
        assert!(gate.shared().is_err());
        assert!(gate.alone().is_err());
    }

    /// Fails if a reader sees the two numbers differ: one that is alone changes them one after the
    /// other.
    #[test]
    fn nobody_sees_a_half_made_change() {
        let gate = gate();
        let numbers = [AtomicUsize::new(0), AtomicUsize::new(0)];
        const CHANGES: usize = 20_000;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for change in 1..=CHANGES {
                    let _alone = gate.alone().unwrap();
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
