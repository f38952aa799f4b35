//! One value, sent once: the smallest channel, and what carries the answer of a call.

use crate::waiting::deadline;
use crate::{RecvError, RecvTimeoutError, TryRecvError};
use futures_core::future::FusedFuture;
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tremula_sync::{Arc, Mutex, Waiter, park};

/// Makes a channel for one value. Both handles work as a thread and as a task, on any runtime.
///
/// One allocation, which is freed with the second handle.
///
/// ```
/// use tremula_mailbox::oneshot;
///
/// let (sender, receiver) = oneshot();
/// let thread = std::thread::spawn(move || sender.send(6 * 7));
/// assert_eq!(receiver.recv(), Ok(42));
/// assert_eq!(thread.join().unwrap(), Ok(()));
/// ```
pub fn oneshot<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let open = State::Open {
        receiver: None,
        sender: None,
    };
    let shared = Arc::new(Shared(Mutex::new(open)));
    let sender = OneshotSender {
        shared: Arc::clone(&shared),
    };
    (sender, OneshotReceiver { shared })
}

/// What the two handles share. No code of the user runs under the lock: values and wakers are
/// dropped, and tasks are woken, after it.
struct Shared<T>(Mutex<State<T>>);

enum State<T> {
    /// No value yet, and both handles wait or may wait for the other one.
    Open {
        /// Waits for the value.
        receiver: Option<Waiter>,
        /// Waits until the receiver is gone.
        sender: Option<Waiter>,
    },
    /// The value is here, and the receiver has not taken it.
    Sent(T),
    /// The sender was dropped without a value.
    SenderGone,
    /// The value was taken, or the receiver was closed or dropped before it came.
    Over,
}

impl<T> Shared<T> {
    /// Puts what the sender leaves behind, and wakes the receiver. Returns it if the receiver is
    /// gone, or if the sender has already left a value.
    fn settle(&self, left: State<T>) -> Result<(), State<T>> {
        let mut state = self.0.lock();
        let State::Open { receiver, sender } = &mut *state else {
            return Err(left);
        };
        let (receiver, sender) = (receiver.take(), sender.take());
        *state = left;
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        drop(sender);
        Ok(())
    }

    /// Takes the value, or registers the receiver's waiter, to be woken when the sender has sent a
    /// value or is gone.
    ///
    /// Both happen under one lock, and so does [`settle`](Self::settle): the sender is either
    /// first, and its value is found here, or second, and it finds the waiter.
    fn take_or_wait(&self, waiter: Waiter) -> Option<Result<T, RecvError>> {
        let mut state = self.0.lock();
        if let State::Open { receiver, .. } = &mut *state {
            let before = receiver.replace(waiter);
            drop(state);
            drop(before);
            return None;
        }
        Some(Self::take(&mut state).ok_or(RecvError))
    }

    /// Takes the value of a state that is not open.
    fn take(state: &mut State<T>) -> Option<T> {
        match mem::replace(state, State::Over) {
            State::Sent(value) => Some(value),
            _ => None,
        }
    }

    /// Refuses a value that has not been sent yet, and wakes the sender.
    fn close(&self) {
        let mut state = self.0.lock();
        if let State::Open { receiver, sender } = &mut *state {
            let (receiver, sender) = (receiver.take(), sender.take());
            *state = State::Over;
            drop(state);
            if let Some(sender) = sender {
                sender.wake();
            }
            drop(receiver);
        }
    }

    /// Registers the sender's waiter, to be woken when the receiver is gone. `false` if it is gone.
    ///
    /// Under the lock of [`close`](Self::close): the receiver is either first, and the state shows
    /// it, or second, and it finds the waiter.
    fn wait_until_closed(&self, waiter: Waiter) -> bool {
        let mut state = self.0.lock();
        let State::Open { sender, .. } = &mut *state else {
            return false;
        };
        let before = sender.replace(waiter);
        drop(state);
        drop(before);
        true
    }
}

/// Sends the value of a [`oneshot`], or the answer to a [`call`](crate::Sender::call).
///
/// If it is dropped without a value, the receiver's wait ends with an error.
pub struct OneshotSender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> OneshotSender<T> {
    /// Sends the value. Never waits. O(1), no allocation, no copy beyond the move.
    ///
    /// # Errors
    ///
    /// The receiver is gone or closed. The error holds the value.
    ///
    /// ```
    /// use tremula_mailbox::oneshot;
    ///
    /// let (sender, receiver) = oneshot();
    /// drop(receiver);
    /// assert_eq!(sender.send("anyone?"), Err("anyone?"));
    /// ```
    pub fn send(self, value: T) -> Result<(), T> {
        self.shared.settle(State::Sent(value)).map_err(|left| {
            let State::Sent(value) = left else {
                unreachable!("what was put comes back");
            };
            value
        })
    }

