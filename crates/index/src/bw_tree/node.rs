//! Deltas, chains of them, and the views that readers have of them.

use super::base::{Base, BaseRef, LINE, Position, free_base};
use super::keys::{OwnedKey, StoredKey};
use super::reclaim::Guard;
use super::spread::SubChain;
use super::steps::Step;
use super::word::{FARTHEST, Kind, Switch, Word};
use crate::contract::Storable;
use crate::key::KeyHead;
use crate::packed::Packed;
use crate::prefetch::prefetch;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;
use tremula_sync::atomic::Ordering;

/// What a delta says of its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
    /// The node ends here, at a key of the base node; the value is the id of the node that has what
    /// lay behind.
    Split,
}

/// One change of a node. Immutable once others see it. It is a cache line long.
#[repr(C, align(64))]
pub(super) struct Delta<K, V, H> {
    pub(super) change: Change,
    /// Allocated by itself, not in the area of the base node.
    pub(super) on_heap: bool,
    /// Whether the base node has the same key, at `offset`.
    pub(super) overwrites: bool,
    /// Whether there is anything to be freed of this delta, or of one below, but the base node.
    pub(super) owns: bool,
    /// Deltas from here down to the base node.
    pub(super) depth: u32,
    /// Keys of the base node that lie below this one.
    pub(super) offset: u32,
    /// Entries of the node from here on.
    pub(super) count: u32,
    pub(super) key: StoredKey<K, H>,
    /// The value, unless this deletes: of a separator, the id of the child.
    pub(super) value: *mut (),
    /// The value before this; null if there was none, and in inner nodes.
    pub(super) old: *mut (),
    /// What this was prepended to.
    pub(super) next: Word,
    pub(super) base: NonNull<Base<K, V, H>>,
    pub(super) of: PhantomData<V>,
}

impl<K, V, H> Delta<K, V, H> {
    /// The delta below; `None` if that is the base node.
    #[inline]
    pub(super) fn next(&self) -> Option<&Self> {
        // SAFETY: a chain is freed as a whole.
        (self.next.kind() == Kind::Delta).then(|| unsafe { &*self.next.address::<Self>() })
    }

    /// Whether there is anything to be freed of it, by itself.
    fn owns_something(&self) -> bool
    where
        K: Ord + Storable,
        V: Storable,
        H: KeyHead<K>,
    {
        let replaces = matches!(self.change, Change::Update | Change::Delete);
        self.on_heap || replaces && !(H::IS_KEY && Packed::<V>::is_word())
    }

    /// Whether another delta on the same base node is about a key in front of this, which splits.
    /// No key is looked at: those behind belong to another node, and may be gone.
    #[inline]
    pub(super) fn is_in_front(&self, other: &Self) -> bool {
        (other.offset, other.overwrites) < (self.offset, true)
    }
}

/// An entry of a node: words that own nothing. In an inner node the value is the id of the child.
pub(super) struct Entry<K, H> {
    pub(super) key: StoredKey<K, H>,
    pub(super) value: *mut (),
}

impl<K, H> Clone for Entry<K, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Entry<K, H> {}

impl<K: Ord + Storable, H: KeyHead<K>> Entry<K, H> {
    pub(super) fn child(&self) -> usize {
        self.value.addr()
    }

    /// Copies of key and value of a leaf's entry.
    ///
    /// # Safety
    ///
    /// Neither has been freed: the caller is pinned since before they were unlinked.
    pub(super) unsafe fn copy<V: Storable>(&self) -> (K, V) {
        // SAFETY: passed on to the caller.
        unsafe {
            let key = self.key.with(K::clone);
            (key, Packed::<V>::of_word(self.value).with(V::clone))
        }
    }
}

