//! Keys as they are in a leaf of either form.

use crate::b_tree::text::{KeyScratch, Loose, TextEntry};
use crate::kit::{Retire, SearchKey, Spec, StoredKey};
use std::marker::PhantomData;

/// A key as it is in a leaf: words that own nothing. In a leaf of text these lead to the bytes of
/// the key.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct LeafKey<S: Spec> {
    head: u64,
    word: *mut (),
    of: PhantomData<S>,
}

/// What has to be freed of a key that is in no leaf any more.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct LooseKey<S: Spec>(LeafKey<S>);

/// A key on its way into a leaf.
pub(in crate::b_tree) enum NewKey<S: Spec> {
    /// With its head.
    Own(<S as Spec>::Key, u64),
    /// It was in a leaf before, and what has to be freed of it is given up.
    Again(LeafKey<S>),
}

impl<S: Spec> LeafKey<S> {
    #[inline]
    pub(in crate::b_tree) fn of_stored(key: StoredKey<S>) -> Self {
        Self {
            head: key.head,
            word: key.word,
            of: PhantomData,
        }
    }

    #[inline]
    pub(super) fn of_text(entry: TextEntry) -> Self {
        let (head, word) = entry.to_words();
        Self {
            head,
            word,
            of: PhantomData,
        }
    }

    /// The stored key, if leaves are not of text.
    #[inline]
    pub(super) fn stored(self) -> StoredKey<S> {
        StoredKey::of_words(self.head, self.word)
    }

    /// The entry that the key is from, if leaves are of text.
    #[inline]
    pub(super) fn text(self) -> TextEntry {
        TextEntry::of_words(self.head, self.word)
    }

    /// Calls `read` with the key.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`]; a block of text counts as a part of the key.
    #[inline]
    pub(in crate::b_tree) unsafe fn with<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe { self.with_scratch(&mut KeyScratch::new(), read) }
    }

    /// The same. A key of text is made in `scratch`, so that many take few allocations.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with), for the life of the scratch; which is used for nothing else.
    #[inline]
    pub(in crate::b_tree) unsafe fn with_scratch<R>(
        self,
        scratch: &mut KeyScratch,
        read: impl FnOnce(&S::Key) -> R,
    ) -> R {
        let Some(back) = S::read_back() else {
            // SAFETY: passed on to the caller.
            return unsafe { self.stored().with(read) };
        };
        // SAFETY: passed on to the caller; the bytes are those of a key.
        let key = unsafe {
            self.text().read_key(scratch);
            back.make(scratch.bytes())
        };
        let result = read(&key);
        back.give_back(key, scratch.bytes());
        result
    }

    /// Calls `read` with the key as a search key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub(in crate::b_tree) unsafe fn search<R>(self, read: impl FnOnce(SearchKey<'_, S>) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe {
            if S::is_text() {
                self.with(|key| read(SearchKey::new(key)))
            } else {
                self.stored().search(read)
            }
        }
    }

    /// A copy of the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub(in crate::b_tree) unsafe fn to_key(self) -> S::Key {
        // SAFETY: passed on to the caller; the bytes are those of a key.
        unsafe {
            let Some(back) = S::read_back() else {
                return self.stored().to_key();
            };
            back.make(&mut self.text().to_bytes())
        }
    }

    /// A copy of the key for an inner node.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    pub(in crate::b_tree) unsafe fn to_separator(self) -> StoredKey<S> {
        // SAFETY: passed on to the caller.
        unsafe {
            if S::is_text() {
                self.search(|key| StoredKey::copy_of(&key))
            } else {
                self.stored().duplicate()
            }
        }
    }

    /// Whether both are the same key of a leaf, not merely equal keys. Only if leaves are not of
    /// text.
    #[inline]
    pub(in crate::b_tree) fn is(self, other: Self) -> bool {
        self.stored().is(other.stored())
    }

    /// Prefetches the key. A key of text lies in an entry, which has been asked for.
    #[inline]
    pub(in crate::b_tree) fn prefetch(self) {
        if !S::is_text() {
            self.stored().prefetch();
        }
    }

    /// What has to be freed of the key when it has been removed.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub(in crate::b_tree) unsafe fn loose(self) -> LooseKey<S> {
        if S::is_text() {
            // SAFETY: passed on to the caller.
            let word = unsafe { self.text().loose() }.word();
            LooseKey(Self { word, ..self })
        } else {
            LooseKey(self)
        }
    }
}

impl<S: Spec> LooseKey<S> {
    /// The loose part of a key of text.
    #[inline]
    fn text(self) -> Loose {
        Loose::of_word(self.0.word)
    }

    /// Whether there is anything to free.
    #[inline]
    pub(in crate::b_tree) fn owns(self) -> bool {
        if S::is_text() {
            !self.0.word.is_null()
        } else {
            StoredKey::<S>::owns()
        }
    }

    /// The key itself, where leaves are not of text.
    #[inline]
    pub(super) fn stored(self) -> StoredKey<S> {
        self.0.stored()
    }

    /// Frees it.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::free`].
    #[inline]
    pub(in crate::b_tree) unsafe fn free(self) {
        // SAFETY: passed on to the caller.
        unsafe {
            if S::is_text() {
                self.text().free();
            } else {
                self.stored().free();
            }
        }
    }

    /// Frees it when no thread that is pinned now can be reading it.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::retire`].
    #[inline]
    pub(in crate::b_tree) unsafe fn retire(self, guard: &impl Retire) {
        // SAFETY: passed on to the caller.
        unsafe {
            if S::is_text() {
                self.text().retire(guard);
            } else {
                self.stored().retire(guard);
            }
        }
    }
}
