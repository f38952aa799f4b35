//! The engines and the container of this crate while threads read, write and scan them: the two
//! stress tests of `tremula-index`, whose `stress.rs` says what would make them fail.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/stress.rs"]
mod rows;
mod support;

use rows::{engine, ordered_engine, registered};
use support::{bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless, restless_bw};
use tremula_index::key::NoHead;
use tremula_index::{CaTree, Locked};
use tremula_papers::*;

tremula_papers::paper_engines!(each registered);

engine!(
    restless_ca_tree_on_avl,
    CaTree::<_, _, NoHead, Avl<_, _>>::with_config(restless())
);
engine!(locked_on_avl, Locked::<_, _, NoHead, Avl<_, _>>::default());
engine!(
    bw_tree_of_small_nodes,
    BwTree::<_, _>::with_config(restless_bw())
);
engine!(
    bw_tree_without_heads,
    BwTree::<_, _, NoHead>::with_config(restless_bw())
);
engine!(
    bw_tree_with_deltas,
    BwTree::<_, _, NoHead>::with_config(bw_with_deltas())
);
engine!(
    bw_tree_with_merge_deltas,
    BwTree::<_, _>::with_config(bw_with_merge_deltas())
);
engine!(
    bw_tree_of_spread_leaves,
    BwTree::<_, _>::with_config(bw_of_spread_leaves())
);

// Not `engine!`, because its scans are not of one moment.
ordered_engine!(skip_list_without_heads, SkipList::<_, _, NoHead>::new());
