//! `flume::unbounded`: a queue under one lock, for many receivers.
//!
//! It has no priorities and no selective receive.

use crate::contestants::{Channel, Receiving, Sending};
use ::flume::{Receiver, Sender, unbounded};

/// The channels.
pub(super) struct Channels;

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = Sender<M>;
    type Receiver = Receiver<M>;

    fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
        unbounded()
    }
}

impl<M: Send + 'static> Sending<M> for Sender<M> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        let sent = Self::send(self, message);
        assert!(sent.is_ok(), "the receiver is there");
    }
}

impl<M: Send + 'static> Receiving<M> for Receiver<M> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        self.recv().ok()
    }
}
