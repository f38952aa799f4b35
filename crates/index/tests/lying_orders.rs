//! Keys whose order contradicts itself: each engine in the suite `suites/lying_orders.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/lying_orders.rs"]
mod suite;
mod support;

use suite::{Liar, Value, engine};
use support::restless;
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::{CaTree, Locked, OlcBTree};

engine!(
    ca_tree_on_b_tree_comes_back,
    CaTree::<Liar, Value, NoHead, BTree<Liar, Value, NoHead, 4>>::with_config(restless())
);
engine!(
    ca_tree_on_b_tree_with_heads_comes_back,
    CaTree::<Liar, Value, ByteHead, BTree<Liar, Value, ByteHead, 4>>::with_config(restless())
);
engine!(
    locked_on_b_tree_comes_back,
    Locked::<Liar, Value, NoHead, BTree<Liar, Value, NoHead, 4>>::default()
);
engine!(
    locked_on_b_tree_with_heads_comes_back,
    Locked::<Liar, Value, ByteHead, BTree<Liar, Value, ByteHead, 4>>::default()
);
engine!(
    b_tree_comes_back,
    OlcBTree::<Liar, Value, ByteHead, 0>::default()
);
engine!(
    b_tree_without_heads_comes_back,
    OlcBTree::<Liar, Value, NoHead, 0>::default()
);
