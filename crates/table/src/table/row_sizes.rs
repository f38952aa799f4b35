//! Whether all rows of a table have one size.

use crate::match_spec::RowSize;
use tremula_sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The sizes of all rows that a table has had since it was last cleared.
///
/// All accesses are relaxed, because the [gate](super::gate) orders them: a thread notes a size
/// while it holds the gate, and a decision is made by a thread that holds the gate exclusively.
pub(super) struct RowSizes(AtomicUsize);

/// The table has had no row. No row has this size, because a row has a key.
const NONE: usize = 0;

/// The table has had rows of several sizes. No row is as long as this.
const SEVERAL: usize = usize::MAX;

impl RowSizes {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(NONE))
    }

    /// Notes the size of a row that is about to be put. Only reads if it knows the size already.
    #[inline]
    pub(super) fn note(&self, size: usize) {
        let known = self.0.load(Relaxed);
        if known == size || known == SEVERAL {
            return;
        }
        if let Err(known) = self.0.compare_exchange(NONE, size, Relaxed, Relaxed)
            && known != size
        {
            self.0.store(SEVERAL, Relaxed);
        }
    }

    /// Forgets the sizes. The caller holds the gate exclusively, and the table has no rows.
    pub(super) fn forget(&self) {
        self.0.store(NONE, Relaxed);
    }

    /// Whether all rows have this size. The answer is certain if the caller holds the gate
    /// exclusively.
    pub(super) fn are(&self, size: RowSize) -> bool {
        match size {
            RowSize::Any => true,
            RowSize::Only(size) => [NONE, size].contains(&self.0.load(Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_one_until_there_are_two() {
        let sizes = RowSizes::new();
        assert!(sizes.are(RowSize::Only(2)) && sizes.are(RowSize::Any));
        sizes.note(2);
        sizes.note(2);
        assert!(sizes.are(RowSize::Only(2)) && !sizes.are(RowSize::Only(3)));
        sizes.note(3);
        sizes.note(2);
        assert!(sizes.are(RowSize::Any) && !sizes.are(RowSize::Only(2)));
        sizes.forget();
        assert!(sizes.are(RowSize::Only(3)));
    }
}
