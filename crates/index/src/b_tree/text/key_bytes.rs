//! What a slot leads to: the value of an entry, and the bytes of its key.

use super::block::{Word, load_bytes, words_in_front};
use super::edit::MOST_INLINE;
use super::slot::{SHOWN, tail_words};
use super::{Aside, Block, IS_MODEL, Loose, MOST_PREFIX, Slot, TextEntry, WORD};
use crate::kit::prefetch;
use std::ptr;
use tremula_sync::atomic::Ordering;

/// The words of a tail that are read without asking how many it has: most tails are no longer.
/// A loop over their number would be a branch that no processor foresees.
const AT_ONCE: usize = 4;

/// The memory in which a visit makes one key after the other. Keys of one block begin alike, so
/// what they begin with is written once.
pub(in crate::b_tree) struct KeyScratch {
    bytes: Vec<u8>,
    /// The block with whose prefix the bytes begin.
    block: Block,
    /// The length of that prefix.
    skip: usize,
}

impl KeyScratch {
    pub(in crate::b_tree) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            block: Block::NONE,
            skip: 0,
        }
    }

    /// The bytes of the key that was read last. The caller makes a key of them, and brings back
    /// what that leaves: the same bytes, or none.
    #[inline]
    pub(in crate::b_tree) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

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

    /// Makes the bytes of the key those of a scratch.
    ///
    /// # Safety
    ///
    /// As for [`append_key`](Self::append_key); and the blocks of all entries that are read into
    /// the scratch live as long as it does.
    #[inline(always)]
    pub(in crate::b_tree) unsafe fn read_key(self, scratch: &mut KeyScratch) {
        let bytes = &mut scratch.bytes;
        let Some(length) = self.slot.length() else {
            scratch.block = Block::NONE;
            bytes.clear();
            // SAFETY: passed on to the caller.
            return bytes.extend_from_slice(unsafe { self.bytes_aside() });
        };
        let length = length.min(MOST_INLINE);
        // A block that has lived since then is the same block.
        let is_begun = scratch.block == self.block && bytes.len() >= scratch.skip;
        if !is_begun {
            // SAFETY: passed on to the caller.
            (scratch.block, scratch.skip) = (self.block, unsafe { self.skip() });
            bytes.clear();
        }
        let skip = scratch.skip;
        let room = room_of(skip, length).max(skip + SHOWN + AT_ONCE * WORD);
        bytes.reserve(room.saturating_sub(bytes.len()));
        // SAFETY: passed on to the caller. There is room, and prefix and suffix have been written.
        unsafe {
            let to = bytes.as_mut_ptr();
            if !is_begun {
                self.write_prefix(to, skip);
            }
            self.write_suffix(to.add(skip), length);
            bytes.set_len(skip + length);
        }
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
        unsafe {
            self.write_prefix(to, skip);
            let tail = self.words();
            let tail = tail.get(1..1 + tail_words(length)).unwrap_or_default();
            write_words(to.add(skip), self.slot, tail);
        }
    }

    /// Writes the `skip` bytes in front of the suffix, and up to seven more.
    ///
    /// # Safety
    ///
    /// As for [`write_key`](Self::write_key).
    #[inline]
    unsafe fn write_prefix(self, to: *mut u8, skip: usize) {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.block.words() };
        let front = words.get(1..words_in_front(skip)).unwrap_or_default();
        for (at, word) in front.iter().enumerate() {
            // SAFETY: passed on to the caller.
            unsafe { write_word(to.add(at * WORD), load_bytes(word)) };
        }
    }

    /// Writes the `length` bytes of the suffix, and up to [`AT_ONCE`] words behind them: what is in
    /// the block there.
    ///
    /// # Safety
    ///
    /// As for [`write_key`](Self::write_key), with room for as many more.
    #[inline(always)]
    unsafe fn write_suffix(self, to: *mut u8, length: usize) {
        // SAFETY: passed on to the caller.
        let words = unsafe { self.words() };
        let tail = tail_words(length);
        // Under a checker each word that is read is another step.
        let is_short = tail <= AT_ONCE && !IS_MODEL;
        let read = if is_short { AT_ONCE } else { tail };
        let (tail, read) = match words.get(1..1 + read) {
            Some(words) => (words, read),
            // At the end of the block.
            None => (words.get(1..1 + tail).unwrap_or_default(), tail),
        };
        // SAFETY: passed on to the caller.
        unsafe {
            match tail.first_chunk::<AT_ONCE>() {
                Some(tail) if read == AT_ONCE => write_words(to, self.slot, tail),
                _ => write_words(to, self.slot, tail),
            }
        }
    }
}

/// Writes the bytes that a slot shows, and the words of a tail behind them: one after the other,
/// each over what is too long of the last.
///
/// # Safety
///
/// There is room for them, and for three bytes more.
#[inline(always)]
unsafe fn write_words(to: *mut u8, slot: Slot, tail: &[Word]) {
    // SAFETY: passed on to the caller.
    unsafe {
        write_word(to, slot.word());
        for (at, word) in tail.iter().enumerate() {
            write_word(to.add(SHOWN + at * WORD), load_bytes(word));
        }
    }
}

/// # Safety
///
/// There is room for a word.
#[inline(always)]
unsafe fn write_word(to: *mut u8, word: u64) {
    // SAFETY: passed on to the caller.
    unsafe { to.cast::<[u8; WORD]>().write(word.to_be_bytes()) };
}

/// How many bytes [`TextEntry::write_key`] writes at most: a word that begins behind the prefix,
/// and the words of the tail.
#[inline]
fn room_of(skip: usize, length: usize) -> usize {
    skip + (SHOWN + tail_words(length) * WORD).max(WORD)
}
