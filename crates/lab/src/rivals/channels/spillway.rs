//! `spillway::channel_with_concurrency`: each sender has a lane, a queue under a lock of its own;
//! the receiver takes one whole lane after the other.
//!
//! Only a task can receive. Here a thread waits with a waker that unparks it. The channel has no
//! priorities, no selective receive and no length.

use crate::contestants::{Channel, Receiving, Sending};
use ::spillway::{Receiver, Sender, channel_with_concurrency};
use std::{
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

/// The number of lanes of `spillway::channel`.
const FEWEST_LANES: usize = 8;

/// The channels.
pub(super) struct Channels;

/// The receiver's end, and the waker of the thread that has it.
pub(super) struct WaitingReceiver<M> {
    receiver: Receiver<M>,
    waker: Option<Waker>,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl<M: Send + 'static> Channel<M> for Channels {
    type Sender = Sender<M>;
    type Receiver = WaitingReceiver<M>;

    /// Opens a lane for each sender, as the crate's documentation advises.
    fn open(&self, senders: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = channel_with_concurrency(senders.max(FEWEST_LANES));
        let waker = None;
        (sender, WaitingReceiver { receiver, waker })
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

impl<M: Send + 'static> Receiving<M> for WaitingReceiver<M> {
    #[inline]
    fn receive(&mut self) -> Option<M> {
        let this_thread = || Waker::from(Arc::new(Unpark(thread::current())));
        let waker = self.waker.get_or_insert_with(this_thread);
        let context = &mut Context::from_waker(waker);
        loop {
            match self.receiver.poll_next(context) {
                Poll::Ready(next) => return next,
                Poll::Pending => thread::park(),
            }
        }
    }
}
