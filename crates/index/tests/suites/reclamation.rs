//! Removed and replaced values are dropped soon, whichever thread removed them, and are returned
//! themselves if no other thread can be looking at them.
//!
//! A value that no thread can reach may hold a file, a sender, a permit. These tests fail if it
//! waits for the thread that removed it to come back, for the process to end, or for anything
//! except operations on its own map.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::{Tested, further_maps};
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, mpsc};
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, RegisteredEngine, Update};
use tremula_sync::thread;

/// What was removed from a map is dropped within this number of operations of any threads on it.
pub(crate) const PROMISE: u64 = 4_096;

/// The initial keys of a map.
const KEYS: u64 = 200;

/// The key that operations on one key use.
const CHOSEN: u64 = 100;

/// A key whose copies are counted.
#[derive(Clone, Debug)]
pub(crate) struct Key(u64, Arc<()>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl ByteKey for Key {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0.to_be_bytes())
    }
}

fn key(number: u64) -> Key {
    Key(number, Arc::new(()))
}

/// A value whose copies are counted.
pub(crate) type Value = Arc<u64>;

pub(crate) type Map = Box<dyn OrderedIndex<Key, Value>>;

/// The name of a map, and a function that makes it.
pub(crate) type Made = (String, Box<dyn Fn() -> Map>);

/// The engines of the table that the test program names `Tested`, and further maps.
fn tested() -> impl Iterator<Item = Made> {
    let engine = |engine: Tested| -> Made {
        (
            engine.to_string(),
            Box::new(move || RegisteredEngine::create(engine)),
        )
    };
    Tested::ALL.into_iter().map(engine).chain(further_maps())
}
/// Runs `test` on each.
fn on_each(test: impl Fn(&str, &Map)) {
    for (name, make) in tested() {
        test(&name, &make());
    }
}

/// Waits until an engine's own thread, if it has one, has finished its work, so that operations
/// count from then on.
fn wait_for_thread(map: &Map) {
    while map.shape().get("left_to_thread").unwrap_or(0) > 0 {
        thread::yield_now();
    }
}

/// Fills the map, and returns its values.
fn fill(map: &Map) -> Vec<Value> {
    (0..KEYS)
        .map(|number| {
            let value = Arc::new(number);
            map.insert(key(number), Arc::clone(&value));
            value
        })
        .collect()
}

/// A way in which values leave a map, and the values that leave.
type Leaving = (&'static str, fn(&Map), std::ops::Range<usize>);

const WAYS: [Leaving; 8] = [
    ("remove", |map| drop(map.remove(&key(CHOSEN))), 100..101),
    (
        "insert",
        |map| drop(map.insert(key(CHOSEN), Arc::new(0))),
        100..101,
    ),
    (
        "update, put",
        |map| drop(map.update(key(CHOSEN), &mut |_| Update::Put(Arc::new(0)))),
        100..101,
    ),
    (
        "update, remove",
        |map| drop(map.update(key(CHOSEN), &mut |_| Update::Remove)),
        100..101,
    ),
    ("pop_first", |map| drop(map.pop_first()), 0..1),
    ("pop_last", |map| drop(map.pop_last()), 199..200),
    (
        "remove_range",
        |map| {
            let (low, high) = (key(50), key(150));
            map.remove_range(KeyRange::new(Bound::Included(&low), Bound::Excluded(&high)));
        },
        50..150,
    ),
    (
        "remove_range of all",
        |map| {
            map.remove_range(KeyRange::all());
        },
        0..200,
    ),
];

/// A way to use a map, one operation at a time.
type Using = (&'static str, fn(&Map, u64));

const USES: [Using; 4] = [
    ("get", |map, turn| drop(map.get(&key(turn % KEYS)))),
    ("insert and remove", |map, turn| {
        // Other keys than the initial ones.
        let other = key(1_000_000 + turn / 2 % 100);
        if turn % 2 == 0 {
            map.insert(other, Arc::new(0));
        } else {
            map.remove(&other);
        }
    }),
    ("next", |map, turn| drop(map.next(&key(turn % KEYS)))),
    ("scan", |map, turn| {
        let low = key(turn % KEYS);
        let range = KeyRange::new(Bound::Included(&low), Bound::Unbounded);
        map.scan(range, Direction::Ascending, 5, &mut Vec::new());
    }),
];

/// Runs `work` in another thread, which then does nothing for as long as `meanwhile` takes.
fn by_a_thread_that_does_not_come_back(
    map: Arc<Map>,
    work: impl FnOnce(&Map) + Send + 'static,
    meanwhile: impl FnOnce(),
) {
    let (done, wait) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        work(&map);
        drop(map);
        done.send(()).unwrap();
        ended.recv().unwrap();
    });
    wait.recv().unwrap();
    meanwhile();
    end.send(()).unwrap();
    thread.join().unwrap();
}

