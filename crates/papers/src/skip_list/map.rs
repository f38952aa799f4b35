//! The implementation of an ordered index.

use super::edit::Placed;
use super::node::NodeRef;
use super::search::Gap;
use super::{List, SkipList};
use std::ops::ControlFlow;
use tremula_index::key::KeyHead;
use tremula_index::kit::Implementation as OrderedIndex;
use tremula_index::kit::{Form, Packed, SearchKey, Sought, Spec, head_of_form};
use tremula_index::{Direction, KeyRange, Shape, Storable, Update};
use tremula_sync::Backoff;
use tremula_sync::reclaim::Guard;

/// The level from which a descending walk collects its next entries. About four of them lie between
/// two nodes of this level.
const BLOCK_LEVEL: usize = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

impl<S: Spec> List<S> {
    /// The node of a key, if its entry is present.
    #[inline]
    fn find<'g, 'k>(
        &'g self,
        key: impl Into<Sought<'k, S::Key>>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, S>> {
        let probe = SearchKey::new(key);
        let (_, node) = self.descend(&Gap::At(probe), 0, guard);
        node.filter(|node| node.compare(&probe).is_eq() && node.is_present())
    }

    /// The first entry behind `gap`, or the last in front of it. At one moment of the call it was
    /// present, and no entry was between it and the gap.
    fn neighbour<'g>(
        &'g self,
        gap: &Gap<'_, S>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, S>> {
        let backoff = Backoff::new();
        loop {
            let (before, behind) = self.descend(gap, 0, guard);
            let node = match direction {
                Direction::Ascending => behind,
                Direction::Descending => before,
            }?;
            if node.is_present() {
                if self.are_adjacent(before, behind) {
                    return Some(node);
                }
                // A removed node or a new one is in between.
                self.path(gap, guard);
            } else if node.is_removed() {
                node.mark();
                self.path(gap, guard);
            } else {
                // Vacant: another thread is computing its value.
                backoff.wait();
            }
        }
    }

    /// Whether two nodes (or the ends of the list) are adjacent on the lowest level now.
    fn are_adjacent(&self, before: Option<NodeRef<'_, S>>, behind: Option<NodeRef<'_, S>>) -> bool {
        let tower = before.map_or_else(|| self.base(), NodeRef::tower);
        let link = tower.load(0);
        !link.is_marked() && link.address() == behind.map_or(0, |node| node.link().address())
    }

    /// Calls `visit` with the present entries of a range one after another, until it breaks.
    fn walk<'g>(
        &'g self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        guard: &'g Guard<'_>,
        mut visit: impl FnMut(NodeRef<'g, S>) -> ControlFlow<()>,
    ) {
        match direction {
            Direction::Ascending => {
                let high = Gap::high(&range);
                let (_, mut next) = self.descend(&Gap::low(&range), 0, guard);
                while let Some(node) = next.filter(|node| high.is_behind(*node)) {
                    if node.is_present() && visit(node).is_break() {
                        return;
                    }
                    next = self.behind(node, guard);
                }
            }
            Direction::Descending => {
                let low = Gap::low(&range);
                let mut block = Vec::new();
                let mut start = self.collect(&Gap::high(&range), &mut block, guard);
                loop {
                    for node in block.drain(..).rev() {
                        if low.is_behind(node) || visit(node).is_break() {
                            return;
                        }
                    }
                    let Some(node) = start else {
                        return;
                    };
                    let key = node.with_key(S::Key::clone);
                    start = self.collect(&Gap::at(&key), &mut block, guard);
                }
            }
        }
    }

    /// Collects the entries in front of `gap` back to a node of [`BLOCK_LEVEL`], inclusive, and
    /// returns that node; `None` if no earlier entries are left.
    fn collect<'g>(
        &'g self,
        gap: &Gap<'_, S>,
        block: &mut Vec<NodeRef<'g, S>>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, S>> {
        let (start, _) = self.descend(gap, BLOCK_LEVEL, guard);
        let mut next = start.or_else(|| self.node(self.base().load(0), guard));
        while let Some(node) = next.filter(|node| gap.is_behind(*node)) {
            if node.is_present() {
                block.push(node);
            }
            next = self.behind(node, guard);
        }
        start
    }

    /// Removes the first or the last entry of the list.
    fn pop(&self, direction: Direction) -> Option<(S::Key, S::Value)> {
        let guard = &self.collector.pin();
        let end = match direction {
            Direction::Ascending => Gap::Start,
            Direction::Descending => Gap::End,
        };
        loop {
            let node = self.neighbour(&end, direction, guard)?;
            let Some(lock) = node.lock() else {
                continue;
            };
            let is_at_the_end = match direction {
                Direction::Ascending => self.are_adjacent(None, Some(node)),
                Direction::Descending => self.are_adjacent(Some(node), None),
            };
            if is_at_the_end {
                let key = node.with_key(S::Key::clone);
                return Some((key, self.take_out(lock, guard)));
            }
        }
    }
}

impl<'g, S: Spec> NodeRef<'g, S> {
    /// Calls `read` with the value of an entry that was present during this pin.
    #[inline]
    fn with_value<R>(self, read: impl FnOnce(&S::Value) -> R) -> R {
        // SAFETY: an entry that was present has a value. While the thread is pinned, neither this
        // value nor one that replaces it is freed.
        unsafe { self.value().with(read) }
    }

