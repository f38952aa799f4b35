//! What the tests of containers and engines share: keys and values to test with, random
//! operations, values that count their drops, and user code that panics on demand.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod counted;
pub(crate) mod fuse;
pub(crate) mod moments;
pub(crate) mod operations;
pub(crate) mod self_validating;
pub(crate) mod suite;
pub(crate) mod values;
