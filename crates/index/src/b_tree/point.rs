//! Operations on one key.

use super::node::{LeafRef, NewKey, SearchResult};
use super::split::place_of_split;
use super::tree::{LeafPlace, Parent, Position, Tree};
use crate::contract::Update;
use crate::kit::{PackedValue, SearchKey, Sought, Spec};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, VersionGuard};

/// A leaf that this thread has locked, and where in it the key is or belongs.
struct Held<'g, S: Spec> {
    leaf: LeafRef<'g, S>,
    lock: VersionGuard<'g>,
    at: SearchResult,
    parent: Option<Parent<'g, S>>,
}

/// Whether an operation has anything to do only if its key is present, or absent. If not, the
/// operation need not lock the leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Present,
    Absent,
    Either,
}

/// The validation of a node that this thread has locked: always succeeds.
pub(super) fn locked() -> Result<(), Restart> {
    Ok(())
}

impl<S: Spec> Tree<S> {
    /// Shows the value under a key to `read`.
    #[inline]
    pub(super) fn get_with<'k, R>(
        &self,
        key: impl Into<Sought<'k, S::Key>>,
        read: impl FnOnce(&S::Value) -> R,
    ) -> Option<R> {
        let probe = SearchKey::new(key);
        let guard = self.collector.pin();
        let value = self.retry(|| self.look_up(&probe, &guard))?;
        // SAFETY: the value was read from an entry and validated while the thread was pinned.
        Some(unsafe { value.with(read) })
    }

    #[inline]
    pub(super) fn look_up(
        &self,
        probe: &SearchKey<'_, S>,
        guard: &Guard<'_>,
    ) -> Result<Option<PackedValue<S>>, Restart> {
        let place = self.descend(&Position::At(*probe), guard)?;
        look_into(place.node, place.version, probe).or_else(|Restart| look_again(&place, probe))
    }

    /// Finds the leaf of a key and locks it. Returns `None` if the key is present, or absent, and
    /// is not `wanted` so.
    #[inline(always)]
    fn hold<'g>(
        &self,
        probe: &SearchKey<'_, S>,
        wanted: Wanted,
        guard: &'g Guard<'_>,
    ) -> Result<Option<Held<'g, S>>, Restart> {
        let place = self.descend(&Position::At(*probe), guard)?;
        let leaf = place.node;
        // Search before locking, so that the cache misses do not happen under the lock. The
        // prefetches are for the entries that an insertion will move.
        let aim = leaf.aim(probe);
        leaf.prefetch_slots(aim.segment);
        leaf.prefetch_end();
        if let Ok(at) = leaf.find_at(aim, probe, leaf.still(place.version)) {
            let unwanted = match at {
                Ok(_) => wanted == Wanted::Absent,
                Err(_) => wanted == Wanted::Present,
            };
            if unwanted && leaf.lock().validate(place.version).is_ok() {
                return Ok(None);
            }
            if let Ok(lock) = leaf.lock().upgrade(place.version) {
                return Ok(Some(Held {
                    leaf,
                    lock,
                    at,
                    parent: place.parent,
                }));
            }
        }
        self.hold_contended(place, probe).map(Some)
    }

    /// Locks a leaf that other threads write to: waits for its lock instead of going down again.
    #[cold]
    fn hold_contended<'g>(
        &self,
        place: LeafPlace<'g, S>,
        probe: &SearchKey<'_, S>,
    ) -> Result<Held<'g, S>, Restart> {
        let lock = self.lock_place(&place)?;
        let at = place.node.find(probe, locked)?;
        Ok(Held {
            leaf: place.node,
            lock,
            at,
            parent: place.parent,
        })
    }

    /// Locks the leaf at which a descent ended, if it is still responsible for the same keys.
    pub(super) fn lock_place<'g>(
        &self,
        place: &LeafPlace<'g, S>,
    ) -> Result<VersionGuard<'g>, Restart> {
        if let Ok(lock) = place.node.lock().upgrade(place.version) {
            return Ok(lock);
        }
        if place.parent.is_none() {
            // It was the root, and `moves` does not say whether it still is.
            if place.node.lock().try_read().is_err() {
                place.node.note_wait();
            }
            return Err(Restart);
        }
        let lock = place.node.wait_to_lock()?;
        if place.node.moves() == place.moves {
            Ok(lock)
        } else {
            lock.unchanged();
            Err(Restart)
        }
    }

    /// Like [`hold`](Self::hold); splits the leaf first if it is full and lacks the key.
    #[inline(always)]
    fn hold_with_room<'g>(
        &self,
        probe: &SearchKey<'_, S>,
        wanted: Wanted,
        guard: &'g Guard<'_>,
    ) -> Option<Held<'g, S>> {
        let mut splits = 0;
        loop {
            let held = self.retry(|| self.hold(probe, wanted, guard))?;
            match held.at {
                Err(at) if !held.leaf.has_room(probe) => {
                    let at = place_of_split(held.leaf, at, &mut splits);
                    self.make_room(held, at, probe, guard);
                }
                _ => return Some(held),
            }
        }
    }

    #[cold]
    fn make_room<'g>(
        &self,
        held: Held<'g, S>,
        at: usize,
        probe: &SearchKey<'_, S>,
        guard: &'g Guard<'_>,
    ) {
        let parent = held.parent.filter(|parent| !parent.inner.is_full());
        if let Some(parent) = parent
            && let Ok(_lock) = parent.inner.lock().upgrade(parent.version)
        {
            let parent = Some((parent.inner, parent.index));
            self.split_leaf(held.leaf, at, parent, probe, guard, |_| ());
            return;
        }
        held.lock.unchanged();
        self.split_down(probe, guard);
    }

    pub(super) fn insert(&self, key: S::Key, value: S::Value) -> Option<S::Value> {
        let guard = self.collector.pin();
        let probe = SearchKey::new(&key);
        let head = probe.head;
        let held = self.hold_with_room(&probe, Wanted::Either, &guard)?;
        match held.at {
            Ok(at) => Some(self.replace(held, at, &probe, value, &guard)),
            Err(at) => {
                self.insert_new(held, at, (key, head), value, &guard);
                None
            }
        }
    }

    pub(super) fn insert_if_absent(&self, key: S::Key, value: S::Value) -> Result<(), S::Value> {
        let guard = self.collector.pin();
        let probe = SearchKey::new(&key);
        let head = probe.head;
        let Some(held) = self.hold_with_room(&probe, Wanted::Absent, &guard) else {
            return Err(value);
        };
        match held.at {
            Ok(_) => {
                held.lock.unchanged();
                Err(value)
            }
            Err(at) => {
                self.insert_new(held, at, (key, head), value, &guard);
                Ok(())
            }
        }
    }

    pub(super) fn update(
        &self,
        key: S::Key,
        decide: impl FnOnce(Option<&S::Value>) -> Update<S::Value>,
    ) -> Option<S::Value> {
        let guard = self.collector.pin();
        let probe = SearchKey::new(&key);
        let head = probe.head;
        let held = self.hold_with_room(&probe, Wanted::Either, &guard)?;
        match held.at {
            Ok(at) => {
                let value = held.leaf.value(at);
                // SAFETY: the value is in a leaf that this thread has locked.
                match unsafe { value.with(|value| decide(Some(value))) } {
                    Update::Put(value) => Some(self.replace(held, at, &probe, value, &guard)),
                    Update::Remove => Some(self.remove_held(held, at, &probe, &guard)),
                    Update::Keep => {
                        held.lock.unchanged();
                        None
                    }
                }
            }
            Err(at) => {
                if let Update::Put(value) = decide(None) {
                    self.insert_new(held, at, (key, head), value, &guard);
                } else {
                    held.lock.unchanged();
                }
                None
            }
        }
    }

    pub(super) fn remove(&self, key: &S::Key) -> Option<S::Value> {
        let guard = self.collector.pin();
        let probe = SearchKey::new(key);
        let held = self.retry(|| self.hold(&probe, Wanted::Present, &guard))?;
        let Ok(at) = held.at else {
            held.lock.unchanged();
            return None;
        };
        Some(self.remove_held(held, at, &probe, &guard))
    }

    #[inline]
    fn insert_new(
        &self,
        held: Held<'_, S>,
        at: usize,
        (key, head): (S::Key, u64),
        value: S::Value,
        guard: &Guard<'_>,
    ) {
        let probe = SearchKey::with_head(&key, head);
        self.note_now(held.leaf, &probe, Err(at), guard);
        let value = PackedValue::new(value);
        held.leaf.insert(at, NewKey::Own(key, head), value, guard);
        held.leaf.note_insertion(at);
        drop(held.lock);
        self.len.add(1);
    }

    #[inline]
    fn remove_held(
        &self,
        held: Held<'_, S>,
        at: usize,
        probe: &SearchKey<'_, S>,
        guard: &Guard<'_>,
    ) -> S::Value {
        let leaf = held.leaf;
        self.note_now(leaf, probe, Ok(at), guard);
        // SAFETY: the entry is in a leaf that this thread has locked.
        let entry = unsafe { leaf.entry(at).loose() };
        leaf.remove(at, guard);
        let underfull = leaf.is_underfull();
        drop(held.lock);
        self.len.add(-1);
        // SAFETY: this thread alone has just unlinked the entry, and keeps no reference to it.
        let value = unsafe {
            entry.key.retire(guard);
            entry.value.hand_out(guard)
        };
        if underfull && held.parent.is_some() {
            self.rebalance(probe, guard);
        }
        value
    }

    /// Replaces a value, and hands out the old one.
    #[inline]
    fn replace(
        &self,
        held: Held<'_, S>,
        at: usize,
        probe: &SearchKey<'_, S>,
        value: S::Value,
        guard: &Guard<'_>,
    ) -> S::Value {
        self.note_now(held.leaf, probe, Ok(at), guard);
        let old = held.leaf.value(at);
        held.leaf.set_value(at, PackedValue::new(value));
        drop(held.lock);
        // SAFETY: this thread alone has just unlinked the value, and keeps no reference to it. A
        // thread that comes to the leaf from now on restarts or sees the new value.
        unsafe { old.hand_out(guard) }
    }
}

