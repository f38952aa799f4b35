//! The measure of contention of one lock, which decides about slots.

use crate::Limits;
use tremula_sync::Wait;

/// Rises with each send that had to wait, falls with each other send, and never goes below 0.
#[derive(Default)]
pub(super) struct Contention(i32);

impl Contention {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    /// Counts a send. Returns whether the measure is above the limit; if so, it starts again at 0.
    ///
    /// One long wait suffices by itself, if waiting counts at all: a slow sender cannot get the
    /// lock between the uncontended sends of fast senders, which outnumber its waits by any factor.
    #[inline]
    pub(super) fn note(&mut self, wait: Wait, limits: &Limits, above: i32) -> bool {
        self.0 = match wait {
            Wait::None => self.0.saturating_sub(limits.uncontended),
            Wait::Brief => self.0.saturating_add(i32::from(limits.contended)),
            Wait::Long if limits.contended > 0 => i32::MAX,
            Wait::Long => self.0,
        }
        .max(0);
        if self.0 <= above {
            return false;
        }
        self.0 = 0;
        true
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::Config;

    /// How many waits of this kind install slots, with a thousand uncontended sends after each.
    fn waits(wait: Wait, limits: &Limits) -> Option<usize> {
        let mut contention = Contention::none();
        (1..100).find(|_| {
            let installs = contention.note(wait, limits, limits.install_above);
            (0..1000).for_each(|_| {
                contention.note(Wait::None, limits, limits.install_above);
            });
            installs
        })
    }

    /// Fails if a slow sender is only counted: the sends of fast senders, which do not wait,
    /// subtract more than its waits add, and it waits for the lock for ever.
    #[test]
    fn one_long_wait_installs_slots_however_many_sends_do_not_wait() {
        let limits = Config::default().limits();
        assert_eq!(waits(Wait::Brief, &limits), None);
        assert_eq!(waits(Wait::Long, &limits), Some(1));
        let never = Config::default().weights(0, 1).limits();
        assert_eq!(
            waits(Wait::Long, &never),
            None,
            "where waiting counts nothing"
        );
    }

    #[test]
    fn extreme_weights_do_not_overflow() {
        for uncontended in [i32::MIN, i32::MAX] {
            let limits = Config::default().weights(u16::MAX, uncontended).limits();
            let mut contention = Contention::none();
            for wait in [Wait::None, Wait::Brief, Wait::Long, Wait::None] {
                contention.note(wait, &limits, i32::MAX - 1);
                assert!(contention.0 >= 0);
            }
        }
    }
}
