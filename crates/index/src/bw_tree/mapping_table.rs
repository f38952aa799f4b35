//! The mapping table: from the id of a node to the head of its chain.
//!
//! Ids are numbered from 0. Those of a *segment* lie beside one another, and each segment has
//! twice as many as the one before, so that the table grows without moving anything: a segment is
//! made when the first of its ids is handed out.

use super::word::Word;
use std::ptr::{self, NonNull};
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Ids of the first segment.
const FIRST: usize = if cfg!(any(loom, shuttle)) { 4 } else { 256 };

/// Segments: more ids than there is memory for.
const SEGMENTS: usize = if cfg!(loom) { 3 } else { 40 };

type Place = AtomicPtr<()>;

pub(super) struct MappingTable {
    /// Null where no id has been handed out; else a leaked boxed slice.
    segments: [AtomicPtr<Place>; SEGMENTS],
    /// Ids below it have been handed out at some time.
    next: AtomicUsize,
    free: FreeIds,
}

/// Ids that have been handed out, and are free again. It may outlive the table: in what has gone
/// to the epoch.
pub(super) struct FreeIds(NonNull<Shared>);

struct Shared {
    ids: Mutex<Vec<usize>>,
    /// How many these are: who splits a node when there are none takes no lock.
    count: AtomicUsize,
    /// How many handles there are.
    handles: AtomicUsize,
}

// SAFETY: a handle leads to a lock and atomics, and counts itself among those that do.
unsafe impl Send for FreeIds {}
// SAFETY: as above.
unsafe impl Sync for FreeIds {}

impl FreeIds {
    fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new(Shared {
            ids: Mutex::new(Vec::new()),
            count: AtomicUsize::new(0),
            handles: AtomicUsize::new(1),
        }))))
    }

    fn shared(&self) -> &Shared {
        // SAFETY: it lives as long as there are handles.
        unsafe { self.0.as_ref() }
    }

    fn pop(&self) -> Option<usize> {
        let shared = self.shared();
        // Relaxed, here and below: a hint; the lock orders the rest.
        if shared.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut ids = shared.ids.lock();
        let id = ids.pop();
        shared.count.store(ids.len(), Ordering::Relaxed);
        id
    }

    pub(super) fn push(&self, id: usize) {
        let shared = self.shared();
        let mut ids = shared.ids.lock();
        ids.push(id);
        shared.count.store(ids.len(), Ordering::Relaxed);
    }

    fn len(&self) -> usize {
        self.shared().count.load(Ordering::Relaxed)
    }
}

impl Clone for FreeIds {
    fn clone(&self) -> Self {
        // Relaxed: this handle keeps it alive meanwhile.
        self.shared().handles.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for FreeIds {
    fn drop(&mut self) {
        // AcqRel: whoever drops the last handle sees what was done by the others.
        if self.shared().handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it came from a box, and nobody has a handle any more.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// The segment of an id, and its place in there.
#[inline]
fn locate(id: usize) -> (usize, usize) {
    let shifted = id + FIRST;
    let segment = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (segment, shifted - (FIRST << segment))
}

impl MappingTable {
    pub(super) fn new() -> Self {
        Self {
            segments: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            next: AtomicUsize::new(0),
            free: FreeIds::new(),
        }
    }

    #[inline]
    fn place(&self, id: usize) -> &Place {
        let (segment, at) = locate(id);
        // Acquire: pairs with the exchange in `back`, which publishes the segment.
        let segment = self.segments[segment].load(Ordering::Acquire);
        // SAFETY: ids come from `allocate`, which made the segment, and it lives as long as the
        // table.
        unsafe { &*segment.add(at) }
    }

    /// The head of a node's chain.
    ///
    /// SeqCst, and so is every other access to heads: a scan that finds the heads of several
    /// nodes unchanged when it looks again relies on one order of all changes.
    #[inline]
    pub(super) fn load(&self, id: usize) -> Word {
        Word::of_pointer(self.place(id).load(Ordering::SeqCst))
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

    /// An id that nobody uses.
    pub(super) fn allocate(&self) -> usize {
        if let Some(id) = self.free.pop() {
            return id;
        }
        // Relaxed: each id is handed out once, whatever the order.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.back(locate(id).0);
        id
    }

    /// Makes a segment, unless it is there.
    fn back(&self, segment: usize) {
        let link = &self.segments[segment];
        if !link.load(Ordering::Acquire).is_null() {
            return;
        }
        let places = Self::segment(FIRST << segment);
        // Release: pairs with `place`. Acquire: who comes second uses the other's.
        let made =
            link.compare_exchange(ptr::null_mut(), places, Ordering::AcqRel, Ordering::Acquire);
        if made.is_err() {
            // SAFETY: it came from `segment`, and nobody has seen it.
            unsafe { Self::free_segment(places, FIRST << segment) };
        }
    }

    fn segment(length: usize) -> *mut Place {
        let places: Box<[Place]> = (0..length)
            .map(|_| AtomicPtr::new(ptr::null_mut()))
            .collect();
        Box::into_raw(places).cast()
    }

    /// # Safety
    ///
    /// It came from [`segment`](Self::segment) with this length, and nobody has it.
    unsafe fn free_segment(places: *mut Place, length: usize) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(places, length)) });
    }

    /// Gives an id back that nobody but the caller has ever seen.
    pub(super) fn take_back(&self, id: usize) {
        self.store(id, Word::NONE);
        self.free.push(id);
    }

    /// Where ids go that are free again.
    pub(super) fn free_ids(&self) -> &FreeIds {
        &self.free
    }

    /// The heads of all nodes, by id; `None` of ids that have none.
    pub(super) fn heads(&self) -> impl Iterator<Item = (usize, Word)> {
        // Relaxed: exact when the table is quiescent. A segment may be on its way.
        let ids = 0..self.next.load(Ordering::Relaxed);
        ids.filter(|id| {
            let segment = &self.segments[locate(*id).0];
            !segment.load(Ordering::Acquire).is_null()
        })
        .map(|id| (id, self.load(id)))
    }

    /// Ids handed out at some time, those of them that are free, and those with memory.
    pub(super) fn ids(&self) -> (usize, usize, usize) {
        let backed = |segment: usize| {
            let is_there = !self.segments[segment].load(Ordering::Acquire).is_null();
            if is_there { FIRST << segment } else { 0 }
        };
        (
            self.next.load(Ordering::Relaxed),
            self.free.len(),
            (0..SEGMENTS).map(backed).sum(),
        )
    }
}

impl Drop for MappingTable {
    fn drop(&mut self) {
        for (segment, link) in self.segments.iter().enumerate() {
            let places = link.load(Ordering::Relaxed);
            if !places.is_null() {
                // SAFETY: it came from `back`, and nobody else has the table.
                unsafe { Self::free_segment(places, FIRST << segment) };
            }
        }
    }
}
