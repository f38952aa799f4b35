//! Lookups by borrowed forms of keys, on each engine of this crate: the suite `suites/forms.rs` of
//! `tremula-index`.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/forms.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_papers::PaperEngine as Tested;

every_test!();
