//! What lookups allocate: nothing, by a borrowed form of the key either.
#![cfg(not(any(loom, shuttle)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tremula_index::{Engine, OrderedIndex, OrderedMap};

/// Counts the allocations of each thread.
struct Counting;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

// SAFETY: passes every request on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

fn look_up<E: OrderedIndex<String, u32>>(map: &OrderedMap<String, u32, E>) {
    for (key, value) in [
        ("aspen", Some(7)),
        ("quaking aspen", Some(8)),
        ("oak", None),
    ] {
        assert_eq!(map.get(key), value);
        assert_eq!(map.get_with(key, |value| *value), value);
        assert_eq!(map.contains_key(key), value.is_some());
        if let Some(value) = value {
            assert_eq!(map.get_or_insert_by(key, || 0), value);
        }
    }
}

fn check<E: OrderedIndex<String, u32>>(name: &str, map: &OrderedMap<String, u32, E>) {
    map.insert("aspen".to_owned(), 7);
    map.insert("quaking aspen".to_owned(), 8);
    // The first operations of a thread on a map may make its record there.
    look_up(map);
    // Any operation may end with a turn of the collector, which may free what another one retired.
    let rounds = (0..10).map(|_| allocations(|| (0..100).for_each(|_| look_up(map))));
    assert_eq!(rounds.min(), Some(0), "{name}");
}

#[test]
fn a_lookup_by_a_str_allocates_nothing() {
    assert_ne!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 0);
    for engine in Engine::ALL {
        check(&engine.to_string(), &OrderedMap::with_engine(engine));
    }
    check("the default", &OrderedMap::new());
}
