#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(all(doctest, feature = "derive", feature = "shard", feature = "table"))]
mod refused;

pub use tremula_index as index;
pub use tremula_mailbox as mailbox;
#[cfg(feature = "observe")]
pub use tremula_observe as observe;
#[cfg(feature = "papers")]
pub use tremula_papers as papers;
#[cfg(feature = "shard")]
pub use tremula_shard as shard;
#[cfg(feature = "store")]
pub use tremula_store as store;
pub use tremula_sync as sync;
#[cfg(feature = "table")]
pub use tremula_table as table;

#[cfg(feature = "derive")]
pub use tremula_derive::ByteKey;
// From its module, which exports the trait without the macro of the same name.
pub use tremula_index::key::ByteKey;
pub use tremula_index::key::{TotalF32, TotalF64};
pub use tremula_index::{
    Art, ArtMap, Aspen, AspenMap, CaTree, CaTreeMap, Direction, Engine, Facts, KeyForm, KeyRange,
    LfcaTree, LfcaTreeMap, Locked, LockedMap, Masstree, MasstreeMap, NotSorted, OlcBTree,
    OlcBTreeMap, OrderedIndex, OrderedMap, OrderedSet, Shape, UnknownEngine, Update,
};
#[cfg(feature = "store")]
pub use tremula_store::local::{DurableMap, LocalStore as Store};
