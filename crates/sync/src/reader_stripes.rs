//! Slots in which the readers of a biased lock announce themselves, one cache line for each thread.

use crate::Backoff;
use crate::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::thread_index;
use crossbeam_utils::CachePadded;
use std::ptr;

/// Slots in a set of stripes. More threads than this share slots; a thread that finds its slot
/// taken reads through the lock itself.
#[cfg(not(any(loom, shuttle)))]
const SLOTS: usize = 64;
#[cfg(any(loom, shuttle))]
const SLOTS: usize = 4;

/// Each slot holds the address of the lock that its thread is reading under, or null.
pub(crate) struct ReaderStripes {
    slots: [CachePadded<AtomicPtr<()>>; SLOTS],
    /// Only slots below this number may have been used, so a writer checks no others. It only
    /// grows.
    used: AtomicUsize,
}

impl ReaderStripes {
    pub(crate) fn new() -> Self {
        Self {
            slots: std::array::from_fn(|_| CachePadded::new(AtomicPtr::new(ptr::null_mut()))),
            used: AtomicUsize::new(0),
        }
    }

    /// Announces the calling thread as a reader of `lock`, if its slot is free.
    #[inline]
    pub(crate) fn publish(&self, lock: *mut ()) -> Option<&AtomicPtr<()>> {
        let index = thread_index() % SLOTS;
        // SeqCst, load and maximum: both precede the write to the slot in the single total order.
        // So a writer that reads a `used` too small to include this slot also precedes that write.
        if index >= self.used.load(Ordering::SeqCst) {
            self.used.fetch_max(index + 1, Ordering::SeqCst);
        }
        let slot = &*self.slots[index];
        slot.compare_exchange(ptr::null_mut(), lock, Ordering::SeqCst, Ordering::Relaxed)
            .ok()?;
        // loom treats SeqCst accesses as AcqRel; this fence gives them their full meaning.
        #[cfg(loom)]
        crate::atomic::fence(Ordering::SeqCst);
        Some(slot)
    }

    /// Waits until no slot contains `lock`. Returns whether a slot did.
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

    /// Whether a slot contains `lock`.
    pub(crate) fn has_reader(&self, lock: *mut ()) -> bool {
        self.candidates().iter().any(|slot| Self::names(slot, lock))
    }

    /// The slots that may be in use.
    fn candidates(&self) -> &[CachePadded<AtomicPtr<()>>] {
        // The fence is for loom only, as in `publish`.
        #[cfg(loom)]
        crate::atomic::fence(Ordering::SeqCst);
        &self.slots[..self.used.load(Ordering::SeqCst)]
    }

    fn names(slot: &AtomicPtr<()>, lock: *mut ()) -> bool {
        // Acquire: pairs with the Release store by which a reader leaves: its reads happen before
        // the writer's writes. SeqCst: see the picture in the module `statistics_lock`.
        slot.load(Ordering::SeqCst) == lock
    }
}
