//! Histories of keys that expire, have versions, are watched, and are changed by `TXN` and `EXEC`:
//! what several clients have seen of the real server at once, checked for one order that explains
//! all replies.
//!
//! The [model] says what is right. It is compared with each reply, and with each event that a
//! watcher of the keys was shown. Beside it, the clients' clock: no key may go before its time, and
//! none may be seen from its time on.

#[path = "../support/mod.rs"]
mod support;

mod anomalies;
mod commands;
mod feed;
mod model;
mod recorder;
mod world;

use commands::{Command, Condition, Reply, Time, When};
use feed::{Feed, Watcher};
use model::{Answer, Call, KEYS, Keys};
use rand::rngs::StdRng;
use rand::{RngExt, seq::IndexedRandom};
use recorder::{Client, Recorded, millis, record};
use std::ops::RangeInclusive;
use std::thread;
use std::time::Duration;
use support::resp::Connection;
use support::{Server, eventually};
use tremula_check::{DEFAULT_BUDGET, Event, History, Verdict, explain, search, shorten};

/// The clients of a round, and the calls of each.
const CLIENTS: usize = 4;
const CALLS: usize = 60;

/// The longest time that a key is given, beside those that are too long to come.
const LONGEST: u64 = 12;
const TOO_LONG: u64 = 100_000;

/// The longest pause before a call, in microseconds; there is one before some of the calls.
const LONGEST_PAUSE: u64 = 3000;

/// What a history has beside plain commands.
#[derive(Clone, Copy, Debug, Default)]
struct Mix {
    txn: bool,
    times: bool,
    exec: bool,
    watched: bool,
}

/// A client that draws its commands, and remembers what it was shown.
struct Random {
    mix: Mix,
    /// The number of the keys, from the first one on, of which most commands are.
    keys: usize,
    random: StdRng,
    next_value: u64,
    /// The last value and the last version that it has seen of each key.
    values: [u64; KEYS],
    versions: [u64; KEYS],
    /// The keys that it watches.
    watched: Vec<usize>,
}

impl Random {
    fn key(&mut self) -> usize {
        match self.random.random_range(0..8) {
            0 => self.random.random_range(0..KEYS),
            _ => self.random.random_range(0..self.keys),
        }
    }

    fn keys(&mut self) -> RangeInclusive<usize> {
        let (one, other) = (self.key(), self.key());
        one.min(other)..=one.max(other)
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        *all.choose(&mut self.random).expect("some")
    }

    /// A time in milliseconds from now on.
    fn span(&mut self) -> u64 {
        if self.random.random_ratio(1, 8) {
            return TOO_LONG;
        }
        self.random.random_range(1..=LONGEST)
    }

    fn time(&mut self) -> Time {
        match self.random.random_range(0..4) {
            0 => Time::At(millis() + self.span()),
            _ => Time::In(self.span()),
        }
    }

    /// A time of a value that is stored.
    fn lifetime(&mut self) -> Time {
        if !self.mix.times {
            return Time::Never;
        }
        match self.random.random_range(0..5) {
            0 => Time::Never,
            1 => Time::Kept,
            _ => self.time(),
        }
    }

    /// A command on a key, which may also be a part of a step.
    fn simple(&mut self) -> Command {
        let key = self.key();
        if self.mix.times && self.random.random_ratio(2, 5) {
            let all = [When::Always, When::Always, When::Not, When::Already];
            return match self.random.random_range(0..7) {
                0 | 1 => Command::Expire(key, self.time(), self.one_of(&all)),
                2 => Command::Persist(key),
                3 => Command::Getex(key, self.time()),
                4 => Command::Getex(key, self.one_of(&[Time::Never, Time::Kept])),
                5 => Command::Pttl(key),
                _ => Command::Pexpiretime(key),
            };
        }
        match self.random.random_range(0..12) {
            0..3 => Command::Get(key),
            3 => Command::Getv(key),
            4 => Command::Set(key, self.value(), self.lifetime(), When::Always),
            5 => Command::Set(key, self.value(), self.lifetime(), When::Not),
            6 => Command::Set(key, self.value(), self.lifetime(), When::Already),
            7 | 8 => Command::Replace(key, self.value(), self.lifetime()),
            9 => Command::Del(key),
            10 => Command::Getdel(key),
            _ => Command::Range(self.keys()),
        }
    }

    fn commands(&mut self) -> Vec<Command> {
        let count = self.random.random_range(0..=3);
        (0..count).map(|_| self.simple()).collect()
    }

    fn condition(&mut self) -> Condition {
        let key = self.key();
        match self.random.random_range(0..6) {
            0 => Condition::Value(key, self.values[key]),
            1 | 2 => Condition::Version(key, self.versions[key]),
            3 => Condition::Present(key),
            4 => Condition::Absent(key),
            _ => Condition::Empty(self.keys()),
        }
    }

