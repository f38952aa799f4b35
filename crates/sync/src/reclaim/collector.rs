//! Collectors as structures use them: each thread finds its own record, and takes turns at freeing.

use super::epochs::{Epochs, Record, Registry};
use super::{OPERATIONS_A_TURN, RETIRED_A_TURN};
use crate::CachePadded;
use crate::atomic::{AtomicU64, Ordering};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;

/// The records of all threads of the process.
static REGISTRY: Registry<Own> = Registry::new();

#[cfg(not(sim))]
#[inline]
fn registry() -> &'static Registry<Own> {
    &REGISTRY
}

/// In a simulation, the records of all threads of the run.
#[cfg(sim)]
fn registry() -> &'static Registry<Own> {
    crate::sim::of_the_run(Registry::new).unwrap_or(&REGISTRY)
}

#[cfg(sim)]
impl crate::sim::OfTheRun for Registry<Own> {
    fn is_in_use(&self) -> bool {
        Self::is_in_use(self)
    }
}

#[cfg(sim)]
impl crate::sim::OfTheRun for Collector {
    fn is_in_use(&self) -> bool {
        // Its guards have records of the registry.
        false
    }
}

/// The name of the next collector.
static NAMES: AtomicU64 = AtomicU64::new(1);

/// After each advance a turn frees at most this number of things, or one part in [`PART_A_TURN`] of
/// the garbage, whichever is more. So a turn is no long pause, and yet other threads soon free what
/// one thread has left behind.
const LEAST_A_TURN: usize = 8 * RETIRED_A_TURN as usize;
const PART_A_TURN: usize = 4;

/// How often one turn tries to advance the epoch: fresh garbage needs two advances.
const ADVANCES_A_TURN: usize = 2;

/// Keeps what one structure has unlinked until no thread can be looking at it.
///
/// A structure owns its collector. Dropping the collector frees everything that was retired, so
/// retired things must not refer to anything that the structure drops earlier. Making a collector
/// allocates nothing; later it takes memory for its limbo: one queue for each thread that has
/// retired something, at most thirty-two.
///
/// ```
/// use tremula_sync::reclaim::Collector;
///
/// let collector = Collector::new();
/// let guard = collector.pin();
/// let unlinked = Box::new(1);
/// // SAFETY: nobody else has it.
/// unsafe { guard.defer_unchecked(move || drop(unlinked)) };
/// drop(guard);
/// ```
pub struct Collector(CachePadded<Epochs>);

/// Shows that a thread is inside a structure: while the guard lives, nothing is freed that could be
/// reached in the structure when the guard was made.
///
/// Dropping a guard may run what other threads have retired, including users' `Drop`.
pub struct Guard<'c> {
    epochs: &'c Epochs,
    thread: Thread,
    pin: usize,
    /// The guard must stay on its thread.
    not_send: PhantomData<*const ()>,
}

/// The part of a record that only the record's own thread uses.
struct Own {
    /// A bit for each free pin.
    free: Cell<u32>,
    /// How many guards share the last pin.
    sharing: Cell<u32>,
    /// How many more guards the thread drops before its next turn to free things.
    until_turn: Cell<u32>,
    /// Things retired since the last turn.
    retired: Cell<u32>,
    /// Whether the thread is in a turn: turns do not nest.
    in_turn: Cell<bool>,
    /// Whether the thread is ending, so that no destructor will run that gives the record back.
    ending: Cell<bool>,
    /// The state of a small random generator; never 0.
    random: Cell<u32>,
}

const ALL_FREE: u32 = (1 << Record::<Own>::PINS) - 1;

/// The pin that several guards share.
const LAST: usize = Record::<Own>::PINS - 1;

impl Default for Own {
    fn default() -> Self {
        // Relaxed: the seeds only have to differ.
        static SEEDS: AtomicU64 = AtomicU64::new(1);
        let seed = match cfg!(sim) {
            // The same in each run.
            true => crate::thread_index() as u64 + 1,
            false => SEEDS.fetch_add(1, Ordering::Relaxed),
        } as u32;
        Self {
            free: Cell::new(ALL_FREE),
            sharing: Cell::new(0),
            until_turn: Cell::new(1),
            retired: Cell::new(0),
            in_turn: Cell::new(false),
            ending: Cell::new(false),
            random: Cell::new(seed.wrapping_mul(0x9E37_79B9) | 1),
        }
    }
}

impl Own {
    /// Marks a free pin as used, and returns it.
    #[inline]
    fn take_pin(&self) -> usize {
        let free = self.free.get();
        let pin = free.trailing_zeros() as usize;
        if pin >= LAST {
            self.sharing.set(self.sharing.get() + 1);
            self.free.set(free & !(1 << LAST));
            return LAST;
        }
        self.free.set(free & (free - 1));
        pin
    }

    /// Marks a pin as free, unless other guards share it. Returns whether it is free now.
    #[inline]
    fn give_pin(&self, pin: usize) -> bool {
        if pin == LAST {
            self.sharing.set(self.sharing.get() - 1);
            if self.sharing.get() > 0 {
                return false;
            }
        }
        self.free.set(self.free.get() | 1 << pin);
        true
    }

    /// How many guards to drop before the next turn. Random, so that no pattern of operations on
    /// several structures leaves one of them without a turn.
    fn draw(&self) -> u32 {
        // Marsaglia, "Xorshift RNGs" (2003).
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        self.random.set(random);
        1 + random % (2 * OPERATIONS_A_TURN - 1)
    }
}

