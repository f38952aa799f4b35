//! Point writes: each prepends a delta to a leaf.

use super::Position;
use super::Tree;
use super::base::NO_NODE;
use super::consolidate::SearchResult;
use super::descend::Place;
use super::hold::Holds;
use super::node::{Change, Claim, Delta, Entry, View};
use super::reclaim::{Guard, Unlinked};
use super::word::Word;
use std::marker::PhantomData;
use std::ptr;
use tremula_index::kit::{
    Decide, OwnedKey, OwnedValue, Packed, SearchKey, Sought, Spec, StoredKey,
};
use tremula_index::{Storable, Update};
use tremula_sync::Backoff;

/// A copy of a value that was in the tree during this pin.
#[inline]
pub(super) fn copied<V: Storable>(value: *mut (), _pinned: &Guard) -> V {
    // SAFETY: what is in the tree during a pin is not freed before its end.
    unsafe { Packed::<V>::of_word(value).with(V::clone) }
}

/// What to do with a key: the change, the key if it is new, and the value.
pub(super) type Decision<S> = (Change, Option<StoredKey<S>>, *mut ());

/// The result of a change: the leaf, its new word, and the old value.
pub(super) type Changed = (usize, Word, Option<*mut ()>);

/// The delta that changes a key, given what a search has found; `value` is null to delete.
#[inline]
pub(super) fn delta<S: Spec>(
    change: Change,
    found: &SearchResult<S>,
    new_key: Option<StoredKey<S>>,
    value: *mut (),
    word: Word,
    view: &View<'_, S>,
) -> Option<Delta<S>> {
    let count = view.count_of_chain() as u32;
    Some(Delta {
        change,
        on_heap: false,
        owns: false,
        overwrites: found.overwrites,
        depth: view.depth() as u32 + 1,
        offset: found.offset as u32,
        count: match change {
            Change::Insert => count + 1,
            // Exact for honest keys; otherwise only a hint, as `View::count` says.
            Change::Delete => count.saturating_sub(1),
            Change::Update | Change::Split => count,
        },
        // A key that is there is kept.
        key: found.entry.map(|old| old.key).or(new_key)?,
        value,
        left: NO_NODE,
        next: word.released(),
        base: view.base.as_ptr(),
        of: PhantomData,
    })
}

