//! Histories written by hand: anomalies that must be found, and histories that only look like
//! anomalies.
//!
//! Calls overlap if their spans do; spans that share an end overlap.

mod support;

use std::ops::{Bound, RangeInclusive};
use support::brute_force;
use tremula_check::map::Operation::*;
use tremula_check::map::Response::{Count, Done, Entries, Entry, Flag, Updated, Value, Values};
use tremula_check::map::{
    Change, Failure, Kind, MapHistory, MapSpecification, Operation, Response, Span,
};
use tremula_check::{DEFAULT_BUDGET, Event, History};
use tremula_index::Direction::{Ascending, Descending};

type Call = Event<Operation, Response>;

fn call(time: RangeInclusive<u64>, operation: Operation, response: Response) -> Call {
    Event::returned(0, time, operation, response)
}

fn pending(called: u64, operation: Operation) -> Call {
    Event::pending(0, called, operation)
}

fn updated(shown: Option<u64>, returned: Option<u64>) -> Response {
    Updated {
        shown: vec![shown],
        returned,
    }
}

/// The entries that each of these histories begins with.
const INITIAL: [(u64, u64); 3] = [(1, 10), (2, 20), (3, 30)];

fn check(calls: &[Call]) -> Result<(), Failure> {
    let history = MapHistory::new(INITIAL, calls.to_vec()).unwrap();
    history.check(DEFAULT_BUDGET).map(|_| ())
}

/// The verdict by the definition of linearizability, for calls to which it applies.
fn by_definition(calls: &[Call]) -> Option<bool> {
    let others = |call: &Call| matches!(call.operation, GetMany(_) | Range(..) | Len | IsEmpty);
    if calls.iter().any(others) {
        return None;
    }
    let history = History::new(calls.to_vec()).unwrap();
    Some(brute_force::linearizable(
        &MapSpecification::new(INITIAL),
        &history,
    ))
}

#[track_caller]
fn anomaly(name: &str, calls: &[Call]) -> Failure {
    assert_ne!(by_definition(calls), Some(true), "{name} is none");
    let failure = check(calls).expect_err(name);
    println!("{name}: {failure}\n");
    failure
}

#[track_caller]
fn not_linearizable(name: &str, calls: &[Call]) {
    let failure = anomaly(name, calls);
    assert!(
        matches!(failure, Failure::NotLinearizable { .. }),
        "{name}: {failure}"
    );
}

#[track_caller]
fn fine(name: &str, calls: &[Call]) {
    assert_ne!(by_definition(calls), Some(false), "{name} is not fine");
    if let Err(failure) = check(calls) {
        panic!("{name}: {failure}");
    }
}

