//! Values that go to other keys: against a model, with a log, and with threads.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tremula_log::{Log, MemoryLog};
use tremula_store::{
    DATABASES, Direction, Engine, Expiry, Folder, Key, KeyRange, Moved, Place, Store, StoreConfig,
    Value, Way,
};

const ENGINES: [Engine; 3] = [Engine::Aspen, Engine::BTree, Engine::CaTree];

type Contents = BTreeMap<(usize, Vec<u8>), (Vec<u8>, Option<Expiry>)>;

fn contents(store: &Store) -> Contents {
    let mut all = BTreeMap::new();
    for number in 0..DATABASES {
        let mut entries = Vec::new();
        let (range, most) = (KeyRange::all(), usize::MAX);
        let database = store.database(number);
        database.scan(range, Direction::Ascending, most, &mut entries);
        let expiring = entries.iter().filter(|(_, value)| value.expiry().is_some());
        assert_eq!(database.expiring(), expiring.count(), "as many are noted");
        for (key, value) in entries {
            let at = (number, key.as_bytes().to_vec());
            all.insert(at, (value.to_vec(), value.expiry()));
        }
    }
    all
}

/// Every outcome, and all that is there afterwards, is as a map has it; also what is recovered from
/// the log. A value lost, doubled or left behind, a wrong time, or half a step would fail.
#[test]
fn values_go_where_a_model_says() {
    for (engine, seed) in ENGINES.into_iter().zip(1..) {
        let mut random = StdRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().expect("a directory");
        let folder = Folder::new(directory.path());
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let config = StoreConfig::new(engine);
        let open = || Store::recover(&config, Arc::clone(&log), &folder, &mut |_| ());
        let (store, _) = open().expect("an empty log");
        let mut model = Contents::new();
        let later = Expiry::from_millis(Expiry::now().millis() + 10_000_000).expect("soon");
        for step in 0..5000_u32 {
            let mut place = || {
                (
                    random.random_range(0..3),
                    vec![random.random_range(b'a'..b'g')],
                )
            };
            let (from, to) = (place(), place());
            let [from_key, to_key] = [&from, &to].map(|(_, key)| Key::from(&key[..]));
            match random.random_range(0..4) {
                0 => {
                    let bytes = step.to_string().into_bytes();
                    let expiry = random.random_bool(0.3).then_some(later);
                    let value = Value::from(&bytes[..]).expiring(expiry);
                    let database = store.database(from.0);
                    let insert = store.commit(|effects| database.insert(effects, from_key, value));
                    insert.expect("the log takes it");
                    model.insert(from, (bytes, expiry));
                }
                1 => {
                    let bytes = step.to_string().into_bytes();
                    let entries: Vec<_> = [&from_key, &to_key]
                        .map(|key| (key.clone(), Value::from(&bytes[..])))
                        .into();
                    let database = store.database(from.0);
                    let stored = store
                        .commit(|effects| database.insert_together_if_absent(effects, entries));
                    let places = [from.clone(), (from.0, to.1)];
                    let are_absent = places.iter().all(|place| !model.contains_key(place));
                    assert_eq!(stored.expect("the log takes it"), are_absent);
                    if are_absent {
                        let put = places.map(|place| (place, (bytes.clone(), None)));
                        model.extend(put);
                    }
                }
                _ if from == to => (),
                _ => {
                    let way = Way {
                        leaves: random.random(),
                        replaces: random.random(),
                    };
                    let source = Place {
                        database: from.0,
                        key: &from_key,
                    };
                    let target = Place {
                        database: to.0,
                        key: &to_key,
                    };
                    let moved =
                        store.commit(|effects| store.free().carry(effects, source, target, way));
                    let moved = moved.expect("the log takes it");
                    let old = model.get(&to).cloned();
                    match model.get(&from).cloned() {
                        None => assert!(matches!(moved, Moved::Absent)),
                        Some(_) if old.is_some() && !way.replaces => {
                            assert!(matches!(moved, Moved::Taken));
                        }
                        Some(value) => {
                            let Moved::Done(replaced) = moved else {
                                panic!("{moved:?}");
                            };
                            let replaced = replaced.map(|old| (old.to_vec(), old.expiry()));
                            assert_eq!(replaced, old);
                            if way.leaves {
                                model.remove(&from);
                            }
                            model.insert(to, value);
                        }
                    }
                }
            }
            if step.is_multiple_of(500) {
                assert_eq!(contents(&store), model, "{engine}, step {step}");
            }
        }
        assert_eq!(contents(&store), model, "{engine}");
        drop(store);
        let (again, _) = open().expect("what was written is whole");
        assert_eq!(contents(&again), model, "{engine}, recovered");
    }
}

