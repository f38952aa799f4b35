//! What a slot leads to: the value of an entry, and the bytes of its key.

use super::block::{Word, load_bytes, words_in_front};
use super::edit::MOST_INLINE;
use super::slot::{SHOWN, tail_words};
use super::{Aside, Block, Loose, MOST_PREFIX, Slot, TextEntry, WORD};
use crate::kit::prefetch;
use std::ptr;
use tremula_sync::atomic::Ordering;

impl TextEntry {
    /// The words of the block, from the entry's first on.
    ///
    /// # Safety
    ///
    /// The block is not freed during `'g`.
    #[inline]
    pub(super) unsafe fn words<'g>(self) -> &'g [Word] {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.block.words() };
        words.get(self.slot.place()..).unwrap_or_default()
    }

    /// The word of the value. A null pointer if slot and block are of different moments.
    ///
    /// # Safety
    ///
    /// The block has not been freed.
    #[inline]
    pub(in crate::b_tree) unsafe fn value(self) -> *mut () {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.words() };
        words
            .first()
            .map_or(ptr::null_mut(), |word| word.load(Ordering::Relaxed))
    }

    /// What has to be freed of the key when the entry has been removed.
    ///
    /// # Safety
    ///
    /// As for [`append_key`](Self::append_key).
    #[inline]
    pub(in crate::b_tree) unsafe fn loose(self) -> Loose {
        // SAFETY: passed on to the caller.
        Loose::of(unsafe { self.aside() })
    }

    /// The entry as two words.
    #[inline]
    pub(in crate::b_tree) fn to_words(self) -> (u64, *mut ()) {
        (self.slot.word(), self.block.word())
    }

    /// The inverse of [`to_words`](Self::to_words).
    #[inline]
    pub(in crate::b_tree) fn of_words(slot: u64, block: *mut ()) -> Self {
        Self {
            slot: Slot::of_word(slot),
            block: Block::of_word(block),
        }
    }

    /// Prefetches the first line of the entry.
    #[inline]
    pub(in crate::b_tree) fn prefetch(self) {
        prefetch(self.block.address(self.slot.place()));
    }

    /// The key aside to which the entry leads; `None` if the key lies in the block, or if slot and
    /// block are of different moments.
    ///
    /// # Safety
    ///
    /// The block has not been freed.
    #[inline]
    pub(super) unsafe fn aside(self) -> Option<Aside> {
        if self.slot.length().is_some() {
            return None;
        }
        // SAFETY: passed on to the caller.
        let words = unsafe { self.words() };
        Aside::of_word(words.get(1)?.load(Ordering::Relaxed))
    }

    /// How many bytes of the key lie in front of the suffix.
    ///
    /// # Safety
    ///
    /// The block has not been freed.
    #[inline]
    pub(super) unsafe fn skip(self) -> usize {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.block.words() };
        words
            .first()
            .map_or(0, |skip| load_bytes(skip) as usize)
            .min(MOST_PREFIX)
    }

    /// Appends the bytes of the key.
    ///
    /// # Safety
    ///
    /// The entry was read as a whole (an optimistic reader has validated it), and neither its block
    /// nor a key aside has been freed.
    #[inline]
    pub(in crate::b_tree) unsafe fn append_key(self, out: &mut Vec<u8>) {
        let Some(length) = self.slot.length() else {
            // SAFETY: passed on to the caller.
            return out.extend_from_slice(unsafe { self.bytes_aside() });
        };
        // SAFETY: passed on to the caller. The room is as large as `write_key` asks for, and so
        // many bytes have been written.
        unsafe {
            let (skip, length) = (self.skip(), length.min(MOST_INLINE));
            out.reserve(room_of(skip, length));
            let start = out.len();
            self.write_key(out.as_mut_ptr().add(start), skip, length);
            out.set_len(start + skip + length);
        }
    }

    /// The bytes of the key, in an allocation of their number or a few more. They are written
    /// straight to where they stay: to copy words that have just been written waits for them.
    ///
    /// # Safety
    ///
    /// As for [`append_key`](Self::append_key).
    #[inline]
    pub(in crate::b_tree) unsafe fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // SAFETY: passed on to the caller.
        unsafe { self.append_key(&mut bytes) };
        bytes
    }

    /// The bytes of a key that lies aside.
    ///
    /// # Safety
    ///
    /// As for [`append_key`](Self::append_key).
    unsafe fn bytes_aside<'g>(self) -> &'g [u8] {
        // SAFETY: passed on to the caller: the word came from an entry of a long key.
        let aside = unsafe { self.aside() };
        // SAFETY: passed on to the caller.
        aside.map_or(&[], |aside| unsafe { aside.bytes() })
    }

    /// Writes the bytes of a key that does not lie aside: the `skip` bytes in front of the suffix,
    /// and its `length`.
    ///
    /// # Safety
    ///
    /// As for [`append_key`](Self::append_key); and `to` has [room](room_of) for them.
    #[inline]
    unsafe fn write_key(self, to: *mut u8, skip: usize, length: usize) {
        // SAFETY: passed on to the caller.
        let (words, tail) = unsafe { (self.block.words(), self.words()) };
        // Whole words are written one after the other, each over what is too long of the last.
        let write = |at: usize, word: u64| {
            debug_assert!(at + WORD <= room_of(skip, length));
            let word = word.to_be_bytes();
            // SAFETY: a word begins within the key, or right behind, and there is room for it.
            unsafe { to.add(at).cast::<[u8; WORD]>().write(word) };
        };
        let front = words.get(1..words_in_front(skip)).unwrap_or_default();
        for (at, word) in front.iter().enumerate() {
            write(at * WORD, load_bytes(word));
        }
        write(skip, self.slot.word());
        let tail = tail.get(1..1 + tail_words(length)).unwrap_or_default();
        for (at, word) in tail.iter().enumerate() {
            write(skip + SHOWN + at * WORD, load_bytes(word));
        }
    }
}

/// How many bytes [`TextEntry::write_key`] writes at most: a word that begins behind the prefix,
/// and the words of the tail.
#[inline]
fn room_of(skip: usize, length: usize) -> usize {
    skip + (SHOWN + tail_words(length) * WORD).max(WORD)
}
