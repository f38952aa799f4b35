//! Keys and values whose `drop` calls the index that they were in, on every engine.
//!
//! One thread runs random operations of all kinds. When a key or a value is dropped (a stored one,
//! an argument of an operation, or a copy that separated two nodes), its `drop` looks up, inserts,
//! removes and pops in the same index. A test here fails if an operation drops a key or a value
//! while it holds a lock: then the `drop` waits for a lock that its own thread holds, and the test
//! reports after a while that nothing happens.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::support::suite::Random;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;
use tremula_index::key::KeyHead;
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, Update};

/// How long a test may make no progress. Normally it takes less than a second.
const PATIENCE: Duration = Duration::from_secs(120);

type Index = dyn OrderedIndex<Key, Value>;

/// The index of a test, and the calls that its keys and values have made.
struct Home {
    index: Weak<Index>,
    calls: AtomicU64,
    /// Whether the test is still under way.
    open: AtomicBool,
}

/// Calls the index when it is dropped.
#[derive(Clone)]
struct Caller(Option<Arc<Home>>);

impl Drop for Caller {
    fn drop(&mut self) {
        thread_local!(static CALLING: Cell<bool> = const { Cell::new(false) });
        let Some(home) = self.0.take() else { return };
        if !home.open.load(Relaxed) || CALLING.replace(true) {
            return;
        }
        if let Some(index) = home.index.upgrade() {
            let call = home.calls.fetch_add(1, Relaxed);
            // Silent keys and values, because what they replace or remove may belong to others.
            index.get_with(&Key::silent(call % KEYS), &mut |_| ());
            index.insert(Key::silent(call % KEYS), Value::silent());
            index.remove(&Key::silent(call / 2 % KEYS));
            index.pop_last();
        }
        CALLING.set(false);
    }
}

#[derive(Clone)]
pub(crate) struct Key(u64, #[allow(dead_code, reason = "for its drop")] Caller);

impl Key {
    fn silent(number: u64) -> Self {
        Self(number, Caller(None))
    }
}

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

thread_local!(static HOME: Cell<Option<Arc<Home>>> = const { Cell::new(None) });

/// A head that is the key, though the key has a drop.
pub(crate) struct WholeHead;

impl KeyHead<Key> for WholeHead {
    type Word = u64;
    const IS_KEY: bool = true;

    fn head(key: &Key) -> u64 {
        key.0
    }

    fn key(head: u64) -> Option<Key> {
        let home = HOME.take();
        HOME.set(home.clone());
        Some(Key(head, Caller(home)))
    }
}

#[derive(Clone)]
pub(crate) struct Value(#[allow(dead_code, reason = "for its drop")] Caller);

impl Value {
    fn silent() -> Self {
        Self(Caller(None))
    }
}

const KEYS: u64 = 300;

/// Random operations on the index. When its keys, or its values, are dropped, they call it.
fn operate(index: &Arc<Index>, keys_call: bool, told: bool) -> u64 {
    let home = Arc::new(Home {
        index: Arc::downgrade(index),
        calls: AtomicU64::new(0),
        open: AtomicBool::new(true),
    });
    if keys_call && told {
        HOME.set(Some(Arc::clone(&home)));
    }
    let caller = |calls: bool| Caller(calls.then(|| Arc::clone(&home)));
    let key = |number| Key(number, caller(keys_call));
    let value = || Value(caller(!keys_call));
    let mut random = Random::new(7);
    for _ in 0..6_000 {
        let number = u64::from(random.below(KEYS as u32));
        match random.below(16) {
            0..=3 => drop(index.insert(key(number), value())),
            4..=5 => drop(index.remove(&key(number))),
            6 => drop(index.insert_if_absent(key(number), value())),
            7 => drop(index.update(key(number), &mut |_| Update::Put(value()))),
            8 => drop(index.update(key(number), &mut |_| Update::Remove)),
            9 => drop(index.update(key(number), &mut |_| Update::Keep)),
            10 => drop((index.pop_first(), index.pop_last())),
            11 => drop((index.next(&key(number)), index.prev(&key(number)))),
            12 => {
                let mut entries = Vec::new();
                index.scan(KeyRange::all(), Direction::Descending, 30, &mut entries);
            }
            13 => {
                let (low, high) = (key(number), key(number + 40));
                index.remove_range(KeyRange::new(Bound::Included(&low), Bound::Excluded(&high)));
            }
            // Keys in a row, so that nodes fill, empty and are merged.
            14 => (number..number + 40).for_each(|number| {
                index.insert(key(number), value());
            }),
            _ => (number..number + 40).for_each(|number| {
                index.remove(&key(number));
            }),
        }
    }
    home.open.store(false, Relaxed);
    HOME.set(None);
    home.calls.load(Relaxed)
}

/// Runs the operations in a thread of their own, and waits for it up to `PATIENCE`.
pub(crate) fn run(index: impl OrderedIndex<Key, Value> + 'static, keys_call: bool, told: bool) {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let index: Arc<Index> = Arc::new(index);
        let calls = operate(&index, keys_call, told);
        let _ = done.send(calls);
    });
    match finished.recv_timeout(PATIENCE) {
        Ok(calls) => assert!(calls > 1_000, "only {calls} calls came from drops"),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("a drop that calls the index has not come back for {PATIENCE:?}")
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it has sent nothing"))
        }
    }
}

/// A test of keys and one of values for the index that an expression makes.
macro_rules! engine {
    ($name:ident, $make:expr $(, $told:literal)?) => {
        mod $name {
            use super::*;

            #[test]
            fn a_key_that_is_dropped_may_call() {
                suite::run($make, true, false $(|| $told)?);
            }

            #[test]
            fn a_value_that_is_dropped_may_call() {
                suite::run($make, false, false $(|| $told)?);
            }
        }
    };
}

/// Runs the tests on a registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        engine!($name, $Index::<Key, Value>::new());
    };
}

pub(crate) use {engine, registered};
