//! Memory stays flat while entries come and go: each engine in the suite `suites/churn.rs`.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

#[path = "suites/churn.rs"]
mod suite;
mod support;

use suite::engine;
use tremula_index::{Art, CaTree, LfcaTree, Locked, Masstree, OlcBTree};

engine!(ca_tree, CaTree::<_, _>::new());
engine!(
    restless_ca_tree,
    CaTree::<_, _>::with_config(support::restless())
);
engine!(lfca_tree, LfcaTree::<_, _>::new());
engine!(
    restless_lfca_tree,
    LfcaTree::<_, _>::with_config(support::restless_lfca())
);
engine!(locked, Locked::<_, _>::new());
engine!(b_tree, OlcBTree::<_, _>::new());
engine!(radix_tree, Art::<_, _>::new());
engine!(masstree, Masstree::<_, _>::new());
