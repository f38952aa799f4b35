//! Putting and removing one entry: copies of the leaf and of the path to it.

use super::invariants::check_shared;
use super::node::{Entry, NodeList, NodeRef, Part, fewest, most};
use super::{Owned, OwnedEntry, OwnedTree, Root, View, Word};
use crate::contract::Direction;
use crate::kit::{SearchKey, Spec};

/// The most levels of a tree. Nearly all nodes are at least a quarter full, so more levels would
/// hold more entries than fit in memory.
const MOST_LEVELS: usize = 16;

/// A node on the path to an entry.
struct PathNode<'g, S: Spec> {
    node: NodeRef<'g, S>,
    /// The index of the next child on the path; in the leaf, the index where the key is or belongs.
    at: usize,
    /// Whether the search key lies below all keys of the node.
    is_lowest: bool,
    /// Whether the key of the entry at `at`, and its value, are dead once the node is replaced: its
    /// copy does not take over their counts.
    dead: (bool, bool),
}

/// The path to an entry, or to where it belongs.
pub(in crate::lfca_tree) struct Path<'g, S: Spec> {
    nodes: [Option<PathNode<'g, S>>; MOST_LEVELS],
    levels: usize,
    found: bool,
    head: u64,
}

/// The change that an edit makes in its leaf.
enum Change<S: Spec> {
    Put(Word<S::Key>, Word<S::Value>),
    Remove,
}

/// A new tree that differs from the tree of a base node by one entry. [`commit`](Self::commit) ends
/// the edit if the new tree has replaced the old one, [`abort`](Self::abort) if it has not.
#[must_use]
pub(in crate::lfca_tree) struct Edit<'p, 'g, S: Spec> {
    path: &'p Path<'g, S>,
    root: Root<S>,
    /// The number of nodes of the path, from the root on, that belong to the base node alone: their
    /// contents move to their copies. The nodes below are *shared*: their copies add counts.
    moved: usize,
    /// New nodes whose counts of keys, values and children are moved from replaced nodes.
    made: NodeList<S>,
    /// The topmost new nodes that have added counts.
    shared: [Option<NodeRef<'g, S>>; 2],
    /// Counts of keys that were added for nodes of `made`.
    added: Vec<Word<S::Key>>,
}

impl<'g, S: Spec> View<'g, S> {
    /// The path to a key. Only this part of an edit runs user code.
    #[inline]
    pub(in crate::lfca_tree) fn find(self, probe: &SearchKey<'_, S>) -> Path<'g, S> {
        let mut path = Path::new(probe.head);
        let Some(mut node) = self.root else {
            return path;
        };
        while node.level() > 0 {
            let through = node.through(probe);
            let at = through.saturating_sub(1);
            path.push(node, at, through == 0);
            node = node.child(at);
            node.prefetch();
        }
        let at = node.below(probe);
        path.found = node.holds(at, probe);
        path.push(node, at, at == 0);
        path
    }

    /// The path to the first entry in a direction.
    pub(in crate::lfca_tree) fn find_end(self, direction: Direction) -> Path<'g, S> {
        let mut path = Path::new(0);
        let mut next = self.root;
        while let Some(node) = next {
            let at = match direction {
                Direction::Ascending => 0,
                Direction::Descending => node.len() - 1,
            };
            path.push(node, at, false);
            path.found = true;
            next = (node.level() > 0).then(|| node.child(at));
        }
        path
    }
}

impl<'g, S: Spec> Path<'g, S> {
    fn new(head: u64) -> Self {
        Self {
            nodes: [const { None }; MOST_LEVELS],
            levels: 0,
            found: false,
            head,
        }
    }

    fn push(&mut self, node: NodeRef<'g, S>, at: usize, is_lowest: bool) {
        self.nodes[self.levels] = Some(PathNode {
            node,
            at,
            is_lowest,
            dead: (false, false),
        });
        self.levels += 1;
    }

    fn path_node(&self, level: usize) -> &PathNode<'g, S> {
        match &self.nodes[..self.levels][level] {
            Some(path_node) => path_node,
            None => unreachable!("each level has a node of the path"),
        }
    }

    fn lay_to_rest(&mut self, level: usize, key: bool, value: bool) {
        if let Some(path_node) = &mut self.nodes[level] {
            path_node.dead = (key, value);
        }
    }

