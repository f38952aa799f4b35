//! Steps over several ranges: the leaves that a thread has locked for them, and what it does there.
//!
//! ```text
//!   ranges       [a]       [c ......... f]       [k]
//!   leaves    1 ⇄ 2 ⇄ 3 ⇄  4   ⇄   5   ⇄   6 ⇄ 7 ⇄ 8 ⇄ 9
//!   held          *        *       *             *          locked from left to right
//! ```
//!
//! The step writes into these leaves directly; no other thread sees anything of it before all are
//! unlocked. A full leaf is split while it is held, and its new right neighbour is held from the
//! beginning. So the leaves of all keys of the ranges stay held until the step ends.

use super::invariants::check_changed;
use super::node::{Header, Kind, LeafKey, LeafRef, LooseEntry, LooseKey, NewKey, SearchResult};
use super::point::locked;
use super::scan::{Span, unlock_unchanged};
use super::split::place_of_split;
use super::tree::{Parent, Position, Tree};
use crate::contract::{Direction, KeyRange};
use crate::kit::{PackedValue, SearchKey, SearchRange, Spec, prefetch};
use crate::transactional::{Change, HeldParts, ShownParts};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, VersionGuard};

/// How often a thread that holds the leaves of a range tries to lock a leaf of the next one before
/// it unlocks everything and starts again. Needed only if the order of the keys contradicts itself,
/// and threads therefore lock leaves in different orders.
const TRIES: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 256 };

/// Up to this number, held leaves are searched one by one, which takes no memory beside them.
const FEW: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// A leaf that this thread has locked.
struct HeldLeaf<'g, S: Spec> {
    span: Span<'g, S>,
    /// Whether anything has been written to it.
    changed: bool,
    /// Whether a key has been added or removed, so that others may have another index.
    has_moved: bool,
    /// The key that was removed last, since the leaf was last split: it leads to the leaf when the
    /// leaf is underfull in the end.
    removed: Option<LeafKey<S>>,
}

impl<'g, S: Spec> HeldLeaf<'g, S> {
    fn new(span: Span<'g, S>) -> Self {
        Self {
            span,
            changed: false,
            has_moved: false,
            removed: None,
        }
    }
}

/// Where in the held leaves a leaf is, and where in the leaf a key is or belongs.
type Place = (usize, SearchResult);

/// A range that is one key.
#[derive(Clone, Copy)]
struct Single {
    /// The head of the key.
    head: u64,
    /// Where in the held leaves its leaf was at first.
    held: usize,
    /// Where in that leaf it was, or belonged, at first.
    at: SearchResult,
}

impl Single {
    /// A key of which only the leaf is known yet.
    fn new(head: u64, held: usize) -> Self {
        let at = Err(0);
        Self { head, held, at }
    }
}

/// A value, or an entry, that is in no leaf. It is freed by [`HeldLeaves::release`].
pub(super) struct Taken<S: Spec> {
    /// The key, if it was removed together with its value.
    key: Option<LeafKey<S>>,
    value: PackedValue<S>,
}

/// What has to be freed of it.
struct LooseTaken<S: Spec> {
    key: Option<LooseKey<S>>,
    value: PackedValue<S>,
}

impl<S: Spec> Taken<S> {
    /// What has to be freed.
    ///
    /// # Safety
    ///
    /// The key was in a leaf after this thread was pinned.
    unsafe fn loose(self) -> LooseTaken<S> {
        LooseTaken {
            // SAFETY: passed on to the caller.
            key: self.key.map(|key| unsafe { key.loose() }),
            value: self.value,
        }
    }
}

impl<S: Spec> LooseTaken<S> {
    /// Whether it has memory of its own.
    fn owns(&self) -> bool {
        !PackedValue::<S>::is_word() || self.key.is_some_and(LooseKey::owns)
    }

    /// Frees value and key.
    ///
    /// # Safety
    ///
    /// As for [`LooseKey::free`] and [`PackedValue::take`].
    unsafe fn free(self) {
        match self.key {
            // SAFETY: passed on to the caller.
            Some(key) => unsafe {
                let value = self.value;
                LooseEntry { key, value }.free();
            },
            // SAFETY: passed on to the caller.
            None => drop(unsafe { self.value.take() }),
        }
    }
}

