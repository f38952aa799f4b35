//! Parts that engines are made of, for crates of this family that have engines of their own.
//!
//! Not a part of the public API: what is here may change in any version.

pub use crate::contract::Implementation;
pub use crate::delegate_to_target;
pub use crate::key::head::{OwnPacking, free_packed_key, head_is_key, pack_key, with_packed_key};
pub use crate::packed::{Packed, Retire, Slot};
pub use crate::prefetch::prefetch;
pub use crate::unwind::on_unwind;
