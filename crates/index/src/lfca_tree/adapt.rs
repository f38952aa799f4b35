//! Changing the grain: split where it is contended, join where it is not.
//!
//! A join, of the base node `main` with its neighbour on the other side of their route node
//! `parent`, goes in steps that any thread can help with:
//!
//! ```text
//!  secure    main        →  the same, as `Main` of the join
//!            neighbour   →  the same, as `Neighbour` of the join
//!            parent, grandparent: marked with the join
//!  commit    state: preparing → committed (or aborted, by anybody in whose way it is)
//!  complete  neighbour   →  both contents, as `Neighbour` of the join
//!            grandparent: its link to parent → parent's other child
//!            grandparent: the mark is taken away (the parent's never is)
//!            state: committed → done, by one thread, which retires what was unlinked
//! ```

use super::Tree;
use super::descend::Position;
use super::node::{BaseNode, BaseRef, Link, Node, Retired, Role, RouteNode, allocate, free, route};
use crate::contract::Direction;
use crate::key::KeyHead;
#[cfg(any(loom, shuttle))]
use crate::kit::SearchKey;
use crate::kit::{Spec, on_unwind};
use std::ptr::{self, NonNull};
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;

/// What the tree has decided so far. Written only where the shape changes or an operation has to
/// start again; all accesses are relaxed, the figures order nothing.
#[derive(Default)]
pub(super) struct Adaptations {
    pub(super) splits: AtomicU64,
    pub(super) joins: AtomicU64,
    pub(super) aborted_joins: AtomicU64,
    pub(super) retries: AtomicU64,
    /// Queries that had to write their range bases.
    pub(super) frozen_ranges: AtomicU64,
}

pub(super) fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

const PREPARING: u32 = 0;
const ABORTED: u32 = 1;
const COMMITTED: u32 = 2;
const DONE: u32 = 3;

/// A join, for all who help with it.
pub(super) struct Join<S: Spec> {
    state: AtomicU32,
    /// The fields below are written before the state becomes committed, and read by those who have
    /// seen that it is: their accesses are relaxed. The nodes are not retired before it is done.
    main: AtomicPtr<Node<S>>,
    neighbour: AtomicPtr<Node<S>>,
    parent: AtomicPtr<Node<S>>,
    /// Null if the parent is the root.
    grandparent: AtomicPtr<Node<S>>,
    /// What takes the parent's place.
    sibling: AtomicPtr<Node<S>>,
    /// What takes the neighbour's place.
    joined: AtomicPtr<Node<S>>,
}

impl<S: Spec> Join<S> {
    fn new() -> Self {
        let null = || AtomicPtr::new(ptr::null_mut());
        Self {
            state: AtomicU32::new(PREPARING),
            main: null(),
            neighbour: null(),
            parent: null(),
            grandparent: null(),
            sibling: null(),
            joined: null(),
        }
    }

    fn state(&self) -> u32 {
        // SeqCst: as `Link::load`.
        self.state.load(Ordering::SeqCst)
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.state() == ABORTED
    }

    pub(super) fn is_committed(&self) -> bool {
        self.state() == COMMITTED
    }

    pub(super) fn is_done(&self) -> bool {
        self.state() == DONE
    }

    /// Makes this the state, if it is `from` now.
    fn advance(&self, from: u32, to: u32) -> bool {
        // SeqCst: as `Link::load`.
        self.state
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }
}

fn read<T>(field: &AtomicPtr<T>) -> Option<NonNull<T>> {
    NonNull::new(field.load(Ordering::Relaxed))
}

fn write<T>(field: &AtomicPtr<T>, value: NonNull<T>) {
    field.store(value.as_ptr(), Ordering::Relaxed);
}

