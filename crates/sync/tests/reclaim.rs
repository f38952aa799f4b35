//! Collectors: what is retired is freed soon, once, and never under a pin.
#![cfg(not(any(loom, shuttle)))]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use tremula_sync::atomic::AtomicPtr;
use tremula_sync::reclaim::{Collector, Guard};
use tremula_sync::thread;

/// Garbage that no thread is looking at is freed within this number of operations of any threads.
const PROMISE: usize = 4_096;

fn retire<T: Send + 'static>(guard: &Guard<'_>, garbage: T) {
    // SAFETY: no other thread has it.
    unsafe { guard.defer_unchecked(move || drop(garbage)) };
}

fn use_it(collector: &Collector, operations: usize) {
    for _ in 0..operations {
        drop(collector.pin());
    }
}

#[test]
fn dropping_the_collector_frees_everything() {
    let value = Arc::new(());
    let collector = Collector::new();
    let guard = collector.pin();
    for _ in 0..10 {
        retire(&guard, Arc::clone(&value));
    }
    drop(guard);
    drop(collector);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn what_a_thread_retired_is_freed_by_others_though_it_never_comes_back() {
    let value = Arc::new(());
    let collector = Arc::new(Collector::new());
    // Gets past the turn of a thread's first operation, in both threads.
    use_it(&collector, 1);
    let (done, wait) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let retiring = thread::spawn({
        let (value, collector) = (Arc::clone(&value), Arc::clone(&collector));
        move || {
            use_it(&collector, 1);
            retire(&collector.pin(), value);
            done.send(()).unwrap();
            // The thread lives on, and does nothing.
            ended.recv().unwrap();
        }
    });
    wait.recv().unwrap();
    use_it(&collector, PROMISE);
    assert_eq!(Arc::strong_count(&value), 1);
    end.send(()).unwrap();
    retiring.join().unwrap();
}

#[test]
fn each_of_two_collectors_used_in_turn_is_freed() {
    let value = Arc::new(());
    let collectors = [Collector::new(), Collector::new()];
    for collector in &collectors {
        use_it(collector, 3);
        retire(&collector.pin(), Arc::clone(&value));
    }
    for _ in 0..PROMISE {
        for collector in &collectors {
            use_it(collector, 1);
        }
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn threads_that_come_and_go_free_what_is_there() {
    let value = Arc::new(());
    let collector = Arc::new(Collector::new());
    retire(&collector.pin(), Arc::clone(&value));
    for _ in 0..4 {
        let collector = Arc::clone(&collector);
        thread::spawn(move || use_it(&collector, 1)).join().unwrap();
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_pin_keeps_what_was_retired_after_it_and_only_in_its_own_collector() {
    let [kept, freed] = [Arc::new(()), Arc::new(())];
    let (collector, other) = (Arc::new(Collector::new()), Collector::new());
    let (pinned, wait) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let reader = thread::spawn({
        let collector = Arc::clone(&collector);
        move || {
            let guard = collector.pin();
            pinned.send(()).unwrap();
            ended.recv().unwrap();
            drop(guard);
        }
    });
    wait.recv().unwrap();
    assert!(!collector.pin().is_alone());
    assert!(other.pin().is_alone());
    retire(&collector.pin(), Arc::clone(&kept));
    retire(&other.pin(), Arc::clone(&freed));
    for _ in 0..PROMISE {
        use_it(&collector, 1);
        use_it(&other, 1);
    }
    assert_eq!(Arc::strong_count(&freed), 1, "held back by another's pin");
    assert_eq!(Arc::strong_count(&kept), 2, "freed under a pin");
    end.send(()).unwrap();
    reader.join().unwrap();
    assert!(collector.pin().is_alone());
    use_it(&collector, PROMISE);
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn pins_of_one_thread_nest_to_any_depth_and_in_any_order() {
    let value = Arc::new(());
    let collectors: Vec<_> = (0..10).map(|_| Collector::new()).collect();
    let mut guards: Vec<_> = collectors.iter().map(Collector::pin).collect();
    guards.extend(collectors.iter().map(Collector::pin));
    for guard in &guards {
        assert!(!guard.is_alone());
        retire(guard, Arc::clone(&value));
    }
    for collector in &collectors {
        use_it(collector, PROMISE);
    }
    assert_eq!(Arc::strong_count(&value), 21);
    while !guards.is_empty() {
        let middle = guards.len() / 2;
        guards.remove(middle);
    }
    for collector in &collectors {
        assert!(collector.pin().is_alone());
        use_it(collector, PROMISE);
    }
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn much_that_one_thread_left_behind_is_freed_within_the_promise() {
    let value = Arc::new(());
    let collector = Arc::new(Collector::new());
    let held = collector.pin();
    thread::spawn({
        let (value, collector) = (Arc::clone(&value), Arc::clone(&collector));
        move || {
            let guard = collector.pin();
            for _ in 0..100_000 {
                retire(&guard, Arc::clone(&value));
            }
        }
    })
    .join()
    .unwrap();
    drop(held);
    use_it(&collector, PROMISE);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Panics when it is dropped.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("a bomb");
    }
}

#[test]
fn a_panic_in_what_is_freed_loses_nothing_else() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let collector = Collector::new();
    // Gets past the turn of a thread's first operation.
    use_it(&collector, 1);
    let guard = collector.pin();
    for _ in 0..5 {
        retire(&guard, Bomb(Arc::clone(&dropped)));
    }
    drop(guard);
    let panics = (0..PROMISE)
        .filter(|_| catch_unwind(AssertUnwindSafe(|| use_it(&collector, 1))).is_err())
        .count();
    assert_eq!(dropped.load(Ordering::Relaxed), 5);
    assert_eq!(panics, 1, "one panic for one turn");
    retire(&collector.pin(), Bomb(Arc::clone(&dropped)));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(collector))).is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 6);
}

#[test]
fn what_is_freed_may_use_the_collector() {
    /// Retires another link when it is dropped, down to depth 0.
    struct Chain(Arc<Collector>, usize, Arc<AtomicUsize>);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.2.fetch_add(1, Ordering::Relaxed);
            if self.1 > 0 {
                let next = Chain(Arc::clone(&self.0), self.1 - 1, Arc::clone(&self.2));
                retire(&self.0.pin(), next);
            }
        }
    }
    let collector = Arc::new(Collector::new());
    let dropped = Arc::new(AtomicUsize::new(0));
    let chain = Chain(Arc::clone(&collector), 99, Arc::clone(&dropped));
    retire(&collector.pin(), chain);
    use_it(&collector, 100 * PROMISE);
    assert_eq!(dropped.load(Ordering::Relaxed), 100);
}

