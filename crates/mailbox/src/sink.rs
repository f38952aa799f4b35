//! A sender as a sink of the `futures` crates.

use crate::claim::Claim;
use crate::{SendError, Sender};
use futures_sink::Sink;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A sender is a sink: `stream.map(Ok).forward(sender)` sends a stream's messages, and waits as a
/// task while the mailbox is full.
///
/// Messages are sent at once: flushing does nothing. [`poll_ready`](Sink::poll_ready) reserves
/// capacity for one message, and the sender holds it until the message is sent, or the sink is
/// closed, or the sender is dropped. Closing the sink does nothing else, and the mailbox stays
/// connected until the last sender is dropped; `forward` drops the one that it was given when its
/// future is dropped. O(1) a message; the first message to a bounded mailbox allocates a few bytes.
///
/// The error means that the mailbox is closed. A message that was given to the sink then is
/// dropped.
///
/// `SinkExt::send` is hidden by [`Sender::send`], which blocks the thread: use
/// [`Sender::send_async`], or `SinkExt::feed`.
///
/// # Panics
///
/// `start_send` on a bounded mailbox, without a call of `poll_ready` before it that has returned
/// `Ready(Ok(()))`.
///
/// ```
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut cx) {
/// #             return output;
/// #         }
/// #     }
/// # }
/// use futures_util::{StreamExt, stream};
/// use tremula_mailbox::unbounded;
///
/// let (sender, mailbox) = unbounded();
/// block_on(stream::iter(1..=3).map(Ok).forward(sender)).unwrap();
/// assert!(mailbox.into_iter().eq(1..=3));
/// ```
impl<T> Sink<T> for Sender<T> {
    type Error = SendError<()>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let sender = self.get_mut();
        let Some(credits) = &sender.shared.credits else {
            return Poll::Ready(Ok(())); // that it is closed shows when the message is sent
        };
        let claim = sender.claim.get_or_insert_default();
        let credit = ready!(claim.poll(credits, cx));
        Poll::Ready(if credit.is_taken() {
            Ok(())
        } else {
            Err(SendError(()))
        })
    }

    fn start_send(self: Pin<&mut Self>, message: T) -> Result<(), Self::Error> {
        let sender = self.get_mut();
        if sender.shared.credits.is_some() {
            assert!(
                matches!(sender.claim.as_deref(), Some(Claim::Held)),
                "start_send needs a poll_ready before it that has returned Ready(Ok(()))"
            );
            // The capacity goes with the message; the receiver gives it back.
            sender.claim.as_deref_mut().map(std::mem::take);
        }
        sender.deliver(message).map_err(|_| SendError(()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.get_mut().give_up_claim();
        Poll::Ready(Ok(()))
    }
}

impl<T> Sender<T> {
    /// Gives back what the sink holds of the capacity.
    pub(crate) fn give_up_claim(&mut self) {
        if let (Some(claim), Some(credits)) = (&mut self.claim, &self.shared.credits) {
            claim.give_up(credits);
        }
    }
}
