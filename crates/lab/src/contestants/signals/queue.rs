//! Queues that are built from the locks of this project, to compare the mailboxes with: one lock,
//! and two.
//!
//! A queue is no channel: it cannot wait for a message, and does not know when all senders are
//! gone. The ends here add both. The receiver never sleeps, so that no send pays for waking it.

use super::channel::{Channel, Receiving, Sending};
use std::collections::VecDeque;
use tremula_papers::two_lock_queue::TwoLockQueue;
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::{Backoff, CachePadded, ShortLock};

/// A kind of queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// A `VecDeque` under a short lock.
    OneLock,
    /// A list with a short lock for each end.
    TwoLocks,
}

impl QueueKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::OneLock, Self::TwoLocks];

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneLock => "one_lock_queue",
            Self::TwoLocks => "two_lock_queue",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::OneLock => "a VecDeque under a short lock, with a receiver that never sleeps",
            Self::TwoLocks => {
                "Michael and Scott's queue of two short locks, with a receiver that never sleeps"
            }
        }
    }
}

/// What a queue does.
pub(super) trait Queue<M>: Default + Send + Sync + 'static {
    fn push(&self, message: M);
    fn pop(&self) -> Option<M>;
}

/// A queue under one lock.
pub(super) struct OneLock<M>(CachePadded<ShortLock<VecDeque<M>>>);

impl<M> Default for OneLock<M> {
    fn default() -> Self {
        Self(CachePadded::new(ShortLock::new(VecDeque::new())))
    }
}

impl<M: Send + 'static> Queue<M> for OneLock<M> {
    #[inline]
    fn push(&self, message: M) {
        self.0.lock().push_back(message);
    }

    #[inline]
    fn pop(&self) -> Option<M> {
        self.0.lock().pop_front()
    }
}

impl<M: Send + 'static> Queue<M> for TwoLockQueue<M> {
    #[inline]
    fn push(&self, message: M) {
        Self::push(self, message);
    }

    #[inline]
    fn pop(&self) -> Option<M> {
        Self::pop(self)
    }
}

/// Queues of this type as channels.
pub(super) struct Queues<Q>(std::marker::PhantomData<fn() -> Q>);

impl<Q> Queues<Q> {
    pub(super) const fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

struct Shared<Q> {
    queue: Q,
    /// The senders that are left.
    senders: CachePadded<AtomicUsize>,
}

/// A sender's end.
pub(super) struct SenderEnd<Q>(Arc<Shared<Q>>);

/// The receiver's end.
pub(super) struct ReceiverEnd<Q>(Arc<Shared<Q>>);

impl<M: Send + 'static, Q: Queue<M>> Channel<M> for Queues<Q> {
    type Sender = SenderEnd<Q>;
    type Receiver = ReceiverEnd<Q>;

    fn open(&self, _senders: usize) -> (SenderEnd<Q>, ReceiverEnd<Q>) {
        let shared = Arc::new(Shared {
            queue: Q::default(),
            senders: CachePadded::new(AtomicUsize::new(1)),
        });
        (SenderEnd(Arc::clone(&shared)), ReceiverEnd(shared))
    }
}

impl<M: Send + 'static, Q: Queue<M>> Sending<M> for SenderEnd<Q> {
    fn another(&self) -> Self {
        // Relaxed: this end keeps the count above 0.
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }

    #[inline]
    fn send(&mut self, message: M) {
        self.0.queue.push(message);
    }
}

impl<Q> Drop for SenderEnd<Q> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `receive`, for what this end has sent.
        self.0.senders.fetch_sub(1, Ordering::Release);
    }
}

impl<M: Send + 'static, Q: Queue<M>> Receiving<M> for ReceiverEnd<Q> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        let backoff = Backoff::new();
        loop {
            if let Some(message) = self.0.queue.pop() {
                return Some(message);
            }
            if self.0.senders.load(Ordering::Acquire) == 0 {
                // What was sent last may have come since.
                return self.0.queue.pop();
            }
            backoff.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel::tests::does_its_work;
    use super::*;

    #[test]
    fn every_queue_does_its_work() {
        does_its_work(&Queues::<OneLock<Box<u64>>>::new());
        does_its_work(&Queues::<TwoLockQueue<Box<u64>>>::new());
    }
}