/// Looks for a key in a leaf, and validates.
// Always inlined: left to itself, the compiler sometimes makes it a call, which is slower.
#[inline(always)]
pub(super) fn look_into<S: Spec>(
    leaf: LeafRef<'_, S>,
    version: Version,
    probe: &SearchKey<'_, S>,
) -> Result<Option<PackedValue<S>>, Restart> {
    let aim = leaf.aim(probe);
    // The values arrive while the heads are compared.
    leaf.prefetch_slots(aim.segment);
    let found = leaf.find_at(aim, probe, leaf.still(version))?;
    let value = found.ok().map(|at| leaf.value(at));
    leaf.lock().validate(version)?;
    Ok(value)
}

/// Looks into a leaf that other threads write to: at a newer version, instead of going down again.
#[cold]
fn look_again<S: Spec>(
    place: &LeafPlace<'_, S>,
    probe: &SearchKey<'_, S>,
) -> Result<Option<PackedValue<S>>, Restart> {
    let leaf = place.node;
    if place.parent.is_none() {
        // It was the root, and `moves` does not say whether it still is.
        return Err(Restart);
    }
    let version = leaf.lock().read()?;
    if leaf.moves() != place.moves {
        return Err(Restart);
    }
    // This also validates the load of `moves`.
    look_into(leaf, version, probe)
}
