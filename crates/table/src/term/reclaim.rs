//! Dropping terms that are nested deeper than the stack is.

use super::Term;
use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};

/// Drops within drops that go on the stack; deeper ones wait until these are done. Small enough
/// for any stack, large enough that terms as they are in tables never wait.
const DEEPEST: u32 = 64;

tremula_sync::thread_local! {
    /// How many drops are running within each other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// What waits. Kept from being dropped itself, so that terms may be dropped while a thread
    /// ends; it is emptied, and its memory freed, by whoever filled it.
    static WAITING: RefCell<ManuallyDrop<Vec<Term>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Drops what a term holds. If that is too deep within other drops, it becomes a term again,
/// by `back`, and waits.
#[inline]
pub(super) fn release<T>(held: T, back: impl FnOnce(T) -> Term) {
    let depth = DEPTH.with(Cell::get);
    if depth < DEEPEST {
        DEPTH.with(|running| running.set(depth + 1));
        drop(held);
        DEPTH.with(|running| running.set(depth));
        if depth == 0 {
            drop_waiting();
        }
    } else {
        let term = back(held);
        WAITING.with(|waiting| waiting.borrow_mut().push(term));
    }
}

/// Drops what waits, which may make more wait.
#[inline]
fn drop_waiting() {
    while let Some(waiting) = WAITING.with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        (!waiting.is_empty()).then(|| mem::take(&mut **waiting))
    }) {
        // Each counts as outermost but one, so that it is this loop that drops what it makes wait.
        DEPTH.with(|running| running.set(1));
        drop(waiting);
        DEPTH.with(|running| running.set(0));
    }
}
