//! What changes the list: placing a node and building its tower, removing it and unlinking it.

use super::SkipList;
use super::node::{EntryGuard, NodeRef, Probe};
use super::search::{Path, Place};
use crate::contract::{Storable, Update};
use crate::key::KeyHead;
use crate::unwind::on_unwind;
use std::mem::ManuallyDrop;
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::epoch::Guard;
use tremula_sync::thread_index;

/// A node that is in no list; dropping it frees it.
struct Fresh<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>>(NodeRef<'g, K, V, H>);

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Fresh<'_, K, V, H> {
    fn take_apart(self) -> (K, Option<V>) {
        let fresh = ManuallyDrop::new(self);
        // SAFETY: the node has never been linked, and nobody uses this again.
        unsafe { fresh.0.take_apart() }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for Fresh<'_, K, V, H> {
    fn drop(&mut self) {
        // SAFETY: the node has never been linked.
        drop(unsafe { self.0.take_apart() });
    }
}

/// What placing a node came to.
#[allow(
    clippy::large_enum_variant,
    reason = "made and taken apart in registers, once an insertion"
)]
pub(super) enum Placed<'g, K, V, H> {
    /// There is a node of the key; the key, and the value, come back.
    Present(NodeRef<'g, K, V, H>, K, Option<V>),
    /// The node is new, and linked on the lowest level; its tower is to be built along the path.
    New(NodeRef<'g, K, V, H>, Path<'g, K, V, H>),
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> SkipList<K, V, H> {
    /// Links a new node for `key` on the lowest level, unless there is one already. Without a
    /// value the new node is vacant, and locked by the caller.
    pub(super) fn place<'g>(
        &'g self,
        key: K,
        value: Option<V>,
        guard: &'g Guard,
    ) -> Placed<'g, K, V, H> {
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
    fn settled_path<'g>(&'g self, key: &K, guard: &'g Guard) -> Path<'g, K, V, H> {
        let probe = Probe::new(key);
        let place = Place::At(probe);
        loop {
            let mut path = self.path(&place, guard);
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
        node: NodeRef<'g, K, V, H>,
        path: Path<'g, K, V, H>,
        guard: &'g Guard,
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
        node: NodeRef<'g, K, V, H>,
        path: Path<'g, K, V, H>,
        guard: &'g Guard,
    ) {
        // Relaxed: a hint. Who has to unlink the node has synchronized with the end of this.
        self.levels.fetch_max(node.height(), Relaxed);
        self.guarding_tower(node, || self.link_upwards(node, path, guard));
        if node.finish_building() {
            self.unlink(node, guard);
        }
    }

    /// Does something for a tower that is being built; if it panics, the tower is left as it is.
    pub(super) fn guarding_tower<R>(
        &self,
        node: NodeRef<'_, K, V, H>,
        work: impl FnOnce() -> R,
    ) -> R {
        on_unwind(
            || {
                if node.finish_building() {
                    self.abandon(node);
                }
            },
            work,
        )
    }

    fn link_upwards<'g>(
        &'g self,
        node: NodeRef<'g, K, V, H>,
        mut path: Path<'g, K, V, H>,
        guard: &'g Guard,
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
                    break;
                }
                path = node.with_key(|key| self.path(&Place::at(key), guard));
                if path.after[0] != node.link() {
                    return; // removed already
                }
            }
        }
    }

    /// Removes a locked entry that is there.
    pub(super) fn take_out<'g>(&'g self, entry: EntryGuard<'g, K, V, H>, guard: &'g Guard) {
        let node = entry.node;
        if self.detach(entry) {
            self.unlink(node, guard);
        }
    }

    /// Removes a locked entry that is there, but leaves its node linked; whether the caller has
    /// to unlink that. Runs no user code.
    pub(super) fn detach(&self, entry: EntryGuard<'_, K, V, H>) -> bool {
        self.len.add(-1);
        let node = entry.node;
        entry.remove();
        node.mark();
        node.finish_removing()
    }

    /// Unlinks removed nodes that nobody will link again, and retires them.
    pub(super) fn unlink_all<'g>(&'g self, mut nodes: Vec<NodeRef<'g, K, V, H>>, guard: &'g Guard) {
        while let Some(node) = nodes.pop() {
            on_unwind(
                || nodes.iter().for_each(|node| self.abandon(*node)),
                || self.unlink(node, guard),
            );
        }
    }

    /// Sees to it that a removed node that nobody will link again is unlinked, and retired.
    fn unlink(&self, node: NodeRef<'_, K, V, H>, guard: &Guard) {
        let backlog = self.backlog.as_ref().filter(|_| node.height() > 1);
        if !backlog.is_some_and(|backlog| backlog.unlink(node.link())) {
            self.unlink_now(node, guard);
        }
    }

    /// Unlinks a removed node that nobody will link again, and retires it.
    pub(super) fn unlink_now(&self, node: NodeRef<'_, K, V, H>, guard: &Guard) {
        on_unwind(
            || self.abandon(node),
            || {
                node.with_key(|key| self.path(&Place::at(key), guard));
            },
        );
        let node = node.link();
        // SAFETY: the search has unlinked the node from every level, and nobody links it again:
        // its builder and its remover have both ended, and the second of them is here, once.
        unsafe { guard.defer_unchecked(move || node.free()) };
    }

    /// Keeps a removed node until the list is dropped: the search that was to unlink it panicked.
    fn abandon(&self, node: NodeRef<'_, K, V, H>) {
        self.abandoned.lock().push(node.link());
    }

    /// [`OrderedIndex::update`](crate::OrderedIndex::update) of a key that has a node: `None` if
    /// the node is removed first.
    pub(super) fn update_present<'g>(
        &'g self,
        node: NodeRef<'g, K, V, H>,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
        guard: &'g Guard,
    ) -> Option<Option<V>> {
        let entry = node.lock()?;
        // SAFETY: the entry is locked, and there: its value cannot be retired.
        let (old, decision) = unsafe {
            node.value().with(|value| {
                let decision = decide(Some(value));
                let old = match decision {
                    Update::Keep => None,
                    Update::Put(_) | Update::Remove => Some(value.clone()),
                };
                (old, decision)
            })
        };
        match decision {
            Update::Put(value) => self.replace(entry, value, guard),
            Update::Keep => drop(entry),
            Update::Remove => self.take_out(entry, guard),
        }
        Some(old)
    }

    /// Replaces the value of a locked entry that is there.
    pub(super) fn replace(&self, entry: EntryGuard<'_, K, V, H>, value: V, guard: &Guard) {
        let old = entry.replace(value);
        // SAFETY: the value has just been unlinked, by this thread, and is retired once.
        unsafe { old.retire(guard) };
    }

    /// Asks for the value of a vacant node that this thread has placed, and gives it that, or
    /// removes the node.
    pub(super) fn update_vacant<'g>(
        &'g self,
        node: NodeRef<'g, K, V, H>,
        path: Path<'g, K, V, H>,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
        guard: &'g Guard,
    ) {
        let discard = || {
            node.vacant().remove();
            node.mark();
            // Whoever comes second, of remover and builder, unlinks: this thread is both, unless
            // there is nothing to build.
            node.finish_removing() || node.finish_building()
        };
        let decision = on_unwind(
            || {
                if discard() {
                    self.abandon(node);
                }
            },
            || decide(None),
        );
        match decision {
            Update::Put(value) => {
                self.len.add(1);
                node.vacant().fill(value);
                self.build(node, path, guard);
            }
            Update::Keep | Update::Remove => {
                if discard() {
                    self.unlink(node, guard);
                }
            }
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
