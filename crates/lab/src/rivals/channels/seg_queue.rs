//! `crossbeam_queue::SegQueue`: a lock-free list of blocks of 31 messages, for many receivers.
//!
//! A queue is no channel: it cannot wait for a message and does not know when all senders are gone.
//! [`unclosed`] adds both.

use super::unclosed::{self, ReceiverEnd, SenderEnd};
use crate::contestants::{Channel, Receiving, Sending};
use crossbeam_queue::SegQueue;

/// The queues.
pub(super) struct Channels;

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = SenderEnd<SegQueue<M>>;
    type Receiver = ReceiverEnd<SegQueue<M>>;

    fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
        unclosed::open(SegQueue::new())
    }
}

impl<M: Send + 'static> Sending<M> for SenderEnd<SegQueue<M>> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        self.queue().push(message);
    }
}

impl<M: Send + 'static> Receiving<M> for ReceiverEnd<SegQueue<M>> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        self.wait(SegQueue::pop)
    }
}
