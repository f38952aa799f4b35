//! Closures that call the index that is calling them: each engine in the suite
//! `suites/closures_that_call.rs`.
#![cfg(all(debug_assertions, not(any(loom, shuttle))))]

#[path = "suites/closures_that_call.rs"]
mod suite;

use suite::{check, panics_with_a_sentence};
use tremula_index::key::NoHead;
use tremula_index::{Engine, LfcaTree, OlcBTree, OrderedMap, Update};

#[test]
fn a_closure_that_calls_its_own_index_panics_with_a_sentence_on_every_engine() {
    for engine in Engine::ALL {
        check(engine.name(), &engine.create::<u64, u64>());
        check(engine.name(), &*engine.create::<u64, u64>());
    }
    check("small b_tree", &OlcBTree::<u64, u64, NoHead, 0>::default());
    check("lfca_tree", &LfcaTree::<u64, u64, NoHead>::default());
}

#[test]
fn a_closure_that_calls_its_own_map_panics_with_a_sentence() {
    let map = OrderedMap::new();
    map.insert(1, 1);
    panics_with_a_sentence("get in update", || {
        map.update(1, |_| Update::Put(map.get(&1).unwrap_or(0)));
    });
    panics_with_a_sentence("insert in get_with", || {
        map.get_with(&1, |_| map.insert(2, 2));
    });
    panics_with_a_sentence("get in get_or_insert_with", || {
        map.get_or_insert_with(3, || map.get(&1).unwrap_or(0));
    });
    panics_with_a_sentence("range in get_with", || {
        map.get_with(&1, |_| map.range(..).count());
    });
    for engine in Engine::ALL {
        let map = OrderedMap::with_engine(engine);
        map.insert(1, 1);
        panics_with_a_sentence(engine.name(), || {
            map.update(1, |_| Update::Put(map.get(&1).unwrap_or(0)));
        });
        assert_eq!(map.iter().collect::<Vec<_>>(), [(1, 1)], "{engine}");
    }
}

/// A closure that another thread is running does not count.
#[test]
fn threads_do_not_see_the_closures_of_one_another() {
    let map = OrderedMap::with_engine(Engine::LfcaTree);
    map.insert(1, 1);
    map.get_with(&1, |_| {
        std::thread::scope(|scope| {
            let read = scope.spawn(|| map.get(&1));
            assert_eq!(read.join().ok(), Some(Some(1)));
        });
    });
}