    /// The value of the key, if it has one.
    #[inline]
    pub(in crate::lfca_tree) fn value(&self) -> Option<Word<S::Value>> {
        self.found.then(|| {
            let leaf = self.path_node(self.levels - 1);
            leaf.node.value(leaf.at)
        })
    }

    /// A copy of the key, and the value, if there is an entry.
    pub(in crate::lfca_tree) fn entry(&self) -> Option<(S::Key, Word<S::Value>)> {
        self.found.then(|| {
            let PathNode { node, at, .. } = *self.path_node(self.levels - 1);
            (node.with_key(at, S::Key::clone), node.value(at))
        })
    }

    /// Makes a tree with this value under the key.
    #[inline]
    pub(in crate::lfca_tree) fn put(
        &mut self,
        key: &Owned<S::Key>,
        value: &Owned<S::Value>,
    ) -> Edit<'_, 'g, S> {
        self.edit(&Change::Put(key.word(), value.word()))
    }

    /// Makes a tree without the entry, which must be there.
    #[inline]
    pub(in crate::lfca_tree) fn remove(&mut self) -> Edit<'_, 'g, S> {
        debug_assert!(self.found);
        self.edit(&Change::Remove)
    }

    /// Whether the path leads behind all entries.
    fn is_append(&self) -> bool {
        (0..self.levels).all(|level| {
            let PathNode { node, at, .. } = self.path_node(level);
            at + usize::from(level + 1 < self.levels) == node.len()
        })
    }

    /// The sibling with which a node of the path is merged if it has `left` entries left, and
    /// whether that is the sibling before it.
    fn sibling(&self, level: usize, left: usize) -> Option<(NodeRef<'g, S>, bool)> {
        if level == 0 || left == 0 || left >= fewest(self.path_node(level).node.level()) {
            return None;
        }
        let parent = self.path_node(level - 1);
        if parent.at + 1 < parent.node.len() {
            Some((parent.node.child(parent.at + 1), false))
        } else {
            let before = parent.at.checked_sub(1)?;
            Some((parent.node.child(before), true))
        }
    }

    /// The number of nodes from the root on whose contents can be moved.
    fn movable(&self, change: &Change<S>) -> usize {
        let mut movable = (0..self.levels)
            .take_while(|level| self.path_node(*level).node.is_exclusive())
            .count();
        if matches!(change, Change::Remove) {
            // A merged node shares the entries of its sibling with the old tree, and a root that is
            // replaced by its only child shares that child. Any node of the path may be merged, not
            // only one that loses a child: appends and splits leave nodes with few entries.
            let mut more = 0;
            for level in (0..self.levels).rev() {
                let left = self.path_node(level).node.len() - 1 + more;
                // The number of nodes that replace this node and its sibling, less one.
                more = match self.sibling(level, left) {
                    Some((sibling, _)) => {
                        movable = movable.min(level - 1);
                        usize::from(left + sibling.len() > most(sibling.level()))
                    }
                    None if level == 0 && left == 1 && self.levels > 1 => return 0,
                    None => usize::from(left > 0),
                };
            }
        }
        movable
    }

    fn edit(&mut self, change: &Change<S>) -> Edit<'_, 'g, S> {
        let moved = self.movable(change);
        let is_append = matches!(change, Change::Put(..)) && self.is_append();
        let mut edit = Making {
            moved,
            made: NodeList::new(),
            shared: [None; 2],
            added: Vec::new(),
        };
        // The nodes that replace the node below, and the children of its parent that they replace.
        let mut made = [None; 2];
        let mut place = 0..0;
        for level in (0..self.levels).rev() {
            let (next, beside) = edit.copy(self, level, change, made, place, is_append);
            made = next;
            place = match level.checked_sub(1) {
                Some(above) => {
                    let at = self.path_node(above).at;
                    match beside {
                        Some(true) => at - 1..at + 1,
                        Some(false) => at..at + 2,
                        None => at..at + 1,
                    }
                }
                None => 0..0,
            };
        }
        let root = match (self.levels, change) {
            (0, Change::Put(key, value)) => {
                let entry = Entry::of_value(self.head, *key, *value);
                let leaf = NodeRef::build(0, &[Part::One(&entry)], 0..1);
                edit.made.push(leaf);
                Some(leaf)
            }
            _ => edit.root(made),
        };
        Edit {
            root: Root(root.map(NodeRef::pointer)),
            moved: edit.moved,
            made: edit.made,
            shared: edit.shared,
            added: edit.added,
            path: self,
        }
    }
}

