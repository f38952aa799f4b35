//! Adaptive waiting: how long a receiver lets messages gather into a batch before it takes them,
//! and how often it yields its core before it sleeps (spin, yield, then park).

use std::time::{Duration, Instant};

/// The deadline of a wait that begins now. `None` if it is beyond what the clock can express.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// The bound of a small batch: taking fewer messages than this costs more than sending them.
const FEW: u32 = 64;

/// The most pauses of the processor: about a microsecond, and longer on processors with longer
/// pauses.
const LONGEST: u32 = 128;

/// How long messages gather: longer while the receiver finds a few at a time, shorter when they
/// come one by one.
///
/// Otherwise a receiver that is as fast as its senders takes the lock, and the cache lines behind
/// it, from them for each small batch, and both become slower. A sender that waits for an answer to
/// each message is not delayed.
pub(crate) struct BatchDelay {
    pauses: u32,
}

impl BatchDelay {
    /// No delay: for a receiver that waits for messages.
    pub(crate) const fn none() -> Self {
        Self { pauses: 0 }
    }

    /// Whether there is no delay now.
    #[inline]
    pub(crate) const fn is_none(&self) -> bool {
        self.pauses == 0
    }

    /// Lets messages gather. There is already at least one.
    #[inline]
    pub(crate) fn wait(&self) {
        for _ in 0..self.pauses {
            tremula_sync::spin_loop();
        }
    }

    #[inline]
    pub(crate) fn note(&mut self, count: u32) {
        self.pauses = match count {
            0 | 1 => self.pauses / 2,
            2..FEW => (2 * self.pauses + 1).min(LONGEST),
            _ => self.pauses,
        };
    }
}

/// A sleep that was no longer than this was not worthwhile: falling asleep and waking take as long.
const BRIEF: Duration = Duration::from_micros(200);

/// The least and the most times that a receiver yields its core before it sleeps.
const YIELDS: (u32, u32) = (4, 256);

/// A receiver with less time than this to its deadline does not yield: on a busy machine it gets
/// its core back only after a scheduler's slice, which is longer.
pub(crate) const NEAR: Duration = Duration::from_millis(2);

/// How often a receiver yields before it sleeps: more often after brief sleeps.
///
/// Otherwise, once one of two threads that answer each other has slept, both would sleep for every
/// message: waking a thread takes longer than the other waits.
pub(crate) struct YieldBudget {
    yields: u32,
}

impl YieldBudget {
    pub(crate) const fn least() -> Self {
        Self { yields: YIELDS.0 }
    }

    /// How often to yield the core and look for messages again. If there are fewer cores than
    /// threads, a yield lets the other threads run, which have messages to send.
    pub(crate) const fn yields(&self) -> u32 {
        self.yields
    }

    pub(crate) fn note(&mut self, slept: Duration) {
        let yields = if slept <= BRIEF {
            2 * self.yields
        } else {
            self.yields / 2
        };
        self.yields = yields.clamp(YIELDS.0, YIELDS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses_after(counts: &[u32]) -> u32 {
        let mut delay = BatchDelay::none();
        counts.iter().for_each(|count| delay.note(*count));
        delay.pauses
    }

    #[test]
    fn handfuls_make_it_wait_and_single_messages_do_not() {
        assert_eq!(pauses_after(&[1; 100]), 0);
        assert_eq!(pauses_after(&[FEW; 100]), 0);
        assert_eq!(pauses_after(&[2; 3]), 7);
        assert_eq!(pauses_after(&[2; 100]), LONGEST);
        assert_eq!(pauses_after(&[2, 2, 2, 1000, 1000]), 7);
        assert_eq!(pauses_after(&[[2; 100], [1; 100]].concat()), 0);
    }

    #[test]
    fn brief_sleeps_raise_the_yields_and_long_ones_lower_them() {
        let mut budget = YieldBudget::least();
        let mut after = |slept, times| {
            (0..times).for_each(|_| budget.note(slept));
            budget.yields()
        };
        assert_eq!(after(BRIEF, 1), 8);
        assert_eq!(after(BRIEF, 100), 256);
        assert_eq!(after(2 * BRIEF, 1), 128);
        assert_eq!(after(2 * BRIEF, 100), 4);
    }
}
