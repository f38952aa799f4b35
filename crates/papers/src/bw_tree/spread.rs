//! Spread leaves: a leaf whose head is contended has several chains.
//!
//! ```text
//!   mapping table      base node of a spread leaf
//!   [ 1 | · ] -------> [ header | heads | values ]
//!                        | sub-chains, a cache line each, in front of the header
//!                        +-- [ · ] --> +insert 14 --> +insert 9 --> base
//!                        +-- [ · ] --> base
//!                        +-- [ · ] --> ~update 3 --> base
//! ```
//!
//! The key's index in the base node, or a hash of the key if it is not there, determines the
//! sub-chain of its deltas. So all deltas on one key are in one chain, whose word is changed by
//! compare-and-swap like a leaf's: a point operation on a spread leaf does the same as on any other
//! leaf, with another word. Keys that are written at about the same time, like the time stamps of
//! an append storm, hash to different sub-chains, so their writers rarely meet.
//!
//! # How a leaf becomes spread, and whole again
//!
//! A writer that loses a compare-and-swap counts that in the base node. The thread that
//! consolidates the leaf looks at the count: if it is
//! [`leaf_contention`](super::BwTreeConfig::leaf_contention) or more, the next base node is spread;
//! otherwise the next base node begins with half the count. A spread leaf is consolidated when one
//! of its sub-chains is full; if its count is less than a quarter of the limit, it is made whole.
//! When it is split, the half that got most of the deltas stays spread: with appends the right one,
//! where the next keys go. A leaf keeps one chain if all deltas would be in one sub-chain, as with
//! one hot key, or with keys without bytes to hash ([`NoHead`](tremula_index::key::NoHead)).
//!
//! # How it is replaced
//!
//! First each sub-chain is *frozen*: the *held* bit of its word is set, for good. Then its contents
//! cannot change, and a new base node replaces the leaf. Any thread may do either at any time, and
//! a thread that finds a sub-chain frozen replaces the leaf instead of waiting. An operation that
//! needs a leaf with one chain (a scan, a merge, a thread that holds leaves) first makes it whole
//! in this way.
//!
//! A lookup that comes to a frozen sub-chain, or to one of a leaf that has been replaced meanwhile,
//! is right: what it finds was so when it read the leaf's word, or when the last delta was
//! published, before the leaf was replaced.

use super::Position;
use super::Tree;
use super::base::{BaseOptions, BaseRef, LINE};
use super::consolidate::SearchResult;
use super::descend::Place;
use super::node::{Claim, Delta, View};
use super::reclaim::Guard;
use super::word::Word;
use super::write::{Changed, Decision, delta};
use std::ptr::NonNull;
use tremula_index::kit::{SearchKey, Spec, StoredKey};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

pub(super) const SUB_CHAINS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// The most deltas that a sub-chain has: all sub-chains together have as many as a leaf has
/// entries.
pub(super) const SUB_CHAIN: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// The head of a sub-chain, and the count of its claimed places, in a cache line of its own.
#[repr(align(64))]
pub(super) struct SubChain {
    head: AtomicPtr<()>,
    claimed: AtomicU32,
}

const _: () = assert!(size_of::<SubChain>().is_multiple_of(LINE));

impl SubChain {
    pub(super) fn new(base: Word) -> Self {
        Self {
            head: AtomicPtr::new(base.pointer()),
            claimed: AtomicU32::new(0),
        }
    }

    /// SeqCst, like all accesses to heads: see `MappingTable::load`.
    #[inline]
    pub(super) fn load(&self) -> Word {
        Word::of_pointer(self.head.load(Ordering::SeqCst))
    }

    /// Replaces the head, if it is still `from`.
    #[inline]
    pub(super) fn exchange(&self, from: Word, to: Word) -> bool {
        self.head
            .compare_exchange(
                from.pointer(),
                to.pointer(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Sets the *held* bit: no thread changes the sub-chain any more.
    fn freeze(&self) {
        let mut word = self.load();
        while !word.is_held() && !self.exchange(word, word.held()) {
            word = self.load();
        }
    }
}

/// The sub-chain of a key with this hash.
#[inline]
pub(super) fn sub_chain_of(hash: u64) -> usize {
    // The upper bits of a product depend on all bits of the hash.
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SUB_CHAINS.ilog2())) as usize
}

impl<'g, S: Spec> BaseRef<'g, S> {
    /// The sub-chains of a spread leaf; none for other nodes.
    #[inline]
    pub(super) fn sub_chains(self) -> &'g [SubChain] {
        let length = if self.is_spread() { SUB_CHAINS } else { 0 };
        // SAFETY: a spread leaf has them in front of the header.
        unsafe {
            let header = self.as_ptr().cast::<SubChain>().as_ptr();
            std::slice::from_raw_parts(header.sub(length), length)
        }
    }