crate::system::thread_local! {
    /// The thread's record; null before the thread first needs one, and again when the thread ends.
    static RECORD: Cell<*const Record<Own>> = const { Cell::new(ptr::null()) };
    static AT_END: AtEnd = const { AtEnd };
}

/// Gives the record of an ending thread back.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        // SAFETY: a pointer in `RECORD` points to a record, and records are never freed.
        if let Some(record) = unsafe { RECORD.get().as_ref() } {
            let thread = Thread(record);
            thread.ending.set(true);
            thread.give_back_if_ending();
        }
    }
}

/// The record of the current thread, which the thread has taken.
#[derive(Clone, Copy)]
struct Thread(&'static Record<Own>);

impl Deref for Thread {
    type Target = Own;

    #[inline]
    fn deref(&self) -> &Own {
        // SAFETY: a `Thread` is made and used only in the thread that has taken the record, and
        // that thread gives the record back only when it has no guard.
        unsafe { self.0.own() }
    }
}

impl Thread {
    /// The current thread's record; the thread takes one on first use.
    #[inline]
    fn current() -> Self {
        // SAFETY: a pointer in `RECORD` points to a record, and records are never freed.
        match unsafe { RECORD.get().as_ref() } {
            Some(record) => Self(record),
            None => Self::take(),
        }
    }

    #[cold]
    fn take() -> Self {
        // If the destructor has already run, none will run later: the last guard gives the record
        // back.
        let ending = AT_END.try_with(|_| ()).is_err();
        let record = registry().take();
        RECORD.set(record);
        let thread = Self(record);
        thread.ending.set(ending);
        // A thread's first operation has a turn, so that garbage does not pile up where threads
        // come and go.
        thread.until_turn.set(1);
        thread
    }

    /// Tries to free garbage; called when the drop of a guard ends the count of `until_turn`.
    #[cold]
    fn turn(self, epochs: &Epochs) {
        if self.in_turn.replace(true) {
            self.until_turn.set(1);
            return;
        }
        self.until_turn.set(self.draw());
        self.retired.set(0);
        // This runs in a drop: a panic in what is freed goes on after `EndOfTurn` has restored the
        // state.
        let _end = EndOfTurn(self);
        let look = self.0.look(self.random.get() as usize);
        for _ in 0..ADVANCES_A_TURN {
            let garbage = epochs.garbage(look);
            if garbage == 0 {
                break;
            }
            let advanced = epochs.advance(registry());
            let most = LEAST_A_TURN.max(garbage / PART_A_TURN);
            if epochs.free_ripe(look, most) == most {
                // More garbage is ripe: the thread's next operation continues.
                self.until_turn.set(1);
            }
            if !advanced {
                break;
            }
        }
    }

    /// Gives the record back if the thread is ending and has no guard.
    fn give_back_if_ending(self) {
        if !self.ending.get() {
            return;
        }
        if self.free.get() == ALL_FREE {
            RECORD.set(ptr::null());
            self.0.give_back();
        } else {
            // The last guard to be dropped gives the record back, in its turn.
            self.until_turn.set(1);
        }
    }
}

struct EndOfTurn(Thread);

impl Drop for EndOfTurn {
    fn drop(&mut self) {
        self.0.in_turn.set(false);
        self.0.give_back_if_ending();
    }
}

impl Collector {
    /// A collector with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        // Relaxed: the names only have to differ.
        Self(CachePadded::new(Epochs::new(
            NAMES.fetch_add(1, Ordering::Relaxed),
        )))
    }

    /// Pins the current thread on this collector. O(1): a store and a fence; and on average once in
    /// [`OPERATIONS_A_TURN`] operations, if there is garbage, a check of all threads.
    #[inline]
    #[must_use]
    pub fn pin(&self) -> Guard<'_> {
        let thread = Thread::current();
        let pin = thread.take_pin();
        thread.0.pin(pin, &self.0);
        Guard {
            epochs: &self.0,
            thread,
            pin,
            not_send: PhantomData,
        }
    }
}

/// Makes the calling thread take its turn at freeing garbage with the next structure that it
/// leaves, instead of at some later one.
pub fn turn_next() {
    Thread::current().until_turn.set(1);
}

impl Default for Collector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl Guard<'_> {
    /// Runs `work` after all guards that exist now are gone; at the latest when the collector is
    /// dropped.
    ///
    /// # Safety
    ///
    /// It must be sound to run `work` then, in any thread: what it frees has been unlinked, so that
    /// no thread that pins from now on can reach it.
    #[inline]
    pub unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        // SAFETY: the caller keeps the contract of `retire`, which is that of this method.
        unsafe { self.epochs.retire(self.thread.0, work) };
        let retired = self.thread.retired.get() + 1;
        self.thread.retired.set(retired);
        if retired >= RETIRED_A_TURN {
            // The turn comes when this guard is dropped.
            self.thread.until_turn.set(1);
        }
    }

    /// Whether this is the only guard of its collector in any thread. If so, what the calling
    /// thread unlinked before the call belongs to it alone, because a thread that pins later cannot
    /// reach it. Checks all threads until it finds one inside: O(threads).
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.epochs.is_alone(registry(), self.thread.0, self.pin)
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.thread.give_pin(self.pin) {
            self.thread.0.unpin(self.pin);
        }
        let left = self.thread.until_turn.get() - 1;
        self.thread.until_turn.set(left);
        if left == 0 {
            self.thread.turn(self.epochs);
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Guard").finish_non_exhaustive()
    }
}