/// Threads that move values between two databases in both directions neither wait for each other
/// for ever nor lose one; another thread sees one of two names at any time.
#[test]
fn threads_move_values_both_ways() {
    for engine in ENGINES {
        let store = Store::new(&StoreConfig::new(engine)).expect("an engine that is served");
        let keys: Vec<_> = (0..8).map(|number: u8| Key::from(&[number][..])).collect();
        let (one, other) = (Key::from(&b"one"[..]), Key::from(&b"other"[..]));
        for key in keys.iter().chain([&one]) {
            let value = Value::from(&b"v"[..]);
            let database = store.database(0);
            let inserted = store.commit(|effects| database.insert(effects, key.clone(), value));
            assert!(inserted.expect("no log").is_none());
        }
        let way = Way {
            leaves: true,
            replaces: false,
        };
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (store, keys, one, other, is_over) = (&store, &keys, &one, &other, &is_over);
            let carry = move |from: (usize, &Key), to: (usize, &Key)| {
                let [from, to] = [from, to].map(|(database, key)| Place { database, key });
                let carried = store.commit(|effects| store.free().carry(effects, from, to, way));
                drop(carried.expect("no log"));
            };
            let movers: Vec<_> = [(0, 1), (1, 0), (0, 1), (1, 0)]
                .map(|(from, to)| {
                    scope.spawn(move || {
                        for round in 0..4000 {
                            let key = &keys[round % keys.len()];
                            carry((from, key), (to, key));
                        }
                    })
                })
                .into();
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let mut count = 0;
                    let names = [one.clone(), other.clone()];
                    store.database(0).get_together(&names, &mut |_, value| {
                        count += usize::from(value.is_some());
                    });
                    assert_eq!(count, 1, "one of two names");
                }
            });
            for _ in 0..4000 {
                carry((0, one), (0, other));
                carry((0, other), (0, one));
            }
            for mover in movers {
                mover.join().expect("no panic");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        for key in &keys {
            let there = [0, 1].map(|number| store.database(number).contains_key(key));
            assert!(there[0] != there[1], "{engine}: {there:?}");
        }
    }
}

/// A key that has expired and is not removed yet is in nobody's way.
#[test]
fn what_has_expired_is_not_there() {
    let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("an engine that is served");
    let (dead, other) = (Key::from(&b"dead"[..]), Key::from(&b"other"[..]));
    let long_ago = Expiry::from_millis(1000);
    let database = store.database(0);
    let insert = |key: &Key, expiry| {
        let value = Value::from(&b"v"[..]).expiring(expiry);
        let insert = store.commit(|effects| database.insert(effects, key.clone(), value));
        insert.expect("no log");
    };
    let carry = |from: &Key, to: &Key| {
        let [from, to] = [from, to].map(|key| Place { database: 0, key });
        let way = Way {
            leaves: true,
            replaces: false,
        };
        let moved = store.commit(|effects| store.free().carry(effects, from, to, way));
        moved.expect("no log")
    };
    insert(&dead, long_ago);
    assert_eq!(database.random_key(0), None);
    assert!(matches!(carry(&dead, &other), Moved::Absent));
    insert(&other, None);
    assert!(matches!(carry(&other, &dead), Moved::Done(None)));
    assert_eq!(database.get(&dead).and_then(|value| value.expiry()), None);
    insert(&other, long_ago);
    let entries = vec![(other.clone(), Value::from(&b"new"[..]))];
    let stored = store.commit(|effects| database.insert_together_if_absent(effects, entries));
    assert!(stored.expect("no log"));
    assert_eq!(database.expiring(), 0, "no time is left of those before");
    assert_eq!(database.random_key(7), Some(other));
}
