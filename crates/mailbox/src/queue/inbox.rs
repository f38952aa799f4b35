//! What the receiver has taken and not yet given out.

use super::block::{Chain, Spares};
use std::collections::VecDeque;

/// The receiver's own queues. Nobody else touches them, so receiving what is here costs no
/// atomic operation.
pub(crate) struct Inbox<T> {
    /// Urgent messages, before all others.
    pub(crate) urgent: VecDeque<T>,
    /// Ordinary messages: those that a selective receive has seen and kept, or what the base
    /// queue's ring held when it was exchanged for this one.
    pub(crate) front: VecDeque<T>,
    /// Ordinary messages behind those, that nobody has seen yet.
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
        match self.front.pop_front() {
            Some(message) => Some(message),
            None => self.taken.pop(&mut self.spares),
        }
    }

    /// Frees the memory that is kept for the next messages. Messages that a selective receive has
    /// kept stay, in no more than twice the memory that they need.
    pub(super) fn free_memory(&mut self) {
        /// A queue of so few messages is left as it is.
        const FEW: usize = 4;
        self.spares.free();
        for queue in [&mut self.front, &mut self.urgent] {
            if queue.is_empty() {
                *queue = VecDeque::new();
            } else if queue.capacity() > 2 * queue.len().max(FEW) {
                // Only then: a receiver that waits again and again, each time for one message
                // more, must not copy those that it keeps each time.
                queue.shrink_to_fit();
            }
        }
    }
}