impl<S: Spec> Tree<S> {
    #[inline]
    pub(super) fn lookup<'k>(
        &self,
        key: impl Into<Sought<'k, S::Key>>,
        guard: &Guard,
    ) -> Option<*mut ()> {
        let probe = SearchKey::<S>::new(key);
        let view = self.leaf_of(&probe, guard).view;
        if view.base.is_spread() {
            return view.value_in_sub_chain(&probe);
        }
        view.value_of(&probe)
    }

    /// Puts a value under a key; returns the old one, unlinked. If there is an old value and not
    /// `may_replace`, nothing happens and the new value is returned as an error.
    #[inline]
    pub(super) fn put<'g>(
        &self,
        key: S::Key,
        value: OwnedValue<S::Value>,
        may_replace: bool,
        guard: &'g Guard,
    ) -> Result<Option<Unlinked<'g, S::Value>>, OwnedValue<S::Value>> {
        let key = OwnedKey::<S>::new(key);
        let put = key.search(|probe| {
            self.change(
                &probe,
                |found| match found.entry {
                    Some(_) if !may_replace => None,
                    Some(_) => Some((Change::Update, None, value.word())),
                    None => Some((Change::Insert, Some(key.stored()), value.word())),
                },
                guard,
            )
        });
        let Some((place, word, old)) = put else {
            return Err(value);
        };
        value.give();
        // SAFETY: this thread has just unlinked it.
        let old = old.map(|old| unsafe { Unlinked::of_word(old, guard) });
        if old.is_none() {
            key.give();
            self.len.add(1);
        }
        self.consolidate_if_due(place, word, guard);
        Ok(old)
    }

    /// Removes a key; returns its value, unlinked.
    #[inline]
    pub(super) fn take<'g>(
        &self,
        key: &S::Key,
        guard: &'g Guard,
    ) -> Option<Unlinked<'g, S::Value>> {
        let probe = SearchKey::new(key);
        let (id, word, old) = self.change(
            &probe,
            |found| {
                found.entry?;
                Some((Change::Delete, None, ptr::null_mut()))
            },
            guard,
        )?;
        // SAFETY: this thread has just unlinked it.
        let old = old.map(|old| unsafe { Unlinked::of_word(old, guard) });
        self.len.add(-1);
        self.note_deletion(id, word, guard);
        self.consolidate_if_due(id, word, guard);
        old
    }

    /// Calls `decide` with what the leaf responsible for a key has of it, and prepends the delta
    /// that it asks for; tries again until no other thread was faster. Returns the leaf, its new
    /// word and the old value; `None` if there is nothing to do. Runs no user code after the
    /// change.
    #[inline]
    fn change(
        &self,
        probe: &SearchKey<'_, S>,
        decide: impl Fn(&SearchResult<S>) -> Option<Decision<S>>,
        guard: &Guard,
    ) -> Option<Changed> {
        let position = Position::At(*probe);
        let backoff = Backoff::new();
        let mut place = self.leaf_of(probe, guard);
        let mut claim: Option<Claim<S>> = None;
        loop {
            let base = place.view.base;
            if base.is_spread() {
                match self.change_in_sub_chain(&place, probe, &decide, guard) {
                    Some(change) => return change,
                    None => {
                        place = self.again(&place, &position, guard);
                        continue;
                    }
                }
            }
            let found = place.view.find(probe);
            let (change, key, value) = decide(&found)?;
            if !place.word.is_open() {
                self.help_merge(place.word, guard);
                backoff.wait();
                place = self.again(&place, &position, guard);
                continue;
            }
            claim = claim
                .filter(|claim| claim.base == base.as_ptr())
                .or_else(|| Claim::new(base));
            let Some(claimed) = &claim else {
                self.consolidate(&place, guard);
                place = self.again(&place, &position, guard);
                continue;
            };
            let delta = delta(change, &found, key, value, place.word, &place.view)?;
            let word = claimed.write(base, delta);
            if self.table.exchange(place.id, place.word, word) {
                if let Some(claimed) = claim {
                    claimed.forget();
                }
                return Some((place.id, word, found.entry.map(|entry| entry.value)));
            }
            self.note_contention(base);
            place = self.again(&place, &position, guard);
        }
    }

    /// Holds the leaf of a key, calls `decide`, and does what it returns; returns the value that
    /// was replaced or removed.
    pub(super) fn decide<'g>(
        &self,
        key: S::Key,
        decide: &mut Decide<'_, S::Value>,
        guard: &'g Guard,
    ) -> Option<Unlinked<'g, S::Value>> {
        let key = OwnedKey::<S>::new(key);
        let mut holds = Holds::new(self);
        let (place, found) = key.search(|probe| {
            let place = holds.hold_leaf(&Position::At(probe), guard);
            (place, place.view.find(&probe))
        });
        let old = found.entry.map(|entry| entry.value);
        let decision = match old {
            // SAFETY: it is in the tree during this pin.
            Some(old) => unsafe { Packed::<S::Value>::of_word(old).with(|old| decide(Some(old))) },
            None => decide(None),
        };
        let (change, value) = match (decision, old) {
            (Update::Keep, _) | (Update::Remove, None) => return None,
            (Update::Remove, Some(_)) => (Change::Delete, None),
            (Update::Put(value), Some(_)) => (Change::Update, Some(OwnedValue::new(value))),
            (Update::Put(value), None) => (Change::Insert, Some(OwnedValue::new(value))),
        };
        let new = value.as_ref().map_or(ptr::null_mut(), OwnedValue::word);
        let new_key = Some(key.stored());
        let delta = delta(change, &found, new_key, new, place.word, &place.view)?;
        let word = Self::prepare(&place.view, delta);
        holds.release(place.id, word);
        if let Some(value) = value {
            value.give();
        }
        // SAFETY: this thread has just unlinked it.
        let old = old.map(|old| unsafe { Unlinked::of_word(old, guard) });
        match change {
            Change::Insert => {
                key.give();
                self.len.add(1);
            }
            Change::Delete => {
                self.len.add(-1);
                self.note_deletion(place.id, word, guard);
            }
            Change::Update | Change::Split => {}
        }
        drop(holds);
        self.consolidate_if_due(place.id, word, guard);
        old
    }

    /// Writes a delta for a held node; returns the word to publish.
    fn prepare(view: &View<'_, S>, delta: Delta<S>) -> Word {
        let claim = Claim::new(view.base).unwrap_or_else(|| Claim::on_heap(view.base));
        let word = claim.write(view.base, delta);
        claim.forget();
        word
    }

    /// Makes the delta that removes an entry from a leaf, which this thread holds as it was found;
    /// returns the leaf's new word, which is not set yet. Runs no user code.
    pub(super) fn prepare_removal(&self, place: &Place<'_, S>, entry: &Entry<S>) -> Option<Word> {
        let found = place.view.find_entry(entry);
        let (word, view) = (place.word, &place.view);
        let delta = delta(Change::Delete, &found, None, ptr::null_mut(), word, view)?;
        Some(Self::prepare(&place.view, delta))
    }
}
