//! Histories over kills. Several clients use the real server, which syncs its log before each
//! reply, until it is killed. It is started again, and everything in it is read. One order has to
//! explain all replies and what is left, where a call that got no reply may have taken effect or
//! not, once.
//!
//! So nothing that was acknowledged may be gone, nothing that another client has seen, and no half
//! of an `MSET`, a `DELRANGE` or a list of rows may be left; while snapshots are made all the time.
//!
//! The checker sees one map: below [`KEYS`] the keys of the first database, behind them the rows of
//! two tables.
//!
//! | command on a table | operation of the checker |
//! |---|---|
//! | `ETS.LOOKUP` | `Get` |
//! | `ETS.INSERT` of a row, of a list; `INSERT_NEW` | `Insert`, `InsertMany`; `InsertIfAbsent` |
//! | `ETS.DELETE` of an even key, `ETS.TAKE` of an odd one | `Remove` |
//! | `ETS.UPDATE_COUNTER`, `ETS.TAKE` | `Update`: adds, removes |
//! | `ETS.SELECT`, `ETS.SELECT_DELETE` of all rows of the ordered set | `Scan`, `RemoveRange` |

mod support;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use support::Server;
use support::resp::bulk;
use support::wire::Wire;
use tremula_check::DEFAULT_BUDGET;
use tremula_check::map::{Change, Kind, Operation, Response, Span};
use tremula_check::record::{Script, Step, Subject, record};
use tremula_index::Direction;
use tremula_index::Engine;
use tremula_store::ONE_MOMENT;

const CLIENTS: usize = 4;

/// The calls of a client, more than it comes to.
const CALLS: usize = 100;

/// The keys of the database.
const KEYS: u64 = 8;

/// The tables, each with its kind.
const TABLES: [(&str, &str); 2] = [("rows", "set"), ("ordered", "ordered_set")];

/// The keys that the rows of a table may have.
const ROWS: u64 = 4;

/// A server is killed when this many calls have begun at most: half of all, so that the kill meets
/// some, however fast the machine is.
const MOST_BEFORE_KILL: usize = CLIENTS * CALLS / 2;

/// The longest time from the last of these calls to the kill.
const LONGEST_DELAY: Duration = Duration::from_millis(1);

/// The engines whose writes can be logged.
const ENGINES: [Engine; 3] = [Engine::Aspen, Engine::CaTree, Engine::BTree];

/// Kills of each engine, in an ordinary run and in a deep one, where they are 510 in all.
const KILLS: [u64; 2] = [8, 170];

fn kills() -> u64 {
    KILLS[usize::from(std::env::var_os("TREMULA_DEEP").is_some())]
}

/// A server on a directory, which makes a snapshot after each few writes.
fn kept(directory: &Path, engine: Engine) -> Server {
    let durability = ["--durability", "always", "--snapshot-every", "4kb"];
    let threads = ["--threads", "2", "--gather", "no"];
    let engine = ["--engine", engine.name()];
    Server::kept(directory, &[&engine[..], &durability, &threads].concat())
}

/// A server that is killed while clients use it. The look at the end of a round is at the server
/// that was started in its place.
struct Killed<'d> {
    directory: &'d Path,
    engine: Engine,
    wire: Wire,
    /// The calls that have begun.
    begun: AtomicUsize,
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

    fn of_one_moment(&self, kind: Kind) -> bool {
        // The look at the end, when nobody writes, need not tie the database and the tables.
        kind != Kind::Snapshot
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        Some(ONE_MOMENT)
    }

    fn call(&self, operation: &Operation) -> Response {
        if !matches!(operation, Operation::Snapshot(_)) {
            self.begun.fetch_add(1, Relaxed);
            return call(&self.wire, operation);
        }
        let mut server = locked(&self.killed).take().expect("one look a round");
        server.signal("KILL");
        server.wait();
        let server = kept(self.directory, self.engine);
        let left = everything(&Wire::new(server.address, 1));
        *locked(&self.started) = Some(server);
        Response::Entries(left)
    }
}

fn keys_of(table: usize) -> Range<u64> {
    let first = KEYS + table as u64 * ROWS;
    first..first + ROWS
}

/// The number of the table that has a key; `None` if it is one of the database.
fn table_of(key: u64) -> Option<usize> {
    (0..TABLES.len()).find(|table| keys_of(*table).contains(&key))
}

/// The database and the tables, when nobody changes them.
fn everything(wire: &Wire) -> Vec<(u64, u64)> {
    let Response::Entries(mut all) = wire.call(&Operation::Snapshot(Span::of(..KEYS))) else {
        unreachable!("a look has entries");
    };
    for (table, _) in TABLES {
        let mut rows = rows(&ets(wire, &["ETS.TAB2LIST", table]));
        rows.sort_unstable();
        all.extend(rows);
    }
    all
}

