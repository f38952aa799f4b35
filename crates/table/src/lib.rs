#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
pub mod match_spec;
#[cfg(feature = "serde")]
pub mod serde;
pub mod table;
pub mod term;

pub use match_spec::MatchSpec;
pub use table::{
    Access, Action, BadArgument, Chunk, Continuation, Due, ExtendedInfo, FileError, FileProblem,
    Heir, Info, InfoInSteps, KeyExpiry, Kind, Noting, Options, Outcome, Owner, Problem, Remains,
    TabfileInfo, Table, TableEngine, TablePart, Tables, Transfer, Traversal, WriteConcurrency,
};
pub use term::Term;
