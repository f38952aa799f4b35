//! Leaves: which keys belong to each, and where its entries are. Two leaves share a line of the
//! cache, so that those of many entries stay near the processor.

use super::hot::Table;
use super::place::Place;
use super::snapshots::Moment;
use super::undo::Undo;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{self, NonNull};
use tremula_sync::VersionLock;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// A leaf. Its lock guards the rest of it and its block.
///
/// The lock is obsolete while the leaf is not in use. A leaf stays where it is until the map is
/// dropped, and may come to use again with other keys.
#[repr(C)]
#[cfg_attr(not(any(loom, shuttle)), repr(align(32)))]
pub(super) struct Leaf {
    pub(super) lock: VersionLock,
    /// The lowest key that belongs to the leaf.
    low: AtomicU64,
    /// The distance from there to the greatest key that belongs to it.
    span: AtomicU64,
    place: AtomicU64,
}

impl Leaf {
    /// The lowest key that belongs to the leaf. As with all loads, an optimistic reader validates.
    #[inline(always)]
    pub(super) fn low(&self) -> u64 {
        self.low.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn span(&self) -> u64 {
        self.span.load(Ordering::Relaxed)
    }

    /// The greatest key that belongs to the leaf.
    pub(super) fn last(&self) -> u64 {
        self.low().wrapping_add(self.span())
    }

    #[inline(always)]
    pub(super) fn place(&self) -> Place {
        Place(self.place.load(Ordering::Relaxed))
    }

    /// Whether a key belongs to the leaf.
    #[inline(always)]
    pub(super) fn covers(&self, key: u64) -> bool {
        key.wrapping_sub(self.low()) <= self.span()
    }

    pub(super) fn set_range(&self, low: u64, last: u64) {
        self.low.store(low, Ordering::Relaxed);
        self.span.store(last - low, Ordering::Relaxed);
    }

    pub(super) fn set_place(&self, place: Place) {
        self.place.store(place.0, Ordering::Relaxed);
    }

    /// The table of the leaf, if the leaf is hot, or was so a moment ago: the table knows which
    /// keys belong to it.
    pub(super) fn table(&self) -> Option<&Table> {
        // Acquire: pairs with the release in `set_table`, for the table.
        let place = Place(self.place.load(Ordering::Acquire));
        // SAFETY: the place was made from a reference to a table; tables live as long as the map,
        // which has the leaf.
        place.table().map(|table| unsafe { &*table })
    }

    /// Makes the leaf hot. The caller has locked it, and leaves it so.
    pub(super) fn set_table(&self, table: &Table) {
        // Release: pairs with the acquire in `table`.
        self.place
            .store(Place::of_table(table).0, Ordering::Release);
    }
}

#[cfg(not(any(loom, shuttle)))]
const _: () = assert!(size_of::<Leaf>() == 32);

/// Leaves in the first chunk.
const FIRST_CHUNK: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
/// Chunks of leaves: each is twice as large as the one before it.
const CHUNKS: usize = 23;

/// All leaves, by number. Those in use and those that have been are never moved or freed.
pub(super) struct Leaves {
    leaves: Chunks<Leaf>,
    /// Apart from the leaves, since nobody looks at it while no snapshot is under way.
    kept: Chunks<Kept>,
    /// How many there are.
    count: AtomicU32,
}

/// What is kept of a leaf for snapshots. The leaf's lock guards it.
struct Kept {
    /// Up to which [`Moment`] the leaf is preserved.
    preserved: AtomicU64,
    /// What has changed in it since a later moment; null if nothing has.
    undo: AtomicPtr<Undo>,
}

/// An array that grows and never moves.
struct Chunks<T> {
    /// Where the element with the number `-FIRST_CHUNK` would be if the chunk began there.
    chunks: [AtomicPtr<T>; CHUNKS],
}

/// The most leaves that a map may have.
pub(super) const MOST_LEAVES: usize = (FIRST_CHUNK << CHUNKS) - FIRST_CHUNK;

fn chunk_of(id: u32) -> (usize, usize) {
    let number = id as usize + FIRST_CHUNK;
    let chunk = (number.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, number)
}

impl Leaves {
    /// What a leaf takes beside its block.
    pub(super) const BYTES_EACH: usize = size_of::<Leaf>() + size_of::<Kept>();

    pub(super) fn new() -> Self {
        Self {
            leaves: Chunks::new(),
            kept: Chunks::new(),
            count: AtomicU32::new(0),
        }
    }

    /// The leaf of this number, which has been added.
    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> &Leaf {
        // SAFETY: the number came from a route or the separators, so the leaf has been added.
        unsafe { self.leaves.get(id) }
    }

    #[inline]
    fn kept(&self, id: u32) -> &Kept {
        // SAFETY: as in `get`.
        unsafe { self.kept.get(id) }
    }

