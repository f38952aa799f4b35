//! The turn of a client on its thread.
//!
//! A client has its thread for the time of one turn (`--turn`). Then the others of the thread come,
//! whatever the client runs: a pipeline gives way between two commands, and a command that may take
//! long gives way in the middle (see [`Work`](crate::commands::Work)).
//!
//! Reading the clock takes about as long as a short command. So what a client does is counted in
//! rough units, and the clock is read only when enough of them have come together.

use std::time::{Duration, Instant};

/// Units between two looks at the clock. A unit is at most a few microseconds: one command on one
/// key, one key of a range, or [`BYTES_PER_UNIT`] bytes that are copied.
const UNITS_PER_LOOK: usize = 16;

/// Bytes that count as one unit when they are copied or compared.
pub(crate) const BYTES_PER_UNIT: usize = 4 << 10;

/// The time that a client has its thread.
#[derive(Debug)]
pub(crate) struct Turn {
    time: Duration,
    begun: Instant,
    /// Units since the last look at the clock.
    units: usize,
    is_over: bool,
}

impl Turn {
    /// A turn of this length, from now on.
    pub(crate) fn begin(time: Duration) -> Self {
        Self {
            time,
            begun: Instant::now(),
            units: 0,
            is_over: false,
        }
    }

    /// The next turn of the same client, after the others had theirs.
    pub(crate) fn again(&mut self) {
        *self = Self::begin(self.time);
    }

    /// Counts work that has been done, in units. Returns whether the turn is over.
    #[inline]
    pub(crate) fn spend(&mut self, units: usize) -> bool {
        self.units += units;
        if self.units >= UNITS_PER_LOOK {
            self.look();
        }
        self.is_over
    }

    /// Counts bytes that have been copied or compared. Returns whether the turn is over.
    #[inline]
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> bool {
        self.spend(bytes / BYTES_PER_UNIT)
    }

    /// Looks at the clock: for work that is not short. Returns whether the turn is over.
    pub(crate) fn look(&mut self) -> bool {
        self.units = 0;
        self.is_over = self.is_over || self.begun.elapsed() >= self.time;
        self.is_over
    }

    /// Ends the turn before its time.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether the turn was over when the clock was read last.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_with_its_time_and_stays_over() {
        let mut turn = Turn::begin(Duration::ZERO);
        assert!(!turn.spend(1), "the clock is not read for each unit");
        assert!(turn.spend(UNITS_PER_LOOK));
        assert!(turn.spend(0) && turn.is_over());
        turn.again();
        assert!(!turn.is_over());
        assert!(turn.spend_bytes(UNITS_PER_LOOK * BYTES_PER_UNIT));
        let mut long = Turn::begin(Duration::MAX);
        assert!(!long.spend(1 << 20) && !long.look());
    }
}