/// The leaf of a key, which may be held or not.
struct Found<'g, S: Spec> {
    leaf: LeafRef<'g, S>,
    /// [`NodeRef::moves`](super::node::NodeRef::moves) when it was the leaf of the key.
    moves: u32,
    /// `None` if the leaf is the root; then it is held.
    parent: Option<Parent<'g, S>>,
}

/// The leaves that this thread has locked. Dropping it unlocks them.
pub(super) struct HeldLeaves<'g, S: Spec> {
    tree: &'g Tree<S>,
    guard: &'g Guard<'g>,
    leaves: Vec<HeldLeaf<'g, S>>,
    /// Where in `leaves` the leaf at an address is, if there are more than a [`FEW`].
    by_address: BTreeMap<*mut Header, usize>,
    /// The ranges of the step that are one key.
    single: Vec<Option<Single>>,
    /// Whether a leaf has been split, so that a key may have moved to another.
    has_split: bool,
    /// Where the key of such a range was found last, if nothing has been written since.
    last: Cell<Option<(usize, Place)>>,
    /// By how much the number of entries has changed.
    growth: isize,
    /// What could not be put back, to be retired when all is unlocked.
    loose: Vec<Taken<S>>,
    /// The moment of the step, for [snapshots](super::snapshots).
    now: u64,
}

/// The key of a range that is one key: then only its leaf has to be locked.
fn one_key<'k, K: Ord>(range: &KeyRange<'k, K>) -> Option<&'k K> {
    range.only_key().or(match (range.low, range.high) {
        (Bound::Included(low), Bound::Included(high)) => {
            (low.key().cmp(high.key()).is_eq()).then_some(low.key())
        }
        _ => None,
    })
}

/// Locks a leaf while this thread holds others, in whatever order: gives up after a while.
fn lock_soon<'g, S: Spec>(leaf: LeafRef<'g, S>) -> Result<VersionGuard<'g>, Restart> {
    if let Ok(lock) = leaf.lock().try_lock() {
        return Ok(lock);
    }
    leaf.note_wait();
    let backoff = Backoff::new();
    for _ in 0..TRIES {
        backoff.wait();
        if let Ok(lock) = leaf.lock().try_lock() {
            return Ok(lock);
        }
        if leaf.lock().is_obsolete() {
            break;
        }
    }
    Err(Restart)
}

/// Where a key is, or belongs, in a leaf that this thread has locked.
fn find_in<S: Spec>(leaf: LeafRef<'_, S>, probe: &SearchKey<'_, S>) -> SearchResult {
    let Ok(at) = leaf.find(probe, locked) else {
        unreachable!("nothing is validated in a locked leaf");
    };
    at
}

impl<S: Spec> Tree<S> {
    /// Locks all leaves of these ranges, which ascend and have no common keys.
    pub(super) fn hold_all<'g>(
        &'g self,
        over: &[KeyRange<'_, S::Key>],
        guard: &'g Guard<'g>,
    ) -> HeldLeaves<'g, S> {
        let Some((first, rest)) = over.split_first() else {
            return HeldLeaves::new(self, guard, Vec::new());
        };
        self.retry(|| {
            let mut held = self.hold_first(first, guard);
            held.leaves.reserve(rest.len().min(FEW));
            held.single.reserve(rest.len());
            let all = rest.iter().try_for_each(|range| held.hold_next(range));
            if let Err(restart) = all {
                unlock_unchanged(held.into_spans());
                return Err(restart);
            }
            held.find_singles(over);
            held.now = self.snapshots.now();
            Ok(held)
        })
    }

    fn hold_first<'g>(
        &'g self,
        range: &KeyRange<'_, S::Key>,
        guard: &'g Guard<'g>,
    ) -> HeldLeaves<'g, S> {
        let Some(key) = one_key(range) else {
            let spans = self.lock_range(&SearchRange::new(*range), usize::MAX, guard);
            let mut held = HeldLeaves::new(self, guard, spans);
            held.single.push(None);
            return held;
        };
        let probe = SearchKey::new(key);
        let bounds = SearchRange {
            low: Bound::Included(probe),
            high: Bound::Included(probe),
        };
        let (leaf, lock) = self.retry(|| self.lock_start(&bounds, guard));
        let mut held = HeldLeaves::new(self, guard, vec![Span::whole(leaf, lock)]);
        held.single.push(Some(Single::new(probe.head, 0)));
        held
    }
}

