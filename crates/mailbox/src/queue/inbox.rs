//! The messages that the receiver has taken and not yet handed out.

use super::block::{Chain, Spares};
use std::collections::VecDeque;

/// The receiver's own queues. No other thread touches them, so receiving from them costs no atomic
/// operation.
pub(crate) struct Inbox<T> {
    /// Urgent messages, which come before all others.
    pub(crate) urgent: VecDeque<T>,
    /// Ordinary messages: those that a selective receive has seen and kept, or the content of the
    /// base queue's ring when it was exchanged for this one.
    pub(crate) front: VecDeque<T>,
    /// Ordinary messages after those in `front`, not seen by any receive.
    pub(crate) taken: Chain<T>,
    /// Emptied blocks, on their way back to the senders.
    pub(crate) spares: Spares<T>,
}

impl<T> Inbox<T> {
    pub(crate) const fn new() -> Self {
        Self {
            urgent: VecDeque::new(),
            front: VecDeque::new(),
            taken: Chain::new(),
            spares: Spares::some(),
        }
    }

    /// The first ordinary message.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        #[cfg(sim)]
        if let Some(place) = self.front.front() {
            tremula_sync::sim::touch(&raw const *place, size_of::<T>(), false);
        }
        match self.front.pop_front() {
            Some(message) => Some(message),
            None => self.taken.pop(&mut self.spares),
        }
    }

    /// Frees the memory kept for further messages. Messages that a selective receive has kept stay,
    /// in at most twice the memory that they need.
    pub(super) fn free_memory(&mut self) {
        /// A queue of at most this many messages is left as it is.
        const FEW: usize = 4;
        self.spares.free();
        for queue in [&mut self.front, &mut self.urgent] {
            if queue.is_empty() {
                *queue = VecDeque::new();
            } else if queue.capacity() > 2 * queue.len().max(FEW) {
                // Not otherwise: a receiver that waits repeatedly, each time for one more message,
                // must not copy the kept ones each time.
                queue.shrink_to_fit();
            }
        }
    }
}
