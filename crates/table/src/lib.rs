#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod term;

pub use term::Term;
