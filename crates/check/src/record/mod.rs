//! Recording what threads do to a map.
//!
//! # The clock
//!
//! A call is stamped before it begins and after it has ended, by adding one to a counter that all
//! threads share. So the call lies between its stamps, and a call that ended before another began
//! has the lower stamp: calls that the stamps separate did not overlap. A recorded history
//! therefore overlaps at least as much as the run did, and a correct map is never blamed.
//!
//! The counter is incremented with `AcqRel`, for two reasons. No part of a call may move out of its
//! stamps. And where the stamps say that one call ended before another began, the first must
//! *happen before* the second in the sense of the memory model, because otherwise the second may
//! miss it: the stamp that ends a call releases, the stamp that begins the other acquires, and the
//! additions in between continue the release sequence.
//!
//! This hides some faults. If a map neglects to order threads, the counter orders them at the
//! beginning and end of each call, though not within calls; models and stress tests, which do not
//! record, can show such faults. An anomaly that is over before the stamp is taken is not seen
//! either. While threads record, everything else that they write is their own.
//!
//! # Interleaving
//!
//! Calls take less time than starting a thread, and there may be few cores. So the threads stay for
//! many rounds and start each round together by spinning; scripts contain pauses; and [`Dawdler`]s
//! yield the processor in the middle of calls.

mod clock;
mod dawdler;
mod indexed;
mod session;
mod subject;

pub use dawdler::Dawdler;
pub use indexed::Indexed;
pub use session::{Panicked, Pause, Recording, Script, Session, Step, record, record_sessions};
pub use subject::Subject;
