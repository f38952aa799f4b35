//! Which leaves are fought over.
//!
//! A leaf's *statistic* grows by [`CONTENDED`] each time a writer has waited for its lock, and
//! falls by 1 with each change. Above [`SPLIT_ABOVE`] the leaf is split between the keys that were
//! fought over, or made hot if all of them belonged at one end; at [`QUIET`] it may be merged
//! again. Only a writer that has waited writes anything: how often a leaf has changed is its
//! version, so the statistic is computed when it is asked for. Leaves that nobody has waited for
//! have no entry here, and are quiet.
//!
//! Source: Winblad, Sagonas, "Contention adapting search trees", ISPDC 2015, whose constants these
//! are.

use super::hot::End;
use std::ptr;
use tremula_sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// What one wait adds.
const CONTENDED: i64 = 250;
/// A leaf is split when its statistic goes above this.
const SPLIT_ABOVE: i64 = 1000;
/// The least that a statistic becomes. A leaf there is quiet.
const QUIET: i64 = -1000;
/// Leaves of which the statistics are kept: those that were fought over last.
const KEPT: usize = if cfg!(any(loom, shuttle)) { 2 } else { 256 };
/// Keys that are remembered for each.
const SAMPLES: usize = 4;

/// The statistic of one leaf. Written by the holder of its lock. Two leaves may be in turn at one
/// place: then their statistics begin anew, and no more is lost. All accesses are relaxed: they
/// order nothing.
#[repr(align(64))]
struct Grain {
    /// The leaf's number and one.
    leaf: AtomicU32,
    waits: AtomicU32,
    statistic: AtomicI64,
    /// How often the leaf had changed when the statistic had this value.
    changes: AtomicU64,
    /// How many waits in a row were for new keys at the high end; below 0, at the low end.
    ends: AtomicI64,
    /// The keys that were waited for last.
    keys: [AtomicU64; SAMPLES],
}

/// What is to be done with a leaf that is fought over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fought {
    /// Threads append to it at this end.
    At(End),
    /// It is to be split between these keys.
    Between(u64, u64),
}

impl Grain {
    fn new() -> Self {
        Self {
            leaf: AtomicU32::new(0),
            waits: AtomicU32::new(0),
            statistic: AtomicI64::new(0),
            changes: AtomicU64::new(0),
            ends: AtomicI64::new(0),
            keys: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn is_of(&self, leaf: u32) -> bool {
        self.leaf.load(Ordering::Relaxed) == leaf + 1
    }

    /// The statistic of a leaf that has changed this often.
    fn statistic(&self, changes: u64) -> i64 {
        let since = changes.saturating_sub(self.changes.load(Ordering::Relaxed));
        let statistic = self.statistic.load(Ordering::Relaxed);
        statistic
            .saturating_sub_unsigned(since)
            .clamp(QUIET, 2 * SPLIT_ABOVE)
    }
}

/// The leaves that were fought over last.
pub(super) struct Grains {
    /// Null until a writer has waited, then a boxed array.
    kept: AtomicPtr<[Grain; KEPT]>,
}

impl Grains {
    pub(super) fn new() -> Self {
        Self {
            kept: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The place of a leaf, which others may have as well.
    fn get(&self, leaf: u32) -> Option<&Grain> {
        // Acquire: pairs with the release in `make`, for the array.
        // SAFETY: null, or an array that lives as long as `self`.
        let kept = unsafe { self.kept.load(Ordering::Acquire).as_ref() };
        kept.map(|kept| &kept[leaf as usize % KEPT])
    }

    #[cold]
    fn make(&self) {
        let kept = Box::into_raw(Box::new(std::array::from_fn(|_| Grain::new())));
        let made =
            self.kept
                .compare_exchange(ptr::null_mut(), kept, Ordering::Release, Ordering::Relaxed);
        if made.is_err() {
            // SAFETY: it came from a box, and no other thread has seen it.
            drop(unsafe { Box::from_raw(kept) });
        }
    }

    /// Notes that a writer of `key`, which is a new one near this end of a leaf, has waited for the
    /// leaf, which has changed `changes` times, and has its lock now. Returns whether the leaf
    /// should become hot, or two of the keys that were waited for between which it should be split:
    /// it should if they differ.
    pub(super) fn waited(
        &self,
        leaf: u32,
        changes: u64,
        key: u64,
        end: Option<End>,
    ) -> Option<Fought> {
        let grain = self.get(leaf).or_else(|| {
            self.make();
            self.get(leaf)
        })?;
        if !grain.is_of(leaf) {
            grain.leaf.store(leaf + 1, Ordering::Relaxed);
            grain.waits.store(0, Ordering::Relaxed);
            grain.changes.store(changes, Ordering::Relaxed);
            grain.statistic.store(0, Ordering::Relaxed);
            grain.ends.store(0, Ordering::Relaxed);
        }
        let ends = grain.ends.load(Ordering::Relaxed);
        let ends = match end {
            None => 0,
            Some(End::High) => ends.max(0) + 1,
            Some(End::Low) => ends.min(0) - 1,
        };
        grain.ends.store(ends, Ordering::Relaxed);
        let waits = grain.waits.load(Ordering::Relaxed);
        grain.keys[waits as usize % SAMPLES].store(key, Ordering::Relaxed);
        grain
            .waits
            .store(waits.saturating_add(1), Ordering::Relaxed);
        let statistic = grain.statistic(changes) + CONTENDED;
        grain.changes.store(changes, Ordering::Relaxed);
        if statistic <= SPLIT_ABOVE {
            grain.statistic.store(statistic, Ordering::Relaxed);
            return None;
        }
        grain.statistic.store(0, Ordering::Relaxed);
        let mut keys: [u64; SAMPLES] =
            std::array::from_fn(|at| grain.keys[at].load(Ordering::Relaxed));
        keys.sort_unstable();
        // In the middle, if keys differ there; else beside the key that is hot.
        let (below, above) = [1, 2, 0]
            .map(|at| (keys[at], keys[at + 1]))
            .into_iter()
            .find(|(below, above)| below < above)?;
        Some(if ends >= SAMPLES as i64 {
            Fought::At(End::High)
        } else if ends <= -(SAMPLES as i64) {
            Fought::At(End::Low)
        } else {
            Fought::Between(below, above)
        })
    }

    /// How often a writer has waited for a leaf, as far as that is known.
    pub(super) fn waits(&self, leaf: u32) -> u32 {
        let grain = self.get(leaf).filter(|grain| grain.is_of(leaf));
        grain.map_or(0, |grain| grain.waits.load(Ordering::Relaxed))
    }

    /// Whether a leaf that has changed `changes` times is not fought over.
    pub(super) fn is_quiet(&self, leaf: u32, changes: u64) -> bool {
        let grain = self.get(leaf);
        grain.is_none_or(|grain| !grain.is_of(leaf) || grain.statistic(changes) <= QUIET)
    }
}

impl Drop for Grains {
    fn drop(&mut self) {
        let kept = self.kept.load(Ordering::Relaxed);
        if !kept.is_null() {
            // SAFETY: it came from a box in `make`, and nobody else has it any more.
            drop(unsafe { Box::from_raw(kept) });
        }
    }
}