/// The parts of an [`Edit`] under construction.
struct Making<'g, S: Spec> {
    moved: usize,
    made: NodeList<S>,
    shared: [Option<NodeRef<'g, S>>; 2],
    added: Vec<Word<S::Key>>,
}

impl<'g, S: Spec> Making<'g, S> {
    /// Copies a node of the path, with the nodes `made` instead of its children `place`. If few
    /// entries are left, merges it with the sibling before (`Some(true)`) or behind it. Returns the
    /// new nodes and which sibling was merged.
    fn copy(
        &mut self,
        path: &mut Path<'g, S>,
        level: usize,
        change: &Change<S>,
        made: [Option<NodeRef<'g, S>>; 2],
        place: std::ops::Range<usize>,
        is_append: bool,
    ) -> ([Option<NodeRef<'g, S>>; 2], Option<bool>) {
        let PathNode {
            node,
            at,
            is_lowest,
            ..
        } = *path.path_node(level);
        let is_shared = level >= self.moved;
        let mut new = [None, None];
        let mut rest = place.end;
        let mut start = place.start;
        if node.level() == 0 {
            start = at;
            rest = at + usize::from(path.found);
            if let Change::Put(key, value) = change {
                let key = if path.found { node.key_word(at) } else { *key };
                new[0] = Some(Entry::of_value(path.head, key, *value));
                if is_shared {
                    // SAFETY: the caller of the edit or the leaf has a count of each.
                    unsafe {
                        key.share();
                        value.share();
                    }
                }
            }
            path.lay_to_rest(level, matches!(change, Change::Remove), path.found);
        } else {
            if let Some(child) = made[0] {
                let (head, key) = match change {
                    // A key below all others replaces the lowest keys on its path.
                    Change::Put(key, _) if is_lowest => (path.head, *key),
                    _ => (node.head(start), node.key_word(start)),
                };
                if is_shared || is_lowest {
                    self.add(key, is_shared);
                }
                path.lay_to_rest(level, is_lowest, false);
                new[0] = Some(Entry::of_child(head, key, child));
            } else {
                path.lay_to_rest(level, true, false);
            }
            if let Some(child) = made[1] {
                self.add(child.key_word(0), is_shared);
                new[1] = Some(Entry::of_child(child.head(0), child.key_word(0), child));
            }
        }

        let kept = node.len() - (rest - start);
        let total = kept + new.iter().flatten().count();
        let sibling = match change {
            Change::Remove => path.sibling(level, total),
            Change::Put(..) => None,
        };
        if let ([Some(entry), None], None, 1) = (&new, sibling, rest - start) {
            if is_shared {
                share_runs(&[Part::Run(node, 0..start), Part::Run(node, rest..node.len())]);
            }
            let result = [Some(node.with_entry(start, entry)), None];
            if is_shared {
                check_shared(result, &[Part::One(entry)]);
            }
            self.keep(result, level);
            return (result, None);
        }
        // Written out: a function that makes an array with a closure would be called for each part.
        let whole = |sibling: NodeRef<'g, S>| Part::Run(sibling, 0..sibling.len());
        let none = || Part::Run(node, 0..0);
        let [first, second] = &new;
        let parts = [
            match sibling {
                Some((sibling, true)) => whole(sibling),
                _ => none(),
            },
            Part::Run(node, 0..start),
            first.as_ref().map_or_else(none, Part::One),
            second.as_ref().map_or_else(none, Part::One),
            Part::Run(node, rest..node.len()),
            match sibling {
                Some((sibling, false)) => whole(sibling),
                _ => none(),
            },
        ];
        if is_shared {
            share_runs(&parts);
        }
        let result = cut(node.level(), &parts, is_append);
        if is_shared {
            check_shared(result, &parts);
        }
        self.keep(result, level);
        (result, sibling.map(|(_, before)| before))
    }

    /// Keeps the nodes made on a level, for [`Edit::abort`].
    fn keep(&mut self, result: [Option<NodeRef<'g, S>>; 2], level: usize) {
        if level < self.moved {
            result
                .iter()
                .flatten()
                .for_each(|node| self.made.push(*node));
        }
        if level == self.moved {
            self.shared = result;
        }
    }

    /// Adds a count of a key for a new node.
    fn add(&mut self, key: Word<S::Key>, is_shared: bool) {
        // SAFETY: the key is in a node that lives, or the caller of the edit has a count.
        unsafe { key.share() };
        if !is_shared && !S::HEAD_IS_KEY {
            self.added.push(key);
        }
    }

    /// The root above the nodes made on the highest level.
    fn root(&mut self, made: [Option<NodeRef<'g, S>>; 2]) -> Option<NodeRef<'g, S>> {
        let is_shared = self.moved == 0;
        match made {
            [Some(first), Some(second)] => {
                for node in [first, second] {
                    self.add(node.key_word(0), is_shared);
                }
                let root = parent_of([first, second]);
                if is_shared {
                    self.shared = [Some(root), None];
                } else {
                    self.made.push(root);
                }
                Some(root)
            }
            [Some(only), None] if is_shared => {
                let root = super::join::collapse(OwnedTree::of(only)).into_root();
                // SAFETY: it has a count, which the edit owns.
                let root = root.0.map(|root| unsafe { NodeRef::from_raw(root) });
                self.shared = [root, None];
                root
            }
            [only, _] => only,
        }
    }
}

/// A node above two children. The caller adds counts of their keys.
pub(super) fn parent_of<'g, S: Spec>(children: [NodeRef<'g, S>; 2]) -> NodeRef<'g, S> {
    let entries = children.map(|node| Entry::of_child(node.head(0), node.key_word(0), node));
    let parts = entries.each_ref().map(Part::One);
    NodeRef::build(children[0].level() + 1, &parts, 0..2)
}

/// Adds counts for the entries of runs: the nodes of the runs keep theirs.
pub(super) fn share_runs<S: Spec>(parts: &[Part<'_, '_, S>]) {
    for part in parts {
        if let Part::Run(node, range) = part {
            range.clone().for_each(|at| node.share_entry(at));
        }
    }
}

/// One node of these parts, two if one is too small, or none if the parts are empty.
pub(super) fn cut<'g, S: Spec>(
    level: u16,
    parts: &[Part<'_, 'g, S>],
    is_append: bool,
) -> [Option<NodeRef<'g, S>>; 2] {
    let total = parts.iter().map(Part::len).sum();
    let middle = match total {
        0 => return [None; 2],
        _ if total <= most(level) => total,
        // In an append, the first node stays full.
        _ if is_append => total - 1,
        _ => total.div_ceil(2),
    };
    let second = (middle < total).then(|| NodeRef::build(level, parts, middle..total));
    [Some(NodeRef::build(level, parts, 0..middle)), second]
}

impl<'g, S: Spec> Edit<'_, 'g, S> {
    /// The new tree. If the edit is committed, its count belongs to the new base node.
    #[inline]
    pub(in crate::lfca_tree) fn root(&self) -> Root<S> {
        self.root
    }

