//! The functions that a thread is running, and what these have asked for that waits until they end.
//!
//! A function holds its shard's lock, or the state of its delegation lock. What it asks of other
//! shards must not be run on top of it by waiting for their locks: two threads that do so in
//! opposite directions wait for each other for ever, and a chain of functions, each of which sends
//! to the next shard, would be as deep on the stack as it is long. So, while a function runs,
//!
//! - what it *sends* is never run on top of it: it is queued at the shard's delegation lock; where
//!   the shard has no queue (behind a readers-writer lock) it is [deferred](defer);
//! - what it *calls* may be run on top of it, but only if no lock of the same shards has to be
//!   waited for; else it is queued or deferred, too, and the function must not wait for it.
//!
//! ```text
//!  call(A, f)                    this thread
//!    lock A ------------------.
//!    f: send(B, g)             |  deferred: [ g on B ]
//!       send(C, h)             |  deferred: [ g on B | h on C ]
//!    unlock A ----------------'
//!    lock B, g: send(A, ..), unlock B     deferred: [ h on C | .. on A ]
//!    ..                        one after another, until nothing is left
//!  the call returns
//! ```
//!
//! Invariants:
//!
//! 1. A thread runs what it has deferred only while it runs no function, in the order in which it was
//!    asked for, and before it does anything else.
//! 2. While something is deferred for a shard, what the same thread asks of that shard is deferred
//!    behind it. So the order of a caller holds.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tremula_sync::system::atomic::{AtomicU32, Ordering};

/// A shard of some shards of the process: their identity in the upper half, its number in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    /// No shard: identities begin at 1.
    const NONE: Self = Self(0);

    #[inline]
    pub(super) const fn new(identity: u32, shard: usize) -> Self {
        Self((identity as u64) << 32 | shard as u32 as u64)
    }

    #[inline]
    pub(super) const fn shard(self) -> usize {
        self.0 as u32 as usize
    }

    const fn is_none(self) -> bool {
        self.0 == 0
    }

    const fn is_beside(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// A number that no other shards of the process have, as long as it starts fewer than four billion.
pub(super) fn next_identity() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A request that waits until no function runs.
struct Deferred {
    of: Tag,
    run: Box<dyn FnOnce()>,
}

/// What there is to do when the outermost function ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Something,
    /// Something may be, and the thread is at it.
    BeingRun,
}

tremula_sync::thread_local! {
    /// The shard of the innermost function. Read on every request, and so without a destructor.
    static INNERMOST: Cell<Tag> = const { Cell::new(Tag::NONE) };
    /// Those of the functions around it.
    static OUTER: RefCell<Vec<Tag>> = const { RefCell::new(Vec::new()) };
    static WAITING: Cell<Waiting> = const { Cell::new(Waiting::Nothing) };
    static DEFERRED: RefCell<VecDeque<Deferred>> = const { RefCell::new(VecDeque::new()) };
}

/// While it lives, this thread runs a function on a shard. The last one that a thread drops runs what
/// was deferred: no lock must be held then.
pub(super) struct Running(Tag);

impl Running {
    #[inline]
    pub(super) fn on(shard: Tag) -> Self {
        let outer = INNERMOST.with(|innermost| innermost.replace(shard));
        if !outer.is_none() {
            enter(outer);
        }
        Self(outer)
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(self.0));
        if !self.0.is_none() {
            leave();
        } else if WAITING.with(|waiting| waiting.get()) == Waiting::Something {
            run_deferred();
        }
    }
}

/// As [`Running`], for a thread that [runs](is_running) no function: what most requests find.
pub(super) struct Outermost;

impl Outermost {
    #[inline]
    pub(super) fn on(shard: Tag) -> Self {
        debug_assert!(!is_running());
        INNERMOST.with(|innermost| innermost.set(shard));
        Self
    }
}

impl Drop for Outermost {
    #[inline]
    fn drop(&mut self) {
        INNERMOST.with(|innermost| innermost.set(Tag::NONE));
        if WAITING.with(|waiting| waiting.get()) == Waiting::Something {
            run_deferred();
        }
    }
}

#[cold]
fn enter(outer: Tag) {
    // A thread that is being torn down knows its innermost function only.
    let _ = OUTER.try_with(|all| all.borrow_mut().push(outer));
}

#[cold]
fn leave() {
    let _ = OUTER.try_with(|all| all.borrow_mut().pop());
}