    /// Up to which moment a leaf is preserved that this thread has locked.
    #[inline]
    pub(super) fn preserved(&self, id: u32) -> Moment {
        self.kept(id).preserved.load(Ordering::Relaxed)
    }

    pub(super) fn set_preserved(&self, id: u32, moment: Moment) {
        self.kept(id).preserved.store(moment, Ordering::Relaxed);
    }

    /// What has changed in a leaf.
    ///
    /// # Safety
    ///
    /// This thread has locked the leaf. While it uses what is returned, it keeps the lock, and does
    /// not call this or [`set_undo`](Self::set_undo) for the leaf.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the leaf's lock sees to it")]
    pub(super) unsafe fn undo(&self, id: u32) -> Option<&mut Undo> {
        let undo = self.kept(id).undo.load(Ordering::Relaxed);
        // SAFETY: it comes from `set_undo`, and only this thread, which has the lock, uses it.
        unsafe { undo.as_mut() }
    }

    /// Keeps or forgets what has changed in a leaf.
    ///
    /// # Safety
    ///
    /// This thread has locked the leaf, or is the only one that has the leaves.
    pub(super) unsafe fn set_undo(&self, id: u32, undo: Option<Box<Undo>>) {
        let undo = undo.map_or(ptr::null_mut(), Box::into_raw);
        // The lock orders these. Not a swap, which would cost a fence.
        let before = self.kept(id).undo.load(Ordering::Relaxed);
        self.kept(id).undo.store(undo, Ordering::Relaxed);
        if !before.is_null() {
            // SAFETY: it was made here, and no other thread can have it, as the caller promises.
            drop(unsafe { Box::from_raw(before) });
        }
    }

    /// Makes room for the leaf of this number: the next that has not been in use. Its lock is
    /// obsolete. Only one thread at a time may call this.
    pub(super) fn add(&self, id: u32) {
        self.kept.add(id, || Kept {
            preserved: AtomicU64::new(0),
            undo: AtomicPtr::new(ptr::null_mut()),
        });
        self.leaves.add(id, || Leaf {
            lock: VersionLock::new_obsolete(),
            low: AtomicU64::new(0),
            span: AtomicU64::new(0),
            place: AtomicU64::new(Place::NONE.0),
        });
        self.count.store(id + 1, Ordering::Relaxed);
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        for id in 0..self.count.load(Ordering::Relaxed) {
            // SAFETY: no other thread has what is dropped.
            unsafe { self.set_undo(id, None) };
        }
    }
}

impl<T> Chunks<T> {
    fn new() -> Self {
        Self {
            chunks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    fn layout(chunk: usize) -> Layout {
        Layout::array::<T>(FIRST_CHUNK << chunk)
            .unwrap_or_else(|_| unreachable!("no more than MOST_LEAVES"))
    }

    /// The element with this number.
    ///
    /// # Safety
    ///
    /// It has been added.
    #[inline(always)]
    unsafe fn get(&self, id: u32) -> &T {
        let (chunk, number) = chunk_of(id);
        // Acquire: pairs with the release in `add`, for the elements that were made there.
        // SAFETY: the element has been added, so its chunk is one of them, and lives as long as
        // `self`.
        unsafe {
            let base = self.chunks.get_unchecked(chunk).load(Ordering::Acquire);
            &*base.wrapping_add(number)
        }
    }

    /// Makes room for the element with this number, the next. Only one thread at a time may call
    /// this.
    fn add(&self, id: u32, new: impl Fn() -> T) {
        let (chunk, number) = chunk_of(id);
        if number != FIRST_CHUNK << chunk {
            return;
        }
        let layout = Self::layout(chunk);
        // SAFETY: the size is not 0.
        let Some(base) = NonNull::new(unsafe { alloc(layout) }.cast::<T>()) else {
            handle_alloc_error(layout);
        };
        for at in 0..FIRST_CHUNK << chunk {
            // SAFETY: within the chunk, which nobody else has yet.
            unsafe { base.as_ptr().add(at).write(new()) };
        }
        let before_all = base.as_ptr().wrapping_sub(FIRST_CHUNK << chunk);
        // Release: pairs with the acquire in `get`.
        self.chunks[chunk].store(before_all, Ordering::Release);
    }
}

impl<T> Drop for Chunks<T> {
    fn drop(&mut self) {
        const { assert!(!std::mem::needs_drop::<T>()) };
        for (chunk, base) in self.chunks.iter().enumerate() {
            let before_all = base.load(Ordering::Relaxed);
            if !before_all.is_null() {
                let base = before_all.wrapping_add(FIRST_CHUNK << chunk);
                // SAFETY: it came from `alloc` with this layout, and nobody has it any more.
                unsafe { dealloc(base.cast(), Self::layout(chunk)) };
            }
        }
    }
}
