//! The iterator of `OrderedMap::range`, driven from both ends: the suite of `tremula-index` on the
//! engines of this crate.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/both_ends.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_papers::PaperEngine as Tested;

every_test!();
