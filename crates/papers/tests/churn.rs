//! Memory stays flat while entries come and go: the suite of `tremula-index` on the engines of this crate.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "../../index/tests/suites/churn.rs"]
mod suite;
mod support;

use suite::engine;
use tremula_papers::{BackgroundSkipList, BwTree, SkipList};

engine!(skip_list, SkipList::<_, _>::new());
engine!(background_skip_list, BackgroundSkipList::<_, _>::new());
engine!(bw_tree, BwTree::<_, _>::new());
engine!(
    bw_tree_of_small_nodes,
    BwTree::<_, _>::with_config(support::restless_bw())
);
engine!(
    bw_tree_with_deltas,
    BwTree::<_, _>::with_config(support::bw_with_deltas())
);
