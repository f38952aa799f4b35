//! Finding places in the list: with what is needed to link there, or for reading alone.

use super::SkipList;
use super::node::{Link, MOST_LEVELS, NodeRef, Probe, Tower};
use std::cmp::Ordering::{Greater, Less};
use std::ops::Bound;
use tremula_index::key::KeyHead;
use tremula_index::{KeyRange, Storable};
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::reclaim::Guard;

/// A place between the keys: in front of all nodes that it does not count as before it.
pub(super) enum Place<'k, K, H> {
    /// In front of every key.
    Start,
    /// In front of the first key not below this one.
    At(Probe<'k, K, H>),
    /// In front of the first key above this one.
    Behind(Probe<'k, K, H>),
    /// Behind every key.
    End,
}

impl<'k, K, H> Place<'k, K, H>
where
    K: Ord + Storable,
    H: KeyHead<K>,
{
    /// In front of a key.
    pub(super) fn at(key: &'k K) -> Self {
        Self::At(Probe::new(key))
    }

    /// Where a range begins.
    pub(super) fn low(range: &KeyRange<'k, K>) -> Self {
        match range.low {
            Bound::Included(key) => Self::At(Probe::new(key)),
            Bound::Excluded(key) => Self::Behind(Probe::new(key)),
            Bound::Unbounded => Self::Start,
        }
    }

    /// Where a range ends.
    pub(super) fn high(range: &KeyRange<'k, K>) -> Self {
        match range.high {
            Bound::Included(key) => Self::Behind(Probe::new(key)),
            Bound::Excluded(key) => Self::At(Probe::new(key)),
            Bound::Unbounded => Self::End,
        }
    }

    /// Whether a node lies in front of this place.
    #[inline]
    pub(super) fn is_behind<V>(&self, node: NodeRef<'_, K, V, H>) -> bool
    where
        V: Storable,
    {
        match self {
            Self::Start => false,
            Self::At(probe) => node.compare(probe) == Less,
            Self::Behind(probe) => node.compare(probe) != Greater,
            Self::End => true,
        }
    }
}

/// The nodes in front of a place and behind it on some level, where there are any.
pub(super) type Neighbours<'g, K, V, H> =
    (Option<NodeRef<'g, K, V, H>>, Option<NodeRef<'g, K, V, H>>);

/// What lies around a place on every level.
pub(super) struct Path<'g, K, V, H> {
    /// The last towers in front of it.
    pub(super) before: [Tower<'g, K, V, H>; MOST_LEVELS],
    /// Where the links of these led.
    pub(super) after: [Link<K, V, H>; MOST_LEVELS],
    /// The node of the very key that the place is at, once somebody has looked.
    pub(super) found: Option<NodeRef<'g, K, V, H>>,
}

impl<K, V, H> SkipList<K, V, H>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    pub(super) fn base(&self) -> Tower<'_, K, V, H> {
        Tower::base(&self.base)
    }

    /// How many levels are in use.
    #[inline]
    pub(super) fn levels(&self) -> usize {
        // Relaxed: a hint. Levels above are found empty, levels missed are only slower.
        self.levels.load(Relaxed)
    }

    /// The node that a link leads to.
    #[inline]
    pub(super) fn node<'g>(
        &self,
        link: Link<K, V, H>,
        _: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, K, V, H>> {
        // SAFETY: links come from towers of this list, read under this guard.
        unsafe { link.node() }
    }

    /// The towers and links around `place` on every level. Unlinks the removed nodes on its way:
    /// after it, if keys are ordered, nothing that was marked when it began is linked in front of
    /// the place or, for a place at a key, has that key. (A node is linked in front of older ones
    /// of its key, since these are unlinked first.)
    pub(super) fn path<'g>(
        &'g self,
        place: &Place<'_, K, H>,
        guard: &'g Guard<'_>,
    ) -> Path<'g, K, V, H> {
        'again: loop {
            let mut path = Path {
                before: [self.base(); MOST_LEVELS],
                after: [Link::end(); MOST_LEVELS],
                found: None,
            };
            let mut before = self.base();
            for level in (0..self.levels()).rev() {
                let mut link = before.load(level);
                if link.is_marked() {
                    // The tower that the search came down was removed: what is new on this level
                    // may not be behind it.
                    continue 'again;
                }
                while let Some(node) = self.node(link, guard) {
                    before.prefetch_below(level);
                    let next = node.tower().load(level);
                    if next.is_marked() {
                        let next = next.unmarked();
                        if !before.exchange(level, link, next) {
                            continue 'again;
                        }
                        // At once: what follows may panic.
                        self.release(node, guard);
                        link = next;
                    } else if place.is_behind(node) {
                        (before, link) = (node.tower(), next);
                    } else {
                        break;
                    }
                }
                path.before[level] = before;
                path.after[level] = link;
            }
            return path;
        }
    }

    /// Goes down to a level: the last node in front of `place` there (`None`: the level begins
    /// in front of it), and the one behind, whose entries may be absent. Writes nothing.
    pub(super) fn descend<'g>(
        &'g self,
        place: &Place<'_, K, H>,
        to: usize,
        guard: &'g Guard<'_>,
    ) -> Neighbours<'g, K, V, H> {
        let mut before = self.base();
        let mut last = None;
        let mut behind = None;
        for level in (to..self.levels().max(to + 1)).rev() {
            // It may be marked by now: what was behind the node when the search came to it
            // still is (invariant 3).
            let mut link = before.load(level);
            let above = behind;
            behind = None;
            while let Some(node) = self.node(link, guard) {
                if Some(node) == above {
                    // Compared already, on the level above.
                    behind = above;
                    break;
                }
                before.prefetch_below(level);
                if !place.is_behind(node) {
                    behind = Some(node);
                    break;
                }
                let next = node.tower().load(level);
                if next.is_marked() {
                    link = next;
                    continue;
                }
                (before, last, link) = (node.tower(), Some(node), next);
            }
        }
        (last, behind)
    }

    /// The node behind this one on the lowest level.
    #[inline]
    pub(super) fn behind<'g>(
        &self,
        node: NodeRef<'g, K, V, H>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, K, V, H>> {
        self.node(node.tower().load(0), guard)
    }

    /// Checks invariant 5 of a quiescent list, and returns the keys of the nodes that are linked on
    /// each level.
    ///
    /// # Panics
    ///
    /// A node is not kept by as many levels as it is linked on.
    #[cfg(loom)]
    pub fn linked_keys(&self) -> [Vec<K>; MOST_LEVELS] {
        let guard = self.collector.pin();
        let mut linked = std::collections::HashMap::new();
        let keys = std::array::from_fn(|level| {
            let mut link = self.base().load(level);
            let mut keys = Vec::new();
            while let Some(node) = self.node(link, &guard) {
                keys.push(node.with_key(K::clone));
                let (node_too, levels) = linked.entry(link.address()).or_insert((node, 0));
                assert!(*node_too == node);
                *levels += 1;
                link = node.tower().load(level);
            }
            keys
        });
        for (node, levels) in linked.into_values() {
            assert!(
                node.height() == 1 || node.keepers() == levels,
                "a node on {levels} levels is kept by {}",
                node.keepers()
            );
        }
        keys
    }
}
