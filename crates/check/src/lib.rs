#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod campaign;
mod explain;
mod history;
pub mod map;
pub mod record;
mod search;
mod specification;

pub use campaign::{Campaign, Caught, Fault, Tally};
pub use explain::{explain, shorten};
pub use history::{Event, History, Malformed, Returned};
pub use search::{DEFAULT_BUDGET, HistoryOf, Linearization, Stuck, Verdict, search};
pub use specification::Specification;
