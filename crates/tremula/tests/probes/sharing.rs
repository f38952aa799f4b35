//! Maps that threads share.

use std::panic::catch_unwind;
use std::sync::{Arc, Barrier, RwLock, mpsc};
use std::thread;
use tremula::{OrderedMap, Update};

fn numbers() -> OrderedMap<i32, i32> {
    (0..100).map(|n| (n, 0)).collect()
}

fn increment(map: &OrderedMap<i32, i32>, key: i32) {
    map.update(key, |count| Update::Put(count.map_or(1, |n| n + 1)));
}

#[test]
fn scoped_threads_borrow_the_map() {
    let map = numbers();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|key| increment(&map, key)));
        }
    });
    assert!(map.values().all(|count| count == 4));
}

#[test]
fn scoped_threads_return_results() {
    let map = numbers();
    let lengths: Vec<_> = thread::scope(|scope| {
        let threads = [0, 50].map(|low| {
            scope.spawn({
                let map = &map;
                move || map.range(low..low + 50).count()
            })
        });
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(lengths, [50, 50]);
}

#[test]
fn spawned_threads_share_by_arc() {
    let map = Arc::new(OrderedMap::new());
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let map = Arc::clone(&map);
            thread::spawn(move || map.insert(number, number))
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| assert_eq!(thread.join().unwrap(), None));
    assert!(map.keys().eq(0..4));
}

#[test]
fn a_map_moves_to_a_thread_and_back() {
    let map = numbers();
    let thread = thread::spawn(move || {
        map.remove_range(..90);
        map
    });
    assert_eq!(thread.join().unwrap().len(), 10);
}

#[test]
fn a_map_travels_through_a_channel() {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(numbers()).unwrap())
        .join()
        .unwrap();
    assert_eq!(receiver.recv().unwrap().len(), 100);
}

#[test]
fn one_thread_of_many_wins_the_insertion() {
    let (map, start) = (OrderedMap::new(), Barrier::new(4));
    let winners = thread::scope(|scope| {
        let attempt = |thread| {
            let (map, start) = (&map, &start);
            scope.spawn(move || {
                start.wait();
                map.insert_if_absent(1, thread).is_ok()
            })
        };
        let threads = [0, 1, 2, 3].map(attempt);
        threads
            .into_iter()
            .filter(|_| true)
            .map(|t| usize::from(t.join().unwrap()))
            .sum::<usize>()
    });
    assert_eq!(winners, 1);
}

#[test]
fn workers_take_jobs_by_pop_first() {
    let jobs = numbers();
    let done = thread::scope(|scope| {
        let work = || std::iter::from_fn(|| jobs.pop_first()).count();
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!((done, jobs.is_empty()), (100, true));
}

#[test]
fn a_reader_iterates_while_a_writer_writes() {
    let map = numbers();
    thread::scope(|scope| {
        scope.spawn(|| (100..1000).for_each(|key| increment(&map, key)));
        let keys: Vec<_> = map.keys().collect();
        assert!(keys.is_sorted() && keys.len() >= 100);
    });
}

#[test]
fn an_iterator_moves_to_a_thread() {
    let map = Arc::new(numbers());
    let entries = OrderedMap::range_of(Arc::clone(&map), 90..);
    let thread = thread::spawn(move || entries.map(|(key, _)| key).max());
    assert_eq!(thread.join().unwrap(), Some(99));
}

#[test]
fn a_new_map_takes_the_place_of_the_old_one() {
    let current = RwLock::new(Arc::new(numbers()));
    let old = Arc::clone(&current.read().unwrap());
    *current.write().unwrap() = Arc::new(OrderedMap::new());
    assert_eq!((old.len(), current.read().unwrap().len()), (100, 0));
}

#[test]
fn a_panicking_closure_leaves_the_map_usable() {
    let map = numbers();
    let caught = catch_unwind(|| map.update(1, |_| panic!("on purpose")));
    assert!(caught.is_err());
    assert_eq!((map.insert(1, 7), map.get(&1)), (Some(0), Some(7)));
}

#[test]
fn a_panicking_thread_leaves_the_map_usable() {
    let map = Arc::new(numbers());
    let other = Arc::clone(&map);
    let thread = thread::spawn(move || other.get_with(&1, |_| panic!("on purpose")));
    assert!(thread.join().is_err());
    assert_eq!(map.len(), 100);
}

#[test]
fn maps_and_iterators_are_send_and_sync() {
    fn shared<T: Send + Sync>(_: &T) -> bool {
        true
    }
    let map = numbers();
    assert!(shared(&map) && shared(&map.iter()) && shared(&map.keys()));
    assert!(shared(&map.drain(..0)) && shared(&map.into_iter()));
}