impl<'g, S: Spec> HeldLeaves<'g, S> {
    pub(super) fn new(tree: &'g Tree<S>, guard: &'g Guard<'g>, spans: Vec<Span<'g, S>>) -> Self {
        let mut held = Self {
            tree,
            guard,
            by_address: BTreeMap::new(),
            single: Vec::new(),
            has_split: false,
            last: Cell::new(None),
            leaves: spans.into_iter().map(HeldLeaf::new).collect(),
            growth: 0,
            loose: Vec::new(),
            now: 0,
        };
        held.note_addresses(0);
        held
    }

    /// Notes where the leaves are, after one or more have been added behind the first `known`.
    fn note_addresses(&mut self, known: usize) {
        if self.leaves.len() > FEW {
            // What was a few is not in the map yet.
            let first = if known > FEW { known } else { 0 };
            let addresses = self.leaves[first..].iter().map(|held| held.span.leaf);
            self.by_address
                .extend(addresses.map(|leaf| leaf.as_ptr()).zip(first..));
        }
    }

    /// The leaves, still locked. Nothing has been written to them.
    pub(super) fn into_spans(self) -> Vec<Span<'g, S>> {
        self.leaves.into_iter().map(|held| held.span).collect()
    }

    fn index_of(&self, leaf: LeafRef<'g, S>) -> Option<usize> {
        let is = |held: &HeldLeaf<'g, S>| held.span.leaf.as_ptr() == leaf.as_ptr();
        if self.leaves.len() <= FEW {
            return self.leaves.iter().rposition(is);
        }
        // Mostly the last one, since ranges ascend.
        let last = self.leaves.len() - 1;
        if is(&self.leaves[last]) {
            return Some(last);
        }
        self.by_address.get(&leaf.as_ptr()).copied()
    }

    /// Returns where in `leaves` it is.
    fn add(&mut self, leaf: LeafRef<'g, S>, lock: VersionGuard<'g>) -> usize {
        let index = self.leaves.len();
        self.leaves.push(HeldLeaf::new(Span::whole(leaf, lock)));
        self.note_addresses(index);
        index
    }

    /// Goes down to the leaf at a position. Reads the locks of inner nodes, and may wait for them
    /// (invariant 11), but not those of leaves: this thread may hold the leaf itself.
    fn find(&self, position: &Position<'_, S>) -> Result<Found<'g, S>, Restart> {
        let root = self.tree.root_node(self.guard);
        if let Kind::Leaf(leaf) = root.kind() {
            // It is the only leaf, so it is the one that is held, and stays the root (invariant 5).
            self.index_of(leaf).ok_or(Restart)?;
            return Ok(Found {
                leaf,
                moves: leaf.moves(),
                parent: None,
            });
        }
        let here = self.tree.enter_root(root)?;
        let here = self.tree.descend_from(here, position, 1)?;
        let (Kind::Inner(inner), version) = (here.node.kind(), here.version) else {
            unreachable!("an inner node is above the leaves");
        };
        let index = position.child(inner, inner.still(version))?;
        let child = self.tree.child(inner, version, index)?;
        let moves = child.moves();
        // Both belong together: `moves` changes only under the lock of the parent (invariant 4).
        inner.lock().validate(version)?;
        let Kind::Leaf(leaf) = child.kind() else {
            unreachable!("the children of a node of level 1 are leaves");
        };
        let parent = Some(Parent {
            inner,
            version,
            index,
        });
        Ok(Found {
            leaf,
            moves,
            parent,
        })
    }

    /// Where the leaf of a key is in `leaves`, if it is held. A key of the step's ranges lies in no
    /// other leaf, unless the order of the keys contradicts itself.
    fn leaf_of(&self, probe: &SearchKey<'_, S>) -> Option<usize> {
        let found = self.tree.retry(|| self.find(&Position::At(*probe)));
        self.index_of(found.leaf)
    }

    /// Where a key is or belongs, which lies in the range with this number. `None` as in
    /// [`leaf_of`](Self::leaf_of).
    fn place_of(&self, within: usize, probe: &SearchKey<'_, S>) -> Option<Place> {
        if let Some((range, place)) = self.last.get()
            && range == within
        {
            return Some(place);
        }
        let single = self.single.get(within).copied().flatten();
        let held = match single {
            Some(Single { held, at, .. }) if !self.has_split => {
                if !self.leaves[held].has_moved {
                    return Some((held, at));
                }
                held
            }
            _ => self.leaf_of(probe)?,
        };
        let place = (held, find_in(self.leaves[held].span.leaf, probe));
        self.last.set(single.map(|_| (within, place)));
        Some(place)
    }

    /// Finds the keys of the ranges that are one key, and asks for their values: so the step waits
    /// for all of them together, and not for one after the other.
    fn find_singles(&mut self, over: &[KeyRange<'_, S::Key>]) {
        for (single, range) in self.single.iter_mut().zip(over) {
            if let (Some(single), Some(key)) = (single, one_key(range)) {
                let leaf = self.leaves[single.held].span.leaf;
                single.at = find_in(leaf, &SearchKey::with_head(key, single.head));
                if let Ok(at) = single.at
                    && !PackedValue::<S>::is_word()
                {
                    prefetch(leaf.value(at).word());
                }
            }
        }
    }

    /// A key with its head, which lies in the range with this number.
    fn probe<'k>(&self, within: usize, key: &'k S::Key) -> SearchKey<'k, S> {
        match self.single.get(within) {
            Some(Some(single)) => SearchKey::with_head(key, single.head),
            _ => SearchKey::new(key),
        }
    }

    /// Locks the leaf at a position, unless it is held already. Returns it, and where it is in
    /// `leaves`.
    fn hold_leaf_at(
        &mut self,
        position: &Position<'_, S>,
    ) -> Result<(LeafRef<'g, S>, usize), Restart> {
        let Found { leaf, moves, .. } = self.tree.retry(|| self.find(position));
        if let Some(index) = self.index_of(leaf) {
            return Ok((leaf, index));
        }
        let lock = lock_soon(leaf)?;
        if leaf.moves() != moves {
            lock.unchanged();
            return Err(Restart);
        }
        Ok((leaf, self.add(leaf, lock)))
    }

    /// Locks the leaves of a further range, except those that are held already.
    fn hold_next(&mut self, range: &KeyRange<'_, S::Key>) -> Result<(), Restart> {
        if let Some(key) = one_key(range) {
            let probe = SearchKey::new(key);
            let (leaf, held) = self.hold_leaf_at(&Position::At(probe))?;
            // By the time that the step comes to this key, the caches have its place.
            let segment = leaf.aim(&probe).segment;
            leaf.prefetch_segment(segment);
            self.single.push(Some(Single::new(probe.head, held)));
            return Ok(());
        }
        self.single.push(None);
        let bounds = SearchRange::new(*range);
        let (mut leaf, _) = self.hold_leaf_at(&bounds.start(Direction::Ascending))?;
        while bounds.end_in(leaf, locked)? == leaf.count()
            && let Some(next) = leaf.next()
        {
            // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
            leaf = unsafe { LeafRef::from_raw(next) };
            if self.index_of(leaf).is_none() {
                let lock = lock_soon(leaf)?;
                self.add(leaf, lock);
            }
        }
        Ok(())
    }

    /// Where a key is in a held leaf, or where it belongs in one that has room for it: the index in
    /// `leaves`, and that in the leaf. `None` as in [`leaf_of`](Self::leaf_of). `within` is the
    /// number of the range of the key, if that is known.
    fn room_for(&mut self, within: Option<usize>, probe: &SearchKey<'_, S>) -> Option<Place> {
        if let Some(within) = within {
            let (held, at) = self.place_of(within, probe)?;
            if at.is_ok() || self.leaves[held].span.leaf.has_room(probe) {
                return Some((held, at));
            }
        }
        let mut splits = 0;
        loop {
            let found = self.tree.retry(|| self.find(&Position::At(*probe)));
            let held = self.index_of(found.leaf)?;
            match find_in(found.leaf, probe) {
                Err(at) if !found.leaf.has_room(probe) => {
                    let at = place_of_split(found.leaf, at, &mut splits);
                    self.split(held, &found, at, probe);
                }
                at => return Some((held, at)),
            }
        }
    }

    /// Splits a held leaf that is full, unless the parent has no room or another thread changes it:
    /// then it splits an inner node, or does nothing.
    fn split(&mut self, held: usize, found: &Found<'g, S>, at: usize, probe: &SearchKey<'_, S>) {
        let parent = match &found.parent {
            None => None,
            Some(parent) => {
                let upgraded = parent.inner.lock().upgrade(parent.version);
                let Ok(parent_lock) = upgraded else {
                    return;
                };
                if parent.inner.is_full() {
                    parent_lock.unchanged();
                    self.tree.retry(|| self.split_above(probe));
                    return;
                }
                Some((parent, parent_lock))
            }
        };
        let under = parent
            .as_ref()
            .map(|(parent, _lock)| (parent.inner, parent.index));
        let lock = |right: LeafRef<'g, S>| match right.lock().try_lock() {
            Ok(lock) => (right, lock),
            Err(Restart) => unreachable!("no other thread has the new leaf yet"),
        };
        self.has_split = true;
        self.last.set(None);
        let (right, lock) = self
            .tree
            .split_leaf(found.leaf, at, under, probe, self.guard, lock);
        self.add(right, lock);
        for half in [held, self.leaves.len() - 1] {
            self.leaves[half].changed = true;
            self.leaves[half].removed = None;
        }
    }

    /// Splits the first full inner node above the leaf of a key.
    fn split_above(&self, probe: &SearchKey<'_, S>) -> Result<(), Restart> {
        let root = self.tree.root_node(self.guard);
        match root.kind() {
            Kind::Leaf(_) => Ok(()),
            Kind::Inner(_) => {
                let here = self.tree.enter_root(root)?;
                self.tree.split_first_full(here, 1, probe, self.guard)
            }
        }
    }

    /// The head of a key, and where it is or belongs, as by [`room_for`](Self::room_for). All user
    /// code that may panic runs here, before anything is changed. (A leaf may have been split,
    /// which no other thread can tell.)
    fn search(&mut self, within: Option<usize>, key: &S::Key) -> Option<(u64, Place)> {
        let probe = match within {
            Some(within) => self.probe(within, key),
            None => SearchKey::new(key),
        };
        let place = self.room_for(within, &probe)?;
        self.note(place, &probe);
        Some((probe.head, place))
    }

    /// Stores a value where `search` has found its key, with the stored key that came with it, if
    /// one did. Returns what it replaces.
    fn store(
        &mut self,
        (head, (held, at)): (u64, Place),
        key: &mut Option<S::Key>,
        new: Taken<S>,
    ) -> Option<Taken<S>> {
        self.last.set(None);
        let held = &mut self.leaves[held];
        held.changed = true;
        held.has_moved |= at.is_err();
        let leaf = held.span.leaf;
        match at {
            Ok(at) => {
                let value = leaf.value(at);
                leaf.set_value(at, new.value);
                Some(Taken {
                    key: new.key,
                    value,
                })
            }
            Err(at) => {
                let own = || key.take().map(|key| NewKey::Own(key, head));
                let key = new.key.map(NewKey::Again).or_else(own)?;
                leaf.insert(at, key, new.value, self.guard);
                leaf.note_insertion(at);
                self.growth += 1;
                None
            }
        }
    }

    /// Notes what is at a place before it is changed.
    fn note(&self, (held, at): Place, key: &SearchKey<'_, S>) {
        let leaf = self.leaves[held].span.leaf;
        self.tree.note(leaf, self.now, key, at, self.guard);
    }

    /// Takes out what is at a place.
    fn take_at(&mut self, place: Place) -> Option<Taken<S>> {
        let (held, at) = place;
        let at = at.ok()?;
        self.last.set(None);
        let held = &mut self.leaves[held];
        let leaf = held.span.leaf;
        let entry = leaf.entry(at);
        leaf.remove(at, self.guard);
        self.growth -= 1;
        (held.changed, held.has_moved) = (true, true);
        held.removed = Some(entry.key);
        Some(Taken {
            key: Some(entry.key),
            value: entry.value,
        })
    }
}

