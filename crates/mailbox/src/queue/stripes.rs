//! The locks of the slots, which do not lie in the slots.
//!
//! A sender must look at the array of slots without a lock on the mailbox, and the array goes
//! away when it is not needed. Most designs then pay on every send for an announcement of the
//! reader (an epoch, a hazard pointer, a count). Here the lock that a sender takes anyway is
//! the announcement: it lies in memory that is never freed. Who holds *any* stripe may use what
//! it then finds behind the mailbox's pointers; who wants to free an array takes the pointer
//! away and [passes](Stripes::pass) through all stripes, after which nobody can hold it.
//!
//! A stripe may serve several slots, also of different mailboxes. That costs a wait now and
//! then, and is never wrong: a stripe is held for a few dozen instructions, and nobody who
//! holds one waits for another lock.

use std::ptr;
use tremula_sync::{CachePadded, ShortLock, ShortLockGuard};

/// More than twice the slots of an array, so that those of one mailbox rarely meet; few enough
/// that passing through all of them takes microseconds. A power of two.
#[cfg(not(any(loom, shuttle)))]
const STRIPES: usize = 256;
#[cfg(any(loom, shuttle))]
const STRIPES: usize = 4;

type Table = [CachePadded<ShortLock<()>>; STRIPES];

#[cfg(not(any(loom, shuttle)))]
static TABLE: Table = [const { CachePadded::new(ShortLock::new(())) }; STRIPES];

/// The stripes as one mailbox sees them.
pub(super) struct Stripes {
    /// Models need locks of their own.
    #[cfg(any(loom, shuttle))]
    table: Table,
}

impl Stripes {
    pub(super) fn new() -> Self {
        Self {
            #[cfg(any(loom, shuttle))]
            table: std::array::from_fn(|_| CachePadded::new(ShortLock::new(()))),
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    #[inline]
    fn table(&self) -> &Table {
        &TABLE
    }

    #[cfg(any(loom, shuttle))]
    fn table(&self) -> &Table {
        &self.table
    }

    /// Takes the lock of a slot; the flag says whether it had to be waited for.
    #[inline]
    pub(super) fn lock(&self, slot: u32) -> (ShortLockGuard<'_, ()>, bool) {
        // Neighbouring slots have neighbouring stripes; where a mailbox begins is spread by its
        // address (Fibonacci hashing).
        let begin = ptr::from_ref(self)
            .addr()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 40;
        let index = if cfg!(any(loom, shuttle)) {
            slot as usize
        } else {
            begin.wrapping_add(slot as usize)
        };
        self.table()[index % STRIPES].lock_noting()
    }

    /// Takes and gives back each stripe: whoever held one before this, holds it no more.
    pub(super) fn pass(&self) {
        for stripe in self.table() {
            drop(stripe.lock());
        }
    }
}