    /// Whether the receiver is gone or closed, so that a value would come back. O(1).
    ///
    /// ```
    /// use tremula_mailbox::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot::<u64>();
    /// assert!(!sender.is_closed());
    /// receiver.close();
    /// assert!(sender.is_closed());
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !matches!(*self.shared.0.lock(), State::Open { .. })
    }

    /// Waits, as a task, until the receiver is gone or closed: a sender that works for the value
    /// can stop then.
    ///
    /// Cancel-safe. At most one task or thread waits; a second one cannot exist, because this takes
    /// `&mut self`.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::pin::pin;
    /// use tremula_mailbox::oneshot;
    ///
    /// let (mut sender, receiver) = oneshot::<u64>();
    /// let mut closed = pin!(sender.closed());
    /// assert!(closed.as_mut().poll(&mut cx).is_pending());
    /// drop(receiver); // wakes the task
    /// assert!(closed.as_mut().poll(&mut cx).is_ready());
    /// ```
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Whether the receiver is gone or closed. If not, the task is woken when it is. Only the waker
    /// of the latest call is woken.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use tremula_mailbox::oneshot;
    ///
    /// let (mut sender, receiver) = oneshot::<u64>();
    /// assert!(sender.poll_closed(&mut cx).is_pending());
    /// # drop(receiver);
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let waiter = Waiter::Task(cx.waker().clone());
        if self.shared.wait_until_closed(waiter) {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Waits, as a thread, until the receiver is gone or closed, but no longer than `timeout`.
    /// Returns whether it is.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::oneshot;
    ///
    /// let (mut sender, receiver) = oneshot::<u64>();
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)));
    /// drop(receiver);
    /// assert!(sender.closed_timeout(Duration::MAX));
    /// ```
    pub fn closed_timeout(&mut self, timeout: Duration) -> bool {
        let deadline = deadline(timeout);
        while self.shared.wait_until_closed(Waiter::this_thread()) {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            park(deadline);
        }
        true
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        // After a value this changes nothing.
        let _ = self.shared.settle(State::SenderGone);
    }
}

impl<T> fmt::Debug for OneshotSender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OneshotSender").finish_non_exhaustive()
    }
}

/// Receives the value of a [`oneshot`]. It is also a future: `receiver.await` gives the value.
///
/// Dropping it drops a value that was sent and not received, and gives a later one back to its
/// sender.
///
/// ```
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// use std::pin::pin;
/// use std::task::Poll;
/// use tremula_mailbox::oneshot;
///
/// let (sender, receiver) = oneshot();
/// let mut task = pin!(async move { receiver.await });
/// assert!(task.as_mut().poll(&mut cx).is_pending());
/// sender.send(1).unwrap(); // wakes the task
/// assert_eq!(task.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
/// ```
#[must_use = "a value that nobody receives goes back to its sender"]
pub struct OneshotReceiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> OneshotReceiver<T> {
    /// Waits for the value, as a thread. A task awaits the receiver itself instead.
    ///
    /// O(1), no copy beyond the move.
    ///
    /// # Errors
    ///
    /// The sender was dropped without a value, or the value was received before, or this receiver
    /// was closed before a value came.
    ///
    /// ```
    /// use tremula_mailbox::{RecvError, oneshot};
    ///
    /// let (sender, receiver) = oneshot::<u64>();
    /// drop(sender);
    /// assert_eq!(receiver.recv(), Err(RecvError));
    /// ```
    pub fn recv(self) -> Result<T, RecvError> {
        self.wait(None).map_err(|_| RecvError)
    }

    /// The value, if it is here. O(1).
    ///
    /// # Errors
    ///
    /// There is no value yet; or none will come any more, for the reasons of [`recv`](Self::recv).
    ///
    /// ```
    /// use tremula_mailbox::{TryRecvError, oneshot};
    ///
    /// let (sender, mut receiver) = oneshot();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut state = self.shared.0.lock();
        if matches!(*state, State::Open { .. }) {
            return Err(TryRecvError::Empty);
        }
        Shared::take(&mut state).ok_or(TryRecvError::Disconnected)
    }

    /// Waits for the value, as a thread, but no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// No value came in time; or none will come any more, for the reasons of [`recv`](Self::recv).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::{RecvTimeoutError, oneshot};
    ///
    /// let (sender, mut receiver) = oneshot();
    /// let none = receiver.recv_timeout(Duration::from_millis(1));
    /// assert_eq!(none, Err(RecvTimeoutError::Timeout));
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.recv_timeout(Duration::MAX), Ok(1));
    /// ```
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.wait(deadline(timeout))
    }

    /// Like [`recv_timeout`](Self::recv_timeout), with a deadline.
    ///
    /// # Errors
    ///
    /// As for [`recv_timeout`](Self::recv_timeout).
    ///
    /// ```
    /// use std::time::Instant;
    /// use tremula_mailbox::{RecvTimeoutError, oneshot};
    ///
    /// let (_sender, mut receiver) = oneshot::<u64>();
    /// let none = receiver.recv_deadline(Instant::now());
    /// assert_eq!(none, Err(RecvTimeoutError::Timeout));
    /// ```
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.wait(Some(deadline))
    }

    /// Waits for the value as a thread. Without a deadline it never ends with a timeout.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            if let Some(value) = self.shared.take_or_wait(Waiter::this_thread()) {
                return value.map_err(RecvTimeoutError::from);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(RecvTimeoutError::Timeout);
            }
            park(deadline);
        }
    }

    /// Refuses a value from now on: the sender gets it back, and a sender that waits in
    /// [`closed`](OneshotSender::closed) is woken. A value that was sent before can still be
    /// received. O(1).
    ///
    /// ```
    /// use tremula_mailbox::oneshot;
    ///
    /// let (sender, mut receiver) = oneshot();
    /// receiver.close();
    /// assert_eq!(sender.send(1), Err(1));
    /// assert!(receiver.try_recv().is_err());
    /// ```
    pub fn close(&mut self) {
        self.shared.close();
    }
}

/// The value, or the error of [`recv`](OneshotReceiver::recv). Cancel-safe: the value stays until
/// it is received or the receiver is dropped.
impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = Waiter::Task(cx.waker().clone());
        let taken = self.shared.take_or_wait(waiter);
        taken.map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> FusedFuture for OneshotReceiver<T> {
    fn is_terminated(&self) -> bool {
        matches!(*self.shared.0.lock(), State::Over)
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.shared.close();
        let state = mem::replace(&mut *self.shared.0.lock(), State::Over);
        drop(state); // the user's value, if there is one: not under the lock
    }
}

impl<T> fmt::Debug for OneshotReceiver<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OneshotReceiver").finish_non_exhaustive()
    }
}