    fn txn(&mut self) -> Command {
        let count = self.one_of(&[0, 1, 1, 1, 2, 2, 3]);
        let conditions = (0..count).map(|_| self.condition()).collect();
        Command::Txn(conditions, [self.commands(), self.commands()])
    }

    /// A transaction by keys that are watched, a call at a time.
    fn exec(&mut self) -> Command {
        if self.watched.is_empty() {
            let count = self.random.random_range(1..=2);
            self.watched = (0..count).map(|_| self.key()).collect();
            self.watched.dedup();
            return Command::Watch(self.watched.clone());
        }
        match self.random.random_range(0..8) {
            0..2 => Command::Get(self.watched[0]),
            2 => {
                self.watched.clear();
                Command::Unwatch
            }
            _ => {
                self.watched.clear();
                Command::Exec(self.commands())
            }
        }
    }
}

impl Client for Random {
    fn next(&mut self) -> (Duration, Command) {
        let pause = match self.random.random_range(0..8) {
            0 if self.mix.times => {
                Duration::from_micros(self.random.random_range(0..LONGEST_PAUSE))
            }
            _ => Duration::ZERO,
        };
        let command = match self.random.random_range(0..10) {
            0..4 if self.mix.txn => self.txn(),
            4..8 if self.mix.exec => self.exec(),
            8 if self.random.random_ratio(1, 4) => Command::Delrange(self.keys()),
            8 => {
                let (one, other) = (self.key(), self.key());
                let mut entries = vec![(one, self.value())];
                if one != other {
                    entries.push((other, self.value()));
                }
                Command::Mset(entries)
            }
            _ => self.simple(),
        };
        (pause, command)
    }

    fn see(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::Get(key), Reply::Text(value)) => self.values[*key] = *value,
            (Command::Getv(key), Reply::Nil) => self.versions[*key] = 0,
            (Command::Getv(key), Reply::List(parts)) => {
                if let [Reply::Text(value), Reply::Integer(version)] = parts.as_slice() {
                    self.values[*key] = *value;
                    self.versions[*key] = *version as u64;
                }
            }
            (Command::Set(key, value, ..), Reply::Ok) => self.values[*key] = *value,
            _ => {}
        }
    }
}

/// Whether one order explains what was recorded. The error is a report.
fn check(keys: &Keys, history: &[Recorded]) -> Result<usize, String> {
    let events: Vec<Event<Call, Answer>> = history.iter().map(Recorded::event).collect();
    let history = History::new(events).map_err(|malformed| malformed.to_string())?;
    match search(keys, &history, DEFAULT_BUDGET) {
        Verdict::Linearizable(_) => Ok(history.overlaps()),
        Verdict::Undecided => Err("the search takes too long".to_owned()),
        Verdict::Stuck(stuck) => {
            let shorter = shorten(keys, &history, DEFAULT_BUDGET).unwrap_or(history.clone());
            Err(match search(keys, &shorter, DEFAULT_BUDGET) {
                Verdict::Stuck(stuck) => explain(keys, &shorter, &stuck),
                _ => explain(keys, &history, &stuck),
            })
        }
    }
}

/// The factor by which a deep run checks more than an ordinary run.
fn times() -> u64 {
    match std::env::var_os("TREMULA_DEEP") {
        Some(_) => 50,
        None => 1,
    }
}

/// The calls of one round.
fn round_of(clients: &mut [Connection], mix: Mix, round: u64) -> Vec<Recorded> {
    let scripts = (0..CLIENTS).map(|client| Random {
        mix,
        keys: 1 + round as usize % KEYS,
        random: recorder::random(round, client),
        next_value: 1_000_000 * (round * CLIENTS as u64 + client as u64 + 1),
        values: [0; KEYS],
        versions: [0; KEYS],
        watched: vec![],
    });
    record(clients, scripts.collect(), CALLS)
}

