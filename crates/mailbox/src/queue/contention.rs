//! The measure of contention of one lock: what decides about slots.

use crate::Limits;

/// Rises with each send that had to wait, falls with each that did not, and never below 0.
#[derive(Default)]
pub(super) struct Contention(i32);

impl Contention {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    /// Takes note of a send. Answers whether the measure is above the limit; it then begins
    /// anew.
    #[inline]
    pub(super) fn note(&mut self, waited: bool, limits: &Limits, above: i32) -> bool {
        let step = if waited {
            i32::from(limits.contended)
        } else {
            -limits.uncontended
        };
        self.0 = self.0.saturating_add(step).max(0);
        if self.0 <= above {
            return false;
        }
        self.0 = 0;
        true
    }
}
