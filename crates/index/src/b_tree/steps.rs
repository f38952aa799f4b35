//! Steps over several leaves, all of which are locked meanwhile, and closures under locks.
//!
//! A step locks the leaves of its first range as the removal of a range does. It does not wait for
//! those of the further ranges without end, but begins again after [`TRIES`]: so threads whose keys
//! contradict one another do not wait for each other, nor one for itself. A leaf that a step splits
//! stays locked, and so does its new neighbour: no thread sees a part of the step.

use super::OlcBTree;
use super::node::{Entry, Header, Kind, LeafRef, SearchResult};
use super::point::locked;
use super::scan::Span;
use super::split::Right;
use super::tree::{Parent, Position, Tree};
use crate::contract::{Direction, KeyRange, Storable};
use crate::key::KeyHead;
use crate::kit::{Packed, SearchKey, SearchRange, Spec, StoredKey};
use crate::transactional::{self, Adapted, HeldParts, Part, Steps, Transaction, View, Visit};
use std::collections::HashMap;
use std::ops::{Bound, ControlFlow, Range};
use std::ptr;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, VersionGuard};

/// How often a step tries to lock a leaf of a further range.
const TRIES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// Leaves that a walk looks at before it shows them and unpins the thread.
const PARTS_A_PIN: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// A leaf that a step has locked.
struct Locked<'g, S: Spec> {
    leaf: LeafRef<'g, S>,
    lock: VersionGuard<'g>,
    changed: bool,
    /// A key that was removed when the leaf was underfull. A thread that is pinned may read it.
    missed: Option<StoredKey<S>>,
}

/// The leaves that a step has locked, by address.
struct HeldLeaves<'t, 'g, S: Spec> {
    tree: &'t Tree<S>,
    guard: &'g Guard<'g>,
    leaves: HashMap<*mut Header, Locked<'g, S>>,
    /// By how much the number of entries has changed.
    difference: isize,
}

/// What a step has unlinked: a value, and its key if that was removed too.
struct Taken<S: Spec> {
    key: Option<StoredKey<S>>,
    value: Packed<S::Value>,
}

/// A leaf, and where its parent leads to it; `None` if it is the root.
type Below<'g, S> = (LeafRef<'g, S>, Option<Parent<'g, S>>);

