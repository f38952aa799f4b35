//! The errors of sending, receiving and calling.

use std::fmt;

/// The mailbox is closed. Holds the message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the mailbox is closed")]
pub struct SendError<T>(pub T);

/// The message could not be sent at once. Holds it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError<T> {
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Full(T),
    /// The mailbox is closed.
    #[error("the mailbox is closed")]
    Closed(T),
}

/// The message could not be sent in time. Holds it.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendTimeoutError<T> {
    /// The mailbox was full until the timeout.
    #[error("the mailbox was full for too long")]
    Timeout(T),
    /// The mailbox is closed.
    #[error("the mailbox is closed")]
    Closed(T),
}

/// No further message will come: all senders are gone, or the mailbox has been closed, and every
/// message has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no message is left, and no sender")]
pub struct RecvError;

/// The mailbox has no message at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// Messages may still come.
    #[error("no message is there")]
    Empty,
    /// No message will come any more.
    #[error("no message is left, and no sender")]
    Disconnected,
}

/// No message came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvTimeoutError {
    /// Messages may still come.
    #[error("no message came in time")]
    Timeout,
    /// No message will come any more.
    #[error("no message is left, and no sender")]
    Disconnected,
}

/// A call had no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer came in time. The request may still be served, and its answer is dropped.
    #[error("no answer came in time")]
    Timeout,
    /// The mailbox was closed, or the request was dropped without an answer.
    #[error("the receiver went down without an answer")]
    Down,
}

impl<T> SendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> TrySendError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(message) | Self::Closed(message) => message,
        }
    }
}

impl<T> SendTimeoutError<T> {
    /// The message.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(message) | Self::Closed(message) => message,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(error: SendError<T>) -> Self {
        Self::Closed(error.0)
    }
}

impl From<RecvTimeoutError> for TryRecvError {
    fn from(error: RecvTimeoutError) -> Self {
        match error {
            RecvTimeoutError::Timeout => Self::Empty,
            RecvTimeoutError::Disconnected => Self::Disconnected,
        }
    }
}

impl From<RecvError> for TryRecvError {
    fn from(_: RecvError) -> Self {
        Self::Disconnected
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(_: RecvError) -> Self {
        Self::Disconnected
    }
}

// By hand, so that the errors are `Debug` even if the messages are not.

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}
