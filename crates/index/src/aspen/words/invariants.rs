//! What holds whenever no operation is under way.

use super::format::View;
use super::{Separators, Words};

impl<const UNITS: usize> Words<UNITS> {
    /// Panics, and names the invariant, if one does not hold. No other thread may use the map.
    pub(in crate::aspen) fn check_at_rest(&self) {
        let mut borders = Vec::new();
        self.borders.borders(0, u64::MAX, usize::MAX, &mut borders);
        let (mut low, mut entries) = (0, 0);
        for (at, (border, id)) in borders.iter().enumerate() {
            let leaf = self.leaves.get(*id);
            assert!(!leaf.lock.is_obsolete(), "a leaf with a border is in use");
            if let Some(table) = leaf.table() {
                assert!(leaf.lock.try_lock().is_err(), "a hot leaf stays locked");
                assert_eq!(table.leaf(), *id, "a table knows its leaf");
                entries += table.check(leaf.low(), leaf.last());
            } else {
                entries += View::of(leaf).check(leaf.last());
            }
            assert_eq!(
                (leaf.low(), *border),
                (low, low),
                "leaves follow one another"
            );
            if at + 1 < borders.len() {
                low = leaf.last() + 1;
            } else {
                assert_eq!(leaf.last(), u64::MAX, "the last leaf has the greatest key");
            }
        }
        assert_eq!(entries, self.len(), "the counter agrees with the leaves");
        let ids = self.ids.lock();
        let used = ids.in_use();
        assert_eq!(used, borders.len(), "each leaf in use has a border");
        let units: usize = borders
            .iter()
            .map(|(_, id)| self.leaves.get(*id))
            .filter(|leaf| leaf.table().is_none())
            .map(|leaf| leaf.place().units())
            .sum();
        let used = self.blocks.used_units();
        assert_eq!(used, units, "each unit in use belongs to a leaf");
    }
}
