//! The model itself: small histories that are right, and others that are not.

use crate::commands::{Command, Condition, Reply, Time, When};
use crate::feed::{Change, Feed};
use crate::model::{Call, Keys};
use crate::recorder::Recorded;

/// Calls one after another, each of one millisecond, beginning at these times.
fn one_by_one(calls: Vec<(u64, Command, Reply)>) -> Vec<Recorded> {
    let spans = calls.into_iter();
    spans
        .map(|(at, command, reply)| over(0, at, at, command, reply))
        .collect()
}

/// A call of a client from the beginning of one millisecond to the end of another.
fn over(client: usize, from: u64, to: u64, command: Command, reply: Reply) -> Recorded {
    let call = Call {
        client,
        command,
        reply,
        from,
        to,
    };
    Recorded {
        call,
        called: 10 * from,
        returned: 10 * to + 9,
    }
}

fn is_right_with(history: &[Recorded], feed: Option<Feed>) -> bool {
    let keys = Keys {
        clients: 2,
        is_logged: true,
        is_timeless: false,
        feed,
    };
    crate::check(&keys, history).is_ok()
}

fn is_right(history: &[Recorded]) -> bool {
    is_right_with(history, None)
}

fn set(value: u64, time: Time) -> Command {
    Command::Set(0, value, time, When::Always)
}

const GET: Command = Command::Get(0);
const NIL: Reply = Reply::Nil;

fn yes() -> Reply {
    Reply::Integer(1)
}

/// A time begins when the call that gives it does at the earliest, and when it ends at the latest.
#[test]
fn a_key_is_there_until_its_time_and_not_from_then_on() {
    let get_at = |from, to, reply| {
        let set = over(0, 100, 103, set(7, Time::In(5)), Reply::Ok);
        is_right(&[set, over(0, from, to, GET, reply)])
    };
    assert!(get_at(104, 104, Reply::Text(7)));
    assert!(!get_at(104, 104, NIL), "before 105");
    assert!(get_at(105, 105, NIL) && get_at(105, 105, Reply::Text(7)));
    assert!(get_at(107, 107, NIL) && get_at(107, 107, Reply::Text(7)));
    assert!(get_at(108, 108, NIL));
    assert!(!get_at(108, 108, Reply::Text(7)), "108 is the last time");
    assert!(get_at(104, 120, NIL) && get_at(104, 120, Reply::Text(7)));
    // What one reply says of the time holds for the others.
    let also = |second| {
        let set = over(0, 100, 103, set(7, Time::In(5)), Reply::Ok);
        let first = over(0, 106, 106, GET, Reply::Text(7));
        is_right(&[set, first, second])
    };
    assert!(also(over(0, 107, 107, GET, NIL)));
    assert!(also(over(0, 107, 107, Command::Pttl(0), yes())));
    assert!(!also(over(
        0,
        107,
        107,
        Command::Pttl(0),
        Reply::Integer(2)
    )));
    assert!(!also(over(
        0,
        107,
        107,
        Command::Pexpiretime(0),
        Reply::Integer(106)
    )));
    // Gone is gone.
    assert!(!is_right(&one_by_one(vec![
        (100, set(7, Time::In(5)), Reply::Ok),
        (105, GET, NIL),
        (105, GET, Reply::Text(7)),
    ])));
}

#[test]
fn persist_ends_a_time_and_no_other_command_does() {
    let behind = |command, reply| {
        is_right(&one_by_one(vec![
            (100, set(7, Time::In(5)), Reply::Ok),
            (102, command, reply),
            (110, GET, Reply::Text(7)),
        ]))
    };
    assert!(behind(Command::Persist(0), yes()));
    assert!(!behind(Command::Persist(0), Reply::Integer(0)));
    assert!(behind(Command::Getex(0, Time::Never), Reply::Text(7)));
    assert!(!behind(Command::Getex(0, Time::Kept), Reply::Text(7)));
    assert!(behind(
        Command::Expire(0, Time::In(9), When::Already),
        yes()
    ));
    assert!(!behind(
        Command::Expire(0, Time::In(9), When::Not),
        Reply::Integer(0)
    ));
    assert!(behind(set(7, Time::Never), Reply::Ok));
    assert!(!behind(set(7, Time::Kept), Reply::Ok));
    // Lost against the remover.
    assert!(!is_right(&one_by_one(vec![
        (100, set(7, Time::In(5)), Reply::Ok),
        (104, Command::Persist(0), yes()),
        (106, GET, NIL),
    ])));
}