impl<S: Spec> Tree<S> {
    /// The leaf of a key. Does not look at the locks of leaves, which this thread may hold: it
    /// would wait for itself.
    fn leaf_below<'g>(
        &self,
        probe: &SearchKey<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Result<Below<'g, S>, Restart> {
        let root = self.last_root(guard);
        let mut inner = match root.kind() {
            Kind::Leaf(leaf) => return Ok((leaf, None)),
            Kind::Inner(inner) => inner,
        };
        let mut version = inner.lock().read()?;
        if self.last_root(guard) != root {
            return Err(Restart);
        }
        let position = Position::At(*probe);
        loop {
            let index = position.child(inner, inner.still(version))?;
            match self.child(inner, version, index)?.kind() {
                Kind::Leaf(leaf) => {
                    let parent = Parent {
                        inner,
                        version,
                        index,
                    };
                    return Ok((leaf, Some(parent)));
                }
                Kind::Inner(child) => {
                    let child_version = child.lock().read()?;
                    inner.lock().validate(version)?;
                    (inner, version) = (child, child_version);
                }
            }
        }
    }

    fn leaf_of<'g>(&self, probe: &SearchKey<'_, S>, guard: &'g Guard<'_>) -> LeafRef<'g, S> {
        self.retry(|| self.leaf_below(probe, guard)).0
    }

    /// Locks the leaves of these ranges, which ascend.
    fn hold_ranges<'t, 'g>(
        &'t self,
        over: &[KeyRange<'_, S::Key>],
        guard: &'g Guard<'g>,
    ) -> HeldLeaves<'t, 'g, S> {
        let backoff = Backoff::new();
        loop {
            let mut held = HeldLeaves::new(self, guard);
            let done = over.iter().try_for_each(|range| held.add(*range));
            if done.is_ok() {
                return held;
            }
            held.release(Vec::new());
            self.restarted();
            backoff.wait();
        }
    }

    /// Divides a full leaf, which this thread has locked, and whose parent it has not. Returns the
    /// right leaf, locked, or `None` if only an inner node above them was divided.
    fn try_split_held<'g>(
        &self,
        leaf: LeafRef<'g, S>,
        at: usize,
        probe: &SearchKey<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Result<Option<(LeafRef<'g, S>, VersionGuard<'g>)>, Restart> {
        let (_, parent) = self.leaf_below(probe, guard)?;
        let Some(parent) = parent else {
            return Ok(self.split_leaf(leaf, at, None, probe, Right::Locked));
        };
        if parent.inner.is_full() {
            parent.inner.lock().validate(parent.version)?;
            self.split_inner_down(probe, guard)?;
            return Ok(None);
        }
        let _lock = parent.inner.lock().upgrade(parent.version)?;
        let at_parent = Some((parent.inner, parent.index));
        Ok(self.split_leaf(leaf, at, at_parent, probe, Right::Locked))
    }

    /// Divides the first full inner node on the way to a key, as
    /// [`split_down`](Self::split_down), which also looks at the leaf.
    fn split_inner_down(&self, probe: &SearchKey<'_, S>, guard: &Guard<'_>) -> Result<(), Restart> {
        let position = Position::At(*probe);
        let root = self.last_root(guard);
        let Kind::Inner(mut inner) = root.kind() else {
            return Ok(());
        };
        let mut version = inner.lock().read()?;
        if self.last_root(guard) != root {
            return Err(Restart);
        }
        let mut parent: Option<Parent<'_, S>> = None;
        loop {
            if inner.is_full() {
                // The parent, which is locked first, was not full when the descent passed it.
                let parent_lock = match &parent {
                    Some(parent) => Some(parent.inner.lock().upgrade(parent.version)?),
                    None => None,
                };
                let _lock = inner.lock().upgrade(version)?;
                let parent = parent.as_ref().zip(parent_lock.as_ref());
                self.split_inner(
                    inner,
                    parent.map(|(parent, _)| (parent.inner, parent.index)),
                );
                return Ok(());
            }
            let index = position.child(inner, inner.still(version))?;
            let Kind::Inner(child) = self.child(inner, version, index)?.kind() else {
                return Ok(());
            };
            let child_version = child.lock().read()?;
            inner.lock().validate(version)?;
            parent = Some(Parent {
                inner,
                version,
                index,
            });
            (inner, version) = (child, child_version);
        }
    }

    /// Looks at the leaves from a key on, or from the first on, and puts them into `parts`. Returns
    /// the key from which to go on.
    fn pass(&self, from: Option<&S::Key>, parts: &mut Vec<Part<S::Key>>) -> Option<S::Key> {
        let guard = self.collector.pin();
        self.retry(|| {
            parts.clear();
            let (mut leaf, mut version) = match from {
                None => {
                    let first = self.first(&guard);
                    (first, first.lock().read()?)
                }
                Some(from) => {
                    let place = self.descend(&Position::At(SearchKey::new(from)), &guard)?;
                    (place.node, place.version)
                }
            };
            loop {
                let entries = leaf.count();
                let first = (entries > 0).then(|| leaf.key(0));
                let (waits, acquisitions) = (leaf.waits().into(), version.changes());
                leaf.lock().validate(version)?;
                // SAFETY: the key was read and validated while the thread was pinned.
                let first = first.map(|key| unsafe { key.to_key() });
                if parts.len() >= PARTS_A_PIN && first.is_some() {
                    return Ok(first);
                }
                let low = match from {
                    Some(from) if parts.is_empty() => Some(from.clone()),
                    _ => first,
                };
                parts.push(Part::new(low, Some(entries), waits, acquisitions));
                match self.neighbour(leaf, version, Direction::Ascending)? {
                    Some(neighbour) => (leaf, version) = neighbour,
                    None => return Ok(None),
                }
            }
        })
    }
}

impl<'t, 'g, S: Spec> HeldLeaves<'t, 'g, S> {
    fn new(tree: &'t Tree<S>, guard: &'g Guard<'g>) -> Self {
        Self {
            tree,
            guard,
            leaves: HashMap::new(),
            difference: 0,
        }
    }

    fn insert(&mut self, leaf: LeafRef<'g, S>, lock: VersionGuard<'g>, changed: bool) {
        let locked = Locked {
            leaf,
            lock,
            changed,
            missed: None,
        };
        self.leaves.insert(leaf.as_ptr(), locked);
    }

    fn has(&self, leaf: LeafRef<'_, S>) -> bool {
        self.leaves.contains_key(&leaf.as_ptr())
    }

