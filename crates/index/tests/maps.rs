//! The methods of `OrderedMap` and `OrderedSet`, on each engine of this crate: the suite
//! `suites/maps.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/maps.rs"]
mod suite;
mod support;

use suite::every_test;
use tremula_index::Engine as Tested;

every_test!();
