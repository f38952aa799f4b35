//! Steps in which any operations run: against a model, with a log, with threads, and with panics.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tremula_log::{Log, MemoryLog};
use tremula_store::{
    CannotHold, Databases, Direction, Engine, Expiry, Folder, Hold, Key, KeyRange, Moved, Place,
    Store, StoreConfig, Update, Value, Way,
};

const ENGINES: [Engine; 3] = [Engine::Aspen, Engine::BTree, Engine::CaTree];

type Contents = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

fn contents(databases: Databases<'_>) -> Contents {
    let mut all = BTreeMap::new();
    for number in 0..3 {
        let mut entries = Vec::new();
        let database = databases.database(number);
        database.scan(
            KeyRange::all(),
            Direction::Ascending,
            usize::MAX,
            &mut entries,
        );
        assert_eq!(database.len(), entries.len());
        assert_eq!(database.is_empty(), entries.is_empty());
        let first = database.first().map(|(key, _)| key);
        assert_eq!(first.as_ref(), entries.first().map(|(key, _)| key));
        let last = database.last().map(|(key, _)| key);
        assert_eq!(last.as_ref(), entries.last().map(|(key, _)| key));
        for (key, value) in entries {
            all.insert((number, key.as_bytes().to_vec()), value.to_vec());
        }
    }
    all
}

/// One random operation of any kind, in the step and in the model.
fn change(databases: Databases<'_>, model: &mut Contents, random: &mut StdRng) {
    let number = random.random_range(0..3);
    let database = databases.database(number);
    let mut letter = || vec![random.random_range(b'a'..b'g')];
    let (one, other) = (letter(), letter());
    let [from, to] = [&one, &other].map(|key| Key::from(&key[..]));
    let bytes = vec![random.random(); random.random_range(0..30)];
    let value = || Value::from(&bytes[..]);
    let commit = |write: &mut dyn FnMut(&mut tremula_store::Effects<'_>)| {
        databases
            .commit(|effects| write(effects))
            .expect("the log takes it");
    };
    match random.random_range(0..9) {
        0 => {
            let mut old = None;
            commit(&mut |effects| old = database.insert(effects, from.clone(), value()));
            assert_eq!(
                old.as_deref(),
                model.insert((number, one), bytes).as_deref()
            );
        }
        1 => {
            let mut old = None;
            commit(&mut |effects| old = database.remove(effects, &from));
            assert_eq!(old.as_deref(), model.remove(&(number, one)).as_deref());
        }
        2 => {
            commit(&mut |effects| {
                database.update(effects, from.clone(), &mut |current| match current {
                    Some(_) => Update::Remove,
                    None => Update::Put(value()),
                });
            });
            let place = (number, one);
            if model.remove(&place).is_none() {
                model.insert(place, bytes);
            }
        }
        3 => {
            let (low, high) = (from.clone().min(to.clone()), from.max(to));
            let bounds = (Bound::Included(&low), Bound::Excluded(&high));
            let mut removed = 0;
            commit(&mut |effects| removed = database.remove_range(effects, bounds.0, bounds.1));
            let before = model.len();
            model.retain(|(at, key), _| {
                *at != number || key[..] < *low.as_bytes() || key[..] >= *high.as_bytes()
            });
            assert_eq!(removed, before - model.len());
        }
        4 => {
            let entries = [(from.clone(), value()), (to.clone(), value())];
            commit(&mut |effects| drop(database.insert_together(effects, entries.to_vec())));
            model.insert((number, one), bytes.clone());
            model.insert((number, other), bytes);
        }
        5 => {
            let target = random.random_range(0..3);
            if (target, &other) == (number, &one) {
                return;
            }
            let from = Place {
                database: number,
                key: &from,
            };
            let to = Place {
                database: target,
                key: &to,
            };
            let way = Way {
                leaves: random.random(),
                replaces: true,
            };
            let mut moved = Moved::Absent;
            commit(&mut |effects| moved = databases.carry(effects, from, to, way));
            let value = model.get(&(number, one.clone())).cloned();
            assert_eq!(matches!(moved, Moved::Done(_)), value.is_some());
            if let Some(value) = value {
                if way.leaves {
                    model.remove(&(number, one));
                }
                model.insert((target, other), value);
            }
        }
        6 => {
            let found = databases.database(number).next(&from).map(|(key, _)| key);
            let above = (number, [&one[..], &[0]].concat());
            let mut behind = model.range(above..);
            let behind = behind.next().filter(|((at, _), _)| *at == number);
            let next = behind.map(|((_, key), _)| Key::from(&key[..]));
            assert_eq!(found, next);
        }
        7 => {
            let found = databases.database(number).prev(&from).map(|(key, _)| key);
            let mut before = model.range(..(number, one));
            let before = before.next_back().filter(|((at, _), _)| *at == number);
            assert_eq!(found, before.map(|((_, key), _)| Key::from(&key[..])));
        }
        _ => {
            let mut last = Vec::new();
            database.scan(KeyRange::all(), Direction::Descending, 2, &mut last);
            let all = model.range((number, vec![])..(number + 1, vec![]));
            let expected: Vec<_> = all.rev().take(2).map(|((_, key), _)| key.clone()).collect();
            let last: Vec<_> = last
                .iter()
                .map(|(key, _)| key.as_bytes().to_vec())
                .collect();
            assert_eq!(last, expected);
        }
    }
}

