//! A `Vec` under `parking_lot`'s mutex: the simplest queue, and so the baseline for the cost of a
//! send.
//!
//! The receiver takes the whole vector and leaves an empty one. A queue is no channel: it cannot
//! wait for a message and does not know when all senders are gone. [`unclosed`] adds both.

use super::unclosed::{self, ReceiverEnd, SenderEnd};
use crate::contestants::{Channel, Receiving, Sending};
use parking_lot::Mutex;
use std::{mem, vec};

type Queue<M> = Mutex<Vec<M>>;

/// The queues.
pub(super) struct Channels;

/// The receiver's end, and the messages that it has taken and not yet returned.
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
            // An empty vector of the same capacity, made outside the lock, so that senders need not
            // grow it.
            let empty = Vec::with_capacity(self.taken.as_slice().len());
            self.taken = mem::replace(&mut *queue.lock(), empty).into_iter();
            self.taken.next()
        })
    }
}
