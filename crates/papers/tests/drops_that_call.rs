//! Keys and values whose `drop` calls the index that they were in: the suite of `tremula-index` on
//! the engines and the container of this crate.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/drops_that_call.rs"]
mod suite;
mod support;

use suite::{Key, Value, engine, registered};
use support::{restless, restless_bw};
use tremula_index::key::NoHead;
use tremula_index::{CaTree, Locked};
use tremula_papers::*;

tremula_papers::paper_engines!(each registered);

engine!(
    locked_on_avl,
    Locked::<Key, Value, NoHead, Avl<Key, Value>>::default()
);
engine!(
    ca_tree_on_avl,
    CaTree::<Key, Value, NoHead, Avl<Key, Value>>::with_config(restless())
);
engine!(
    bw_tree_of_small_nodes,
    BwTree::<Key, Value>::with_config(restless_bw())
);
engine!(
    skip_list_without_heads,
    SkipList::<Key, Value, NoHead>::new()
);
engine!(
    background_skip_list_without_heads,
    BackgroundSkipList::<Key, Value, NoHead>::new()
);