    /// Claims a place for a delta of a sub-chain, for the caller alone.
    #[inline]
    pub(super) fn claim_in(self, sub_chain: &SubChain, number: usize) -> Option<NonNull<Delta<S>>> {
        // Relaxed: see `claim`. When all places are claimed, no thread adds to the count any more,
        // so it cannot overflow.
        if sub_chain.claimed.load(Ordering::Relaxed) as usize >= SUB_CHAIN {
            return None;
        }
        let at = sub_chain.claimed.fetch_add(1, Ordering::Relaxed) as usize;
        if at >= SUB_CHAIN {
            return None;
        }
        let ahead = number * SUB_CHAIN + at + 1;
        // SAFETY: in front of the sub-chains is room for `SUB_CHAIN` deltas of each.
        unsafe {
            let sub_chains = self.as_ptr().cast::<SubChain>().sub(SUB_CHAINS);
            Some(sub_chains.cast::<Delta<S>>().sub(ahead))
        }
    }

    /// The sub-chain of a spread leaf for the deltas on a key, its number, and the index of the key
    /// in the base node. All deltas on one entry of the base node are in one sub-chain, even if
    /// equal keys have different hashes.
    fn sub_chain(self, probe: &SearchKey<'_, S>) -> (&'g SubChain, usize, Result<usize, usize>) {
        let at = self.search(probe, 0..self.count as usize);
        let number = sub_chain_of(match at {
            Ok(at) => at as u64,
            Err(_) => probe.hash(),
        });
        (&self.sub_chains()[number], number, at)
    }

    fn freeze(self) {
        self.sub_chains().iter().for_each(SubChain::freeze);
    }
}

impl<'g, S: Spec> View<'g, S> {
    /// The value of a key in a spread leaf.
    #[inline(never)]
    pub(super) fn value_in_sub_chain(self, probe: &SearchKey<'_, S>) -> Option<*mut ()> {
        let (sub_chain, _, at) = self.base.sub_chain(probe);
        let view = self.of_sub_chain(sub_chain.load());
        let found = view.find_at(at, probe);
        found.entry.map(|entry| entry.value)
    }

    /// Whether the deltas would be in more than one sub-chain.
    fn can_be_spread(&self) -> bool {
        // SAFETY: the chain lives, and with it the keys in it.
        let hash = |key: StoredKey<S>| unsafe { key.with(|key| SearchKey::<S>::new(key).hash()) };
        let mut numbers = (self.changes()).map(|delta| sub_chain_of(hash(delta.key)));
        let first = numbers.next();
        numbers.any(|number| Some(number) != first)
    }

    /// How many deltas are on keys at or behind `middle`, and how many in front of it.
    fn deltas_around(&self, middle: StoredKey<S>) -> (usize, usize) {
        let (mut behind, mut in_front) = (0, 0);
        for delta in self.changes() {
            // SAFETY: the chain lives, and with it the keys in it.
            if unsafe { delta.key.compare(middle) }.is_lt() {
                in_front += 1;
            } else {
                behind += 1;
            }
        }
        (behind, in_front)
    }
}

impl<S: Spec> Tree<S> {
    /// What a leaf's next base node has, given the contention on the leaf.
    pub(super) fn options_after(&self, view: &View<'_, S>) -> BaseOptions {
        let base = view.base;
        let options = self.options(base.level);
        if base.level > 0 || !self.config.switches.spread_leaves {
            return options;
        }
        let contention = base.contention();
        let limit = self.config.leaf_contention as u32;
        let is_contended = contention
            >= if base.is_spread() {
                limit.div_ceil(4)
            } else {
                limit
            };
        if is_contended && view.count() > self.config.leaf_merge && view.can_be_spread() {
            self.spread(options)
        } else {
            BaseOptions {
                contention: contention / 2,
                ..options
            }
        }
    }

    fn spread(&self, options: BaseOptions) -> BaseOptions {
        let has_area = self.config.switches.preallocation;
        BaseOptions {
            slots: if has_area { SUB_CHAINS * SUB_CHAIN } else { 0 },
            is_spread: true,
            ..options
        }
    }

    /// What the two halves of a leaf have that is split at `middle`.
    pub(super) fn options_of_halves(
        &self,
        view: &View<'_, S>,
        middle: StoredKey<S>,
    ) -> (BaseOptions, BaseOptions) {
        let options = self.options_after(view);
        if !options.is_spread {
            return (options, options);
        }
        let cool = self.options(0);
        match view.deltas_around(middle) {
            (behind, in_front) if behind >= in_front => (cool, options),
            _ => (options, cool),
        }
    }

