#![doc = include_str!("../README.md")]

pub mod ca_tree;
pub mod container;
mod contract;
mod engine;
pub mod locked;
mod ordered_map;

pub use ca_tree::CaTree;
pub use contract::{Direction, FIRST_BATCH, KeyRange, LAST_BATCH, OrderedIndex, Shape, Update};
pub use engine::{Engine, UnknownEngine};
pub use locked::Locked;
pub use ordered_map::{OrderedMap, Range};
