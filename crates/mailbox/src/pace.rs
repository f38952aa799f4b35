//! How long a receiver lets messages gather before it takes them.

/// Fewer messages at a time than these are few: to take them costs more than to send them.
const FEW: u32 = 64;

/// Pauses of the processor at most: one or two microseconds on most.
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
}