impl<S: Spec> ShownParts<S::Key, S::Value> for HeldLeaves<'_, S> {
    fn get_with(&self, within: usize, key: &S::Key, read: &mut dyn FnMut(&S::Value)) -> bool {
        let Some((held, Ok(at))) = self.place_of(within, &self.probe(within, key)) else {
            return false;
        };
        let leaf = self.leaves[held].span.leaf;
        // SAFETY: the value is in a leaf that this thread has locked.
        unsafe { leaf.value(at).with(read) };
        true
    }

    fn visit(
        &self,
        range: KeyRange<'_, S::Key>,
        visit: &mut dyn FnMut(&S::Key, &S::Value) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bounds = SearchRange::new(range);
        let position = bounds.start(Direction::Ascending);
        let mut leaf = self.tree.retry(|| self.find(&position)).leaf;
        while self.index_of(leaf).is_some() {
            let Ok(indices) = bounds.indices_in(leaf, locked) else {
                unreachable!("nothing is validated in a locked leaf");
            };
            let goes_on = indices.end == leaf.count();
            for at in indices {
                let entry = leaf.entry(at);
                // SAFETY: the entry is in a leaf that this thread has locked.
                unsafe {
                    entry
                        .key
                        .with(|key| entry.value.with(|value| visit(key, value)))
                }?;
            }
            match leaf.next() {
                // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
                Some(next) if goes_on => leaf = unsafe { LeafRef::from_raw(next) },
                _ => break,
            }
        }
        ControlFlow::Continue(())
    }
}

