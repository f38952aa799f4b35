//! Reading a chain, for one key or as a whole, and replacing a long chain by a new base node.

use super::Tree;
use super::base::{BaseOptions, Draft};
use super::descend::Place;
use super::free::free_chain;
use super::node::{Change, Delta, Entry, View};
use super::reclaim::Guard;
use super::word::Word;
use std::cmp::Ordering;
use std::ops::Range;
use tremula_index::kit::{SearchKey, Spec, StoredKey};

/// What a leaf has of a key.
pub(super) struct SearchResult<S: Spec> {
    pub(super) entry: Option<Entry<S>>,
    /// How many keys of the base node lie below it.
    pub(super) offset: usize,
    /// Whether the base node has the key itself.
    pub(super) overwrites: bool,
}

/// The contents of a node, in the order of the keys.
pub(super) enum Contents<'g, S: Spec> {
    /// The base node with some values replaced: the deltas, the oldest first.
    Replaced(Vec<&'g Delta<S>>),
    /// Runs of the base node, and the newest delta on each cell that has deltas, in order.
    Runs(Vec<&'g Delta<S>>),
    Entries(Vec<Entry<S>>),
}

/// A part of the contents of a consolidated node, in the order of the keys.
enum Part<S: Spec> {
    Run(Range<usize>),
    One(Entry<S>),
}

impl<'g, S: Spec> View<'g, S> {
    /// The value of a key in a leaf.
    #[inline]
    pub(super) fn value_of(&self, probe: &SearchKey<'_, S>) -> Option<*mut ()> {
        if self.base.may_have_deltas(probe.head) {
            return self.find(probe).entry.map(|entry| entry.value);
        }
        let found = self.base.search(probe, 0..self.end());
        found.ok().map(|at| self.base.values()[at])
    }

    /// Looks a key up in a leaf. Each delta that the search passes narrows what is left to search
    /// of the base node.
    ///
    /// The entry that it finds is alive, and so is its value, whatever the comparisons say, because
    /// it is the newest of its cell: an entry of the base node lies within what the deltas have
    /// left, and each delta that overwrites an entry excludes that entry.
    pub(super) fn find(&self, probe: &SearchKey<'_, S>) -> SearchResult<S> {
        let search = |all, places| {
            if self.base.has_shortcuts() {
                return self.base.search(probe, places);
            }
            within(self.base.search(probe, all), places)
        };
        if self.base.has_split_deltas() {
            return self.find_beside(self.split(), probe, search);
        }
        self.find_beside(None, probe, search)
    }

    /// As [`find`](Self::find) in a sub-chain, where the place of the key in the base node is
    /// known.
    pub(super) fn find_at(
        &self,
        place: Result<usize, usize>,
        probe: &SearchKey<'_, S>,
    ) -> SearchResult<S> {
        self.find_beside(None, probe, |_, places| within(place, places))
    }

    /// As [`find`](Self::find), given the delta by which the node was split, and how to search the
    /// base node: all of its part that belongs to the node, or the places that are left.
    #[inline(always)]
    fn find_beside(
        &self,
        split: Option<&Delta<S>>,
        probe: &SearchKey<'_, S>,
        search: impl FnOnce(Range<usize>, Range<usize>) -> Result<usize, usize>,
    ) -> SearchResult<S> {
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
                Ordering::Equal => return SearchResult::of(self.newest_on(delta)),
            }
            next = delta.next();
        }
        let found = search(all, low..high.max(low));
        SearchResult {
            entry: found.ok().map(|at| self.base.entry(at)),
            offset: found.unwrap_or_else(|at| at),
            overwrites: found.is_ok(),
        }
    }

    /// The newest delta on the cell of `found`: `found` itself, unless a comparison has passed by a
    /// newer delta on the same key.
    #[inline]
    fn newest_on(&self, found: &'g Delta<S>) -> &'g Delta<S> {
        if S::HEAD_IS_KEY {
            return found;
        }
        let mut newest = self.deltas();
        newest
            .find(|delta| delta.key.is(found.key))
            .unwrap_or(found)
    }

    /// Finds an entry that a leaf has, which is not spread. Runs no user code.
    pub(super) fn find_entry(&self, entry: &Entry<S>) -> SearchResult<S> {
        if let Some(delta) = self.changes().find(|delta| delta.key.is(entry.key)) {
            return SearchResult::of(delta);
        }
        let end = self.end();
        // Most callers look for an entry at one of the ends.
        let at = (0..end)
            .flat_map(|at| [at, end - 1 - at])
            .find(|at| self.base.key(*at).is(entry.key));
        SearchResult {
            entry: at.map(|at| self.base.entry(at)),
            offset: at.unwrap_or(end),
            overwrites: at.is_some(),
        }
    }

    /// The newest delta on each cell that has deltas, cells of one place side by side. Runs no user
    /// code.
    fn newest_by_place(&self) -> Vec<&'g Delta<S>> {
        let mut newest = Vec::with_capacity(self.depth());
        if self.base.is_spread() || self.split().is_some() {
            newest.extend(self.changes());
        } else {
            newest.extend(self.deltas());
        }
        // A stable sort: of the deltas on one cell the newest stays first.
        newest.sort_by_key(|delta| delta.cell());
        newest.dedup_by(|older, newer| older.cell() == newer.cell());
        newest
    }

    /// As [`newest_by_place`](Self::newest_by_place), in the order of the keys.
    fn newest(&self) -> Vec<&'g Delta<S>> {
        let mut newest = self.newest_by_place();
        // With honest keys, at most one of the cells at one place of the base node still has an
        // entry.
        let are_beside =
            |a: &&Delta<S>, b: &&Delta<S>| a.offset == b.offset && !a.overwrites && !b.overwrites;
        for beside in newest.chunk_by_mut(are_beside) {
            if beside.len() > 1 {
                // SAFETY: the chain lives, and with it the keys in it.
                beside.sort_by(|a, b| unsafe { a.key.compare(b.key) });
            }
        }
        newest
    }

    /// Whether `entries` are what the leaf has in front of entry `offset` of its base node, by the
    /// offsets of the deltas. Runs no user code.
    pub(super) fn has_in_front(&self, offset: usize, entries: &[Entry<S>]) -> bool {
        let name = |key: StoredKey<S>| (key.head, key.word.addr());
        let newest = self.newest_by_place();
        let is_overwritten = |at: usize| {
            (newest.iter()).any(|delta| delta.overwrites && delta.offset as usize == at)
        };
        let base = (0..offset)
            .filter(|at| !is_overwritten(*at))
            .map(|at| name(self.base.key(at)));
        let inserted = (newest.iter())
            .filter(|delta| delta.change != Change::Delete)
            .filter(|delta| (delta.offset as usize, delta.overwrites) < (offset, true))
            .map(|delta| name(delta.key));
        let mut in_front: Vec<_> = base.chain(inserted).collect();
        let mut expected: Vec<_> = entries.iter().map(|entry| name(entry.key)).collect();
        in_front.sort_unstable();
        expected.sort_unstable();
        in_front == expected
    }

    /// The deltas, the oldest first, if all that they do is to replace values of the base node:
    /// then there is nothing to sort.
    fn replacements(&self) -> Option<Vec<&'g Delta<S>>> {
        if self.base.is_spread() || self.split().is_some() || !self.base.has_sorted_runs() {
            return None;
        }
        let replaces = |delta: &Delta<S>| delta.change == Change::Update && delta.overwrites;
        if !self.deltas().all(replaces) {
            return None;
        }
        let mut deltas = Vec::with_capacity(self.depth());
        deltas.extend(self.deltas());
        deltas.reverse();
        Some(deltas)
    }

    /// The contents of the node, in the order of the keys, as the original Bw-tree makes them: it
    /// replays the deltas on a copy of the base node, and sorts that.
    fn replayed(&self) -> Vec<Entry<S>> {
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
                (Change::Insert, _) => entries.push(Entry {
                    key: delta.key,
                    value: delta.value,
                }),
                _ => unreachable!("a key is inserted before it is changed"),
            }
        }
        // SAFETY: the chain lives, and with it the keys in it.
        entries.sort_by(|a, b| unsafe { a.key.compare(b.key) });
        entries
    }

    /// The contents of the node, in the order of the keys.
    pub(super) fn contents(&self) -> Contents<'g, S> {
        if self.base.level > 0 {
            return match self.delta() {
                None => Contents::Replaced(Vec::new()),
                Some(_) => Contents::Entries(self.separators()),
            };
        }
        if !self.base.has_sorted_runs() {
            return Contents::Entries(self.replayed());
        }
        match self.replacements() {
            Some(deltas) => Contents::Replaced(deltas),
            None => Contents::Runs(self.newest()),
        }
    }

    /// The contents of the node, in any order. Runs no user code.
    pub(super) fn cells(&self) -> Vec<Entry<S>> {
        let contents = if self.base.level > 0 {
            Contents::Entries(self.separators())
        } else {
            Contents::Runs(self.newest_by_place())
        };
        contents.into_entries(self)
    }

    /// Appends a private copy of the node's contents to `out`.
    pub(super) fn entries(&self, out: &mut Vec<Entry<S>>) {
        self.contents().append_to(out, self);
    }
}

