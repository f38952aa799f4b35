//! The iterator of `OrderedMap::range`, driven from both ends: each engine in the suite
//! `suites/both_ends.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/both_ends.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_index::Engine as Tested;

every_test!();
