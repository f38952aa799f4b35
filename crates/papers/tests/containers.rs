//! The container of this crate in the suite of `tremula-index`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/containers.rs"]
mod suite;
mod support;

use suite::container;
use tremula_papers::Avl;

container!(avl, Avl);
