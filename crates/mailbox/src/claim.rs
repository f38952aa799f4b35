//! A sender's claim to capacity: it asks for a credit, waits for it, and holds it until a message
//! is sent with it or it is given up.

use crate::credits::{Credit, Credits, Turn};
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll};
use std::time::Instant;
use tremula_sync::{Arc, Waiter, park};

/// What a task that wants to send has of a credit.
#[derive(Default)]
pub(crate) enum Claim {
    /// Nothing.
    #[default]
    Nothing,
    /// A place in the queue, to which a credit may have come meanwhile.
    Queued(Arc<Turn>),
    /// A credit.
    Held,
}

impl Claim {
    /// Asks for a credit, and waits for it as a task. Holds the credit after [`Credit::Taken`], and
    /// nothing after [`Credit::Closed`].
    pub(crate) fn poll(&mut self, credits: &Credits, cx: &mut Context<'_>) -> Poll<Credit> {
        let credit = loop {
            match self {
                Self::Held => break Credit::Taken,
                Self::Queued(turn) => {
                    if !turn.is_over() && turn.wait_as(Waiter::Task(cx.waker().clone())) {
                        return Poll::Pending;
                    }
                    break credits.outcome();
                }
                Self::Nothing => match credits.try_take_or_queue() {
                    Ok(credit) => break credit,
                    Err(turn) => *self = Self::Queued(turn),
                },
            }
        };
        *self = if credit.is_taken() {
            Self::Held
        } else {
            Self::Nothing
        };
        Poll::Ready(credit)
    }

    /// Gives up the place in the queue, or the credit.
    pub(crate) fn give_up(&mut self, credits: &Credits) {
        let holds_credit = match mem::take(self) {
            Self::Nothing => false,
            // The credit may have come by now.
            Self::Queued(turn) => credits.leave(&turn).is_taken(),
            Self::Held => true,
        };
        if holds_credit {
            credits.give(1);
        }
    }
}

/// Waits for a credit as a task. If the task gives up, it leaves the queue, and gives back a credit
/// received meanwhile.
pub(crate) async fn await_credit(credits: &Credits) -> Credit {
    struct Waiting<'a>(&'a Credits, Claim);
    impl Drop for Waiting<'_> {
        fn drop(&mut self) {
            self.1.give_up(self.0);
        }
    }
    let mut waiting = Waiting(credits, Claim::Nothing);
    let credit = poll_fn(|cx| waiting.1.poll(credits, cx)).await;
    waiting.1 = Claim::Nothing; // the caller has it now
    credit
}

/// Waits for a credit as a thread.
#[inline]
pub(crate) fn wait_for_credit(credits: &Credits, deadline: Option<Instant>) -> Credit {
    match credits.try_take() {
        Credit::NoneFree => queue_for_credit(credits, deadline),
        credit => credit,
    }
}

#[cold]
fn queue_for_credit(credits: &Credits, deadline: Option<Instant>) -> Credit {
    let turn = match credits.take_or_queue() {
        Ok(credit) => return credit,
        Err(turn) => turn,
    };
    while turn.wait_as(Waiter::this_thread()) {
        park(deadline);
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) && !turn.is_over() {
            return credits.leave(&turn);
        }
    }
    credits.outcome()
}
