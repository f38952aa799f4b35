//! Recorded histories of tables that several threads use at once.
//!
//! A history fails if no order of the calls explains the answers: a lookup misses what was there
//! before and after; a count undoes another one; a row is taken twice; a lookup, or a select over a
//! range of keys, sees a part of a list insert; a select over a range shows two moments. The report
//! shows the calls, the longest order found, and the call that does not fit.
//!
//! | call of a table | operation of the checker |
//! |---|---|
//! | `lookup`, `member` | `Get`, `ContainsKey` |
//! | `insert` of a row, of a list; `insert_new` | `Insert`, `InsertMany`; `InsertIfAbsent` |
//! | `take`, `delete_key` in turn | `Remove` |
//! | `update_counter`, `update_element`, `take`, `lookup` | `Update`: adds, puts, removes, keeps |
//! | `first_lookup` and the like | `First`, `Last`, `Next`, `Prev` |
//! | `select` and `select_reverse`, with a limit and without | `Scan` |
//! | `select_delete` | `RemoveRange` |
//! | `size` | `Len` |
//!
//! On a `set`, and on engines whose scans only keep the order, the checker holds `select` and the
//! steps from key to key only to what they say about each key, because they promise no more. The
//! same holds for `select_delete` on a `set`. On an `ordered_set` it is one step, because the rows
//! have one size and its specification takes whole ranges.

use std::fmt::Write;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tremula_check::map::{Change, Kind, Operation, Response, Span};
use tremula_check::record::Subject;
use tremula_check::{Campaign, Tally};
use tremula_index::{Direction, Engine, Scans};
use tremula_papers::PaperEngine;
use tremula_table::term::Tuple;
use tremula_table::{self as ets, Access, MatchSpec, Options, Tables, Term, WriteConcurrency};

/// The campaigns, by name. Each table goes through all of them.
const CAMPAIGNS: [(&str, Campaign); 5] = [
    (
        "short",
        Campaign {
            sessions: 1_000,
            fillers: FILLERS,
            ..Campaign::short()
        },
    ),
    (
        "in a row",
        Campaign {
            sessions: 10,
            rounds: 40,
            seed: 2,
            fillers: FILLERS,
            ..Campaign::short()
        },
    ),
    (
        "middling",
        Campaign {
            sessions: 30,
            operations: 150..=250,
            seed: 3,
            fillers: FILLERS,
            ..Campaign::short()
        },
    ),
    (
        "long, of operations on one key",
        Campaign {
            sessions: 2,
            operations: 10_000..=10_000,
            seed: 4,
            fillers: FILLERS,
            ..Campaign::long()
        },
    ),
    (
        "long, of all operations",
        Campaign {
            sessions: 4,
            operations: 3_000..=3_000,
            keys: 24..=24,
            kinds: &Kind::ALL,
            seed: 5,
            fillers: FILLERS,
            ..Campaign::long()
        },
    ),
];

/// Few enough rows that any select takes one batch, which is a snapshot; a few hundred rows make
/// several base nodes or leaves. A search with a limit begins with a batch of 32.
const FILLERS: &[usize] = &[0, 0, 0, 2, 7, 8, 15, 16, 20, 33, 200];

/// The factor by which a deep run checks more histories than an ordinary one.
fn times() -> usize {
    match std::env::var("TREMULA_DEEP") {
        Ok(_) => 50,
        Err(_) => 1,
    }
}

/// Calls on the quiet table at the end of each history: a select, and the size.
const LOOKS: usize = 2;

static TURN: Mutex<()> = Mutex::new(());

fn check(name: &str, options: &Options, loose: &'static [Kind]) {
    // One test at a time: the threads of a history have to run at once, on all cores.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let tables = Tables::new();
    let make = || {
        let options = options.clone().access(Access::Public);
        Recorded {
            table: tables.create("t", options).unwrap(),
            loose,
            calls: AtomicUsize::new(0),
        }
    };
    let mut overlaps = 0;
    for (campaign_name, campaign) in CAMPAIGNS {
        let campaign = Campaign {
            sessions: campaign.sessions * times(),
            ..campaign
        };
        let tally = match campaign.run(make) {
            Ok(tally) => tally,
            Err(caught) => panic!("{name}, {campaign_name}: {caught}"),
        };
        println!("{name}, {campaign_name}: {tally}");
        everything_was_checked(&campaign, tally);
        overlaps += tally.overlaps;
    }
    assert!(overlaps > 0, "{name}: no call overlapped with another");
}

fn everything_was_checked(campaign: &Campaign, tally: Tally) {
    assert_eq!(tally.histories, campaign.histories());
    let calls = |operations: usize| (operations + LOOKS) * tally.histories;
    let intended = calls(*campaign.operations.start())..=calls(*campaign.operations.end());
    assert!(intended.contains(&tally.operations), "{tally}");
}