#[test]
fn anomalies_of_single_keys_are_found() {
    not_linearizable(
        "a stale read",
        &[
            call(0..=1, Insert(1, 11), Value(Some(10))),
            call(2..=3, Get(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "a stale read after calls that overlapped",
        &[
            call(0..=5, Get(1), Value(Some(10))),
            call(1..=2, Insert(1, 11), Value(Some(10))),
            call(6..=7, Get(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "a read of what was never written",
        &[call(0..=1, Get(1), Value(Some(99)))],
    );
    not_linearizable(
        "a read of the future",
        &[
            call(0..=1, Get(1), Value(Some(11))),
            call(2..=3, Insert(1, 11), Value(Some(10))),
        ],
    );
    not_linearizable(
        "a lost update",
        &[
            call(
                0..=5,
                Update(1, Change::Add(1)),
                updated(Some(10), Some(10)),
            ),
            call(
                1..=6,
                Update(1, Change::Add(2)),
                updated(Some(10), Some(10)),
            ),
        ],
    );
    not_linearizable(
        "an update that tells of another value than it was shown",
        &[call(
            0..=5,
            Update(1, Change::Add(1)),
            updated(Some(10), None),
        )],
    );
    not_linearizable(
        "an insertion that is undone",
        &[
            call(0..=1, Insert(4, 40), Value(None)),
            call(2..=3, ContainsKey(4), Flag(false)),
        ],
    );
    not_linearizable(
        "a removal that is undone",
        &[
            call(0..=1, Remove(1), Value(Some(10))),
            call(2..=3, GetWith(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "one entry removed twice",
        &[
            call(0..=5, Remove(1), Value(Some(10))),
            call(1..=6, Remove(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "two that insert if absent, and both win",
        &[
            call(0..=5, InsertIfAbsent(4, 40), Flag(true)),
            call(1..=6, InsertIfAbsent(4, 41), Flag(true)),
        ],
    );
    not_linearizable(
        "one that inserts if absent and loses to nobody",
        &[call(0..=5, InsertIfAbsent(4, 40), Flag(false))],
    );
    not_linearizable(
        "reads that go back in time",
        &[
            call(0..=9, Insert(1, 11), Value(Some(10))),
            call(1..=2, Get(1), Value(Some(11))),
            call(3..=4, Get(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "reads of two threads that see two writes in different order",
        &[
            call(0..=9, Insert(1, 11), Value(Some(10))),
            call(0..=9, Insert(1, 12), Value(Some(11))),
            call(1..=2, Get(1), Value(Some(12))),
            call(3..=4, Get(1), Value(Some(11))),
        ],
    );
    not_linearizable(
        "a call that never returned, whose effect comes and goes",
        &[
            pending(0, Insert(1, 11)),
            call(1..=2, Get(1), Value(Some(11))),
            call(3..=4, Get(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "a call that never returned, and took effect before it began",
        &[
            call(0..=1, Get(1), Value(Some(11))),
            pending(2, Insert(1, 11)),
        ],
    );
    not_linearizable(
        "a call that never returned, taking effect twice",
        &[
            pending(0, Update(1, Change::Add(1))),
            call(1..=2, Get(1), Value(Some(12))),
        ],
    );
}

#[test]
fn anomalies_of_several_keys_are_found() {
    not_linearizable(
        "a scan of two moments",
        &[
            call(
                0..=9,
                Scan(Span::ALL, Ascending, 9),
                Entries(vec![(1, 10), (3, 33)]),
            ),
            call(1..=2, Insert(1, 11), Value(Some(10))),
            call(3..=4, Remove(2), Value(Some(20))),
            call(5..=6, Insert(3, 33), Value(Some(30))),
        ],
    );
    not_linearizable(
        "a limited scan down that skips a key",
        &[call(
            0..=1,
            Scan(Span::of(..3), Descending, 1),
            Entries(vec![(1, 10)]),
        )],
    );
    not_linearizable(
        "two snapshots that saw two insertions in different order",
        &[
            call(0..=9, Insert(4, 40), Value(None)),
            call(0..=9, Insert(5, 50), Value(None)),
            call(1..=8, Snapshot(Span::of(4..)), Entries(vec![(4, 40)])),
            call(1..=8, Snapshot(Span::of(4..)), Entries(vec![(5, 50)])),
        ],
    );
    not_linearizable(
        "entries inserted in one step, of which a scan sees a part",
        &[
            call(0..=9, InsertMany([(4, 40), (6, 60)].into()), Done),
            call(1..=8, Snapshot(Span::of(4..)), Entries(vec![(6, 60)])),
        ],
    );
    not_linearizable(
        "entries inserted in one step, seen one after the other",
        &[
            call(0..=9, InsertMany([(1, 11), (3, 33)].into()), Done),
            call(1..=2, Get(3), Value(Some(33))),
            call(3..=4, Get(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "an insertion of many that never returned, half done",
        &[
            pending(0, InsertMany([(1, 11), (2, 22)].into())),
            call(
                1..=2,
                Scan(Span::ALL, Ascending, 2),
                Entries(vec![(1, 11), (2, 20)]),
            ),
        ],
    );
    not_linearizable(
        "a range that is removed in parts",
        &[
            call(0..=9, RemoveRange(Span::ALL), Count(3)),
            call(1..=2, Snapshot(Span::ALL), Entries(vec![(2, 20), (3, 30)])),
        ],
    );
    not_linearizable(
        "two removals of a range that share what there is",
        &[
            call(0..=9, RemoveRange(Span::ALL), Count(2)),
            call(1..=8, RemoveRange(Span::ALL), Count(1)),
        ],
    );
    not_linearizable(
        "an entry popped twice",
        &[
            call(0..=5, PopFirst, Entry(Some((1, 10)))),
            call(1..=6, PopFirst, Entry(Some((1, 10)))),
        ],
    );
    not_linearizable(
        "a pop past what was there all the time",
        &[call(0..=5, PopLast, Entry(Some((2, 20))))],
    );
    not_linearizable(
        "a pop from one end of what was popped from the other",
        &[
            call(0..=1, RemoveRange(Span::of(2..)), Count(2)),
            call(2..=9, PopFirst, Entry(Some((1, 10)))),
            call(3..=8, PopLast, Entry(Some((1, 10)))),
        ],
    );
    not_linearizable(
        "a first that passes over a key that moved away behind it",
        &[
            call(0..=9, First, Entry(Some((2, 20)))),
            call(1..=2, Insert(0, 0), Value(None)),
            call(3..=4, Remove(1), Value(Some(10))),
        ],
    );
    not_linearizable(
        "a neighbour that was not one at any time",
        &[
            call(0..=9, Next(1), Entry(Some((3, 30)))),
            call(1..=2, Remove(3), Value(Some(30))),
            call(3..=4, Remove(2), Value(Some(20))),
        ],
    );
    not_linearizable(
        "a neighbour below that is too far",
        &[call(0..=1, Prev(3), Entry(Some((1, 10))))],
    );
    not_linearizable(
        "a batch with a value of before",
        &[
            call(0..=1, Insert(1, 11), Value(Some(10))),
            call(
                2..=3,
                GetMany([2, 1].into()),
                Values(vec![Some(20), Some(10)]),
            ),
        ],
    );
    not_linearizable(
        "a range that misses what was there all the time",
        &[call(
            0..=5,
            Range(Span::ALL, Ascending, usize::MAX),
            Entries(vec![(1, 10), (3, 30)]),
        )],
    );
    not_linearizable(
        "a range that shows a value of before",
        &[
            call(0..=1, Insert(1, 11), Value(Some(10))),
            call(
                2..=5,
                Range(Span::of(..2), Ascending, 9),
                Entries(vec![(1, 10)]),
            ),
        ],
    );
}

#[test]
fn answers_that_no_map_gives_are_found() {
    let wrong = |name, operation, response| {
        let failure = anomaly(name, &[call(0..=1, operation, response)]);
        assert!(matches!(failure, Failure::Answer(_)), "{name}: {failure}");
    };
    wrong(
        "keys out of order",
        Range(Span::ALL, Ascending, 9),
        Entries(vec![(2, 20), (1, 10), (3, 30)]),
    );
    wrong(
        "a key twice",
        Scan(Span::ALL, Descending, 9),
        Entries(vec![(3, 30), (2, 20), (2, 20), (1, 10)]),
    );
    wrong(
        "a key from outside",
        Snapshot(Span::of(2..)),
        Entries(vec![(1, 10), (2, 20), (3, 30)]),
    );
    wrong(
        "more than was asked for",
        Scan(Span::ALL, Ascending, 2),
        Entries(vec![(1, 10), (2, 20), (3, 30)]),
    );
    wrong("a neighbour of itself", Next(2), Entry(Some((2, 20))));
    wrong(
        "an update that decides twice",
        Update(1, Change::Keep),
        Updated {
            shown: vec![Some(10), Some(10)],
            returned: None,
        },
    );
    wrong(
        "a batch that is too short",
        GetMany([1, 2].into()),
        Values(vec![Some(10)]),
    );
    wrong("an answer to something else", Len, Value(Some(3)));
}

#[test]
fn counts_are_off_by_no_more_than_what_is_under_way() {
    let wrong = |name, calls: &[Call]| {
        let failure = anomaly(name, calls);
        assert!(matches!(failure, Failure::Count(_)), "{name}: {failure}");
    };
    wrong("a quiet length", &[call(0..=1, Len, Count(2))]);
    wrong(
        "a quiet map that is empty",
        &[call(0..=1, IsEmpty, Flag(true))],
    );
    wrong(
        "a length that forgets what has ended",
        &[
            call(0..=1, Insert(4, 40), Value(None)),
            call(2..=9, Insert(5, 50), Value(None)),
            call(3..=8, Len, Count(3)),
        ],
    );
    wrong(
        "a length that counts a removal twice",
        &[
            call(0..=9, Remove(1), Value(Some(10))),
            call(1..=8, Len, Count(1)),
        ],
    );
    wrong(
        "a length that counts what is yet to come",
        &[
            call(0..=1, Len, Count(4)),
            call(2..=3, Insert(4, 40), Value(None)),
        ],
    );
    // The map never had 2 entries, but the counter may include the removal and not yet the
    // insertion that made it possible.
    fine(
        "a length that sees the later of two changes under way",
        &[
            call(0..=9, Insert(4, 40), Value(None)),
            call(1..=2, Get(4), Value(Some(40))),
            call(3..=8, Remove(1), Value(Some(10))),
            call(4..=7, Len, Count(2)),
        ],
    );
    fine(
        "a map that looks empty while its range is being removed",
        &[
            call(0..=9, RemoveRange(Span::ALL), Count(3)),
            call(1..=2, IsEmpty, Flag(true)),
            call(3..=4, Get(1), Value(Some(10))),
        ],
    );
    fine(
        "lengths around a removal that never returned",
        &[
            pending(0, RemoveRange(Span::of(2..))),
            call(1..=2, Len, Count(1)),
            call(3..=4, Len, Count(3)),
        ],
    );
}

#[test]
fn what_looks_wrong_and_is_not_passes() {
    fine("nothing", &[]);
    fine(
        "reads that see a write before it returns, and not before that",
        &[
            call(0..=9, Insert(1, 11), Value(Some(10))),
            call(1..=6, Get(1), Value(Some(10))),
            call(2..=5, Get(1), Value(Some(11))),
        ],
    );
    fine(
        "calls that happen in the opposite order of their beginnings",
        &[
            call(0..=9, Remove(4), Value(Some(42))),
            call(1..=8, Insert(4, 42), Value(Some(41))),
            call(2..=7, InsertIfAbsent(4, 41), Flag(true)),
        ],
    );
    fine(
        "a call that never returned, seen",
        &[
            pending(0, Insert(4, 40)),
            call(5..=6, Get(4), Value(Some(40))),
        ],
    );
    fine(
        "a call that never returned, not seen, not yet",
        &[
            pending(0, Insert(4, 40)),
            call(1..=2, Get(4), Value(None)),
            call(3..=4, Get(4), Value(Some(40))),
        ],
    );
    fine(
        "a call that never returned, and never took effect",
        &[
            pending(0, RemoveRange(Span::ALL)),
            call(1..=2, Snapshot(Span::of(..2)), Entries(vec![(1, 10)])),
        ],
    );
    fine(
        "two that insert if absent, and the later wins",
        &[
            call(0..=5, InsertIfAbsent(4, 40), Flag(false)),
            call(1..=6, InsertIfAbsent(4, 41), Flag(true)),
        ],
    );
    fine(
        "pops that overlap and come in any order",
        &[
            call(0..=5, PopFirst, Entry(Some((2, 20)))),
            call(1..=6, PopFirst, Entry(Some((1, 10)))),
            call(2..=7, PopLast, Entry(None)),
            call(3..=8, PopLast, Entry(Some((3, 30)))),
        ],
    );
    fine(
        "a scan between two writes that overlap with it",
        &[
            call(
                0..=9,
                Scan(Span::ALL, Descending, 2),
                Entries(vec![(3, 33), (2, 20)]),
            ),
            call(1..=5, Insert(3, 33), Value(Some(30))),
            call(4..=8, Insert(2, 22), Value(Some(20))),
        ],
    );
    fine(
        "entries inserted in one step while others read before and after",
        &[
            call(0..=9, InsertMany([(1, 11), (3, 33)].into()), Done),
            call(1..=8, Get(3), Value(Some(30))),
            call(2..=3, Get(1), Value(Some(10))),
            call(4..=5, Get(3), Value(Some(33))),
            call(6..=7, Get(1), Value(Some(11))),
            call(10..=11, Len, Count(3)),
        ],
    );
    fine(
        "a batch of two moments, the later first",
        &[
            call(
                0..=9,
                GetMany([3, 1, 3].into()),
                Values(vec![Some(33), Some(10), Some(30)]),
            ),
            call(1..=2, Insert(1, 11), Value(Some(10))),
            call(5..=6, Insert(3, 33), Value(Some(30))),
        ],
    );
    fine(
        "a range of two moments",
        &[
            call(
                0..=9,
                Range(Span::ALL, Ascending, 9),
                Entries(vec![(1, 10), (3, 33)]),
            ),
            call(1..=2, Insert(1, 11), Value(Some(10))),
            call(3..=4, Remove(2), Value(Some(20))),
            call(5..=6, Insert(3, 33), Value(Some(30))),
        ],
    );
    fine(
        "a range that was left before the end",
        &[call(
            0..=1,
            Range(Span::ALL, Descending, 1),
            Entries(vec![(3, 30)]),
        )],
    );
    fine(
        "spans that hold nothing",
        &[
            call(
                0..=1,
                Scan(
                    Span::of((Bound::Included(3), Bound::Included(2))),
                    Ascending,
                    9,
                ),
                Entries(vec![]),
            ),
            call(2..=3, Scan(Span::ALL, Ascending, 0), Entries(vec![])),
            call(4..=5, RemoveRange(Span::of(3..3)), Count(0)),
        ],
    );
    fine(
        "answers that tell little",
        &[
            call(0..=1, Insert(1, 11), Done),
            call(2..=3, Remove(1), Flag(true)),
            call(4..=5, Get(1), Flag(false)),
            call(6..=7, PopFirst, Done),
            call(8..=9, Len, Count(1)),
        ],
    );
}

#[test]
fn what_is_not_of_one_moment_is_held_to_what_it_says_of_each_key() {
    const LOOSE: [Kind; 3] = [Kind::Scan, Kind::Next, Kind::RemoveRange];
    let check = |calls: &[Call]| {
        let history = MapHistory::new(INITIAL, calls.to_vec()).unwrap();
        history.loosely(LOOSE).check(DEFAULT_BUDGET).is_ok()
    };
    let scan = |entries: &[(u64, u64)]| {
        let entries = Entries(entries.to_vec());
        call(0..=9, Scan(Span::ALL, Ascending, 9), entries)
    };
    let two_moments = [
        scan(&[(1, 10), (3, 33)]),
        call(1..=2, Insert(1, 11), Value(Some(10))),
        call(3..=4, Remove(2), Value(Some(20))),
        call(5..=6, Insert(3, 33), Value(Some(30))),
    ];
    assert!(check(&two_moments));
    assert!(!check(&[scan(&[(1, 10), (3, 30)])]));
    assert!(!check(&[scan(&[(1, 10), (2, 20), (3, 33)])]));

    let shared = [
        call(0..=9, RemoveRange(Span::ALL), Count(2)),
        call(1..=8, RemoveRange(Span::ALL), Count(1)),
    ];
    assert!(check(&shared));
    let half_done = [
        call(0..=1, RemoveRange(Span::ALL), Count(3)),
        call(2..=3, Get(2), Value(Some(20))),
    ];
    assert!(!check(&half_done));
    assert!(!check(&[call(
        0..=1,
        RemoveRange(Span::of(3..3)),
        Count(1)
    )]));

    // Operations of one moment are still checked as such, beside those that are not.
    let popped_past = [
        call(0..=1, Next(1), Entry(Some((2, 20)))),
        call(2..=3, PopFirst, Entry(Some((2, 20)))),
    ];
    assert!(!check(&popped_past));
}

#[test]
fn answers_that_tell_little_still_tell_something() {
    not_linearizable(
        "a removal that found nothing",
        &[call(0..=1, Remove(1), Flag(false))],
    );
    not_linearizable(
        "an insertion without an answer, and without effect",
        &[
            call(0..=1, Insert(1, 11), Done),
            call(2..=3, Get(1), Value(Some(10))),
        ],
    );
}

#[test]
fn a_report_shows_only_what_is_needed() {
    let calls = [
        call(0..=1, Get(2), Value(Some(20))),
        call(2..=3, Insert(2, 21), Value(Some(20))),
        call(4..=5, Get(1), Value(Some(10))),
        call(6..=20, Insert(1, 11), Value(Some(10))),
        Event::returned(1, 7..=9, Get(1), Value(Some(11))),
        Event::returned(2, 10..=12, Get(1), Value(Some(10))),
        call(21..=22, Get(1), Value(Some(11))),
    ];
    let failure = check(&calls).unwrap_err();
    let report = "\
not linearizable in key 1; calls that show it: 3

order  thread  time    call           answer
    1       0  |---->  insert(1, 11)  …
    2       1   ||     get(1)         Some(11)
 none       2     ||   get(1)         Some(10)

The longest order found has 2 of 3 calls, as numbered, and leaves the state
    {1: 11}
There is no place for `get(1)` of thread 2, which ends next: here it would
answer Some(11), and it answered Some(10).
";
    assert_eq!(failure.to_string(), report);
}

#[test]
fn a_budget_that_does_not_suffice_is_a_failure() {
    // No answer shows in which order the insertions happened, until it turns out that there is no
    // order.
    let mut calls: Vec<Call> = (0..12)
        .map(|value| call(0..=1, Insert(1, value), Done))
        .collect();
    calls.push(call(2..=3, Get(1), Value(Some(99))));
    let history = MapHistory::new([], calls).unwrap();
    let failure = history.check(1_000).unwrap_err();
    assert!(
        matches!(failure, Failure::Undecided { budget: 1_000, .. }),
        "{failure}"
    );
    assert!(matches!(
        history.check(DEFAULT_BUDGET),
        Err(Failure::NotLinearizable { .. })
    ));
}
