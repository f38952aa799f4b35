//! The store of a table: one interface over the ordered engines and the hash map.
//!
//! A store maps keys to what is kept under them ([`Kept`]). It knows nothing about rows or about
//! the semantics of tables.

mod hashed;
mod kept;
mod key;
mod ordered;
mod outgoing;

pub(super) use hashed::HashStore;
pub(super) use kept::{Kept, Layout};
pub(super) use key::OrderedKey;
pub(super) use ordered::open;
pub(super) use outgoing::let_go;

use crate::match_spec::{KeyBound, KeyInterval};
use crate::term::Term;
use std::ops::ControlFlow;
use tremula_index::{Adapted, Direction, Part, Shape};

/// An entry of a store: the key as the store has it, and what is kept under the key.
pub(super) type Entry = (Term, Kept);

/// Sees the changes of a store. Each method runs under the lock under which the change takes
/// effect, and before any other thread can see the change. It must be brief and must not use the
/// store.
pub(super) trait Observer {
    /// What is under `key` is now this.
    fn put(&mut self, key: &Term, kept: &Kept);

    /// What is under the key of a bag is now this, of which the newest `count` rows are new; the
    /// rows before them are as they were.
    fn added(&mut self, key: &Term, kept: &Kept, count: usize);

    /// The store had `key`, and no longer has it.
    fn removed(&mut self, key: &Term);

    /// The store has `key`, which expires at this time from now on, or never.
    fn expires(&mut self, key: &Term, time: Option<u64>);
}

/// The observer of a write of one key, or nobody. Every write of a store takes one of these or a
/// [`Reported`], so no write can leave out by mistake who has to know of it.
pub(super) struct Note<'n>(Option<&'n mut dyn Observer>);

impl<'n> Note<'n> {
    pub(super) const fn to(observer: &'n mut dyn Observer) -> Self {
        Self(Some(observer))
    }

    /// Nobody has to know of the change.
    pub(super) const fn nobody() -> Self {
        Self(None)
    }

    #[inline]
    fn put(self, key: &Term, kept: &Kept) {
        if let Some(observer) = self.0 {
            observer.put(key, kept);
        }
    }

    #[inline]
    fn removed(self, key: &Term) {
        if let Some(observer) = self.0 {
            observer.removed(key);
        }
    }

    /// Reports what is about to be done with an entry that the store has or has not.
    #[inline]
    fn decided(&mut self, key: &Term, is_there: bool, decision: &Decision) {
        let Some(observer) = &mut self.0 else { return };
        match decision {
            Decision::Put(kept) => observer.put(key, kept),
            Decision::Add(kept, count) => observer.added(key, kept, *count),
            Decision::Remove if is_there => observer.removed(key),
            Decision::Expire(time) if is_there => observer.expires(key, *time),
            Decision::Remove | Decision::Expire(_) | Decision::Keep => {}
        }
    }
}

/// The proof that a change of many keys has been reported already, or need not be.
#[derive(Clone, Copy)]
pub(super) struct Reported(());

impl Reported {
    /// Only [`Notes`](super::note::Notes) says so.
    pub(super) const fn done() -> Self {
        Self(())
    }
}

/// What the closure of [`Store::update`] decides to do with an entry.
pub(super) enum Decision {
    /// Put this under the key.
    Put(Kept),
    /// Put this under the key of a bag, where this number of rows is new, behind the others.
    Add(Kept, usize),
    /// Leave the entry, or its absence, as it is.
    Keep,
    /// Remove the entry, if there is one.
    Remove,
    /// Leave the entry as it is. The observer gets to know that it expires at this time, or never.
    Expire(Option<u64>),
}

/// Entries that have been taken out of a store, and whose memory is still to be freed.
#[derive(Default)]
pub(super) struct Garbage {
    /// Each frees an entry with each item.
    parts: Vec<Box<dyn Iterator<Item = ()> + Send>>,
}

impl Garbage {
    pub(super) fn add<E>(&mut self, entries: E)
    where
        E: IntoIterator<IntoIter: Send + 'static, Item: 'static>,
    {
        self.parts.push(Box::new(entries.into_iter().map(drop)));
    }

    /// This and that.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// Frees entries until `may_go_on` returns false after one. Returns whether all are freed.
    pub(super) fn free(&mut self, may_go_on: &mut dyn FnMut() -> bool) -> bool {
        while let Some(part) = self.parts.last_mut() {
            while part.next().is_some() {
                if !may_go_on() {
                    return false;
                }
            }
            self.parts.pop();
        }
        true
    }
}

