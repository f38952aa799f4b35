//! std's own primitives, in every build.
//!
//! No checker sees accesses through these, so code uses them only where it must: threads with an
//! event loop of their own, and their thread-locals; and an `Arc` that std or a runtime requires by
//! type (in a `Waker`, as a method receiver, around a trait object or a slice), or that must have a
//! `Weak`, which loom lacks; and a `Mutex`
//! around what stands in for the world outside the program, such as a disk; a cell that is filled
//! once; and what threads that read a disk pass to each other before anything is shared. All other
//! code takes its primitives from the root of this crate.

/// In a simulation all threads run on one thread of the system, so these are a virtual thread's.
#[cfg(sim)]
pub use crate::sim::thread_local;
pub use std::sync::Arc;
pub use std::sync::Barrier;
pub use std::sync::Mutex;
pub use std::sync::OnceLock;
pub use std::sync::Weak;
pub use std::sync::atomic;
pub use std::sync::mpsc;
pub use std::thread;
#[cfg(not(sim))]
pub use std::thread_local;
