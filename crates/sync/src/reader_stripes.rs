//! Where readers of a biased lock make themselves visible: a line of memory a thread.

use crate::Backoff;
use crate::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::thread_index;
use crossbeam_utils::CachePadded;
use std::ptr;

/// Slots in a set of stripes: threads beyond it share slots, and one that finds its slot
/// taken reads through the lock itself.
#[cfg(not(any(loom, shuttle)))]
const SLOTS: usize = 64;
#[cfg(any(loom, shuttle))]
const SLOTS: usize = 4;

/// Each slot holds the address of the lock that its thread is reading under, or null.
pub(crate) struct ReaderStripes {
    slots: [CachePadded<AtomicPtr<()>>; SLOTS],
    /// Slots below this may have been used; a writer looks at no others. Only grows.
    used: AtomicUsize,
}

impl ReaderStripes {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| CachePadded::new(AtomicPtr::new(ptr::null_mut()))),
            used: AtomicUsize::new(0),
        }
    }

    /// Makes the calling thread visible as a reader of `lock`, if its slot is free.
    #[inline]
    pub(crate) fn publish(&self, lock: *mut ()) -> Option<&AtomicPtr<()>> {
        let index = thread_index() % SLOTS;
        // SeqCst, load and maximum: before the slot's own write in the one total order, so that
        // a writer that sees no need to look at this slot came before that write too.
        if index >= self.used.load(Ordering::SeqCst) {
            self.used.fetch_max(index + 1, Ordering::SeqCst);
        }
        let slot = &*self.slots[index];
        slot.compare_exchange(ptr::null_mut(), lock, Ordering::SeqCst, Ordering::Relaxed)
            .ok()?;
        // loom treats SeqCst accesses as AcqRel; the fence tells it what they already mean.
        #[cfg(loom)]
        crate::atomic::fence(Ordering::SeqCst);
        Some(slot)
    }

    /// Waits until no slot names `lock`. Returns whether one did.
    pub(crate) fn wait_for_readers(&self, lock: *mut ()) -> bool {
        let mut waited = false;
        for slot in self.candidates() {
            let backoff = Backoff::new();
            while Self::names(slot, lock) {
                waited = true;
                backoff.wait();
            }
        }
        waited
    }

    /// Whether a slot names `lock`.
    pub(crate) fn has_reader(&self, lock: *mut ()) -> bool {
        self.candidates().iter().any(|slot| Self::names(slot, lock))
    }

    /// The slots that may be in use.
    fn candidates(&self) -> &[CachePadded<AtomicPtr<()>>] {
        // As in `publish`.
        #[cfg(loom)]
        crate::atomic::fence(Ordering::SeqCst);
        &self.slots[..self.used.load(Ordering::SeqCst)]
    }

    fn names(slot: &AtomicPtr<()>, lock: *mut ()) -> bool {
        // Pairs with the Release store by which a reader leaves: what it read was read before
        // we write. SeqCst: with `publish` and the bias, see `StatisticsLock`.
        slot.load(Ordering::SeqCst) == lock
    }
}