impl<S: Spec> SearchResult<S> {
    /// The result of a search that ends at the newest delta on a cell.
    #[inline]
    fn of(delta: &Delta<S>) -> Self {
        let entry = Entry {
            key: delta.key,
            value: delta.value,
        };
        Self {
            entry: (delta.change != Change::Delete).then_some(entry),
            offset: delta.offset as usize,
            overwrites: delta.overwrites,
        }
    }
}

/// Restricts the result of a search of all places to some places.
#[inline]
fn within(found: Result<usize, usize>, places: Range<usize>) -> Result<usize, usize> {
    match found {
        Ok(at) if places.contains(&at) => Ok(at),
        Ok(at) | Err(at) => Err(at.clamp(places.start, places.end)),
    }
}

impl<S: Spec> Contents<'_, S> {
    /// The number of entries.
    pub(super) fn count(&self, view: &View<'_, S>) -> usize {
        match self {
            Self::Replaced(_) => view.base.count as usize,
            Self::Entries(entries) => entries.len(),
            Self::Runs(newest) => {
                let mut count = view.end();
                let mut overwritten = None;
                for delta in newest {
                    if delta.overwrites && overwritten != Some(delta.offset) {
                        overwritten = Some(delta.offset);
                        count -= 1;
                    }
                    count += usize::from(delta.change != Change::Delete);
                }
                count
            }
        }
    }

    /// Shows each part, but not the values that were replaced.
    fn each_part(&self, view: &View<'_, S>, mut visit: impl FnMut(Part<S>)) {
        let newest = match self {
            Self::Replaced(_) => return visit(Part::Run(0..view.base.count as usize)),
            Self::Entries(entries) => {
                return entries.iter().for_each(|entry| visit(Part::One(*entry)));
            }
            Self::Runs(newest) => newest,
        };
        let mut at = 0;
        for delta in newest {
            let offset = delta.offset as usize;
            if at < offset {
                visit(Part::Run(at..offset));
            }
            // A place may have several cells: one that was deleted, and one that was inserted
            // later.
            at = at.max(offset + usize::from(delta.overwrites));
            if delta.change != Change::Delete {
                visit(Part::One(Entry {
                    key: delta.key,
                    value: delta.value,
                }));
            }
        }
        visit(Part::Run(at..view.end()));
    }

    fn into_entries(self, view: &View<'_, S>) -> Vec<Entry<S>> {
        let mut out = Vec::new();
        self.append_to(&mut out, view);
        out
    }

    fn append_to(mut self, out: &mut Vec<Entry<S>>, view: &View<'_, S>) {
        if let Self::Entries(entries) = &mut self {
            return out.append(entries);
        }
        let start = out.len();
        out.reserve(self.count(view));
        self.each_part(view, |part| match part {
            Part::Run(run) => out.extend(run.map(|at| view.base.entry(at))),
            Part::One(entry) => out.push(entry),
        });
        if let Self::Replaced(deltas) = self {
            for delta in deltas {
                out[start + delta.offset as usize].value = delta.value;
            }
        }
    }

    fn into_draft(self, view: &View<'_, S>, options: BaseOptions) -> Draft<S> {
        let mut draft = Draft::new(view.fences(), self.count(view), options);
        self.each_part(view, |part| match part {
            Part::Run(run) => draft.push_run(view.base, run),
            Part::One(entry) => draft.push(entry),
        });
        if let Self::Replaced(deltas) = self {
            for delta in deltas {
                draft.replace(delta.offset as usize, delta.value);
            }
        }
        draft
    }
}

