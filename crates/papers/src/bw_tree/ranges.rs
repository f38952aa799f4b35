//! Operations on more than one entry: scans, neighbours, the ends, and range removal.

use super::Position;
use super::Tree;
use super::base::{BaseRef, Draft};
use super::descend::Place;
use super::free::Removed;
use super::hold::Holds;
use super::node::Entry;
use super::reclaim::{Guard, Unlinked};
use super::word::{Kind, Switch, Word};
use std::ops::{Bound, ControlFlow, Range};
use std::ptr::NonNull;
use tremula_index::kit::{SearchRange, Spec, StoredKey};
use tremula_index::{Direction, KeyRange};
use tremula_sync::Backoff;
use tremula_sync::atomic::{AtomicBool, Ordering};

/// How often a scan over several leaves starts again before it holds them.
const ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// How often a thread that holds leaves and goes left tries to hold the next one before it releases
/// all.
const LEFT_ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// The contents of a leaf: its base node, if it has no deltas, else a private copy.
enum Contents<'a, 'g, S: Spec> {
    Base(BaseRef<'g, S>),
    Copy(&'a [Entry<S>]),
}

impl<S: Spec> Contents<'_, '_, S> {
    fn len(&self) -> usize {
        match self {
            Self::Base(base) => base.count as usize,
            Self::Copy(entries) => entries.len(),
        }
    }

    #[inline]
    fn entry(&self, at: usize) -> Entry<S> {
        match self {
            Self::Base(base) => base.entry(at),
            Self::Copy(entries) => entries[at],
        }
    }

    /// How many entries have keys for which `is_before` holds; they are the first ones.
    fn partition(&self, mut is_before: impl FnMut(StoredKey<S>) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.entry(middle).key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The indexes of the entries in a range.
    fn within(&self, range: &SearchRange<'_, S>) -> Range<usize> {
        // SAFETY: keys live as long as the nodes that they are in can be read.
        unsafe {
            let start = match range.low {
                Bound::Unbounded => 0,
                Bound::Included(low) => self.partition(|key| low.compare(key).is_gt()),
                Bound::Excluded(low) => self.partition(|key| low.compare(key).is_ge()),
            };
            let end = match range.high {
                Bound::Unbounded => self.len(),
                Bound::Included(high) => self.partition(|key| high.compare(key).is_ge()),
                Bound::Excluded(high) => self.partition(|key| high.compare(key).is_gt()),
            };
            start..end.max(start)
        }
    }
}

/// Calls `read` with the position at a fence of a node that can be read, or just below it.
fn at_fence<S: Spec, R>(
    fence: StoredKey<S>,
    direction: Direction,
    read: impl FnOnce(&Position<'_, S>) -> R,
) -> R {
    // SAFETY: fences live as long as their node can be read.
    unsafe { fence.search(|fence| read(&Position::beyond(fence, direction))) }
}

struct Walk<'k, S: Spec> {
    range: SearchRange<'k, S>,
    direction: Direction,
    /// The fence at which it has arrived.
    fence: Option<StoredKey<S>>,
    /// The leaves that a walk to the left has visited.
    visited: Vec<usize>,
}

impl<'k, S: Spec> Walk<'k, S> {
    fn new(range: &KeyRange<'k, S::Key>, direction: Direction) -> Self {
        Self {
            range: SearchRange::new(*range),
            direction,
            fence: None,
            visited: Vec::new(),
        }
    }

    /// Whether a walk makes progress by going to a leaf. To the right it always does, by the link.
    /// To the left, it descends to the place in front of a fence. The leaf found there links to the
    /// previous one; or the previous one has been merged away, and the leaf is one that the walk
    /// has not visited. If comparisons contradict each other, the walk may come to a leaf again,
    /// and has to end there.
    fn makes_progress(&mut self, place: &Place<'_, S>) -> bool {
        if self.direction == Direction::Ascending {
            return true;
        }
        let leads_back = self.visited.last() == Some(&place.view.right());
        if !leads_back && self.visited.contains(&place.id) {
            return false;
        }
        self.visited.push(place.id);
        true
    }

    /// Calls `read` with the position of the next leaf.
    fn at_next<R>(&self, read: impl FnOnce(&Position<'_, S>) -> R) -> R {
        match self.fence {
            Some(fence) => at_fence(fence, self.direction, read),
            None => read(&self.range.start(self.direction)),
        }
    }

    /// Whether the range continues to the right of a fence.
    fn continues_at(&self, fence: StoredKey<S>) -> bool {
        // SAFETY: fences live as long as their node can be read.
        unsafe {
            match self.range.high {
                Bound::Unbounded => true,
                Bound::Included(high) => high.compare(fence).is_ge(),
                Bound::Excluded(high) => high.compare(fence).is_gt(),
            }
        }
    }

    /// Whether the range continues to the left of a fence.
    fn continues_below(&self, fence: StoredKey<S>) -> bool {
        match self.range.low {
            Bound::Unbounded => true,
            // SAFETY: as in `continues_at`.
            Bound::Included(low) | Bound::Excluded(low) => unsafe { low.compare(fence).is_lt() },
        }
    }

    /// The indexes of a leaf's entries that are in the range, and that the walk has not seen.
    fn places(&self, contents: &Contents<'_, '_, S>) -> Range<usize> {
        let mut places = contents.within(&self.range);
        if let Some(fence) = self.fence {
            // Since the walk saw the fence, the leaf may have absorbed its right neighbour, or been
            // absorbed by its left one: this leaves out what the walk has seen already.
            // SAFETY: keys and fences live as long as their nodes can be read.
            let at = contents.partition(|key| unsafe { key.compare(fence).is_lt() });
            match self.direction {
                Direction::Ascending => places.start = places.start.max(at).min(places.end),
                Direction::Descending => places.end = places.end.min(at).max(places.start),
            }
        }
        places
    }

    /// Goes on to the end of a leaf. Returns whether the range may continue there.
    fn advance(&mut self, place: &Place<'_, S>) -> bool {
        match self.direction {
            Direction::Ascending => {
                self.fence = place.view.high();
                self.fence.is_some_and(|fence| self.continues_at(fence))
            }
            Direction::Descending => {
                self.fence = place.view.base.low();
                self.fence.is_some_and(|fence| self.continues_below(fence))
            }
        }
    }

    /// Appends a leaf's entries in the range, up to `limit` entries in all, and goes on to its end.
    /// Returns whether there may be more.
    fn read(
        &mut self,
        place: &Place<'_, S>,
        limit: usize,
        scratch: &mut Vec<Entry<S>>,
        out: &mut Vec<Entry<S>>,
    ) -> bool {
        let base = place.view.base;
        let contents = if place.view.delta().is_none() {
            Contents::Base(base)
        } else {
            scratch.clear();
            place.view.entries(scratch);
            Contents::Copy(scratch)
        };
        let places = self.places(&contents);
        let room = limit.saturating_sub(out.len());
        match self.direction {
            Direction::Ascending => out.extend(places.take(room).map(|at| contents.entry(at))),
            Direction::Descending => {
                out.extend(places.rev().take(room).map(|at| contents.entry(at)));
            }
        }
        out.len() < limit && self.advance(place)
    }
}

/// How a range removal changes one leaf.
struct RemovalPlan<'g, S: Spec> {
    place: Place<'g, S>,
    rest: Draft<S>,
    rest_count: usize,
}

impl<S: Spec> Tree<S> {
    /// Whether leaves have not changed since they were read: then all of them were so at the moment
    /// when the last one was read.
    fn are_unchanged(&self, seen: &[Place<'_, S>]) -> bool {
        let is_unchanged =
            |place: &Place<'_, S>| self.table.load(place.id).released() == place.word.released();
        seen.len() < 2 || seen.iter().all(is_unchanged)
    }

    /// Reads the first entries of a range, and notes their leaves; `false` if a range removal from
    /// one of them is under way.
    fn gather<'g>(
        &self,
        range: &KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        seen: &mut Vec<Place<'g, S>>,
        out: &mut Vec<Entry<S>>,
        guard: &'g Guard,
    ) -> bool {
        seen.clear();
        out.clear();
        let mut walk = Walk::new(range, direction);
        let mut scratch = Vec::new();
        loop {
            let linked = match (direction, seen.last()) {
                (Direction::Ascending, Some(last)) => {
                    // SAFETY: the leaf on the right was in use when the link to it was read.
                    unsafe { self.visit(last.view.right(), guard) }
                }
                _ => None,
            };
            let place =
                linked.unwrap_or_else(|| walk.at_next(|position| self.descend(position, 0, guard)));
            if place.word.kind() == Kind::Switch {
                return false;
            }
            if place.view.base.is_spread() {
                self.make_whole(&place, guard);
                continue;
            }
            if !walk.makes_progress(&place) {
                return true;
            }
            seen.push(place);
            if !walk.read(&place, limit, &mut scratch, out) {
                return true;
            }
        }
    }

    /// As [`gather`](Self::gather), but holds all leaves meanwhile; `false` if, going left, it met
    /// a leaf that another thread holds.
    fn gather_held(
        &self,
        range: &KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<Entry<S>>,
        guard: &Guard,
    ) -> bool {
        out.clear();
        let mut holds = Holds::new(self);
        let mut walk = Walk::new(range, direction);
        let mut scratch = Vec::new();
        let mut last = None;
        loop {
            let place = match (direction, last) {
                (Direction::Ascending, Some(last)) => Some(holds.hold_right_of(&last, guard)),
                _ => walk.at_next(|position| match direction {
                    Direction::Ascending => Some(holds.hold_leaf(position, guard)),
                    Direction::Descending => {
                        holds.hold_left_leaf(position, last.as_ref(), LEFT_ATTEMPTS, guard)
                    }
                }),
            };
            let Some(place) = place else {
                return false;
            };
            if last.is_some_and(|last| last.id == place.id)
                || !walk.read(&place, limit, &mut scratch, out)
            {
                return true;
            }
            last = Some(place);
        }
    }

    /// The first entries of a range, all as of one moment.
    pub(super) fn collect(
        &self,
        range: &KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<Entry<S>>,
        guard: &Guard,
    ) {
        if limit == 0 || range.is_empty() {
            return;
        }
        let backoff = Backoff::new();
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            if self.gather(range, direction, limit, &mut seen, out, guard)
                && self.are_unchanged(&seen)
            {
                return;
            }
            backoff.wait();
        }
        self.counters.held_scans.add(1);
        while !self.gather_held(range, direction, limit, out, guard) {
            backoff.wait();
        }
    }

    /// Removes the entry at one end of the tree.
    pub(super) fn pop(&self, direction: Direction, guard: &Guard) -> Option<(S::Key, S::Value)> {
        let backoff = Backoff::new();
        let (mut seen, mut entries) = (Vec::new(), Vec::new());
        let all = KeyRange::all();
        loop {
            if self.gather(&all, direction, 1, &mut seen, &mut entries, guard) {
                match (entries.first(), seen.last()) {
                    (Some(entry), Some(last)) => {
                        if let Some(popped) = self.remove_end(&seen, last, entry, guard) {
                            return Some(popped);
                        }
                    }
                    _ if self.are_unchanged(&seen) => return None,
                    _ => {}
                }
            }
            backoff.wait();
        }
    }

    /// Removes an entry from the last of these leaves, if none of them has changed since it was
    /// read.
    fn remove_end(
        &self,
        seen: &[Place<'_, S>],
        last: &Place<'_, S>,
        entry: &Entry<S>,
        guard: &Guard,
    ) -> Option<(S::Key, S::Value)> {
        let mut holds = Holds::new(self);
        if let Some(place) = (seen.iter()).find(|place| !holds.try_hold(place.id, place.word)) {
            drop(holds);
            self.help_merge(place.word, guard);
            return None;
        }
        // SAFETY: the entry is in the tree during this pin.
        let key = unsafe { entry.key.with(S::Key::clone) };
        let word = self.prepare_removal(last, entry)?;
        holds.release(last.id, word);
        drop(holds);
        // SAFETY: this thread has just unlinked it.
        let value = unsafe { Unlinked::<S::Value>::of_word(entry.value, guard) };
        self.len.add(-1);
        self.note_deletion(last.id, word, guard);
        self.consolidate_if_due(last.id, word, guard);
        Some((key, value.hand_out()))
    }

    /// Shows the entries of a range to `visit`, one leaf after another, from private copies.
    pub(super) fn visit_range(
        &self,
        range: &KeyRange<'_, S::Key>,
        direction: Direction,
        mut visit: impl FnMut(&Entry<S>) -> ControlFlow<()>,
        guard: &Guard,
    ) {
        if range.is_empty() {
            return;
        }
        let mut walk = Walk::new(range, direction);
        let (mut scratch, mut entries) = (Vec::new(), Vec::new());
        let mut last: Option<Place<'_, S>> = None;
        loop {
            let linked = match (direction, last) {
                (Direction::Ascending, Some(last)) => {
                    // SAFETY: the leaf on the right was in use when the link to it was read.
                    unsafe { self.visit_whole(last.view.right(), guard) }
                }
                _ => None,
            };
            let place = linked.unwrap_or_else(|| {
                walk.at_next(|position| self.descend_to_whole_leaf(position, guard))
            });
            if !walk.makes_progress(&place) {
                return;
            }
            last = Some(place);
            entries.clear();
            let continues = walk.read(&place, usize::MAX, &mut scratch, &mut entries);
            if entries.iter().any(|entry| visit(entry).is_break()) || !continues {
                return;
            }
        }
    }

    /// Removes the entries of a range at one moment; returns how many it removed.
    pub(super) fn remove_entries(&self, range: &KeyRange<'_, S::Key>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let guard = &self.pin();
        let mut holds = Holds::new(self);
        let (plans, removed) = self.plan_removal(range, &mut holds, guard);
        let count = removed.len();
        self.carry_out(&plans, holds, guard);
        self.len.add(-count.cast_signed());
        let mut small = Vec::new();
        for plan in plans {
            // SAFETY: the chain has just been unlinked; the new base node has the rest, and the
            // removed entries are freed below.
            unsafe { self.retire(plan.place.word, guard) };
            plan.rest.give();
            if plan.rest_count <= self.config.leaf_merge {
                small.push(plan.place);
            }
        }
        let removed = Removed::<S>(removed);
        // SAFETY: the entries have just been unlinked, and no other thread frees them.
        unsafe { guard.defer_unchecked(move || removed.free()) };
        for place in small {
            self.merge(&place, guard);
        }
        count
    }

    /// Holds all leaves of a range; returns the changes of the leaves that have a part of it, and
    /// the entries to remove.
    fn plan_removal<'g>(
        &self,
        range: &KeyRange<'_, S::Key>,
        holds: &mut Holds<'_, S>,
        guard: &'g Guard,
    ) -> (Vec<RemovalPlan<'g, S>>, Vec<Entry<S>>) {
        let (mut plans, mut removed) = (Vec::new(), Vec::new());
        let mut walk = Walk::new(range, Direction::Ascending);
        let mut last = None;
        loop {
            let place = match &last {
                None => walk.at_next(|position| holds.hold_leaf(position, guard)),
                Some(last) => holds.hold_right_of(last, guard),
            };
            last = Some(place);
            // Comparisons are asked once: each entry is in the rest, or among those removed.
            let mut entries = Vec::new();
            place.view.entries(&mut entries);
            let inside = walk.places(&Contents::<S>::Copy(&entries));
            let continues = walk.advance(&place);
            if !inside.is_empty() {
                removed.extend(entries.drain(inside));
                let fences = place.view.fences();
                plans.push(RemovalPlan {
                    place,
                    rest: Draft::of_entries(fences, &entries, self.options(0)),
                    rest_count: entries.len(),
                });
            }
            if !continues {
                return (plans, removed);
            }
        }
    }

    /// Gives held leaves their new base nodes, all at one moment, and releases all. Runs no user
    /// code.
    fn carry_out(&self, plans: &[RemovalPlan<'_, S>], holds: Holds<'_, S>, guard: &Guard) {
        for plan in plans {
            self.check_replaced(&plan.place, || plan.rest.word(), guard);
        }
        if plans.len() > 1 {
            let switches = SwitchSet::new(plans);
            for (plan, switch) in plans.iter().zip(&switches.switches) {
                self.table
                    .store(plan.place.id, Word::switch(*switch).held());
            }
            // SAFETY: the flag lives as long as the switches. SeqCst: see `MappingTable::load`.
            // This store removes the range.
            unsafe { switches.is_over.as_ref().store(true, Ordering::SeqCst) };
            for plan in plans {
                self.table.store(plan.place.id, plan.rest.word().held());
            }
            // SAFETY: no node leads to the switches any more.
            unsafe { guard.defer_unchecked(move || switches.free()) };
        }
        let mut plans = plans.iter().peekable();
        holds.release_all(|id, word| {
            plans
                .next_if(|plan| plan.place.id == id)
                .map_or(word, |plan| plan.rest.word())
        });
    }
}

/// The switches of all leaves of a range removal.
struct SwitchSet {
    is_over: NonNull<AtomicBool>,
    switches: Vec<NonNull<Switch>>,
}

impl SwitchSet {
    fn new<S: Spec>(plans: &[RemovalPlan<'_, S>]) -> Self {
        let is_over = NonNull::from(Box::leak(Box::new(AtomicBool::new(false))));
        let switches = plans.iter().map(|plan| {
            NonNull::from(Box::leak(Box::new(Switch {
                is_over: is_over.as_ptr(),
                before: plan.place.word.released(),
                after: plan.rest.word(),
            })))
        });
        Self {
            is_over,
            switches: switches.collect(),
        }
    }

    /// # Safety
    ///
    /// No other thread has the switches.
    unsafe fn free(self) {
        // SAFETY: they came from boxes.
        unsafe {
            for switch in self.switches {
                drop(Box::from_raw(switch.as_ptr()));
            }
            drop(Box::from_raw(self.is_over.as_ptr()));
        }
    }
}