/// Records rounds of calls, and checks each.
fn check_rounds(server: &Server, is_logged: bool, name: &str, mix: Mix, rounds: u64) {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    let mut watchers = Vec::new();
    if mix.watched {
        // One of all keys, and one of the second half.
        watchers = [0, KEYS / 2].map(|from| Watcher::new(server, from)).into();
    }
    let (mut overlaps, mut events) = (0, 0);
    for round in 0..rounds {
        for client in &mut clients {
            assert_eq!(client.call(&["unwatch"]), b"+OK\r\n");
        }
        assert_eq!(clients[0].call(&["flushall"]), b"+OK\r\n");
        if !watchers.is_empty() {
            let _ = shown(&mut clients[0], &mut watchers, 2 * round);
        }
        let mut history = round_of(&mut clients, mix, round);
        let feed = (!watchers.is_empty()).then(|| {
            rest(&mut clients[0]);
            let feed = shown(&mut clients[0], &mut watchers, 2 * round + 1);
            let ordered = feed.check_order(&history);
            ordered.unwrap_or_else(|fault| panic!("{name}, round {round}: {fault}"));
            history.push(end_of(&history));
            feed
        });
        events += feed.as_ref().map_or(0, Feed::len);
        let keys = Keys {
            clients: CLIENTS,
            is_logged,
            is_timeless: !mix.times,
            feed,
        };
        match check(&keys, &history) {
            Ok(overlapping) => overlaps += overlapping,
            Err(report) => {
                let feed = keys.feed.as_ref().map(ToString::to_string);
                panic!(
                    "{name}, round {round}: {report}{}",
                    feed.unwrap_or_default()
                )
            }
        }
    }
    println!("{name}: {rounds} rounds, {overlaps} overlapping pairs, {events} events");
    assert!(overlaps > 0, "no call overlapped with another");
    assert_eq!(events > 0, mix.watched, "what watchers were shown");
}

/// What the watchers were shown since the last time, which is the same for both.
fn shown(client: &mut Connection, watchers: &mut [Watcher], mark: u64) -> Feed {
    feed::finish(client, mark);
    let feeds = watchers.iter_mut().map(|watcher| watcher.until(mark));
    let feeds: Result<Vec<Feed>, String> = feeds.collect();
    let mut feeds = feeds.unwrap_or_else(|fault| panic!("up to mark {mark}: {fault}"));
    let part = feeds[0].of_keys(|key| key >= KEYS / 2);
    assert_eq!(part, feeds[1], "two watchers, up to mark {mark}");
    feeds.swap_remove(0)
}

/// Waits until each key whose time has come is removed. All short times have come by then.
fn rest(client: &mut Connection) {
    thread::sleep(Duration::from_millis(LONGEST));
    let mut exists = vec!["exists".to_owned()];
    exists.extend(
        (0..KEYS)
            .map(commands::name_of)
            .chain([feed::LAST.to_owned()]),
    );
    eventually("expired keys are removed", || {
        client.call(&["dbsize"]) == client.call(&exists)
    });
}

/// Behind all calls: whether the watchers were shown no more than there was.
fn end_of(history: &[Recorded]) -> Recorded {
    let ends = history.iter().map(|recorded| recorded.returned);
    let end = ends.max().expect("some calls") + 1;
    let call = Call {
        client: 0,
        command: Command::End,
        reply: Reply::Ok,
        from: millis(),
        to: millis(),
    };
    Recorded {
        call,
        called: end,
        returned: end,
    }
}

/// A server whose clients are on two threads, in memory or with a directory.
fn server(directory: Option<&tempfile::TempDir>, engine: &str) -> Server {
    let arguments = ["--engine", engine, "--threads", "2", "--gather", "no"];
    match directory {
        Some(directory) => Server::kept(directory.path(), &arguments),
        None => Server::tremula(&arguments),
    }
}

fn histories_are_right(name: &str, mix: Mix, rounds: u64) {
    let directory = tempfile::tempdir().expect("a directory");
    // Without a log there is nothing to watch, and versions have no order.
    let places = [Some(&directory), None];
    let most = if mix.watched { 1 } else { 2 };
    for (place, engine) in places.into_iter().take(most).zip(["aspen", "b_tree"]) {
        let server = server(place, engine);
        let name = format!("{name}, {engine}");
        check_rounds(&server, place.is_some(), &name, mix, rounds * times());
    }
}

/// Conditions of every kind, and both branches, beside plain commands on the same keys.
#[test]
fn histories_of_txn_are_right() {
    let mix = Mix {
        txn: true,
        ..Mix::default()
    };
    histories_are_right("TXN", mix, 60);
}

/// No key goes before its time, and none is seen from then on, whatever changes its time meanwhile.
#[test]
fn histories_of_keys_that_expire_are_right() {
    let mix = Mix {
        times: true,
        ..Mix::default()
    };
    histories_are_right("expiry", mix, 20);
}

/// `EXEC` runs if and only if no watched key is other than it was.
#[test]
fn histories_of_watched_keys_are_right() {
    let mix = Mix {
        exec: true,
        ..Mix::default()
    };
    histories_are_right("WATCH", mix, 60);
}

/// All at once, with two watchers of ranges, which are shown each change once and in order.
#[test]
fn histories_of_watched_ranges_are_right() {
    let mix = Mix {
        txn: true,
        times: true,
        exec: true,
        watched: true,
    };
    histories_are_right("WATCHRANGE", mix, 20);
}