impl<S: Spec> Tree<S> {
    /// A base node with the contents of a node.
    pub(super) fn copy(&self, view: &View<'_, S>) -> Draft<S> {
        self.copy_with(view, self.options(view.base.level))
    }

    pub(super) fn copy_with(&self, view: &View<'_, S>, options: BaseOptions) -> Draft<S> {
        view.contents().into_draft(view, options)
    }

    /// Gives a leaf a new base node, unless another thread changes the leaf meanwhile; splits or
    /// merges it if it is too large or too small.
    #[cold]
    pub(super) fn consolidate(&self, place: &Place<'_, S>, guard: &Guard) {
        if !place.word.is_open() {
            return;
        }
        let view = &place.view;
        self.freeze(view);
        let level = view.base.level;
        let contents = view.contents();
        let count = contents.count(view);
        if count > self.split_above(level) {
            let entries = contents.into_entries(view);
            self.split(place, &entries, view.appends(), guard);
            return;
        }
        let options = self.options_after(view);
        let copy = contents.into_draft(view, options);
        self.check_replaced(place, || copy.word(), guard);
        if !self.table.exchange(place.id, place.word, copy.word()) {
            return;
        }
        copy.give();
        // SAFETY: the chain has just been unlinked; the new base node has the entries that are
        // left.
        unsafe { self.retire(place.word, guard) };
        self.counters.consolidations.add(1);
        self.count_spread(view, options.is_spread);
        if count <= self.merge_below(level) {
            self.merge(place, guard);
        }
    }

    /// Frees a chain once no thread can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`free_chain`], but threads that are pinned now may still use the chain.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: passed on to the caller. Any thread may drop keys and values at any time: they
        // are `Send` and `'static`.
        unsafe { guard.defer_unchecked(move || free_chain::<S>(word.released())) };
    }

    /// Consolidates a leaf if it is due, and then splits or merges it.
    #[inline]
    pub(super) fn consolidate_if_due(&self, id: usize, word: Word, guard: &Guard) {
        // SAFETY: the word was published during this pin.
        let Some(view) = (unsafe { View::of(word, guard) }) else {
            return;
        };
        // The writer that finds a sub-chain of a spread leaf full consolidates the leaf.
        let is_empty = view.count_of_chain() == 0 && !view.base.is_spread();
        let is_long = view.depth() >= self.config.leaf_chain;
        if is_long || (is_empty && view.base.low().or(view.base.made_high()).is_some()) {
            self.consolidate(&Place { id, word, view }, guard);
        }
    }
}

impl<S: Spec> View<'_, S> {
    /// Whether all that is new in the leaf lies behind the entries of the base node. In a spread
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
