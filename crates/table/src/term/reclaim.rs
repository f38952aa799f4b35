//! Drops terms that are nested too deep for the stack.

use super::Term;
use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};

/// How many nested drops use the stack; terms at greater depth wait until these are done. The
/// number is small enough for any stack, and large enough that usual terms never wait.
const DEEPEST: u32 = 64;

tremula_sync::thread_local! {
    /// How many nested drops are running.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The terms that wait. It is never dropped itself, so that terms may be dropped while a thread
    /// ends. The thread that fills it empties it, and frees its memory.
    static WAITING: RefCell<ManuallyDrop<Vec<Term>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Drops what a term holds. At too great a depth, `back` makes a term of it again, which waits.
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

/// Drops the waiting terms, which may make more terms wait.
#[inline]
fn drop_waiting() {
    while let Some(waiting) = WAITING.with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        (!waiting.is_empty()).then(|| mem::take(&mut **waiting))
    }) {
        // A depth of 1 makes this loop, not an inner drop, drop the terms that wait meanwhile.
        DEPTH.with(|running| running.set(1));
        drop(waiting);
        DEPTH.with(|running| running.set(0));
    }
}
