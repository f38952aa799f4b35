//! Receiving in the order of arrival: as a thread, as a task, one or many.

use crate::mailbox::GRACE;
use crate::waiting::{BatchDelay, NEAR, deadline};
use crate::{Mailbox, RecvError, RecvTimeoutError, TryRecvError};
use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::future::poll_fn;
use std::iter::FusedIterator;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tremula_sync::{Waiter, park, thread};

/// How often a receiver thread looks at the signals, with a pause after each look, before it
/// yields.
const SPINS: u32 = 100;

impl<T> Mailbox<T> {
    /// Waits for the next message.
    ///
    /// O(1) amortized. While the receiver has messages it takes no lock.
    ///
    /// # Errors
    ///
    /// No message is left, and all senders are gone or the mailbox has been closed.
    ///
    /// ```
    /// use tremula_mailbox::{Config, RecvError, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// assert_eq!(mailbox.recv(), Err(RecvError));
    /// ```
    #[inline]
    pub fn recv(&mut self) -> Result<T, RecvError> {
        match self.next_message() {
            Some(message) => Ok(message),
            None => self.wait(None, Self::next_message).map_err(|_| RecvError),
        }
    }

    /// The next message, if there is one.
    ///
    /// O(1) amortized.
    ///
    /// # Errors
    ///
    /// There is no message now, or none will come any more.
    ///
    /// ```
    /// use tremula_mailbox::{Config, TryRecvError, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// assert_eq!(mailbox.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// assert_eq!(mailbox.try_recv(), Ok(1));
    /// drop(sender);
    /// assert_eq!(mailbox.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.next_message() {
            Some(message) => Ok(message),
            None => self.try_once(Self::next_message),
        }
    }

    /// Waits for the next message, but no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// No message came in time, or none will come any more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::{Config, RecvTimeoutError, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox::<u64>(Config::default());
    /// let none = mailbox.recv_timeout(Duration::from_millis(1));
    /// assert_eq!(none, Err(RecvTimeoutError::Timeout));
    /// # drop(sender);
    /// ```
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.wait(deadline(timeout), Self::next_message)
    }

    /// Like [`recv_timeout`](Self::recv_timeout), with a deadline.
    ///
    /// # Errors
    ///
    /// No message came in time, or none will come any more.
    pub fn recv_deadline(&mut self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.wait(Some(deadline), Self::next_message)
    }

    /// Waits for a message, then appends the messages present to `into`, up to `limit`, and returns
    /// their number. 0 only if the limit is 0 or no further message will come. Costs little more
    /// than a copy of the messages.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// (0..10).for_each(|number| sender.send(number).unwrap());
    /// let mut some = Vec::new();
    /// assert_eq!(mailbox.recv_many(&mut some, 7), 7);
    /// assert_eq!(mailbox.recv_many(&mut some, 7), 3);
    /// assert_eq!(some, (0..10).collect::<Vec<_>>());
    /// ```
    pub fn recv_many(&mut self, into: &mut Vec<T>, limit: usize) -> usize {
        if limit == 0 {
            return 0;
        }
        self.wait(None, |mailbox| mailbox.some_messages(into, limit))
            .unwrap_or(0)
    }

    /// Like [`recv_many`](Self::recv_many), as a task.
    ///
    /// Cancel-safe: a future that is dropped before it has ended has received nothing.
    pub async fn recv_many_async(&mut self, into: &mut Vec<T>, limit: usize) -> usize {
        poll_fn(|cx| self.poll_recv_many(cx, into, limit)).await
    }

    /// Like [`recv_many`](Self::recv_many), as one poll of a task. If no message is there, the task
    /// is woken when one may be.
    ///
    /// Only the waker of the latest call, of any receiving method, is woken.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::task::Poll;
    ///
    /// let (sender, mut mailbox) = tremula_mailbox::unbounded();
    /// let mut some = Vec::new();
    /// assert!(mailbox.poll_recv_many(&mut cx, &mut some, 7).is_pending());
    /// (0..3).for_each(|number| sender.send(number).unwrap());
    /// assert_eq!(mailbox.poll_recv_many(&mut cx, &mut some, 7), Poll::Ready(3));
    /// assert_eq!(some, [0, 1, 2]);
    /// ```
    pub fn poll_recv_many(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<T>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        let polled = self.poll_with(cx, |mailbox| mailbox.some_messages(into, limit));
        polled.map(|count| count.unwrap_or(0))
    }

    fn some_messages(&mut self, into: &mut Vec<T>, limit: usize) -> Option<usize> {
        let before = into.len();
        self.collect_urgent();
        loop {
            let inbox = &mut self.inbox;
            for queue in [&mut inbox.urgent, &mut inbox.front] {
                let count = queue.len().min(limit - (into.len() - before));
                #[cfg(sim)]
                for place in queue.iter().take(count) {
                    tremula_sync::sim::touch(&raw const *place, size_of::<T>(), false);
                }
                into.extend(queue.drain(..count));
            }
            let rest = limit - (into.len() - before);
            inbox.taken.pop_many(into, rest, &mut inbox.spares);
            let count = into.len() - before;
            if count == limit || !self.collect() {
                self.count_given_out(count);
                return (count > 0).then_some(count);
            }
        }
    }

    /// Waits for the next message as a task, on any runtime.
    ///
    /// Cancel-safe: a future that is dropped before it has ended has received nothing.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::{pin::pin, task::Poll};
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// let mut next = pin!(mailbox.recv_async());
    /// assert!(next.as_mut().poll(&mut cx).is_pending());
    /// sender.send(1).unwrap(); // wakes the task
    /// assert_eq!(next.as_mut().poll(&mut cx), Poll::Ready(Ok(1)));
    /// ```
    pub async fn recv_async(&mut self) -> Result<T, RecvError> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The next message. If no message is there, the task is woken when one may be.
    ///
    /// Only the waker of the latest call, of any receiving method, is woken.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        self.poll_with(cx, Self::next_message)
    }

    /// Messages as they come, waiting for each; ends when no more will come.
    pub fn iter(&mut self) -> Iter<'_, T> {
        Iter { mailbox: self }
    }

    /// The messages present, without waiting.
    pub fn try_iter(&mut self) -> TryIter<'_, T> {
        TryIter { mailbox: self }
    }

    /// Tries once. On failure, returns whether more messages may come.
    #[cold]
    pub(crate) fn try_once<R>(
        &mut self,
        mut attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Result<R, TryRecvError> {
        // Checked first: if the last sender is gone, all its messages are here.
        let disconnected = self.is_disconnected();
        attempt(self).ok_or(if disconnected {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        })
    }

    /// Tries until an attempt succeeds, no attempt can succeed any more, or the deadline has
    /// passed. Sleeps in between.
    pub(crate) fn wait<R>(
        &mut self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Result<R, RecvTimeoutError> {
        let mut idle = false;
        loop {
            match self.try_once(&mut attempt) {
                Ok(found) => return Ok(found),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            if self.spin(deadline, Instant::now, thread::yield_now) {
                continue;
            }
            let now = deadline.map(|_| Instant::now());
            if let (Some(deadline), Some(now)) = (deadline, now)
                && now >= deadline
            {
                return Err(RecvTimeoutError::Timeout);
            }
            idle = self.sleep(deadline, idle);
        }
    }

    /// Spins, then yields, while a sender may put a message into the hand. Returns whether there is
    /// something to receive.
    ///
    /// A receiver that lets messages gather leaves the hand empty: it takes them by the lock, many
    /// at once.
    ///
    /// `give_way` lets other threads run, for as long as the scheduler decides. So it is called
    /// only while `now` shows that the deadline is not [`NEAR`].
    fn spin(
        &self,
        deadline: Option<Instant>,
        now: impl Fn() -> Instant,
        give_way: impl FnMut(),
    ) -> bool {
        let signals = self.shared.signals();
        let looks = self.batch_delay.is_none() && signals.look();
        let found = self.look(deadline, now, give_way);
        found || (looks && signals.stop_looking())
    }

    /// The looks of [`spin`](Self::spin).
    #[inline]
    fn look(
        &self,
        deadline: Option<Instant>,
        now: impl Fn() -> Instant,
        mut give_way: impl FnMut(),
    ) -> bool {
        if cfg!(any(loom, shuttle)) {
            return false; // a model looks once, when the receiver stops looking
        }
        let signals = self.shared.signals();
        for _ in 0..SPINS {
            if signals.any_finding() {
                return true;
            }
            tremula_sync::spin_loop();
        }
        for _ in 0..self.yield_budget.yields() {
            if deadline.is_some_and(|deadline| deadline.saturating_duration_since(now()) <= NEAR) {
                return false;
            }
            give_way();
            if signals.any_finding() {
                return true;
            }
        }
        false
    }

    /// Sleeps until a message comes or the deadline passes, but no longer than [`GRACE`] unless the
    /// mailbox is `idle`. An idle mailbox first frees the memory kept for further messages. Returns
    /// whether the mailbox is idle from now on.
    #[cold]
    fn sleep(&mut self, deadline: Option<Instant>, idle: bool) -> bool {
        if idle && !self.free_memory() {
            return false;
        }
        let grace = (!idle && cfg!(not(any(loom, shuttle)))).then(|| Instant::now() + GRACE);
        let until = match (deadline, grace) {
            (Some(deadline), Some(grace)) => Some(deadline.min(grace)),
            (deadline, grace) => deadline.or(grace),
        };
        if !self.shared.signals().sleep(Waiter::this_thread()) {
            return false;
        }
        self.batch_delay = BatchDelay::none();
        let asleep = Instant::now();
        park(until);
        self.yield_budget.note(asleep.elapsed());
        idle || grace.is_some_and(|grace| Instant::now() >= grace)
    }

    /// Frees the memory kept for further messages. Returns whether the mailbox is still empty.
    fn free_memory(&mut self) -> bool {
        let signals = self.shared.signals();
        let freed = self.shared.queue.collect_and_free(signals, &mut self.inbox);
        if freed && let Some(extras) = self.shared.extras() {
            extras.free_memory();
        }
        freed
    }

    /// Like [`wait`](Self::wait), as a task.
    pub(crate) fn poll_with<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Self) -> Option<R>,
    ) -> Poll<Result<R, RecvError>> {
        loop {
            match self.try_once(&mut attempt) {
                Ok(found) => return Poll::Ready(Ok(found)),
                Err(TryRecvError::Disconnected) => return Poll::Ready(Err(RecvError)),
                Err(TryRecvError::Empty) => {}
            }
            // A task has no clock, so it frees the memory each time.
            let waiter = Waiter::Task(cx.waker().clone());
            if self.free_memory() && self.shared.signals().sleep(waiter) {
                self.batch_delay = BatchDelay::none();
                return Poll::Pending;
            }
        }
    }
}

