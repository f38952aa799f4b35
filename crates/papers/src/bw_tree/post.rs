//! Splitting a node, and posting the separator to its parent.

use super::Position;
use super::base::{Draft, Fences, NO_NODE};
use super::descend::Place;
use super::node::{Change, Claim, Delta, Entry, View};
use super::reclaim::Guard;
use super::word::Word;
use super::{ROOT, Tree};
use std::marker::PhantomData;
use std::ptr;
use tremula_index::kit::{OwnedKey, Spec, StoredKey};

/// If all new entries are at a leaf's end, one in this many moves to the right: appends leave
/// leaves seven eighths full.
const APPENDED_PART: usize = 8;

/// The entry of a separator in an inner node.
fn separator<S: Spec>(key: &OwnedKey<S>, child: usize) -> Entry<S> {
    Entry {
        key: key.stored(),
        value: ptr::without_provenance_mut(child),
    }
}

/// A node that has an id and is in the table, but to which no node leads. Dropping it frees both
/// after a while, because [`peek`](super::mapping_table::MappingTable::peek) may come to it.
struct NewNode<'t, S: Spec> {
    tree: &'t Tree<S>,
    guard: &'t Guard<'t>,
    id: usize,
    node: Option<Draft<S>>,
}

impl<S: Spec> NewNode<'_, S> {
    /// Passes ownership to the nodes that lead to it now.
    fn give(mut self) {
        self.node.take().into_iter().for_each(Draft::give);
    }
}

impl<S: Spec> Drop for NewNode<'_, S> {
    fn drop(&mut self) {
        let Some(node) = self.node.take() else {
            return;
        };
        self.tree.table.store(self.id, Word::REMOVED);
        // SAFETY: no node leads to it. Only memory is freed; it owns no entries.
        unsafe {
            self.guard.defer_unchecked(move || drop(node));
            self.tree.table.retire(self.id, self.guard);
        }
    }
}

