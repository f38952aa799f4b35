//! Changes of the list: placing a node and building its tower, removing a node and unlinking it.

use super::List;
use super::invariants::{check_building, check_retired};
use super::node::{EntryGuard, Finished, NodeRef};
use super::search::{Gap, Path};
use std::cell::Cell;
use std::mem::{ManuallyDrop, needs_drop};
use tremula_index::kit::{Decide, Packed, SearchKey, Spec, on_unwind};
use tremula_index::{Storable, Update};
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::reclaim::Guard;
use tremula_sync::thread_index;

/// A node that is not linked yet; dropping it frees it.
struct Fresh<'g, S: Spec>(NodeRef<'g, S>);

impl<S: Spec> Fresh<'_, S> {
    fn take_apart(self) -> (S::Key, Option<S::Value>) {
        // If this panics, the node is freed.
        let key_of_head = S::HEAD_IS_KEY.then(|| self.0.key_of_head());
        let fresh = ManuallyDrop::new(self);
        // SAFETY: the node has never been linked, and is not used after this.
        let (key, value) = unsafe { fresh.0.take_apart() };
        match key_of_head.or(key) {
            Some(key) => (key, value),
            None => unreachable!("a node has a key where the head is not the key"),
        }
    }
}

impl<S: Spec> Drop for Fresh<'_, S> {
    fn drop(&mut self) {
        // SAFETY: the node has never been linked.
        drop(unsafe { self.0.take_apart() });
    }
}

/// A value that has been taken out of its node; dropping it retires it.
struct Retiring<'g, 'c, V: Storable>(Packed<V>, &'g Guard<'c>);

impl<V: Storable> Retiring<'_, '_, V> {
    fn hand_out(self) -> V {
        let Self(value, guard) = *ManuallyDrop::new(self);
        // SAFETY: the entry was removed before, so no thread that pins from now on looks at its
        // value; only this thread retires it.
        unsafe { value.hand_out(guard) }
    }
}

impl<V: Storable> Drop for Retiring<'_, '_, V> {
    fn drop(&mut self) {
        // SAFETY: the entry was removed, and only this thread retires its value, once.
        unsafe { self.0.retire(self.1) };
    }
}

/// The outcome of placing a node.
#[allow(
    clippy::large_enum_variant,
    reason = "made and taken apart in registers, once an insertion"
)]
pub(super) enum Placed<'g, S: Spec> {
    /// The key has a node already; the key and the value come back.
    Present(NodeRef<'g, S>, S::Key, Option<S::Value>),
    /// The node is new and linked on the lowest level. The caller builds its tower along the path.
    New(NodeRef<'g, S>, Path<'g, S>),
}

