//! Whether all rows of a table have one size.

use crate::match_spec::RowSize;
use tremula_sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The sizes of the rows that a table has had since it was last empty for sure.
///
/// All accesses are relaxed: rows are noted by those who are in the [gate](super::gate), and asked
/// for by a thread that holds the gate exclusively, which orders them.
pub(super) struct RowSizes(AtomicUsize);

/// There has been no row; none that has a key is as short.
const NONE: usize = 0;

/// There have been rows of several sizes; no row is as long.
const SEVERAL: usize = usize::MAX;

impl RowSizes {
    pub(super) const fn new() -> Self {
        Self(AtomicUsize::new(NONE))
    }

    /// Notes that a row of this size is about to come. Once all sizes are known it is but read.
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

    /// Forgets them. The caller holds the gate exclusively, and the table has no rows.
    pub(super) fn forget(&self) {
        self.0.store(NONE, Relaxed);
    }

    /// Whether all rows are of this size. The caller holds the gate exclusively.
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