impl<S: Spec> Tree<S> {
    fn new_node<'t>(&'t self, node: Draft<S>, guard: &'t Guard<'t>) -> NewNode<'t, S> {
        let id = self.table.allocate();
        self.table.store(id, node.word());
        NewNode {
            tree: self,
            guard,
            id,
            node: Some(node),
        }
    }

    /// Splits a node, given all its entries, unless another thread changes it meanwhile: into two
    /// new base nodes, or a new one and a split delta.
    pub(super) fn split(
        &self,
        place: &Place<'_, S>,
        entries: &[Entry<S>],
        appends: bool,
        guard: &Guard,
    ) {
        let cut = if appends {
            entries.len() - (entries.len() / APPENDED_PART).max(1)
        } else {
            entries.len() / 2
        };
        let by_delta = self.place_of_split_delta(place, entries, cut);
        let cut = by_delta.map_or(cut, |(cut, _)| cut);
        assert!(0 < cut && cut < entries.len(), "both halves have entries");
        let middle = entries[cut];
        let fences = place.view.fences();
        let level = fences.level;
        let (left_options, right_options) = self.options_of_halves(&place.view, middle.key);
        // SAFETY: it is an entry of a node that can be read.
        let copy = || unsafe { OwnedKey::<S>::copy_of(middle.key) };
        let (low, high) = (copy(), copy());
        let (left_entries, right_entries) = entries.split_at(cut);
        let (right_entries, first_child) = if level == 0 {
            (right_entries, NO_NODE)
        } else {
            // The separator moves up.
            (&right_entries[1..], middle.child())
        };
        let right = Draft::<S>::of_entries(
            Fences {
                low: Some(low.stored()),
                first_child,
                ..fences
            },
            right_entries,
            right_options,
        );
        let right = self.new_node(right, guard);
        if let Some((_, offset)) = by_delta {
            let delta = Delta {
                change: Change::Split,
                on_heap: false,
                owns: false,
                overwrites: true,
                depth: place.view.depth() as u32 + 1,
                offset: offset as u32,
                count: left_entries.len() as u32,
                key: high.stored(),
                value: ptr::without_provenance_mut(right.id),
                left: NO_NODE,
                next: place.word.released(),
                base: place.view.base.as_ptr(),
                of: PhantomData,
            };
            let base = place.view.base;
            let claim = Claim::new(base).unwrap_or_else(|| Claim::on_heap(base));
            base.announce_split();
            let word = claim.write(base, delta);
            self.check_halves(|| word, right.id, guard);
            if !(self.table).exchange(place.id, place.word, word) {
                return;
            }
            claim.forget();
        } else {
            let left = Draft::<S>::of_entries(
                Fences {
                    high: Some(high.stored()),
                    right: right.id,
                    ..fences
                },
                left_entries,
                left_options,
            );
            self.check_halves(|| left.word(), right.id, guard);
            if !self.replace_by_left(place, left, copy, right.id, guard) {
                return;
            }
        }
        right.give();
        low.give();
        high.give();
        // SAFETY: the separator in an inner node's middle has been copied, and has just been
        // unlinked.
        unsafe {
            if level > 0 {
                self.retire_key(middle.key, guard);
            }
        }
        self.counters.splits.add(1);
        let is_spread = left_options.is_spread || right_options.is_spread;
        self.count_spread(&place.view, is_spread);
        if place.id != ROOT {
            // The descent finds the separator missing, and posts it.
            // SAFETY: what was retired lives during this pin.
            unsafe {
                middle
                    .key
                    .search(|middle| self.descend(&Position::At(middle), level, guard))
            };
        }
    }

    /// Where to split a node by a delta, if the split is to be by a delta: at the last entry not
    /// behind `cut` whose key the base node has, too, so that the offsets of older deltas say on
    /// which side they are. Also returns the offset of that key in the base node.
    fn place_of_split_delta(
        &self,
        place: &Place<'_, S>,
        entries: &[Entry<S>],
        cut: usize,
    ) -> Option<(usize, usize)> {
        let view = &place.view;
        let keeps_chain = !self.config.switches.whole_splits && place.id != ROOT;
        if !keeps_chain || view.split().is_some() || view.base.is_spread() {
            return None;
        }
        let base = view.base;
        let (cut, offset) = (1..=cut).rev().find_map(|cut| {
            let is_there = |at: &usize| {
                let entry = base.entry(*at);
                // In an inner node the child identifies the entry.
                entry.key.is(entries[cut].key)
                    && (base.level == 0 || entry.value == entries[cut].value)
            };
            let offset = (0..base.count as usize).find(is_there);
            offset.map(|offset| (cut, offset))
        })?;
        // The order by comparisons must agree with the order by offsets.
        let agree = base.level > 0 || view.has_in_front(offset, &entries[..cut]);
        agree.then_some((cut, offset))
    }

    /// Replaces a node by its left half; returns whether it could. The root keeps its place, one
    /// level higher: then the left half is a new node, too.
    fn replace_by_left(
        &self,
        place: &Place<'_, S>,
        left: Draft<S>,
        copy_of_separator: impl FnOnce() -> OwnedKey<S>,
        right: usize,
        guard: &Guard,
    ) -> bool {
        let level = place.view.base.level;
        if place.id == ROOT {
            let up = copy_of_separator();
            let left = self.new_node(left, guard);
            let root = Draft::<S>::of_entries(
                Fences {
                    level: level + 1,
                    low: None,
                    high: None,
                    right: NO_NODE,
                    first_child: left.id,
                },
                &[separator(&up, right)],
                self.options(level + 1),
            );
            self.check_replaced(place, || root.word(), guard);
            if !self.table.exchange(ROOT, place.word, root.word()) {
                return false;
            }
            root.give();
            up.give();
            left.give();
        } else {
            self.check_replaced(place, || left.word(), guard);
            if !self.table.exchange(place.id, place.word, left.word()) {
                return false;
            }
            left.give();
        }
        // SAFETY: the chain has just been unlinked; the two nodes have the entries that were left.
        unsafe { self.retire(place.word, guard) };
        true
    }

    /// Frees a key of the tree once no thread can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire_key(&self, key: StoredKey<S>, guard: &Guard) {
        if !S::HEAD_IS_KEY {
            // SAFETY: passed on to the caller; any thread may drop keys at any time.
            unsafe { guard.defer_unchecked(move || key.free()) };
        }
    }

    /// Posts the right neighbour of one of a parent's children to the parent, unless the parent
    /// knows that node, or changes meanwhile: then the next thread that passes tries again. The
    /// parent was read before the child.
    ///
    /// The separator is inserted right behind that of the child. So the children of a level, parent
    /// by parent, are always in the order of their links, and each is there once, whatever
    /// comparisons say: it suffices to look at the next child.
    #[cold]
    pub(super) fn post(&self, parent: &Place<'_, S>, child: &Place<'_, S>, guard: &Guard) {
        let (base, left) = (parent.view.base, &child.view);
        let Some(high) = left.high() else {
            return;
        };
        if !parent.word.is_open() {
            self.help_merge(parent.word, guard);
            return;
        }
        if base.level != left.base.level + 1 {
            return;
        }
        let right = left.right();
        let is_known = match parent.view.child_behind(child.id) {
            None => true,
            Some(Some(next)) => next == right,
            Some(None) => self.is_first_below(parent.view.right(), right, guard),
        };
        if is_known {
            return;
        }
        // SAFETY: fences live as long as their node can be read.
        let key = unsafe { OwnedKey::<S>::copy_of(high) };
        let Some(delta) = (parent.view).separator(parent.word, key.stored(), child.id, right)
        else {
            return;
        };
        let count = delta.count as usize;
        let Some(word) = self.prepend_to_inner(parent, delta, guard) else {
            return;
        };
        key.give();
        if count > self.split_above(base.level) {
            // SAFETY: the word was published during this pin.
            if let Some(view) = unsafe { View::of(word, guard) } {
                let mut entries = Vec::new();
                view.entries(&mut entries);
                let id = parent.id;
                self.split(&Place { id, word, view }, &entries, false, guard);
            }
        }
    }

    /// Whether `child` is the first child of `parent`, whose left neighbour led to it. If that one
    /// has been merged away, or is being merged away, the answer is yes: its left neighbour has
    /// changed.
    fn is_first_below(&self, parent: usize, child: usize, guard: &Guard) -> bool {
        if parent == NO_NODE {
            return false;
        }
        // SAFETY: its left neighbour led to it, and was read during this pin.
        let parent = unsafe { self.visit(parent, guard) };
        parent.is_none_or(|parent| parent.view.base.first_child == child)
    }

    /// Prepends a delta to an inner node, or, if its chain is long enough, gives it a new base node
    /// with that change, unless another thread changes the node meanwhile. Returns the node's new
    /// word.
    fn prepend_to_inner(
        &self,
        place: &Place<'_, S>,
        delta: Delta<S>,
        guard: &Guard,
    ) -> Option<Word> {
        let base = place.view.base;
        if let Some(claim) = self.place_in_inner(&place.view) {
            let word = claim.write(base, delta);
            let is_done = self.table.exchange(place.id, place.word, word);
            return is_done.then(|| {
                claim.forget();
                word
            });
        }
        // SAFETY: it continues the chain.
        let view = unsafe { View::of_delta(&delta, base) };
        self.replace_inner(place, self.copy(&view), guard)
    }

    /// Claims a place for a delta of an inner node; `None` if the node is to get a new base node.
    pub(super) fn place_in_inner(&self, view: &View<'_, S>) -> Option<Claim<S>> {
        let has_room = view.depth() < self.config.inner_chain;
        if self.config.switches.whole_inner_nodes || !has_room {
            return None;
        }
        Claim::new(view.base)
    }

    /// Gives an inner node a new base node, unless another thread changes it meanwhile; returns its
    /// new word.
    fn replace_inner(&self, place: &Place<'_, S>, new: Draft<S>, guard: &Guard) -> Option<Word> {
        let word = new.word();
        self.check_replaced(place, || word, guard);
        if !self.table.exchange(place.id, place.word, word) {
            return None;
        }
        new.give();
        // SAFETY: it has just been unlinked; the new base node has its entries.
        unsafe { self.retire(place.word, guard) };
        Some(word)
    }
}