/// The text of the reply to a command of tables.
fn ets(wire: &Wire, arguments: &[&str]) -> String {
    let reply = wire.command(arguments);
    assert_eq!(reply[0], b'$', "{arguments:?}: {}", reply.escape_ascii());
    String::from_utf8(bulk(&reply)).expect("text")
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

/// The rows of a list, as entries.
fn rows(list: &str) -> Vec<(u64, u64)> {
    let rows = list
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let rows = rows.unwrap_or_else(|| panic!("{list} is no list"));
    let rows = rows.split_inclusive('}').map(|row| {
        let row = row.trim_start_matches(',').strip_prefix('{');
        let row = row.and_then(|row| row.strip_suffix('}')?.split_once(','));
        let (key, value) = row.unwrap_or_else(|| panic!("{list} has no rows of two numbers"));
        (number(key), number(value))
    });
    rows.collect()
}

fn call(wire: &Wire, operation: &Operation) -> Response {
    let key = match *operation {
        Operation::Get(key)
        | Operation::Insert(key, _)
        | Operation::InsertIfAbsent(key, _)
        | Operation::Remove(key)
        | Operation::Update(key, _) => key,
        Operation::InsertMany(ref entries) => entries[0].0,
        // Only those of a table begin at a key of it.
        Operation::Scan(span, ..) | Operation::RemoveRange(span) => match span.low {
            Bound::Included(low) => low,
            Bound::Excluded(_) | Bound::Unbounded => 0,
        },
        _ => 0,
    };
    match table_of(key) {
        Some(table) => call_table(wire, TABLES[table].0, operation),
        None => wire.call(operation),
    }
}

fn call_table(wire: &Wire, table: &str, operation: &Operation) -> Response {
    let value = |rows: &[(u64, u64)]| rows.first().map(|(_, value)| *value);
    let take = |key: u64| value(&rows(&ets(wire, &["ETS.TAKE", table, &key.to_string()])));
    let row = |key: u64, value: u64| format!("{{{key}, {value}}}");
    let all = |body| format!("[{{{{'$1', '_'}}, [], [{body}]}}]");
    let done = |arguments: &[&str]| {
        assert_eq!(ets(wire, arguments), "true", "{arguments:?}");
        Response::Done
    };
    let seen = |shown, returned| Response::Updated {
        shown: vec![shown],
        returned,
    };
    match *operation {
        Operation::Get(key) => {
            let found = ets(wire, &["ETS.LOOKUP", table, &key.to_string()]);
            Response::Value(value(&rows(&found)))
        }
        Operation::Insert(key, new) => done(&["ETS.INSERT", table, &row(key, new)]),
        Operation::InsertMany(ref entries) => {
            let rows: Vec<_> = entries.iter().map(|&(key, new)| row(key, new)).collect();
            done(&["ETS.INSERT", table, &format!("[{}]", rows.join(", "))])
        }
        Operation::InsertIfAbsent(key, new) => {
            Response::Flag(ets(wire, &["ETS.INSERT_NEW", table, &row(key, new)]) == "true")
        }
        Operation::Remove(key) if key % 2 == 0 => done(&["ETS.DELETE", table, &key.to_string()]),
        Operation::Remove(key) => Response::Value(take(key)),
        Operation::Update(key, Change::Remove) => {
            let taken = take(key);
            seen(taken, taken)
        }
        Operation::Update(key, Change::Add(more)) => {
            let (text, more_text) = (key.to_string(), more.to_string());
            let counter = ["ETS.UPDATE_COUNTER", table, &text, &more_text, &row(key, 0)];
            let sum = number(&ets(wire, &counter));
            // No value is zero: if the sum equals what was added, the row is new.
            let before = (sum != more).then(|| sum - more);
            seen(before, before)
        }
        Operation::Scan(..) => {
            Response::Entries(rows(&ets(wire, &["ETS.SELECT", table, &all("'$_'")])))
        }
        Operation::RemoveRange(_) => {
            let deleted = ets(wire, &["ETS.SELECT_DELETE", table, &all("true")]);
            Response::Count(number(&deleted) as usize)
        }
        ref other => unreachable!("{other} is not in the scripts"),
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

    /// An operation on the database or on a table.
    fn operation(&mut self) -> Operation {
        match self.random.random_range(0..=TABLES.len()) {
            0 => self.on_keys(),
            table => self.on_rows(table - 1),
        }
    }

    fn on_rows(&mut self, table: usize) -> Operation {
        let keys = keys_of(table);
        let key = self.random.random_range(keys.clone());
        let is_ordered = TABLES[table].1 == "ordered_set";
        match self.random.random_range(0..12) {
            0 | 1 => Operation::Get(key),
            2 if is_ordered => {
                let all = Span::of(keys);
                Operation::Scan(all, Direction::Ascending, usize::MAX)
            }
            3 if is_ordered => Operation::RemoveRange(Span::of(keys)),
            2..5 => Operation::Remove(key),
            5 => Operation::Update(key, Change::Remove),
            6 => Operation::InsertIfAbsent(key, self.value()),
            7 | 8 => Operation::Update(key, Change::Add(self.value())),
            9 => {
                let other = keys.start + (key - keys.start + 1) % ROWS;
                let mut entry = |key| (key, self.value());
                Operation::InsertMany([entry(key), entry(other)].into())
            }
            _ => Operation::Insert(key, self.value()),
        }
    }

    fn on_keys(&mut self) -> Operation {
        let key = self.key();
        match self.random.random_range(0..12) {
            0..3 => Operation::Get(key),
            3 => Operation::Range(Span::of(..KEYS), Direction::Ascending, usize::MAX),
            4 => Operation::RemoveRange(Span::of(key..KEYS)),
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
        let client = Wire::new(server.address, 1);
        for (table, kind) in TABLES {
            assert_eq!(ets(&client, &["ETS.NEW", table, kind]), table);
        }
        let (mut calls, mut unanswered) = (0, 0);
        for kill in 0..kills() {
            let mut round = Round {
                random: StdRng::seed_from_u64(kill),
                next_value: value,
            };
            let scripts = round.scripts();
            let before = round.random.random_range(0..MOST_BEFORE_KILL);
            let delay = round.random.random_range(Duration::ZERO..LONGEST_DELAY);
            let killed = Killed {
                directory: directory.path(),
                engine,
                wire: Wire::new(server.address, CLIENTS),
                begun: AtomicUsize::new(0),
                killed: Mutex::new(Some(server)),
                started: Mutex::default(),
            };
            let recording = thread::scope(|scope| {
                scope.spawn(|| {
                    while killed.begun.load(Relaxed) < before {
                        thread::yield_now();
                    }
                    thread::sleep(delay);
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
