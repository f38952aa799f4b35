//! A `Vec` under `parking_lot`'s mutex: the least that a queue can be, and so the measure of what a
//! send costs.
//!
//! The receiver takes the whole vector and leaves an empty one. It is a queue and no channel: it
//! cannot wait for a message and does not know of its end, which [`unclosed`] adds.

use super::unclosed::{self, ReceiverEnd, SenderEnd};
use crate::contestants::{Channel, Receiving, Sending};
use parking_lot::Mutex;
use std::{mem, vec};

type Queue<M> = Mutex<Vec<M>>;

/// The queues.
pub(super) struct Channels;

/// The receiver's end, and what it has taken and not yet given out.
pub(super) struct Receiver<M> {
    end: ReceiverEnd<Queue<M>>,
    taken: vec::IntoIter<M>,
}

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = SenderEnd<Queue<M>>;
    type Receiver = Receiver<M>;

    fn open(&self, _senders: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, end) = unclosed::open(Queue::default());
        let taken = Vec::new().into_iter();
        (sender, Receiver { end, taken })
    }
}

impl<M: Send + 'static> Sending<M> for SenderEnd<Queue<M>> {
    fn another(&self) -> Self {
        self.clone()
    }

    #[inline]
    fn send(&mut self, message: M) {
        self.queue().lock().push(message);
    }
}

impl<M: Send + 'static> Receiving<M> for Receiver<M> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        if let Some(message) = self.taken.next() {
            return Some(message);
        }
        self.end.wait(|queue| {
            // An empty one with as much room, made outside of the lock, so that none grows anew.
            let empty = Vec::with_capacity(self.taken.as_slice().len());
            self.taken = mem::replace(&mut *queue.lock(), empty).into_iter();
            self.taken.next()
        })
    }
}