pub(crate) fn a_value_that_left_is_dropped_though_the_thread_that_removed_it_never_comes_back() {
    for (way, leave, left) in WAYS {
        for (using, use_once) in USES {
            for (name, make) in tested() {
                let map = Arc::new(make());
                let values = fill(&map);
                by_a_thread_that_does_not_come_back(Arc::clone(&map), leave, || {
                    wait_for_thread(&map);
                    (0..PROMISE).for_each(|turn| use_once(&map, turn));
                    for value in &values[left.clone()] {
                        assert_eq!(
                            Arc::strong_count(value),
                            1,
                            "{name}, {way}, used by {using}: {value} lives on"
                        );
                    }
                });
            }
        }
    }
}

pub(crate) fn a_key_that_left_is_dropped_likewise() {
    for (using, use_once) in USES {
        on_each(|name, map| {
            // Few keys, so that none of them separates nodes.
            let keys = [key(0), key(CHOSEN), key(199)];
            for key in &keys {
                map.insert(key.clone(), Arc::new(0));
            }
            map.remove(&key(CHOSEN));
            wait_for_thread(map);
            (0..PROMISE).for_each(|turn| use_once(map, turn));
            assert_eq!(Arc::strong_count(&keys[1].1), 1, "{name}, used by {using}");
        });
    }
}

pub(crate) fn dropping_the_map_drops_everything_at_once() {
    for (way, leave, _) in WAYS {
        for (name, make) in tested() {
            let map = Arc::new(make());
            let values = fill(&map);
            let chosen = key(1_000);
            map.insert(chosen.clone(), Arc::new(0));
            by_a_thread_that_does_not_come_back(Arc::clone(&map), leave, || {
                assert_eq!(Arc::strong_count(&map), 1);
                drop(map);
                for value in &values {
                    assert_eq!(
                        Arc::strong_count(value),
                        1,
                        "{name}, {way}: {value} lives on"
                    );
                }
                assert_eq!(
                    Arc::strong_count(&chosen.1),
                    1,
                    "{name}, {way}: a key lives on"
                );
            });
        }
    }
}

pub(crate) fn a_quiet_map_hands_out_the_value_itself() {
    on_each(|name, map| {
        for _ in 0..2 {
            drop(fill(map));
            wait_for_thread(map);
            // A thread of the engine's own may be inside as soon as an operation leaves it a task.
            let has_thread = map.shape().get("left_to_thread").is_some();
            let originals = Cell::new(0);
            let is_alone = |way: &str, value: Option<Value>| {
                let value = value.unwrap_or_else(|| panic!("{name}, {way}: nothing"));
                let is_original = Arc::try_unwrap(value).is_ok();
                assert!(is_original || has_thread, "{name}, {way}: a copy");
                originals.set(originals.get() + u32::from(is_original));
                wait_for_thread(map);
            };
            for number in 0..20 {
                // In the middle, away from the keys that are popped.
                let number = 60 + number * 4;
                is_alone("insert", map.insert(key(number), Arc::new(1)));
                let put = &mut |_: Option<&Value>| Update::Put(Arc::new(2));
                is_alone("update, put", map.update(key(number), put));
                is_alone("remove", map.remove(&key(number)));
                let remove = &mut |_: Option<&Value>| Update::Remove;
                is_alone("update, remove", map.update(key(number + 1), remove));
                is_alone("pop_first", map.pop_first().map(|(_, value)| value));
                is_alone("pop_last", map.pop_last().map(|(_, value)| value));
            }
            assert_ne!(originals.get(), 0, "{name}");
            map.remove_range(KeyRange::all());
        }
    });
}

/// A visit may remove the entry that it is being shown. It would be shown freed memory if that
/// value were returned itself.
pub(crate) fn a_value_that_a_visit_shows_is_not_handed_out_itself() {
    on_each(|name, map| {
        let values = fill(map);
        map.range(KeyRange::all(), Direction::Ascending, &mut |key, shown| {
            let removed = map.remove(key).unwrap();
            assert_eq!(removed, values[*removed as usize], "{name}");
            // The test's copy, the removed one, and the one that is shown.
            assert!(Arc::strong_count(&removed) >= 3, "{name}: {removed}");
            assert_eq!(*shown, removed, "{name}");
            ControlFlow::Continue(())
        });
        assert_eq!(map.len(), 0, "{name}");
    });
}

/// The tests of this suite.
macro_rules! every_test {
    () => {
        every_test! {
            a_value_that_left_is_dropped_though_the_thread_that_removed_it_never_comes_back,
            a_key_that_left_is_dropped_likewise,
            dropping_the_map_drops_everything_at_once,
            a_quiet_map_hands_out_the_value_itself,
            a_value_that_a_visit_shows_is_not_handed_out_itself,
        }
    };
    ($($test:ident,)*) => {
        $(#[test]
        fn $test() {
            suite::$test();
        })*
    };
}
pub(crate) use every_test;
