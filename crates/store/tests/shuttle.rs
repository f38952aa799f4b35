//! Writes of several threads to the same keys, under random schedules: the log has the order in
//! which they took effect.
//!
//! The tests fail on: a record that is missing, or comes twice; two changes of a key that the log
//! has the other way round; a change whose number somebody else has; records that lie in a buffer
//! when everybody who wrote has handed over; a step of which the log has only a part.
#![cfg(shuttle)]

mod support;

use std::collections::BTreeMap;
use std::ops::Bound;
use support::{new_folder, new_log, open};
use tremula_log::Sequence;
use tremula_store::{Engine, Key, Store, StoreConfig, Value, Version};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

const THREADS: u8 = 3;
const WRITES: u8 = 4;

fn key(number: u8) -> Key {
    Key::from(&[number][..])
}

/// A value that says which write it is of. Every other one is long.
fn value(thread: u8, write: u8) -> Value {
    let length = if write.is_multiple_of(2) { 2 } else { 40 };
    Value::from(&[thread, write].repeat(length)[..])
}

/// One of the writes of a thread: each kind meets each other one.
fn write(store: &Store, thread: u8, write: u8) {
    let database = store.database(0);
    let new = || value(thread, write);
    store
        .commit(|effects| match (thread + write) % 5 {
            0 | 1 => drop(database.insert(effects, key(write % 2), new())),
            2 => drop(database.remove(effects, &key(thread % 2))),
            3 => database
                .change_together(effects, vec![(key(0), Some(new())), (key(1), Some(new()))]),
            _ => {
                let (low, high) = (key(0), key(1));
                database.remove_range(effects, Bound::Included(&low), Bound::Excluded(&high));
            }
        })
        .expect("a log that takes everything");
}

/// All keys, with values and versions.
fn contents(store: &Store) -> BTreeMap<u8, (Vec<u8>, Version)> {
    let database = store.database(0);
    let found = (0..2).filter_map(|number| {
        let value = database.get(&key(number))?;
        Some((number, (value.to_vec(), value.version())))
    });
    found.collect()
}

fn the_log_has_the_order_of_effects(engine: Engine, schedules: usize) {
    let name = format!("the_log_has_the_order_of_effects of {engine}");
    check(&name, schedules, move || {
        let (log, (_directory, folder)) = (new_log(), new_folder());
        let config = StoreConfig::new(engine);
        let store = Arc::new(open(&config, &log, &folder).0);
        let writers: Vec<_> = (0..THREADS)
            .map(|number| {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    for at in 0..WRITES {
                        write(&store, number, at);
                        // Not each: what others have written waits beside.
                        if at % 2 == 1 {
                            store.forward();
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        // Everybody has handed over behind its last write.
        let last = store.last_effect();
        assert_eq!(log.tail().next, last.plus(1), "a record was left behind");
        let mut next = Sequence::FIRST;
        for entry in log.read(Sequence::FIRST).expect("a log") {
            let batch = entry.expect("a batch").to_batch();
            next = next.plus(batch.len() as u64);
        }
        assert_eq!(next, last.plus(1));
        let again = open(&config, &log, &folder).0;
        assert_eq!(
            contents(&again),
            contents(&store),
            "the log makes another state"
        );
    });
}

#[test]
fn the_log_has_the_order_of_effects_of_aspen() {
    the_log_has_the_order_of_effects(Engine::Aspen, 1_000);
}

#[test]
fn the_log_has_the_order_of_effects_of_b_tree() {
    the_log_has_the_order_of_effects(Engine::BTree, 500);
}

#[test]
fn the_log_has_the_order_of_effects_of_ca_tree() {
    the_log_has_the_order_of_effects(Engine::CaTree, 500);
}
