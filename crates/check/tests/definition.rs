//! The search against the definition of linearizability, on small random histories: the verdicts
//! agree, orders found are valid orders, and counterexamples are counterexamples.
//!
//! Histories come from a possible run: calls at random times, each of which takes effect at a
//! random moment of its own. Some are left as they are. In the others an answer or a time is
//! changed, after which they may be linearizable or not.

mod support;

use proptest::prelude::*;
use std::collections::BTreeSet;
use support::brute_force::{explains, linearizable};
use tremula_check::map::{Change, MapHistory, MapSpecification, Operation, Response, Span};
use tremula_check::{DEFAULT_BUDGET, Event, History, Specification, Verdict, search, shorten};
use tremula_index::Direction;

/// The most calls in a history: the definition tries every order of them.
const CALLS: usize = 7;

/// The number of histories for each property.
const CASES: u32 = 6_000;

/// The initial entries of every map here. Keys are below 3.
const INITIAL: [(u64, u64); 1] = [(1, 1)];

type MapEvents = Vec<Event<Operation, Response>>;

/// A call before its answer is known: begin, duration, delay until it takes effect, operation, what
/// is seen.
type Outline = (u64, u64, u64, Operation, Seen);

/// The part of an answer that is seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    All,
    /// Only that the call returned.
    End,
    /// Nothing.
    Nothing,
}

fn key() -> impl Strategy<Value = u64> {
    0..3_u64
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::ALL),
        (key(), key()).prop_map(|(low, high)| Span::of(low..=high))
    ]
}

fn point() -> impl Strategy<Value = Operation> {
    // Few values, so that answers do not determine what came before.
    let change = prop_oneof![
        (0..3_u64).prop_map(Change::Put),
        Just(Change::Add(1)),
        Just(Change::Keep),
        Just(Change::Remove)
    ];
    prop_oneof![
        3 => key().prop_map(Operation::Get),
        1 => key().prop_map(Operation::ContainsKey),
        3 => (key(), 0..3_u64).prop_map(|(key, value)| Operation::Insert(key, value)),
        2 => (key(), 0..3_u64).prop_map(|(key, value)| Operation::InsertIfAbsent(key, value)),
        2 => key().prop_map(Operation::Remove),
        2 => (key(), change).prop_map(|(key, change)| Operation::Update(key, change)),
    ]
}

fn any() -> impl Strategy<Value = Operation> {
    let way = prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)];
    prop_oneof![
        6 => point(),
        1 => Just(Operation::First),
        1 => Just(Operation::Last),
        1 => key().prop_map(Operation::Next),
        1 => key().prop_map(Operation::Prev),
        1 => Just(Operation::PopFirst),
        1 => Just(Operation::PopLast),
        2 => (span(), way, 0..3_usize).prop_map(|(span, way, limit)| Operation::Scan(span, way, limit)),
        1 => span().prop_map(Operation::Snapshot),
        2 => span().prop_map(Operation::RemoveRange),
        2 => prop::collection::vec((key(), 0..3_u64), 0..4)
            .prop_map(|entries| Operation::InsertMany(entries.into())),
    ]
}

/// Outlines of calls. One in ten does not return, and two in ten do not show their answers.
fn outlines(operation: impl Strategy<Value = Operation>) -> impl Strategy<Value = Vec<Outline>> {
    let outline = (
        0..16_u64,
        0..6_u64,
        0..6_u64,
        operation,
        prop_oneof![7 => Just(Seen::All), 2 => Just(Seen::End), 1 => Just(Seen::Nothing)],
    );
    prop::collection::vec(outline, 1..=CALLS)
}

/// A change to a history: which call, and in which way.
type Spoiling = Option<(prop::sample::Index, prop::sample::Index, bool)>;

fn spoiling() -> impl Strategy<Value = Spoiling> {
    prop::option::weighted(0.9, any_spoiling())
}

fn any_spoiling() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, bool)> {
    (
        proptest::arbitrary::any::<prop::sample::Index>(),
        proptest::arbitrary::any::<prop::sample::Index>(),
        proptest::arbitrary::any::<bool>(),
    )
}

