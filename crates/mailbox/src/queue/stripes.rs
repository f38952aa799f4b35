//! The locks of the slots. They are not part of the slots.
//!
//! A sender must read the array of slots without a lock on the mailbox, and the array is removed
//! when it is not needed. In most designs every send then pays for an announcement of the reader
//! (an epoch, a hazard pointer, a count). Here the lock that a sender takes anyway is the
//! announcement, because it lies in memory that is never freed. A thread that holds *any* stripe
//! may use what it then finds through the mailbox's pointers. A thread that wants to free an array
//! clears the pointer and [passes](Stripes::pass) through all stripes; after that no thread can
//! hold the array.
//!
//! A stripe may serve several slots, also of different mailboxes: the table belongs to the process.
//! That causes an occasional wait and is never wrong, because a stripe is held for a few dozen
//! instructions, and a thread that holds one waits for no other lock. But if a thread is stopped
//! while it holds a stripe (by a debugger or a signal), the receivers of all mailboxes with slots
//! stop when the slots are removed, and so do the senders that need the same stripe.

use std::ptr;
use tremula_sync::{CachePadded, ShortLock, ShortLockGuard, Wait};

/// More than twice the slots of an array, so that the slots of one mailbox rarely share a stripe;
/// few enough that passing through all takes microseconds. A power of two.
#[cfg(not(any(loom, shuttle)))]
const STRIPES: usize = 256;
#[cfg(any(loom, shuttle))]
const STRIPES: usize = 4;

type Table = [CachePadded<ShortLock<()>>; STRIPES];

#[cfg(not(any(loom, shuttle)))]
static TABLE: Table = [const { CachePadded::new(ShortLock::new(())) }; STRIPES];

/// The stripes as seen by one mailbox.
pub(super) struct Stripes {
    /// Each mailbox in a model has its own.
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

    /// Takes the lock of a slot, and returns how long the thread waited.
    #[inline]
    pub(super) fn lock_noting(&self, slot: u32) -> (ShortLockGuard<'_, ()>, Wait) {
        let begin = if cfg!(any(loom, shuttle)) {
            0
        } else {
            beginning(ptr::from_ref(self).addr() as u64)
        };
        self.table()[begin.wrapping_add(slot) as usize % STRIPES].lock_noting()
    }

    /// Takes and releases each stripe: a thread that held one before this call no longer holds it.
    pub(super) fn pass(&self) {
        for stripe in self.table() {
            drop(stripe.lock());
        }
    }
}

/// The first stripe of a mailbox at this address. Neighbouring slots have neighbouring stripes; the
/// address spreads the first ones (Fibonacci hashing, of 64 bits for any size of an address).
#[inline]
const fn beginning(address: u64) -> u32 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Fails if only the low bits of the addresses count: mailboxes lie at multiples of 64, above
    /// or below 4 GiB.
    #[test]
    fn mailboxes_that_lie_close_together_begin_at_different_stripes() {
        for first in [0x1000_u64, 0x7fff_ffff_0000, 0xffff_0000] {
            let begins = |mailbox: u64| beginning(first + 256 * mailbox) as usize % STRIPES;
            let different: HashSet<usize> = (0..64).map(begins).collect();
            assert!(different.len() > 32, "{} of 64", different.len());
        }
    }
}