/// An interval of keys, in the order of the store.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) low: Edge<'a>,
    pub(super) high: Edge<'a>,
}

/// An end of a span.
#[derive(Clone, Copy)]
pub(super) enum Edge<'a> {
    /// The end of all keys.
    Open,
    /// At this key, which the span does not contain.
    Beyond(&'a Term),
    /// At this bound; only in a store in the term order.
    Bound(&'a KeyBound),
}

impl Span<'_> {
    pub(super) const ALL: Self = Self {
        low: Edge::Open,
        high: Edge::Open,
    };
}

impl<'a> From<&'a KeyInterval> for Span<'a> {
    fn from(interval: &'a KeyInterval) -> Self {
        let edge = |bound: &'a Option<_>| bound.as_ref().map_or(Edge::Open, Edge::Bound);
        Self {
            low: edge(&interval.low),
            high: edge(&interval.high),
        }
    }
}

/// The rows of one table, by key.
///
/// Operations on one key are linearizable. The structure determines whether a scan is a snapshot. A
/// closure may run under a lock: it must be brief and must not use the store.
pub(super) trait Store: Send + Sync {
    /// The name of the structure.
    fn engine(&self) -> &'static str;

    /// Calls `read` once with what is under `key`, if the store has the key. Returns whether it
    /// has.
    fn get_with(&self, key: &Term, read: &mut dyn FnMut(&Kept)) -> bool;

    fn has(&self, key: &Term) -> bool {
        self.get_with(key, &mut |_| ())
    }

    /// Puts `kept` under `key` and returns what it replaced. An equal key in the store stays.
    fn insert(&self, key: Term, kept: Kept, note: Note<'_>) -> Option<Kept>;

    /// Puts `kept` under `key` unless the store has the key. Returns whether it did.
    fn insert_if_absent(&self, key: Term, kept: Kept, note: Note<'_>) -> bool;

    /// Removes `key` and returns what was under it.
    fn remove(&self, key: &Term, note: Note<'_>) -> Option<Kept>;

    /// Calls `decide` once with what is under `key`, and carries out its decision in the same step.
    /// Returns what it replaced or removed.
    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Decision,
        note: Note<'_>,
    ) -> Option<Kept>;

    /// The first entry in this direction.
    fn end(&self, direction: Direction) -> Option<Entry>;

    /// Calls `read` once with the entry strictly behind `key` in this direction, if there is one.
    /// Returns whether it did. The store need not have `key`.
    fn step_with(
        &self,
        key: &Term,
        direction: Direction,
        read: &mut dyn FnMut(&Term, &Kept),
    ) -> bool;

    /// Appends the first `limit` entries of `span` in this direction to `out`.
    fn scan(&self, span: Span<'_>, direction: Direction, limit: usize, out: &mut Vec<Entry>);

    /// Removes every entry of `span` and returns how many it removed: in one step if the structure
    /// has such an operation, else one by one.
    fn remove_range(&self, span: Span<'_>, _: Reported) -> usize {
        let mut entries = Vec::new();
        self.scan(span, Direction::Ascending, usize::MAX, &mut entries);
        let remove = |key| self.remove(key, Note::nobody()).is_some();
        entries.iter().filter(|(key, _)| remove(key)).count()
    }

    /// Takes every entry out, in a time that does not grow with them; `None` if the structure
    /// cannot.
    fn take_all(&self, reported: Reported) -> Option<Garbage>;

    /// Removes every entry, and frees what [`take_all`](Self::take_all) would not return.
    fn clear(&self, reported: Reported) -> Garbage {
        self.take_all(reported).unwrap_or_else(|| {
            self.remove_range(Span::ALL, reported);
            Garbage::default()
        })
    }

    /// The number of keys: exact when quiescent.
    fn len(&self) -> usize;

    /// Shows each part of the structure in turn, ascending, as
    /// [`Transactional::walk`](tremula_index::Transactional::walk) does; `None` if it has no parts
    /// that it can show.
    fn walk(&self, visit: &mut dyn FnMut(&Part<OrderedKey>) -> ControlFlow<()>) -> Option<Adapted> {
        let _ = visit;
        None
    }

    /// Describes the structure; the figure `bytes` leaves out what keys and rows have on the heap.
    /// Visits all of the structure.
    fn shape(&self) -> Shape;

    /// The figure `bytes` of [`shape`](Self::shape).
    fn structure_bytes(&self) -> usize {
        let bytes = self.shape().get("bytes").unwrap_or(0);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}
