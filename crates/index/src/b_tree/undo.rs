//! What has changed in a leaf since the moment of a snapshot that has not come to it yet.
//!
//! A writer that comes to such a leaf notes what its key held, and goes on. The thread that
//! copies the leaf for the snapshot undoes what is noted. Only when more keys have changed than may
//! be noted does the writer copy the leaf itself.

use super::node::{LeafKey, LeafRef, SearchResult};
use super::point::locked;
use crate::contract::KeyRange;
use crate::kit::{OwnedKey, SearchKey, SearchRange, Spec, StoredKey};

/// How many keys of a leaf can be noted: enough that the copy of a leaf of a page, if it becomes
/// necessary, costs each of these changes little.
const MOST_NOTED: usize = if cfg!(any(loom, shuttle)) { 2 } else { 15 };

/// What keys of a leaf held before they changed. The leaf's lock guards it.
pub(super) struct Undo<S: Spec> {
    /// The clock at the first of these changes, and at all others.
    pub(super) moment: u64,
    /// In the order of the changes. If a key is there twice, it held what was noted first.
    noted: Vec<Noted<S>>,
}

/// What a key held: copies, since the originals may be handed out.
struct Noted<S: Spec> {
    key: OwnedKey<S>,
    /// Before the change, with the key as it was in the leaf. `None` if it was missing.
    held: Option<(LeafKey<S>, S::Value)>,
}

impl<S: Spec> Undo<S> {
    pub(super) const fn new(moment: u64) -> Self {
        let noted = Vec::new();
        Self { moment, noted }
    }

    /// Notes what a leaf, which this thread has locked, holds of a key that is about to change, and
    /// which is or belongs at `at`; unless that is noted. Returns `false` if there is no room. If a
    /// clone panics, nothing has happened.
    #[must_use]
    pub(super) fn note(
        &mut self,
        leaf: LeafRef<'_, S>,
        key: &SearchKey<'_, S>,
        at: SearchResult,
    ) -> bool {
        let stored = at.ok().map(|at| leaf.key(at));
        // No key is read for this. The key that was noted may have been freed, and another be where
        // it was: but then that has come since, so it is noted, too, as one that was missing.
        // The words of a key of text change when its leaf gets another block: its bytes are read.
        let is_noted = |noted: &Noted<S>| {
            if S::is_text() {
                // SAFETY: the notes own their keys.
                return unsafe { key.compare(noted.key.stored()) }.is_eq();
            }
            let held = noted.held.as_ref().map(|(key, _)| *key);
            held.zip(stored)
                .is_some_and(|(held, stored)| held.is(stored))
        };
        if self.noted.iter().any(is_noted) {
            return true;
        }
        if self.noted.len() >= MOST_NOTED {
            return false;
        }
        let held = at.ok().zip(stored).map(|(at, key)| {
            // SAFETY: the value is in a leaf that this thread has locked.
            let value = unsafe { leaf.value(at).with(S::Value::clone) };
            (key, value)
        });
        // SAFETY: nothing else has the copy.
        let key = unsafe { OwnedKey::of_stored(StoredKey::copy_of(key)) };
        self.noted.push(Noted { key, held });
        true
    }

    /// What each key held, in the order of the keys.
    fn in_order(&self) -> Vec<&Noted<S>> {
        let mut noted = Vec::from_iter(&self.noted);
        // SAFETY: the notes own their keys.
        let compare = |one: &Noted<S>, other: &Noted<S>| unsafe {
            one.key.stored().compare(other.key.stored())
        };
        // Stable: so the first of equal ones is what was noted first, and stays.
        noted.sort_by(|one, other| compare(one, other));
        noted.dedup_by(|one, other| compare(one, other).is_eq());
        noted
    }
}

/// Copies of what a leaf, which this thread has locked, holds of a range, or held before what is
/// noted.
pub(super) fn copy_of<S: Spec>(
    leaf: LeafRef<'_, S>,
    undo: Option<&Undo<S>>,
    range: KeyRange<'_, S::Key>,
) -> Vec<(S::Key, S::Value)> {
    // Never an error: nothing is validated.
    let indices = SearchRange::new(range).indices_in(leaf, locked);
    let indices = indices.unwrap_or(0..0);
    indices.clone().for_each(|at| leaf.prefetch_key(at));
    let noted = undo.map_or_else(Vec::new, Undo::in_order);
    let mut copy = Vec::with_capacity(indices.len() + noted.len());
    // SAFETY: the entries are in a leaf that this thread has locked.
    let pair = |at| unsafe { leaf.entry(at).to_pair() };
    let mut next = indices.start;
    for Noted { key, held } in noted {
        let is_wanted = |key: &S::Key| range.starts_before(key) && range.ends_after(key);
        // SAFETY: the notes own their keys.
        let is_wanted = unsafe { key.stored().with(is_wanted) };
        if !is_wanted {
            continue;
        }
        let at = key.search(|key| leaf.find(&key, locked).unwrap_or(Err(next)));
        // An order that contradicts itself may lead anywhere.
        let before = at.unwrap_or_else(|at| at).clamp(next, indices.end);
        copy.extend((next..before).map(pair));
        next = indices.end.min(before + usize::from(at.is_ok()));
        if let Some((_, value)) = held {
            // SAFETY: the notes own their keys.
            copy.push((unsafe { key.stored().to_key() }, value.clone()));
        }
    }
    copy.extend((next..indices.end).map(pair));
    copy
}