    /// Locks the leaves of a range.
    fn add(&mut self, range: KeyRange<'_, S::Key>) -> Result<(), Restart> {
        let bounds = &SearchRange::new(range);
        // A single key needs no neighbour of its leaf.
        let single = match (range.low, range.high) {
            (Bound::Included(low), Bound::Included(high)) => ptr::eq(low.key(), high.key()),
            _ => false,
        };
        let first = match &bounds.low {
            Bound::Included(low) | Bound::Excluded(low) => Some(low),
            Bound::Unbounded => None,
        };
        if self.leaves.is_empty() && !single {
            for Span { leaf, lock, .. } in self.tree.lock_range(bounds, usize::MAX, self.guard) {
                self.insert(leaf, lock, false);
            }
            return Ok(());
        }
        let mut leaf = match first {
            Some(low) => self.tree.leaf_of(low, self.guard),
            None => self.tree.first(self.guard),
        };
        if !self.has(leaf) {
            let lock = try_to_lock(leaf)?;
            if first.is_some_and(|low| self.tree.leaf_of(low, self.guard).node() != leaf.node()) {
                lock.unchanged();
                return Err(Restart);
            }
            self.insert(leaf, lock, false);
        }
        while !single
            && bounds.end_in(leaf, locked)? == leaf.count()
            && let Some(next) = leaf.next()
        {
            // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
            leaf = unsafe { LeafRef::from_raw(next) };
            if !self.has(leaf) {
                let lock = try_to_lock(leaf)?;
                self.insert(leaf, lock, false);
            }
        }
        Ok(())
    }

    /// Where a key is or belongs; `None` only if keys contradict one another.
    fn find(&self, probe: &SearchKey<'_, S>) -> Option<(LeafRef<'g, S>, SearchResult)> {
        let leaf = self.tree.leaf_of(probe, self.guard);
        let held = self.leaves.get(&leaf.as_ptr())?;
        let at = held.leaf.find(probe, locked).ok()?;
        Some((held.leaf, at))
    }

    /// The same, for a key that is to be changed. The leaf counts as changed.
    #[track_caller]
    fn find_to_change(&mut self, probe: &SearchKey<'_, S>) -> (LeafRef<'g, S>, SearchResult) {
        let Some(found) = self.find(probe) else {
            panic!("the keys of a step contradict one another");
        };
        if let Some(held) = self.leaves.get_mut(&found.0.as_ptr()) {
            held.changed = true;
        }
        found
    }

    /// The same. If the key is missing, the leaf has room for it: it is split if it has none.
    fn find_with_room(&mut self, probe: &SearchKey<'_, S>) -> (LeafRef<'g, S>, SearchResult) {
        loop {
            let (leaf, at) = self.find_to_change(probe);
            let Err(place) = at else {
                return (leaf, at);
            };
            if !leaf.is_full() {
                return (leaf, at);
            }
            let tree = self.tree;
            let right = tree.retry(|| tree.try_split_held(leaf, place, probe, self.guard));
            if let Some((right, lock)) = right {
                self.insert(right, lock, true);
            }
        }
    }

    /// Stores an entry, and returns what it replaces.
    fn store(
        &mut self,
        (leaf, at): (LeafRef<'g, S>, SearchResult),
        entry: impl FnOnce(bool) -> (Option<StoredKey<S>>, Packed<S::Value>),
    ) -> Option<Taken<S>> {
        let (key, value) = entry(at.is_err());
        match (at, key) {
            (Err(at), Some(key)) => {
                leaf.insert(at, Entry { key, value });
                leaf.note_insertion(at);
                self.difference += 1;
                None
            }
            (Err(_), None) => unreachable!("what is new has a key"),
            // The key of what is replaced stays.
            (Ok(at), key) => {
                let slot = &leaf.values()[at];
                let old = slot.load();
                slot.store(value);
                Some(Taken { key, value: old })
            }
        }
    }
}

/// Tries to lock a leaf for a while.
fn try_to_lock<'g, S: Spec>(leaf: LeafRef<'g, S>) -> Result<VersionGuard<'g>, Restart> {
    let backoff = Backoff::new();
    for _ in 0..TRIES {
        if let Ok(lock) = leaf.lock().try_lock() {
            return Ok(lock);
        }
        backoff.wait();
    }
    Err(Restart)
}

/// Shows entries of a leaf that this thread has locked.
fn show<S: Spec>(
    leaf: LeafRef<'_, S>,
    mut indices: Range<usize>,
    visit: &mut Visit<'_, S::Key, S::Value>,
) -> ControlFlow<()> {
    indices.try_for_each(|at| {
        let entry = leaf.entry(at);
        // SAFETY: the entry is in a leaf that this thread has locked.
        unsafe {
            entry
                .key
                .with(|key| entry.value.with(|value| visit(key, value)))
        }
    })
}

impl<S: Spec> HeldParts<S::Key, S::Value> for HeldLeaves<'_, '_, S> {
    type Taken = Taken<S>;

