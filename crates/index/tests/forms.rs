//! Lookups by borrowed forms of keys, on each engine of this crate: the suite `suites/forms.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/forms.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_index::Engine as Tested;

every_test!();
