//! Request and reply: a message that carries a handle for its answer.

use crate::mailbox::deadline;
use crate::{CallError, SendTimeoutError, Sender};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::task::Poll;
use std::time::{Duration, Instant};
use tremula_sync::{Arc, Mutex, Waiter, park};

/// The state that the caller and the answering thread share.
struct Answer<R>(Mutex<State<R>>);

enum State<R> {
    /// No answer yet. The caller may be asleep.
    Open(Option<Waiter>),
    Answered(R),
    /// The [`Reply`] was dropped.
    Down,
    /// The caller has taken the answer, or no longer waits for one.
    Over,
}

/// The handle for an answer to the caller, which is part of the request.
///
/// It takes one answer. If it is dropped without one, for instance with a request that was never
/// received, the caller's wait ends with an error.
pub struct Reply<R> {
    answer: Arc<Answer<R>>,
}

impl<R> Reply<R> {
    /// Answers. O(1).
    ///
    /// # Errors
    ///
    /// The caller no longer waits. The error holds the answer.
    pub fn send(self, answer: R) -> Result<(), R> {
        self.answer.put(State::Answered(answer)).map_err(|state| {
            let State::Answered(answer) = state else {
                unreachable!("what was put comes back");
            };
            answer
        })
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        // After an answer this changes nothing.
        let _ = self.answer.put(State::Down);
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reply").finish_non_exhaustive()
    }
}

impl<R> Answer<R> {
    /// Settles the answer and wakes the caller. Returns the state if the answer was already
    /// settled.
    fn put(&self, state: State<R>) -> Result<(), State<R>> {
        let mut guard = self.0.lock();
        let State::Open(waiter) = &mut *guard else {
            return Err(state);
        };
        let waiter = waiter.take();
        *guard = state;
        drop(guard);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        Ok(())
    }

    /// Takes the answer, or registers the waiter to wake when it comes.
    fn take_or_wait(&self, waiter: Waiter) -> Option<Result<R, CallError>> {
        let mut guard = self.0.lock();
        if let State::Open(before) = &mut *guard {
            let before = before.replace(waiter);
            drop(guard);
            drop(before); // the user's code, if it is a task's: not under the lock
            return None;
        }
        match mem::replace(&mut *guard, State::Over) {
            State::Answered(answer) => Some(Ok(answer)),
            _ => Some(Err(CallError::Down)),
        }
    }
}

/// A caller that waits for an answer. Dropping it gives the answer up.
struct Asked<R>(Arc<Answer<R>>);

impl<R> Drop for Asked<R> {
    fn drop(&mut self) {
        let state = mem::replace(&mut *self.0.0.lock(), State::Over);
        drop(state); // the user's answer, if there is one: not under the lock
    }
}

fn ask<R>() -> (Reply<R>, Asked<R>) {
    let answer = Arc::new(Answer(Mutex::new(State::Open(None))));
    let reply = Reply {
        answer: Arc::clone(&answer),
    };
    (reply, Asked(answer))
}

impl<T> Sender<T> {
    /// Sends a request and waits for its answer; both together take no longer than `timeout`.
    /// `request` makes the message from the handle for the answer.
    ///
    /// # Errors
    ///
    /// No answer came in time; or the mailbox went down, or the request was dropped, without one.
    /// An answer that was sent before the mailbox went down is not lost.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::{CallError, Config, Reply, mailbox};
    ///
    /// enum Request {
    ///     Double(u64, Reply<u64>),
    /// }
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// let server = std::thread::spawn(move || {
    ///     let Ok(Request::Double(number, reply)) = mailbox.recv() else { return };
    ///     reply.send(2 * number).unwrap();
    /// });
    /// let limit = Duration::from_secs(60);
    /// assert_eq!(sender.call(|reply| Request::Double(21, reply), limit), Ok(42));
    /// server.join().unwrap();
    /// let late = sender.call(|reply| Request::Double(1, reply), limit);
    /// assert_eq!(late, Err(CallError::Down));
    /// ```
    pub fn call<R>(
        &self,
        request: impl FnOnce(Reply<R>) -> T,
        timeout: Duration,
    ) -> Result<R, CallError> {
        let deadline = deadline(timeout);
        let (reply, asked) = ask();
        match self.send_timeout(request(reply), timeout) {
            Ok(()) => {}
            Err(SendTimeoutError::Timeout(_)) => return Err(CallError::Timeout),
            Err(SendTimeoutError::Closed(_)) => return Err(CallError::Down),
        }
        loop {
            if let Some(answer) = asked.0.take_or_wait(Waiter::this_thread()) {
                return answer;
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(CallError::Timeout);
            }
            park(deadline);
        }
    }

    /// Like [`call`](Self::call), as a task, on any runtime. Limit the wait with the runtime's own
    /// timeouts: dropping the future gives the answer up.
    ///
    /// # Errors
    ///
    /// The mailbox went down, or the request was dropped, without an answer.
    pub async fn call_async<R>(&self, request: impl FnOnce(Reply<R>) -> T) -> Result<R, CallError> {
        let (reply, asked) = ask();
        if self.send_async(request(reply)).await.is_err() {
            return Err(CallError::Down);
        }
        poll_fn(|cx| {
            let waiter = Waiter::Task(cx.waker().clone());
            asked
                .0
                .take_or_wait(waiter)
                .map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
