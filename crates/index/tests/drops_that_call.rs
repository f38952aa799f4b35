//! Keys and values whose `drop` calls the index that they were in: each engine in the suite
//! `suites/drops_that_call.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/drops_that_call.rs"]
mod suite;
mod support;

use suite::{Key, Value, WholeHead, engine, registered};
use support::{restless, restless_lfca};
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::*;

tremula_index::index_engines!(each registered);

engine!(
    locked_on_b_tree_of_small_nodes,
    Locked::<Key, Value, NoHead, BTree<Key, Value, NoHead, 4>>::default()
);
engine!(
    locked_on_b_tree_with_heads,
    Locked::<Key, Value, ByteHead, BTree<Key, Value, ByteHead, 4>>::default()
);
engine!(
    restless_ca_tree,
    CaTree::<Key, Value>::with_config(restless())
);
engine!(
    ca_tree_on_b_tree_of_small_nodes,
    CaTree::<Key, Value, NoHead, BTree<Key, Value, NoHead, 4>>::with_config(restless())
);
engine!(
    ca_tree_on_b_tree_with_heads,
    CaTree::<Key, Value, ByteHead, BTree<Key, Value, ByteHead, 4>>::with_config(restless())
);
engine!(
    b_tree_of_small_nodes,
    OlcBTree::<Key, Value, ByteHead, 0>::default()
);
engine!(
    b_tree_without_heads,
    OlcBTree::<Key, Value, NoHead, 0>::default()
);
engine!(
    b_tree_with_whole_heads,
    OlcBTree::<Key, Value, WholeHead, 0>::default(),
    true
);
engine!(
    masstree_of_small_nodes,
    Masstree::<Key, Value, 3>::default()
);
engine!(
    restless_lfca_tree,
    LfcaTree::<Key, Value, NoHead>::with_config(restless_lfca())
);
