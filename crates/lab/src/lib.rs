#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod best;
pub mod claims;
pub mod cli;
pub mod compare;
pub mod contestants;
mod error;
mod estimate;
pub mod experiments;
mod gauge;
pub mod histories;
pub mod keys;
mod live;
pub mod measure;
pub mod memory;
pub mod page;
mod plan;
pub mod record;
pub mod report;
pub mod results;
#[cfg(feature = "rivals")]
mod rivals;
mod rounds;
mod settings;
pub mod statistics;
mod top;
pub mod workload;

pub use error::LabError;
pub use rounds::{Watch, run};
pub use settings::Settings;
