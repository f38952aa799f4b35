//! Maps and sets in serde's formats, on each engine of this crate: the suite `suites/serde.rs` of
//! `tremula-index`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/serde.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_papers::PaperEngine as Tested;

every_test!();
