//! Request and reply: a message that carries a handle for its answer.

use crate::waiting::deadline;
use crate::{CallError, OneshotSender, RecvTimeoutError, SendTimeoutError, Sender, oneshot};
use std::time::Duration;

/// The handle for an answer to the caller, which is part of the request.
///
/// It takes one answer. If it is dropped without one, for instance with a request that was never
/// received, the caller's wait ends with an error. [`OneshotSender::closed`] and
/// [`OneshotSender::is_closed`] tell whether the caller still waits.
pub type Reply<R> = OneshotSender<R>;

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
        let (reply, answer) = oneshot();
        match self.send_timeout(request(reply), timeout) {
            Ok(()) => {}
            Err(SendTimeoutError::Timeout(_)) => return Err(CallError::Timeout),
            Err(SendTimeoutError::Closed(_)) => return Err(CallError::Down),
        }
        answer.wait(deadline).map_err(|error| match error {
            RecvTimeoutError::Timeout => CallError::Timeout,
            RecvTimeoutError::Disconnected => CallError::Down,
        })
    }

    /// Like [`call`](Self::call), as a task, on any runtime. Limit the wait with the runtime's own
    /// timeouts: dropping the future gives the answer up.
    ///
    /// # Errors
    ///
    /// The mailbox went down, or the request was dropped, without an answer.
    pub async fn call_async<R>(&self, request: impl FnOnce(Reply<R>) -> T) -> Result<R, CallError> {
        let (reply, answer) = oneshot();
        if self.send_async(request(reply)).await.is_err() {
            return Err(CallError::Down);
        }
        answer.await.map_err(|_| CallError::Down)
    }
}
