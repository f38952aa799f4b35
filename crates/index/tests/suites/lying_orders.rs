//! Keys whose order contradicts itself: one comparison in twenty lies, and so does one head in
//! twenty.
//!
//! Two threads run random operations of all kinds on one index. Their results are wrong, and an
//! operation may panic. A test here fails if a thread waits for ever, for a lock that it holds
//! itself or that the other thread holds, because comparisons have led it there; or if it goes in
//! circles over nodes that it holds.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::support::misled::unless_misled;
use crate::support::suite::Random;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::mpsc;
use std::time::Duration;
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, Update};

/// How long a test may make no progress. Normally it takes some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// One comparison in this many lies.
const LIES: u32 = 20;

thread_local! {
    static RANDOM: RefCell<Random> = RefCell::new(Random::new(1));
    static LYING: Cell<bool> = const { Cell::new(false) };
}

fn lies() -> bool {
    LYING.get() && RANDOM.with_borrow_mut(|random| random.below(LIES) == 0)
}

#[derive(Clone)]
pub(crate) struct Liar(String);

impl Liar {
    fn new(number: u32) -> Self {
        Self(format!("{:06} and a tail", number * 7919 % 1000))
    }
}

impl Ord for Liar {
    fn cmp(&self, other: &Self) -> Ordering {
        if lies() {
            let lie = RANDOM.with_borrow_mut(|random| random.below(3));
            return [Ordering::Less, Ordering::Equal, Ordering::Greater][lie as usize];
        }
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Liar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Liar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Liar {}

impl ByteKey for Liar {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if lies() {
            read(&self.0.as_bytes()[4..])
        } else {
            read(self.0.as_bytes())
        }
    }
}

/// A step over a range and two keys, on an engine that has steps.
fn step(
    index: &dyn OrderedIndex<Liar, Box<u32>>,
    key: &Liar,
    other: &Liar,
    range: KeyRange<'_, Liar>,
) {
    if let Some(steps) = index.transactional() {
        let over = [KeyRange::only(other), range, KeyRange::only(key)];
        steps.atomically(&over, &mut |step| {
            step.insert(key.clone(), Box::new(1));
            step.remove(other);
            step.remove_range(range);
            step.insert(other.clone(), Box::new(2));
        });
        steps.walk(&mut |_| ControlFlow::Continue(()));
    }
}

fn operate(index: &dyn OrderedIndex<Liar, Box<u32>>, random: &mut Random) {
    let number = random.below(300);
    let (key, other) = (Liar::new(number), Liar::new(random.below(300)));
    let range = KeyRange::new(Bound::Included(&key), Bound::Excluded(&other));
    match random.below(16) {
        14..=15 => step(index, &key, &other, range),
        0..=3 => drop(index.insert(key, Box::new(number))),
        4..=5 => drop(index.remove(&key)),
        6 => drop(index.insert_if_absent(key, Box::new(number))),
        7 => drop(index.update(key, &mut |value| match value {
            Some(_) => Update::Remove,
            None => Update::Put(Box::new(number)),
        })),
        8 => drop((index.pop_first(), index.pop_last())),
        9 => drop((index.next(&key), index.prev(&key))),
        10 => index.scan(range, Direction::Ascending, 100, &mut Vec::new()),
        11 => index.scan(range, Direction::Descending, 100, &mut Vec::new()),
        12 => drop(index.get(&key)),
        _ if random.below(4) == 0 => drop(index.remove_range(range)),
        _ => drop(index.snapshot(KeyRange::all())),
    }
}

/// Silences the panics of threads that lie, because there are hundreds.
fn silence_liars() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let say = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !LYING.get() {
                say(panic);
            }
        }));
    });
}

pub(crate) fn run<I: OrderedIndex<Liar, Box<u32>> + 'static>(
    make: impl Fn() -> I + Send + 'static,
) {
    silence_liars();
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        for round in 0..30 {
            let index = make();
            std::thread::scope(|scope| {
                for number in 0..2 {
                    let index = &index;
                    scope.spawn(move || {
                        let mut random = Random::new(2 * round + number);
                        RANDOM.set(Random::new(1000 + 2 * round + number));
                        LYING.set(true);
                        for _ in 0..1_000 {
                            unless_misled(|| operate(index, &mut random));
                        }
                        LYING.set(false);
                    });
                }
            });
        }
        let _ = done.send(());
    });
    match finished.recv_timeout(PATIENCE) {
        Ok(()) => (),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("a thread has been waiting, or going in circles, for {PATIENCE:?}")
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            panic!("an invariant is broken, or dropping an index panicked")
        }
    }
}

macro_rules! engine {
    ($name:ident, $make:expr) => {
        #[test]
        fn $name() {
            suite::run(|| $make);
        }
    };
}

pub(crate) type Value = Box<u32>;

pub(crate) use engine;