#[test]
fn a_txn_runs_one_branch_as_one_step() {
    let branches = || {
        let both = |value| {
            vec![
                set(value, Time::Never),
                Command::Set(1, value, Time::Never, When::Always),
            ]
        };
        [both(8), both(9)]
    };
    let txn = |condition, which, left: u64, right: u64| {
        let replies = vec![
            Reply::Integer(which),
            Reply::List(vec![Reply::Ok, Reply::Ok]),
        ];
        is_right(&one_by_one(vec![
            (100, set(7, Time::Never), Reply::Ok),
            (
                101,
                Command::Txn(vec![condition], branches()),
                Reply::List(replies),
            ),
            (102, GET, Reply::Text(left)),
            (103, Command::Get(1), Reply::Text(right)),
        ]))
    };
    assert!(txn(Condition::Value(0, 7), 1, 8, 8));
    assert!(!txn(Condition::Value(0, 7), 0, 9, 9), "it holds");
    assert!(!txn(Condition::Absent(0), 1, 8, 8), "it does not");
    assert!(txn(Condition::Empty(1..=3), 1, 8, 8));
    assert!(!txn(Condition::Empty(0..=3), 1, 8, 8));
    assert!(!txn(Condition::Value(0, 7), 1, 8, 9), "half of each");
    assert!(txn(Condition::Version(0, 0), 0, 9, 9));
    // Two that take the same place.
    let take = |which: bool, value: u64| {
        let then = vec![set(value, Time::Never)];
        let replies = if which { vec![Reply::Ok] } else { vec![] };
        (
            Command::Txn(vec![Condition::Absent(0)], [then, vec![]]),
            Reply::List(vec![Reply::Integer(which.into()), Reply::List(replies)]),
        )
    };
    let both = |first, second| {
        let (one, one_reply) = take(first, 1);
        let (other, other_reply) = take(second, 2);
        is_right(&[
            over(0, 100, 102, one, one_reply),
            over(1, 101, 103, other, other_reply),
        ])
    };
    assert!(both(true, false) && both(false, true));
    assert!(!both(true, true) && !both(false, false));
}

#[test]
fn a_version_belongs_to_one_change() {
    let shown = |text, version| Reply::List(vec![Reply::Text(text), Reply::Integer(version)]);
    let twice = |between: Vec<(u64, Command, Reply)>, text, version| {
        let mut calls = vec![
            (100, set(7, Time::Never), Reply::Ok),
            (101, Command::Getv(0), shown(7, 5)),
        ];
        calls.extend(between);
        calls.push((103, Command::Getv(0), shown(text, version)));
        is_right(&one_by_one(calls))
    };
    let changed = || vec![(102, set(7, Time::Never), Reply::Ok)];
    assert!(twice(vec![], 7, 5) && !twice(vec![], 7, 6));
    assert!(twice(changed(), 7, 6) && !twice(changed(), 7, 5) && !twice(changed(), 7, 4));
    let retimed = || vec![(102, Command::Expire(0, Time::In(50), When::Always), yes())];
    assert!(twice(retimed(), 7, 6) && !twice(retimed(), 7, 5));
}

