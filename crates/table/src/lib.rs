#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod match_spec;
pub mod term;

pub use match_spec::MatchSpec;
pub use term::Term;
