//! The receiver's handle.

use crate::queue::{BASE, HANDED, Inbox, SLOTS, URGENT};
use crate::shared::Link;
use crate::waiting::{BatchDelay, YieldBudget};
use crate::{Config, Sender};
use std::fmt;
use std::time::Duration;
use tremula_sync::atomic::Ordering;

/// How long a thread sleeps before it frees the mailbox's memory and sleeps on: longer than the
/// pauses of a mailbox in use, and short compared with the idle time of one that is not.
pub(crate) const GRACE: Duration = Duration::from_millis(5);

/// Makes an unbounded mailbox and its first sender: [`mailbox`] with the default [`Config`].
///
/// Sending never waits for capacity. If the receiver falls behind, the memory grows with the
/// messages.
///
/// ```
/// let (sender, mut mailbox) = tremula_mailbox::unbounded();
/// sender.send("hello").unwrap();
/// assert_eq!(mailbox.recv(), Ok("hello"));
/// ```
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Mailbox<T>) {
    mailbox(Config::default())
}

/// Makes a mailbox for at most `capacity` messages, and its first sender: [`mailbox`] with
/// [`Config::bounded`].
///
/// While the mailbox is full, [`Sender::send`] blocks its thread, and
/// [`Sender::send_async`] waits as a task.
///
/// # Panics
///
/// If `capacity` is 0: nothing could ever be sent. There is no mailbox
/// without capacity, in which each send waits for a receive.
///
/// ```
/// use tremula_mailbox::{TrySendError, bounded};
///
/// let (sender, mut mailbox) = bounded(1);
/// sender.send(1).unwrap();
/// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
/// assert_eq!(mailbox.recv(), Ok(1));
/// ```
#[must_use]
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Mailbox<T>) {
    mailbox(Config::default().bounded(capacity))
}

/// Makes a mailbox and its first sender. [`unbounded`] and [`bounded`] are shorter where the other
/// settings stay as they are.
///
/// ```
/// use tremula_mailbox::{Config, mailbox};
///
/// let (sender, mut mailbox) = mailbox(Config::default());
/// let threads: Vec<_> = (0..4)
///     .map(|number| {
///         let sender = sender.clone();
///         std::thread::spawn(move || sender.send(number))
///     })
///     .collect();
/// drop(sender);
/// let mut all: Vec<_> = mailbox.iter().collect(); // ends when the senders are gone
/// all.sort();
/// assert_eq!(all, [0, 1, 2, 3]);
/// # for thread in threads { thread.join().unwrap().unwrap(); }
/// ```
#[must_use]
pub fn mailbox<T>(config: Config) -> (Sender<T>, Mailbox<T>) {
    let (sender, receiver) = Link::pair(&config);
    let mailbox = Mailbox {
        shared: receiver,
        inbox: Inbox::new(),
        received: 0,
        batch_delay: BatchDelay::none(),
        yield_budget: YieldBudget::least(),
        closed: false,
        ended: false,
    };
    (Sender::new(sender, 0), mailbox)
}

/// Receives the messages of all [`Sender`]s.
///
/// There is one receiver, and receiving takes `&mut self`. Messages of one sender are received
/// in the order sent.
///
/// [`recv`](Self::recv) and its variants block the thread, [`recv_async`](Self::recv_async) and
/// [`Stream`](futures_core::Stream) wait as a task, and [`recv_matching`](Self::recv_matching) and
/// its variants select. They can be mixed.
///
/// Dropping the mailbox closes it, drops the messages in it, and notifies the monitors.
pub struct Mailbox<T> {
    pub(crate) shared: Link<T>,
    pub(crate) inbox: Inbox<T>,
    /// Messages handed out.
    received: u64,
    pub(crate) batch_delay: BatchDelay,
    pub(crate) yield_budget: YieldBudget,
    closed: bool,
    /// The stream has ended: it has returned `None`.
    pub(crate) ended: bool,
}