impl<S: Spec> HeldParts<S::Key, S::Value> for HeldLeaves<'_, S> {
    type Taken = Taken<S>;
    type Added = ();

    fn put(
        &mut self,
        within: usize,
        key: &mut Option<S::Key>,
        value: &mut Option<S::Value>,
    ) -> Option<Change<Taken<S>, ()>> {
        let place = self.search(Some(within), key.as_ref()?)?;
        let value = PackedValue::new(value.take()?);
        let old = self.store(place, key, Taken { key: None, value });
        Some(old.map_or(Change::Added(()), Change::Took))
    }

    fn take(&mut self, within: usize, key: &S::Key) -> Option<Taken<S>> {
        let probe = self.probe(within, key);
        let place = self.place_of(within, &probe)?;
        self.note(place, &probe);
        self.take_at(place)
    }

    fn take_added(&mut self, key: &S::Key, (): ()) -> Option<Taken<S>> {
        let probe = SearchKey::new(key);
        let held = self.leaf_of(&probe)?;
        self.take_at((held, find_in(self.leaves[held].span.leaf, &probe)))
    }

    fn put_back(&mut self, key: &mut Option<S::Key>, taken: Taken<S>) -> Option<Taken<S>> {
        // It stays there if the search panics or finds no place.
        self.loose.push(taken);
        let place = self.search(None, key.as_ref()?)?;
        let taken = self.loose.pop()?;
        self.store(place, key, taken)
    }

    fn release(self, taken: Vec<Taken<S>>) {
        let mut underfull = Vec::new();
        for HeldLeaf {
            span: Span { leaf, lock, .. },
            changed,
            removed,
            ..
        } in self.leaves
        {
            if !changed {
                lock.unchanged();
                continue;
            }
            check_changed([leaf.node()]);
            underfull.extend(removed.filter(|_| leaf.is_underfull()));
            drop(lock);
        }
        self.tree.len.add(self.growth);
        let unlinked = taken.into_iter().chain(self.loose);
        // SAFETY: the keys were in leaves while this thread was pinned.
        let unlinked = unlinked.map(|taken| unsafe { taken.loose() });
        let unlinked = unlinked.filter(LooseTaken::owns);
        // SAFETY: this thread alone has unlinked them, or has never linked them.
        unsafe { self.guard.defer_each(unlinked, |taken| taken.free()) };
        for key in underfull {
            // SAFETY: the key was in a leaf after this thread was pinned.
            unsafe { key.search(|probe| self.tree.rebalance(&probe, self.guard)) };
        }
    }
}
