//! Finding places in the list: with what is needed to link there, or for reading alone.

use super::List;
use super::node::{Link, MOST_LEVELS, NodeRef, Tower};
use std::cmp::Ordering::{Greater, Less};
use std::ops::Bound;
use tremula_index::KeyRange;
use tremula_index::kit::{SearchKey, Spec};
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::reclaim::Guard;

/// A gap between the keys: in front of all nodes that it does not count as before it.
pub(super) enum Gap<'k, S: Spec> {
    /// In front of every key.
    Start,
    /// In front of the first key not below this one.
    At(SearchKey<'k, S>),
    /// In front of the first key above this one.
    Behind(SearchKey<'k, S>),
    /// Behind every key.
    End,
}

impl<'k, S: Spec> Gap<'k, S> {
    /// In front of a key.
    pub(super) fn at(key: &'k S::Key) -> Self {
        Self::At(SearchKey::new(key))
    }

    /// Where a range begins.
    pub(super) fn low(range: &KeyRange<'k, S::Key>) -> Self {
        match range.low {
            Bound::Included(key) => Self::At(SearchKey::new(key)),
            Bound::Excluded(key) => Self::Behind(SearchKey::new(key)),
            Bound::Unbounded => Self::Start,
        }
    }

    /// Where a range ends.
    pub(super) fn high(range: &KeyRange<'k, S::Key>) -> Self {
        match range.high {
            Bound::Included(key) => Self::Behind(SearchKey::new(key)),
            Bound::Excluded(key) => Self::At(SearchKey::new(key)),
            Bound::Unbounded => Self::End,
        }
    }

    /// Whether a node lies in front of this gap.
    #[inline]
    pub(super) fn is_behind(&self, node: NodeRef<'_, S>) -> bool {
        match self {
            Self::Start => false,
            Self::At(probe) => node.compare(probe) == Less,
            Self::Behind(probe) => node.compare(probe) != Greater,
            Self::End => true,
        }
    }
}

/// The nodes in front of a gap and behind it on some level, where there are any.
pub(super) type Neighbours<'g, S> = (Option<NodeRef<'g, S>>, Option<NodeRef<'g, S>>);

/// What lies around a gap on every level.
pub(super) struct Path<'g, S: Spec> {
    /// The last towers in front of it.
    pub(super) before: [Tower<'g, S>; MOST_LEVELS],
    /// Where the links of these led.
    pub(super) after: [Link<S>; MOST_LEVELS],
    /// The node of the very key that the gap is at, once somebody has looked.
    pub(super) found: Option<NodeRef<'g, S>>,
}

impl<S: Spec> List<S> {
    pub(super) fn base(&self) -> Tower<'_, S> {
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
    pub(super) fn node<'g>(&self, link: Link<S>, _: &'g Guard<'_>) -> Option<NodeRef<'g, S>> {
        // SAFETY: links come from towers of this list, read under this guard.
        unsafe { link.node() }
    }

    /// The towers and links around `gap` on every level. Unlinks the removed nodes on its way:
    /// after it, if keys are ordered, nothing that was marked when it began is linked in front of
    /// the gap or, for a gap at a key, has that key. (A node is linked in front of older ones
    /// of its key, since these are unlinked first.)
    pub(super) fn path<'g>(&'g self, gap: &Gap<'_, S>, guard: &'g Guard<'_>) -> Path<'g, S> {
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
                    } else if gap.is_behind(node) {
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

    /// Goes down to a level: the last node in front of `gap` there (`None`: the level begins
    /// in front of it), and the one behind, whose entries may be absent. Writes nothing.
    pub(super) fn descend<'g>(
        &'g self,
        gap: &Gap<'_, S>,
        to: usize,
        guard: &'g Guard<'_>,
    ) -> Neighbours<'g, S> {
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
                if !gap.is_behind(node) {
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
        node: NodeRef<'g, S>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, S>> {
        self.node(node.tower().load(0), guard)
    }

    /// See [`SkipList::linked_keys`](super::SkipList::linked_keys).
    #[cfg(loom)]
    pub(super) fn linked_keys(&self) -> [Vec<S::Key>; MOST_LEVELS] {
        let guard = self.collector.pin();
        let mut linked = std::collections::HashMap::new();
        let keys = std::array::from_fn(|level| {
            let mut link = self.base().load(level);
            let mut keys = Vec::new();
            while let Some(node) = self.node(link, &guard) {
                keys.push(node.with_key(S::Key::clone));
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
