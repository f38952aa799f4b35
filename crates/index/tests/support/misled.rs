//! Operations that lying keys may mislead into a panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The text of a panic, if it has one.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
}

/// The text of a panic by which an engine says that one of its invariants is broken. Invariants of
/// state hold whatever keys do, so no test may pass over it.
pub(crate) fn broken_invariant(panic: &(dyn Any + Send)) -> Option<&str> {
    text_of(panic).filter(|text| text.starts_with("invariant "))
}

/// Runs `work`, and returns `None` if it panicked. A panic because of a broken invariant goes on.
pub(crate) fn unless_misled<R>(work: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Some(result),
        Err(panic) => {
            if let Some(text) = broken_invariant(&*panic) {
                eprintln!("{text}");
                resume_unwind(panic);
            }
            None
        }
    }
}
