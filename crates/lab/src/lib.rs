#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod best;
pub mod cli;
pub mod contestants;
mod error;
pub mod experiments;
mod gauge;
pub mod histories;
pub mod keys;
mod live;
pub mod measure;
pub mod memory;
pub mod record;
pub mod report;
#[cfg(feature = "rivals")]
mod rivals;
mod rounds;
mod settings;
mod top;
pub mod workload;

pub use error::LabError;
pub use rounds::{Watch, run};
pub use settings::Settings;