    /// Prepends a delta to the sub-chain of a key, as [`change`](Self::change) does to other
    /// leaves; `None` if the leaf has been replaced, and the caller has to try again.
    #[inline(never)]
    pub(super) fn change_in_sub_chain(
        &self,
        place: &Place<'_, S>,
        probe: &SearchKey<'_, S>,
        decide: impl Fn(&SearchResult<S>) -> Option<Decision<S>>,
        guard: &Guard,
    ) -> Option<Option<Changed>> {
        let base = place.view.base;
        let (sub_chain, number, at) = base.sub_chain(probe);
        let mut claim: Option<Claim<S>> = None;
        loop {
            let word = sub_chain.load();
            let view = place.view.of_sub_chain(word);
            let found = view.find_at(at, probe);
            let Some((change, key, value)) = decide(&found) else {
                return Some(None);
            };
            let is_open = !word.is_held() && view.depth() < SUB_CHAIN;
            claim = claim
                .filter(|_| is_open)
                .or_else(|| Claim::in_sub_chain(base, sub_chain, number).filter(|_| is_open));
            let Some(claimed) = &claim else {
                self.consolidate(place, guard);
                return None;
            };
            let Some(delta) = delta(change, &found, key, value, word, &view) else {
                return Some(None);
            };
            if sub_chain.exchange(word, claimed.write(base, delta)) {
                if let Some(claimed) = claim {
                    claimed.forget();
                }
                let old = found.entry.map(|entry| entry.value);
                return Some(Some((place.id, place.word, old)));
            }
            self.note_contention(base);
        }
    }

    /// Counts a compare-and-swap on a leaf that was lost.
    #[cold]
    pub(super) fn note_contention(&self, base: BaseRef<'_, S>) {
        self.counters.aborts.add(1);
        if self.config.switches.spread_leaves {
            base.note_contention(self.config.leaf_contention as u32);
        }
    }

    /// Freezes the sub-chains of a leaf, if it is spread: then all of it can be read.
    pub(super) fn freeze(&self, view: &View<'_, S>) {
        if view.base.is_spread() {
            view.base.freeze();
        }
    }

    /// Makes a spread leaf whole, unless another thread replaces it meanwhile.
    #[cold]
    pub(super) fn make_whole(&self, place: &Place<'_, S>, guard: &Guard) {
        self.freeze(&place.view);
        let options = BaseOptions {
            contention: place.view.base.contention() / 2,
            ..self.options(0)
        };
        let copy = self.copy_with(&place.view, options);
        self.check_replaced(place, || copy.word(), guard);
        if !self.table.exchange(place.id, place.word, copy.word()) {
            return;
        }
        copy.give();
        // SAFETY: the leaf has just been unlinked; the new base node has the entries that are left.
        unsafe { self.retire(place.word, guard) };
        self.count_spread(&place.view, false);
    }

    /// Counts the replacement of a leaf that was spread, or is now.
    pub(super) fn count_spread(&self, before: &View<'_, S>, is_spread: bool) {
        match (before.base.is_spread(), is_spread) {
            (false, true) => self.counters.spreads.add(1),
            (true, false) => self.counters.made_whole.add(1),
            _ => {}
        }
    }

    /// As [`visit`](Self::visit), but makes a spread leaf whole first.
    ///
    /// # Safety
    ///
    /// As for [`visit`](Self::visit).
    pub(super) unsafe fn visit_whole<'g>(
        &self,
        id: usize,
        guard: &'g Guard,
    ) -> Option<Place<'g, S>> {
        loop {
            // SAFETY: passed on to the caller.
            let place = unsafe { self.visit(id, guard) }?;
            if !place.view.base.is_spread() {
                return Some(place);
            }
            self.make_whole(&place, guard);
        }
    }

    /// As [`descend`](Self::descend) to a leaf, but makes a spread leaf whole first.
    pub(super) fn descend_to_whole_leaf<'g>(
        &self,
        position: &Position<'_, S>,
        guard: &'g Guard,
    ) -> Place<'g, S> {
        loop {
            let place = self.descend(position, 0, guard);
            if !place.view.base.is_spread() {
                return place;
            }
            self.make_whole(&place, guard);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::bw_tree::BwTreeConfig;
    use crate::bw_tree::base::{Draft, Fences, NO_NODE};
    use tremula_index::key::ByteHead;
    use tremula_index::kit::Parameters;

    type Words = Parameters<u64, u64, ByteHead>;

    /// It would fail if refused claims were counted: the count would overflow some time, and the
    /// places be claimed again.
    #[test]
    fn each_place_of_a_sub_chain_is_given_out_once() {
        let tree = Tree::<Words>::new(BwTreeConfig::default());
        let fences = Fences {
            level: 0,
            low: None,
            high: None,
            right: NO_NODE,
            first_child: NO_NODE,
        };
        let draft = Draft::<Words>::new(fences, 0, tree.spread(tree.options(0)));
        let guard = tree.pin();
        // SAFETY: it lives as long as the draft.
        let view = unsafe { View::<Words>::of(draft.word(), &guard) };
        let base = view.unwrap().base;
        let sub_chain = &base.sub_chains()[0];
        let claims = (0..1_000).filter(|_| base.claim_in(sub_chain, 0).is_some());
        assert_eq!(claims.count(), SUB_CHAIN);
        assert_eq!(
            sub_chain.claimed.load(Ordering::Relaxed) as usize,
            SUB_CHAIN
        );
    }
}
