//! The part of a mailbox that all its handles share: the queue, and the state around it.

use crate::Config;
use crate::credits::Credits;
use crate::extras::Extras;
use crate::queue::{DISCONNECTED, Queue, Sent, Signals};
use std::ops::Deref;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tremula_sync::contained;

/// One allocation of four cache lines: the holders of the base lock write two, senders read one,
/// the receiver writes one.
#[repr(C, align(64))]
pub(crate) struct Shared<T> {
    pub(crate) queue: Queue<T>,
    /// Only in a bounded mailbox.
    pub(crate) credits: Option<Box<Credits>>,
    /// Null until first needed.
    extras: AtomicPtr<Extras<T>>,
    senders: AtomicU32,
    /// Those that keep this memory: all senders together, the receiver, and each weak sender.
    holders: AtomicU32,
    pub(crate) receiver: ReceiverSide<T>,
}

/// What the receiver writes, and what senders write for it alone: one cache line.
#[repr(align(64))]
pub(crate) struct ReceiverSide<T> {
    pub(crate) signals: Signals<T>,
    /// Messages received, including urgent ones. Written only by the receiver.
    pub(crate) received: AtomicU64,
}

impl<T> Shared<T> {
    fn new(config: &Config) -> Self {
        Self {
            queue: Queue::new(config.limits()),
            credits: config
                .capacity()
                .map(|capacity| Box::new(Credits::new(capacity))),
            extras: AtomicPtr::new(ptr::null_mut()),
            senders: AtomicU32::new(1),
            holders: AtomicU32::new(2),
            receiver: ReceiverSide {
                signals: Signals::new(),
                received: AtomicU64::new(0),
            },
        }
    }

    pub(crate) fn signals(&self) -> &Signals<T> {
        &self.receiver.signals
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        // Acquire: pairs with the AcqRel subtraction of the last sender; all messages were sent
        // before that.
        self.senders.load(Ordering::Acquire) == 0
    }

    pub(crate) fn sender_count(&self) -> usize {
        // Relaxed: true at some moment; nothing else depends on it.
        self.senders.load(Ordering::Relaxed) as usize
    }

    /// Wakes the receiver if `sent` requires it. `false` if the mailbox is closed.
    #[inline]
    pub(crate) fn conclude(&self, sent: Sent) -> bool {
        if sent == Sent::AndMustWake {
            self.signals().wake();
        }
        sent != Sent::Closed
    }

    /// The extras, if they have been needed.
    pub(crate) fn extras(&self) -> Option<&Extras<T>> {
        // Acquire: pairs with the Release store in `make_extras`.
        // SAFETY: a pointer that is not null came from a box that lives as long as `self`.
        unsafe { self.extras.load(Ordering::Acquire).as_ref() }
    }

    /// The extras, made if needed; `None` if the mailbox is down.
    pub(crate) fn make_extras(&self) -> Option<&Extras<T>> {
        // The base lock, which `unless_down` takes, admits one thread at a time, and none while the
        // mailbox is closed or goes down.
        self.queue.unless_down(|closed| {
            if self.extras().is_none() {
                let extras = Box::into_raw(Box::new(Extras::new(closed)));
                // Release: pairs with the load in `extras`.
                self.extras.store(extras, Ordering::Release);
            }
        })?;
        self.extras()
    }

    pub(crate) fn capacity(&self) -> Option<usize> {
        self.credits.as_ref().map(|credits| credits.capacity())
    }

    /// Ordinary and urgent messages sent and not received.
    pub(crate) fn len(&self) -> usize {
        // Received first: a message that is received meanwhile makes the result too large, not
        // negative. Relaxed: nothing else depends on it.
        let received = self.receiver.received.load(Ordering::Relaxed);
        let urgent = self.extras().map_or(0, Extras::urgent_sends);
        let sent = self.queue.stats().sends() + urgent;
        sent.saturating_sub(received) as usize
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Relaxed: no other thread is left.
        let extras = self.extras.load(Ordering::Relaxed);
        if !extras.is_null() {
            // SAFETY: it came from a box, and no other thread is left.
            drop(unsafe { Box::from_raw(extras) });
        }
    }
}

/// The most senders, and the most holders: half of what the counts can express, so that threads
/// which find it exceeded at the same time do not make them overflow.
const MOST_HANDLES: u32 = u32::MAX / 2;

/// A handle's pointer to the shared part. It is not counted by itself: each holder (all senders
/// together, the receiver, and each weak sender) reports when it is gone, and the last one frees
/// the shared part.
pub(crate) struct Link<T>(NonNull<Shared<T>>);

// SAFETY: it stands for a shared reference to a queue, which moves messages between threads and
// never shares one.
unsafe impl<T: Send> Send for Link<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for Link<T> {}

impl<T> Deref for Link<T> {
    type Target = Shared<T>;