#[test]
fn histories_of_an_ordered_set_are_right() {
    for concurrency in [WriteConcurrency::Off, WriteConcurrency::On] {
        let options = Options::new().kind(ets::Kind::OrderedSet);
        let name = format!("ordered_set, write_concurrency {concurrency:?}");
        let options = options.write_concurrency(concurrency);
        check(&name, &options, &[]);
    }
}

#[test]
fn histories_of_an_ordered_set_on_a_b_tree_are_right() {
    let options = Options::new().kind(ets::Kind::OrderedSet);
    let options = options.engine(Engine::BTree);
    check("ordered_set on b_tree", &options, &[]);
}

#[test]
fn histories_of_an_ordered_set_on_engines_that_only_keep_the_order_are_right() {
    let ordered = |engine: &PaperEngine| engine.facts().scans == Scans::Ordered;
    for engine in PaperEngine::ALL.into_iter().filter(ordered) {
        let options = Options::new().kind(ets::Kind::OrderedSet).engine(engine);
        let loose = &[Kind::First, Kind::Last, Kind::Next, Kind::Prev, Kind::Scan];
        check(&format!("ordered_set on {engine}"), &options, loose);
    }
}

#[test]
fn histories_of_a_set_are_right() {
    for concurrency in [WriteConcurrency::Off, WriteConcurrency::On] {
        let options = Options::new().write_concurrency(concurrency);
        let name = format!("set, write_concurrency {concurrency:?}");
        check(&name, &options, &[Kind::Scan, Kind::RemoveRange]);
    }
}

/// A table of rows `{Key, Value}` whose calls are recorded.
struct Recorded {
    table: ets::Table,
    loose: &'static [Kind],
    /// Counts the calls: `take` and `delete_key` take turns by it, and some calls wait by it.
    calls: AtomicUsize,
}

/// The number in a row, modulo 2^64: the checker's sums wrap at 64 bits, those of tables grow.
fn number(term: &Term) -> u64 {
    let exact = match term {
        Term::Integer(small) => i128::from(*small),
        big => big.to_string().parse().expect("an integer"),
    };
    exact as u64
}

fn row(key: u64, value: u64) -> Term {
    Term::tuple([Term::from(key), Term::from(value)])
}

fn entry(row: &[Term]) -> (u64, u64) {
    match row {
        [key, value] => (number(key), number(value)),
        other => panic!("{other:?} is a row"),
    }
}

/// The value in the rows found under a key.
fn value(rows: &[Tuple]) -> Option<u64> {
    match rows {
        [] => None,
        [row] => Some(entry(row.elements()).1),
        [row, ..] => panic!("{} rows have the key {}", rows.len(), row[0]),
    }
}

/// A match specification for the rows with keys in a span, with this body.
fn spec(span: Span, body: &str) -> MatchSpec {
    let mut guards = Vec::new();
    let mut guard = |inclusive: &str, exclusive: &str, bound: Bound<u64>| {
        match bound {
            Bound::Included(key) => guards.push(format!("{{'{inclusive}', '$1', {key}}}")),
            Bound::Excluded(key) => guards.push(format!("{{'{exclusive}', '$1', {key}}}")),
            Bound::Unbounded => {}
        };
    };
    guard(">=", ">", span.low);
    guard("=<", "<", span.high);
    let mut text = String::new();
    write!(
        text,
        "[{{{{'$1', '_'}}, [{}], [{body}]}}]",
        guards.join(", ")
    )
    .unwrap();
    MatchSpec::compile(&text.parse().unwrap()).unwrap()
}

impl Recorded {
    fn is_ordered(&self) -> bool {
        self.table.kind() == ets::Kind::OrderedSet
    }

    fn scan(&self, span: Span, direction: Direction, limit: usize) -> Vec<(u64, u64)> {
        let (table, spec) = (&self.table, spec(span, "'$_'"));
        let entries = |found: Vec<Term>| -> Vec<(u64, u64)> {
            let entry = |found: &Term| match found {
                Term::Tuple(row) => entry(row.elements()),
                other => panic!("{other} is a row"),
            };
            found.iter().map(entry).collect()
        };
        if !self.is_ordered() {
            let mut found = entries(table.select(&spec).unwrap());
            found.sort_unstable();
            if direction == Direction::Descending {
                found.reverse();
            }
            found.truncate(limit);
            return found;
        }
        let found = match (direction, limit) {
            (_, 0) => Vec::new(),
            (Direction::Ascending, usize::MAX) => table.select(&spec).unwrap(),
            (Direction::Descending, usize::MAX) => table.select_reverse(&spec).unwrap(),
            (Direction::Ascending, _) => {
                let chunk = table.select_limit(&spec, limit).unwrap();
                chunk.map_or_else(Vec::new, |chunk| chunk.found)
            }
            (Direction::Descending, _) => {
                let chunk = table.select_reverse_limit(&spec, limit).unwrap();
                chunk.map_or_else(Vec::new, |chunk| chunk.found)
            }
        };
        entries(found)
    }

