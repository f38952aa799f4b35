//! Reading a chain: one key, all of it; and giving a long one a new base node.

use super::BwTree;
use super::base::{BaseRef, Draft, Fittings};
use super::descend::Spot;
use super::keys::Probe;
use super::node::{Change, Delta, Entry, View, free_chain};
use super::reclaim::Guard;
use super::word::Word;
use crate::contract::Storable;
use crate::key::KeyHead;
use std::cmp::Ordering;
use std::ops::Range;

/// What a node has of a key.
pub(super) struct Found<K, H> {
    /// The key's entry, if it is there.
    pub(super) entry: Option<Entry<K, H>>,
    /// How many keys of the base node lie below.
    pub(super) offset: usize,
    /// Whether the base node has the key itself.
    pub(super) overwrites: bool,
}

/// A part of what a consolidated node has, in the order of the keys.
enum Part<K, H> {
    /// A run of the base node's entries.
    Run(Range<usize>),
    One(Entry<K, H>),
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'g, K, V, H> {
    /// The value of a key in a leaf.
    #[inline]
    pub(super) fn value_of(&self, probe: &Probe<'_, K, H>) -> Option<*mut ()> {
        if self.base.may_have_deltas(probe.head) {
            return self.find(probe).entry.map(|entry| entry.value);
        }
        let found = self.base.search(probe, 0..self.end());
        found.ok().map(|at| self.base.values()[at])
    }

    /// Looks a key up in a node. Each delta that it passes narrows what is left to search of the
    /// base node.
    pub(super) fn find(&self, probe: &Probe<'_, K, H>) -> Found<K, H> {
        if self.base.has_split_deltas() {
            return self.find_beside(self.split(), probe);
        }
        self.find_beside(None, probe)
    }

    /// The same, given the delta by which the node was split.
    #[inline(always)]
    fn find_beside(&self, split: Option<&Delta<K, V, H>>, probe: &Probe<'_, K, H>) -> Found<K, H> {
        let all = 0..split.map_or(self.base.count, |split| split.offset) as usize;
        let mut next = None;
        if self.base.may_have_deltas(probe.head) {
            next = self.delta();
            self.prefetch_deltas();
        }
        let (mut low, mut high) = (all.start, all.end);
        while let Some(delta) = next {
            if split.is_some_and(|split| !split.is_in_front(delta)) {
                next = delta.next();
                continue;
            }
            // SAFETY: the chain lives, and with it the keys in it.
            match unsafe { probe.compare(delta.key) } {
                Ordering::Less => high = high.min(delta.offset as usize),
                Ordering::Greater => {
                    low = low.max(delta.offset as usize + usize::from(delta.overwrites));
                }
                Ordering::Equal => {
                    let entry = Entry {
                        key: delta.key,
                        value: delta.value,
                    };
                    return Found {
                        entry: (delta.change != Change::Delete).then_some(entry),
                        offset: delta.offset as usize,
                        overwrites: delta.overwrites,
                    };
                }
            }
            next = delta.next();
        }
        let found = if self.base.has_shortcuts() {
            self.base.search(probe, low..high)
        } else {
            self.base.search(probe, all)
        };
        Found {
            entry: found.ok().map(|at| self.base.entry(at)),
            offset: found.unwrap_or_else(|at| at),
            overwrites: found.is_ok(),
        }
    }

