//! Tables that several threads use at once: no thread sees a part of what is one step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tremula_index::Engine;
use tremula_papers::{AnyEngine, PaperEngine};
use tremula_table::{Access, Kind, MatchSpec, Options, Table, Tables, Term, WriteConcurrency};

/// How long one round takes.
const ROUND: Duration = Duration::from_millis(150);

/// One table of each type, and an `ordered_set` on each engine that takes terms.
fn all_tables() -> Vec<Table> {
    let tables = Tables::new();
    let public = Options::new().access(Access::Public);
    let mut all: Vec<_> = Kind::ALL
        .into_iter()
        .map(|kind| {
            public
                .clone()
                .kind(kind)
                .write_concurrency(WriteConcurrency::On)
        })
        .collect();
    all.push(public.clone().kind(Kind::Set));
    for engine in [
        AnyEngine::Index(Engine::Locked),
        AnyEngine::Index(Engine::BTree),
        AnyEngine::Paper(PaperEngine::SkipList),
    ] {
        all.push(public.clone().kind(Kind::OrderedSet).engine(engine));
    }
    all.into_iter()
        .map(|options| tables.create("t", options).unwrap())
        .collect()
}

fn row(key: i64, value: i64) -> Term {
    Term::tuple([Term::from(key), Term::from(value)])
}

fn value(table: &Table, key: i64) -> i64 {
    match table
        .get(&Term::from(key))
        .unwrap()
        .map(|row| row[1].clone())
    {
        Some(Term::Integer(value)) => value,
        other => panic!("key {key} has {other:?}"),
    }
}

/// Fails if a reader sees a part of a list that is being inserted. Of the rows that always change
/// together it would see an older one after a newer one.
#[test]
fn a_list_insert_is_seen_wholly_or_not_at_all() {
    const KEYS: i64 = 40;
    for table in all_tables() {
        if table.kind().is_bag() {
            continue;
        }
        let list = |round| Term::list((0..KEYS).map(|key| row(key, round)).collect::<Vec<_>>());
        table.insert(list(0)).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let end = Instant::now() + ROUND;
                let mut round = 0;
                while Instant::now() < end {
                    round += 1;
                    table.insert(list(round)).unwrap();
                }
                over.store(true, Ordering::Release);
                assert!(round > 10);
            });
            for reader in 0..2_i64 {
                let (table, over) = (&table, &over);
                scope.spawn(move || {
                    let mut newest = 0;
                    let mut key = reader;
                    while !over.load(Ordering::Acquire) {
                        key = (key * 7 + 3) % KEYS;
                        let seen = value(table, key);
                        assert!(
                            seen >= newest,
                            "{seen} after {newest} on {:?}",
                            table.shape()
                        );
                        newest = seen;
                    }
                });
            }
            if table.kind() == Kind::OrderedSet {
                let spec = "[{{'$1', '$2'}, [{'>=', '$1', 5}, {'<', '$1', 30}], ['$2']}]";
                let spec = MatchSpec::compile(&spec.parse().unwrap()).unwrap();
                while !over.load(Ordering::Acquire) {
                    let found = table.select(&spec).unwrap();
                    assert_eq!(found.len(), 25);
                    assert!(found.iter().all(|value| *value == found[0]), "{found:?}");
                }
            }
        });
    }
}

/// Fails if a single write gets in between the rows of a list, or the reverse: then one of the two
/// writers is the last to write one key and the first to write the other.
#[test]
fn a_list_insert_and_two_single_ones_have_an_order() {
    for table in all_tables() {
        if table.kind().is_bag() {
            continue;
        }
        const ROUNDS: i64 = 500;
        thread::scope(|scope| {
            for round in 1..=ROUNDS {
                let table = &table;
                let lists = scope.spawn(move || {
                    table
                        .insert(Term::list([row(0, round), row(1, round)]))
                        .unwrap();
                });
                // Key 1 first, because a list writes key 0 first: the two meet in opposite
                // directions.
                table.insert(row(1, -round)).unwrap();
                table.insert(row(0, -round)).unwrap();
                lists.join().unwrap();
                let (zero, one) = (value(table, 0), value(table, 1));
                // The list comes before both rows, between them, or after both.
                let allowed = [(-round, -round), (-round, round), (round, round)];
                assert!(allowed.contains(&(zero, one)), "{zero} {one} of {round}");
            }
        });
    }
}

