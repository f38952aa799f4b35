//! The methods of `OrderedMap` and `OrderedSet`, on each engine of this crate: the suite
//! `suites/maps.rs` of `tremula-index`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/maps.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_papers::PaperEngine as Tested;

every_test!();
