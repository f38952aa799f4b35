#![doc = include_str!("../README.md")]

#[cfg(feature = "article")]
pub mod article;
mod avl;
pub mod bw_tree;
mod engine;
#[cfg(doctest)]
mod invariance;
pub mod series;
pub mod skip_list;
pub mod two_lock_queue;

pub use avl::Avl;
pub use bw_tree::{BwMultiMap, BwTree};
pub use engine::{AnyEngine, PaperEngine};
pub use skip_list::{BackgroundSkipList, SkipList};
