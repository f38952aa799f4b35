#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod best;
pub mod case;
pub mod claims;
pub mod cli;
pub mod compare;
pub mod contestants;
mod defaults;
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
mod part;
pub mod plan;
pub mod random;
pub mod record;
pub mod report;
pub mod results;
#[cfg(feature = "rivals")]
mod rivals;
mod rounds;
mod settings;
pub mod simulate;
pub mod statistics;
mod suite;
mod top;
pub mod workload;

pub use error::LabError;
pub use plan::Plan;
pub use rounds::{Watch, run};
pub use settings::Settings;
