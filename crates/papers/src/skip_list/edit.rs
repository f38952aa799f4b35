//! What changes the list: placing a node and building its tower, removing it and unlinking it.

use super::List;
use super::node::{EntryGuard, Finished, NodeRef};
use super::search::{Gap, Path};
use std::cell::Cell;
use std::mem::{ManuallyDrop, needs_drop};
use tremula_index::kit::{Decide, Packed, SearchKey, Spec, on_unwind};
use tremula_index::{Storable, Update};
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::reclaim::Guard;
use tremula_sync::thread_index;

/// A node that is in no list; dropping it frees it.
struct Fresh<'g, S: Spec>(NodeRef<'g, S>);

impl<S: Spec> Fresh<'_, S> {
    fn take_apart(self) -> (S::Key, Option<S::Value>) {
        // If this panics, the node is freed.
        let key_of_head = S::HEAD_IS_KEY.then(|| self.0.key_of_head());
        let fresh = ManuallyDrop::new(self);
        // SAFETY: the node has never been linked, and nobody uses this again.
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

/// A value that has left its node; dropping it retires it.
struct Retiring<'g, 'c, V: Storable>(Packed<V>, &'g Guard<'c>);

impl<V: Storable> Retiring<'_, '_, V> {
    fn hand_out(self) -> V {
        let Self(value, guard) = *ManuallyDrop::new(self);
        // SAFETY: the entry was removed before, and so nobody who pins from now on looks at its
        // value; this is the only one to retire it.
        unsafe { value.hand_out(guard) }
    }
}

impl<V: Storable> Drop for Retiring<'_, '_, V> {
    fn drop(&mut self) {
        // SAFETY: as in `hand_out`.
        unsafe { self.0.retire(self.1) };
    }
}

/// What placing a node came to.
#[allow(
    clippy::large_enum_variant,
    reason = "made and taken apart in registers, once an insertion"
)]
pub(super) enum Placed<'g, S: Spec> {
    /// There is a node of the key; the key, and the value, come back.
    Present(NodeRef<'g, S>, S::Key, Option<S::Value>),
    /// The node is new, and linked on the lowest level; its tower is to be built along the path.
    New(NodeRef<'g, S>, Path<'g, S>),
}

impl<S: Spec> List<S> {
    /// Links a new node for `key` on the lowest level, unless there is one already. Without a
    /// value the new node is vacant, and locked by the caller.
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