impl<S: Spec> List<S> {
    /// Links a new node for `key` on the lowest level, unless the key has one. Without a value the
    /// new node is vacant, and the caller holds its lock.
    pub(super) fn place<'g>(
        &'g self,
        key: S::Key,
        value: Option<S::Value>,
        guard: &'g Guard<'_>,
    ) -> Placed<'g, S> {
        let mut path = self.settled_path(&key, guard);
        if let Some(node) = path.found {
            return Placed::Present(node, key, value);
        }
        let fresh = Fresh(NodeRef::new(key, value, self.random_height()));
        let node = fresh.0;
        check_building(node, 0);
        loop {
            for level in 0..node.height() {
                node.tower().set(level, path.after[level]);
            }
            if path.before[0].exchange(0, path.after[0], node.link()) {
                std::mem::forget(fresh);
                return Placed::New(node, path);
            }
            path = node.with_key(|key| self.settled_path(key, guard));
            if let Some(found) = path.found {
                let (key, value) = fresh.take_apart();
                return Placed::Present(found, key, value);
            }
        }
    }

    /// The path to a key, with the key's node if that was not removed at the time.
    fn settled_path<'g>(&'g self, key: &S::Key, guard: &'g Guard<'_>) -> Path<'g, S> {
        let probe = SearchKey::new(key);
        let gap = Gap::At(probe);
        loop {
            let mut path = self.path(&gap, guard);
            let node = self.node(path.after[0], guard);
            match node.filter(|node| node.compare(&probe).is_eq()) {
                // The remover may be slow. With its links marked, the next search unlinks the node.
                Some(node) if node.is_removed() => node.mark(),
                found => {
                    path.found = found;
                    return path;
                }
            }
        }
    }

    /// Has a node that is linked on the lowest level linked on its other levels too, by the list's
    /// own thread if it has one with room in its queue.
    pub(super) fn build<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        path: Path<'g, S>,
        guard: &'g Guard<'_>,
    ) {
        if node.height() == 1 {
            return;
        }
        let backlog = self.backlog.as_ref();
        if !backlog.is_some_and(|backlog| backlog.build(node.link())) {
            self.build_now(node, path, guard);
        }
    }

    /// Links a node that is linked on the lowest level on its other levels too.
    pub(super) fn build_now<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        path: Path<'g, S>,
        guard: &'g Guard<'_>,
    ) {
        // Relaxed: a hint. A thread that must unlink the node synchronizes with the end of this.
        // Every search reads the number, so it is written only if it grows.
        if self.levels.load(Relaxed) < node.height() {
            self.levels.fetch_max(node.height(), Relaxed);
        }
        let linked = Cell::new(1);
        self.guarding_tower(node, &linked, guard, || {
            self.link_upwards(node, &linked, path, guard);
        });
        self.finish_building(node, node.height() - linked.get(), guard);
    }

    /// Ends the building of a tower. The node will never be linked on `missing` of its levels.
    pub(super) fn finish_building<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        missing: usize,
        guard: &'g Guard<'_>,
    ) {
        match node.finish_building(missing) {
            Finished::Done => {}
            Finished::Unlink => self.unlink(node, guard),
            Finished::Retire => self.retire(node, guard),
        }
    }

    /// Runs `work` for a tower that is being built and is linked on the lowest `linked` levels. If
    /// `work` panics, the tower stays as it is.
    pub(super) fn guarding_tower<'g, R>(
        &'g self,
        node: NodeRef<'g, S>,
        linked: &Cell<usize>,
        guard: &'g Guard<'_>,
        work: impl FnOnce() -> R,
    ) -> R {
        let leave = || {
            self.leave(
                node,
                node.finish_building(node.height() - linked.get()),
                guard,
            )
        };
        on_unwind(leave, work)
    }

    /// Finishes with a node without a search, after a comparison has panicked.
    fn leave(&self, node: NodeRef<'_, S>, finished: Finished, guard: &Guard<'_>) {
        match finished {
            Finished::Done => {}
            Finished::Unlink => self.note_if_linked(node),
            Finished::Retire => self.retire(node, guard),
        }
    }

    fn link_upwards<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        linked: &Cell<usize>,
        mut path: Path<'g, S>,
        guard: &'g Guard<'_>,
    ) {
        for level in 1..node.height() {
            loop {
                let link = node.tower().load(level);
                let after = path.after[level];
                if link.is_marked() || (link != after && !node.tower().exchange(level, link, after))
                {
                    return; // removed already
                }
                if path.before[level].exchange(level, after, node.link()) {
                    linked.set(level + 1);
                    check_building(node, level + 1);
                    break;
                }
                path = node.with_key(|key| self.path(&Gap::at(key), guard));
                if path.after[0] != node.link() {
                    return; // removed already
                }
            }
        }
    }

    /// Removes a locked entry that is present, and returns its value: the value itself if no other
    /// thread can be looking at it, else a copy.
    pub(super) fn take_out<'g>(
        &'g self,
        entry: EntryGuard<'g, S>,
        guard: &'g Guard<'_>,
    ) -> S::Value {
        let node = entry.node;
        if !needs_drop::<S::Value>() {
            // A copy is as good as the value, which is freed with the node.
            // SAFETY: the entry is locked and present, so its value is not retired.
            let value = unsafe { node.value().with(S::Value::clone) };
            if self.detach(entry) {
                self.unlink(node, guard);
            }
            return value;
        }
        self.len.add(-1);
        // Until the search ends this thread owns the value, and retires it if a comparison panics.
        let value = Retiring(entry.remove_with_value(), guard);
        node.mark();
        if node.finish_removing() {
            self.unlink(node, guard);
        }
        value.hand_out()
    }

    /// Removes a locked entry that is present, but leaves its node linked. Returns whether the
    /// caller must unlink the node. Runs no user code.
    pub(super) fn detach(&self, entry: EntryGuard<'_, S>) -> bool {
        self.len.add(-1);
        let node = entry.node;
        entry.remove();
        node.mark();
        node.finish_removing()
    }

    /// Unlinks removed nodes that no thread will link again.
    pub(super) fn unlink_all<'g>(&'g self, mut nodes: Vec<NodeRef<'g, S>>, guard: &'g Guard<'_>) {
        while let Some(node) = nodes.pop() {
            on_unwind(
                || nodes.iter().for_each(|node| self.note_if_linked(*node)),
                || self.unlink(node, guard),
            );
        }
    }

    /// Unlinks a removed node that no thread will link again, or has the list's own thread do it.
    fn unlink(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        let Some(backlog) = self.backlog.as_ref().filter(|_| node.height() > 1) else {
            return self.unlink_now(node, guard);
        };
        if node.keep() && !backlog.unlink(node.link()) {
            self.unlink_for_task(node, guard);
        }
    }

    /// Searches for a removed node that no thread will link again, which unlinks it. If the order
    /// of keys is consistent, the node is linked on no level after that.
    fn unlink_now(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        on_unwind(
            || self.note_if_linked(node),
            || {
                node.with_key(|key| self.path(&Gap::at(key), guard));
            },
        );
        self.note_if_linked(node);
    }

    /// Unlinks a removed node for a task that keeps it, and ends the task.
    pub(super) fn unlink_for_task(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        let end = || {
            self.release(node, guard);
            self.note_if_linked(node);
        };
        on_unwind(end, || {
            node.with_key(|key| self.path(&Gap::at(key), guard));
        });
        end();
    }

    /// Takes away one keeper, a level or a task, of a removed node. Retires the node after the
    /// last.
    ///
    /// Cold: every writer's search can unlink nodes, but rarely does.
    #[cold]
    pub(super) fn release(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        if node.release() {
            self.retire(node, guard);
        }
    }

    /// Frees a node once no thread that is pinned now can be looking at it.
    fn retire(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        check_retired(node);
        let node = node.link();
        // SAFETY: the last keeper is gone, and this thread took it away: no level has the node, and
        // no thread links it again. So no thread that pins from now on reaches it (invariants 5,
        // 6).
        unsafe { guard.defer_unchecked(move || node.free()) };
    }

    /// Records that a removed node may stay linked above the lowest level, because the search that
    /// was to unlink it has panicked or was misled by a comparison.
    fn note_if_linked(&self, node: NodeRef<'_, S>) {
        if node.height() > 1 && node.keepers() > 0 {
            // Relaxed: the thread that drops the list has synchronized with all that used it.
            self.strays.store(true, Relaxed);
        }
    }

    /// [`OrderedIndex::update`](tremula_index::OrderedIndex::update) of a key that has a node.
    /// Returns `None` if another thread removes the node first.
    pub(super) fn update_present<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        decide: &mut Decide<'_, S::Value>,
        guard: &'g Guard<'_>,
    ) -> Option<Option<S::Value>> {
        let entry = node.lock()?;
        // SAFETY: the entry is locked and present, so its value cannot be retired.
        match unsafe { node.value().with(|value| decide(Some(value))) } {
            Update::Put(value) => Some(Some(self.replace(entry, value, guard))),
            Update::Keep => {
                drop(entry);
                Some(None)
            }
            Update::Remove => Some(Some(self.take_out(entry, guard))),
        }
    }

    /// Replaces the value of a locked entry that is present, and returns the old one.
    pub(super) fn replace(
        &self,
        entry: EntryGuard<'_, S>,
        value: S::Value,
        guard: &Guard<'_>,
    ) -> S::Value {
        let old = entry.replace(value);
        // SAFETY: this thread has just unlinked the value, keeps no reference, and retires it once.
        unsafe { old.hand_out(guard) }
    }

    /// Asks for the value of a vacant node that this thread has placed. Fills or removes the node.
    pub(super) fn update_vacant<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        path: Path<'g, S>,
        decide: &mut Decide<'_, S::Value>,
        guard: &'g Guard<'_>,
    ) {
        // Removes the node, whose builder is this thread, too.
        let discard = || {
            node.vacant().remove();
            node.mark();
            if node.finish_removing() {
                Finished::Unlink
            } else {
                node.finish_building(node.height() - 1)
            }
        };
        let leave = || self.leave(node, discard(), guard);
        match on_unwind(leave, || decide(None)) {
            Update::Put(value) => {
                self.len.add(1);
                node.vacant().fill(value);
                self.build(node, path, guard);
            }
            Update::Keep | Update::Remove => match discard() {
                Finished::Done => {}
                Finished::Unlink => self.unlink(node, guard),
                Finished::Retire => self.retire(node, guard),
            },
        }
    }

    /// A height from 1 to `MOST_LEVELS`. Half of the towers that reach a level reach the next one.
    fn random_height(&self) -> usize {
        if cfg!(loom) {
            return super::node::MOST_LEVELS; // so that small models have towers
        }
        let seed = &self.seeds[thread_index() % self.seeds.len()];
        // Relaxed: nothing depends on it, and threads that share a seed may draw the same heights.
        let mut random = seed.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        seed.store(random, Relaxed);
        (1 + random.trailing_zeros() as usize).min(super::node::MOST_LEVELS)
    }
}
