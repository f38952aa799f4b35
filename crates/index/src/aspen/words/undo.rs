//! What has changed in a leaf since the moment of a snapshot that has not come to it yet.
//!
//! A writer that comes to such a leaf notes what the key held, and goes on: the snapshot takes what
//! the leaf holds when it comes there, and undoes what is noted. Only when more keys have changed
//! than there is room for does the writer copy the whole leaf. So a writer does for a snapshot
//! about as much as it does for itself, and what a snapshot costs in memory is bounded by the size
//! of the map, however long it takes.

use super::build::Batch;
use super::snapshots::Moment;

/// How many keys of a leaf can be noted. With the rest an [`Undo`] takes four cache lines.
const MOST_NOTED: usize = if cfg!(any(loom, shuttle)) { 2 } else { 15 };

/// What keys of a leaf held before they changed. The leaf's lock guards it.
pub(super) struct Undo {
    /// The clock at the first of these changes, and at all others.
    pub(super) moment: Moment,
    length: u32,
    /// A bit for each key that was missing.
    missing: u32,
    noted: [(u64, u64); MOST_NOTED],
}

impl Undo {
    pub(super) const fn new(moment: Moment) -> Self {
        Self {
            moment,
            length: 0,
            missing: 0,
            noted: [(0, 0); MOST_NOTED],
        }
    }

    /// Notes what a key holds that is about to change, unless it has changed before. Returns
    /// `false` if there is no room.
    #[must_use]
    pub(super) fn note(&mut self, key: u64, value: Option<u64>) -> bool {
        let length = self.length as usize;
        if self.noted[..length].iter().any(|noted| noted.0 == key) {
            return true;
        }
        let Some(place) = self.noted.get_mut(length) else {
            return false;
        };
        *place = (key, value.unwrap_or_default());
        self.missing |= u32::from(value.is_none()) << length;
        self.length += 1;
        true
    }

    /// Makes of what the leaf holds what it held.
    pub(super) fn apply(&self, entries: &mut Batch) {
        let noted = || self.noted.iter().take(self.length as usize).enumerate();
        let was_missing = |at: usize| self.missing >> at & 1 == 1;
        // First, so that there is never more in the batch than in a leaf.
        for (_, noted) in noted().filter(|(at, _)| was_missing(*at)) {
            entries.remove(noted.0);
        }
        for (_, noted) in noted().filter(|(at, _)| !was_missing(*at)) {
            entries.put(*noted);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_is_again_what_it_was() {
        let mut undo = Undo::new(1);
        for (key, value) in [
            (4, Some(40)),
            (6, None),
            (2, Some(20)),
            (4, None),
            (6, Some(7)),
        ] {
            assert!(undo.note(key, value));
        }
        let mut entries = Batch::new();
        for entry in [(1, 10), (4, 41), (6, 60), (9, 90)] {
            entries.push(entry);
        }
        undo.apply(&mut entries);
        assert_eq!(*entries, [(1, 10), (2, 20), (4, 40), (9, 90)]);
        assert_eq!(size_of::<Undo>(), 256);
    }

    #[test]
    fn as_many_keys_are_noted_as_there_is_room_for() {
        let mut undo = Undo::new(1);
        for key in 0..MOST_NOTED as u64 {
            assert!(undo.note(key, Some(key)));
        }
        assert!(undo.note(3, None), "it is noted already");
        assert!(!undo.note(99, None));
    }
}
