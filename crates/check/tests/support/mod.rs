//! What the tests of the checker share.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod broken;
pub(crate) mod brute_force;