    fn update(&self, key: u64, change: Change) -> Response {
        let (table, key_term) = (&self.table, Term::from(key));
        let shown = |shown, returned| Response::Updated {
            shown: vec![shown],
            returned,
        };
        match change {
            Change::Add(more) => {
                let more = Term::from(more);
                let sum = table
                    .update_counter_or(&key_term, &more, row(key, 0))
                    .unwrap();
                // No value is zero: if the sum equals what was added, the row is new.
                let before = (sum != more).then(|| number(&sum).wrapping_sub(number(&more)));
                shown(before, before)
            }
            Change::Put(value) => {
                let update = Term::tuple([Term::from(2), Term::from(value)]);
                assert!(
                    table
                        .update_element_or(&key_term, &update, row(key, 0))
                        .unwrap()
                );
                Response::Done
            }
            Change::Keep => shown(value(&table.lookup(&key_term).unwrap()), None),
            Change::Remove => {
                let taken = value(&table.take(&key_term).unwrap());
                shown(taken, taken)
            }
        }
    }
}

impl Subject for Recorded {
    fn offers(&self, kind: Kind) -> bool {
        match kind {
            Kind::Get
            | Kind::ContainsKey
            | Kind::Insert
            | Kind::InsertIfAbsent
            | Kind::InsertMany
            | Kind::Remove
            | Kind::Update
            | Kind::Scan
            | Kind::RemoveRange
            | Kind::Len => true,
            Kind::First | Kind::Last | Kind::Next | Kind::Prev => self.is_ordered(),
            Kind::GetWith
            | Kind::GetMany
            | Kind::PopFirst
            | Kind::PopLast
            | Kind::Snapshot
            | Kind::Range
            | Kind::IsEmpty => false,
        }
    }

    fn of_one_moment(&self, kind: Kind) -> bool {
        !self.loose.contains(&kind)
    }

    fn call(&self, operation: &Operation) -> Response {
        // Relaxed: the counter orders nothing between the threads.
        let turn = self.calls.fetch_add(1, Ordering::Relaxed);
        // Calls have to overlap even on a busy machine: some yield the processor before they begin,
        // some before they return.
        if turn.is_multiple_of(5) {
            thread::yield_now();
        }
        let response = self.carry_out(operation, turn);
        if turn.is_multiple_of(7) {
            thread::yield_now();
        }
        response
    }
}

impl Recorded {
    fn carry_out(&self, operation: &Operation, turn: usize) -> Response {
        let table = &self.table;
        let found = |found: Result<Option<(Term, Vec<Tuple>)>, ets::BadArgument>| {
            let entry = found.unwrap().map(|(key, rows)| {
                let found = entry(rows[0].elements());
                assert_eq!(number(&key), found.0);
                found
            });
            Response::Entry(entry)
        };
        match *operation {
            Operation::Get(key) => Response::Value(value(&table.lookup(&Term::from(key)).unwrap())),
            Operation::ContainsKey(key) => Response::Flag(table.member(&Term::from(key)).unwrap()),
            Operation::Insert(key, value) => {
                table.insert(row(key, value)).unwrap();
                Response::Done
            }
            Operation::InsertIfAbsent(key, value) => {
                Response::Flag(table.insert_new(row(key, value)).unwrap())
            }
            Operation::InsertMany(ref entries) => {
                let rows = entries.iter().map(|&(key, value)| row(key, value));
                let rows: Vec<Term> = rows.collect();
                table.insert(Term::list(rows)).unwrap();
                Response::Done
            }
            Operation::Remove(key) => {
                if turn.is_multiple_of(2) {
                    Response::Value(value(&table.take(&Term::from(key)).unwrap()))
                } else {
                    table.delete_key(&Term::from(key)).unwrap();
                    Response::Done
                }
            }
            Operation::Update(key, change) => self.update(key, change),
            Operation::First => found(table.first_lookup()),
            Operation::Last => found(table.last_lookup()),
            Operation::Next(key) => found(table.next_lookup(&Term::from(key))),
            Operation::Prev(key) => found(table.prev_lookup(&Term::from(key))),
            Operation::Scan(span, direction, limit) => {
                Response::Entries(self.scan(span, direction, limit))
            }
            Operation::RemoveRange(span) => {
                Response::Count(table.select_delete(&spec(span, "true")).unwrap())
            }
            Operation::Len => Response::Count(table.size().unwrap()),
            ref other => panic!("{other} is not offered"),
        }
    }
}
