//! Searches: with the path that is needed to change links, or for reading only.

use super::List;
use super::node::{Link, MOST_LEVELS, NodeRef, Tower};
use std::cmp::Ordering::{Greater, Less};
use std::ops::Bound;
use tremula_index::KeyRange;
use tremula_index::kit::{SearchKey, Spec};
use tremula_sync::atomic::Ordering::Relaxed;
use tremula_sync::reclaim::Guard;

/// A gap between keys. The nodes in front of it have smaller keys.
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
    /// The gap in front of a key.
    pub(super) fn at(key: &'k S::Key) -> Self {
        Self::At(SearchKey::new(key))
    }

    /// The gap where a range begins.
    pub(super) fn low(range: &KeyRange<'k, S::Key>) -> Self {
        match range.low {
            Bound::Included(key) => Self::At(SearchKey::new(key)),
            Bound::Excluded(key) => Self::Behind(SearchKey::new(key)),
            Bound::Unbounded => Self::Start,
        }
    }

    /// The gap where a range ends.
    pub(super) fn high(range: &KeyRange<'k, S::Key>) -> Self {
        match range.high {
            Bound::Included(key) => Self::Behind(SearchKey::new(key)),
            Bound::Excluded(key) => Self::At(SearchKey::new(key)),
            Bound::Unbounded => Self::End,
        }
    }

    /// Whether this gap is behind a node.
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

/// The node in front of a gap on some level and the one behind it, if they exist.
pub(super) type Neighbours<'g, S> = (Option<NodeRef<'g, S>>, Option<NodeRef<'g, S>>);

/// The surroundings of a gap on every level.
pub(super) struct Path<'g, S: Spec> {
    /// The last tower in front of the gap on each level.
    pub(super) before: [Tower<'g, S>; MOST_LEVELS],
    /// The links of these towers.
    pub(super) after: [Link<S>; MOST_LEVELS],
    /// The node whose key is the one that the gap is at, if a caller has looked for it.
    pub(super) found: Option<NodeRef<'g, S>>,
}

impl<S: Spec> List<S> {
    pub(super) fn base(&self) -> Tower<'_, S> {
        Tower::base(&self.base)
    }

    /// The number of levels in use.
    #[inline]
    pub(super) fn levels(&self) -> usize {
        // Relaxed: a hint. Unused levels are empty, and missed ones only make a search slower.
        self.levels.load(Relaxed)
    }

    /// The node that a link points to.
    #[inline]
    pub(super) fn node<'g>(&self, link: Link<S>, _: &'g Guard<'_>) -> Option<NodeRef<'g, S>> {
        // SAFETY: the link comes from a tower of this list, and was read under this guard.
        unsafe { link.node() }
    }

    /// The surroundings of `gap` on every level. Unlinks the removed nodes that it meets. So if the
    /// order of keys is consistent, no node whose links were marked when the search began is still
    /// linked in front of the gap or, for a gap at a key, with that key. (A node is linked in front
    /// of older nodes of its key, because these are unlinked first.)
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
                    // The node that the search came down by was removed, so a new node of this
                    // level may be missing behind it.
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
                        // At once, because what follows may panic.
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

    /// Searches down to level `to`. Returns the last node in front of `gap` there (`None` if there
    /// is no such node) and the first one behind. Their entries may be absent. Writes nothing.
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
            // The link may be marked by now. The nodes that were behind it when the search reached
            // the tower are still behind it (invariant 3).
            let mut link = before.load(level);
            let above = behind;
            behind = None;
            while let Some(node) = self.node(link, guard) {
                if Some(node) == above {
                    // Already compared on the level above.
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

    /// The next node on the lowest level.
    #[inline]
    pub(super) fn behind<'g>(
        &self,
        node: NodeRef<'g, S>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, S>> {
        self.node(node.tower().load(0), guard)
    }
}
