//! How operations reach the index of a database: freely, or in a step that holds a part of it.

use crate::{Expiry, Key, Value};
use std::cell::{OnceCell, RefCell};
use std::ops::{Bound, ControlFlow};
use tremula_index::{
    Direction, KeyRange, OrderedIndex, Shape, Snapshot, SnapshotCursor, Transaction, Transactional,
    Update, View,
};

/// The index of a database, as one operation reaches it.
#[derive(Clone, Copy)]
pub(crate) enum Access<'a> {
    Free(&'a dyn OrderedIndex<Key, Value>),
    /// In a step of this thread: what lies outside its ranges is out of reach.
    Held(&'a dyn Holding),
}

/// A step that is under way.
pub(crate) trait Holding {
    fn look(&self, look: &mut dyn FnMut(&dyn View<Key, Value>));
    fn change(&self, change: &mut dyn FnMut(&mut dyn Transaction<Key, Value>));
    /// The time that it is for the step: one moment, however long it takes.
    fn now(&self) -> Expiry;
}

/// What a step holds of one database.
pub(crate) struct Part<'p, 't> {
    step: RefCell<&'p mut (dyn Transaction<Key, Value> + 't)>,
    /// The time at the first look at a key that expires.
    clock: &'p OnceCell<Expiry>,
}

impl<'p, 't> Part<'p, 't> {
    pub(crate) const fn new(
        step: &'p mut (dyn Transaction<Key, Value> + 't),
        clock: &'p OnceCell<Expiry>,
    ) -> Self {
        let step = RefCell::new(step);
        Self { step, clock }
    }
}

impl Holding for Part<'_, '_> {
    fn look(&self, look: &mut dyn FnMut(&dyn View<Key, Value>)) {
        look(&**self.step.borrow());
    }

    fn change(&self, change: &mut dyn FnMut(&mut dyn Transaction<Key, Value>)) {
        change(&mut **self.step.borrow_mut());
    }

    fn now(&self) -> Expiry {
        *self.clock.get_or_init(Expiry::now)
    }
}

impl<'a> Access<'a> {
    /// The time that it is for this operation.
    pub(crate) fn now(self) -> Expiry {
        match self {
            Self::Free(_) => Expiry::now(),
            Self::Held(step) => step.now(),
        }
    }

    #[inline]
    pub(crate) fn get_with(self, key: &Key, read: &mut dyn FnMut(&Value)) -> bool {
        match self {
            Self::Free(index) => index.get_with(key, read),
            Self::Held(step) => {
                let mut is_there = false;
                step.look(&mut |view| is_there = view.get_with(key, read));
                is_there
            }
        }
    }

    pub(crate) fn get(self, key: &Key) -> Option<Value> {
        match self {
            Self::Free(index) => index.get(key),
            Self::Held(_) => {
                let mut found = None;
                self.get_with(key, &mut |value| found = Some(value.clone()));
                found
            }
        }
    }

    pub(crate) fn first(self) -> Option<(Key, Value)> {
        match self {
            Self::Free(index) => index.first(),
            Self::Held(_) => self.one_of(KeyRange::all(), Direction::Ascending),
        }
    }

    pub(crate) fn last(self) -> Option<(Key, Value)> {
        match self {
            Self::Free(index) => index.last(),
            Self::Held(_) => self.one_of(KeyRange::all(), Direction::Descending),
        }
    }

    /// `None` in a step.
    pub(crate) fn begin_snapshot(
        self,
        range: KeyRange<'_, Key>,
    ) -> Option<SnapshotCursor<Key, Value>> {
        match self {
            Self::Free(index) => index.begin_snapshot(range),
            Self::Held(_) => None,
        }
    }

    pub(crate) fn next(self, key: &Key) -> Option<(Key, Value)> {
        match self {
            Self::Free(index) => index.next(key),
            Self::Held(_) => {
                let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
                self.one_of(above, Direction::Ascending)
            }
        }
    }

    pub(crate) fn prev(self, key: &Key) -> Option<(Key, Value)> {
        match self {
            Self::Free(index) => index.prev(key),
            Self::Held(_) => {
                let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
                self.one_of(below, Direction::Descending)
            }
        }
    }

    fn one_of(self, range: KeyRange<'_, Key>, direction: Direction) -> Option<(Key, Value)> {
        let mut found = Vec::new();
        self.scan(range, direction, 1, &mut found);
        found.pop()
    }

