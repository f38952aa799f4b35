//! Steps from key to key: each thread remembers the leaf of its last step, and begins there.
//!
//! A step from a key to its neighbour descends to the leaf of the key, and the next one descends to
//! the same leaf again. So a thread keeps a *finger*: the leaf, its version, and the index of the
//! key. If the leaf still has this version, it has the same entries, and no descent is needed.
//!
//! ```text
//!   thread: finger ── era 7, version 40, index 3
//!                 │
//!                 ▼
//!               leaf   version 40: [ .. | .. | .. | key | next | .. ]
//! ```
//!
//! Between two steps the thread is not pinned, and the leaf may be freed. The *era* of the tree
//! shows it: it changes before a leaf is retired, and no two trees ever have the same. A thread
//! that is pinned and then finds the era of its finger uses a leaf that was linked at that era:
//!
//! - if the leaf has been retired before the pin, the new era was written before that, and the
//!   thread sees it;
//! - if it is retired later, it is not freed before the thread unpins.

use super::node::{Entry, Header, LeafRef};
use super::tree::{Position, Tree};
use crate::contract::{Direction, KeyRange};
use crate::key::KeyHead;
use crate::kit::{SearchKey, SearchRange, Spec};
use std::cell::Cell;
use std::ptr::NonNull;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, system};

/// The last era of any tree. It orders nothing, and no checker need see it.
static ERAS: system::atomic::AtomicU64 = system::atomic::AtomicU64::new(0);

/// How often a step is tried without the scan that waits for writers.
const TRIES: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

/// What shows whether a leaf that was linked may have been freed.
pub(super) struct Era(AtomicU64);

impl Era {
    /// The first era of a tree.
    pub(super) fn begin() -> Self {
        Self(AtomicU64::new(Self::next()))
    }

    /// Ends the present era. The caller retires a leaf after this.
    pub(super) fn end(&self) {
        // Relaxed: it comes before the retirement in the same thread, and that, if the leaf may be
        // freed during a pin, before the pin.
        self.0.store(Self::next(), Ordering::Relaxed);
    }

    fn next() -> u64 {
        ERAS.fetch_add(1, system::atomic::Ordering::Relaxed) + 1
    }

    #[inline]
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The place of a key, as the last step of this thread has found it.
#[derive(Clone, Copy)]
struct Finger {
    era: u64,
    leaf: NonNull<Header>,
    version: Version,
    index: usize,
}

#[cfg(not(any(loom, shuttle)))]
tremula_sync::thread_local! {
    static FINGER: Cell<Option<Finger>> = const { Cell::new(None) };
}

// The checkers' own thread-locals have no constant form.
#[cfg(any(loom, shuttle))]
tremula_sync::thread_local! {
    static FINGER: Cell<Option<Finger>> = Cell::new(None);
}

impl<S: Spec> LeafRef<'_, S> {
    /// The index of a key, if it is this one; for an optimistic reader.
    #[inline]
    fn find_near(
        self,
        index: usize,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Option<usize>, Restart> {
        if S::is_text() {
            return Ok(self.find(probe, sound)?.ok());
        }
        let head = self.head_of_probe(probe);
        if index >= self.count() || self.heads().load(index) != head {
            return Ok(None);
        }
        if S::Head::is_only_of_one(head) {
            return Ok(Some(index));
        }
        let key = self.node().key(index);
        sound()?;
        // SAFETY: `sound` says that no thread changed the node while the key was read. So it is the
        // key of an entry that was linked after this thread was pinned.
        let same = unsafe { key.with(|key| probe.key.compare(key).is_eq()) };
        Ok(same.then_some(index))
    }
}

impl<S: Spec> Tree<S> {
    /// Calls `read` with the entry strictly behind a key in a direction, if there is one.
    pub(super) fn step_with<R>(
        &self,
        key: &S::Key,
        direction: Direction,
        read: impl FnOnce(&S::Key, &S::Value) -> R,
    ) -> Option<R> {
        let guard = self.collector.pin();
        let era = self.era.now();
        let probe = SearchKey::new(key);
        let by_finger = self.step_from_finger(&probe, direction, era, &guard);
        let entry = match by_finger {
            Some(entry) => entry,
            None => self.step_down(key, direction, era, &guard)?,
        };
        // SAFETY: the entry was read and validated while the thread was pinned.
        Some(unsafe {
            entry
                .key
                .with(|key| entry.value.with(|value| read(key, value)))
        })
    }

    /// The entry behind a key, if the thread's finger is at the key, and the leaf has the entry.
    #[inline]
    fn step_from_finger(
        &self,
        probe: &SearchKey<'_, S>,
        direction: Direction,
        era: u64,
        guard: &Guard<'_>,
    ) -> Option<Entry<S>> {
        let finger = FINGER.with(Cell::get).filter(|finger| finger.era == era)?;
        let _: &Guard<'_> = guard;
        // SAFETY: no two trees have the same era, so it is a leaf of this tree. It was linked at
        // this era, which the thread has read after it was pinned: as the module says.
        let leaf = unsafe { LeafRef::<S>::from_raw(finger.leaf) };
        let still = leaf.still(finger.version);
        still().ok()?;
        let found = leaf.find_near(finger.index, probe, still).ok()??;
        let index = match direction {
            Direction::Ascending => Some(found + 1).filter(|next| *next < leaf.count())?,
            Direction::Descending => found.checked_sub(1)?,
        };
        let entry = leaf.entry(index);
        still().ok()?;
        FINGER.with(|kept| kept.set(Some(Finger { index, ..finger })));
        Some(entry)
    }

    /// The entry behind a key, by a descent. Leaves the thread's finger at it.
    fn step_down(
        &self,
        key: &S::Key,
        direction: Direction,
        era: u64,
        guard: &Guard<'_>,
    ) -> Option<Entry<S>> {
        let bounds = SearchRange::new(KeyRange::all().behind(key, direction));
        for _ in 0..TRIES {
            match self.try_to_step_down(&bounds, direction, era, guard) {
                Ok(Some(entry)) => return Some(entry),
                // It is in another leaf, if there is one.
                Ok(None) => break,
                Err(Restart) => self.restarted(),
            }
        }
        self.first_of(&bounds, direction, guard)
    }

    fn try_to_step_down(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        era: u64,
        guard: &Guard<'_>,
    ) -> Result<Option<Entry<S>>, Restart> {
        let position: Position<'_, S> = bounds.start(direction);
        let place = self.descend(&position, guard)?;
        let (leaf, version) = (place.node, place.version);
        let still = leaf.still(version);
        let indices = bounds.indices_in(leaf, still)?;
        let index = match direction {
            Direction::Ascending => Some(indices.start).filter(|start| *start < indices.end),
            Direction::Descending => indices.end.checked_sub(1),
        };
        let entry = index.map(|index| leaf.entry(index));
        still()?;
        if let Some(index) = index {
            let leaf = leaf.node().as_non_null();
            let finger = Finger {
                era,
                leaf,
                version,
                index,
            };
            FINGER.with(|kept| kept.set(Some(finger)));
        }
        Ok(entry)
    }
}
