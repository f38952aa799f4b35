//! What a program may make, and how much it may do for one row.

use crate::term::{Bounds, OutOfBounds, Term};

/// What a program may make and do.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) bounds: Bounds,
    /// Bytes that may still be compared and copied for this row.
    left: usize,
    /// The first bound that a row has reached.
    pub(super) reached: Option<OutOfBounds>,
}

impl Budget {
    pub(super) const NONE: Self = Self {
        bounds: Bounds::NONE,
        left: usize::MAX,
        reached: None,
    };

    /// Allows as much work as a row may take.
    #[inline]
    pub(super) const fn begin_row(&mut self) {
        self.left = self.bounds.work();
    }

    /// Spends bytes of the row's work; `None` if it has none left.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) -> Option<()> {
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return Some(());
        }
        self.left = 0;
        let limit = self.bounds.work();
        self.reached.get_or_insert(OutOfBounds::Work { limit });
        None
    }

    /// The term, unless it is beyond the bounds.
    #[inline]
    pub(super) fn admit(&mut self, term: Term) -> Option<Term> {
        match self.bounds.check(&term) {
            Ok(()) => Some(term),
            Err(reached) => {
                self.reached.get_or_insert(reached);
                None
            }
        }
    }
}
