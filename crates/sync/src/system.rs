//! std's own primitives, in every build: for what no model runs.
//!
//! No checker sees what goes through these, so code takes them only where it must: threads with an event loop of their own, an
//! `Arc` that std or a runtime asks for by name (in a `Waker`, as the receiver of a method, around a trait object or a slice),
//! and variables of such threads. Everything else takes its primitives from the root of this crate.

pub use std::sync::Arc;
pub use std::sync::atomic;
pub use std::thread;
pub use std::thread_local;
