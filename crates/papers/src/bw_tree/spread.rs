//! Spread leaves: where threads fight for the head of one chain, the leaf has several.
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
//! The key's place in the base node, or if it is not there a hash of it, says which sub-chain its
//! deltas belong to. So all that is known of one key is in one chain, whose word is changed by compare-and-swap as that of a leaf is: a point operation
//! on a spread leaf does what it does on any other, with another word. Neighbours in time, like the
//! time stamps of an append storm, are strangers by hash: their writers do not meet.
//!
//! # How a leaf becomes spread, and whole again
//!
//! A writer that loses a compare-and-swap counts that in the base node. Who consolidates a leaf looks at
//! the count: from [`leaf_contention`](super::BwTreeConfig::leaf_contention) on, the next base node
//! is spread; below, half of it is handed on. A spread leaf that is consolidated, since one of its
//! sub-chains is full, and had less than a quarter of that, is whole again. When it is split, the half
//! that got most of the deltas stays spread: of appends the right one, where the next come.
//! Deltas that would all be in one sub-chain, as of one hot key or of keys without bytes to hash
//! ([`NoHead`](tremula_index::key::NoHead)), are left in one chain.
//!
//! # How it is replaced
//!
//! First each sub-chain is *frozen*: the bit *held* of its word is set, for good. Then what is in
//! them cannot change, and a new base node takes the place of the leaf. Anybody may do either at any
//! time, and whoever finds a sub-chain frozen does, instead of waiting. What takes a leaf to be one
//! chain (a scan, a merge, whoever holds leaves) first makes it whole in this way.
//!
//! A lookup that comes to a frozen sub-chain, or one of a leaf that has been replaced meanwhile, is
//! right: what it finds was so when it read the word of the leaf, or when the last delta came, before
//! the leaf was replaced.

use super::Position;
use super::Tree;
use super::base::{BaseRef, Fittings, LINE};
use super::consolidate::Found;
use super::descend::Place;
use super::node::{Claim, Delta, View};
use super::reclaim::Guard;
use super::word::Word;
use super::write::{Changed, Decision, delta};
use std::ptr::NonNull;
use tremula_index::kit::{SearchKey, Spec, StoredKey};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Sub-chains of a spread leaf.
pub(super) const SUB_CHAINS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// Deltas that a sub-chain has at most: all together, as many as a leaf has entries.
pub(super) const SUB_CHAIN: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// The head of a sub-chain, with the claims to its places: a cache line of its own.
#[repr(align(64))]
pub(super) struct SubChain {
    head: AtomicPtr<()>,
    claimed: AtomicU32,
}

const _: () = assert!(size_of::<SubChain>().is_multiple_of(LINE));

impl SubChain {
    /// An empty one.
    pub(super) fn new(base: Word) -> Self {
        Self {
            head: AtomicPtr::new(base.pointer()),
            claimed: AtomicU32::new(0),
        }
    }

    /// SeqCst, and so are the others: as heads of chains in the mapping table.
    #[inline]
    pub(super) fn load(&self) -> Word {
        Word::of_pointer(self.head.load(Ordering::SeqCst))
    }

    /// Replaces the head, if it is still the expected one.
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

    /// Nobody changes it any more.
    fn freeze(&self) {
        let mut word = self.load();
        while !word.is_held() && !self.exchange(word, word.held()) {
            word = self.load();
        }
    }
}

/// The sub-chain of a key with this hash.
#[inline]
fn sub_chain_of(hash: u64) -> usize {
    // The upper bits of a product depend on all bits of the hash.
    (hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SUB_CHAINS.ilog2())) as usize
}

