//! Adapting the grain: splits where there is contention, joins where there is not.
//!
//! A join unites the base node `main` with its neighbour on the other side of their route node
//! `parent`. One thread secures the nodes and commits the join. Any thread can abort it before, and
//! help to complete it after:
//!
//! ```text
//!  secure    main        →  the same contents, with the role `Main` of the join
//!            neighbour   →  the same contents, with the role `Neighbour` of the join
//!            parent, grandparent: marked with the join
//!  commit    state: preparing → committed (or aborted, by any thread that the join obstructs)
//!  complete  neighbour   →  the contents of both, with the role `Neighbour` of the join
//!            grandparent: its link to parent → the other child of parent
//!            state: committed → done, by one thread, which removes the mark of grandparent
//!            (that of parent stays) and retires what was unlinked
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

/// Counts what the tree has decided so far. Threads write it only where the shape changes or an
/// operation starts again. All accesses are relaxed: the figures order nothing.
#[derive(Default)]
pub(super) struct Adaptations {
    pub(super) splits: AtomicU64,
    pub(super) joins: AtomicU64,
    pub(super) aborted_joins: AtomicU64,
    pub(super) retries: AtomicU64,
    /// Queries that froze their range.
    pub(super) frozen_ranges: AtomicU64,
}

pub(super) fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

const PREPARING: u32 = 0;
const ABORTED: u32 = 1;
const COMMITTED: u32 = 2;
const DONE: u32 = 3;

/// A join, shared by all threads that help with it.
pub(super) struct Join<S: Spec> {
    state: AtomicU32,
    /// The fields below are written before the state becomes committed, and read only by threads
    /// that have seen that it is: their accesses are relaxed. The nodes are retired only after the
    /// state has become done.
    main: AtomicPtr<Node<S>>,
    neighbour: AtomicPtr<Node<S>>,
    parent: AtomicPtr<Node<S>>,
    /// Null if the parent is the root.
    grandparent: AtomicPtr<Node<S>>,
    /// What replaces the parent.
    sibling: AtomicPtr<Node<S>>,
    /// What replaces the neighbour.
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

    /// Changes the state from `from` to `to`. Returns whether it was `from`.
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
    /// Marks the node with a join, if it has no mark. Returns whether it did.
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

    /// Removes the mark of this join.
    fn unmark(&self, join: &Arc<Join<S>>) {
        // If this fails, another thread has removed it.
        let _ = self.join.compare_exchange(
            Arc::as_ptr(join).cast_mut(),
            ptr::null_mut(),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
    }
}

impl<S: Spec> Tree<S> {
    /// The statistics of a base node that replaces this one.
    #[inline]
    pub(super) fn statistics(&self, base: &BaseNode<S>, was_contended: bool) -> i32 {
        let config = &self.config;
        let change = if was_contended {
            config.contended
        } else {
            config.uncontended
        };
        // Statistics far beyond a limit would only take longer to come back.
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

    /// Replaces a base node by a route node with two base nodes. If it cannot be split, its
    /// statistics start again from 0.
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
                // SAFETY: this thread unlinked it; its contents belong to the new base node.
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
        Self::check_split(route);
        if self.link_to(base).swing(base.as_ptr(), route) {
            count(&self.adaptations.splits);
            let retired = Retired::contents(base.contents);
            // SAFETY: this thread unlinked it, and its parts have counts of their own.
            unsafe { self.retire(base, retired, guard) };
        } else {
            // SAFETY: no other thread has seen any of them.
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
    /// did: it does not if another thread interferes or has replaced the base node.
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
        // If the join is aborted, the statistics of the base node start again from 0.
        let main = base.again(0, Role::Main(Arc::clone(&join)));
        let Some(main) = self.replace(base, main, guard) else {
            return false;
        };
        // SAFETY: this thread unlinked it; its contents belong to the new base node.
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
        // SAFETY: this thread unlinked it; its contents belong to the new base node.
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
        // SAFETY: it was linked when `parent_of` found it, during this pin.
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
            // SAFETY: no other thread has seen it.
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

    /// Carries out the steps of a committed join that other threads have not carried out.
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
        // SAFETY: this thread saw, during this pin, that the state was committed: the nodes had not
        // been retired then.
        let [main, neighbour] = [main, neighbour].map(|node| unsafe { BaseRef::of(node, guard) });
        self.link_to(neighbour).swing(neighbour.as_ptr(), joined);
        // SAFETY: a grandparent keeps the mark until the join is done, and so stays linked until
        // then. This thread saw, during this pin, that the join was not done.
        let grandparent = read(&join.grandparent).map(|node| unsafe { route(node) });
        match grandparent {
            None => {
                self.root.swing(parent, sibling);
            }
            Some(above) => {
                // One of the links leads to the parent; or neither, if another thread was faster.
                if !above.left.swing(parent, sibling) {
                    above.right.swing(parent, sibling);
                }
            }
        }
        self.check_join(join, joined, parent, guard);
        if !join.advance(COMMITTED, DONE) {
            return;
        }
        // Not before: without the mark, another join could unlink the grandparent, and a thread
        // that is pinned only then and sees this join committed would use it.
        if let Some(above) = grandparent {
            above.unmark(join);
        }
        count(&self.adaptations.joins);
        // SAFETY: no link leads to them any more, the joined base node has counts of its own of
        // their contents, and only one thread comes here.
        unsafe {
            self.retire(main, Retired::contents(main.contents), guard);
            self.retire(neighbour, Retired::contents(neighbour.contents), guard);
            guard.defer_unchecked(move || free(parent));
        }
    }

    /// Helps the operation that keeps a base node from being replaced.
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

/// Adaptation on demand, for the checkers: they explore what happens during it, not what leads to
/// it.
#[cfg(any(loom, shuttle))]
impl<S: Spec> Tree<S> {
    /// Does what [`LfcaTree::split_now`](super::LfcaTree::split_now) does.
    pub(super) fn split_now(&self, key: &S::Key) {
        let guard = &self.collector.pin();
        let place = self.locate(&Position::At(SearchKey::new(key)), guard);
        self.split(place.base, guard);
    }

    /// Does what [`LfcaTree::join_now`](super::LfcaTree::join_now) does.
    pub(super) fn join_now(&self, key: &S::Key) -> bool {
        let guard = &self.collector.pin();
        let place = self.locate(&Position::At(SearchKey::new(key)), guard);
        self.join(place.base, guard)
    }
}
