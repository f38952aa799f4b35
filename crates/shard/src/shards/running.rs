//! The functions that a thread is running, and their requests that wait until they end.
//!
//! A function holds its shard's lock, or the state of its delegation lock. It must not run requests
//! to other shards on top of itself by waiting for their locks. Two threads that do so in opposite
//! directions would wait for each other for ever, and a chain of functions, each of which sends to
//! the next shard, would use stack in proportion to its length. So, while a function runs,
//!
//! - what it *sends* never runs on top of it. It is queued at the shard's delegation lock, or, if
//!   the shard is behind a readers-writer lock and has no queue, it is [deferred](defer);
//! - what it *calls* may run on top of it, but only if the thread does not have to wait for a lock
//!   of the same shards. Otherwise it is queued or deferred, and the function must not wait for it.
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
//! 1. A thread runs its deferred requests only while it runs no function, in the order in which
//!    they were made, and before it does anything else.
//! 2. While a request to a shard is deferred, the same thread's further requests to that shard are
//!    deferred behind it. So each caller's requests keep their order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tremula_sync::system::atomic::{AtomicU32, Ordering};

/// A shard within the process: its `Shards`' identity in the upper half, its number in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag(u64);

impl Tag {
    /// Not a shard: identities begin at 1.
    const NONE: Self = Self(0);

    /// Marks an asynchronous function. Not a part of the shard's number, which is smaller.
    const ASYNCHRONOUS: u64 = 1 << 31;

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

    /// The tag of an asynchronous function on this shard, which returns to its executor to wait.
    const fn asynchronous(self) -> Self {
        Self(self.0 | Self::ASYNCHRONOUS)
    }

    const fn is_asynchronous(self) -> bool {
        self.0 & Self::ASYNCHRONOUS != 0
    }

    const fn is_same_shard(self, other: Self) -> bool {
        (self.0 ^ other.0) & !Self::ASYNCHRONOUS == 0
    }

    const fn is_beside(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// An identity that no other `Shards` of the process has, if it starts fewer than four billion.
pub(super) fn next_identity() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A request that waits until no function runs.
struct Deferred {
    of: Tag,
    run: Box<dyn FnOnce()>,
}

/// Whether requests are left to run when the outermost function ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Something,
    /// There may be some, and the thread is running them.
    BeingRun,
}

tremula_sync::thread_local! {
    /// The shard of the innermost function. Every request reads it, so it has no destructor.
    static INNERMOST: Cell<Tag> = const { Cell::new(Tag::NONE) };
    /// The shards of the functions around it.
    static OUTER: RefCell<Vec<Tag>> = const { RefCell::new(Vec::new()) };
    static WAITING: Cell<Waiting> = const { Cell::new(Waiting::Nothing) };
    static DEFERRED: RefCell<VecDeque<Deferred>> = const { RefCell::new(VecDeque::new()) };
}

/// While it lives, this thread runs a function on a shard. Dropping the thread's last one runs the
/// deferred requests, so the thread must hold no lock then.
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

    /// Like [`on`](Self::on), for a turn of an asynchronous function.
    pub(super) fn asynchronous(shard: Tag) -> Self {
        Self::on(shard.asynchronous())
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

/// Like [`Running`], but for a thread that [runs](is_running) no function, the usual case.
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
    // A thread that is being torn down knows only its innermost function.
    let _ = OUTER.try_with(|all| all.borrow_mut().push(outer));
}

#[cold]
fn leave() {
    let _ = OUTER.try_with(|all| all.borrow_mut().pop());
}

/// Whether this thread runs a function on any shard of any `Shards`.
#[inline]
pub(super) fn is_running() -> bool {
    INNERMOST.with(|innermost| !innermost.get().is_none())
}

/// Whether this thread runs a function on a shard that satisfies `fits`.
fn runs(fits: impl Fn(Tag) -> bool) -> bool {
    let innermost = INNERMOST.with(|innermost| innermost.get());
    let outer = || OUTER.try_with(|all| all.borrow().iter().any(|tag| fits(*tag)));
    !innermost.is_none() && (fits(innermost) || outer().unwrap_or(false))
}

/// Whether this thread runs a function on this shard.
#[inline]
pub(super) fn runs_on(shard: Tag) -> bool {
    is_running() && runs(|other| other.is_same_shard(shard))
}

/// Whether this thread runs a function on any shard of the same `Shards`.
#[inline]
pub(super) fn runs_beside(shard: Tag) -> bool {
    is_running() && runs(|other| other.is_beside(shard))
}

/// Whether the thread would block if it waited for a call on this shard, and so the call might wait
/// for ever. An asynchronous function blocks no thread, but a call on its own shard runs only after
/// it.
#[inline]
pub(super) fn must_not_await(shard: Tag) -> bool {
    let innermost = INNERMOST.with(|innermost| innermost.get());
    runs_beside(shard) && (!innermost.is_asynchronous() || runs_on(shard))
}

/// Whether this thread has deferred a request to this shard.
pub(super) fn has_deferred(shard: Tag) -> bool {
    if WAITING.with(|waiting| waiting.get()) == Waiting::Nothing {
        return false;
    }
    let any = DEFERRED.try_with(|all| all.borrow().iter().any(|deferred| deferred.of == shard));
    any.unwrap_or(false)
}

/// Runs `run`, a request to this shard, when this thread runs no function any more. `run` must
/// catch its own panics. A thread that is being torn down runs it at once.
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

/// Runs all deferred requests of this thread, and those that they defer.
#[cold]
fn run_deferred() {
    WAITING.with(|waiting| waiting.set(Waiting::BeingRun));
    while let Some(next) = take_first(|_| true) {
        (next.run)();
    }
    WAITING.with(|waiting| waiting.set(Waiting::Nothing));
}

/// Runs this thread's deferred requests to this shard, within a function on other shards.
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

    /// Would overflow the stack if each request ran on top of the one that deferred it.
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
