//! Memory stays flat while entries come and go: the suite of `tremula-index` on these engines.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "../../index/tests/suites/churn.rs"]
mod suite;
mod support;

use suite::{engine, registered};
use tremula_papers::*;

tremula_papers::paper_engines!(each registered);

engine!(
    bw_tree_of_small_nodes,
    BwTree::<_, _>::with_config(support::restless_bw())
);
engine!(
    bw_tree_with_deltas,
    BwTree::<_, _>::with_config(support::bw_with_deltas())
);