/// Runs the outlines, and spoils what was seen: one call gets the answer of another, or its time.
fn events(outlines: &[Outline], spoiling: Spoiling) -> MapEvents {
    let specification = MapSpecification::new(INITIAL);
    let mut state = specification.initial();
    let mut moments: Vec<usize> = (0..outlines.len()).collect();
    let moment = |number: &usize| {
        let (begin, length, effect, ..) = outlines[*number];
        begin + effect.min(length)
    };
    moments.sort_by_key(moment);
    let mut events: MapEvents = Vec::new();
    for number in moments {
        let (begin, length, _, operation, seen) = outlines[number].clone();
        let answer = specification.step(&mut state, &operation);
        let time = begin..=begin + length;
        events.push(match seen {
            Seen::All => Event::returned(number, time, operation, answer),
            Seen::End => Event::returned(number, time, operation, Response::Done),
            Seen::Nothing => Event::pending(number, begin, operation),
        });
    }
    if let Some((one, other, answer)) = spoiling {
        let one = one.index(events.len());
        let other = (one + 1 + other.index(events.len())) % events.len();
        let (called, returned) = (events[other].called, events[other].returned.clone());
        if let (Some(spoiled), Some(returned)) = (&mut events[one].returned, returned) {
            if answer {
                spoiled.response = returned.response;
            } else {
                spoiled.at = returned.at;
                events[one].called = called;
            }
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_verdict_is_that_of_the_definition(
        outlines in outlines(any()),
        spoiling in spoiling(),
    ) {
        let specification = MapSpecification::new(INITIAL);
        let events = events(&outlines, spoiling);
        let history = History::new(events.clone()).unwrap();
        let wanted = linearizable(&specification, &history);
        let in_groups = MapHistory::new(INITIAL, events).unwrap().check(DEFAULT_BUDGET);
        prop_assert_eq!(in_groups.is_ok(), wanted, "{:?}", in_groups);
        match search(&specification, &history, DEFAULT_BUDGET) {
            Verdict::Linearizable(found) => {
                prop_assert!(wanted);
                prop_assert!(explains(&specification, &history, &found.order));
                let placed: BTreeSet<usize> = found.order.iter().copied().collect();
                prop_assert_eq!(placed.len(), found.order.len(), "a call placed twice");
                for (number, event) in history.events().iter().enumerate() {
                    prop_assert!(event.returned.is_none() || placed.contains(&number));
                }
            }
            Verdict::Stuck(stuck) => {
                prop_assert!(!wanted);
                prop_assert!(explains(&specification, &history, &stuck.placed));
                prop_assert!(!stuck.placed.contains(&stuck.blocked));
                let short = shorten(&specification, &history, DEFAULT_BUDGET).unwrap();
                prop_assert!(!linearizable(&specification, &short));
                // Calls that were left out of the time until the last return only read.
                let ends = short.events().iter().filter_map(|event| event.returned.as_ref());
                let last = ends.map(|returned| returned.at).max().unwrap_or(0);
                let begun = history.events().iter().filter(|event| event.called <= last);
                for event in begun {
                    // Each thread makes one call.
                    let there = short.events().iter().any(|other| other.thread == event.thread);
                    let reads = specification.only_reads(&event.operation, event.response());
                    prop_assert!(there || reads, "{} is left out", event.operation);
                }
            }
            Verdict::Undecided => prop_assert!(false, "undecided"),
        }
    }

    #[test]
    fn a_run_that_happened_is_linearizable(outlines in outlines(any())) {
        let history = MapHistory::new(INITIAL, events(&outlines, None)).unwrap();
        prop_assert!(history.check(DEFAULT_BUDGET).is_ok());
        prop_assert!(history.check_by_key(DEFAULT_BUDGET).is_ok());
    }

    #[test]
    fn point_operations_are_linearizable_if_those_on_each_key_are(
        outlines in outlines(point()),
        spoiling in spoiling(),
    ) {
        let events = events(&outlines, spoiling);
        let history = MapHistory::new(INITIAL, events.clone()).unwrap();
        let by_key = history.check_by_key(DEFAULT_BUDGET).is_ok();
        prop_assert_eq!(history.check(DEFAULT_BUDGET).is_ok(), by_key);
        let specification = MapSpecification::new(INITIAL);
        let wanted = linearizable(&specification, &History::new(events).unwrap());
        prop_assert_eq!(by_key, wanted);
    }

    #[test]
    fn what_calls_say_of_single_keys_follows_from_what_they_say(
        outlines in outlines(any()),
        spoiling in spoiling(),
    ) {
        let history = MapHistory::new(INITIAL, events(&outlines, spoiling)).unwrap();
        if history.check(DEFAULT_BUDGET).is_ok() {
            prop_assert!(history.check_by_key(DEFAULT_BUDGET).is_ok());
        }
    }
}

/// Many of the spoiled histories must be bad, or the properties above mean little.
#[test]
fn the_random_histories_are_of_both_kinds() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut good, mut bad) = (0, 0);
    for _ in 0..500 {
        let outlines = outlines(any()).new_tree(&mut runner).unwrap().current();
        let spoiling = spoiling().new_tree(&mut runner).unwrap().current();
        let history = History::new(events(&outlines, spoiling)).unwrap();
        if linearizable(&MapSpecification::new(INITIAL), &history) {
            good += 1;
        } else {
            bad += 1;
        }
    }
    println!("{good} linearizable, {bad} not");
    assert!(good > 50 && bad > 50, "{good} linearizable, {bad} not");
}

/// A range of two entries that shows one before and one after a removal of both. By key each could
/// be seen; at one moment both could not.
#[test]
fn ranges_are_of_one_moment_as_far_as_they_are_said_to_be() {
    let torn = |entries: &[(u64, u64)]| {
        let range = Operation::Range(Span::ALL, Direction::Ascending, usize::MAX);
        let removal = Operation::RemoveRange(Span::ALL);
        let events = vec![
            Event::returned(0, 0..=9, range, Response::Entries(entries.to_vec())),
            Event::returned(1, 1..=2, removal, Response::Count(3)),
            Event::returned(1, 3..=4, Operation::Insert(3, 31), Response::Value(None)),
        ];
        MapHistory::new([(1, 10), (2, 20), (3, 30)], events).expect("times in order")
    };
    let is_fine = |history: MapHistory| history.check(DEFAULT_BUDGET).is_ok();
    let (two_moments, one_moment) = ([(1, 10), (3, 31)], [(1, 10), (2, 20), (3, 30)]);
    assert!(is_fine(torn(&two_moments)));
    assert!(is_fine(torn(&two_moments).with_ranges_of_one_moment(1)));
    assert!(!is_fine(torn(&two_moments).with_ranges_of_one_moment(2)));
    assert!(is_fine(torn(&one_moment).with_ranges_of_one_moment(3)));
    let loosely = torn(&two_moments).with_ranges_of_one_moment(2);
    assert!(is_fine(loosely.loosely([tremula_check::map::Kind::Range])));
}
