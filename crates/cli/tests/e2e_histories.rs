//! Histories over sockets. Several clients use the real server at once. Their calls and replies are
//! recorded, and checked for one order that explains all replies.
//!
//! The server promises that a `RANGE` of up to 1024 keys is of one moment, as are `RANGE …
//! SNAPSHOT` of any size and `DELRANGE`. So every round begins with hundreds of keys, and some
//! clients remove many of them in one step while others read them all. A `RANGE` that were read in
//! two batches could show some of the removed keys and lack others, which no order of the calls
//! explains.

mod support;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};
use support::Server;
use support::resp::{Connection, bulk, elements};
use tremula_check::DEFAULT_BUDGET;
use tremula_check::map::{Kind, Operation, Response, Span};
use tremula_check::record::{Pause, Script, Step, Subject, record};
use tremula_index::Direction;
use tremula_index::Engine;
use tremula_store::{ONE_MOMENT, served_engines};

/// The first database of a server as a map. Each concurrent call has a connection of its own.
struct Wire<'s> {
    server: &'s Server,
    idle: Mutex<Vec<Connection>>,
}

fn name_of(key: u64) -> String {
    format!("k{key:05}")
}

fn number(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).expect("text");
    text.trim_start_matches('k').parse().expect("a number")
}

/// The value in a reply, if any.
fn value(reply: &[u8]) -> Option<u64> {
    (!reply.starts_with(b"$-1")).then(|| number(&bulk(reply)))
}

/// The integer of a reply.
fn count(reply: &[u8]) -> usize {
    assert_eq!(reply[0], b':', "{}", reply.escape_ascii());
    number(reply[1..].trim_ascii_end())
        .try_into()
        .expect("a count")
}

fn entries(reply: &[u8]) -> Vec<(u64, u64)> {
    assert_eq!(reply[0], b'*', "{}", reply.escape_ascii());
    let words: Vec<u64> = elements(reply)
        .iter()
        .map(|word| number(&bulk(word)))
        .collect();
    words
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// The bounds of a range as the commands write them.
fn bounds(span: Span) -> [String; 2] {
    let spell = |bound, open: &str| match bound {
        Bound::Included(key) => format!("[{}", name_of(key)),
        Bound::Excluded(key) => format!("({}", name_of(key)),
        Bound::Unbounded => open.to_owned(),
    };
    [spell(span.low, "-"), spell(span.high, "+")]
}

impl<'s> Wire<'s> {
    fn new(server: &'s Server) -> Self {
        let idle = Mutex::default();
        Self { server, idle }
    }

    fn command<T: AsRef<[u8]>>(&self, arguments: &[T]) -> Vec<u8> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut connection = taken.unwrap_or_else(|| self.server.connect());
        let reply = connection.call(arguments);
        idle().push(connection);
        reply
    }

    /// Makes these the only keys, each with itself as value.
    fn fill(&self, keys: u64) -> Vec<(u64, u64)> {
        assert_eq!(self.command(&["FLUSHDB"]), b"+OK\r\n");
        let mut arguments = vec!["MSET".to_owned()];
        arguments.extend((0..keys).flat_map(|key| [name_of(key), key.to_string()]));
        assert_eq!(self.command(&arguments), b"+OK\r\n");
        (0..keys).map(|key| (key, key)).collect()
    }

    fn range(&self, span: Span, direction: Direction, options: &[&str]) -> Response {
        let [low, high] = bounds(span);
        let mut arguments = match direction {
            Direction::Ascending => vec!["RANGE", &low, &high],
            Direction::Descending => vec!["RANGE", &high, &low, "REV"],
        };
        arguments.push("WITHVALUES");
        arguments.extend(options);
        Response::Entries(entries(&self.command(&arguments)))
    }
}

impl Subject for Wire<'_> {
    fn offers(&self, kind: Kind) -> bool {
        kind == Kind::Snapshot
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        Some(ONE_MOMENT)
    }

    fn call(&self, operation: &Operation) -> Response {
        let entry = |reply: Vec<u8>| {
            let found = (!reply.starts_with(b"*-1")).then(|| entries(&reply));
            Response::Entry(found.and_then(|found| found.first().copied()))
        };
        match *operation {
            Operation::Get(key) => Response::Value(value(&self.command(&["GET", &name_of(key)]))),
            Operation::ContainsKey(key) => {
                Response::Flag(count(&self.command(&["EXISTS", &name_of(key)])) == 1)
            }
            Operation::Insert(key, new) => {
                let set = ["SET", &name_of(key), &new.to_string(), "GET"];
                Response::Value(value(&self.command(&set)))
            }
            Operation::InsertIfAbsent(key, new) => {
                let set = ["SETNX", &name_of(key), &new.to_string()];
                Response::Flag(count(&self.command(&set)) == 1)
            }
            Operation::Remove(key) if key % 2 == 0 => {
                Response::Flag(count(&self.command(&["DEL", &name_of(key)])) == 1)
            }
            Operation::Remove(key) => {
                Response::Value(value(&self.command(&["GETDEL", &name_of(key)])))
            }
            Operation::First => entry(self.command(&["FIRST"])),
            Operation::Last => entry(self.command(&["LAST"])),
            Operation::Next(key) => entry(self.command(&["NEXT", &name_of(key)])),
            Operation::Prev(key) => entry(self.command(&["PREV", &name_of(key)])),
            Operation::Range(span, direction, usize::MAX) => self.range(span, direction, &[]),
            Operation::Range(span, direction, limit) => {
                self.range(span, direction, &["LIMIT", &limit.to_string()])
            }
            Operation::Snapshot(span) => self.range(span, Direction::Ascending, &["SNAPSHOT"]),
            Operation::RemoveRange(span) => {
                let [low, high] = bounds(span);
                Response::Count(count(&self.command(&["DELRANGE", &low, &high])))
            }
            ref other => unreachable!("{other} is not in the scripts"),
        }
    }
}

