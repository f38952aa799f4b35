//! The keys of a node, and the words of their heads beside them.

use super::slots::Slots;
use crate::form::{Form, Sought};
use crate::key::head::head_of_sought;
use crate::key::{HeadWord, KeyHead};
use std::cmp::Ordering;

/// A key and the word of its head, outside a node.
pub struct Headed<K, H: KeyHead<K>> {
    pub(super) key: K,
    pub(super) word: H::Word,
}

impl<K, H: KeyHead<K>> Headed<K, H> {
    /// Computes the word of the key.
    #[inline]
    pub(super) fn new(key: K) -> Self {
        Self {
            word: H::Word::of(H::head(&key)),
            key,
        }
    }

    #[inline]
    pub(super) const fn search_key(&self) -> SearchKey<'_, K, H> {
        SearchKey {
            key: &self.key,
            word: self.word,
        }
    }
}

/// A key that an operation looks for, and the word of its head.
pub(super) struct SearchKey<'a, K, H: KeyHead<K>> {
    key: &'a K,
    word: H::Word,
}

impl<K, H: KeyHead<K>> Clone for SearchKey<'_, K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H: KeyHead<K>> Copy for SearchKey<'_, K, H> {}

impl<'a, K, H: KeyHead<K>> SearchKey<'a, K, H> {
    #[inline]
    pub(super) fn new(key: &'a K) -> Self {
        Self {
            key,
            word: H::Word::of(H::head(key)),
        }
    }

    /// With the word of the key's head, which is known.
    pub(super) const fn with_word(key: &'a K, word: H::Word) -> Self {
        Self { key, word }
    }

    /// A copy of the key.
    pub(super) fn copy(self) -> Headed<K, H>
    where
        K: Clone,
    {
        Headed {
            key: self.key.clone(),
            word: self.word,
        }
    }
}

/// A borrowed form of a key that an operation looks for, and the word of its head.
pub(super) struct SearchForm<'a, K, H: KeyHead<K>> {
    form: &'a dyn Form<K>,
    word: H::Word,
}

impl<K, H: KeyHead<K>> Clone for SearchForm<'_, K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H: KeyHead<K>> Copy for SearchForm<'_, K, H> {}

impl<'a, K, H: KeyHead<K>> SearchForm<'a, K, H> {
    pub(super) fn new(form: &'a dyn Form<K>) -> Self {
        Self {
            form,
            word: H::Word::of(head_of_sought::<K, H>(Sought::Form(form))),
        }
    }
}

/// What an operation looks for: a [`SearchKey`] or a [`SearchForm`]. The two are types, not one
/// type with two cases, so that a search of keys has no branch for forms.
pub(super) trait Probe<K, H: KeyHead<K>>: Copy {
    fn word(self) -> H::Word;

    /// How a key of a node compares with what is looked for.
    fn compare_with(self, key: &K) -> Ordering;
}

impl<K: Ord, H: KeyHead<K>> Probe<K, H> for SearchKey<'_, K, H> {
    #[inline]
    fn word(self) -> H::Word {
        self.word
    }

    #[inline]
    fn compare_with(self, key: &K) -> Ordering {
        key.cmp(self.key)
    }
}

impl<K, H: KeyHead<K>> Probe<K, H> for SearchForm<'_, K, H> {
    fn word(self) -> H::Word {
        self.word
    }

    fn compare_with(self, key: &K) -> Ordering {
        self.form.compare(key).reverse()
    }
}

/// `N` slots for keys and their words, of which the first `len` are in use. The owner keeps `len`,
/// as for [`Slots`].
pub(super) struct Keys<K, H: KeyHead<K>, const N: usize> {
    words: Slots<H::Word, N>,
    keys: Slots<K, N>,
}

impl<K, H: KeyHead<K>, const N: usize> Keys<K, H, N> {
    pub(super) const fn new() -> Self {
        Self {
            words: Slots::new(),
            keys: Slots::new(),
        }
    }

