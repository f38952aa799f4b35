//! Which calls must be explained together.
//!
//! A call that happens at one moment ties together the keys that it visits: its answer says how
//! they were at the same time. Keys that nothing ties together are like maps of their own, and a
//! history is linearizable if those of its objects are (Herlihy and Wing's locality). So the search
//! handles one group of tied keys after another, and for point operations one key after another.
//! This is the P-compositionality of Horn and Kroening, with as fine a partition as each history
//! allows.
//!
//! A call that promises less than one moment ties nothing: each of its parts in single keys is
//! explained by itself.

use super::operation::{Operation, Response, Span};
use super::specification::{Entries, MapSpecification};
use super::well_formed::beyond;
use crate::history::{Event, Returned};
use crate::specification::Specification;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Bound, Range};
use tremula_index::Direction;

pub(super) type MapEvent = Event<Operation, Response>;
pub(super) type PartEvent = Event<Part, Response>;

/// A call, or its part in one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The operation that must be explained.
    operation: Operation,
    /// The call to which it belongs.
    of: Operation,
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.operation)?;
        if self.operation == self.of {
            Ok(())
        } else {
            write!(out, " in {}", self.of)
        }
    }
}

/// The specification of a map, applied to parts of calls.
pub(super) struct Parts(pub(super) MapSpecification);

impl Specification for Parts {
    type State = Entries;
    type Operation = Part;
    type Response = Response;

    fn initial(&self) -> Entries {
        self.0.initial()
    }

    fn step(&self, map: &mut Entries, part: &Part) -> Response {
        self.0.step(map, &part.operation)
    }

    fn accepts(&self, answer: &Response, observed: &Response) -> bool {
        self.0.accepts(answer, observed)
    }

    fn only_reads(&self, part: &Part, observed: Option<&Response>) -> bool {
        self.0.only_reads(&part.operation, observed)
    }
}

/// Keys that calls tie together, with those calls.
#[derive(Default)]
pub(super) struct Group {
    pub(super) keys: Vec<u64>,
    pub(super) parts: Vec<PartEvent>,
}

