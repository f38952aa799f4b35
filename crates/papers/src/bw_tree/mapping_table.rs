//! The mapping table: from the id of a node to the head of its chain.
//!
//! An id that is passed to a method is in use, or was at some time during the caller's pin: see
//! [`ids`](super::ids) for why its word exists then, though the table shrinks.

use super::ids::{Counts, Ids};
use super::reclaim::Guard;
use super::word::Word;
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::epoch;

pub(super) struct MappingTable {
    /// Shared, because work in the epoch that frees ids may outlive the table.
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
    /// SeqCst, like every access to heads: a scan that reads the heads of several nodes again and
    /// finds them unchanged relies on one order of all changes.
    #[inline]
    pub(super) fn load(&self, id: usize) -> Word {
        Word::of_pointer(self.place(id).load(Ordering::SeqCst))
    }

    /// The head of the chain of the node that has this id now, if any. The id was in use at some
    /// time, so the word may belong to a node that no other node leads to yet.
    pub(super) fn peek(&self, id: usize) -> Option<Word> {
        let word = self.ids.peek(id, &epoch::pin())?;
        Some(Word::of_pointer(word)).filter(|word| !word.is_none())
    }

    /// Replaces the head, if it is still `from`.
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

    /// Sets the head of a node that the caller holds, or that no other thread has seen.
    pub(super) fn store(&self, id: usize, word: Word) {
        self.place(id).store(word.pointer(), Ordering::SeqCst);
    }

    /// The lowest id that is not in use.
    pub(super) fn allocate(&self) -> usize {
        self.ids.allocate(&epoch::pin())
    }

    /// Lets an id be used again once no thread can have it.
    ///
    /// # Safety
    ///
    /// No reachable node leads to the id any more, and it is retired once.
    pub(super) unsafe fn retire(&self, id: usize, guard: &Guard<'_>) {
        let ids = Arc::clone(&self.ids);
        // SAFETY: when this runs, no thread is pinned that came to the id.
        unsafe { guard.defer_unchecked(move || free(&ids, id)) };
    }

    /// The heads of all nodes; may miss some while other threads use the table.
    pub(super) fn heads<'a>(&'a self, guard: &'a epoch::Guard) -> impl Iterator<Item = Word> {
        self.ids.words(guard).map(Word::of_pointer)
    }

    pub(super) fn count(&self) -> Counts {
        self.ids.count(&epoch::pin())
    }
}

/// Frees an id, and a while later its page, if that stays empty.
///
/// # Safety
///
/// As for [`Ids::free`].
unsafe fn free(ids: &Arc<Ids>, id: usize) {
    // SAFETY: passed on to the caller.
    if let Some(page) = unsafe { ids.free(id) } {
        let ids = Arc::clone(ids);
        // SAFETY: it may run at any time, in any thread, because it owns what it uses.
        unsafe {
            epoch::pin().defer_unchecked(move || ids.give_back(page, &epoch::pin()));
        }
    }
}
