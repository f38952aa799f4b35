//! Lookups and changes of single entries.

use super::Tree;
use super::contents::{Edit, Owned, OwnedEntry, Path, Word};
use super::descend::Position;
use super::node::{BaseRef, Retired, Role};
use crate::contract::{Direction, Update};
use crate::kit::{CHANGES_ARE_CHECKED, Decide, SearchKey, Sought, Spec, on_unwind};
use std::mem::needs_drop;
use tremula_sync::atomic::{AtomicBool, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Arc, Backoff};

impl<S: Spec> Tree<S> {
    /// The value under a key. It lives while the thread is pinned.
    #[inline]
    pub(super) fn lookup<'k>(
        &self,
        key: impl Into<Sought<'k, S::Key>>,
        guard: &Guard<'_>,
    ) -> Option<Word<S::Value>> {
        let probe = SearchKey::<S>::new(key);
        let base = self.locate(&Position::At(probe), guard).base;
        if let Role::Range(storage) = &base.get().role
            && storage.has_removed()
            && storage.range().has(probe.key)
        {
            return None;
        }
        base.view().get(&probe)
    }

    /// Runs `work` with the key and, unless the head is the key, a count of its word.
    #[inline]
    pub(super) fn with_owned<R>(key: S::Key, work: impl FnOnce(&S::Key, Owned<S::Key>) -> R) -> R {
        if S::HEAD_IS_KEY {
            return work(&key, Owned::none());
        }
        let owned = Owned::new(key);
        let kept = owned.clone();
        // SAFETY: `kept` has a count.
        unsafe { kept.word().with(|key| work(key, owned)) }
    }

    /// Stores a value under a key and returns the value that it replaced. If the key has a value
    /// and `replaces` is false, it returns `value` as an error.
    #[inline]
    pub(super) fn put(
        &self,
        key: &S::Key,
        word: Owned<S::Key>,
        value: Owned<S::Value>,
        replaces: bool,
        guard: &Guard<'_>,
    ) -> Result<Option<S::Value>, Owned<S::Value>> {
        let probe = SearchKey::new(key);
        let mut was_contended = false;
        loop {
            let base = self.locate(&Position::At(probe), guard).base;
            if base.is_replaceable() {
                let mut path = base.view().find(&probe);
                let old = path.value();
                if old.is_some() && !replaces {
                    return Err(value);
                }
                let edit = path.put(&word, &value);
                match self.try_edit(base, &edit, was_contended, guard) {
                    Some(new) => {
                        if old.is_none() {
                            self.len.add(1);
                        }
                        let put = Some((word, value));
                        return Ok(self.finish(base, new, edit, put, old, guard));
                    }
                    None => edit.abort(),
                }
            } else {
                self.help(base, guard);
            }
            was_contended = true;
        }
    }

    /// Removes a key and returns its value.
    #[inline]
    pub(super) fn take(&self, key: &S::Key, guard: &Guard<'_>) -> Option<S::Value> {
        let probe = SearchKey::new(key);
        let mut was_contended = false;
        loop {
            let base = self.locate(&Position::At(probe), guard).base;
            if base.is_replaceable() {
                let mut path = base.view().find(&probe);
                let old = Some(path.value()?);
                let edit = path.remove();
                match self.try_edit(base, &edit, was_contended, guard) {
                    Some(new) => {
                        self.len.add(-1);
                        return self.finish(base, new, edit, None, old, guard);
                    }
                    None => edit.abort(),
                }
            } else {
                self.help(base, guard);
            }
            was_contended = true;
        }
    }

    /// Removes the first entry in a direction. An empty base node at that end is first joined with
    /// its neighbour. So the tree is found empty only when its only base node is, at one moment.
    pub(super) fn pop(
        &self,
        direction: Direction,
        guard: &Guard<'_>,
    ) -> Option<(S::Key, S::Value)> {
        let backoff = Backoff::new();
        let mut was_contended = false;
        loop {
            let base = self.locate(&Position::end(direction), guard).base;
            if base.is_replaceable() {
                if base.view().is_empty() {
                    base.get().parent?;
                    if !self.join(base, guard) {
                        backoff.wait();
                    }
                    continue;
                }
                let mut path = base.view().find_end(direction);
                let (key, old) = path.entry()?;
                let edit = path.remove();
                match self.try_edit(base, &edit, was_contended, guard) {
                    Some(new) => {
                        self.len.add(-1);
                        let value = self.finish(base, new, edit, None, Some(old), guard);
                        return value.map(|value| (key, value));
                    }
                    None => edit.abort(),
                }
            } else {
                self.help(base, guard);
            }
            was_contended = true;
        }
    }

    /// Calls `decide` once with the value under a key and applies its decision. The base node is
    /// held meanwhile: other threads can read it, but not replace it.
    pub(super) fn decide(
        &self,
        key: &S::Key,
        word: Owned<S::Key>,
        decide: &mut Decide<'_, S::Value>,
        guard: &Guard<'_>,
    ) -> Option<S::Value> {
        let probe = SearchKey::new(key);
        let (held, mut path) = self.hold(&probe, guard);
        let old = path.value();
        let decision = match old {
            // SAFETY: it is in a base node that was linked during this pin.
            Some(old) => unsafe { old.with(|old| decide(Some(old))) },
            None => decide(None),
        };
        let (edit, put) = match (decision, old) {
            (Update::Keep, _) | (Update::Remove, None) => return None,
            (Update::Remove, Some(_)) => (path.remove(), None),
            (Update::Put(value), _) => {
                let value = Owned::new(value);
                (path.put(&word, &value), Some((word, value)))
            }
        };
        let is_put = put.is_some();
        let new = held.base.with(edit.root(), held.base.statistics);
        let Some(new) = self.replace(held.base, new, guard) else {
            unreachable!("nobody else replaces a base node that is held");
        };
        self.len
            .add(isize::from(is_put) - isize::from(old.is_some()));
        let base = held.base;
        drop(held);
        self.finish(base, new, edit, put, old, guard)
    }

    /// Holds the base node that is responsible for a key, and returns the path to the key in it.
    fn hold<'g>(
        &'g self,
        probe: &SearchKey<'_, S>,
        guard: &'g Guard<'_>,
    ) -> (Hold<'g, S>, Path<'g, S>) {
        let backoff = Backoff::new();
        let mut was_contended = false;
        loop {
            let base = self.locate(&Position::At(*probe), guard).base;
            if base.is_replaceable() {
                let path = base.view().find(probe);
                let released = Arc::new(AtomicBool::new(false));
                let statistics = self.statistics(base.get(), was_contended);
                let held = base.again(statistics, Role::Held(Arc::clone(&released)));
                if let Some(held) = self.replace(base, held, guard) {
                    // SAFETY: this thread unlinked it; its contents belong to the new base node.
                    unsafe { self.retire(base, Retired::NOTHING, guard) };
                    let hold = Hold {
                        base: held,
                        released,
                    };
                    return (hold, path);
                }
            } else {
                self.help(base, guard);
                backoff.wait();
            }
            was_contended = true;
        }
    }

    /// Replaces a base node by one with the edited tree.
    #[inline]
    fn try_edit<'g>(
        &'g self,
        base: BaseRef<'g, S>,
        edit: &Edit<'_, 'g, S>,
        was_contended: bool,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, S>> {
        let statistics = self.statistics(base.get(), was_contended);
        self.replace(base, base.with(edit.root(), statistics), guard)
    }

    /// Ends an operation that has replaced a base node by one with an edited tree. Returns the
    /// value that the edit took from the tree, if any: the value itself if nothing else has it, and
    /// otherwise a copy.
    #[inline]
    fn finish(
        &self,
        base: BaseRef<'_, S>,
        new: BaseRef<'_, S>,
        edit: Edit<'_, '_, S>,
        put: Option<OwnedEntry<S>>,
        old: Option<Word<S::Value>>,
        guard: &Guard<'_>,
    ) -> Option<S::Value> {
        if CHANGES_ARE_CHECKED && guard.is_alone() {
            edit.check_moved();
        }
        // SAFETY: the caller has replaced the base node; the words are those of the edit.
        let (nodes, contents) = unsafe { edit.commit(put) };
        let retired = Retired { nodes, contents };
        match old {
            Some(old) if needs_drop::<S::Value>() => {
                Some(self.finish_with(base, new, retired, old, guard))
            }
            _ => {
                // SAFETY: the caller unlinked it; nothing else owns what the edit returned.
                unsafe { self.retire(base, retired, guard) };
                self.adapt_if_asked(new, guard);
                // A copy is as good as the value: it needs no drop.
                // SAFETY: what is in the tree during a pin is not dropped before its end.
                old.map(|old| unsafe { old.with(S::Value::clone) })
            }
        }
    }

    /// Does the same if the value needs a drop, and so must be the value itself where possible.
    fn finish_with(
        &self,
        base: BaseRef<'_, S>,
        new: BaseRef<'_, S>,
        retired: Retired<S>,
        old: Word<S::Value>,
        guard: &Guard<'_>,
    ) -> S::Value {
        // SAFETY: the tree had a count of it during this pin.
        let value = unsafe { Owned::share(old) };
        // SAFETY: the caller unlinked the base node; nothing else owns what the edit returned. It
        // is retired only once: below, or when the adaptation unwinds.
        let retire = || unsafe { self.retire(base, retired, guard) };
        on_unwind(retire, || self.adapt_if_asked(new, guard));
        if guard.is_alone() {
            // SAFETY: no other thread has been inside since the base node was unlinked, none can
            // find it later, and this thread, whose adaptation is over, does not use it again.
            unsafe { Self::free_retired(base.as_ptr(), retired) };
        } else {
            retire();
        }
        value.hand_out()
    }
}

/// A base node that only this thread may replace. Dropping the hold releases the base node.
struct Hold<'g, S: Spec> {
    base: BaseRef<'g, S>,
    released: Arc<AtomicBool>,
}

impl<S: Spec> Drop for Hold<'_, S> {
    fn drop(&mut self) {
        // SeqCst: see `Link::load`.
        self.released.store(true, Ordering::SeqCst);
    }
}