    /// # Safety
    ///
    /// The first `len` are in use.
    #[inline]
    pub(super) unsafe fn used(&self, len: usize) -> Row<'_, K, H> {
        // SAFETY: the caller says that the first `len` slots of both arrays are in use.
        unsafe {
            Row {
                words: self.words.used(len),
                keys: self.keys.used(len),
            }
        }
    }

    /// Drops the keys.
    ///
    /// # Safety
    ///
    /// The first `len` are in use, and none is after the call.
    #[inline]
    pub(super) unsafe fn drop_used(&mut self, len: usize) {
        // SAFETY: the caller says that the first `len` are in use, and uses none of them again.
        // Words need no drop: they are `Copy`.
        unsafe { std::ptr::drop_in_place(self.keys.used_mut(len)) };
    }

    /// Does what [`Slots::insert`] does.
    ///
    /// # Panics
    ///
    /// If `at > len` or `len >= N`.
    ///
    /// # Safety
    ///
    /// The first `len` are in use.
    #[inline]
    pub(super) unsafe fn insert(&mut self, len: usize, at: usize, key: Headed<K, H>) {
        // SAFETY: the caller says that the first `len` are in use. Both arrays have the same
        // bounds, and the first call checks them before anything changes.
        unsafe {
            self.words.insert(len, at, key.word);
            self.keys.insert(len, at, key.key);
        }
    }

    /// Does what [`Slots::remove`] does.
    ///
    /// # Panics
    ///
    /// If `at >= len` or `len > N`.
    ///
    /// # Safety
    ///
    /// The first `len` are in use.
    #[inline]
    pub(super) unsafe fn remove(&mut self, len: usize, at: usize) -> Headed<K, H> {
        // SAFETY: as in `insert`.
        unsafe {
            Headed {
                word: self.words.remove(len, at),
                key: self.keys.remove(len, at),
            }
        }
    }

    /// Does what [`Slots::take_tail`] does.
    ///
    /// # Panics
    ///
    /// If `from > len`, `len > N`, or `self` has too few free slots.
    ///
    /// # Safety
    ///
    /// The first `len` of `source` are in use; after the call only the first `from` are.
    pub(super) unsafe fn take_tail(
        &mut self,
        len_here: usize,
        source: &mut Self,
        len: usize,
        from: usize,
    ) {
        // SAFETY: as in `insert`.
        unsafe {
            self.words.take_tail(len_here, &mut source.words, len, from);
            self.keys.take_tail(len_here, &mut source.keys, len, from);
        }
    }
}

/// The keys of a node that are in use, and their words, both ascending.
pub(super) struct Row<'a, K, H: KeyHead<K>> {
    pub(super) keys: &'a [K],
    words: &'a [H::Word],
}

impl<K, H: KeyHead<K>> Row<'_, K, H> {
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.keys.len()
    }

    /// A copy of the key at an index, for a separator.
    pub(super) fn copy(&self, at: usize) -> Headed<K, H>
    where
        K: Clone,
    {
        Headed {
            key: self.keys[at].clone(),
            word: self.words[at],
        }
    }
}

