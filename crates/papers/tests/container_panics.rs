//! The container of this crate under panics in user code: the suite of `tremula-index`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/container_panics.rs"]
mod suite;
mod support;

use suite::panics;
use tremula_papers::Avl;

#[test]
fn panics_leave_avl_as_it_was() {
    panics::<Avl<_, _>>();
}