/// Iterator over messages, see [`Mailbox::iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    mailbox: &'a mut Mailbox<T>,
}

/// Iterator over the messages present, see [`Mailbox::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T> {
    mailbox: &'a mut Mailbox<T>,
}

/// Iterator that owns the mailbox, see [`Mailbox`]'s `into_iter`.
#[derive(Debug)]
pub struct IntoIter<T> {
    mailbox: Mailbox<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.mailbox.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.mailbox.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.mailbox.recv().ok()
    }
}

impl<T> FusedIterator for Iter<'_, T> {}

impl<T> FusedIterator for IntoIter<T> {}

impl<'a, T> IntoIterator for &'a mut Mailbox<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Mailbox<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { mailbox: self }
    }
}

impl<T> Unpin for Mailbox<T> {}

/// Messages as they come; ends when no more will come.
impl<T> Stream for Mailbox<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let message = ready!(self.poll_recv(cx)).ok();
        self.ended = message.is_none();
        Poll::Ready(message)
    }
}

impl<T> FusedStream for Mailbox<T> {
    /// Whether the stream has returned `None`. No message comes after that.
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::queue::HANDED;
    use crate::{Config, mailbox};
    use std::cell::Cell;

    /// How often a receiver with this time limit yields its core, if it gets the core back after
    /// `slice` each time.
    fn yields(limit: Option<Duration>, slice: Duration) -> u32 {
        let (_sender, mut mailbox) = mailbox::<()>(Config::default());
        (0..20).for_each(|_| mailbox.yield_budget.note(Duration::ZERO));
        let (begin, passed, yields) = (Instant::now(), Cell::new(Duration::ZERO), Cell::new(0));
        let woken = mailbox.spin(
            limit.map(|limit| begin + limit),
            || begin + passed.get(),
            || {
                yields.set(yields.get() + 1);
                passed.set(passed.get() + slice);
            },
        );
        assert!(!woken);
        yields.get()
    }

