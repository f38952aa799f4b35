//! Keys whose order contradicts itself: the suite of `tremula-index` on the container of this
//! crate. The engines have suites of their own: `bw_tree_lies.rs` and `skip_list.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/lying_orders.rs"]
mod suite;
mod support;

use suite::{Liar, Value, engine};
use support::restless;
use tremula_index::key::NoHead;
use tremula_index::{CaTree, Locked};
use tremula_papers::Avl;

engine!(
    ca_tree_on_avl_comes_back,
    CaTree::<Liar, Value, NoHead, Avl<Liar, Value>>::with_config(restless())
);
engine!(
    locked_on_avl_comes_back,
    Locked::<Liar, Value, NoHead, Avl<Liar, Value>>::default()
);