/// A place for a delta that nobody sees yet.
pub(super) struct Claim<K, V, H> {
    at: NonNull<Delta<K, V, H>>,
    /// How far in front of the header of the base node it lies; 0 if its word does not tell.
    distance: usize,
    on_heap: bool,
    /// The base node that it may be used on.
    pub(super) base: NonNull<Base<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Claim<K, V, H> {
    /// A place in the area of a base node, if there is one left; on the heap, if it has no area.
    #[inline]
    pub(super) fn new(base: BaseRef<'_, K, V, H>) -> Option<Self> {
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

    /// The same, for a sub-chain of a spread leaf.
    pub(super) fn in_sub_chain(
        base: BaseRef<'_, K, V, H>,
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

    /// A place of its own.
    pub(super) fn on_heap(base: BaseRef<'_, K, V, H>) -> Self {
        let layout = Layout::new::<Delta<K, V, H>>();
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

    /// Writes the delta; nobody sees it until the word is published, with
    /// [`forget`](Self::forget) next.
    #[inline]
    pub(super) fn write(&self, base: BaseRef<'_, K, V, H>, mut delta: Delta<K, V, H>) -> Word {
        delta.on_heap = self.on_heap;
        delta.owns = delta.owns_something() || delta.next().is_some_and(|below| below.owns);
        base.announce_delta(delta.key.head);
        // SAFETY: the place is the caller's alone.
        unsafe { self.at.write(delta) };
        Word::delta(self.at, self.distance)
    }

    /// Leaves the delta to the chain that it is in now.
    #[inline]
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl<K, V, H> Drop for Claim<K, V, H> {
    fn drop(&mut self) {
        if self.on_heap {
            // SAFETY: it came from `on_heap`, and nobody has seen it. A delta owns nothing.
            unsafe { dealloc(self.at.as_ptr().cast(), Layout::new::<Delta<K, V, H>>()) };
        }
    }
}

/// A node as it was when a word of it was read.
pub(super) struct View<'g, K, V, H> {
    /// The newest delta, or the base node itself if there is none.
    head: NonNull<()>,
    pub(super) base: BaseRef<'g, K, V, H>,
}

impl<K, V, H> Clone for View<'_, K, V, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for View<'_, K, V, H> {}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'g, K, V, H> {
    /// What a word leads to; `None` if the node has been merged away, or is being.
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

    /// The same, of a word that does not tell where the base node is.
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
                    let head = NonNull::new(word.address::<Delta<K, V, H>>())?;
                    Some(Self {
                        head: head.cast(),
                        base: BaseRef::of(head.as_ref().base),
                    })
                }
            }
            Kind::Switch => {
                // SAFETY: the caller's promise; the flag lives as long as any switch, and a
                // switch never leads to another. SeqCst: as the heads of chains.
                unsafe {
                    let switch = &*word.address::<Switch>();
                    let is_over = (*switch.is_over).load(Ordering::SeqCst);
                    Self::of(if is_over { switch.after } else { switch.before }, pinned)
                }
            }
            Kind::Step => {
                // SAFETY: the caller's promise; a step never leads to another.
                unsafe {
                    let step = &*word.address::<Step>();
                    step.can_be_read().then(|| Self::of(step.next, pinned))?
                }
            }
            Kind::Base | Kind::Removed => None,
        }
    }

    /// The newest delta.
    #[inline]
    pub(super) fn delta(&self) -> Option<&'g Delta<K, V, H>> {
        let is_base = self.head == self.base.as_ptr().cast();
        // SAFETY: what a word led to lives.
        (!is_base).then(|| unsafe { self.head.cast().as_ref() })
    }

    /// Asks for the deltas in the area: they lie side by side, but each is found by the one before.
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

    /// What a delta that nobody else sees leads to: a node to be.
    ///
    /// # Safety
    ///
    /// The delta continues a chain that the caller has a view of.
    pub(super) unsafe fn of_delta(delta: &'g Delta<K, V, H>, base: BaseRef<'g, K, V, H>) -> Self {
        Self {
            head: NonNull::from(delta).cast(),
            base,
        }
    }

    /// The delta by which the node was split since it has this base node.
    #[inline(always)]
    pub(super) fn split(&self) -> Option<&'g Delta<K, V, H>> {
        if self.base.has_split_deltas() {
            self.find_split()
        } else {
            None
        }
    }

    #[cold]
    fn find_split(self) -> Option<&'g Delta<K, V, H>> {
        if !self.base.may_be_split() {
            return None;
        }
        self.deltas().find(|delta| delta.change == Change::Split)
    }

    /// Where what is on the right begins, if there is anything.
    #[inline]
    pub(super) fn high(&self) -> Option<StoredKey<K, H>> {
        match self.split() {
            None => self.base.made_high(),
            Some(split) => Some(split.key),
        }
    }

    /// The node on the right.
    #[inline]
    pub(super) fn right(&self) -> usize {
        match self.split() {
            None => self.base.made_right,
            Some(split) => split.value.addr(),
        }
    }

    /// How many entries of the base node belong to this. The keys of others may be gone.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.split().map_or(self.base.count, |split| split.offset) as usize
    }

    pub(super) fn position(&self) -> Position<K, H> {
        Position {
            level: self.base.level,
            low: self.base.low(),
            high: self.high(),
            right: self.right(),
            first_child: self.base.first_child,
        }
    }

    /// A spread leaf with one of its sub-chains, of which this is the word.
    #[inline]
    pub(super) fn of_sub_chain(&self, word: Word) -> Self {
        match NonNull::new(word.address()) {
            Some(head) => Self { head, ..*self },
            None => *self,
        }
    }

    /// How many entries there are; of a spread leaf, once it is frozen.
    #[inline]
    pub(super) fn count(&self) -> usize {
        let (count, base) = (self.count_of_chain(), self.base);
        if !base.is_spread() {
            return count;
        }
        // Each counts what the base node has, and its own deltas.
        let others = (base.sub_chains().iter())
            .filter_map(|sub_chain| self.of_sub_chain(sub_chain.load()).delta())
            .map(|delta| delta.count as isize - base.count as isize);
        count.saturating_add_signed(others.sum())
    }

    /// How many entries there are, as far as the newest delta knows.
    #[inline]
    pub(super) fn count_of_chain(&self) -> usize {
        self.delta().map_or(self.base.count, |delta| delta.count) as usize
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.delta().map_or(0, |delta| delta.depth as usize)
    }

    /// The deltas, the newest first.
    pub(super) fn deltas(&self) -> impl Iterator<Item = &'g Delta<K, V, H>> + use<'g, K, V, H> {
        std::iter::successors(self.delta(), |delta| delta.next())
    }

    /// Those of all sub-chains of a spread leaf, one behind another; else as [`deltas`](Self::deltas).
    pub(super) fn all_deltas(&self) -> impl Iterator<Item = &'g Delta<K, V, H>> + use<'g, K, V, H> {
        let whole = *self;
        let others = (self.base.sub_chains().iter())
            .flat_map(move |sub_chain| whole.of_sub_chain(sub_chain.load()).deltas());
        self.deltas().chain(others)
    }

    /// Those of them that tell what is in the node; of one key, the newest first. A spread leaf is
    /// frozen.
    pub(super) fn changes(&self) -> impl Iterator<Item = &'g Delta<K, V, H>> + use<'g, K, V, H> {
        let split = self.split();
        (self.all_deltas()).filter(move |delta| split.is_none_or(|split| split.is_in_front(delta)))
    }
}