impl<T> Mailbox<T> {
    /// The next message, if one is there. Takes no lock if the receiver already has messages, or if
    /// the mailbox is empty.
    #[inline]
    pub(crate) fn next_message(&mut self) -> Option<T> {
        if self.shared.signals().any(URGENT) || !self.inbox.urgent.is_empty() {
            self.collect_urgent();
            if let Some(message) = self.inbox.urgent.pop_front() {
                return Some(self.given_out(message));
            }
        }
        loop {
            if let Some(message) = self.inbox.pop() {
                return Some(self.given_out(message));
            }
            // SAFETY: this is the receiver.
            if let Some(message) = unsafe { self.shared.signals().take_handed() } {
                return Some(self.given_out(message));
            }
            if !self.collect() {
                return None;
            }
        }
    }

    /// Moves ordinary messages to the inbox. `false` if there are none.
    #[inline]
    pub(crate) fn collect(&mut self) -> bool {
        let signals = self.shared.signals();
        let some = signals.any(BASE | SLOTS | HANDED);
        if some {
            self.batch_delay.wait();
            let count = self.shared.queue.collect(signals, &mut self.inbox);
            self.batch_delay.note(count);
        }
        some
    }

    #[cold]
    pub(crate) fn collect_urgent(&mut self) {
        let signals = self.shared.signals();
        if signals.any(URGENT) {
            signals.lower(URGENT);
            if let Some(extras) = self.shared.extras() {
                extras.collect_urgent(&mut self.inbox.urgent);
            }
        }
    }

    /// Counts a message that leaves the mailbox, and frees its capacity.
    #[inline]
    pub(crate) fn given_out(&mut self, message: T) -> T {
        self.count_given_out(1);
        message
    }

    #[inline]
    pub(crate) fn count_given_out(&mut self, count: usize) {
        self.received += count as u64;
        // Relaxed: for `len`, which orders nothing.
        self.shared
            .receiver
            .received
            .store(self.received, Ordering::Relaxed);
        if let Some(credits) = &self.shared.credits {
            credits.give(count);
        }
    }

    /// Whether no further message can come.
    pub(crate) fn is_disconnected(&self) -> bool {
        self.closed || self.shared.is_disconnected()
    }

    crate::shared::figures!();

    /// Whether [`close`](Self::close) has been called.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Closes the mailbox to further messages. Messages already sent can still be received; after
    /// them, receiving fails as disconnected. Senders that wait for capacity get their messages
    /// back. Monitors are notified only when the mailbox is dropped.
    ///
    /// ```
    /// use tremula_mailbox::{Config, RecvError, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// sender.send(1).unwrap();
    /// mailbox.close();
    /// assert!(sender.send(2).is_err());
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// assert_eq!(mailbox.recv(), Err(RecvError));
    /// ```
    pub fn close(&mut self) {
        self.closed = true;
        close(&self.shared, &mut self.inbox);
    }
}

fn close<T>(shared: &Link<T>, inbox: &mut Inbox<T>) {
    if let Some(credits) = &shared.credits {
        credits.close();
    }
    shared.queue.close(shared.signals(), inbox);
    if let Some(extras) = shared.extras() {
        extras.close_urgent(&mut inbox.urgent);
        // Last: a sender that is woken finds the mailbox closed in every respect.
        for waiter in extras.closing().close() {
            waiter.wake();
        }
    }
}

// SAFETY: a shared reference gives access to counts only, never to a message.
unsafe impl<T: Send> Sync for Mailbox<T> {}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        /// Sends the notices and releases the link, even if dropping a message panics.
        struct Down<'a, T>(&'a Link<T>);
        impl<T> Drop for Down<'_, T> {
            fn drop(&mut self) {
                self.0.remove_receiver();
            }
        }
        let _down = Down(&self.shared);
        close(&self.shared, &mut self.inbox);
        // Dropped before the notices are sent: a watcher that learns that the mailbox is down finds
        // its messages dropped and their answers refused.
        self.inbox = Inbox::new();
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Mailbox").finish_non_exhaustive()
    }
}
