#![doc = include_str!("../README.md")]
pub use parking_lot::RwLock;
