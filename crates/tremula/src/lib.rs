#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use tremula_index as index;
pub use tremula_mailbox as mailbox;
#[cfg(feature = "papers")]
pub use tremula_papers as papers;
#[cfg(feature = "shard")]
pub use tremula_shard as shard;
pub use tremula_sync as sync;
#[cfg(feature = "table")]
pub use tremula_table as table;

pub use tremula_index::{
    Art, ByteKey, CaTree, Direction, Engine, Facts, KeyRange, LfcaTree, Locked, Masstree,
    NotSorted, OlcBTree, OrderedIndex, OrderedMap, OrderedSet, Shape, UnknownEngine, Update,
};
