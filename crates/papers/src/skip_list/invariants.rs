//! The invariants about the state of the list ([module](super)), as functions. Each panics and
//! names the invariant if it does not hold. Only a debug build calls them.
//!
//! A thread checks a node when it has made it, linked it on a further level, locked its entry or
//! marked its links, and before it retires it. None of these checks depends on the order of keys.
//! [`List::check_at_rest`] checks a list that no other thread uses.
//!
//! The other invariants are about the order of events. Tests check them:
//!
//! - 3: the loom model `a_reader_misses_nothing_that_stays`,
//! - 6: the tests of keys that lie (`tests/skip_list.rs`), and of reclamation.

use super::List;
use super::node::{BUILDING, LOCKED, MOST_LEVELS, NodeRef, REMOVED, Tower, VACANT};
use std::cmp::Ordering::Greater;
use std::collections::HashMap;
use std::{array, iter};
use tremula_index::kit::{CHANGES_ARE_CHECKED, SearchKey, Spec};
use tremula_sync::Backoff;
use tremula_sync::reclaim::Guard;

/// The nodes linked on each level.
type Levels<'g, S> = [Vec<NodeRef<'g, S>>; MOST_LEVELS];

/// Invariant 2, for a removed node whose links this thread has marked from `level` up.
#[inline]
pub(super) fn check_marked<S: Spec>(node: NodeRef<'_, S>, level: usize) {
    if CHANGES_ARE_CHECKED {
        let mut links = (level..node.height()).map(|level| node.tower().load(level));
        assert!(
            node.is_removed() && links.all(|link| link.is_marked()),
            "invariant 2 of SkipList: a link is marked before one above it, or before the removal"
        );
    }
}

/// Invariant 4, for an entry that this thread changes or unlocks.
#[inline]
pub(super) fn check_locked<S: Spec>(node: NodeRef<'_, S>) {
    if CHANGES_ARE_CHECKED {
        assert!(
            node.state() & (LOCKED | REMOVED) == LOCKED,
            "invariant 4 of SkipList: an entry is changed without its lock, or after its removal"
        );
    }
}

/// Invariant 5, for a node that this thread builds and has linked on the lowest `linked` levels.
#[inline]
pub(super) fn check_building<S: Spec>(node: NodeRef<'_, S>, linked: usize) {
    if CHANGES_ARE_CHECKED {
        let is_building = node.height() == 1 || node.state() & BUILDING != 0;
        assert!(
            is_building && node.keepers() + linked >= node.height(),
            "invariant 5 of SkipList: a level that a builder has yet to link does not keep its node"
        );
    }
}

/// Invariants 2 and 5, for a node that this thread retires.
#[inline]
pub(super) fn check_retired<S: Spec>(node: NodeRef<'_, S>) {
    debug_assert!(
        node.height() == 1 || node.keepers() == 0,
        "invariant 5 of SkipList: a node is retired that is still kept"
    );
    check_marked(node, 0);
}

impl<S: Spec> List<S> {
    fn linked<'g>(&'g self, guard: &'g Guard<'_>) -> Levels<'g, S> {
        array::from_fn(|level| {
            let follow = |tower: Tower<'g, S>| self.node(tower.load(level), guard);
            iter::successors(follow(self.base()), |node| follow(node.tower())).collect()
        })
    }

    /// Invariant 1.
    fn keys_ascend(levels: &Levels<'_, S>) {
        for (level, nodes) in levels.iter().enumerate() {
            let unmarked = nodes
                .iter()
                .filter(|node| !node.tower().load(level).is_marked());
            let unmarked: Vec<_> = unmarked.collect();
            let ascend = unmarked.is_sorted_by(|before, after| {
                before.with_key(|key| after.compare(&SearchKey::new(key)) == Greater)
            });
            assert!(
                ascend,
                "invariant 1 of SkipList: the keys of level {level} do not ascend"
            );
        }
    }

    /// Invariants 1 and 5, for the nodes linked on each level.
    fn keepers_are_levels(levels: &Levels<'_, S>) {
        let mut linked = HashMap::new();
        for (level, nodes) in levels.iter().enumerate() {
            for node in nodes {
                let (_, count) = linked.entry(node.link().address()).or_insert((*node, 0));
                *count += 1;
                assert!(
                    *count == level + 1 || node.is_removed(),
                    "invariant 1 of SkipList: a node is linked on level {level}, but not below"
                );
            }
        }
        for (node, count) in linked.into_values() {
            assert!(
                node.state() & BUILDING == 0 && node.keepers() == count,
                "invariant 5 of SkipList: a node on {count} levels is kept by {}",
                node.keepers()
            );
        }
    }

    /// Invariant 2, for a node at rest.
    fn marked_is_what_was_removed(node: NodeRef<'_, S>) {
        let mut links = (0..node.height()).map(|level| node.tower().load(level));
        assert!(
            links.all(|link| link.is_marked() == node.is_removed()),
            "invariant 2 of SkipList: a link is marked and its node not removed, or neither"
        );
    }

    /// Invariant 4, for the nodes linked on the lowest level at rest.
    fn entries_are_present_and_counted(&self, nodes: &[NodeRef<'_, S>]) {
        let present = nodes.iter().filter(|node| !node.is_removed());
        assert!(
            present
                .clone()
                .all(|node| node.state() & (LOCKED | VACANT) == 0),
            "invariant 4 of SkipList: an entry is locked or vacant, and no thread uses the list"
        );
        let (present, len) = (present.count(), self.len.sum());
        assert!(
            isize::try_from(present) == Ok(len),
            "invariant 4 of SkipList: {present} entries are present, and {len} are counted"
        );
    }

    /// Panics, and names the invariant, if an invariant does not hold. No other thread may use the
    /// list, except its own thread, whose tasks this waits for.
    pub(super) fn check_at_rest(&self) {
        let backoff = Backoff::new();
        while self
            .backlog
            .as_ref()
            .is_some_and(|backlog| backlog.len() > 0)
        {
            backoff.wait();
        }
        let guard = &self.collector.pin();
        let levels = self.linked(guard);
        Self::keys_ascend(&levels);
        Self::keepers_are_levels(&levels);
        for node in levels.iter().flatten() {
            Self::marked_is_what_was_removed(*node);
        }
        self.entries_are_present_and_counted(&levels[0]);
    }

    /// See [`SkipList::linked_keys`](super::SkipList::linked_keys).
    #[cfg(loom)]
    pub(super) fn linked_keys(&self) -> [Vec<S::Key>; MOST_LEVELS] {
        let guard = self.collector.pin();
        let levels = self.linked(&guard);
        Self::keepers_are_levels(&levels);
        levels.map(|nodes| {
            let keys = nodes.iter().map(|node| node.with_key(S::Key::clone));
            keys.collect()
        })
    }
}
