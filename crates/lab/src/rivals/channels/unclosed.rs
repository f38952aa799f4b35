//! Adds to a queue what a channel has: the end of the stream, and waiting for a message.
//!
//! A program that receives from a plain queue has to add both: a count of the senders, and a wait
//! that alternates between spinning and yielding the core. Such a receiver never sleeps, so it
//! takes a core even if no message comes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tremula_sync::Backoff;

/// A queue, and how many senders use it.
struct Shared<Q> {
    queue: Q,
    senders: AtomicUsize,
}

/// A sender's end.
pub(super) struct SenderEnd<Q>(Arc<Shared<Q>>);

/// The receiver's end.
pub(super) struct ReceiverEnd<Q>(Arc<Shared<Q>>);

pub(super) fn open<Q>(queue: Q) -> (SenderEnd<Q>, ReceiverEnd<Q>) {
    let shared = Arc::new(Shared {
        queue,
        senders: AtomicUsize::new(1),
    });
    (SenderEnd(Arc::clone(&shared)), ReceiverEnd(shared))
}

impl<Q> SenderEnd<Q> {
    #[inline]
    pub(super) fn queue(&self) -> &Q {
        &self.0.queue
    }
}

impl<Q> Clone for SenderEnd<Q> {
    fn clone(&self) -> Self {
        // Relaxed: the sender that is cloned still exists, which keeps the count above 0.
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<Q> Drop for SenderEnd<Q> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire load in `wait`. A receiver that sees the count without
        // this sender finds everything that this sender sent.
        self.0.senders.fetch_sub(1, Ordering::Release);
    }
}

impl<Q> ReceiverEnd<Q> {
    /// Waits until `attempt` returns a message, or until no sender is left and it returns none.
    #[inline]
    pub(super) fn wait<M>(&self, mut attempt: impl FnMut(&Q) -> Option<M>) -> Option<M> {
        let backoff = Backoff::new();
        loop {
            // Acquire: pairs with the Release decrement of each sender. The load comes before the
            // attempt: if it sees 0, the attempt finds everything that was sent.
            let over = self.0.senders.load(Ordering::Acquire) == 0;
            let message = attempt(&self.0.queue);
            if message.is_some() || over {
                return message;
            }
            backoff.wait();
        }
    }
}