#[test]
fn exec_runs_if_and_only_if_no_watched_key_has_changed() {
    let exec = |between: Vec<(u64, Command, Reply)>, ran: bool| {
        let mut calls = vec![
            (100, set(7, Time::In(50)), Reply::Ok),
            (101, Command::Watch(vec![0]), Reply::Ok),
        ];
        calls.extend(between);
        let reply = if ran {
            Reply::List(vec![Reply::Ok])
        } else {
            NIL
        };
        let then = Command::Set(1, 8, Time::Never, When::Always);
        calls.push((160, Command::Exec(vec![then]), reply));
        is_right(&one_by_one(calls))
    };
    let persists = || (102, Command::Persist(0), yes());
    let other = || {
        (
            103,
            Command::Set(2, 3, Time::Never, When::Always),
            Reply::Ok,
        )
    };
    assert!(exec(vec![], false), "it has expired");
    assert!(!exec(vec![], true));
    assert!(exec(vec![persists()], false) && !exec(vec![persists()], true));
    let again = || (103, Command::Watch(vec![0]), Reply::Ok);
    let unwatch = || (103, Command::Unwatch, Reply::Ok);
    assert!(
        !exec(vec![persists(), again()], true),
        "the first watch counts"
    );
    assert!(exec(vec![persists(), unwatch()], true) && !exec(vec![persists(), unwatch()], false));
    let late = || (103, Command::Watch(vec![0]), Reply::Ok);
    let calls = vec![persists(), unwatch(), late(), other()];
    assert!(exec(calls.clone(), true) && !exec(calls, false));
}

/// Dropped, shown twice, in another order, with another value or time.
#[test]
fn a_feed_is_each_change_once_and_in_order() {
    let history = || {
        one_by_one(vec![
            (100, set(1, Time::Never), Reply::Ok),
            (101, set(2, Time::In(9)), Reply::Ok),
            (
                102,
                Command::Set(1, 3, Time::Never, When::Always),
                Reply::Ok,
            ),
            (103, Command::Persist(0), yes()),
            (104, Command::Del(0), yes()),
            (120, Command::End, Reply::Ok),
        ])
    };
    let is_right = |events: &[(usize, u64, Change)]| {
        let mut feed = Feed::default();
        for (key, sequence, change) in events {
            feed.push(*key, *sequence, *change);
        }
        feed.check_order(&history()).is_ok() && is_right_with(&history(), Some(feed))
    };
    let events = vec![
        (0, 1, Change::Set(1, None)),
        (0, 2, Change::Set(2, Some(110))),
        (1, 3, Change::Set(3, None)),
        (0, 4, Change::Expire(None)),
        (0, 5, Change::Del),
    ];
    assert!(is_right(&events));
    for at in 0..events.len() {
        let mut without = events.clone();
        without.remove(at);
        assert!(!is_right(&without), "without {at}");
        let mut twice = events.clone();
        twice.insert(at, twice[at]);
        assert!(!is_right(&twice), "{at} twice");
    }
    let with = |at: usize, sequence, change| {
        let mut other = events.clone();
        (other[at].1, other[at].2) = (sequence, change);
        is_right(&other)
    };
    assert!(with(1, 2, Change::Del), "shown when its time had come");
    assert!(!with(1, 2, Change::Set(2, Some(112))));
    assert!(!with(1, 2, Change::Set(2, None)));
    assert!(!with(0, 1, Change::Set(9, None)), "nobody has written that");
    assert!(with(2, 9, Change::Set(3, None)), "the last set");
    assert!(
        !with(0, 9, Change::Set(1, None)),
        "of calls that did not overlap"
    );
}

/// Between the changes of a step there are none of others.
#[test]
fn a_feed_keeps_a_step_together() {
    let step = Command::Mset(vec![(0, 1), (1, 2)]);
    let history = [
        over(0, 100, 105, step, Reply::Ok),
        over(
            1,
            100,
            105,
            Command::Set(2, 3, Time::Never, When::Always),
            Reply::Ok,
        ),
    ];
    let is_right = |sequences: [u64; 3]| {
        let mut feed = Feed::default();
        for (key, sequence) in sequences.into_iter().enumerate() {
            feed.push(key, sequence, Change::Set(key as u64 + 1, None));
        }
        feed.check_order(&history).is_ok()
    };
    assert!(is_right([1, 2, 3]) && is_right([2, 3, 1]));
    assert!(!is_right([1, 3, 2]));
}