/// The groups into which calls tie the keys of a map, if each call that `strict` selects happens at
/// one moment.
pub(super) fn groups(
    events: &[MapEvent],
    initial: &BTreeMap<u64, u64>,
    strict: impl Fn(&MapEvent) -> bool,
) -> Vec<Group> {
    let keys = keys(events, initial);
    let mut ties = Ties::among(keys.len());
    for event in events.iter().filter(|event| strict(event)) {
        if let Operation::InsertMany(entries) = &event.operation {
            let place = |&(key, _): &(u64, u64)| keys.partition_point(|&other| other < key);
            ties.tie(entries.iter().map(place));
        } else if let Some(view) = View::of(event) {
            ties.tie(view.among(&keys));
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of = BTreeMap::new();
    // The number of each group, by the place of the group's first key.
    let mut numbers = BTreeMap::new();
    for (place, &key) in keys.iter().enumerate() {
        let number = *numbers.entry(ties.first(place)).or_insert(groups.len());
        if number == groups.len() {
            groups.push(Group::default());
        }
        groups[number].keys.push(key);
        group_of.insert(key, number);
    }
    // A call that visited no key has the answer of an empty map.
    let mut keyless = Group::default();
    for event in events {
        let together = |group: &mut Group| {
            let whole = part(event, event.operation.clone(), event.returned.clone());
            group.parts.push(whole);
        };
        if let Some(key) = event.operation.point() {
            together(&mut groups[group_of[&key]]);
            continue;
        }
        if let Operation::InsertMany(entries) = &event.operation
            && strict(event)
        {
            let first = entries.first().map(|(key, _)| group_of[key]);
            together(first.map_or(&mut keyless, |number| &mut groups[number]));
            continue;
        }
        match View::of(event).map(|view| view.among(&keys)) {
            Some(range) if range.is_empty() => together(&mut keyless),
            Some(range) if strict(event) => {
                together(&mut groups[group_of[&keys[range.start]]]);
            }
            _ => {
                for (key, part) in in_each_key(event, &keys) {
                    groups[group_of[&key]].parts.push(part);
                }
            }
        }
    }
    groups.push(keyless);
    groups
}

/// Which of some ascending keys are tied together: a union-find forest, in which the root of each
/// key is the first key that it is tied to.
struct Ties(Vec<usize>);

impl Ties {
    fn among(keys: usize) -> Self {
        Self((0..keys).collect())
    }

    /// The place of the first key that this one is tied to.
    fn first(&mut self, mut place: usize) -> usize {
        while self.0[place] != place {
            self.0[place] = self.0[self.0[place]];
            place = self.0[place];
        }
        place
    }

    fn tie(&mut self, places: impl IntoIterator<Item = usize>) {
        let mut one = None;
        for place in places {
            let root = self.first(place);
            let other = one.map_or(root, |one| self.first(one));
            let (low, high) = (root.min(other), root.max(other));
            self.0[high] = low;
            one = Some(low);
        }
    }
}

/// Every key that may be in the map at some time.
fn keys(events: &[MapEvent], initial: &BTreeMap<u64, u64>) -> Vec<u64> {
    let mut keys: BTreeSet<u64> = initial.keys().copied().collect();
    for event in events {
        keys.extend(event.operation.point());
        if let Operation::GetMany(batch) = &event.operation {
            keys.extend(batch.iter());
        }
        if let Operation::InsertMany(entries) = &event.operation {
            keys.extend(entries.iter().map(|&(key, _)| key));
        }
        match event.response() {
            Some(Response::Entry(entry)) => keys.extend(entry.map(|(key, _)| key)),
            Some(Response::Entries(entries)) => keys.extend(entries.iter().map(|&(key, _)| key)),
            _ => {}
        }
    }
    keys.into_iter().collect()
}

fn part(event: &MapEvent, operation: Operation, returned: Option<Returned<Response>>) -> PartEvent {
    Event {
        thread: event.thread,
        called: event.called,
        operation: Part {
            operation,
            of: event.operation.clone(),
        },
        returned,
    }
}

/// The parts of a call in the keys of which it says something.
fn in_each_key(event: &MapEvent, keys: &[u64]) -> Vec<(u64, PartEvent)> {
    let answered = |response| {
        event.returned.as_ref().map(|returned| Returned {
            at: returned.at,
            response,
        })
    };
    let looked_up = |(key, found)| {
        let returned = answered(Response::Value(found));
        (key, part(event, Operation::Get(key), returned))
    };
    if let (Operation::GetMany(keys), Some(Response::Values(values))) =
        (&event.operation, event.response())
    {
        let found = keys.iter().copied().zip(values.iter().copied());
        return found.map(looked_up).collect();
    }
    if let Operation::InsertMany(entries) = &event.operation {
        let last: BTreeMap<u64, u64> = entries.iter().copied().collect();
        let inserted = |(key, value)| {
            let inserted = Operation::Insert(key, value);
            (key, part(event, inserted, event.returned.clone()))
        };
        return last.into_iter().map(inserted).collect();
    }
    let Some(view) = View::of(event) else {
        return Vec::new();
    };
    let unknown = matches!(event.response(), None | Some(Response::Done));
    let none = event.response() == Some(&Response::Count(0));
    keys[view.among(keys)]
        .iter()
        .map(|&key| {
            let found = view.found.get(&key).copied();
            let returned = match event.operation {
                Operation::RemoveRange(_) if !none => answered(Response::Done),
                // It may have removed this key, or another.
                Operation::PopFirst | Operation::PopLast if unknown => None,
                Operation::PopFirst | Operation::PopLast if found.is_some() => {
                    answered(Response::Value(found))
                }
                _ => return looked_up((key, found)),
            };
            (key, part(event, Operation::Remove(key), returned))
        })
        .collect()
}

const NOTHING: Span = Span {
    low: Bound::Excluded(0),
    high: Bound::Excluded(0),
};

/// The keys that a call visited, with the entries that it found.
struct View {
    span: Span,
    found: BTreeMap<u64, u64>,
}

impl View {
    fn of(event: &MapEvent) -> Option<Self> {
        let operation = &event.operation;
        let all = beyond(operation);
        let (span, direction, found, full) = match (operation, event.response()) {
            (Operation::RemoveRange(span), _) => (*span, Direction::Ascending, Vec::new(), false),
            (Operation::PopFirst | Operation::PopLast, None | Some(Response::Done)) => {
                (all, Direction::Ascending, Vec::new(), false)
            }
            (_, Some(Response::Entry(entry))) => {
                let found: Vec<_> = entry.iter().copied().collect();
                let full = !found.is_empty();
                (all, way(operation), found, full)
            }
            (
                Operation::Scan(span, way, limit) | Operation::Range(span, way, limit),
                Some(Response::Entries(entries)),
            ) => (*span, *way, entries.clone(), entries.len() >= *limit),
            (Operation::Snapshot(span), Some(Response::Entries(entries))) => {
                (*span, Direction::Ascending, entries.clone(), false)
            }
            _ => return None,
        };
        let span = match (full, found.last(), direction) {
            (false, ..) => span,
            (true, None, _) => NOTHING,
            (true, Some(&(last, _)), Direction::Ascending) => Span {
                high: Bound::Included(last),
                ..span
            },
            (true, Some(&(last, _)), Direction::Descending) => Span {
                low: Bound::Included(last),
                ..span
            },
        };
        Some(Self {
            span,
            found: found.into_iter().collect(),
        })
    }

    /// Which of some ascending keys it visited.
    fn among(&self, keys: &[u64]) -> Range<usize> {
        let begin = keys.partition_point(|&key| !self.span.starts_before(key));
        let length = keys[begin..].partition_point(|&key| self.span.ends_after(key));
        begin..begin + length
    }
}

/// The direction in which a call that finds one entry visits keys.
const fn way(operation: &Operation) -> Direction {
    match operation {
        Operation::Last | Operation::PopLast | Operation::Prev(_) => Direction::Descending,
        _ => Direction::Ascending,
    }
}
