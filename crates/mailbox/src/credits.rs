//! Capacity: a credit for each message that a bounded mailbox may still accept.
//!
//! A sender takes a credit before it sends; the receiver gives it back when it hands the message
//! out. One word holds the free credits and whether a sender waits, so that neither side can miss
//! the other: a sender sets [`WAITING`] only in a word without credits, and a thread that gives a
//! credit back sees the mark. Waiting senders queue, and credits go to the first of them. No sender
//! takes a free credit past the queue.

use std::collections::VecDeque;
use tremula_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tremula_sync::{Arc, Mutex, Waiter};

/// A sender waits for a credit, or has waited.
const WAITING: usize = 1;
/// The mailbox is closed.
const CLOSED: usize = 2;
/// One credit.
const CREDIT: usize = 4;

pub(crate) struct Credits {
    capacity: usize,
    /// Free credits, times [`CREDIT`], and the marks.
    word: AtomicUsize,
    waiting: Mutex<VecDeque<Arc<Turn>>>,
    /// Messages that were sent without a credit. This many returned credits are kept.
    debt: AtomicUsize,
}

/// The outcome of asking for a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credit {
    Taken,
    NoneFree,
    Closed,
}

impl Credit {
    pub(crate) fn is_taken(self) -> bool {
        self == Self::Taken
    }
}

/// A sender's entry in the queue.
pub(crate) struct Turn {
    /// A credit has been given, or the mailbox is closed: the wait is over.
    over: AtomicBool,
    waiter: Mutex<Option<Waiter>>,
}

impl Credits {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            word: AtomicUsize::new(capacity.min(usize::MAX / CREDIT) * CREDIT),
            waiting: Mutex::new(VecDeque::new()),
            debt: AtomicUsize::new(0),
        }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The free credits.
    pub(crate) fn free(&self) -> usize {
        // Relaxed: true at some moment; nothing else depends on it.
        self.word.load(Ordering::Relaxed) / CREDIT
    }

    /// Lets one message in without a credit.
    pub(crate) fn overdraw(&self) {
        // Relaxed: the message, which is sent after this, orders it before its receipt.
        self.debt.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the credits that pay for messages sent without one, and returns the others.
    ///
    /// The receiver pays, and so does a cancelled send that gives its credit back. Two threads may
    /// pay at the same time, and together they must not pay more than is owed.
    #[cold]
    fn pay(&self, count: usize) -> usize {
        // Relaxed: a count. The compare-exchange subtracts only what it has seen to be owed.
        let mut owed = self.debt.load(Ordering::Relaxed);
        loop {
            let paid = count.min(owed);
            match self.debt.compare_exchange_weak(
                owed,
                owed - paid,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count - paid,
                Err(now) => owed = now,
            }
        }
    }

    /// Takes a credit if one is free and no sender waits for it.
    #[inline]
    pub(crate) fn try_take(&self) -> Credit {
        self.take_unless(WAITING | CLOSED)
    }

    fn take_unless(&self, marks: usize) -> Credit {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & CLOSED != 0 {
                return Credit::Closed;
            }
            if word < CREDIT || word & marks != 0 {
                return Credit::NoneFree;
            }
            // SeqCst: all changes of the word are in one order, as the module docs explain.
            match self.word.compare_exchange_weak(
                word,
                word - CREDIT,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Credit::Taken,
                Err(now) => word = now,
            }
        }
    }

    /// Takes a credit, or a place in the queue for one.
    pub(crate) fn take_or_queue(&self) -> Result<Credit, Arc<Turn>> {
        let mut waiting = self.waiting.lock();
        // Only the holder of this lock marks the word. The mark is set first, so a credit that is
        // given back from now on is either seen here or comes through the queue.
        let word = self.word.fetch_or(WAITING, Ordering::SeqCst);
        if word & CLOSED != 0 {
            return Ok(Credit::Closed);
        }
        if waiting.is_empty() && self.take_unless(CLOSED) == Credit::Taken {
            self.word.fetch_and(!WAITING, Ordering::SeqCst);
            return Ok(Credit::Taken);
        }
        let turn = Arc::new(Turn {
            over: AtomicBool::new(false),
            waiter: Mutex::new(None),
        });
        waiting.push_back(Arc::clone(&turn));
        Err(turn)
    }

    /// Takes a credit if one is free and no sender waits for it, otherwise a place in the queue.
    pub(crate) fn try_take_or_queue(&self) -> Result<Credit, Arc<Turn>> {
        match self.try_take() {
            Credit::NoneFree => self.take_or_queue(),
            credit => Ok(credit),
        }
    }

    /// Leaves the queue. Returns how the wait had ended by then.
    pub(crate) fn leave(&self, turn: &Arc<Turn>) -> Credit {
        let mut waiting = self.waiting.lock();
        if let Some(place) = waiting.iter().position(|other| Arc::ptr_eq(other, turn)) {
            waiting.remove(place);
            if waiting.is_empty() {
                self.word.fetch_and(!WAITING, Ordering::SeqCst);
            }
            return Credit::NoneFree;
        }
        drop(waiting);
        self.outcome()
    }

    /// The outcome of a turn that is over.
    pub(crate) fn outcome(&self) -> Credit {
        if self.word.load(Ordering::SeqCst) & CLOSED != 0 {
            Credit::Closed
        } else {
            Credit::Taken
        }
    }

    /// Gives credits back, first to waiting senders.
    #[inline]
    pub(crate) fn give(&self, count: usize) {
        let in_debt = self.debt.load(Ordering::Relaxed) > 0;
        let count = if in_debt { self.pay(count) } else { count };
        if self.word.fetch_add(count * CREDIT, Ordering::SeqCst) & WAITING != 0 {
            self.serve();
        }
    }

    #[cold]
    fn serve(&self) {
        loop {
            let mut waiting = self.waiting.lock();
            if waiting.is_empty() {
                self.word.fetch_and(!WAITING, Ordering::SeqCst);
                return;
            }
            if self.take_unless(CLOSED) != Credit::Taken {
                return;
            }
            let turn = waiting.pop_front();
            if waiting.is_empty() {
                self.word.fetch_and(!WAITING, Ordering::SeqCst);
            }
            drop(waiting);
            if let Some(turn) = turn {
                turn.end();
            }
        }
    }

    /// Ends all waiting: the mailbox is closed.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        self.word.fetch_or(CLOSED, Ordering::SeqCst);
        let turns = std::mem::take(&mut *waiting);
        drop(waiting);
        for turn in turns {
            turn.end();
        }
    }
}

impl Turn {
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: pairs with the Release store in `end`.
        self.over.load(Ordering::Acquire)
    }

    /// Registers the waiter to wake when the wait is over. `false` if it is over already.
    pub(crate) fn wait_as(&self, waiter: Waiter) -> bool {
        let before = self.waiter.lock().replace(waiter);
        drop(before); // the user's code, if it is a task's: not under the lock
        !self.is_over()
    }

    fn end(&self) {
        // Release: pairs with the Acquire load in `is_over`. Stored before the waiter is looked
        // for, so that a waiter that registers later finds the turn over.
        self.over.store(true, Ordering::Release);
        let waiter = self.waiter.lock().take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}
