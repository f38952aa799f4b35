//! The contract of an ordered index on the list.

use super::SkipList;
use super::edit::Placed;
use super::node::{NodeRef, Probe};
use super::search::Place;
use std::ops::ControlFlow;
use tremula_index::key::KeyHead;
use tremula_index::kit::Implementation as OrderedIndex;
use tremula_index::{Direction, KeyRange, Shape, Storable, Update};
use tremula_sync::Backoff;
use tremula_sync::reclaim::Guard;

/// The level from which a descending walk collects its next entries: about four of them lie
/// between two nodes there.
const BLOCK_LEVEL: usize = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> SkipList<K, V, H> {
    /// The node of a key whose entry is there.
    #[inline]
    fn find<'g>(&'g self, key: &K, guard: &'g Guard<'_>) -> Option<NodeRef<'g, K, V, H>> {
        let probe = Probe::new(key);
        let (_, node) = self.descend(&Place::At(probe), 0, guard);
        node.filter(|node| node.compare(&probe).is_eq() && node.is_present())
    }

    /// The first entry behind `place`, or the last in front of it: it was there, and nothing
    /// between it and the place, at one moment.
    fn neighbour<'g>(
        &'g self,
        place: &Place<'_, K, H>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, K, V, H>> {
        let backoff = Backoff::new();
        loop {
            let (before, behind) = self.descend(place, 0, guard);
            let node = match direction {
                Direction::Ascending => behind,
                Direction::Descending => before,
            }?;
            if node.is_present() {
                if self.are_adjacent(before, behind) {
                    return Some(node);
                }
                // A removed node is in between, or something new.
                self.path(place, guard);
            } else if node.is_removed() {
                node.mark();
                self.path(place, guard);
            } else {
                // Vacant: somebody is deciding what its value is to be.
                backoff.wait();
            }
        }
    }

    /// Whether two nodes (or the list's ends) follow each other on the lowest level now.
    fn are_adjacent(
        &self,
        before: Option<NodeRef<'_, K, V, H>>,
        behind: Option<NodeRef<'_, K, V, H>>,
    ) -> bool {
        let tower = before.map_or_else(|| self.base(), NodeRef::tower);
        let link = tower.load(0);
        !link.is_marked() && link.address() == behind.map_or(0, |node| node.link().address())
    }

    /// Shows the entries of a range that are there to `visit`, one after another, until it breaks.
    fn walk<'g>(
        &'g self,
        range: KeyRange<'_, K>,
        direction: Direction,
        guard: &'g Guard<'_>,
        mut visit: impl FnMut(NodeRef<'g, K, V, H>) -> ControlFlow<()>,
    ) {
        match direction {
            Direction::Ascending => {
                let high = Place::high(&range);
                let (_, mut next) = self.descend(&Place::low(&range), 0, guard);
                while let Some(node) = next.filter(|node| high.is_behind(*node)) {
                    if node.is_present() && visit(node).is_break() {
                        return;
                    }
                    next = self.behind(node, guard);
                }
            }
            Direction::Descending => {
                let low = Place::low(&range);
                let mut block = Vec::new();
                let mut start = self.collect(&Place::high(&range), &mut block, guard);
                loop {
                    for node in block.drain(..).rev() {
                        if low.is_behind(node) || visit(node).is_break() {
                            return;
                        }
                    }
                    let Some(node) = start else {
                        return;
                    };
                    let key = node.with_key(K::clone);
                    start = self.collect(&Place::at(&key), &mut block, guard);
                }
            }
        }
    }

    /// Collects the entries in front of `place` back to a node on [`BLOCK_LEVEL`], inclusive, and
    /// returns that node; `None` if they are all that there are.
    fn collect<'g>(
        &'g self,
        place: &Place<'_, K, H>,
        block: &mut Vec<NodeRef<'g, K, V, H>>,
        guard: &'g Guard<'_>,
    ) -> Option<NodeRef<'g, K, V, H>> {
        let (start, _) = self.descend(place, BLOCK_LEVEL, guard);
        let mut next = start.or_else(|| self.node(self.base().load(0), guard));
        while let Some(node) = next.filter(|node| place.is_behind(*node)) {
            if node.is_present() {
                block.push(node);
            }
            next = self.behind(node, guard);
        }
        start
    }

    /// Removes the neighbour of an end of the list.
    fn pop(&self, direction: Direction) -> Option<(K, V)> {
        let guard = &self.collector.pin();
        let end = match direction {
            Direction::Ascending => Place::Start,
            Direction::Descending => Place::End,
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
                let key = node.with_key(K::clone);
                return Some((key, self.take_out(lock, guard)));
            }
        }
    }
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> NodeRef<'g, K, V, H> {
    /// Shows the value of an entry that was there during this pin.
    #[inline]
    fn with_value<R>(self, read: impl FnOnce(&V) -> R) -> R {
        // SAFETY: an entry that was there has a value; while the thread is pinned neither it nor
        // one that replaces it is freed.
        unsafe { self.value().with(read) }
    }

    /// A copy of an entry that was there during this pin.
    fn entry(self) -> (K, V) {
        (self.with_key(K::clone), self.with_value(V::clone))
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> OrderedIndex<K, V> for SkipList<K, V, H> {
    fn engine(&self) -> &'static str {
        if self.backlog.is_some() {
            "background_skip_list"
        } else {
            "skip_list"
        }
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.collector.pin();
        let node = self.find(key, guard);
        node.map(|node| node.with_value(read)).is_some()
    }

    fn get(&self, key: &K) -> Option<V> {
        let guard = &self.collector.pin();
        let node = self.find(key, guard);
        node.map(|node| node.with_value(V::clone))
    }

    fn contains_key(&self, key: &K) -> bool {
        self.find(key, &self.collector.pin()).is_some()
    }

    fn insert(&self, mut key: K, value: V) -> Option<V> {
        let guard = &self.collector.pin();
        let mut value = Some(value);
        loop {
            match self.place(key, value, guard) {
                Placed::New(node, path) => {
                    self.len.add(1);
                    self.build(node, path, guard);
                    return None;
                }
                Placed::Present(node, same, new) => match (node.lock(), new) {
                    (Some(entry), Some(new)) => return Some(self.replace(entry, new, guard)),
                    (_, new) => (key, value) = (same, new),
                },
            }
        }
    }

    fn insert_if_absent(&self, mut key: K, value: V) -> Result<(), V> {
        let guard = &self.collector.pin();
        let mut value = Some(value);
        loop {
            match self.place(key, value, guard) {
                Placed::New(node, path) => {
                    self.len.add(1);
                    self.build(node, path, guard);
                    return Ok(());
                }
                Placed::Present(node, same, new) => {
                    // A vacant entry is locked: this waits to see what becomes of it.
                    match (node.is_present() || node.lock().is_some(), new) {
                        (true, Some(new)) => return Err(new),
                        (_, new) => (key, value) = (same, new),
                    }
                }
            }
        }
    }

    fn remove(&self, key: &K) -> Option<V> {
        let guard = &self.collector.pin();
        let entry = self.find(key, guard)?.lock()?;
        Some(self.take_out(entry, guard))
    }

    fn update(&self, mut key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        let guard = &self.collector.pin();
        loop {
            match self.place(key, None, guard) {
                Placed::New(node, path) => {
                    self.update_vacant(node, path, decide, guard);
                    return None;
                }
                Placed::Present(node, same, _) => {
                    if let Some(old) = self.update_present(node, decide, guard) {
                        return old;
                    }
                    key = same;
                }
            }
        }
    }

    fn first(&self) -> Option<(K, V)> {
        let guard = &self.collector.pin();
        let node = self.neighbour(&Place::Start, Direction::Ascending, guard)?;
        Some(node.entry())
    }

    fn last(&self) -> Option<(K, V)> {
        let guard = &self.collector.pin();
        let node = self.neighbour(&Place::End, Direction::Descending, guard)?;
        Some(node.entry())
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let guard = &self.collector.pin();
        let place = Place::Behind(Probe::new(key));
        let node = self.neighbour(&place, Direction::Ascending, guard)?;
        Some(node.entry())
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let guard = &self.collector.pin();
        let node = self.neighbour(&Place::at(key), Direction::Descending, guard)?;
        Some(node.entry())
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.pop(Direction::Ascending)
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.pop(Direction::Descending)
    }

    /// Entry by entry, not as of one moment.
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
        let guard = &self.collector.pin();
        let mut left = limit;
        self.walk(range, direction, guard, |node| {
            out.push(node.entry());
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    /// Copies nothing. The thread is pinned to the list meanwhile: what others remove is not
    /// freed before the closure has seen the last entry.
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let guard = &self.collector.pin();
        self.walk(range, direction, guard, |node| {
            node.with_key(|key| node.with_value(|value| visit(key, value)))
        });
    }

    /// `None`: scans are not of one moment.
    fn snapshot(&self, _: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        None
    }

    /// Entry by entry, not as one step.
    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        let guard = &self.collector.pin();
        let mut nodes = Vec::new();
        self.walk(range, Direction::Ascending, guard, |node| {
            nodes.push(node);
            ControlFlow::Continue(())
        });
        // From here to the last removal no user code runs: a panic finds all removed or none.
        let mut removed = 0;
        nodes.retain(|node| {
            node.lock().is_some_and(|entry| {
                removed += 1;
                self.detach(entry)
            })
        });
        self.unlink_all(nodes, guard);
        removed
    }

    fn len(&self) -> usize {
        usize::try_from(self.len.sum()).unwrap_or(0)
    }

    fn shape(&self) -> Shape {
        let guard = &self.collector.pin();
        let (mut entries, mut bytes, mut links) = (0, size_of::<Self>(), 0);
        self.walk(KeyRange::all(), Direction::Ascending, guard, |node| {
            entries += 1;
            links += node.height() as u64;
            bytes += node.bytes() + tremula_index::kit::Packed::<V>::bytes_beside();
            ControlFlow::Continue(())
        });
        let mut figures = vec![
            ("entries", entries),
            ("levels", self.levels() as u64),
            ("links", links),
            ("bytes", bytes as u64),
        ];
        if let Some(backlog) = &self.backlog {
            figures.push(("left_to_thread", backlog.len() as u64));
        }
        Shape {
            engine: self.engine(),
            figures,
        }
    }
}