    /// A step shows its entries ascending only. So there a descending scan passes over all of the
    /// range.
    pub(crate) fn scan(
        self,
        range: KeyRange<'_, Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        let step = match self {
            Self::Free(index) => return index.scan(range, direction, limit, out),
            Self::Held(_) if limit == 0 => return,
            Self::Held(step) => step,
        };
        let begin = out.len();
        step.look(&mut |view| {
            view.range(range, &mut |key, value| {
                out.push((key.clone(), value.clone()));
                let is_full = direction == Direction::Ascending && out.len() - begin == limit;
                if is_full {
                    return ControlFlow::Break(());
                }
                // Only the last ones count.
                if direction == Direction::Descending
                    && out.len() - begin >= limit.saturating_mul(2)
                {
                    out.drain(begin..out.len() - limit);
                }
                ControlFlow::Continue(())
            });
        });
        if direction == Direction::Descending {
            let surplus = (out.len() - begin).saturating_sub(limit);
            out.drain(begin..begin + surplus);
            out[begin..].reverse();
        }
    }

    /// Visits entries, ascending.
    pub(crate) fn range(
        self,
        range: KeyRange<'_, Key>,
        visit: &mut dyn FnMut(&Key, &Value) -> ControlFlow<()>,
    ) {
        match self {
            Self::Free(index) => index.range(range, Direction::Ascending, visit),
            Self::Held(step) => step.look(&mut |view| view.range(range, visit)),
        }
    }

    pub(crate) fn insert(self, key: Key, value: Value) -> Option<Value> {
        match self {
            Self::Free(index) => index.insert(key, value),
            Self::Held(_) => {
                let mut value = Some(value);
                self.update(key, &mut |_| value.take().map_or(Update::Keep, Update::Put))
            }
        }
    }

    pub(crate) fn remove(self, key: &Key) -> Option<Value> {
        match self {
            Self::Free(index) => index.remove(key),
            Self::Held(_) => self.update(key.clone(), &mut |_| Update::Remove),
        }
    }

    #[inline]
    pub(crate) fn update(
        self,
        key: Key,
        decide: &mut dyn FnMut(Option<&Value>) -> Update<Value>,
    ) -> Option<Value> {
        let step = match self {
            Self::Free(index) => return index.update(key, decide),
            Self::Held(step) => step,
        };
        let old = self.get(&key);
        let decided = decide(old.as_ref());
        let mut key = Some(key);
        let mut change = Some(match decided {
            Update::Keep => return None,
            Update::Remove => None,
            Update::Put(value) => Some(value),
        });
        step.change(&mut |step| match (key.take(), change.take()) {
            (Some(key), Some(Some(value))) => drop(step.insert(key, value)),
            (Some(key), Some(None)) => drop(step.remove(&key)),
            _ => (),
        });
        old
    }

    /// Removes a range, in which there are no entries that its log does not need to see.
    pub(crate) fn remove_range(self, range: KeyRange<'_, Key>) -> usize {
        match self {
            Self::Free(index) => index.remove_range(range),
            Self::Held(step) => {
                let mut removed = 0;
                step.change(&mut |step| removed = step.remove_range(range));
                removed
            }
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Free(index) => index.len(),
            Self::Held(_) => {
                let mut count = 0;
                self.range(KeyRange::all(), &mut |_, _| {
                    count += 1;
                    ControlFlow::Continue(())
                });
                count
            }
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        match self {
            Self::Free(index) => index.is_empty(),
            Self::Held(_) => self.first().is_none(),
        }
    }

    /// What the index looks like; nothing in a step.
    pub(crate) fn shape(self) -> Option<Shape> {
        match self {
            Self::Free(index) => Some(index.shape()),
            Self::Held(_) => None,
        }
    }

    /// Its steps, if the engine has any.
    pub(crate) fn steps(self) -> Option<Steps<'a>> {
        match self {
            Self::Free(index) => index.transactional().map(Steps::Own),
            Self::Held(step) => Some(Steps::Part(step)),
        }
    }
}

/// The steps of an index. In a step, they are parts of it.
#[derive(Clone, Copy)]
pub(crate) enum Steps<'a> {
    Own(&'a dyn Transactional<Key, Value>),
    Part(&'a dyn Holding),
}

impl Steps<'_> {
    pub(crate) fn atomically(
        self,
        over: &[KeyRange<'_, Key>],
        step: &mut dyn FnMut(&mut dyn Transaction<Key, Value>),
    ) {
        match self {
            Self::Own(steps) => steps.atomically(over, step),
            Self::Part(held) => held.change(step),
        }
    }

    pub(crate) fn remove_range_with(
        self,
        range: KeyRange<'_, Key>,
        note: &mut dyn FnMut(&dyn View<Key, Value>),
    ) -> usize {
        match self {
            Self::Own(steps) => steps.remove_range_with(range, note),
            Self::Part(held) => {
                held.look(note);
                Access::Held(held).remove_range(range)
            }
        }
    }

    /// `None` in a step.
    pub(crate) fn snapshot(self, range: KeyRange<'_, Key>) -> Option<Snapshot<Key, Value>> {
        match self {
            Self::Own(steps) => Some(steps.snapshot(range)),
            Self::Part(_) => None,
        }
    }

    /// Shows the parts of the index; `None` in a step.
    pub(crate) fn walk(
        self,
        visit: &mut dyn FnMut(&tremula_index::Part<Key>) -> ControlFlow<()>,
    ) -> Option<tremula_index::Adapted> {
        match self {
            Self::Own(steps) => Some(steps.walk(visit)),
            Self::Part(_) => None,
        }
    }
}
