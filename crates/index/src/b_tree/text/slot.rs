//! Slots: eight bytes for each entry, in the order of the keys.

/// Bits for the place of an entry in its block.
const PLACE_BITS: u32 = 9;

/// Bits for the length of a suffix.
const LENGTH_BITS: u32 = 8;

/// Bits below the head.
const LOW_BITS: u32 = PLACE_BITS + LENGTH_BITS;

/// The words that a place can count.
pub(super) const PLACES: usize = 1 << PLACE_BITS;

/// Whole bytes of the suffix that a slot shows.
pub(super) const SHOWN: usize = ((u64::BITS - LOW_BITS) / 8) as usize;

/// The length in the slot of a key that lies aside.
const LONG: u64 = (1 << LENGTH_BITS) - 1;

/// A slot. Slots compare as numbers, and the head is in front: so a slot never contradicts the
/// order of the keys.
///
/// ```text
///   | the first 47 bits of the suffix | length of the suffix | place of the entry |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(u64);

/// The head of a suffix that begins with these eight bytes, or has zeros for those that are
/// missing: a slot with nothing behind it.
#[inline]
pub(super) fn head_of_word(word: u64) -> u64 {
    word & (u64::MAX << LOW_BITS)
}

/// A number above all slots with this head, and not above those with a greater head. `None` if no
/// head is greater.
#[inline]
pub(super) fn above_head(head: u64) -> Option<u64> {
    head.checked_add(1 << LOW_BITS)
}

impl Slot {
    /// The slot of an entry whose suffix begins with these eight bytes. `length` is that of the
    /// suffix; `None` if the key lies aside.
    #[inline]
    pub(super) fn new(word: u64, length: Option<usize>, place: usize) -> Self {
        debug_assert!(place < PLACES && length.is_none_or(|length| (length as u64) < LONG));
        let length = length.map_or(LONG, |length| length as u64);
        Self(head_of_word(word) | length << PLACE_BITS | place as u64)
    }

    #[inline]
    pub(super) fn of_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The same entry at another place.
    #[inline]
    pub(super) fn moved_to(self, place: usize) -> Self {
        debug_assert!(place < PLACES);
        Self(self.0 & !(PLACES as u64 - 1) | place as u64)
    }

    #[inline]
    pub(super) fn head(self) -> u64 {
        head_of_word(self.0)
    }

    /// The length of the suffix; `None` if the key lies aside.
    #[inline]
    pub(super) fn length(self) -> Option<usize> {
        let length = self.0 >> PLACE_BITS & LONG;
        (length != LONG).then_some(length as usize)
    }

    #[inline]
    pub(super) fn place(self) -> usize {
        self.0 as usize % PLACES
    }

    /// The words of the entry: of a long key, its value and a pointer.
    #[inline]
    pub(super) fn entry_words(self) -> usize {
        entry_words(self.length())
    }
}

/// The words of an entry whose suffix has this length; `None` if the key lies aside.
#[inline]
pub(super) fn entry_words(length: Option<usize>) -> usize {
    match length {
        Some(length) => 1 + tail_words(length),
        None => 2,
    }
}

/// The words of the tail of a suffix of this length.
#[inline]
pub(super) fn tail_words(length: usize) -> usize {
    length.saturating_sub(SHOWN).div_ceil(super::WORD)
}
