//! Recorded histories of the Bw-tree with many values under one key.
//!
//! The histories are checked as those of a map: each pair of key and value stands for a key of the
//! map. Neighbouring numbers are values of one key or, so that ranges can be removed, of one key
//! each. A history fails if a pair is added or removed twice, if the values of one key are from
//! different moments, or if a range is removed in parts.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use tremula_check::Campaign;
use tremula_check::map::{Kind, Operation, Response, Span};
use tremula_check::record::{Dawdler, Subject};
use tremula_index::key::NoHead;
use tremula_index::{Direction, KeyRange};
use tremula_papers::BwMultiMap;
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};

/// Nodes so small that the values of one key fill several.
const SMALL_NODES: BwTreeConfig = BwTreeConfig {
    leaf_chain: 2,
    leaf_split: 4,
    leaf_merge: 2,
    leaf_contention: 1,
    inner_chain: 2,
    inner_split: 3,
    inner_merge: 1,
    switches: BwTreeSwitches::ON,
};

/// The value of a pair, ordered by its number, with the value that the checked map has there.
#[derive(Clone)]
struct Marked {
    number: Dawdler,
    mark: u64,
}

impl Ord for Marked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl PartialOrd for Marked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Marked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Marked {}

/// Pairs in which `VALUES` neighbouring numbers share one key.
struct Pairs<const VALUES: u64> {
    map: BwMultiMap<Dawdler, Marked, NoHead>,
}

impl<const VALUES: u64> Pairs<VALUES> {
    fn new() -> Self {
        Self {
            map: BwMultiMap::with_config(SMALL_NODES),
        }
    }

    fn pair(number: u64, mark: u64) -> (Dawdler, Marked) {
        let value = Marked {
            number: Dawdler(number % VALUES),
            mark,
        };
        (Dawdler(number / VALUES), value)
    }

    fn entry(key: &Dawdler, value: &Marked) -> (u64, u64) {
        (key.0 * VALUES + value.number.0, value.mark)
    }

    /// Bounds of keys that cover a span, and may cover more.
    fn keys(span: Span) -> (Bound<Dawdler>, Bound<Dawdler>) {
        let whole = |bound: Bound<u64>| match bound {
            Bound::Included(number) => Bound::Included(Dawdler(number / VALUES)),
            // A key with one value is in the span or not; other keys may have values on both sides
            // of a bound.
            Bound::Excluded(number) if VALUES == 1 => Bound::Excluded(Dawdler(number)),
            Bound::Excluded(number) => Bound::Included(Dawdler(number / VALUES)),
            Bound::Unbounded => Bound::Unbounded,
        };
        (whole(span.low), whole(span.high))
    }
}

impl<const VALUES: u64> Subject for Pairs<VALUES> {
    fn offers(&self, kind: Kind) -> bool {
        match kind {
            Kind::Get
            | Kind::ContainsKey
            | Kind::InsertIfAbsent
            | Kind::Remove
            | Kind::Snapshot
            | Kind::Range
            | Kind::Len
            | Kind::IsEmpty => true,
            Kind::RemoveRange => VALUES == 1,
            _ => false,
        }
    }

    fn call(&self, operation: &Operation) -> Response {
        let map = &self.map;
        match *operation {
            Operation::Get(number) => {
                let (key, value) = Self::pair(number, 0);
                let values = map.values(&key);
                let count = values.len() as u64;
                assert!(count <= VALUES, "{count} values of one key");
                let found = values.into_iter().find(|found| *found == value);
                Response::Value(found.map(|found| found.mark))
            }
            Operation::ContainsKey(number) => {
                let (key, value) = Self::pair(number, 0);
                Response::Flag(map.contains(&key, &value))
            }
            Operation::InsertIfAbsent(number, mark) => {
                let (key, value) = Self::pair(number, mark);
                Response::Flag(map.insert(key, value))
            }
            Operation::Remove(number) => {
                let (key, value) = Self::pair(number, 0);
                Response::Flag(if VALUES == 1 {
                    map.remove_all(&key) > 0
                } else {
                    map.remove(&key, &value)
                })
            }
            Operation::Snapshot(span) => {
                let (low, high) = Self::keys(span);
                let pairs = map.snapshot(KeyRange::new(low.as_ref(), high.as_ref()));
                let entries = pairs.iter().map(|(key, value)| Self::entry(key, value));
                Response::Entries(entries.filter(|entry| span.contains(entry.0)).collect())
            }
            Operation::Range(span, direction, limit) => {
                Response::Entries(self.range(span, direction, limit))
            }
            Operation::RemoveRange(span) => {
                let (low, high) = Self::keys(span);
                Response::Count(map.remove_range(KeyRange::new(low.as_ref(), high.as_ref())))
            }
            Operation::Len => Response::Count(map.len()),
            Operation::IsEmpty => Response::Flag(map.is_empty()),
            _ => unreachable!("{operation} is not offered"),
        }
    }
}

impl<const VALUES: u64> Pairs<VALUES> {
    fn range(&self, span: Span, direction: Direction, limit: usize) -> Vec<(u64, u64)> {
        let (low, high) = Self::keys(span);
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        let mut entries = Vec::new();
        if limit > 0 {
            self.map.range(range, direction, |key, value| {
                let entry = Self::entry(key, value);
                if span.contains(entry.0) {
                    entries.push(entry);
                }
                if entries.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        }
        entries
    }
}

fn check<const VALUES: u64>(name: &str) {
    let short = Campaign {
        sessions: 3_000,
        ..Campaign::short()
    };
    let long = Campaign {
        sessions: 3,
        seed: 4,
        ..Campaign::long()
    };
    let mut overlaps = 0;
    for campaign in [short, long] {
        let tally = match campaign.run(Pairs::<VALUES>::new) {
            Ok(tally) => tally,
            Err(caught) => panic!("{name}: {caught}"),
        };
        println!("{name}: {tally}");
        assert_eq!(tally.histories, campaign.sessions * campaign.rounds);
        overlaps += tally.overlaps;
    }
    assert!(overlaps > 0, "{name}: no call overlapped with another");
}

#[test]
fn histories_of_pairs_are_right() {
    check::<8>("pairs, eight values of a key");
}

#[test]
fn histories_of_keys_with_one_value_are_right() {
    check::<1>("pairs, one value of a key");
}