/// Every operation in a step sees what those before it have done, and what is there afterwards, and
/// after a recovery, is as a map has it.
#[test]
fn a_step_of_any_operations_is_as_a_model_says() {
    for (engine, seed) in ENGINES.into_iter().zip(1..) {
        let mut random = StdRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(directory.path());
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let config = StoreConfig::new(engine);
        let open = || Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ());
        let (store, _) = open().expect("an empty log");
        let mut model = Contents::new();
        for _ in 0..500 {
            let holds = [2, 0, 1].map(Hold::database);
            let count = random.random_range(0..6);
            // More changes than were expected are not lost either.
            let expected = random.random_range(0..8);
            let ran = store.hold(&holds, expected, |databases| {
                for _ in 0..count {
                    change(databases, &mut model, &mut random);
                }
                assert_eq!(contents(databases), model, "{engine}, in the step");
            });
            ran.expect("it is held");
            assert_eq!(contents(store.free()), model, "{engine}");
        }
        store.forward();
        drop(store);
        let (again, _) = open().expect("the log can be read");
        assert_eq!(contents(again.free()), model, "{engine}, recovered");
    }
}

/// Coins go from key to key and from database to database, while others look at all of them: the
/// sum is always the same, in memory and in every prefix of whole steps in the log.
#[test]
fn steps_are_seen_as_a_whole() {
    const COINS: u64 = 1000;
    let key = |number: u64| Key::from(&number.to_be_bytes()[..]);
    let coins = |value: &Value| -> u64 {
        std::str::from_utf8(value)
            .expect("digits")
            .parse()
            .expect("a number")
    };
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(directory.path());
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let config = StoreConfig::new(engine);
        let (store, _) =
            Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ()).expect("an empty log");
        let places: Vec<(usize, u64)> = (0..40).map(|at| (at as usize % 2, at)).collect();
        let all: Vec<Hold> = places
            .iter()
            .map(|(database, at)| Hold::key(*database, key(*at)))
            .collect();
        let filled = store.hold(&all, all.len(), |databases| {
            for (database, at) in &places {
                let value = Value::from(COINS.to_string().as_bytes());
                let database = databases.database(*database);
                databases
                    .commit(|effects| database.insert(effects, key(*at), value))
                    .expect("room");
            }
        });
        filled.expect("it is held");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|seed| {
                    let (store, places) = (&store, &places);
                    scope.spawn(move || {
                        let mut random = StdRng::seed_from_u64(seed);
                        for _ in 0..3000 {
                            let [one, other] =
                                [(); 2].map(|()| places[random.random_range(0..places.len())]);
                            let holds =
                                [one, other].map(|(database, at)| Hold::key(database, key(at)));
                            let moved = store.hold(&holds, 2, |databases| {
                                let read = |(database, at): (usize, u64)| {
                                    databases
                                        .database(database)
                                        .get(&key(at))
                                        .map_or(0, |value| coins(&value))
                                };
                                let write = |(database, at): (usize, u64), coins: u64| {
                                    let value = Value::from(coins.to_string().as_bytes());
                                    let database = databases.database(database);
                                    databases
                                        .commit(|effects| database.insert(effects, key(at), value))
                                        .expect("room");
                                };
                                let some = random.random_range(0..=read(one));
                                write(one, read(one) - some);
                                write(other, read(other) + some);
                            });
                            moved.expect("it is held");
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut looks = 0;
                while !is_over.load(Ordering::Relaxed) || looks == 0 {
                    let sum = store.hold(&all, 0, |databases| {
                        let of = |(database, at): &(usize, u64)| {
                            databases
                                .database(*database)
                                .get(&key(*at))
                                .map_or(0, |value| coins(&value))
                        };
                        places.iter().map(of).sum::<u64>()
                    });
                    assert_eq!(sum.expect("it is held"), 40 * COINS, "{engine}");
                    looks += 1;
                }
            });
            for writer in writers {
                writer.join().expect("it ends");
            }
            is_over.store(true, Ordering::Relaxed);
            reader.join().expect("it ends");
        });
        store.forward();
        let sum = |store: &Store| -> u64 {
            let of = |(database, at): &(usize, u64)| {
                store
                    .database(*database)
                    .get(&key(*at))
                    .map_or(0, |value| coins(&value))
            };
            places.iter().map(of).sum()
        };
        assert_eq!(sum(&store), 40 * COINS);
        // Each batch of the log ends with a whole step.
        let mut prefix = MemoryLog::new();
        let mut batches = 0;
        for entry in log.read(log.first()).expect("the log") {
            let entry = entry.expect("a batch");
            let mut batch = tremula_log::Batch::new();
            entry.records().for_each(|record| batch.push(record));
            prefix.append(&batch, None).expect("room");
            batches += 1;
            if batches % 500 != 1 {
                continue;
            }
            let copy: Arc<dyn Log> = Arc::new(std::mem::replace(&mut prefix, MemoryLog::new()));
            let (again, _) = Store::recover(&config, Arc::clone(&copy), &folder, &mut |_| ())
                .expect("the log can be read");
            assert_eq!(sum(&again), 40 * COINS, "{engine}, after {batches} batches");
            drop(again);
            for entry in copy.read(copy.first()).expect("the log") {
                let mut batch = tremula_log::Batch::new();
                entry
                    .expect("a batch")
                    .records()
                    .for_each(|record| batch.push(record));
                prefix.append(&batch, None).expect("room");
            }
        }
        assert!(batches > 1, "{batches}");
    }
}