/// Frees a chain: base node and deltas, the values that deltas replaced, and the keys that they
/// deleted; but neither the entries that are left nor the fences.
///
/// # Safety
///
/// The word leads to a base node or delta, the chain was unlinked, and nobody has it; another node
/// has the entries that were left.
pub(super) unsafe fn free_chain<K: Ord + Storable, V: Storable, H: KeyHead<K>>(word: Word) {
    // SAFETY: the caller alone has the chain. Each key that was inserted is deleted by at most one
    // delta, and each value replaced by at most one.
    unsafe {
        // The values of inner nodes are ids.
        let has_values = match word.kind() {
            Kind::Delta => (*word.address::<Delta<K, V, H>>()).base.as_ref().level == 0,
            _ => true,
        };
        if word.kind() == Kind::Base {
            let base = BaseRef::of(NonNull::new_unchecked(word.address::<Base<K, V, H>>()));
            for sub_chain in base.sub_chains() {
                free_deltas::<K, V, H>(sub_chain.load(), true);
            }
        }
        let base = free_deltas::<K, V, H>(word, has_values);
        free_base(NonNull::new_unchecked(base.address::<Base<K, V, H>>()));
    }
}

/// Frees the deltas of a chain, and what only they lead to; returns the word of the base node.
///
/// # Safety
///
/// As for [`free_chain`].
unsafe fn free_deltas<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    mut word: Word,
    has_values: bool,
) -> Word {
    // SAFETY: passed on to the caller.
    unsafe {
        while word.kind() == Kind::Delta {
            // Most chains of words need not be walked again.
            if !(*word.address::<Delta<K, V, H>>()).owns {
                return Word::base((*word.address::<Delta<K, V, H>>()).base);
            }
            let at = word.address::<Delta<K, V, H>>();
            let (change, key, old) = ((*at).change, (*at).key, (*at).old);
            let (next, on_heap) = ((*at).next, (*at).on_heap);
            if on_heap {
                dealloc(at.cast(), Layout::new::<Delta<K, V, H>>());
            }
            if has_values && matches!(change, Change::Update | Change::Delete) {
                drop(Packed::<V>::of_word(old).take());
            }
            if change == Change::Delete {
                key.free();
            }
            word = next;
        }
    }
    word
}

/// Frees a node with everything in it.
///
/// # Safety
///
/// The word is the head of a linked node, and nobody else has the tree, or uses it ever again.
pub(super) unsafe fn free_node<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    mut word: Word,
    guard: &Guard,
) {
    // SAFETY: the caller alone has it. What the newest delta on a key says is left of it, and what
    // no delta overwrites.
    unsafe {
        let step = (word.kind() == Kind::Step).then(|| Step::of_word(word));
        if let Some(step) = &step {
            word = step.next;
        }
        let Some(view) = View::<K, V, H>::of(word, guard) else {
            return;
        };
        let low = view.base.low().map(|low| OwnedKey::of_stored(low));
        if step.is_some_and(|step| step.is_empty()) {
            free_chain::<K, V, H>(word);
            return;
        }
        let mut owned: Vec<OwnedKey<K, H>> = Vec::new();
        owned.extend(low);
        let mut own = |key: StoredKey<K, H>| owned.push(OwnedKey::of_stored(key));
        let is_leaf = view.base.level == 0;
        let free_value = |value: *mut ()| {
            if is_leaf {
                drop(Packed::<V>::of_word(value).take());
            }
        };
        view.high().into_iter().for_each(&mut own);
        let mut seen: Vec<StoredKey<K, H>> = Vec::new();
        let mut overwritten = vec![false; view.base.count as usize];
        for delta in view.changes() {
            if delta.overwrites {
                overwritten[delta.offset as usize] = true;
            }
            if seen.iter().any(|key| key.is(delta.key)) {
                continue;
            }
            seen.push(delta.key);
            if delta.change != Change::Delete {
                own(delta.key);
                free_value(delta.value);
            }
        }
        for (entry, overwritten) in view.base.entries().take(view.end()).zip(overwritten) {
            if !overwritten {
                own(entry.key);
                free_value(entry.value);
            }
        }
        free_chain::<K, V, H>(word);
    }
}
