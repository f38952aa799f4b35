//! The invariants of a leaf of text as a function.

use super::block::{load_bytes, words_in_front};
use super::find::slot_of;
use super::{CAPACITY, PREFIX_WORDS, TextLeaf, WORD};
use crate::b_tree::node::word_at;
use crate::kit::STRIDE;
use tremula_sync::atomic::Ordering;

impl TextLeaf {
    /// Panics, and names the invariant, if one does not hold.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or has it alone.
    pub(in crate::b_tree) unsafe fn check(&self, count: usize) {
        let (figures, heads) = (self.figures(), self.heads());
        // SAFETY: passed on to the caller.
        let block = unsafe { self.block().words() };
        let (mut keys, mut live) = (Vec::new(), 0);
        for at in 0..count {
            let (entry, mut key) = (self.entry(at), Vec::new());
            // SAFETY: passed on to the caller.
            unsafe { entry.append_key(&mut key) };
            let slot = self.slot(at);
            let is_aside = slot.length().is_none();
            assert!(
                key.len() >= figures.skip
                    && (0..figures.skip).all(|at| {
                        let word = self.prefix_word(at / WORD).to_be_bytes();
                        key[at] == word[at % WORD]
                    }),
                "invariant 1 of a leaf of text: a key does not have the prefix"
            );
            assert!(
                slot == slot_of(&key, figures.skip, is_aside, slot.place()),
                "invariant 2 of a leaf of text: a slot does not show its key"
            );
            live += slot.entry_words();
            keys.push(key);
        }
        assert!(
            keys.is_sorted_by(|one, other| one < other),
            "invariant 2 of a leaf of text: keys do not ascend"
        );
        assert!(
            (count..CAPACITY).all(|at| heads.load(at) == u64::MAX),
            "invariant 2 of a leaf of text: a slot beyond the count is not the greatest number"
        );
        let firsts = (STRIDE..CAPACITY).step_by(STRIDE).map(|at| heads.load(at));
        let hints = self.hints.iter().map(|hint| hint.load(Ordering::Relaxed));
        assert!(
            hints.eq(firsts
                .chain(std::iter::repeat(u64::MAX))
                .take(self.hints.len())),
            "invariant 2 of a leaf of text: a hint differs from the slot that it stands for"
        );
        let Some(skip) = block.first() else {
            return assert_eq!(count, 0, "a leaf of text has entries and no block");
        };
        let prefix = (0..PREFIX_WORDS).map(|at| self.prefix_word(at));
        let length = figures.skip.div_ceil(WORD);
        let bytes: Vec<u8> = prefix.clone().flat_map(u64::to_be_bytes).collect();
        assert!(
            load_bytes(skip) as usize == figures.skip
                && (0..length).all(|at| load_bytes(&block[1 + at]) == self.prefix_word(at))
                && bytes[figures.skip..].iter().all(|byte| *byte == 0)
                && (0..length).all(|at| word_at(&bytes, at * WORD) == self.prefix_word(at)),
            "invariant 1 of a leaf of text: its block has another prefix"
        );
        assert!(
            figures.live == live
                && figures.next >= words_in_front(figures.skip) + live
                && figures.next <= block.len(),
            "a leaf of text has miscounted the words of its entries: {figures:?}, {live}"
        );
    }
}
