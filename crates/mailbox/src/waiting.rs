//! How long a receiver lets messages gather before it takes them, and how long it waits for one
//! before it sleeps.

use std::time::Duration;

/// Fewer messages at a time than these are few: to take them costs more than to send them.
const FEW: u32 = 64;

/// Pauses of the processor at most: 1.5 microseconds where it was measured, at 11.4 ns each; longer
/// on processors whose pauses are.
const LONGEST: u32 = 128;

/// Grows while messages are found a few at a time, and shrinks when they come one by one.
///
/// A receiver that is as fast as its senders would otherwise take the lock, and the cache lines
/// behind it, from them for each handful: with one sender that never rests the two together were
/// half as fast. Who sends a message and waits for the answer is not kept waiting.
pub(crate) struct Pace {
    pauses: u32,
}

impl Pace {
    /// That of a receiver which waits for messages rather than they for it.
    pub(crate) const fn eager() -> Self {
        Self { pauses: 0 }
    }

    /// Lets messages gather. One is there already.
    #[inline]
    pub(crate) fn wait(&self) {
        for _ in 0..self.pauses {
            std::hint::spin_loop();
        }
    }

    /// Takes note of how many were there.
    #[inline]
    pub(crate) fn note(&mut self, count: u32) {
        self.pauses = match count {
            0 | 1 => self.pauses / 2,
            2..FEW => (2 * self.pauses + 1).min(LONGEST),
            _ => self.pauses,
        };
    }
}

/// A sleep that was no longer than this was not worth it: to fall asleep and be woken takes as long.
const BRIEF: Duration = Duration::from_micros(200);

/// Turns that a receiver gives to other threads, at least and at most, before it sleeps.
const TURNS: (u32, u32) = (4, 256);

/// A receiver whose time ends sooner than this does not give its core away: on a busy machine it
/// gets it back after a scheduler's slice, which is longer, and each time it would be late by one.
pub(crate) const NEAR: Duration = Duration::from_millis(2);

/// How long a receiver looks for messages before it sleeps: longer after sleeps that were brief.
///
/// Two threads that answer each other would otherwise, once one of them has slept, both sleep for
/// every message: what the one takes to wake is longer than the other waits.
pub(crate) struct Patience {
    turns: u32,
}

impl Patience {
    pub(crate) const fn little() -> Self {
        Self { turns: TURNS.0 }
    }

    /// How often to give the core to whoever has something to do, and look again. Where there are
    /// fewer cores than threads, these have something to send.
    pub(crate) const fn turns(&self) -> u32 {
        self.turns
    }

    /// Takes note of how long the receiver slept.
    pub(crate) fn note(&mut self, slept: Duration) {
        let turns = if slept <= BRIEF {
            2 * self.turns
        } else {
            self.turns / 2
        };
        self.turns = turns.clamp(TURNS.0, TURNS.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paced(counts: &[u32]) -> u32 {
        let mut pace = Pace::eager();
        counts.iter().for_each(|count| pace.note(*count));
        pace.pauses
    }

    #[test]
    fn handfuls_make_it_wait_and_single_messages_do_not() {
        assert_eq!(paced(&[1; 100]), 0);
        assert_eq!(paced(&[FEW; 100]), 0);
        assert_eq!(paced(&[2; 3]), 7);
        assert_eq!(paced(&[2; 100]), LONGEST);
        assert_eq!(paced(&[2, 2, 2, 1000, 1000]), 7);
        assert_eq!(paced(&[[2; 100], [1; 100]].concat()), 0);
    }

    #[test]
    fn brief_sleeps_make_it_patient_and_long_ones_do_not() {
        let mut patience = Patience::little();
        let mut after = |slept, times| {
            (0..times).for_each(|_| patience.note(slept));
            patience.turns()
        };
        assert_eq!(after(BRIEF, 1), 8);
        assert_eq!(after(BRIEF, 100), 256);
        assert_eq!(after(2 * BRIEF, 1), 128);
        assert_eq!(after(2 * BRIEF, 100), 4);
    }
}