/// A step that panics has not happened, in memory or in the log, and the log goes on.
#[test]
fn a_panic_undoes_the_step() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(directory.path());
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let config = StoreConfig::new(engine);
        let open = || Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ());
        let (store, _) = open().expect("an empty log");
        let (key, outside) = (Key::from(&b"key"[..]), Key::from(&b"outside"[..]));
        let put = |databases: Databases<'_>, number, key: &Key, text: &[u8]| {
            let (database, value) = (databases.database(number), Value::from(text));
            let inserted = databases.commit(|effects| database.insert(effects, key.clone(), value));
            inserted.expect("room")
        };
        put(store.free(), 0, &key, b"before");
        for reaches in [(0, &outside), (1, &key)] {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                store.hold(&[Hold::key(0, key.clone())], 3, |databases| {
                    put(databases, 0, &key, b"undone");
                    put(databases, reaches.0, reaches.1, b"out of reach");
                })
            }));
            assert!(panicked.is_err(), "{engine}: {reaches:?}");
            assert_eq!(
                store.database(0).get(&key).as_deref(),
                Some(&b"before"[..]),
                "{engine}"
            );
        }
        put(store.free(), 0, &outside, b"later");
        store.sync().expect("the log goes on");
        drop(store);
        let (again, _) = open().expect("the log can be read");
        assert_eq!(
            again.database(0).get(&key).as_deref(),
            Some(&b"before"[..]),
            "{engine}"
        );
        assert_eq!(
            again.database(0).get(&outside).as_deref(),
            Some(&b"later"[..]),
            "{engine}"
        );
        assert_eq!(again.database(1).len(), 0, "{engine}");
    }
}

/// In a step, too, a key whose time has come is not there.
#[test]
fn what_has_expired_is_not_seen_in_a_step() {
    let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("a store");
    let key = Key::from(&b"key"[..]);
    let value = Value::from(&b"old"[..]).expiring(Some(Expiry::now()));
    let insert = store.commit(|effects| store.database(0).insert(effects, key.clone(), value));
    insert.expect("there is no log");
    let seen = store.hold(&[Hold::database(0)], 0, |databases| {
        let database = databases.database(0);
        (database.get(&key), database.first())
    });
    assert!(matches!(seen, Ok((None, None))), "{seen:?}");
}

/// What is there at first is there to the end, although its time comes meanwhile; and what is gone
/// at first stays so.
#[test]
fn a_step_is_one_moment() {
    const SOON: u64 = 5;
    for engine in ENGINES {
        let store = Store::new(&StoreConfig::new(engine)).expect("it has steps");
        let key = Key::from(&b"soon"[..]);
        let soon = || Expiry::from_millis(Expiry::now().millis() + SOON);
        let mut found = false;
        // On a machine that stops for long, the first look may come late.
        while !found {
            let value = Value::from(&b"x"[..]).expiring(soon());
            let put = store.commit(|effects| store.database(3).insert(effects, key.clone(), value));
            put.expect("there is no log");
            let holds = [Hold::key(1, key.clone()), Hold::key(3, key.clone())];
            let looks = |databases: Databases<'_>| {
                let first = databases.database(3).contains_key(&key);
                thread::sleep(Duration::from_millis(2 * SOON));
                let mut scanned = Vec::new();
                let all = KeyRange::only(&key);
                let database = databases.database(3);
                database.scan(all, Direction::Ascending, 1, &mut scanned);
                assert_eq!(database.contains_key(&key), first, "{engine}");
                assert_eq!(database.get(&key).is_some(), first, "{engine}");
                assert_eq!(scanned.len(), usize::from(first), "{engine}");
                first
            };
            found = store.hold(&holds, 0, looks).expect("it has steps");
            assert!(!store.database(3).contains_key(&key), "{engine}");
        }
    }
}

#[test]
fn an_engine_without_steps_is_refused_by_name() {
    let store = Store::new(&StoreConfig::new(Engine::Locked)).expect("a store");
    let held = store.hold(&[Hold::database(0)], 0, |_| ());
    let Err(refused @ CannotHold::NoSteps("locked")) = held else {
        panic!("{held:?}");
    };
    assert_eq!(
        refused.to_string(),
        "engine 'locked' has no steps over several keys"
    );
}
