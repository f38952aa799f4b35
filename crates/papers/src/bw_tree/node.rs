//! Deltas, chains of them, and the views of chains that readers have.

use super::Position;
use super::base::{Base, BaseRef, Fences, LINE};
use super::invariants::check_written;
use super::reclaim::Guard;
use super::spread::SubChain;
use super::steps::MergeDelta;
use super::word::{FARTHEST, Kind, Switch, Word};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use tremula_index::kit::{Packed, Spec, StoredKey, prefetch};
use tremula_sync::atomic::Ordering;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
    /// The node ends here, at a key of the base node; the value is the id of the new right
    /// neighbour.
    Split,
}

/// One change of a node. Immutable once other threads see it. It is a cache line long.
#[repr(C, align(64))]
pub(super) struct Delta<S: Spec> {
    pub(super) change: Change,
    /// Allocated by itself, not in the area of the base node.
    pub(super) on_heap: bool,
    /// Whether the base node has the same key, at `offset`.
    pub(super) overwrites: bool,
    /// Whether this delta, or one below it, owns memory that has to be freed with the chain.
    pub(super) owns: bool,
    /// Deltas from here down to the base node.
    pub(super) depth: u32,
    /// Keys of the base node that lie below this one.
    pub(super) offset: u32,
    /// Entries of the node when this is its newest delta: see [`View::count`].
    pub(super) count: u32,
    pub(super) key: StoredKey<S>,
    /// The value; null if this deletes. In an inner node it is the id of the child, also if this
    /// deletes.
    pub(super) value: *mut (),
    /// In an inner node, the id of the child behind which a separator is inserted.
    pub(super) left: usize,
    /// The head of the chain before this delta.
    pub(super) next: Word,
    pub(super) base: NonNull<Base<S>>,
    pub(super) of: PhantomData<S::Value>,
}

impl<S: Spec> Delta<S> {
    /// The delta below; `None` if that is the base node.
    #[inline]
    pub(super) fn next(&self) -> Option<&Self> {
        // SAFETY: a chain is freed as a whole.
        (self.next.kind() == Kind::Delta).then(|| unsafe { &*self.next.address::<Self>() })
    }

    /// Whether this delta itself owns memory that has to be freed.
    fn owns_something(&self) -> bool {
        self.on_heap || self.change == Change::Delete && !S::HEAD_IS_KEY
    }

    /// Identifies the *cell* of this delta: an entry of the base node, or one that a delta
    /// inserted. All deltas on one cell return the same. Reads no key.
    #[inline]
    pub(super) fn cell(&self) -> (u64, u64, usize) {
        let place = u64::from(self.offset) << 1 | u64::from(self.overwrites);
        (place, self.key.head, self.key.word.addr())
    }

    /// Whether another delta on the same base node lies in front of this split delta. Reads no key:
    /// those behind it belong to another node, and may have been freed.
    #[inline]
    pub(super) fn is_in_front(&self, other: &Self) -> bool {
        (other.offset, other.overwrites) < (self.offset, true)
    }
}

/// An entry of a node: words that own nothing. In an inner node the value is the id of the child.
#[derive(Clone, Copy)]
pub(super) struct Entry<S: Spec> {
    pub(super) key: StoredKey<S>,
    pub(super) value: *mut (),
}

impl<S: Spec> Entry<S> {
    pub(super) fn child(&self) -> usize {
        self.value.addr()
    }

    /// Copies of the key and the value of a leaf's entry.
    ///
    /// # Safety
    ///
    /// Neither has been freed: the caller has been pinned since before they were unlinked.
    pub(super) unsafe fn copy(&self) -> (S::Key, S::Value) {
        // SAFETY: passed on to the caller.
        unsafe {
            let key = self.key.with(S::Key::clone);
            (
                key,
                Packed::<S::Value>::of_word(self.value).with(S::Value::clone),
            )
        }
    }
}

/// A place for a delta that no other thread sees yet.
pub(super) struct Claim<S: Spec> {
    at: NonNull<Delta<S>>,
    /// Its distance from the header of the base node, in deltas; 0 if its word does not say it.
    distance: usize,
    on_heap: bool,
    /// The base node whose chain the delta may be on.
    pub(super) base: NonNull<Base<S>>,
}

impl<S: Spec> Claim<S> {
    /// Claims a place in the area of a base node, if one is left; on the heap, if it has no area.
    #[inline]
    pub(super) fn new(base: BaseRef<'_, S>) -> Option<Self> {
        if base.has_no_area() {
            return Some(Self::on_heap(base));
        }
        let (at, distance) = base.claim()?;
        Some(Self {
            at,
            distance,
            on_heap: false,
            base: base.as_ptr(),
        })
    }

