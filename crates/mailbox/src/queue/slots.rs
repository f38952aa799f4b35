//! The array of slots, and the arrays that slots grow.

use super::block::{Chain, Spares, Supply};
use super::contention::Contention;
use crate::Limits;
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tremula_sync::cell::UnsafeCell;
use tremula_sync::{CachePadded, Wait};

/// The number of slots in an array that a slot grows. A power of two.
#[cfg(not(any(loom, shuttle)))]
const FAN_OUT: u32 = 8;
#[cfg(any(loom, shuttle))]
const FAN_OUT: u32 = 2;

/// Levels of slots below the first: with 64 slots above, 4096 lanes.
#[cfg(not(any(loom, shuttle)))]
pub(super) const DEEPEST: usize = 2;
#[cfg(any(loom, shuttle))]
pub(super) const DEEPEST: usize = 1;

/// A set of slots. A sender uses the one that its number selects.
pub(super) struct Array<T> {
    /// A bit for each slot that holds messages, itself or below it.
    dirty: CachePadded<AtomicU64>,
    /// Flushes, and their messages, since the last judgement. Only flushes change them, under the
    /// base lock; they are atomic because the array is shared.
    flushes: AtomicU32,
    messages: AtomicU32,
    pub(super) slots: Box<[Slot<T>]>,
}

/// One lane of an array, on a cache line of its own.
#[repr(align(64))]
pub(super) struct Slot<T> {
    /// Guarded by the slot's stripe.
    lane: UnsafeCell<Lane<T>>,
    /// The array that this slot has grown, or null. While there is one, the lane accepts nothing.
    children: AtomicPtr<Array<T>>,
}

/// The queue of a slot.
pub(super) struct Lane<T> {
    chain: Chain<T>,
    supply: Supply<T>,
    /// The number of messages in the chain, and how many of their senders had to wait.
    gathered: u32,
    waited: u32,
    contention: Contention,
    /// The receiver has been notified of the messages here.
    announced: bool,
}

/// The number of messages that a flush took from a lane or an array.
#[derive(Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) messages: u32,
    pub(super) waited: u32,
}

impl Taken {
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_add(other.messages),
            waited: self.waited.saturating_add(other.waited),
        }
    }
}

// SAFETY: the functions that use lanes require that the caller holds the stripe.
unsafe impl<T: Send> Sync for Array<T> {}
// SAFETY: an array owns its messages.
unsafe impl<T: Send> Send for Array<T> {}

impl<T> Array<T> {
    pub(super) fn with_slots(count: u32) -> Box<Self> {
        let slot = || Slot {
            lane: UnsafeCell::new(Lane::new()),
            children: AtomicPtr::new(ptr::null_mut()),
        };
        Box::new(Self {
            dirty: CachePadded::new(AtomicU64::new(0)),
            flushes: AtomicU32::new(0),
            messages: AtomicU32::new(0),
            slots: (0..count).map(|_| slot()).collect(),
        })
    }

    /// Sets the bit of a slot that is no longer empty.
    #[inline]
    pub(super) fn mark(&self, slot: usize) {
        // SeqCst: a flush lowers the signal above before it takes these bits, see `Signals`.
        self.dirty.fetch_or(1 << slot, Ordering::SeqCst);
    }

    /// Takes the bits. Bits set from now on are for the next flush.
    pub(super) fn take_marks(&self) -> impl Iterator<Item = usize> + use<T> {
        let mut marks = self.dirty.swap(0, Ordering::SeqCst);
        #[cfg(loom)]
        tremula_sync::atomic::fence(Ordering::SeqCst);
        std::iter::from_fn(move || {
            let slot = marks.trailing_zeros();
            marks &= marks.wrapping_sub(1);
            (slot < u64::BITS).then_some(slot as usize)
        })
    }

    /// Counts a flush. At the end of a window, returns whether the array brought too few messages
    /// to be kept.
    pub(super) fn judge(&self, taken: u32, window: u32, fewest: f32) -> bool {
        // Relaxed: flushes are ordered by the base lock.
        let flushes = self.flushes.load(Ordering::Relaxed) + 1;
        let messages = self.messages.load(Ordering::Relaxed).saturating_add(taken);
        let over = flushes >= window;
        let (flushes_kept, messages_kept) = if over { (0, 0) } else { (flushes, messages) };
        self.flushes.store(flushes_kept, Ordering::Relaxed);
        self.messages.store(messages_kept, Ordering::Relaxed);
        over && (messages as f32) < fewest * flushes as f32
    }

    /// Moves all messages to the end of `into`, a slot's own before those below it.
    pub(super) fn drain(mut self: Box<Self>, into: &mut Chain<T>) -> Taken {
        let mut taken = Taken::default();
        for slot in &mut self.slots {
            // SAFETY: only this caller has the array.
            taken = taken.and(unsafe { slot.with_lane(|lane| lane.take(into, None)) });
            if let Some(children) = slot.take_children() {
                taken = taken.and(children.drain(into));
            }
        }
        taken
    }
}

