//! Weak senders: handles that keep no mailbox connected.

use crate::Sender;
use crate::shared::Link;
use std::fmt;

/// A handle to a mailbox that does not count as a sender, see [`Sender::downgrade`].
///
/// A mailbox with weak senders only is disconnected: the receiver gets the messages that are left,
/// and then the end. A weak sender cannot send; [`upgrade`](Self::upgrade) makes a sender of it, as
/// long as there is another sender. Use it for what must not keep a mailbox alive, for example the
/// registry of all actors, or an actor's handle to itself.
///
/// Weak senders keep no messages. They keep the few hundred bytes of the empty mailbox until the
/// last of them is dropped.
pub struct WeakSender<T> {
    shared: Link<T>,
}

impl<T> Sender<T> {
    /// A weak sender to the same mailbox. O(1), no allocation.
    ///
    /// ```
    /// use tremula_mailbox::{RecvError, unbounded};
    ///
    /// let (sender, mut mailbox) = unbounded();
    /// let weak = sender.downgrade();
    /// weak.upgrade().unwrap().send(1).unwrap();
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// assert_eq!(mailbox.recv(), Err(RecvError)); // although there is a weak sender
    /// ```
    #[must_use]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender {
            shared: self.shared.add_holder(),
        }
    }
}

impl<T> WeakSender<T> {
    /// A sender to the mailbox, with an order of its own, like a clone. `None` if the last sender
    /// has been dropped: a mailbox that is disconnected stays so.
    ///
    /// Linearizable with the drop of the last sender: either the mailbox stays connected, or there
    /// is no sender. If only the receiver is gone or closed, there is a sender, and its sends fail.
    /// O(1), no allocation.
    ///
    /// ```
    /// use tremula_mailbox::{SendError, unbounded};
    ///
    /// let (sender, mailbox) = unbounded();
    /// let weak = sender.downgrade();
    /// drop(mailbox);
    /// assert_eq!(weak.upgrade().unwrap().send(1), Err(SendError(1)));
    /// drop(sender);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let (shared, number) = self.shared.add_sender_if_connected()?;
        Some(Sender::new(shared, number))
    }

    /// How many senders there are, the same as [`Sender::sender_count`]. 0 for good once it is 0.
    #[must_use]
    pub fn sender_count(&self) -> usize {
        self.shared.sender_count()
    }

    /// Whether both weak senders belong to the same mailbox.
    #[must_use]
    pub fn same_mailbox(&self, other: &Self) -> bool {
        self.shared.is_to_same(&other.shared)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.add_holder(),
        }
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        self.shared.remove_holder();
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("WeakSender").finish_non_exhaustive()
    }
}
