//! The base queue, which senders use until they contend.
//!
//! It has two parts, which are received in this order. The *ring* is contiguous memory; the
//! receiver takes it by exchanging it for its own empty one. A sender that got the lock at once
//! writes its message in place. If the sender had to wait, the ring is full, or the chain is not
//! empty, the message goes to the *chain* of blocks. Modes without a ring use only the chain.

use super::block::{Chain, Supply};
use super::contention::Contention;
use super::inbox::Inbox;
use crate::Limits;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use tremula_sync::Wait;

/// The size of the ring in bytes. The ring and the receiver's own stay in the first-level cache
/// together, with space for other data. Further messages go to the chain, which never copies a
/// burst to grow.
const RING_BYTES: usize = 8 * 1024;

/// The state behind the base queue's lock.
pub(super) struct Base<T> {
    /// The messages of the chain come after those of the ring, those of the slots after both.
    ring: VecDeque<T>,
    chain: Chain<T>,
    supply: Supply<T>,
    pub(super) uncontended: u64,
    pub(super) contended: u64,
    contention: Contention,
    /// The number of messages in the ring and in the chain.
    gathered: u32,
    /// The receiver has been notified of the messages here.
    announced: bool,
    /// The mailbox accepts no more messages.
    pub(super) closed: bool,
    /// The receiver is gone, and the monitors' notices are being sent.
    pub(super) down: bool,
    pub(super) installs: u32,
    pub(super) removals: u32,
    pub(super) shrinks: u32,
    pub(super) flushes: u64,
    pub(super) flushed: u64,
}

impl<T> Base<T> {
    /// The most messages that the ring holds.
    pub(super) const RING: usize = {
        let size = if size_of::<T>() == 0 {
            1
        } else {
            size_of::<T>()
        };
        if cfg!(any(loom, shuttle)) {
            2
        } else if RING_BYTES / size < 4 {
            4
        } else {
            RING_BYTES / size
        }
    };

    pub(super) const fn new() -> Self {
        Self {
            ring: VecDeque::new(),
            chain: Chain::new(),
            supply: Supply::new(),
            uncontended: 0,
            contended: 0,
            contention: Contention::none(),
            gathered: 0,
            announced: false,
            closed: false,
            down: false,
            installs: 0,
            removals: 0,
            shrinks: 0,
            flushes: 0,
            flushed: 0,
        }
    }

    /// Counts a send. Returns whether there is so much contention that slots should be installed.
    #[inline]
    pub(super) fn note(&mut self, wait: Wait, limits: &Limits) -> bool {
        let count = if wait.is_none() {
            &mut self.uncontended
        } else {
            &mut self.contended
        };
        *count += 1;
        self.contention.note(wait, limits, limits.install_above) && limits.has_slots()
    }

    /// Moves the message at `message` into the queue. Returns whether the receiver must be
    /// notified.
    ///
    /// # Safety
    ///
    /// `message` is valid to read, and the caller does not use or drop it any more.
    #[inline]
    pub(super) unsafe fn push(&mut self, message: *const T, in_place: bool) -> bool {
        if in_place && self.chain.has_no_block() && self.ring.len() < Self::RING {
            // SAFETY: the caller gives the message away.
            self.ring.push_back(unsafe { message.read() });
            #[cfg(sim)]
            if let Some(place) = self.ring.back() {
                tremula_sync::sim::touch(&raw const *place, size_of::<T>(), true);
            }
        } else {
            // SAFETY: the caller gives the message away.
            unsafe { self.chain.push(message, &mut self.supply) };
        }
        self.gathered = self.gathered.saturating_add(1);
        !std::mem::replace(&mut self.announced, true)
    }

    /// Whether there is no message here.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        debug_assert_eq!(
            self.gathered == 0,
            self.ring.is_empty() && self.chain.has_no_block()
        );
        self.gathered == 0
    }

    /// Puts a message before all others.
    pub(super) fn put_first(&mut self, message: T) {
        self.ring.push_front(message);
        self.gathered = self.gathered.saturating_add(1);
    }

    /// The chain, for messages of slots that must come before the next one sent here.
    pub(super) fn chain(&mut self) -> &mut Chain<T> {
        &mut self.chain
    }

    /// Moves all messages to the end of what the receiver has. Returns how many.
    pub(super) fn hand_over(&mut self, inbox: &mut Inbox<T>) -> u32 {
        if !inbox.taken.has_no_block() {
            self.hand_over_behind(&mut inbox.taken);
        } else if inbox.front.is_empty() {
            std::mem::swap(&mut inbox.front, &mut self.ring);
            if self.ring.capacity() > 2 * Self::RING {
                // It grew during a selective receive, and is too large as a ring for senders.
                self.ring = VecDeque::new();
            }
        } else {
            inbox.front.append(&mut self.ring);
        }
        if !self.chain.has_no_block() {
            inbox.taken.append(&mut self.chain);
            self.supply.replenish(self.gathered, &mut inbox.spares);
        }
        self.announced = false;
        std::mem::take(&mut self.gathered)
    }

    /// Moves the ring's messages to the end of `taken`. A receiver collects only when `taken` is
    /// empty, so this is for a receiver that closes.
    #[cold]
    fn hand_over_behind(&mut self, taken: &mut Chain<T>) {
        let mut supply = Supply::new();
        for message in self.ring.drain(..) {
            let message = ManuallyDrop::new(message);
            // SAFETY: the message is not used again.
            unsafe { taken.push(&raw const *message, &mut supply) };
        }
    }

    /// Frees the memory kept for further messages. There are none now.
    pub(super) fn free_memory(&mut self) {
        self.ring = VecDeque::new();
        self.supply = Supply::new();
    }
}
