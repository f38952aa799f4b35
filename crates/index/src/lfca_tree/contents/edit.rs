//! Putting and removing one entry: new nodes for the leaf and the path to it.

use super::node::{Entry, NodeList, NodeRef, Part, fewest, most};
use super::{Owned, OwnedEntry, OwnedTree, Root, View, Word};
use crate::contract::Direction;
use crate::kit::{SearchKey, Spec};

/// The most levels of a tree. Each node but a few is at least a quarter full: more levels would
/// hold more entries than memory does.
const MOST_LEVELS: usize = 16;

/// A node on the way to an entry.
struct Step<'g, S: Spec> {
    node: NodeRef<'g, S>,
    /// The child that was gone to; in the leaf, where the key is or would be.
    at: usize,
    /// Whether the key looked for lies below all of the node's.
    is_lowest: bool,
    /// Whether the entry's key, and its value, are nobody's once the node has been replaced.
    dead: (bool, bool),
}

/// The way to an entry, or to where it would be.
pub(in crate::lfca_tree) struct Path<'g, S: Spec> {
    steps: [Option<Step<'g, S>>; MOST_LEVELS],
    levels: usize,
    found: bool,
    head: u64,
}

/// What an edit does at its leaf.
enum Change<S: Spec> {
    Put(Word<S::Key>, Word<S::Value>),
    Remove,
}

/// A tree that differs from another by an entry, and is to replace it. Either
/// [`commit`](Self::commit) or [`abort`](Self::abort) ends it.
#[must_use]
pub(in crate::lfca_tree) struct Edit<'p, 'g, S: Spec> {
    path: &'p Path<'g, S>,
    root: Root<S>,
    /// How many nodes of the path, from the root on, belong to the base node alone: what is in
    /// them moves to their copies. The nodes below are *shared*: their copies have counts of their
    /// own.
    moved: usize,
    /// The nodes made that have no counts of their own.
    made: NodeList<S>,
    /// The topmost nodes made that have.
    shared: [Option<NodeRef<'g, S>>; 2],
    /// Counts of keys that nodes of `made` have all the same.
    added: Vec<Word<S::Key>>,
}

impl<'g, S: Spec> View<'g, S> {
    /// The way to a key. Here is all the user code of an edit.
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

    /// The way to the first entry in a direction.
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
            steps: [const { None }; MOST_LEVELS],
            levels: 0,
            found: false,
            head,
        }
    }

    fn push(&mut self, node: NodeRef<'g, S>, at: usize, is_lowest: bool) {
        self.steps[self.levels] = Some(Step {
            node,
            at,
            is_lowest,
            dead: (false, false),
        });
        self.levels += 1;
    }

    fn step(&self, level: usize) -> &Step<'g, S> {
        match &self.steps[..self.levels][level] {
            Some(step) => step,
            None => unreachable!("there are as many steps as levels"),
        }
    }

    fn lay_to_rest(&mut self, level: usize, key: bool, value: bool) {
        if let Some(step) = &mut self.steps[level] {
            step.dead = (key, value);
        }
    }

    /// The value that the key has.
    #[inline]
    pub(in crate::lfca_tree) fn value(&self) -> Option<Word<S::Value>> {
        self.found.then(|| {
            let leaf = self.step(self.levels - 1);
            leaf.node.value(leaf.at)
        })
    }

    /// A copy of the key, which has an entry, and the value.
    pub(in crate::lfca_tree) fn entry(&self) -> Option<(S::Key, Word<S::Value>)> {
        self.found.then(|| {
            let Step { node, at, .. } = *self.step(self.levels - 1);
            (node.with_key(at, S::Key::clone), node.value(at))
        })
    }

    /// A tree with this value under the key.
    #[inline]
    pub(in crate::lfca_tree) fn put(
        &mut self,
        key: &Owned<S::Key>,
        value: &Owned<S::Value>,
    ) -> Edit<'_, 'g, S> {
        self.edit(&Change::Put(key.word(), value.word()))
    }

    /// A tree without the entry, which is there.
    #[inline]
    pub(in crate::lfca_tree) fn remove(&mut self) -> Edit<'_, 'g, S> {
        debug_assert!(self.found);
        self.edit(&Change::Remove)
    }

    /// Whether the change goes behind all entries.
    fn is_append(&self) -> bool {
        (0..self.levels).all(|level| {
            let step = self.step(level);
            step.at + usize::from(level + 1 < self.levels) == step.node.len()
        })
    }

    /// The sibling that a node of the path is merged with when it has so many entries left, and
    /// whether it is the one before.
    fn sibling(&self, level: usize, left: usize) -> Option<(NodeRef<'g, S>, bool)> {
        if level == 0 || left == 0 || left >= fewest(self.step(level).node.level()) {
            return None;
        }
        let parent = self.step(level - 1);
        if parent.at + 1 < parent.node.len() {
            Some((parent.node.child(parent.at + 1), false))
        } else {
            let before = parent.at.checked_sub(1)?;
            Some((parent.node.child(before), true))
        }
    }

    /// How many nodes from the root on can be moved.
    fn movable(&self, change: &Change<S>) -> usize {
        let mut movable = (0..self.levels)
            .take_while(|level| self.step(*level).node.is_exclusive())
            .count();
        if matches!(change, Change::Remove) {
            // A node that is merged shares what is in its sibling with the old parent; so does a
            // root that gives way to its only child. Any node of the path may be merged, not only
            // one that loses a child: those that appends and splits leave may be poor already.
            let mut more = 0;
            for level in (0..self.levels).rev() {
                let left = self.step(level).node.len() - 1 + more;
                // What comes in the place of the node, and of the sibling, but for one of them.
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
        // What takes the place of the node before, and of which children of its parent.
        let mut made = [None; 2];
        let mut place = 0..0;
        for level in (0..self.levels).rev() {
            let (next, beside) = edit.copy(self, level, change, made, place, is_append);
            made = next;
            place = match level.checked_sub(1) {
                Some(above) => {
                    let at = self.step(above).at;
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
            root: Root(root.map(NodeRef::as_ptr)),
            moved: edit.moved,
            made: edit.made,
            shared: edit.shared,
            added: edit.added,
            path: self,
        }
    }
}

/// The parts of an [`Edit`] while it is being made.
struct Making<'g, S: Spec> {
    moved: usize,
    made: NodeList<S>,
    shared: [Option<NodeRef<'g, S>>; 2],
    added: Vec<Word<S::Key>>,
}

impl<'g, S: Spec> Making<'g, S> {
    /// Copies a node of the path, with what was `made` in the `place` of some of its children; if
    /// few entries are left, together with the sibling before (`Some(true)`) or behind it.
    fn copy(
        &mut self,
        path: &mut Path<'g, S>,
        level: usize,
        change: &Change<S>,
        made: [Option<NodeRef<'g, S>>; 2],
        place: std::ops::Range<usize>,
        is_append: bool,
    ) -> ([Option<NodeRef<'g, S>>; 2], Option<bool>) {
        let Step {
            node,
            at,
            is_lowest,
            ..
        } = *path.step(level);
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
                    // SAFETY: the caller has counts of both, or the leaf has.
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
                    // A key below all others lowers those on its way.
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
            self.keep(result, level);
            return (result, None);
        }
        // Written out: what makes an array with a closure is called for each part of each level.
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
        self.keep(result, level);
        (result, sibling.map(|(_, before)| before))
    }

    /// Remembers what was made on a level, for an edit that comes to nothing.
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

    /// Adds a count of a key for a node that is made.
    fn add(&mut self, key: Word<S::Key>, is_shared: bool) {
        // SAFETY: the key is in a node that lives, or the caller of the edit has it.
        unsafe { key.share() };
        if !is_shared && !S::HEAD_IS_KEY {
            self.added.push(key);
        }
    }

    /// The root of what was made on the highest level.
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
                // SAFETY: it has a count, which is the edit's.
                let root = root.0.map(|root| unsafe { NodeRef::of(root) });
                self.shared = [root, None];
                root
            }
            [only, _] => only,
        }
    }
}

/// A node above two, with counts of their keys, which the caller adds.
pub(super) fn parent_of<'g, S: Spec>(children: [NodeRef<'g, S>; 2]) -> NodeRef<'g, S> {
    let entries = children.map(|node| Entry::of_child(node.head(0), node.key_word(0), node));
    let parts = entries.each_ref().map(Part::One);
    NodeRef::build(children[0].level() + 1, &parts, 0..2)
}