#[test]
fn a_destructor_of_a_thread_local_may_use_a_collector() {
    struct Late(Arc<Collector>, Arc<()>);
    impl Drop for Late {
        fn drop(&mut self) {
            for _ in 0..200 {
                retire(&self.0.pin(), Arc::clone(&self.1));
            }
        }
    }
    thread_local! {
        static BEFORE: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
        static AFTER: std::cell::RefCell<Option<Late>> = const { std::cell::RefCell::new(None) };
    }
    let value = Arc::new(());
    let collector = Arc::new(Collector::new());
    for _ in 0..10 {
        let (value, collector) = (Arc::clone(&value), Arc::clone(&collector));
        thread::spawn(move || {
            BEFORE.set(Some(Late(Arc::clone(&collector), Arc::clone(&value))));
            use_it(&collector, 1);
            AFTER.set(Some(Late(collector, value)));
        })
        .join()
        .unwrap();
    }
    use_it(&collector, PROMISE);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// What the readers of the stress test below look at: a number that is overwritten on drop.
struct Canary(u64);

const ALIVE: u64 = 0xA11F_E000;

impl Drop for Canary {
    fn drop(&mut self) {
        self.0 = 0;
    }
}

/// A canary that is not linked any more.
struct Unlinked(*mut Canary);

impl Unlinked {
    /// # Safety
    ///
    /// No thread can reach the canary.
    unsafe fn free(self) {
        // SAFETY: passed on to the caller.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Writers exchange a box and retire the old one, or free it themselves if they are alone; readers
/// look into it. If a box is freed too early, a reader sees a number that is not alive, or a
/// sanitizer reports it. If it is freed twice, the allocator or a sanitizer reports it.
#[test]
fn nothing_is_freed_under_a_reader() {
    let rounds = if cfg!(tremula_tsan) { 5_000 } else { 50_000 };
    let collector = Arc::new(Collector::new());
    let link = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Canary(ALIVE)))));
    let end = Arc::new(AtomicBool::new(false));
    let taken = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (collector, link, end) = (collector.clone(), link.clone(), end.clone());
            thread::spawn(move || {
                while !end.load(Ordering::Relaxed) {
                    let guard = collector.pin();
                    // SAFETY: the box in the link is freed only after this guard is gone.
                    let seen = unsafe { &*link.load(Ordering::Acquire) };
                    assert_eq!(seen.0, ALIVE);
                    if seen.0 & 1 == 0 {
                        thread::yield_now();
                    }
                    assert_eq!(seen.0, ALIVE);
                    drop(guard);
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..2)
        .map(|_| {
            let (collector, link, taken) = (collector.clone(), link.clone(), taken.clone());
            thread::spawn(move || {
                for _ in 0..rounds {
                    let new = Box::into_raw(Box::new(Canary(ALIVE)));
                    let guard = collector.pin();
                    let old = link.swap(new, Ordering::AcqRel);
                    if guard.is_alone() {
                        taken.fetch_add(1, Ordering::Relaxed);
                        // SAFETY: no other thread can reach it.
                        drop(unsafe { Box::from_raw(old) });
                    } else {
                        let old = Unlinked(old);
                        // SAFETY: it has been unlinked.
                        unsafe {
                            guard.defer_unchecked(move || {
                                old.free();
                            });
                        };
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    end.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    // SAFETY: all threads have ended.
    drop(unsafe { Box::from_raw(link.load(Ordering::Acquire)) });
}