    /// Fails if a receiver with a large budget uses it up whatever its deadline: if other threads
    /// keep the cores busy, each yield takes milliseconds.
    #[test]
    fn a_receiver_gives_its_core_away_only_while_its_deadline_is_far() {
        let slice = Duration::from_millis(3);
        let most = yields(None, slice);
        assert!(most > 100, "{most}");
        assert_eq!(yields(Some(Duration::ZERO), slice), 0);
        assert_eq!(yields(Some(NEAR), slice), 0);
        assert_eq!(yields(Some(10 * slice), slice), 10);
        assert_eq!(yields(Some(Duration::from_secs(600)), slice), most);
    }

    /// Fails if a receiver that lets messages gather, or one that no longer looks, gets them one by
    /// one; or if one that waits for single messages does not.
    #[test]
    fn a_receiver_that_looks_for_single_messages_is_handed_one() {
        for (count, handed) in [(1, true), (2, false)] {
            let (sender, mut mailbox) = mailbox(Config::default());
            mailbox.batch_delay.note(count);
            let mut yields = 0;
            let found = mailbox.spin(None, Instant::now, || {
                yields += 1;
                sender.send(yields).unwrap();
            });
            assert!(found);
            assert_eq!(mailbox.shared.signals().any(HANDED), handed);
            assert_eq!(mailbox.try_recv(), Ok(1));
            assert!(!mailbox.spin(None, Instant::now, || ()));
            sender.send(2).unwrap();
            assert!(!mailbox.shared.signals().any(HANDED));
            assert_eq!(mailbox.try_recv(), Ok(2));
        }
    }
}
