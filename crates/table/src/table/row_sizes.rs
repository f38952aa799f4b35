//! Whether all rows of a table have one size.

use crate::match_spec::RowSize;
use tremula_sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The sizes of all rows that a table has had since it was last cleared.
///
/// All accesses are relaxed, because the [gate](super::gate) orders them: a thread notes a size
/// while it holds the gate, and a decision is made by a thread that holds the gate exclusively.
pub(super) struct RowSizes {
    /// The size, [`NONE`] or [`SEVERAL`].
    only: AtomicUsize,
    /// Whether there was a row of [`WIDE`] elements.
    wide: AtomicBool,
}

/// From this number of elements, copying or freeing a row takes long: they take a mebibyte.
const WIDE: usize = 1 << 16;

/// The table has had no row. No row has this size, because a row has a key.
const NONE: usize = 0;

/// The table has had rows of several sizes. No row is as long as this.
const SEVERAL: usize = usize::MAX;

impl RowSizes {
    pub(super) const fn new() -> Self {
        Self {
            only: AtomicUsize::new(NONE),
            wide: AtomicBool::new(false),
        }
    }

    /// Notes the size of a row that is about to be put. Only reads if it knows the size already.
    #[inline]
    pub(super) fn note(&self, size: usize) {
        if size >= WIDE {
            self.wide.store(true, Relaxed);
        }
        let known = self.only.load(Relaxed);
        if known == size || known == SEVERAL {
            return;
        }
        if let Err(known) = self.only.compare_exchange(NONE, size, Relaxed, Relaxed)
            && known != size
        {
            self.only.store(SEVERAL, Relaxed);
        }
    }

    /// Forgets the sizes. The caller holds the gate exclusively, and the table has no rows.
    pub(super) fn forget(&self) {
        self.only.store(NONE, Relaxed);
        self.wide.store(false, Relaxed);
    }

    /// Whether a row was so long that copying or freeing it takes long.
    #[inline]
    pub(super) fn have_wide(&self) -> bool {
        self.wide.load(Relaxed)
    }

    /// Whether all rows have this size. The answer is certain if the caller holds the gate
    /// exclusively.
    pub(super) fn are(&self, size: RowSize) -> bool {
        match size {
            RowSize::Any => true,
            RowSize::Only(size) => [NONE, size].contains(&self.only.load(Relaxed)),
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