impl<K: Ord, H: KeyHead<K>> Row<'_, K, H> {
    /// The number of keys below a key.
    #[inline]
    pub(super) fn below(&self, key: impl Probe<K, H>) -> usize {
        self.rank(key, false)
    }

    /// The number of keys at or below a key: in an inner node, the index of the child to which the
    /// key belongs.
    #[inline]
    pub(super) fn at_or_below(&self, key: impl Probe<K, H>) -> usize {
        self.rank(key, true)
    }

    /// The number of keys below a key or a form.
    #[inline]
    pub(super) fn below_sought(&self, sought: Sought<'_, K>) -> usize {
        match sought {
            Sought::Key(key) => self.below(SearchKey::new(key)),
            Sought::Form(form) => self.below(SearchForm::new(form)),
        }
    }

    /// The number of keys at or below a key or a form.
    #[inline]
    pub(super) fn at_or_below_sought(&self, sought: Sought<'_, K>) -> usize {
        match sought {
            Sought::Key(key) => self.at_or_below(SearchKey::new(key)),
            Sought::Form(form) => self.at_or_below(SearchForm::new(form)),
        }
    }

    /// The index of a key in a leaf, or the index at which it belongs.
    #[inline]
    pub(super) fn find(&self, key: impl Probe<K, H>) -> Result<usize, usize> {
        let at = self.below(key);
        let is_there = self.keys.get(at).is_some_and(|found| {
            self.words[at] == key.word() && key.compare_with(found) == Ordering::Equal
        });
        if is_there { Ok(at) } else { Err(at) }
    }

    #[cfg(sim)]
    fn rank(&self, key: impl Probe<K, H>, or_equal: bool) -> usize {
        /// What the search of a node takes besides its lines: steps that wait for each other, and
        /// the branches that are mispredicted. Measured here for one thread, a tree of 32,768 keys.
        const SEARCH_NS: u64 = 13;
        tremula_sync::sim::work(SEARCH_NS);
        let at = self.rank_unpriced(key, or_equal);
        // A search reads a middle entry first, and ends beside the one that it finds.
        for place in [
            self.keys.len() / 2,
            at.min(self.keys.len().saturating_sub(1)),
        ] {
            if const { size_of::<H::Word>() == 0 } {
                tremula_sync::sim::touch(&raw const self.keys[place..], 1, false);
            } else {
                tremula_sync::sim::touch(&raw const self.words[place..], 1, false);
            }
        }
        at
    }

    #[cfg(not(sim))]
    #[inline(always)]
    fn rank(&self, key: impl Probe<K, H>, or_equal: bool) -> usize {
        self.rank_unpriced(key, or_equal)
    }

    #[inline]
    fn rank_unpriced(&self, key: impl Probe<K, H>, or_equal: bool) -> usize {
        if const { size_of::<H::Word>() == 0 } {
            return rank(self.keys, |other| key.compare_with(other), or_equal);
        }
        let wanted = key.word();
        let from = rank_sampled(self.words, |word| *word < wanted);
        if self.words.get(from) != Some(&wanted) {
            return from;
        }
        let same = self.words[from..].partition_point(|word| *word == wanted);
        let keys = &self.keys[from..from + same];
        from + rank(keys, |other| key.compare_with(other), or_equal)
    }

    pub(super) fn is_ascending(&self) -> bool {
        self.keys.is_sorted_by(|a, b| a < b) && self.words.is_sorted()
    }
}

/// The number of the ascending `keys` that `compare` finds less, or less or equal if `or_equal`.
#[inline]
fn rank<K>(keys: &[K], compare: impl Fn(&K) -> Ordering, or_equal: bool) -> usize {
    let below = |other: &K| match compare(other) {
        Ordering::Less => true,
        Ordering::Equal => or_equal,
        Ordering::Greater => false,
    };
    if const { !std::mem::needs_drop::<K>() && size_of::<K>() <= SAMPLED_BYTES } {
        rank_sampled(keys, below)
    } else {
        // This branches on purpose, which `partition_point` does not: a comparison of such keys
        // may miss the cache, and after a predicted branch the next comparison begins meanwhile.
        let (mut low, mut high) = (0, keys.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&keys[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Keys of at most this many bytes are searched by sampling.
const SAMPLED_BYTES: usize = 16;

/// The keys of a run. Of keys of eight bytes, a run fills one cache line.
const SAMPLE: usize = 8;

/// Counts the runs of [`SAMPLE`] keys that lie wholly below, then the keys below in the next run:
/// about 2 × 8 comparisons in a node of 64, where a binary search needs 6. But no comparison waits
/// for another, so the cache lines of the node are loaded at the same time, and no branch is
/// mispredicted.
#[inline]
fn rank_sampled<K>(keys: &[K], below: impl Fn(&K) -> bool) -> usize {
    let runs = keys.chunks_exact(SAMPLE);
    let whole: usize = runs.map(|run| usize::from(below(&run[SAMPLE - 1]))).sum();
    let rest = &keys[whole * SAMPLE..];
    let rest = &rest[..rest.len().min(SAMPLE)];
    whole * SAMPLE
        + rest
            .iter()
            .map(|other| usize::from(below(other)))
            .sum::<usize>()
}
