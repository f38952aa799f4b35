//! Reclamation by epochs, with a collector for each structure: what a structure has unlinked is
//! freed once every thread that was inside it at that moment has left.
//!
//! # The picture
//!
//! ```text
//!  thread records (global)          a collector (one in each structure)
//!  +----------------------+         +-------------------------------------+
//!  | pins: [A@7, B@3, -, -]|         | name A    epoch 7                   |
//!  +----------------------+         | limbo: retired@5 retired@6 retired@7|
//!  | pins: [-, -, -, -]    |         +-------------------------------------+
//!  +----------------------+
//! ```
//!
//! A thread that enters a structure writes the collector's name and epoch into its own record: it
//! is *pinned*. A thread that unlinks a node or a value *retires* it: the work of freeing it goes
//! into the collector's limbo, with the current epoch. The epoch advances by one when every thread
//! pinned on this collector has seen the current one. What was retired in epoch `e` is freed when
//! the epoch is `e + 2` or later.
//!
//! # Invariants
//!
//! 1. While a thread is pinned, the epoch advances at most once beyond the one that the thread had
//!    to see to be pinned (`epochs.rs` has the argument). So nothing that the thread can reach is
//!    freed.
//! 2. A thread runs the work of others, and with it users' code (`Drop`), only when it gives up its
//!    pin, never in the middle of an operation on this structure; but outer operations may be under
//!    way around the one that ends. A panic in such work is caught, the rest of the work is done,
//!    and then the first panic goes on.
//! 3. Garbage belongs to the collector, not to the thread that retired it: any thread that uses the
//!    structure frees it. Each thread tries on average once in [`OPERATIONS_A_TURN`] operations,
//!    and whenever it has retired [`RETIRED_A_TURN`] things. Dropping the collector frees all the
//!    rest.
//! 4. Pins on one collector hold back no other collector. (The fourth and further pins that one
//!    thread nests hold back all collectors while they last.)
//!
//! Sources: Fraser, "Practical lock-freedom" (2004), section 5.2.3, for epochs; crossbeam-epoch for
//! the way in which a fence orders pins before what they protect.

#[cfg(not(any(loom, shuttle)))]
mod collector;
#[cfg(not(any(loom, shuttle)))]
pub use collector::{Collector, Guard, turn_next};

/// A guard of a collector that lives on.
#[cfg(sim)]
pub type CollectedGuard = Guard<'static>;

#[cfg(any(loom, shuttle))]
mod stand_in;
#[cfg(any(loom, shuttle))]
pub use stand_in::{Collector, Guard, turn_next};

// A model drives the algorithm itself, with threads and records of its own.
#[cfg(loom)]
#[doc(hidden)]
pub mod epochs;
#[cfg(not(any(loom, shuttle)))]
mod epochs;
#[cfg(not(shuttle))]
mod limbo;
mod parts;
#[cfg(not(shuttle))]
mod work;

/// On average, a thread tries to free what is in limbo once in this number of its operations.
pub const OPERATIONS_A_TURN: u32 = 128;

/// A thread tries to free what is in limbo each time it has retired this many things. Some things
/// that are retired together count as one ([`Guard::defer_each`]).
pub const RETIRED_A_TURN: u32 = 64;
