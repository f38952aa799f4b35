//! The locks of the slots, which do not lie in the slots.
//!
//! A sender must look at the array of slots without a lock on the mailbox, and the array goes
//! away when it is not needed. Most designs then pay on every send for an announcement of the
//! reader (an epoch, a hazard pointer, a count). Here the lock that a sender takes anyway is
//! the announcement: it lies in memory that is never freed. Who holds *any* stripe may use what
//! it then finds behind the mailbox's pointers; who wants to free an array takes the pointer
//! away and [passes](Stripes::pass) through all stripes, after which nobody can hold it.
//!
//! A stripe may serve several slots, also of different mailboxes: the table belongs to the
//! process. That costs a wait now and then, and is never wrong: a stripe is held for a few dozen
//! instructions, and a thread that holds one waits for no other lock. But a thread that is
//! stopped while it holds a stripe (by a debugger, or a signal) stops the receivers of all
//! mailboxes with slots when these are removed, and the senders that need the same stripe.

use std::ptr;
use tremula_sync::{CachePadded, ShortLock, ShortLockGuard, Wait};

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

    /// Takes the lock of a slot, and says how it was waited for.
    #[inline]
    pub(super) fn lock_noting(&self, slot: u32) -> (ShortLockGuard<'_, ()>, Wait) {
        let begin = if cfg!(any(loom, shuttle)) {
            0
        } else {
            beginning(ptr::from_ref(self).addr() as u64)
        };
        self.table()[begin.wrapping_add(slot) as usize % STRIPES].lock_noting()
    }

    /// Takes and gives back each stripe: whoever held one before this, holds it no more.
    pub(super) fn pass(&self) {
        for stripe in self.table() {
            drop(stripe.lock());
        }
    }
}

/// Where the stripes of a mailbox at this address begin. Neighbouring slots have neighbouring
/// stripes; the beginnings are spread by the address (Fibonacci hashing, of 64 bits whatever the
/// size of an address).
#[inline]
const fn beginning(address: u64) -> u32 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Mailboxes lie at multiples of 64, above or below 4 GiB, and would fail this if only the low
    /// bits of their addresses counted.
    #[test]
    fn mailboxes_that_lie_close_together_begin_at_different_stripes() {
        for first in [0x1000_u64, 0x7fff_ffff_0000, 0xffff_0000] {
            let begins = |mailbox: u64| beginning(first + 256 * mailbox) as usize % STRIPES;
            let different: HashSet<usize> = (0..64).map(begins).collect();
            assert!(different.len() > 32, "{} of 64", different.len());
        }
    }
}