    /// The newest delta on each key that has any, in the order of the keys.
    fn newest(&self) -> Vec<&'g Delta<K, V, H>> {
        let mut newest = Vec::with_capacity(self.depth());
        if self.base.is_spread() || self.split().is_some() {
            newest.extend(self.changes());
        } else {
            newest.extend(self.deltas());
        }
        let compare = |a: &Delta<K, V, H>, b: &Delta<K, V, H>| {
            // SAFETY: the chain lives, and with it the keys in it.
            (a.offset.cmp(&b.offset)).then_with(|| unsafe { a.key.compare(b.key) })
        };
        // Stable: of those on one key the newest stays first.
        newest.sort_by(|a, b| compare(a, b));
        newest.dedup_by(|older, newer| compare(older, newer).is_eq());
        newest
    }

    /// The deltas, the oldest first, if all that they do is to replace values of the base node:
    /// then nothing has to be sorted.
    fn replacements(&self) -> Option<impl Iterator<Item = &'g Delta<K, V, H>> + use<'g, K, V, H>> {
        if self.base.is_spread() || self.split().is_some() || !self.base.has_sorted_runs() {
            return None;
        }
        let replaces = |delta: &Delta<K, V, H>| delta.change == Change::Update && delta.overwrites;
        if !self.deltas().all(replaces) {
            return None;
        }
        let mut deltas = Vec::with_capacity(self.depth());
        deltas.extend(self.deltas());
        Some(deltas.into_iter().rev())
    }

    /// All that is in the node, in the order of the keys, as the original Bw-tree has it: the
    /// deltas are replayed on a copy of the base node, and that is sorted.
    fn replayed(&self) -> Vec<Entry<K, H>> {
        let mut entries: Vec<_> = self.base.entries().take(self.end()).collect();
        let mut deltas: Vec<_> = self.changes().collect();
        deltas.reverse();
        for delta in deltas {
            let there = entries.iter().position(|entry| entry.key.is(delta.key));
            match (delta.change, there) {
                (Change::Delete, Some(at)) => {
                    entries.swap_remove(at);
                }
                (Change::Update, Some(at)) => entries[at].value = delta.value,
                (Change::Insert, None) => entries.push(Entry {
                    key: delta.key,
                    value: delta.value,
                }),
                _ => unreachable!("a key is inserted before it is changed, and once"),
            }
        }
        // SAFETY: the chain lives, and with it the keys in it.
        entries.sort_by(|a, b| unsafe { a.key.compare(b.key) });
        entries
    }

    /// Shows all that is in the node, in the order of the keys.
    fn consolidated(&self, mut visit: impl FnMut(Part<K, H>)) {
        if !self.base.has_sorted_runs() {
            self.replayed().into_iter().map(Part::One).for_each(visit);
            return;
        }
        let mut at = 0;
        for delta in self.newest() {
            let offset = delta.offset as usize;
            visit(Part::Run(at..offset));
            at = offset + usize::from(delta.overwrites);
            if delta.change != Change::Delete {
                visit(Part::One(Entry {
                    key: delta.key,
                    value: delta.value,
                }));
            }
        }
        visit(Part::Run(at..self.end()));
    }

    /// Appends a private copy of all that is in the node to `out`.
    pub(super) fn entries(&self, out: &mut Vec<Entry<K, H>>) {
        out.reserve(self.count());
        let base: BaseRef<'g, K, V, H> = self.base;
        self.consolidated(|part| match part {
            Part::Run(run) => out.extend(run.map(|at| base.entry(at))),
            Part::One(entry) => out.push(entry),
        });
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BwTree<K, V, H> {
    /// A base node with all that is in a node.
    pub(super) fn copy(&self, view: &View<'_, K, V, H>) -> Draft<K, V, H> {
        self.copy_with(view, self.fittings(view.base.level))
    }

    pub(super) fn copy_with(&self, view: &View<'_, K, V, H>, fittings: Fittings) -> Draft<K, V, H> {
        let mut draft = Draft::new(view.position(), view.count(), fittings);
        if let Some(replacements) = view.replacements() {
            draft.push_run(view.base, 0..view.base.count as usize);
            for delta in replacements {
                draft.replace(delta.offset as usize, delta.value);
            }
            return draft;
        }
        view.consolidated(|part| match part {
            Part::Run(run) => draft.push_run(view.base, run),
            Part::One(entry) => draft.push(entry),
        });
        draft
    }

    /// Gives a leaf a new base node, unless somebody changes it meanwhile; splits or merges it if
    /// it is too large or small.
    #[cold]
    pub(super) fn consolidate(&self, spot: &Spot<'_, K, V, H>, guard: &Guard) {
        if !spot.word.is_open() {
            return;
        }
        let view = &spot.view;
        self.freeze(view);
        let level = view.base.level;
        if view.count() > self.split_above(level) {
            let mut entries = Vec::new();
            view.entries(&mut entries);
            self.split(spot, &entries, view.appends(), guard);
            return;
        }
        let fittings = self.fittings_after(view);
        let copy = self.copy_with(view, fittings);
        if !self.table.exchange(spot.id, spot.word, copy.word()) {
            return;
        }
        copy.give();
        // SAFETY: it has just been unlinked; the new base node has what is left of it.
        unsafe { self.retire(spot.word, guard) };
        self.counters.consolidations.add(1);
        self.count_spread(view, fittings.is_spread);
        if view.count() <= self.merge_below(level) {
            self.merge(spot, guard);
        }
    }

    /// Frees a chain once nobody can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`free_chain`], but for those who are pinned now.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: passed on to the caller. Keys and values may be dropped by any thread at any
        // time: they are `Send` and `'static`.
        unsafe { guard.defer_unchecked(move || free_chain::<K, V, H>(word.released())) };
    }

    /// Consolidates, splits or merges the leaf responsible for a place, if it is due.
    #[inline]
    pub(super) fn tend(&self, id: usize, word: Word, guard: &Guard) {
        // SAFETY: the word was published during this pin.
        let Some(view) = (unsafe { View::of(word, guard) }) else {
            return;
        };
        // Of a spread leaf, whoever finds a sub-chain full sees to it.
        let is_empty = view.count_of_chain() == 0 && !view.base.is_spread();
        let is_long = view.depth() >= self.config.leaf_chain;
        if is_long || (is_empty && view.base.low().or(view.base.made_high()).is_some()) {
            self.consolidate(&Spot { id, word, view }, guard);
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'_, K, V, H> {
    /// Whether everything that is new in the leaf lies behind what the base node has; of a spread
    /// leaf, where threads are not always in step, whether most of it does.
    fn appends(&self) -> bool {
        let end = self.base.count;
        let (mut all, mut appended) = (0, 0);
        for delta in self.changes() {
            all += 1;
            appended += usize::from(delta.offset == end);
        }
        all > 0
            && if self.base.is_spread() {
                appended * 2 > all
            } else {
                appended == all
            }
    }
}