    /// A copy of an entry that was present during this pin.
    fn entry(self) -> (S::Key, S::Value) {
        (
            self.with_key(S::Key::clone),
            self.with_value(S::Value::clone),
        )
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> OrderedIndex<K, V> for SkipList<K, V, H> {
    fn engine(&self) -> &'static str {
        if self.list.backlog.is_some() {
            "background_skip_list"
        } else {
            "skip_list"
        }
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.list.collector.pin();
        let node = self.list.find(key, guard);
        node.map(|node| node.with_value(read)).is_some()
    }

    fn get(&self, key: &K) -> Option<V> {
        let guard = &self.list.collector.pin();
        let node = self.list.find(key, guard);
        node.map(|node| node.with_value(V::clone))
    }

    fn contains_key(&self, key: &K) -> bool {
        self.list.find(key, &self.list.collector.pin()).is_some()
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        head_of_form::<K, H>(form).is_some()
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.list.collector.pin();
        let node = self.list.find(Sought::Form(form), guard);
        node.map(|node| node.with_value(read)).is_some()
    }

    fn insert(&self, mut key: K, value: V) -> Option<V> {
        let guard = &self.list.collector.pin();
        let mut value = Some(value);
        loop {
            match self.list.place(key, value, guard) {
                Placed::New(node, path) => {
                    self.list.len.add(1);
                    self.list.build(node, path, guard);
                    return None;
                }
                Placed::Present(node, same, new) => match (node.lock(), new) {
                    (Some(entry), Some(new)) => return Some(self.list.replace(entry, new, guard)),
                    (_, new) => (key, value) = (same, new),
                },
            }
        }
    }

    fn insert_if_absent(&self, mut key: K, value: V) -> Result<(), V> {
        let guard = &self.list.collector.pin();
        let mut value = Some(value);
        loop {
            match self.list.place(key, value, guard) {
                Placed::New(node, path) => {
                    self.list.len.add(1);
                    self.list.build(node, path, guard);
                    return Ok(());
                }
                Placed::Present(node, same, new) => {
                    // A vacant entry is locked: `lock` waits until it is filled or removed.
                    match (node.is_present() || node.lock().is_some(), new) {
                        (true, Some(new)) => return Err(new),
                        (_, new) => (key, value) = (same, new),
                    }
                }
            }
        }
    }

    fn remove(&self, key: &K) -> Option<V> {
        let guard = &self.list.collector.pin();
        let entry = self.list.find(key, guard)?.lock()?;
        Some(self.list.take_out(entry, guard))
    }

    fn update(&self, mut key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        let guard = &self.list.collector.pin();
        loop {
            match self.list.place(key, None, guard) {
                Placed::New(node, path) => {
                    self.list.update_vacant(node, path, decide, guard);
                    return None;
                }
                Placed::Present(node, same, _) => {
                    if let Some(old) = self.list.update_present(node, decide, guard) {
                        return old;
                    }
                    key = same;
                }
            }
        }
    }

    fn first(&self) -> Option<(K, V)> {
        let guard = &self.list.collector.pin();
        let node = self
            .list
            .neighbour(&Gap::Start, Direction::Ascending, guard)?;
        Some(node.entry())
    }

    fn last(&self) -> Option<(K, V)> {
        let guard = &self.list.collector.pin();
        let node = self
            .list
            .neighbour(&Gap::End, Direction::Descending, guard)?;
        Some(node.entry())
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let guard = &self.list.collector.pin();
        let gap = Gap::Behind(SearchKey::new(key));
        let node = self.list.neighbour(&gap, Direction::Ascending, guard)?;
        Some(node.entry())
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let guard = &self.list.collector.pin();
        let node = self
            .list
            .neighbour(&Gap::at(key), Direction::Descending, guard)?;
        Some(node.entry())
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.list.pop(Direction::Ascending)
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.list.pop(Direction::Descending)
    }

    /// Goes from entry to entry, not at one moment.
    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if limit == 0 {
            return;
        }
        let guard = &self.list.collector.pin();
        let mut left = limit;
        self.list.walk(range, direction, guard, |node| {
            out.push(node.entry());
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    /// Copies nothing. The thread is pinned to the list during the call: entries that other threads
    /// remove are not freed before the closure has seen the last entry.
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let guard = &self.list.collector.pin();
        self.list.walk(range, direction, guard, |node| {
            node.with_key(|key| node.with_value(|value| visit(key, value)))
        });
    }

    /// `None`, because scans are not of one moment.
    fn snapshot(&self, _: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        None
    }

    /// Goes from entry to entry, not in one step.
    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        let guard = &self.list.collector.pin();
        let mut nodes = Vec::new();
        self.list.walk(range, Direction::Ascending, guard, |node| {
            nodes.push(node);
            ControlFlow::Continue(())
        });
        // No user code runs from here to the last removal: a panic finds all removed or none.
        let mut removed = 0;
        nodes.retain(|node| {
            node.lock().is_some_and(|entry| {
                removed += 1;
                self.list.detach(entry)
            })
        });
        self.list.unlink_all(nodes, guard);
        removed
    }

    fn len(&self) -> usize {
        usize::try_from(self.list.len.sum()).unwrap_or(0)
    }

    fn shape(&self) -> Shape {
        let guard = &self.list.collector.pin();
        let (mut entries, mut bytes, mut links) = (0, size_of::<Self>(), 0);
        self.list
            .walk(KeyRange::all(), Direction::Ascending, guard, |node| {
                entries += 1;
                links += node.height() as u64;
                bytes += node.bytes() + Packed::<V>::bytes_beside();
                ControlFlow::Continue(())
            });
        let mut figures = vec![
            ("entries", entries),
            ("levels", self.list.levels() as u64),
            ("links", links),
            ("bytes", bytes as u64),
        ];
        if let Some(backlog) = &self.list.backlog {
            figures.push(("left_to_thread", backlog.len() as u64));
        }
        Shape::new(self.engine(), figures)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.list.check_at_rest();
        }
    }
}