impl<S: Spec> RouteNode<S> {
    /// Marks the node with a join, if it has no mark.
    fn mark(&self, join: &Arc<Join<S>>) -> bool {
        self.join
            .compare_exchange(
                ptr::null_mut(),
                Arc::as_ptr(join).cast_mut(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Takes away the mark of this join.
    fn unmark(&self, join: &Arc<Join<S>>) {
        // That it fails means that another thread has done it.
        let _ = self.join.compare_exchange(
            Arc::as_ptr(join).cast_mut(),
            ptr::null_mut(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
    }
}

impl<S: Spec> Tree<S> {
    /// The statistics of a base node that takes the place of this one.
    #[inline]
    pub(super) fn statistics(&self, base: &BaseNode<S>, was_contended: bool) -> i32 {
        let config = &self.config;
        let change = if was_contended {
            config.contended
        } else {
            config.uncontended
        };
        // Beyond the limits they would only take longer to come back.
        base.statistics
            .saturating_add(change)
            .min(config.split_above.saturating_add(1))
            .max(config.join_below.saturating_sub(1))
    }

    /// Splits or joins a base node whose statistics are beyond a limit.
    #[inline]
    pub(super) fn adapt_if_asked(&self, base: BaseRef<'_, S>, guard: &Guard<'_>) {
        if base.statistics > self.config.split_above {
            self.split(base, guard);
        } else if base.statistics < self.config.join_below && base.parent.is_some() {
            self.join(base, guard);
        }
    }

    /// Puts a route node with two base nodes in the place of a base node. If it cannot be split,
    /// its statistics start again from 0.
    #[cold]
    fn split(&self, base: BaseRef<'_, S>, guard: &Guard<'_>) {
        if !base.is_replaceable() {
            return;
        }
        let depth = match (base.get().parent, base.parent()) {
            (Some(node), Some(parent)) => match self.parent_of(node, &parent.key, guard) {
                Ok((_, depth)) => depth,
                Err(_) => return,
            },
            _ => 0,
        };
        let parts = (depth < self.config.max_route_depth)
            .then(|| base.view().split())
            .flatten();
        let Some((lower, upper, key)) = parts else {
            if self
                .replace(base, base.again(0, Role::Normal), guard)
                .is_some()
            {
                // SAFETY: we unlinked it; its contents are the new one's.
                unsafe { self.retire(base, Retired::NOTHING, guard) };
            }
            return;
        };
        let route = allocate(Node::Route(RouteNode {
            head: S::Head::head(&key),
            key,
            left: Link::new(ptr::null_mut()),
            right: Link::new(ptr::null_mut()),
            join: AtomicPtr::new(ptr::null_mut()),
        }));
        let parts = [lower.into_root(), upper.into_root()];
        let bases = parts.map(|contents| {
            allocate(Node::Base(BaseNode {
                contents,
                statistics: 0,
                parent: Some(route),
                role: Role::Normal,
            }))
        });
        // SAFETY: the route node was made above.
        let new = unsafe { self::route(route) };
        new.left.prepare(bases[0]);
        new.right.prepare(bases[1]);
        if self.link_to(base).swing(base.as_ptr(), route) {
            count(&self.adaptations.splits);
            let retired = Retired::contents(base.contents);
            // SAFETY: we unlinked it, and its parts have counts of their own.
            unsafe { self.retire(base, retired, guard) };
        } else {
            // SAFETY: nobody has seen any of them.
            unsafe {
                for node in [bases[0], bases[1], route] {
                    free(node);
                }
                for contents in parts {
                    drop(contents.own());
                }
            }
        }
    }

    /// Joins a base node with its neighbour on the other side of its parent. Returns whether it
    /// did; if not, another thread was in the way, or the base node has been replaced.
    pub(super) fn join(&self, base: BaseRef<'_, S>, guard: &Guard<'_>) -> bool {
        let (Some(parent), true) = (base.parent(), base.is_replaceable()) else {
            return false;
        };
        let (is_left, sibling, nearest) = if parent.left.leads_to(base.as_ptr()) {
            (true, &parent.right, Direction::Ascending)
        } else {
            (false, &parent.left, Direction::Descending)
        };
        let neighbour = Self::locate_below(sibling, &Position::end(nearest), guard).base;
        if !neighbour.is_replaceable() {
            self.help(neighbour, guard);
            return false;
        }
        let join = Arc::new(Join::new());
        // If this comes to nothing, its statistics start again from 0.
        let main = base.again(0, Role::Main(Arc::clone(&join)));
        let Some(main) = self.replace(base, main, guard) else {
            return false;
        };
        // SAFETY: we unlinked it; its contents are the new one's.
        unsafe { self.retire(base, Retired::NOTHING, guard) };

        let abort = || {
            join.advance(PREPARING, ABORTED);
            count(&self.adaptations.aborted_joins);
        };
        let marked = neighbour.again(neighbour.statistics, Role::Neighbour(Arc::clone(&join)));
        let Some(marked) = self.replace(neighbour, marked, guard) else {
            abort();
            return false;
        };
        // SAFETY: as above.
        unsafe { self.retire(neighbour, Retired::NOTHING, guard) };
        if !parent.mark(&join) {
            abort();
            return false;
        }
        let give_up = || {
            parent.unmark(&join);
            abort();
        };
        let Some(parent_node) = main.get().parent else {
            unreachable!("the main node has the parent of the base node");
        };
        let above = on_unwind(give_up, || self.parent_of(parent_node, &parent.key, guard));
        let Ok((grandparent, _)) = above else {
            give_up();
            return false;
        };
        // SAFETY: it was linked when it was found.
        let above = grandparent.map(|node| unsafe { route(node) });
        if above.is_some_and(|above| !above.mark(&join)) {
            give_up();
            return false;
        }

        let other = sibling.load();
        let next_to_it = other == marked.as_ptr();
        let [lower, upper] = if is_left {
            [main, marked]
        } else {
            [marked, main]
        };
        let joined = allocate(Node::Base(BaseNode {
            contents: lower.view().join(upper.view()).into_root(),
            statistics: 0,
            parent: if next_to_it {
                grandparent
            } else {
                marked.get().parent
            },
            role: Role::Neighbour(Arc::clone(&join)),
        }));
        write(&join.main, main.as_ptr());
        write(&join.neighbour, marked.as_ptr());
        write(&join.parent, parent_node);
        if let Some(grandparent) = grandparent {
            write(&join.grandparent, grandparent);
        }
        write(&join.sibling, if next_to_it { joined } else { other });
        write(&join.joined, joined);
        if !join.advance(PREPARING, COMMITTED) {
            // SAFETY: nobody has seen it.
            unsafe {
                if let Node::Base(base) = joined.as_ref() {
                    drop(base.contents.own());
                }
                free(joined);
            }
            if let Some(above) = above {
                above.unmark(&join);
            }
            give_up();
            return false;
        }
        self.complete(&join, guard);
        true
    }

    /// Carries out a join that is committed, as far as others have not.
    fn complete(&self, join: &Arc<Join<S>>, guard: &Guard<'_>) {
        let fields = [
            &join.main,
            &join.neighbour,
            &join.parent,
            &join.sibling,
            &join.joined,
        ];
        let [
            Some(main),
            Some(neighbour),
            Some(parent),
            Some(sibling),
            Some(joined),
        ] = fields.map(read)
        else {
            unreachable!("a join that is committed knows its nodes");
        };
        // SAFETY: the state was committed when this thread, pinned, looked: they had not been
        // retired.
        let [main, neighbour] = [main, neighbour].map(|node| unsafe { BaseRef::of(node, guard) });
        self.link_to(neighbour).swing(neighbour.as_ptr(), joined);
        // SAFETY: as above; a grandparent stays linked while it has the mark.
        let grandparent = read(&join.grandparent).map(|node| unsafe { route(node) });
        match grandparent {
            None => {
                self.root.swing(parent, sibling);
            }
            Some(above) => {
                // One of them leads to the parent, or neither if another thread was faster.
                if !above.left.swing(parent, sibling) {
                    above.right.swing(parent, sibling);
                }
                above.unmark(join);
            }
        }
        if !join.advance(COMMITTED, DONE) {
            return;
        }
        count(&self.adaptations.joins);
        // SAFETY: no link leads to them any more, their contents are the joined one's by counts of
        // its own, and only one thread comes here.
        unsafe {
            self.retire(main, Retired::contents(main.contents), guard);
            self.retire(neighbour, Retired::contents(neighbour.contents), guard);
            guard.defer_unchecked(move || free(parent));
        }
    }

    /// Does what has to be done before a base node can be replaced that is not replaceable.
    #[cold]
    pub(super) fn help(&self, base: BaseRef<'_, S>, guard: &Guard<'_>) {
        count(&self.adaptations.retries);
        match &base.get().role {
            Role::Normal => {}
            Role::Main(join) | Role::Neighbour(join) => {
                join.advance(PREPARING, ABORTED);
                if join.is_committed() {
                    self.complete(join, guard);
                }
            }
            Role::Range(storage) => {
                self.freeze(storage, guard);
                if storage.has_removed() {
                    self.clear(base, storage, guard);
                }
            }
            Role::Held(_) => tremula_sync::Backoff::new().wait(),
        }
    }
}

/// Adaptation at will, for the checkers: they explore what happens meanwhile, not what leads to
/// it.
#[cfg(any(loom, shuttle))]
impl<S: Spec> Tree<S> {
    /// Splits the base node that is responsible for `key`, if nobody is in the way and it has two
    /// entries.
    pub(super) fn split_now(&self, key: &S::Key) {
        let guard = &self.collector.pin();
        let place = self.locate(&Position::At(SearchKey::new(key)), guard);
        self.split(place.base, guard);
    }

    /// Joins the base node that is responsible for `key` with its neighbour, if nobody is in the
    /// way. Returns whether it did.
    pub(super) fn join_now(&self, key: &S::Key) -> bool {
        let guard = &self.collector.pin();
        let place = self.locate(&Position::At(SearchKey::new(key)), guard);
        self.join(place.base, guard)
    }
}
