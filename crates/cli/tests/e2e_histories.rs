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
use support::Server;
use support::wire::Wire;
use tremula_check::DEFAULT_BUDGET;
use tremula_check::map::{Operation, Span};
use tremula_check::record::{Pause, Script, Step, record};
use tremula_index::Direction;
use tremula_index::Engine;
use tremula_store::{ONE_MOMENT, served_engines};

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
    let wire = Wire::new(server.address, READERS + WRITERS);
    check_over(&wire, engine, rounds, keys, snapshots);
}

fn check_over(wire: &Wire, engine: Engine, rounds: u64, keys: u64, snapshots: bool) {
    let (mut overlaps, mut calls) = (0, 0);
    for round in 0..rounds {
        let initial = wire.fill(keys);
        let mut scripts = Round {
            random: StdRng::seed_from_u64(round),
            keys,
            next_value: keys,
            snapshots,
        };
        let recording = record(wire, initial, scripts.scripts());
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

/// The same, each call a transaction: of several commands, by conditions, or by versions.
#[test]
fn histories_of_transactions_are_right() {
    for engine in served_engines().filter(|engine| engine.facts().transactional) {
        let server = server(engine);
        let wire = Wire::new(server.address, READERS + WRITERS).in_transactions();
        check_over(&wire, engine, 100 * times(), 300, false);
    }
}
