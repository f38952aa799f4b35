//! Changes of single entries, and removals of runs.

use super::assemble::{Assembled, Run};
use super::block::{UNIT_WORDS, Word, store_bytes, words_in_front};
use super::find::slot_of;
use super::slot::{SHOWN, entry_words, tail_words};
use super::{Aside, CAPACITY, Full, TextLeaf, WORD};
use crate::b_tree::node::word_at;
use crate::kit::Retire;
use tremula_sync::atomic::Ordering;

/// The longest suffix of a key that does not lie aside. A longer one would leave a leaf with a few
/// entries; beside a key so long the pointer to it hardly counts.
pub(super) const MOST_INLINE: usize = 128;

/// Whether a key with a suffix of this length lies aside.
#[inline]
pub(super) fn lies_aside(length: usize) -> bool {
    length > MOST_INLINE
}

/// Writes an entry into words that have not been used. `aside` is the key, if it lies aside.
pub(super) fn write_entry(
    words: &[Word],
    key: &[u8],
    skip: usize,
    value: *mut (),
    aside: Option<Aside>,
) {
    words[0].store(value, Ordering::Relaxed);
    if let Some(aside) = aside {
        words[1].store(aside.word(), Ordering::Relaxed);
        return;
    }
    let tail = &words[1..1 + tail_words(key.len() - skip)];
    for (at, word) in tail.iter().enumerate() {
        store_bytes(word, word_at(key, skip + SHOWN + at * WORD));
    }
}

impl TextLeaf {
    /// Inserts an entry at an index among `count`. The caller writes the count.
    ///
    /// # Errors
    ///
    /// [`Full`] if there is no room. Then nothing has happened.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone.
    pub(in crate::b_tree) unsafe fn insert(
        &self,
        at: usize,
        count: usize,
        key: &[u8],
        value: *mut (),
        guard: &impl Retire,
    ) -> Result<(), Full> {
        // SAFETY: passed on to the caller.
        unsafe { self.make_room(count, key, guard)? };
        let mut figures = self.figures();
        let length = key.len() - figures.skip;
        let aside = lies_aside(length).then(|| Aside::new(key));
        let words = entry_words(aside.is_none().then_some(length));
        let place = figures.next;
        // SAFETY: passed on to the caller.
        let block = unsafe { self.block().words() };
        write_entry(&block[place..], key, figures.skip, value, aside);
        figures.next += words;
        figures.live += words;
        self.set_figures(figures);
        let slot = slot_of(key, figures.skip, aside.is_some(), place);
        self.heads().insert(at, count, slot.word());
        Ok(())
    }

    /// Whether a leaf with `count` entries has room for a key that it does not have.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone.
    pub(in crate::b_tree) unsafe fn has_room(&self, count: usize, key: &[u8]) -> bool {
        let runs = [Run::new(self, 0..count)];
        // SAFETY: passed on to the caller.
        count < CAPACITY
            && (self.block_has_room(key) || unsafe { Assembled::fits(&runs, Some(key)) })
    }

    /// Whether the block has room for a key as it is.
    #[inline]
    fn block_has_room(&self, key: &[u8]) -> bool {
        let figures = self.figures();
        if self.common(key) < figures.skip {
            return false;
        }
        let length = key.len() - figures.skip;
        let words = entry_words((!lies_aside(length)).then_some(length));
        figures.next + words <= self.block().length()
    }

    /// Makes a leaf with `count` entries ready for one more, whose key it does not have.
    ///
    /// # Errors
    ///
    /// [`Full`] if that cannot be. Then nothing has happened.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone.
    unsafe fn make_room(&self, count: usize, key: &[u8], guard: &impl Retire) -> Result<(), Full> {
        if count >= CAPACITY {
            return Err(Full);
        }
        if !self.block_has_room(key) {
            // SAFETY: passed on to the caller.
            let assembled = unsafe { Assembled::new(&[Run::new(self, 0..count)], Some(key))? };
            assembled.give_to(self, guard);
        }
        Ok(())
    }

    /// Replaces a value.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone; and `at` is below the count.
    pub(in crate::b_tree) unsafe fn set_value(&self, at: usize, value: *mut ()) {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.entry(at).words() };
        words[0].store(value, Ordering::Relaxed);
    }

    /// Removes the entries at `from..to` among `count`. The caller writes the count, and owns the
    /// values and keys aside that these entries have.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone.
    pub(in crate::b_tree) unsafe fn remove_run(
        &self,
        from: usize,
        to: usize,
        count: usize,
        guard: &impl Retire,
    ) {
        let mut figures = self.figures();
        let heads = self.heads();
        for at in from..to {
            figures.live -= self.slot(at).entry_words();
        }
        if to == from + 1 {
            heads.remove(from, count);
        } else {
            for (offset, at) in (to..count).enumerate() {
                heads.store(from + offset, heads.load(at));
            }
            heads.seal(count - (to - from));
        }
        self.set_figures(figures);
        let left = count - (to - from);
        let used = words_in_front(figures.skip) + figures.live;
        let length = self.block().length();
        // A block that is mostly empty gives way to a smaller one.
        if length > UNIT_WORDS && used < length / 4 {
            // SAFETY: passed on to the caller.
            let assembled = unsafe { Assembled::new(&[Run::new(self, 0..left)], None) };
            if let Ok(assembled) = assembled {
                assembled.give_to(self, guard);
            }
        }
    }

    /// Frees the block, but no value and no key aside.
    ///
    /// # Safety
    ///
    /// No other thread has the leaf, and the caller does not use it again.
    pub(in crate::b_tree) unsafe fn free_block(&self) {
        // SAFETY: passed on to the caller.
        unsafe { self.block().free(self.heap) };
    }
}
