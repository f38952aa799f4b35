//! The search for a key in a leaf.

use super::block::load_bytes;
use super::slot::{Slot, above_head, head_of_word, tail_words};
use super::{CAPACITY, MOST_PREFIX, TextEntry, TextLeaf, WORD};
use crate::b_tree::node::{Aim, SearchResult, alike, first_of, word_at};
use std::cmp::Ordering as KeyOrdering;
use tremula_sync::Restart;
use tremula_sync::atomic::Ordering;

impl TextLeaf {
    /// Where a key at which a search [aims](Self::aim) is, or belongs, among `count`. Calls `sound`
    /// before it follows a pointer that it has read in the leaf, and passes on the error.
    ///
    /// # Safety
    ///
    /// The leaf's block is not freed while this runs: the thread is pinned, or has the leaf alone.
    #[inline]
    pub(in crate::b_tree) unsafe fn find(
        &self,
        aim: Aim,
        count: usize,
        key: &[u8],
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        let at = self.below(aim).min(count);
        if aim.is_outside || at >= count || self.slot(at).head() != aim.head {
            return Ok(Err(at));
        }
        // SAFETY: passed on to the caller.
        unsafe { self.find_among_equal_heads(at, count, aim.head, key, sound) }
    }

    /// # Safety
    ///
    /// As for [`find`](Self::find).
    #[inline]
    unsafe fn find_among_equal_heads(
        &self,
        mut low: usize,
        count: usize,
        head: u64,
        key: &[u8],
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        // Nearly always one head is equal.
        let mut high = low + 1;
        if high < count && self.slot(high).head() == head {
            high = above_head(head).map_or(count, |above| self.heads().below(above).min(count));
        }
        let skip = self.figures().skip;
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: passed on to the caller.
            let order = unsafe { self.entry(middle).compare(skip, key, &sound)? };
            match order {
                KeyOrdering::Greater => low = middle + 1,
                KeyOrdering::Equal => return Ok(Ok(middle)),
                KeyOrdering::Less => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// The number of slots below the head at which a search aims.
    #[inline]
    fn below(&self, aim: Aim) -> usize {
        self.heads().below_in(aim.segment, aim.head)
    }

    /// Prefetches the slots of a segment.
    #[inline]
    pub(in crate::b_tree) fn prefetch_segment(&self, segment: usize) {
        self.heads().prefetch(segment);
    }

    /// Prefetches the entry that a search will compare with.
    #[inline]
    pub(in crate::b_tree) fn prefetch_aim(&self, aim: Aim) {
        let at = self.below(aim).min(CAPACITY - 1);
        self.entry(at).prefetch();
    }

    /// Where a search for a key looks: at the head that the key has here, or would have. If the key
    /// lies below all keys that have the prefix, that is the least one, and if it lies above them,
    /// the greatest number.
    #[inline]
    pub(in crate::b_tree) fn aim(&self, key: &[u8]) -> Aim {
        let (head, has_prefix) = self.head_of(key);
        Aim {
            head,
            segment: self.heads().segment(head),
            is_outside: !has_prefix,
        }
    }

    /// The head of a key, and whether the key has the prefix.
    #[inline]
    fn head_of(&self, key: &[u8]) -> (u64, bool) {
        let skip = self.figures().skip.min(MOST_PREFIX);
        let mut at = 0;
        while at < skip {
            let own = self.prefix_word(at / WORD);
            let seen = first_of(word_at(key, at), skip - at);
            if seen != own {
                return (if seen < own { 0 } else { u64::MAX }, false);
            }
            at += WORD;
        }
        // A key that ends within the prefix, which then goes on with zeros, is below all others.
        (head_of_word(word_at(key, skip)), key.len() >= skip)
    }

    #[inline]
    pub(super) fn prefix_word(&self, at: usize) -> u64 {
        self.prefix[at].load(Ordering::Relaxed)
    }

    /// How many bytes of the prefix a key has.
    pub(super) fn common(&self, key: &[u8]) -> usize {
        let most = self.figures().skip.min(key.len());
        let mut common = 0;
        while common < most {
            let here = alike(word_at(key, common), self.prefix_word(common / WORD));
            common += here;
            if here < WORD {
                break;
            }
        }
        common.min(most)
    }
}

impl TextEntry {
    /// How a key with the same head behind the same `skip` bytes compares with this one.
    ///
    /// # Safety
    ///
    /// The block has not been freed. If `sound` succeeds, what was read of the entry before is
    /// whole, and a key aside has not been freed.
    #[inline]
    unsafe fn compare(
        self,
        skip: usize,
        key: &[u8],
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<KeyOrdering, Restart> {
        let Some(length) = self.slot.length() else {
            // SAFETY: passed on to the caller.
            let aside = unsafe { self.aside() };
            sound()?;
            // SAFETY: `sound` says that the pointer is that of an entry that was linked after this
            // thread was pinned.
            let bytes = aside.map(|aside| unsafe { aside.bytes() });
            return Ok(key.cmp(bytes.unwrap_or_default()));
        };
        // SAFETY: passed on to the caller.
        let words = unsafe { self.words() };
        // Missing only if slot and block are of different moments.
        let tail = words.get(1..1 + tail_words(length)).ok_or(Restart)?;
        let mut at = skip + super::slot::SHOWN;
        for word in tail {
            let (seen, own) = (word_at(key, at), load_bytes(word));
            if seen != own {
                return Ok(seen.cmp(&own));
            }
            at += WORD;
        }
        // One is the beginning of the other, or both are equal: zeros stand for missing bytes. If
        // the prefix has just become longer than the key, the caller will see that it has changed.
        Ok(key.len().wrapping_sub(skip).cmp(&length))
    }
}

/// The slot of a key behind a prefix of `skip` bytes.
pub(super) fn slot_of(key: &[u8], skip: usize, is_aside: bool, place: usize) -> Slot {
    let length = (!is_aside).then_some(key.len() - skip);
    Slot::new(word_at(key, skip), length, place)
}
