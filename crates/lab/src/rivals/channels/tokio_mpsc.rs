//! `tokio::sync::mpsc::unbounded_channel`: a list of blocks of 32 messages, made for tasks.
//!
//! A thread receives by `blocking_recv`, as here; a task of tokio by `recv`. It has no priorities and
//! no selective receive.

use crate::contestants::{Channel, Receiving, Sending};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The channels.
pub(super) struct Channels;

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = UnboundedSender<M>;
    type Receiver = UnboundedReceiver<M>;

    fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
        unbounded_channel()
    }
}

impl<M: Send + 'static> Sending<M> for UnboundedSender<M> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        let sent = Self::send(self, message);
        assert!(sent.is_ok(), "the receiver is there");
    }
}

impl<M: Send + 'static> Receiving<M> for UnboundedReceiver<M> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        self.blocking_recv()
    }
}
