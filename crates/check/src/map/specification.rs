//! The ordered map against which every subject is checked.

use super::number::entry;
use super::operation::{Change, Operation, Response, Span};
use crate::specification::Specification;
use std::fmt;
use tremula_index::{Direction, Update};

/// An ordered map, with its entries before the history begins.
#[derive(Clone, Debug)]
pub struct MapSpecification {
    initial: Entries,
}

impl MapSpecification {
    /// The specification of a map that begins with these entries. Of entries with the same key the
    /// last counts.
    pub fn new(initial: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut entries = Entries::default();
        for (key, value) in initial {
            entries.put(key, Some(value));
        }
        Self { initial: entries }
    }
}

/// The entries of a map in the order of their keys. States are small, and copied and compared far
/// more often than changed, so a vector is the fastest.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Entries(Vec<(u64, u64)>);

impl fmt::Debug for Entries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map()
            .entries(self.0.iter().copied().map(entry))
            .finish()
    }
}

impl Entries {
    fn place(&self, key: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |&(key, _)| key)
    }

    fn get(&self, key: u64) -> Option<u64> {
        self.place(key).ok().map(|place| self.0[place].1)
    }

    /// Stores a value, or removes it, and returns the previous one.
    fn put(&mut self, key: u64, value: Option<u64>) -> Option<u64> {
        match (self.place(key), value) {
            (Ok(place), Some(value)) => Some(std::mem::replace(&mut self.0[place].1, value)),
            (Ok(place), None) => Some(self.0.remove(place).1),
            (Err(place), Some(value)) => {
                self.0.insert(place, (key, value));
                None
            }
            (Err(_), None) => None,
        }
    }

    fn update(&mut self, key: u64, change: Change) -> Response {
        let shown = self.get(key);
        let returned = match change.decide(shown) {
            Update::Put(value) => self.put(key, Some(value)),
            Update::Keep => None,
            Update::Remove => self.put(key, None),
        };
        Response::Updated {
            shown: vec![shown],
            returned,
        }
    }

    fn scan(&self, span: Span, direction: Direction, limit: usize) -> Vec<(u64, u64)> {
        let inside = self
            .0
            .iter()
            .copied()
            .filter(|&(key, _)| span.contains(key));
        match direction {
            Direction::Ascending => inside.take(limit).collect(),
            Direction::Descending => inside.rev().take(limit).collect(),
        }
    }

    fn pop(&mut self, place: Option<usize>) -> Option<(u64, u64)> {
        place.map(|place| self.0.remove(place))
    }
}

impl Specification for MapSpecification {
    type State = Entries;
    type Operation = Operation;
    type Response = Response;

    fn initial(&self) -> Entries {
        self.initial.clone()
    }

    fn step(&self, map: &mut Entries, operation: &Operation) -> Response {
        match *operation {
            Operation::Get(key) | Operation::GetWith(key) => Response::Value(map.get(key)),
            Operation::ContainsKey(key) => Response::Flag(map.get(key).is_some()),
            Operation::GetMany(ref keys) => {
                Response::Values(keys.iter().map(|&key| map.get(key)).collect())
            }
            Operation::Insert(key, value) => Response::Value(map.put(key, Some(value))),
            Operation::InsertIfAbsent(key, value) => {
                let absent = map.get(key).is_none();
                if absent {
                    map.put(key, Some(value));
                }
                Response::Flag(absent)
            }
            Operation::InsertMany(ref entries) => {
                for &(key, value) in entries.iter() {
                    map.put(key, Some(value));
                }
                Response::Done
            }
            Operation::Remove(key) => Response::Value(map.put(key, None)),
            Operation::Update(key, change) => map.update(key, change),
            Operation::First => Response::Entry(map.0.first().copied()),
            Operation::Last => Response::Entry(map.0.last().copied()),
            Operation::Next(key) => {
                let place = map.0.partition_point(|&(other, _)| other <= key);
                Response::Entry(map.0.get(place).copied())
            }
            Operation::Prev(key) => {
                let place = map.0.partition_point(|&(other, _)| other < key);
                Response::Entry(map.0[..place].last().copied())
            }
            Operation::PopFirst => {
                let place = (!map.0.is_empty()).then_some(0);
                Response::Entry(map.pop(place))
            }
            Operation::PopLast => {
                let place = map.0.len().checked_sub(1);
                Response::Entry(map.pop(place))
            }
            Operation::Scan(span, direction, limit) | Operation::Range(span, direction, limit) => {
                Response::Entries(map.scan(span, direction, limit))
            }
            Operation::Snapshot(span) => {
                Response::Entries(map.scan(span, Direction::Ascending, usize::MAX))
            }
            Operation::RemoveRange(span) => {
                let before = map.0.len();
                map.0.retain(|&(key, _)| !span.contains(key));
                Response::Count(before - map.0.len())
            }
            Operation::Len => Response::Count(map.0.len()),
            Operation::IsEmpty => Response::Flag(map.0.is_empty()),
        }
    }

    /// An answer may be seen in part: [`Response::Done`] says nothing of it, and [`Response::Flag`]
    /// only whether there was a value.
    fn accepts(&self, answer: &Response, observed: &Response) -> bool {
        match (answer, observed) {
            (_, Response::Done) => true,
            (Response::Value(value), Response::Flag(found)) => value.is_some() == *found,
            _ => answer == observed,
        }
    }

    fn only_reads(&self, operation: &Operation, observed: Option<&Response>) -> bool {
        if !operation.kind().writes() {
            return true;
        }
        match (operation, observed) {
            (Operation::Update(_, Change::Keep), _) => true,
            (Operation::Update(_, Change::Remove), Some(Response::Updated { returned, .. })) => {
                returned.is_none()
            }
            (Operation::Remove(_), Some(Response::Value(None))) => true,
            (Operation::Remove(_) | Operation::InsertIfAbsent(..), Some(Response::Flag(false))) => {
                true
            }
            (Operation::PopFirst | Operation::PopLast, Some(Response::Entry(None))) => true,
            (Operation::RemoveRange(_), Some(Response::Count(0))) => true,
            _ => false,
        }
    }
}
