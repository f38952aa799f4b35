//! `crossfire::mpsc::unbounded_blocking`: a list of blocks, with one receiver that may be a thread.
//!
//! It has no priorities and no selective receive.

use crate::contestants::{Channel, Receiving, Sending};
use ::crossfire::{
    MTx, Rx, Tx,
    mpsc::{List, unbounded_blocking},
};

/// The channels.
pub(super) struct Channels;

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = MTx<List<M>>;
    type Receiver = Rx<List<M>>;

    fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
        unbounded_blocking()
    }
}

impl<M: Send + 'static> Sending<M> for MTx<List<M>> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        let sent = Tx::send(self, message);
        assert!(sent.is_ok(), "the receiver is there");
    }
}

impl<M: Send + 'static> Receiving<M> for Rx<List<M>> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        self.recv().ok()
    }
}
