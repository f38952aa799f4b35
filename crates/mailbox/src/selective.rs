//! Selective receive: takes the first message that matches, and keeps the others in order.

use crate::waiting::deadline;
use crate::{Mailbox, RecvError, RecvTimeoutError, TryRecvError};
use std::future::poll_fn;
use std::time::Duration;

/// How far one selective receive has looked. The messages before this point did not match, and the
/// same receive does not look at them again.
#[derive(Default)]
struct Seen {
    urgent: usize,
    ordinary: usize,
}

impl<T> Mailbox<T> {
    /// Waits for a message that matches, and takes the first one: urgent messages come before
    /// ordinary ones, and earlier messages before later ones. The other messages stay in place.
    ///
    /// O(messages seen). While it waits, it does not look again at messages already seen; a new
    /// call begins at the first message.
    ///
    /// # Errors
    ///
    /// No message matches, and no sender is left.
    ///
    /// # Panics
    ///
    /// If `fits` panics. No message is lost.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// (1..=5).for_each(|number| sender.send(number).unwrap());
    /// assert_eq!(mailbox.recv_matching(|number| number % 2 == 0), Ok(2));
    /// assert_eq!(mailbox.try_iter().collect::<Vec<_>>(), [1, 3, 4, 5]);
    /// ```
    pub fn recv_matching(&mut self, mut fits: impl FnMut(&T) -> bool) -> Result<T, RecvError> {
        let mut seen = Seen::default();
        self.wait(None, |mailbox| mailbox.first_match(&mut seen, &mut fits))
            .map_err(|_| RecvError)
    }

    /// Like [`recv_matching`](Self::recv_matching), without waiting.
    ///
    /// # Errors
    ///
    /// No message matches now, or none will any more.
    pub fn try_recv_matching(
        &mut self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Result<T, TryRecvError> {
        let mut seen = Seen::default();
        self.try_once(|mailbox| mailbox.first_match(&mut seen, &mut fits))
    }

    /// Like [`recv_matching`](Self::recv_matching), but waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// No matching message came in time, or none will any more.
    pub fn recv_matching_timeout(
        &mut self,
        timeout: Duration,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Result<T, RecvTimeoutError> {
        let mut seen = Seen::default();
        self.wait(deadline(timeout), |mailbox| {
            mailbox.first_match(&mut seen, &mut fits)
        })
    }

    /// Like [`recv_matching`](Self::recv_matching), as a task.
    ///
    /// Cancel-safe: a future that is dropped before it has ended has received nothing, and all
    /// messages are still there in order.
    ///
    /// # Errors
    ///
    /// No message matches, and no sender is left.
    pub async fn recv_matching_async(
        &mut self,
        mut fits: impl FnMut(&T) -> bool,
    ) -> Result<T, RecvError> {
        let mut seen = Seen::default();
        poll_fn(|cx| self.poll_with(cx, |mailbox| mailbox.first_match(&mut seen, &mut fits))).await
    }

    /// Takes the first matching message that this receive has not yet seen.
    fn first_match(&mut self, seen: &mut Seen, fits: &mut impl FnMut(&T) -> bool) -> Option<T> {
        self.collect_urgent();
        while let Some(message) = self.inbox.urgent.get(seen.urgent) {
            if fits(message) {
                let message = self.inbox.urgent.remove(seen.urgent)?;
                return Some(self.given_out(message));
            }
            seen.urgent += 1;
        }
        loop {
            // A message is moved to where it is kept before `fits` sees it, because `fits` may
            // panic.
            while let Some(message) = self.next_unseen(seen) {
                if fits(message) {
                    let message = self.inbox.front.remove(seen.ordinary)?;
                    return Some(self.given_out(message));
                }
                seen.ordinary += 1;
            }
            if !self.collect() {
                return None;
            }
        }
    }

    /// The first ordinary message not yet seen, moved to its place among the kept ones.
    fn next_unseen(&mut self, seen: &Seen) -> Option<&T> {
        let inbox = &mut self.inbox;
        if seen.ordinary == inbox.front.len() {
            let message = inbox.taken.pop(&mut inbox.spares)?;
            inbox.front.push_back(message);
        }
        inbox.front.get(seen.ordinary)
    }
}
