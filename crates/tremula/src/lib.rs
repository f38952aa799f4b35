#![doc = include_str!("../../../README.md")]
#![forbid(unsafe_code)]

pub use tremula_index as index;
pub use tremula_index::{CaTree, Engine, KeyRange, Locked, OrderedIndex, OrderedMap, Update};
pub use tremula_lab as lab;
pub use tremula_server as server;
pub use tremula_sync as sync;