    /// The nodes of the path whose contents move to their copies.
    pub(super) fn moved(&self) -> impl Iterator<Item = NodeRef<'g, S>> {
        (0..self.moved).map(|level| self.path.path_node(level).node)
    }

    /// Ends the edit after the new tree has replaced the old one. Returns what is to be freed when
    /// no thread that is pinned now can use it: nodes to be freed alone, and a root of which one
    /// count is to be released.
    ///
    /// # Safety
    ///
    /// One atomic step replaced the base node with the old tree by one with the new tree. Both
    /// words are those with which the edit was made.
    #[inline]
    pub(in crate::lfca_tree) unsafe fn commit(
        self,
        put: Option<OwnedEntry<S>>,
    ) -> (NodeList<S>, Root<S>) {
        let mut replaced = NodeList::new();
        for level in 0..self.moved {
            let PathNode { node, at, dead, .. } = *self.path.path_node(level);
            replaced.push_with(node, at, dead.0, dead.1);
        }
        let is_shared = self.moved < self.path.levels;
        if let Some((key, value)) = put
            && !is_shared
        {
            value.give();
            if !self.path.found {
                key.give();
            }
        }
        let root = is_shared.then(|| self.path.path_node(self.moved).node.pointer());
        (replaced, Root(root))
    }

    /// Ends the edit without using the new tree.
    pub(in crate::lfca_tree) fn abort(self) {
        // SAFETY: no other thread has seen the nodes, and each of them is freed once.
        unsafe {
            self.made.free();
            self.shared.iter().flatten().for_each(|node| node.release());
            self.added.iter().for_each(|key| key.release());
        }
    }
}