impl<'g, S: Spec> BaseRef<'g, S> {
    /// The sub-chains of a spread leaf; none of another.
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
        // Relaxed: as in `claim`. Nobody adds to it any more when all places are claimed: so it does
        // not begin anew, however many ask.
        if sub_chain.claimed.load(Ordering::Relaxed) as usize >= SUB_CHAIN {
            return None;
        }
        let at = sub_chain.claimed.fetch_add(1, Ordering::Relaxed) as usize;
        if at >= SUB_CHAIN {
            return None;
        }
        let ahead = number * SUB_CHAIN + at + 1;
        // SAFETY: in front of the sub-chains is room for so many deltas of each.
        unsafe {
            let sub_chains = self.as_ptr().cast::<SubChain>().sub(SUB_CHAINS);
            Some(sub_chains.cast::<Delta<S>>().sub(ahead))
        }
    }

    /// The sub-chain of a spread leaf that the deltas on a key belong to, its number, and the place
    /// of the key in the base node. The deltas on an entry of the base node are in one sub-chain,
    /// whatever hashes say of equal keys.
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

    /// Whether not all deltas belong to one sub-chain.
    fn can_be_spread(&self) -> bool {
        // SAFETY: the chain lives, and with it the keys in it.
        let hash = |key: StoredKey<S>| unsafe { key.with(|key| SearchKey::<S>::new(key).hash()) };
        let mut numbers = (self.changes()).map(|delta| sub_chain_of(hash(delta.key)));
        let first = numbers.next();
        numbers.any(|number| Some(number) != first)
    }

    /// How many deltas are about keys at or behind one, and in front of it.
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
    /// What a leaf's next base node has, by what the leaf has seen of contention.
    pub(super) fn fittings_after(&self, view: &View<'_, S>) -> Fittings {
        let base = view.base;
        let fittings = self.fittings(base.level);
        if base.level > 0 || !self.config.switches.spread_leaves {
            return fittings;
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
            self.spread(fittings)
        } else {
            Fittings {
                contention: contention / 2,
                ..fittings
            }
        }
    }

    fn spread(&self, fittings: Fittings) -> Fittings {
        let has_area = self.config.switches.preallocation;
        Fittings {
            slots: if has_area { SUB_CHAINS * SUB_CHAIN } else { 0 },
            is_spread: true,
            ..fittings
        }
    }

    /// What the two halves of a leaf that is split at a key have.
    pub(super) fn fittings_of_halves(
        &self,
        view: &View<'_, S>,
        middle: StoredKey<S>,
    ) -> (Fittings, Fittings) {
        let fittings = self.fittings_after(view);
        if !fittings.is_spread {
            return (fittings, fittings);
        }
        let cool = self.fittings(0);
        match view.deltas_around(middle) {
            (behind, in_front) if behind >= in_front => (cool, fittings),
            _ => (fittings, cool),
        }
    }

    /// Prepends a delta to the sub-chain of a spread leaf that a key belongs to, as
    /// [`change`](Self::change) does to other leaves; `None` if the leaf is replaced, and it is to be
    /// tried again.
    #[inline(never)]
    pub(super) fn change_in_sub_chain(
        &self,
        place: &Place<'_, S>,
        probe: &SearchKey<'_, S>,
        decide: impl Fn(&Found<S>) -> Option<Decision<S>>,
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

    /// Freezes the sub-chains of a leaf, if it is spread: then it can be looked at as a whole.
    pub(super) fn freeze(&self, view: &View<'_, S>) {
        if view.base.is_spread() {
            view.base.freeze();
        }
    }

    /// Makes a spread leaf whole, unless somebody replaces it meanwhile.
    #[cold]
    pub(super) fn make_whole(&self, place: &Place<'_, S>, guard: &Guard) {
        self.freeze(&place.view);
        let fittings = Fittings {
            contention: place.view.base.contention() / 2,
            ..self.fittings(0)
        };
        let copy = self.copy_with(&place.view, fittings);
        if !self.table.exchange(place.id, place.word, copy.word()) {
            return;
        }
        copy.give();
        // SAFETY: it has just been unlinked; the new base node has what is left of it.
        unsafe { self.retire(place.word, guard) };
        self.count_spread(&place.view, false);
    }

    /// Counts what became of a leaf that was replaced, if it was spread, or is now.
    pub(super) fn count_spread(&self, before: &View<'_, S>, is_spread: bool) {
        match (before.base.is_spread(), is_spread) {
            (false, true) => self.counters.spreads.add(1),
            (true, false) => self.counters.made_whole.add(1),
            _ => {}
        }
    }

    /// The node of an id, as [`visit`](Self::visit) has it; a spread leaf is made whole first.
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

    /// The leaf responsible for a position, as [`descend`](Self::descend) has it; a spread one is made
    /// whole first.
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

    /// It would fail if each claim that is refused were counted: the count would begin anew some
    /// time, and with it the places.
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
        let draft = Draft::<Words>::new(fences, 0, tree.spread(tree.fittings(0)));
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
