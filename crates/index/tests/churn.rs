//! Memory stays flat while entries come and go: each engine in the suite `suites/churn.rs`.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "suites/churn.rs"]
mod suite;
mod support;

use suite::{engine, registered};
use tremula_index::key::ByteHead;
use tremula_index::*;

tremula_index::index_engines!(each registered);

engine!(
    restless_ca_tree,
    CaTree::<_, _>::with_config(support::restless())
);
engine!(
    restless_lfca_tree,
    LfcaTree::<_, _>::with_config(support::restless_lfca())
);
engine!(aspen_of_small_leaves, Aspen::<_, _, ByteHead, 1>::default());
