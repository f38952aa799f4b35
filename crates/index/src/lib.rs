#![doc = include_str!("../README.md")]

pub mod art;
pub mod aspen;
pub mod b_tree;
mod bulk;
mod byte_keyed;
pub mod ca_tree;
pub mod container;
mod contract;
mod engine;
mod form;
#[doc(hidden)]
pub mod hash_index;
#[cfg(doctest)]
mod invariance;
pub mod key;
#[doc(hidden)]
pub mod kit;
pub mod lfca_tree;
pub mod locked;
pub mod masstree;
mod of_built_in;
mod ordered_index;
pub mod ordered_map;
pub mod ordered_set;
mod reentry;
#[cfg(feature = "serde")]
mod serde;
mod set_operations;
mod snapshot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod snapshot_tests;
mod transactional;

pub use art::Art;
pub use aspen::Aspen;
pub use b_tree::OlcBTree;
pub use bulk::NotSorted;
pub use ca_tree::CaTree;
pub use contract::{Direction, FIRST_BATCH, KeyRange, LAST_BATCH, Shape, Storable, Update};
pub use engine::{Engine, Facts, Keys, RegisteredEngine, Scans, UnknownEngine, WithEngine};
pub use equivalent;
pub use form::KeyForm;
pub use key::ByteKey;
pub use lfca_tree::LfcaTree;
pub use locked::Locked;
pub use masstree::Masstree;
pub use ordered_index::OrderedIndex;
pub use ordered_map::{
    ArtMap, AspenMap, CaTreeMap, LfcaTreeMap, LockedMap, MasstreeMap, OlcBTreeMap, OrderedMap,
};
pub use ordered_set::OrderedSet;
pub use snapshot::{Snapshot, SnapshotCursor};
pub use transactional::{Adapted, Part, Transaction, Transactional, View};
#[cfg(feature = "derive")]
pub use tremula_derive::ByteKeyOfIndex as ByteKey;
