//! Values in boxes, in leaves that are hot: each is dropped once, and none while it is read.

use super::Aspen;
use crate::{Direction, KeyRange, OrderedIndex, Update};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

/// Takes a box; counts how many there are.
#[derive(Clone)]
struct Boxed {
    number: u64,
    check: u64,
    _alive: Arc<()>,
}

impl Boxed {
    fn new(number: u64, alive: &Arc<()>) -> Self {
        Self {
            number,
            check: !number,
            _alive: Arc::clone(alive),
        }
    }

    fn is_whole(&self) -> bool {
        self.check == !self.number
    }
}

const THREADS: u64 = 2;
const TURNS: u64 = if cfg!(miri) { 4 } else { 300 };
const TURN: u64 = 20;

#[test]
fn boxed_values_of_hot_leaves_are_dropped_once() {
    let alive = &Arc::new(());
    let map = &Aspen::<u64, Boxed>::new();
    for number in 0..8 {
        map.insert(number, Boxed::new(number, alive));
    }
    map.heat(&4);
    let (barrier, done) = (&Barrier::new(THREADS as usize), &AtomicUsize::new(0));
    let newest = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for turn in 0..TURNS {
                    if thread == 0 && map.shape().get("hot_leaves") == Some(0) {
                        // The reader, which polls the end, may have made it ordinary.
                        map.heat(&(newest.load(Ordering::SeqCst) as u64 + 1));
                    }
                    for number in 0..TURN {
                        let key = 8 + (turn * TURN + number) * THREADS + thread;
                        assert!(map.insert(key, Boxed::new(key, alive)).is_none());
                        newest.store(key as usize, Ordering::SeqCst);
                        match number % 4 {
                            0 => assert!(map.remove(&key).is_some_and(|old| old.is_whole())),
                            1 => {
                                map.update(key, &mut |old| {
                                    assert!(old.is_some_and(Boxed::is_whole));
                                    Update::Put(Boxed::new(key, alive))
                                });
                            }
                            2 => drop(map.insert(key, Boxed::new(key, alive))),
                            _ => {}
                        }
                    }
                    barrier.wait();
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        scope.spawn(move || {
            let mut before = 0;
            while done.load(Ordering::SeqCst) < THREADS as usize {
                // To poll an end where nothing happens would make the leaf ordinary.
                if newest.load(Ordering::SeqCst) == before {
                    thread::yield_now();
                    continue;
                }
                before = newest.load(Ordering::SeqCst);
                for _ in 0..4 {
                    let from = newest.load(Ordering::SeqCst) as u64;
                    for key in from.saturating_sub(50)..from + 10 {
                        assert!(map.get(&key).is_none_or(|value| value.is_whole()));
                    }
                }
                let last = map.last();
                assert!(last.is_some_and(|(_, value)| value.is_whole()));
                let mut seen = 0;
                map.range(KeyRange::all(), Direction::Descending, &mut |key, value| {
                    assert!(value.is_whole() && value.number == *key);
                    seen += 1;
                    if seen < 200 {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                });
            }
        });
    });
    assert!(map.shape().get("drains") > Some(0), "{:?}", map.shape());
    let kept = 8 + THREADS * TURNS * TURN * 3 / 4;
    assert_eq!(map.len() as u64, kept);
    let all = map.snapshot(KeyRange::all()).unwrap_or_default();
    assert!(
        all.iter()
            .all(|(key, value)| value.is_whole() && value.number == *key)
    );
    assert_eq!(all.len() as u64, kept);
    drop(all);
}

#[test]
fn no_boxed_value_of_a_hot_leaf_is_left() {
    let alive = Arc::new(());
    let map = Aspen::<u64, Boxed>::new();
    for number in 0..8 {
        map.insert(number, Boxed::new(number, &alive));
    }
    map.heat(&4);
    for number in 8..2000 {
        map.insert(number, Boxed::new(number, &alive));
        if number % 3 == 0 {
            map.remove(&number);
        }
    }
    assert_eq!(map.shape().get("hot_leaves"), Some(1));
    drop(map);
    assert_eq!(Arc::strong_count(&alive), 1);
}
