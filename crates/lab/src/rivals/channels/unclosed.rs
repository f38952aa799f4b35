//! A queue that is no channel: who looks after its end, and waits for its messages.
//!
//! What a program has to add that receives from a plain queue: a count of the senders, and a wait
//! that spins for a while and then gives the core away, over and over. Such a receiver never
//! sleeps, and so takes a core even if nothing comes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tremula_sync::Backoff;

/// A queue and how many senders use it.
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
        // Relaxed: made from one that lives, which keeps the count above 0.
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl<Q> Drop for SenderEnd<Q> {
    fn drop(&mut self) {
        // Release: pairs with the load in `wait`; what was sent before is found after it.
        self.0.senders.fetch_sub(1, Ordering::Release);
    }
}

impl<Q> ReceiverEnd<Q> {
    /// Waits until `attempt` gives a message, or no sender is left and it gives none.
    #[inline]
    pub(super) fn wait<M>(&self, mut attempt: impl FnMut(&Q) -> Option<M>) -> Option<M> {
        let backoff = Backoff::new();
        loop {
            // Acquire: pairs with the subtraction of the last sender. Asked first: what it sent
            // is there if it is gone.
            let over = self.0.senders.load(Ordering::Acquire) == 0;
            let message = attempt(&self.0.queue);
            if message.is_some() || over {
                return message;
            }
            backoff.wait();
        }
    }
}