/// Fails if two threads take the same row, or if no thread takes it.
#[test]
fn a_row_is_taken_once() {
    const ROWS: i64 = 4_000;
    for table in all_tables() {
        for key in 0..ROWS {
            table.insert(row(key, 1)).unwrap();
        }
        let taken: usize = thread::scope(|scope| {
            let take = || {
                (0..ROWS)
                    .map(|key| table.take(&Term::from(key)).unwrap().len())
                    .sum::<usize>()
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(take)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum::<usize>()
        });
        assert_eq!((taken, table.size().unwrap()), (ROWS as usize, 0));
    }
}

/// Fails if an update is lost: then two threads get the same value.
#[test]
fn counters_count_every_update() {
    const UPDATES: usize = 10_000;
    for table in all_tables() {
        if table.kind().is_bag() {
            continue;
        }
        let key = Term::from(7);
        let one = Term::from(1);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = Term::from(0);
                    for _ in 0..UPDATES {
                        let now = table.update_counter_or(&key, &one, row(0, 0)).unwrap();
                        assert!(now > last, "{now} after {last}");
                        last = now;
                    }
                });
            }
        });
        assert_eq!(value(&table, 7), 3 * UPDATES as i64);
    }
}

/// Fails if a search misses a row that stays, or sees a row twice, while others come and go.
#[test]
fn going_through_a_table_meets_what_stays_once() {
    const ROWS: i64 = 2_000;
    for table in all_tables() {
        for key in 0..ROWS {
            table.insert(row(key * 2, 1)).unwrap();
        }
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut key = 1;
                while !over.load(Ordering::Acquire) {
                    key = (key * 5 + 8) % (ROWS * 20);
                    let odd = Term::from(key * 2 + 1);
                    table
                        .insert(Term::tuple([odd.clone(), Term::from(0)]))
                        .unwrap();
                    if key % 3 == 0 {
                        table.delete_key(&odd).unwrap();
                    }
                }
            });
            let spec = "[{{'$1', 1}, [], ['$1']}]".parse().unwrap();
            let spec = MatchSpec::compile(&spec).unwrap();
            let end = Instant::now() + ROUND;
            while Instant::now() < end {
                let mut found = Vec::new();
                let mut next = table.select_limit(&spec, 77).unwrap();
                while let Some(chunk) = next {
                    found.extend(chunk.found);
                    let Some(rest) = chunk.rest else { break };
                    next = table.select_next(&rest).unwrap();
                }
                found.sort();
                let all: Vec<_> = (0..ROWS).map(|key| Term::from(key * 2)).collect();
                assert!(found == all, "{} of {ROWS}", found.len());
            }
            over.store(true, Ordering::Release);
        });
    }
}

/// Fails if an operation succeeds on a table that has been deleted, or finds rows in it.
#[test]
fn a_table_is_deleted_under_those_who_use_it() {
    for table in all_tables() {
        thread::scope(|scope| {
            let use_it = || {
                let deadline = Instant::now() + Duration::from_secs(60);
                for key in 0.. {
                    assert!(Instant::now() < deadline, "it is never deleted");
                    if table.insert(row(key, 0)).is_err() {
                        break;
                    }
                }
                assert!(table.lookup(&Term::from(0)).is_err());
            };
            let threads = [scope.spawn(use_it), scope.spawn(use_it)];
            thread::sleep(Duration::from_millis(5));
            table.delete().unwrap();
            assert!(table.delete().is_err());
            for thread in threads {
                thread.join().unwrap();
            }
        });
        let entries = table.shape().get("entries").unwrap_or(0);
        assert_eq!(entries, 0);
    }
}