    /// As [`new`](Self::new), for a sub-chain of a spread leaf.
    pub(super) fn in_sub_chain(
        base: BaseRef<'_, S>,
        sub_chain: &SubChain,
        number: usize,
    ) -> Option<Self> {
        if base.has_no_area() {
            return Some(Self::on_heap(base));
        }
        Some(Self {
            at: base.claim_in(sub_chain, number)?,
            distance: 0,
            on_heap: false,
            base: base.as_ptr(),
        })
    }

    /// A place on the heap.
    pub(super) fn on_heap(base: BaseRef<'_, S>) -> Self {
        let layout = Layout::new::<Delta<S>>();
        // SAFETY: a delta has a size.
        let Some(at) = NonNull::new(unsafe { alloc(layout) }.cast()) else {
            handle_alloc_error(layout)
        };
        Self {
            at,
            distance: 0,
            on_heap: true,
            base: base.as_ptr(),
        }
    }

    /// Writes the delta. No other thread sees it until the caller publishes the word and then calls
    /// [`forget`](Self::forget).
    #[inline]
    pub(super) fn write(&self, base: BaseRef<'_, S>, mut delta: Delta<S>) -> Word {
        delta.on_heap = self.on_heap;
        delta.owns = delta.owns_something() || delta.next().is_some_and(|below| below.owns);
        base.announce_delta(delta.key.head);
        // SAFETY: only the caller has the place.
        let written = unsafe {
            self.at.write(delta);
            self.at.as_ref()
        };
        let word = Word::delta(self.at, self.distance);
        check_written(written, base, word);
        word
    }

    /// Passes ownership of the delta to its chain.
    #[inline]
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl<S: Spec> Drop for Claim<S> {
    fn drop(&mut self) {
        if self.on_heap {
            // SAFETY: it came from `on_heap`, and no other thread has seen it. A delta does not own
            // its key.
            unsafe { dealloc(self.at.as_ptr().cast(), Layout::new::<Delta<S>>()) };
        }
    }
}

/// A node as it was when a word of it was read.
#[derive(Clone, Copy)]
pub(super) struct View<'g, S: Spec> {
    /// The newest delta, or the base node itself if it has no delta.
    head: NonNull<()>,
    pub(super) base: BaseRef<'g, S>,
}

impl<'g, S: Spec> View<'g, S> {
    /// The node that a word leads to; `None` if it has been merged away, or is being merged away.
    ///
    /// # Safety
    ///
    /// The word was the head of a node of this tree at some time during the pin.
    #[inline]
    pub(super) unsafe fn of(word: Word, pinned: &'g Guard) -> Option<Self> {
        let Some(base) = word.base_node() else {
            // SAFETY: passed on to the caller.
            return unsafe { Self::of_another(word, pinned) };
        };
        // SAFETY: what a word leads to is retired after it was replaced.
        unsafe {
            Some(Self {
                head: NonNull::new_unchecked(word.address()),
                base: BaseRef::of(base),
            })
        }
    }

    /// As [`of`](Self::of), for a word that does not say where the base node is.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    #[inline(never)]
    unsafe fn of_another(word: Word, pinned: &'g Guard) -> Option<Self> {
        match word.kind() {
            Kind::Delta => {
                // SAFETY: what a word leads to is retired after it was replaced.
                unsafe {
                    let head = NonNull::new(word.address::<Delta<S>>())?;
                    Some(Self {
                        head: head.cast(),
                        base: BaseRef::of(head.as_ref().base),
                    })
                }
            }
            Kind::Switch => {
                // SAFETY: the caller's promise; the flag lives as long as any switch, and a switch
                // never leads to another. SeqCst: see `MappingTable::load`.
                unsafe {
                    let switch = &*word.address::<Switch>();
                    let is_over = (*switch.is_over).load(Ordering::SeqCst);
                    Self::of(if is_over { switch.after } else { switch.before }, pinned)
                }
            }
            Kind::MergeDelta => {
                // SAFETY: the caller's promise; a merge delta never leads to another.
                unsafe {
                    let step = &*word.address::<MergeDelta>();
                    step.can_be_read().then(|| Self::of(step.next, pinned))?
                }
            }
            Kind::Base | Kind::Removed => None,
        }
    }

