//! Closures that call the index that is calling them: the suite of `tremula-index` on the engines
//! and the container of this crate.
#![cfg(all(debug_assertions, not(any(loom, shuttle))))]

#[path = "../../index/tests/suites/closures_that_call.rs"]
mod suite;

use suite::{check, panics_with_a_sentence};
use tremula_index::key::NoHead;
use tremula_index::{CaTree, Locked, OrderedMap, Update};
use tremula_papers::{Avl, PaperEngine, SkipList};

#[test]
fn a_closure_that_calls_its_own_index_panics_with_a_sentence_on_every_engine() {
    for engine in PaperEngine::ALL {
        check(engine.name(), &engine.create::<u64, u64>());
        check(engine.name(), &*engine.create::<u64, u64>());
    }
    check(
        "ca_tree on avl",
        &CaTree::<u64, u64, NoHead, Avl<u64, u64>>::default(),
    );
    check(
        "locked on avl",
        &Locked::<u64, u64, NoHead, Avl<u64, u64>>::default(),
    );
    check("skip_list", &SkipList::<u64, u64, NoHead>::new());
}

#[test]
fn a_closure_that_calls_its_own_map_panics_with_a_sentence() {
    for engine in PaperEngine::ALL {
        let map = OrderedMap::with_engine(engine);
        map.insert(1, 1);
        panics_with_a_sentence(engine.name(), || {
            map.update(1, |_| Update::Put(map.get(&1).unwrap_or(0)));
        });
        assert_eq!(map.iter().collect::<Vec<_>>(), [(1, 1)], "{engine}");
    }
}
