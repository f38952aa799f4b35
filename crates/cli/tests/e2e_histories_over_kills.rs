//! Histories over kills. Several clients use the real server, which syncs its log before each
//! reply, until it is killed. It is started again, and everything in it is read. One order has to
//! explain all replies and what is left, where a call that got no reply may have taken effect or
//! not, once.
//!
//! So nothing that was acknowledged may be gone, nothing that another client has seen, and no half
//! of an `MSET` or a `DELRANGE` may be left; while snapshots are made all the time.

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use support::Server;
use support::wire::Wire;
use tremula_check::DEFAULT_BUDGET;
use tremula_check::map::{Kind, Operation, Response, Span};
use tremula_check::record::{Script, Step, Subject, record};
use tremula_index::Direction;
use tremula_index::Engine;
use tremula_store::ONE_MOMENT;

const CLIENTS: usize = 4;

/// The calls of a client, more than it has time for.
const CALLS: usize = 100;

const KEYS: u64 = 8;

/// The longest life of a server under load.
const LONGEST_LIFE: Duration = Duration::from_millis(100);

/// The engines whose writes can be logged.
const ENGINES: [Engine; 3] = [Engine::Aspen, Engine::CaTree, Engine::BTree];

/// Kills of each engine, in an ordinary run and in a deep one.
const KILLS: [u64; 2] = [8, 170];

fn kills() -> u64 {
    KILLS[usize::from(std::env::var_os("TREMULA_DEEP").is_some())]
}

/// A server on a directory, which makes a snapshot after each few writes.
fn kept(directory: &Path, engine: Engine) -> Server {
    let directory = directory.to_str().expect("a path of text");
    let durability = ["--durability", "always", "--snapshot-every", "4kb"];
    let threads = ["--threads", "2", "--gather", "no"];
    let place = ["--dir", directory, "--engine", engine.name()];
    Server::tremula(&[&place[..], &durability, &threads].concat())
}

/// A server that is killed while clients use it. The look at the end of a round is at the server
/// that was started in its place.
struct Killed<'d> {
    directory: &'d Path,
    engine: Engine,
    wire: Wire,
    killed: Mutex<Option<Server>>,
    started: Mutex<Option<Server>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Subject for Killed<'_> {
    fn offers(&self, kind: Kind) -> bool {
        kind == Kind::Snapshot
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        Some(ONE_MOMENT)
    }

    fn call(&self, operation: &Operation) -> Response {
        if !matches!(operation, Operation::Snapshot(_)) {
            return self.wire.call(operation);
        }
        let mut server = locked(&self.killed).take().expect("one look a round");
        server.signal("KILL");
        server.wait();
        let server = kept(self.directory, self.engine);
        let left = Wire::new(server.address, 1).call(operation);
        *locked(&self.started) = Some(server);
        left
    }
}

/// The calls of one round.
struct Round {
    random: StdRng,
    next_value: u64,
}

impl Round {
    fn key(&mut self) -> u64 {
        self.random.random_range(0..KEYS)
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn operation(&mut self) -> Operation {
        let key = self.key();
        match self.random.random_range(0..12) {
            0..3 => Operation::Get(key),
            3 => Operation::Range(Span::ALL, Direction::Ascending, usize::MAX),
            4 => Operation::RemoveRange(Span::of(key..)),
            5 | 6 => Operation::Remove(key),
            7 => Operation::InsertIfAbsent(key, self.value()),
            8 => {
                let other = (key + 1 + self.random.random_range(0..KEYS - 1)) % KEYS;
                let mut entry = |key| (key, self.value());
                Operation::InsertMany([entry(key), entry(other)].into())
            }
            _ => Operation::Insert(key, self.value()),
        }
    }

    fn scripts(&mut self) -> Vec<Script> {
        let mut script = || (0..CALLS).map(|_| Step::from(self.operation())).collect();
        (0..CLIENTS).map(|_| script()).collect()
    }
}

#[test]
fn histories_over_kills_are_right() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let mut server = kept(directory.path(), engine);
        let (mut left, mut value) = (Vec::new(), 0);
        let (mut calls, mut unanswered) = (0, 0);
        for kill in 0..kills() {
            let mut round = Round {
                random: StdRng::seed_from_u64(kill),
                next_value: value,
            };
            let scripts = round.scripts();
            let life = round.random.random_range(Duration::ZERO..LONGEST_LIFE);
            let killed = Killed {
                directory: directory.path(),
                engine,
                wire: Wire::new(server.address, CLIENTS),
                killed: Mutex::new(Some(server)),
                started: Mutex::default(),
            };
            let recording = thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(life);
                    if let Some(server) = &*locked(&killed.killed) {
                        server.signal("KILL");
                    }
                });
                record(&killed, left, scripts)
            });
            for panicked in &recording.panics {
                assert_eq!(panicked.message, "the server has ended", "{panicked:?}");
            }
            let history = recording.history;
            if let Err(failure) = history.check(DEFAULT_BUDGET) {
                panic!("{engine}, kill {kill}: {failure}");
            }
            calls += history.history().events().len();
            unanswered += recording.panics.len();
            value = round.next_value;
            let looks = history.history().events().iter().rev();
            left = looks
                .filter_map(|event| match (&event.operation, event.response()) {
                    (Operation::Snapshot(_), Some(Response::Entries(entries))) => Some(entries),
                    _ => None,
                })
                .next()
                .expect("a look at the end")
                .clone();
            server = locked(&killed.started).take().expect("a server again");
        }
        println!("{engine}: {calls} calls, {unanswered} without a reply");
        assert!(unanswered > 0, "{engine}: no kill met a call");
    }
}