    /// The path to a key, and its node if there is one that was not removed at that time.
    fn settled_path<'g>(&'g self, key: &S::Key, guard: &'g Guard<'_>) -> Path<'g, S> {
        let probe = SearchKey::new(key);
        let gap = Gap::At(probe);
        loop {
            let mut path = self.path(&gap, guard);
            let node = self.node(path.after[0], guard);
            match node.filter(|node| node.compare(&probe).is_eq()) {
                // Its remover may be slow: with its links marked, the next search unlinks it.
                Some(node) if node.is_removed() => node.mark(),
                found => {
                    path.found = found;
                    return path;
                }
            }
        }
    }

    /// Sees to it that a node that is on the lowest level comes to be linked on its other levels
    /// too.
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

    /// Links a node that is on the lowest level on its other levels too.
    pub(super) fn build_now<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        path: Path<'g, S>,
        guard: &'g Guard<'_>,
    ) {
        // Relaxed: a hint. Who has to unlink the node has synchronized with the end of this.
        self.levels.fetch_max(node.height(), Relaxed);
        let linked = Cell::new(1);
        self.guarding_tower(node, &linked, guard, || {
            self.link_upwards(node, &linked, path, guard);
        });
        self.finish_building(node, node.height() - linked.get(), guard);
    }

    /// Ends the building of a node's tower, on `missing` levels of which it is never linked.
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

    /// Does something for a tower that is being built, and linked on the lowest `linked` levels;
    /// if it panics, the tower is left as it is.
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

    /// Does what is left to do for a node without a search: a comparison has panicked.
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
                    break;
                }
                path = node.with_key(|key| self.path(&Gap::at(key), guard));
                if path.after[0] != node.link() {
                    return; // removed already
                }
            }
        }
    }

    /// Removes a locked entry that is there, and hands out its value: the value itself where no
    /// other thread can be looking at it.
    pub(super) fn take_out<'g>(
        &'g self,
        entry: EntryGuard<'g, S>,
        guard: &'g Guard<'_>,
    ) -> S::Value {
        let node = entry.node;
        if !needs_drop::<S::Value>() {
            // A copy cannot be told from the value, which goes with the node.
            // SAFETY: the entry is locked, and there.
            let value = unsafe { node.value().with(S::Value::clone) };
            if self.detach(entry) {
                self.unlink(node, guard);
            }
            return value;
        }
        self.len.add(-1);
        // From here to the end of the search the value is this thread's, and kept even if a
        // comparison panics.
        let value = Retiring(entry.remove_with_value(), guard);
        node.mark();
        if node.finish_removing() {
            self.unlink(node, guard);
        }
        value.hand_out()
    }

    /// Removes a locked entry that is there, but leaves its node linked; whether the caller has
    /// to unlink that. Runs no user code.
    pub(super) fn detach(&self, entry: EntryGuard<'_, S>) -> bool {
        self.len.add(-1);
        let node = entry.node;
        entry.remove();
        node.mark();
        node.finish_removing()
    }

    /// Sees to it that removed nodes that nobody will link again are unlinked.
    pub(super) fn unlink_all<'g>(&'g self, mut nodes: Vec<NodeRef<'g, S>>, guard: &'g Guard<'_>) {
        while let Some(node) = nodes.pop() {
            on_unwind(
                || nodes.iter().for_each(|node| self.note_if_linked(*node)),
                || self.unlink(node, guard),
            );
        }
    }

    /// Sees to it that a removed node that nobody will link again is unlinked.
    fn unlink(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        let Some(backlog) = self.backlog.as_ref().filter(|_| node.height() > 1) else {
            return self.unlink_now(node, guard);
        };
        if node.keep() && !backlog.unlink(node.link()) {
            self.unlink_for_task(node, guard);
        }
    }

    /// Searches for a removed node that nobody will link again, to unlink it. If keys are
    /// ordered, it is linked nowhere after that.
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

    /// Says that a level, or a task, keeps a removed node no more; if it was the last, the node
    /// is retired.
    ///
    /// Cold: the search that unlinks on its way is every writer's, and hardly ever comes here.
    #[cold]
    pub(super) fn release(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        if node.release() {
            self.retire(node, guard);
        }
    }

    /// Frees a node once nobody that is pinned now can be looking at it.
    fn retire(&self, node: NodeRef<'_, S>, guard: &Guard<'_>) {
        debug_assert!(node.height() == 1 || node.keepers() == 0);
        let node = node.link();
        // SAFETY: the last that kept the node has gone, and this thread was told, once: no level
        // has the node, and nobody links it again. So nobody who pins from now on comes to it
        // (invariants 5 and 6).
        unsafe { guard.defer_unchecked(move || node.free()) };
    }

    /// Remembers that a removed node may be linked for good above the lowest level: the search
    /// that was to unlink it has panicked, or was led elsewhere by a comparison.
    fn note_if_linked(&self, node: NodeRef<'_, S>) {
        if node.height() > 1 && node.keepers() > 0 {
            // Relaxed: whoever drops the list has synchronized with all that used it.
            self.strays.store(true, Relaxed);
        }
    }

    /// [`OrderedIndex::update`](tremula_index::OrderedIndex::update) of a key that has a node: `None` if
    /// the node is removed first.
    pub(super) fn update_present<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        decide: &mut Decide<'_, S::Value>,
        guard: &'g Guard<'_>,
    ) -> Option<Option<S::Value>> {
        let entry = node.lock()?;
        // SAFETY: the entry is locked, and there: its value cannot be retired.
        match unsafe { node.value().with(|value| decide(Some(value))) } {
            Update::Put(value) => Some(Some(self.replace(entry, value, guard))),
            Update::Keep => {
                drop(entry);
                Some(None)
            }
            Update::Remove => Some(Some(self.take_out(entry, guard))),
        }
    }

    /// Replaces the value of a locked entry that is there, and hands the old one out.
    pub(super) fn replace(
        &self,
        entry: EntryGuard<'_, S>,
        value: S::Value,
        guard: &Guard<'_>,
    ) -> S::Value {
        let old = entry.replace(value);
        // SAFETY: the value has just been unlinked, by this thread, which keeps no reference to
        // it, and is retired once.
        unsafe { old.hand_out(guard) }
    }

    /// Asks for the value of a vacant node that this thread has placed, and gives it that, or
    /// removes the node.
    pub(super) fn update_vacant<'g>(
        &'g self,
        node: NodeRef<'g, S>,
        path: Path<'g, S>,
        decide: &mut Decide<'_, S::Value>,
        guard: &'g Guard<'_>,
    ) {
        // Removes the node; its builder, too, is this thread.
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

    /// One in two towers is a level higher than the rest.
    fn random_height(&self) -> usize {
        if cfg!(loom) {
            return super::node::MOST_LEVELS; // a small model is to have towers
        }
        let seed = &self.seeds[thread_index() % self.seeds.len()];
        // Relaxed: nothing depends on it, and threads that share a seed may draw alike.
        let mut random = seed.load(Relaxed);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        seed.store(random, Relaxed);
        (1 + random.trailing_zeros() as usize).min(super::node::MOST_LEVELS)
    }
}