    #[inline]
    pub(super) fn delta(&self) -> Option<&'g Delta<S>> {
        let is_base = self.head == self.base.as_ptr().cast();
        // SAFETY: what a word led to lives during the pin.
        (!is_base).then(|| unsafe { self.head.cast().as_ref() })
    }

    /// Prefetches the deltas in the area: they lie side by side, but each leads to the next.
    #[inline]
    pub(super) fn prefetch_deltas(&self) {
        let bytes = (self.base.as_ptr().addr().get()).wrapping_sub(self.head.addr().get());
        if bytes > FARTHEST * LINE {
            return;
        }
        let head: *const u8 = self.head.as_ptr().cast();
        for at in (LINE..bytes).step_by(LINE) {
            prefetch(head.wrapping_add(at));
        }
    }

    /// The node that a delta leads to, which no other thread sees yet.
    ///
    /// # Safety
    ///
    /// The delta continues a chain that the caller has a view of.
    pub(super) unsafe fn of_delta(delta: &'g Delta<S>, base: BaseRef<'g, S>) -> Self {
        Self {
            head: NonNull::from(delta).cast(),
            base,
        }
    }

    /// The delta that has split the node since it has this base node.
    #[inline(always)]
    pub(super) fn split(&self) -> Option<&'g Delta<S>> {
        if self.base.has_split_deltas() {
            self.find_split()
        } else {
            None
        }
    }

    #[cold]
    fn find_split(self) -> Option<&'g Delta<S>> {
        if !self.base.may_be_split() {
            return None;
        }
        self.deltas().find(|delta| delta.change == Change::Split)
    }

    /// The high fence: where the right neighbour begins, if there is one.
    #[inline]
    pub(super) fn high(&self) -> Option<StoredKey<S>> {
        match self.split() {
            None => self.base.made_high(),
            Some(split) => Some(split.key),
        }
    }

    /// Whether a position lies to the right of the node's range.
    #[inline]
    pub(super) fn ends_before(&self, position: &Position<'_, S>) -> bool {
        // SAFETY: the node can be read, and its fences live as long as it can be.
        (self.high()).is_some_and(|high| unsafe { position.is_behind(high) })
    }

    #[inline]
    pub(super) fn right(&self) -> usize {
        match self.split() {
            None => self.base.made_right,
            Some(split) => split.value.addr(),
        }
    }

    /// How many entries of the base node belong to this node. The keys of the others may have been
    /// freed.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.split().map_or(self.base.count, |split| split.offset) as usize
    }

    pub(super) fn fences(&self) -> Fences<S> {
        Fences {
            level: self.base.level,
            low: self.base.low(),
            high: self.high(),
            right: self.right(),
            first_child: self.base.first_child,
        }
    }

    /// A spread leaf with one of its sub-chains, whose word is given.
    #[inline]
    pub(super) fn of_sub_chain(&self, word: Word) -> Self {
        match NonNull::new(word.address()) {
            Some(head) => Self { head, ..*self },
            None => *self,
        }
    }

    /// The number of entries; of a spread leaf, once it is frozen. Soundness does not depend on it:
    /// with keys that lie it may be wrong.
    #[inline]
    pub(super) fn count(&self) -> usize {
        let (count, base) = (self.count_of_chain(), self.base);
        if !base.is_spread() {
            return count;
        }
        // Each sub-chain counts the entries of the base node, and its own deltas.
        let others = (base.sub_chains().iter())
            .filter_map(|sub_chain| self.of_sub_chain(sub_chain.load()).delta())
            .map(|delta| delta.count as isize - base.count as isize);
        count.saturating_add_signed(others.sum())
    }

    /// The number of entries according to the newest delta.
    #[inline]
    pub(super) fn count_of_chain(&self) -> usize {
        self.delta().map_or(self.base.count, |delta| delta.count) as usize
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.delta().map_or(0, |delta| delta.depth as usize)
    }

    /// The deltas, the newest first.
    pub(super) fn deltas(&self) -> impl Iterator<Item = &'g Delta<S>> + use<'g, S> {
        std::iter::successors(self.delta(), |delta| delta.next())
    }

    /// Of a spread leaf, the deltas of all sub-chains, one after another; else as
    /// [`deltas`](Self::deltas).
    pub(super) fn all_deltas(&self) -> impl Iterator<Item = &'g Delta<S>> + use<'g, S> {
        let whole = *self;
        let others = (self.base.sub_chains().iter())
            .flat_map(move |sub_chain| whole.of_sub_chain(sub_chain.load()).deltas());
        self.deltas().chain(others)
    }

    /// The deltas that count for this node: those in front of a split. Of one key, the newest
    /// first. A spread leaf must be frozen.
    pub(super) fn changes(&self) -> impl Iterator<Item = &'g Delta<S>> + use<'g, S> {
        let split = self.split();
        (self.all_deltas()).filter(move |delta| split.is_none_or(|split| split.is_in_front(delta)))
    }
}