/// Adds counts for what is in runs, which stays where it is, too.
pub(super) fn share_runs<S: Spec>(parts: &[Part<'_, '_, S>]) {
    for part in parts {
        if let Part::Run(node, range) = part {
            range.clone().for_each(|at| node.share_entry(at));
        }
    }
}

/// A node of these parts, or two if they are too many; none if there is nothing in them.
pub(super) fn cut<'g, S: Spec>(
    level: u16,
    parts: &[Part<'_, 'g, S>],
    is_append: bool,
) -> [Option<NodeRef<'g, S>>; 2] {
    let total = parts.iter().map(Part::len).sum();
    let middle = match total {
        0 => return [None; 2],
        _ if total <= most(level) => total,
        // Nothing will ever come before the new entry: the node stays full.
        _ if is_append => total - 1,
        _ => total.div_ceil(2),
    };
    let second = (middle < total).then(|| NodeRef::build(level, parts, middle..total));
    [Some(NodeRef::build(level, parts, 0..middle)), second]
}

impl<S: Spec> Edit<'_, '_, S> {
    /// The new tree. Its count is the base node's that gets it, if the edit is committed.
    #[inline]
    pub(in crate::lfca_tree) fn root(&self) -> Root<S> {
        self.root
    }

    /// The new tree has replaced the old one. Returns what is to be freed when nobody who is
    /// pinned now can be looking at it: nodes alone, and a root with all that it has.
    ///
    /// # Safety
    ///
    /// The base node with the old tree was replaced by one with the new tree, by one atomic step;
    /// both words are those that the edit was made with.
    #[inline]
    pub(in crate::lfca_tree) unsafe fn commit(
        self,
        put: Option<OwnedEntry<S>>,
    ) -> (NodeList<S>, Root<S>) {
        let mut replaced = NodeList::new();
        for level in 0..self.moved {
            let step = self.path.step(level);
            let (key, value) = step.dead;
            replaced.push_with(step.node, step.at, key, value);
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
        let root = is_shared.then(|| self.path.step(self.moved).node.as_ptr());
        (replaced, Root(root))
    }

    /// The new tree will not be used.
    pub(in crate::lfca_tree) fn abort(self) {
        // SAFETY: nobody has seen the nodes, and no two of these lead to the same.
        unsafe {
            self.made.free();
            self.shared.iter().flatten().for_each(|node| node.release());
            self.added.iter().for_each(|key| key.release());
        }
    }
}