/// Whether this thread runs a function, on any shards.
#[inline]
pub(super) fn is_running() -> bool {
    INNERMOST.with(|innermost| !innermost.get().is_none())
}

/// Whether this thread runs a function on a shard that `fits`.
fn runs(fits: impl Fn(Tag) -> bool) -> bool {
    let innermost = INNERMOST.with(|innermost| innermost.get());
    let outer = || OUTER.try_with(|all| all.borrow().iter().any(|tag| fits(*tag)));
    !innermost.is_none() && (fits(innermost) || outer().unwrap_or(false))
}

/// Whether this thread runs a function on this very shard.
#[inline]
pub(super) fn runs_on(shard: Tag) -> bool {
    is_running() && runs(|other| other == shard)
}

/// Whether this thread runs a function on this shard or another one of the same shards.
#[inline]
pub(super) fn runs_beside(shard: Tag) -> bool {
    is_running() && runs(|other| other.is_beside(shard))
}

/// Whether this thread has deferred something for this shard.
pub(super) fn has_deferred(shard: Tag) -> bool {
    if WAITING.with(|waiting| waiting.get()) == Waiting::Nothing {
        return false;
    }
    let any = DEFERRED.try_with(|all| all.borrow().iter().any(|deferred| deferred.of == shard));
    any.unwrap_or(false)
}

/// Runs something for this shard when this thread runs no function any more. It must contain its own
/// panics. On a thread that is being torn down it is run at once.
pub(super) fn defer(shard: Tag, run: Box<dyn FnOnce()>) {
    let mut deferred = Some(Deferred { of: shard, run });
    let _ = DEFERRED.try_with(|all| all.borrow_mut().extend(deferred.take()));
    if let Some(deferred) = deferred {
        (deferred.run)();
        return;
    }
    WAITING.with(|waiting| {
        if waiting.get() == Waiting::Nothing {
            waiting.set(Waiting::Something);
        }
    });
}

/// Runs all that this thread has deferred, and what that defers.
#[cold]
fn run_deferred() {
    WAITING.with(|waiting| waiting.set(Waiting::BeingRun));
    while let Some(next) = take_first(|_| true) {
        (next.run)();
    }
    WAITING.with(|waiting| waiting.set(Waiting::Nothing));
}

/// Runs what this thread has deferred for this shard, in the midst of a function on other shards.
#[cold]
pub(super) fn run_deferred_of(shard: Tag) {
    while let Some(next) = take_first(|deferred| deferred.of == shard) {
        (next.run)();
    }
}

fn take_first(fits: impl Fn(&Deferred) -> bool) -> Option<Deferred> {
    let take = |all: &RefCell<VecDeque<Deferred>>| {
        let mut all = all.borrow_mut();
        let place = all.iter().position(fits)?;
        all.remove(place)
    };
    DEFERRED.try_with(take).ok().flatten()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn what_is_deferred_is_run_in_order_when_the_outermost_function_ends() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let note = |number: u32| {
            let log = Rc::clone(&log);
            Box::new(move || log.borrow_mut().push(number))
        };
        let (one, two) = (Tag::new(1, 0), Tag::new(2, 7));
        let outer = Running::on(one);
        assert!(runs_on(one) && runs_beside(Tag::new(1, 5)) && !runs_on(two));
        defer(two, note(1));
        let inner = Running::on(two);
        assert!(runs_on(one) && runs_on(two) && has_deferred(two) && !has_deferred(one));
        defer(one, note(2));
        drop(inner);
        assert!(!runs_beside(two) && log.borrow().is_empty());
        run_deferred_of(one);
        assert_eq!(*log.borrow(), [2]);
        defer(one, note(3));
        drop(outer);
        assert_eq!(*log.borrow(), [2, 1, 3]);
        assert!(!is_running() && !has_deferred(one) && !has_deferred(two));
    }

    /// Would overflow the stack if each were run on top of the one that deferred it.
    #[test]
    fn a_chain_of_deferred_requests_takes_no_stack() {
        fn hop(left: u32) {
            let _running = Running::on(Tag::new(1, left as usize));
            if left > 0 {
                defer(Tag::new(1, 0), Box::new(move || hop(left - 1)));
            }
        }
        let small = std::thread::Builder::new().stack_size(64 * 1024);
        small.spawn(|| hop(100_000)).unwrap().join().unwrap();
    }
}