/// The clients that read ranges, and those that write.
const READERS: usize = 2;
const WRITERS: usize = 2;

/// The ranges that a reader reads in a round.
const RANGES: usize = 3;

/// The most turns that a client spins before a call, about the time of a `RANGE`.
const LONGEST_SPIN: u32 = 20_000;

/// The calls of one round, on keys from 0 to `keys`.
struct Round {
    random: StdRng,
    keys: u64,
    next_value: u64,
    /// Whether whole ranges are read with `SNAPSHOT`.
    snapshots: bool,
}

impl Round {
    fn step(&mut self, operation: Operation) -> Step {
        let pause = Pause::Spin(self.random.random_range(0..LONGEST_SPIN));
        Step { pause, operation }
    }

    fn key(&mut self) -> u64 {
        self.random.random_range(0..self.keys)
    }

    /// All keys, or most of them.
    fn span(&mut self) -> Span {
        match self.random.random_range(0..3) {
            0 => Span::ALL,
            1 => Span::of(..=self.keys - 1 - self.random.random_range(0..self.keys / 4)),
            _ => Span::of(self.random.random_range(0..self.keys / 4)..),
        }
    }

    fn direction(&mut self) -> Direction {
        let ways = [Direction::Ascending, Direction::Descending];
        *ways.choose(&mut self.random).expect("two ways")
    }

    fn reader(&mut self) -> Script {
        let range = |round: &mut Self| {
            let span = round.span();
            let operation = match round.random.random_range(0..8) {
                _ if round.snapshots => Operation::Snapshot(span),
                0 => Operation::Range(span, round.direction(), ONE_MOMENT),
                1 => Operation::Range(span, round.direction(), round.key() as usize),
                _ => Operation::Range(span, round.direction(), usize::MAX),
            };
            round.step(operation)
        };
        (0..RANGES).map(|_| range(self)).collect()
    }

    /// A removal of many keys in one step, and a few others.
    fn writer(&mut self) -> Script {
        let removal = Operation::RemoveRange(self.span());
        let mut script = vec![self.step(removal)];
        for _ in 0..4 {
            let key = self.key();
            self.next_value += 1;
            let operation = match self.random.random_range(0..9) {
                0 => Operation::Get(key),
                1 => Operation::ContainsKey(key),
                2 => Operation::Remove(key),
                3 => Operation::First,
                4 => Operation::Last,
                5 => Operation::Next(key),
                6 => Operation::Prev(key),
                7 => Operation::InsertIfAbsent(key, self.next_value),
                _ => Operation::Insert(key, self.next_value),
            };
            let place = self.random.random_range(0..=script.len());
            let step = self.step(operation);
            script.insert(place, step);
        }
        script
    }

    fn scripts(&mut self) -> Vec<Script> {
        let readers: Vec<Script> = (0..READERS).map(|_| self.reader()).collect();
        let writers = (0..WRITERS).map(|_| self.writer());
        readers.into_iter().chain(writers).collect()
    }
}

/// Records rounds of calls and checks each.
fn check(server: &Server, engine: Engine, rounds: u64, keys: u64, snapshots: bool) {
    let wire = Wire::new(server);
    let (mut overlaps, mut calls) = (0, 0);
    for round in 0..rounds {
        let initial = wire.fill(keys);
        let mut scripts = Round {
            random: StdRng::seed_from_u64(round),
            keys,
            next_value: keys,
            snapshots,
        };
        let recording = record(&wire, initial, scripts.scripts());
        assert!(recording.panics.is_empty(), "{:?}", recording.panics);
        let history = recording.history;
        overlaps += history.history().overlaps();
        calls += history.history().events().len();
        // Longer ranges are of one moment only with SNAPSHOT. Without, they are right for each key.
        let checked = if snapshots || keys <= ONE_MOMENT as u64 {
            history.check(DEFAULT_BUDGET)
        } else {
            history.check_by_key(DEFAULT_BUDGET)
        };
        if let Err(failure) = checked {
            panic!("{engine}, {keys} keys, round {round}: {failure}");
        }
    }
    println!("{engine}, {keys} keys: {rounds} rounds, {calls} calls, {overlaps} overlapping pairs");
    assert!(overlaps > 0, "{engine}: no call overlapped with another");
}

/// The factor by which a deep run checks more than an ordinary run.
fn times() -> u64 {
    match std::env::var("TREMULA_DEEP") {
        Ok(_) => 50,
        Err(_) => 1,
    }
}

/// A server whose clients are on two threads.
fn server(engine: Engine) -> Server {
    let name = engine.name();
    Server::tremula(&["--engine", name, "--threads", "2", "--gather", "no"])
}

/// Several batches of the index's `range`, with at most the keys that are promised to be of one
/// moment.
#[test]
fn histories_with_ranges_of_hundreds_of_keys_are_right() {
    for engine in served_engines() {
        let server = server(engine);
        check(&server, engine, 150 * times(), 300, false);
        check(&server, engine, 10 * times(), ONE_MOMENT as u64, false);
    }
}

/// More keys than are of one moment without `SNAPSHOT`.
#[test]
fn histories_with_longer_ranges_and_snapshots_are_right() {
    for engine in served_engines() {
        let server = server(engine);
        check(&server, engine, 20 * times(), 2_500, true);
        check(&server, engine, 10 * times(), 2_500, false);
    }
}
