#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod cache;
pub mod delegation;
mod shards;
pub mod topology;

pub use shards::{
    Access, AsyncCall, Balance, Call, CallError, Change, Config, Form, MoveError, Operation, Read,
    SendError, Shape, Shards, StartError, StateLost, Strategy, UnknownStrategy,
};

/// What another crate needs to implement a form of shards. Not a part of the public API.
#[doc(hidden)]
pub mod kit {
    pub use crate::shards::other::{
        Executor, MakeOwned, MakeShared, Members, OtherForm, Queued, block_on, join, message,
    };
}

/// Under ThreadSanitizer, leaks one reference to `shared`. ThreadSanitizer does not see the fence
/// by which the last owner of an `Arc` takes over, and would report the freeing as a race.
fn keep_under_tsan<T: ?Sized>(shared: &tremula_sync::system::Arc<T>) {
    if cfg!(tremula_tsan) {
        std::mem::forget(tremula_sync::system::Arc::clone(shared));
    }
}