impl<T> Slot<T> {
    /// Runs `work` on the lane.
    ///
    /// # Safety
    /// The caller holds the stripe of this slot, or no other thread has the slot.
    /// The caller holds the stripe of this slot, or is the only one who has the slot.
    #[inline]
    pub(super) unsafe fn with_lane<R>(&self, work: impl FnOnce(&mut Lane<T>) -> R) -> R {
        let lane = self.lane.get_mut();
        // SAFETY: the caller excludes all other threads.
        work(unsafe { lane.deref() })
    }

    /// The array below, for a thread that holds a stripe or the base lock, as long as it holds it.
    #[inline]
    pub(super) fn children(&self) -> Option<&Array<T>> {
        // Acquire: pairs with the Release store in `grow`, which publishes the array.
        // SAFETY: the holder of the base lock frees an array only after it has cleared this pointer
        // and passed all stripes.
        unsafe { self.children.load(Ordering::Acquire).as_ref() }
    }

    pub(super) fn grow(&self) {
        let children = Box::into_raw(Array::with_slots(FAN_OUT));
        // Release: pairs with the Acquire load in `children`. The stripe of this slot is held, so
        // no other array is lost.
        self.children.store(children, Ordering::Release);
    }

    /// Clears the pointer to the array below, and returns it. Other threads may use the array until
    /// all stripes have been passed.
    pub(super) fn unlink_children(&self) -> *mut Array<T> {
        // Relaxed: senders read the pointer under a stripe; passing the stripes orders it.
        self.children.swap(ptr::null_mut(), Ordering::Relaxed)
    }

    fn take_children(&mut self) -> Option<Box<Array<T>>> {
        let children = self.unlink_children();
        // SAFETY: a pointer that is not null came from a box, and the exclusive reference shows
        // that no other thread can have it.
        (!children.is_null()).then(|| unsafe { Box::from_raw(children) })
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.take_children());
    }
}

impl<T> Lane<T> {
    const fn new() -> Self {
        Self {
            chain: Chain::new(),
            supply: Supply::new(),
            gathered: 0,
            waited: 0,
            contention: Contention::none(),
            announced: false,
        }
    }

    /// Moves the message at `message` into the lane. Returns whether the receiver must be notified.
    ///
    /// # Safety
    ///
    /// `message` is valid to read, and the caller does not use or drop it any more.
    #[inline]
    pub(super) unsafe fn push(&mut self, message: *const T) -> bool {
        // SAFETY: the caller gives the message away.
        unsafe { self.chain.push(message, &mut self.supply) };
        self.gathered = self.gathered.saturating_add(1);
        !std::mem::replace(&mut self.announced, true)
    }

    /// Counts a send. Returns whether there is so much contention that the slot should grow.
    #[inline]
    pub(super) fn note(&mut self, wait: Wait, limits: &Limits) -> bool {
        self.waited = self.waited.saturating_add(u32::from(!wait.is_none()));
        self.contention.note(wait, limits, limits.grow_above)
    }

    /// Moves all messages to the end of `into`. A lane that remains in use gets spare blocks.
    pub(super) fn take(&mut self, into: &mut Chain<T>, spares: Option<&mut Spares<T>>) -> Taken {
        into.append(&mut self.chain);
        let taken = self.waiting();
        if let Some(spares) = spares {
            self.supply.replenish(self.gathered, spares);
        }
        (self.gathered, self.waited, self.announced) = (0, 0, false);
        taken
    }

    pub(super) const fn waiting(&self) -> Taken {
        Taken {
            messages: self.gathered,
            waited: self.waited,
        }
    }
}

/// A sender's path from slot to slot.
#[derive(Clone, Copy)]
pub(super) struct Route {
    sender: u32,
}

impl Route {
    pub(super) const fn of(sender: u32) -> Self {
        Self { sender }
    }

    /// The slot in the first array. Consecutive senders have different slots, so senders share
    /// slots only if there are more senders than slots.
    #[inline]
    pub(super) const fn first(self, slots: usize) -> usize {
        self.sender as usize % slots
    }

    /// The slot in the array below, at a depth of 1 or more. Uses another hash, so that senders
    /// that share a slot above separate here.
    #[inline]
    pub(super) const fn below(self, depth: usize) -> usize {
        let hash = (self.sender as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> (64 - 8 * depth)) as u32 % FAN_OUT) as usize
    }
}

/// A number for a slot in the whole tree, which selects its stripe.
#[inline]
pub(super) const fn code_below(code: u32, slot: usize) -> u32 {
    64 + code * FAN_OUT + slot as u32
}
