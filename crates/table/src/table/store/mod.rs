//! Where the rows of a table are: one interface over the ordered engines and the hash map.
//!
//! A store maps keys to what is kept under them ([`Kept`]). It knows neither of rows nor of the
//! semantics of tables; all that they need of it is here.

mod hashed;
mod kept;
mod key;
mod ordered;

pub(super) use hashed::HashStore;
pub(super) use kept::{Kept, Layout};
pub(super) use ordered::open;

use crate::match_spec::{KeyBound, KeyInterval};
use crate::term::Term;
use tremula_index::{Direction, Shape, Update};

/// One entry of a store: the key, as the store keeps it, and what is under it.
pub(super) type Entry = (Term, Kept);

/// A part of a store's keys, in its order.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) low: Edge<'a>,
    pub(super) high: Edge<'a>,
}

/// Where a span begins, or ends.
#[derive(Clone, Copy)]
pub(super) enum Edge<'a> {
    /// Before, or behind, all keys.
    Open,
    /// Strictly beyond this key.
    Beyond(&'a Term),
    /// At this bound: only in stores in the term order.
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
/// Operations on one key are linearizable. Of what moments a scan is, the structure tells. Closures
/// may run under a lock: they must be brief and must not come back to the store.
pub(super) trait Store: Send + Sync {
    /// The name of the structure.
    fn engine(&self) -> &'static str;

    /// Calls `read` with what is under `key`, once, or not at all if there is nothing.
    fn get_with(&self, key: &Term, read: &mut dyn FnMut(&Kept)) -> bool;

    /// Puts `kept` under `key` and returns what it replaced. A key that is there stays as it is.
    fn insert(&self, key: Term, kept: Kept) -> Option<Kept>;

    /// Puts `kept` under `key` if nothing is there; tells whether it did.
    fn insert_if_absent(&self, key: Term, kept: Kept) -> bool;

    /// Removes `key` and returns what was under it.
    fn remove(&self, key: &Term) -> Option<Kept>;

    /// Shows what is under `key` to `decide`, once, and does what it says in the same step.
    /// Returns what was replaced or removed.
    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Update<Kept>,
    ) -> Option<Kept>;

    /// The first entry in this direction.
    fn end(&self, direction: Direction) -> Option<Entry>;

    /// Calls `read` with the entry strictly behind `key` in this direction, once, or not at all if
    /// there is none; the key need not be there.
    fn step_with(
        &self,
        key: &Term,
        direction: Direction,
        read: &mut dyn FnMut(&Term, &Kept),
    ) -> bool;

    /// Appends the first `limit` entries of `span` in this direction to `out`.
    fn scan(&self, span: Span<'_>, direction: Direction, limit: usize, out: &mut Vec<Entry>);

    /// Removes every entry of `span` and returns how many there were: one step of a store in the
    /// term order, if its structure has such a step.
    fn remove_range(&self, span: Span<'_>) -> usize {
        let mut entries = Vec::new();
        self.scan(span, Direction::Ascending, usize::MAX, &mut entries);
        let removed = entries.iter().filter(|(key, _)| self.remove(key).is_some());
        removed.count()
    }

    /// Removes every entry.
    fn clear(&self);

    /// The number of keys: exact when quiescent.
    fn len(&self) -> usize;

    /// What the structure looks like; its figure `bytes` is what it takes without what keys and
    /// rows have on the heap. Visits all of it.
    fn shape(&self) -> Shape;
}