    #[inline]
    fn deref(&self) -> &Shared<T> {
        // SAFETY: the shared part is freed only when all holders are gone, and that of this link is
        // not.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Link<T> {
    /// A link for the first sender and one for the receiver.
    pub(crate) fn pair(config: &Config) -> (Self, Self) {
        let shared = Box::into_raw(Box::new(Shared::new(config)));
        // SAFETY: a box is not null.
        let shared = unsafe { NonNull::new_unchecked(shared) };
        (Self(shared), Self(shared))
    }

    /// A link for one more sender, and its number.
    pub(crate) fn add_sender(&self) -> (Self, u32) {
        // Relaxed: the new sender is made from one that lives, which keeps the count above 0.
        let before = self.senders.fetch_add(1, Ordering::Relaxed);
        assert!(before < MOST_HANDLES, "a mailbox has two billion senders");
        (Self(self.0), self.queue.number_for_sender())
    }

    /// A link for one more sender, and its number, for a holder that is no sender. `None` if the
    /// last sender is gone.
    ///
    /// The count never rises from 0. So the last sender, and only that one, disconnects the mailbox
    /// and releases the senders' hold, and a receiver that has read 0 has seen every send.
    pub(crate) fn add_sender_if_connected(&self) -> Option<(Self, u32)> {
        // Relaxed: what counts is the order of the changes of this one word. Either this
        // compare-exchange is first, and the subtraction that follows does not reach 0; or the last
        // subtraction is first, and this finds 0. The caller's hold orders the rest.
        let mut senders = self.senders.load(Ordering::Relaxed);
        while senders > 0 {
            assert!(senders < MOST_HANDLES, "a mailbox has two billion senders");
            match self.senders.compare_exchange_weak(
                senders,
                senders + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some((Self(self.0), self.queue.number_for_sender())),
                Err(now) => senders = now,
            }
        }
        None
    }

    /// A link for a handle that counts as a holder by itself.
    pub(crate) fn add_holder(&self) -> Self {
        // Relaxed: the caller's own hold keeps the count above 0.
        let before = self.holders.fetch_add(1, Ordering::Relaxed);
        assert!(
            before < MOST_HANDLES,
            "a mailbox has two billion weak senders"
        );
        Self(self.0)
    }

    /// Whether both links lead to the same mailbox.
    pub(crate) fn is_to_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Removes a sender. The caller must not use the link any more.
    pub(crate) fn remove_sender(&self) {
        // AcqRel: all sends of all senders happen before the last subtraction, which pairs with the
        // load in `is_disconnected`.
        if self.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            if self.signals().raise(DISCONNECTED) {
                self.signals().wake();
            }
            self.remove_holder();
        }
    }

    /// Removes the receiver: sends the monitors' notices, and releases its hold. The caller must
    /// not use the link any more.
    pub(crate) fn remove_receiver(&self) {
        self.queue.go_down();
        if let Some(extras) = self.extras() {
            for notice in extras.monitors().close() {
                // A notice may run the user's code: a watcher's waker, or the drop of a message to
                // a watcher that is gone. Even if it panics, the other watchers get their notices.
                contained(notice);
            }
        }
        self.signals().forget_waiter();
        self.remove_holder();
    }

    /// Releases one hold. The caller must not use the link any more.
    pub(crate) fn remove_holder(&self) {
        // AcqRel: what the other holders did happens before the last one frees.
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it came from a box, and all holders are gone.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn an_idle_mailbox_costs_at_most_256_bytes() {
        assert!(
            size_of::<Shared<u64>>() <= 256,
            "{} bytes",
            size_of::<Shared<u64>>()
        );
        assert!(size_of::<Shared<[u64; 100]>>() <= 256);
    }
}

/// The figures that a `Sender` and a `Mailbox` both report.
macro_rules! figures {
    () => {
        /// Messages sent and not received, including urgent ones. Exact if no thread sends or
        /// receives meanwhile. O(slots).
        #[must_use]
        pub fn len(&self) -> usize {
            self.shared.len()
        }

        /// Whether [`len`](Self::len) is 0.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The capacity, if the mailbox is bounded.
        #[must_use]
        pub fn capacity(&self) -> Option<usize> {
            self.shared.capacity()
        }

        /// The messages that the mailbox could accept now, if it is bounded. Capacity that a
        /// waiting send or a permit holds is not counted. Exact if no thread sends or receives
        /// meanwhile. O(1).
        ///
        /// ```
        /// let (sender, mailbox) = tremula_mailbox::bounded(3);
        /// sender.send(1).unwrap();
        /// assert_eq!(sender.free_capacity(), Some(2));
        /// # drop(mailbox);
        /// ```
        #[must_use]
        pub fn free_capacity(&self) -> Option<usize> {
            let credits = self.shared.credits.as_ref()?;
            Some(credits.free())
        }

        /// Whether the mailbox is bounded and [`free_capacity`](Self::free_capacity) is 0, so that
        /// a send would wait.
        #[must_use]
        pub fn is_full(&self) -> bool {
            self.free_capacity() == Some(0)
        }

        /// How many [`Sender`](crate::Sender)s there are, among them those that requests for a
        /// [monitor](crate::Sender::monitor) hold. Exact if no thread adds or drops one meanwhile.
        /// O(1).
        ///
        /// ```
        /// let (sender, mailbox) = tremula_mailbox::unbounded::<u64>();
        /// let other = sender.clone();
        /// assert_eq!(mailbox.sender_count(), 2);
        /// drop((sender, other));
        /// assert_eq!(mailbox.sender_count(), 0);
        /// ```
        #[must_use]
        pub fn sender_count(&self) -> usize {
            self.shared.sender_count()
        }

        /// Whether senders contend so much that they are spread over slots.
        #[must_use]
        pub fn is_contended(&self) -> bool {
            self.shared.queue.is_contended()
        }

        /// The counts of the mailbox so far. O(slots).
        #[must_use]
        pub fn stats(&self) -> crate::Stats {
            self.shared.queue.stats()
        }
    };
}
pub(crate) use figures;
