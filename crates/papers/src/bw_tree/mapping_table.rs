//! The mapping table: from the id of a node to the head of its chain.
//!
//! An id that a method is given is in use, or was at some time during the caller's pin: see
//! [`ids`](super::ids) for why its place is there then, though the table shrinks.

use super::ids::{Counts, Ids};
use super::reclaim::Guard;
use super::word::Word;
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::epoch;

pub(super) struct MappingTable {
    /// What waits in the epoch for ids to be free may outlive the table.
    ids: Arc<Ids>,
}

impl MappingTable {
    pub(super) fn new() -> Self {
        Self {
            ids: Arc::new(Ids::new()),
        }
    }

    #[inline]
    fn place(&self, id: usize) -> &AtomicPtr<()> {
        // SAFETY: the caller has the id, as the module says.
        unsafe { self.ids.word(id) }
    }

    /// The head of a node's chain.
    ///
    /// SeqCst, and so is every other access to heads: a scan that finds the heads of several
    /// nodes unchanged when it looks again relies on one order of all changes.
    #[inline]
    pub(super) fn load(&self, id: usize) -> Word {
        Word::of_pointer(self.place(id).load(Ordering::SeqCst))
    }

    /// The head of the chain of the node that has this id now, if there is one. The id was in use at
    /// some time; so the word may be of a node that nobody leads to yet.
    pub(super) fn peek(&self, id: usize) -> Option<Word> {
        let word = self.ids.peek(id, &epoch::pin())?;
        Some(Word::of_pointer(word)).filter(|word| !word.is_none())
    }

    /// Replaces the head, if it is still the expected one.
    #[inline]
    pub(super) fn exchange(&self, id: usize, from: Word, to: Word) -> bool {
        self.place(id)
            .compare_exchange(
                from.pointer(),
                to.pointer(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Sets the head of a node that the caller holds, or that nobody has seen.
    pub(super) fn store(&self, id: usize, word: Word) {
        self.place(id).store(word.pointer(), Ordering::SeqCst);
    }

    /// An id that nobody uses, as low as there is one.
    pub(super) fn allocate(&self) -> usize {
        self.ids.allocate(&epoch::pin())
    }

    /// Lets an id be used again once nobody can have it.
    ///
    /// # Safety
    ///
    /// No node that can be reached leads to it any more, and it is retired once.
    pub(super) unsafe fn retire(&self, id: usize, guard: &Guard<'_>) {
        let ids = Arc::clone(&self.ids);
        // SAFETY: when this runs, nobody is pinned who came to the id.
        unsafe { guard.defer_unchecked(move || free(&ids, id)) };
    }

    /// The heads of all nodes; those of a table in use may be missed.
    pub(super) fn heads<'a>(&'a self, guard: &'a epoch::Guard) -> impl Iterator<Item = Word> {
        self.ids.words(guard).map(Word::of_pointer)
    }

    pub(super) fn count(&self) -> Counts {
        self.ids.count(&epoch::pin())
    }
}

/// Frees an id, and its page with it a while later if that stays empty.
///
/// # Safety
///
/// As for [`Ids::free`].
unsafe fn free(ids: &Arc<Ids>, id: usize) {
    // SAFETY: passed on to the caller.
    if let Some(page) = unsafe { ids.free(id) } {
        let ids = Arc::clone(ids);
        // SAFETY: it may run at any time, in any thread: it owns what it uses.
        unsafe {
            epoch::pin().defer_unchecked(move || ids.give_back(page, &epoch::pin()));
        }
    }
}
