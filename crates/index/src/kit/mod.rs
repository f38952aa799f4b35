//! The parts that engines are made of, each defined once: for the engines of this crate and those
//! of other crates of this family.
//!
//! | part | file |
//! |---|---|
//! | [`Spec`]: what an engine is made of, in one type parameter | `spec` |
//! | [`SearchKey`], [`SearchRange`]: a key, or a range of keys, that is looked for | `search_key` |
//! | [`Position`]: where a search goes | `position` |
//! | [`NodeRef`]: a reference to a node | `node_ref` |
//! | [`StoredKey`], [`OwnedKey`]: a key as it is in a node | `stored_key` |
//! | [`Packed`], [`Slot`], [`OwnedValue`]: a value as it is in a node | `packed` |
//! | [`InPlace`], [`PackedValue`]: values that share one pointer, kept without a box | `in_place` |
//! | `Heads`, [`count_below`]: the heads of a node, and how they are searched | `heads` |
//! | `bytes`: the same for the bytes of a radix tree's node | `bytes` |
//! | `prefetch`, `apart`, `on_unwind` | `prefetch`, `apart`, `unwind` |
//! | `HugePage`: memory whose addresses are found fast | `huge_pages` |
//! | `Blocks`: regions of a map, in such memory, that are divided into blocks | `blocks` |
//!
//! Not a part of the public API: anything here may change in any version.

mod apart;
pub(crate) mod blocks;
pub(crate) mod bytes;
mod heads;
mod huge_pages;
mod in_place;
mod node_ref;
mod packed;
mod position;
mod prefetch;
mod search_key;
mod spec;
mod stored_key;
mod unwind;

pub use crate::contract::{Decide, Implementation};
pub use crate::delegate_to_target;
pub use crate::form::{Form, Sought};
pub use crate::key::head::{OwnPacking, head_is_key, head_of_form};
pub(crate) use apart::apart;
pub use heads::{GROUP, STRIDE, count_below};
pub(crate) use heads::{Heads, close, open};
pub(crate) use huge_pages::{HUGE_PAGE, HugePage};
pub use in_place::{InPlace, IsOneWord, OneWord, PackedValue, ValueSlot};
pub use node_ref::NodeRef;
pub use packed::{OwnedValue, Packed, Retire, Slot};
pub use position::Position;
pub use prefetch::{prefetch, prefetch_to_write};
pub use search_key::{SearchKey, SearchRange};
pub use spec::{Parameters, Spec, gives_no_key, key_of_head};
pub use stored_key::{OwnedKey, StoredKey, UNKNOWN_HEAD};
pub use unwind::on_unwind;

/// Whether a writer checks the invariants of what it has changed: in a debug build, but not under
/// the checker of a model, for which the checks would be further steps.
pub const CHANGES_ARE_CHECKED: bool = cfg!(all(debug_assertions, not(any(loom, shuttle))));