    fn get_with(&self, key: &S::Key, read: &mut dyn FnMut(&S::Value)) -> bool {
        match self.find(&SearchKey::new(key)) {
            Some((leaf, Ok(at))) => {
                // SAFETY: the value is in a leaf that this thread has locked.
                unsafe { leaf.values()[at].load().with(read) };
                true
            }
            _ => false,
        }
    }

    fn visit(
        &self,
        range: KeyRange<'_, S::Key>,
        visit: &mut Visit<'_, S::Key, S::Value>,
    ) -> ControlFlow<()> {
        let bounds = SearchRange::new(range);
        let mut leaf = match &bounds.low {
            Bound::Included(low) | Bound::Excluded(low) => self.tree.leaf_of(low, self.guard),
            Bound::Unbounded => self.tree.first(self.guard),
        };
        while self.has(leaf) {
            let indices = bounds.indices_in(leaf, locked).unwrap_or(0..0);
            let goes_on = indices.end == leaf.count();
            show(leaf, indices, visit)?;
            let Some(next) = leaf.next().filter(|_| goes_on) else {
                break;
            };
            // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
            leaf = unsafe { LeafRef::from_raw(next) };
        }
        ControlFlow::Continue(())
    }

    fn put(&mut self, key: S::Key, value: S::Value) -> Option<Taken<S>> {
        let probe = SearchKey::new(&key);
        let head = probe.head;
        let place = self.find_with_room(&probe);
        self.store(place, |is_new| {
            let key = is_new.then(|| StoredKey::new(key, head));
            (key, Packed::new(value))
        })
    }

    fn take(&mut self, key: &S::Key) -> Option<Taken<S>> {
        let probe = SearchKey::new(key);
        let (leaf, at) = self.find_to_change(&probe);
        let entry = leaf.entry(at.ok()?);
        leaf.remove(at.ok()?);
        self.difference -= 1;
        if leaf.is_underfull()
            && let Some(held) = self.leaves.get_mut(&leaf.as_ptr())
        {
            held.missed = Some(entry.key);
        }
        Some(Taken {
            key: Some(entry.key),
            value: entry.value,
        })
    }

    fn put_back(&mut self, key: S::Key, taken: Taken<S>) -> Option<Taken<S>> {
        let probe = SearchKey::new(&key);
        let head = probe.head;
        let place = self.find_with_room(&probe);
        self.store(place, |is_new| {
            let stored = taken
                .key
                .or_else(|| is_new.then(|| StoredKey::new(key, head)));
            (stored, taken.value)
        })
    }

    fn release(self, taken: Vec<Taken<S>>) {
        let Self {
            tree,
            guard,
            leaves,
            difference,
        } = self;
        // Counted before others can remove what has been inserted here.
        tree.len.add(difference);
        let mut underfull = Vec::new();
        for held in leaves.into_values() {
            let (leaf, lock, changed) = (held.leaf, held.lock, held.changed);
            underfull.extend(held.missed.filter(|_| leaf.is_underfull()));
            if changed {
                drop(lock);
            } else {
                lock.unchanged();
            }
        }
        for Taken { key, value } in taken {
            // SAFETY: this thread has unlinked them, and retires each once.
            unsafe {
                value.retire(guard);
                if let Some(key) = key {
                    key.retire(guard);
                }
            }
        }
        for key in underfull {
            // SAFETY: the key was in a leaf after this thread was pinned.
            unsafe { key.with(|key| tree.rebalance(&SearchKey::new(key), guard)) };
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize> Steps<K, V>
    for OlcBTree<K, V, H, NODE_BYTES>
{
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)> {
        self.tree.pop(direction, note)
    }

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize {
        self.tree.remove_range(range, |spans, guard| {
            let order: Vec<_> = (spans.iter())
                .map(|span| (span.leaf, span.indices.clone()))
                .collect();
            let mut held = HeldLeaves::new(&self.tree, guard);
            for Span { leaf, lock, .. } in spans {
                held.insert(leaf, lock, false);
            }
            transactional::show(&held, range, note);
            let span = |(leaf, indices): (LeafRef<'_, _>, _)| {
                let Locked { leaf, lock, .. } = held.leaves.remove(&leaf.as_ptr())?;
                Some(Span {
                    leaf,
                    lock,
                    indices,
                })
            };
            order.into_iter().filter_map(span).collect()
        })
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        let guard = self.tree.collector.pin();
        transactional::run(self.tree.hold_ranges(over, &guard), over, step);
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        let mut parts = Vec::new();
        let mut from = None;
        loop {
            from = self.tree.pass(from.as_ref(), &mut parts);
            if parts.iter().try_for_each(&mut *visit).is_break() || from.is_none() {
                break;
            }
        }
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.tree.counters;
        Adapted::new(counter(&counters.splits), counter(&counters.merges))
    }
}
