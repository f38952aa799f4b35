//! Recording what threads do to a map.
//!
//! # The clock
//!
//! A call is stamped before it begins and after it has ended, by adding one to a counter that all
//! threads share. So the time between the stamps contains the call, and a call that ended before
//! another began has the lower stamp: what the stamps keep apart was apart. A recorded history
//! therefore overlaps at least as much as what happened, and a right map is never blamed.
//!
//! The counter is added to with `AcqRel`, for two reasons. No part of a call may move out of its
//! stamps. And where the stamps say that one call ended before another began, the first must
//! *happen before* the second in the sense of the memory model, or the second would have every
//! right to miss it: the stamp that ends a call releases, the one that begins the other acquires,
//! and additions in between continue the release.
//!
//! What this hides: order that a map neglects to make between threads is made by the counter, at
//! the beginning and end of each call, though not within calls. Tests with the model checkers, and
//! stress tests that do not record, are for that. And an anomaly that is over before the stamp is
//! taken is not seen. All else that threads write while they record is their own.
//!
//! # Interleaving
//!
//! Calls take less time than starting a thread, and there may be few cores. So threads stay for
//! many rounds and start each together, spinning; scripts have pauses; and
//! [`Dawdler`]s give the processor away in the middle of calls.

mod clock;
mod dawdler;
mod indexed;
mod session;
mod subject;

pub use dawdler::Dawdler;
pub use indexed::Indexed;
pub use session::{Panicked, Pause, Recording, Script, Session, Step, record, record_sessions};
pub use subject::Subject;
