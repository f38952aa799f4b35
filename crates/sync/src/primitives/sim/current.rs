//! What the running virtual thread asks of the simulator: accesses, time, sleep.

use super::allocator;
use super::directory::Kind;
use super::machine::Picoseconds;
use super::once::OfTheRun;
use super::state::{State, Woken};
use super::stores::Bits;
use corosensei::Yielder;
use std::any::TypeId;
use std::cell::Cell;
use std::panic::Location;
use std::ptr;
use std::time::{Duration, Instant};

std::thread_local! {
    /// The state of the run on this thread of the system, if there is one.
    static STATE: Cell<*mut State> = const { Cell::new(ptr::null_mut()) };
    /// Whether a virtual thread runs. The simulator's own code and the code around a run are free.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The instant at which virtual time begins.
    static BEGINNING: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Calls `f` with the state if a virtual thread is running. `f` must not run the user's code.
pub(super) fn with<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    if !INSIDE.get() {
        return None;
    }
    let state = STATE.get();
    let outside = Outside::step();
    // SAFETY: the run's state outlives its threads, and while `INSIDE` is false nothing else makes
    // a reference to it.
    let result = f(unsafe { &mut *state });
    drop(outside);
    Some(result)
}

/// While it lives, what happens is the simulator's and has no price.
struct Outside {
    was_inside: bool,
    _memory: allocator::Paused,
}

impl Outside {
    fn step() -> Self {
        Self {
            was_inside: INSIDE.replace(false),
            _memory: allocator::pause(),
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        INSIDE.set(self.was_inside);
    }
}

/// Whether the caller is a virtual thread.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, is_simulated};
///
/// assert!(!is_simulated());
/// assert!(Simulation::on(Machine::free_of_charge(1)).run(is_simulated).result);
/// ```
#[must_use]
pub fn is_simulated() -> bool {
    INSIDE.get()
}

/// Stops the current coroutine, which is in a queue of the state.
pub(super) fn stop() {
    let yielder = with(|state| state.me().yielder).unwrap_or(ptr::null());
    suspend(yielder);
}

fn suspend(yielder: *const Yielder<(), ()>) {
    INSIDE.set(false);
    // SAFETY: the thread set it when it began, and it is valid while the thread runs.
    unsafe { (*yielder).suspend(()) };
    INSIDE.set(true);
}

/// Calls `f` with the state if a virtual thread is running, and then lets all threads go first that
/// are earlier.
fn in_order<R>(f: impl FnOnce(&mut State) -> R) -> Option<R> {
    let (result, yielder) = with(|state| {
        let result = f(state);
        let yielder = state.gives_way().then(|| state.me().yielder);
        (result, yielder)
    })?;
    if let Some(yielder) = yielder {
        suspend(yielder);
    }
    Some(result)
}

/// An access of the current thread. It returns when the line is there, in the order of time.
pub(super) fn access(address: usize, kind: Kind, from: &'static Location<'static>) {
    in_order(|state| {
        state.allocated(allocator::take_count());
        state.access(address, kind, from);
    });
}

/// What the current thread sees in a word that it has just accessed, if memory has something else.
pub(super) fn seen(address: usize) -> Option<Bits> {
    with(|state| state.seen(address)).flatten()
}

/// What the current thread loads from a word that it has just accessed, for which memory has this.
pub(super) fn loads(address: usize, in_memory: Bits) -> Bits {
    with(|state| state.loads(address, in_memory)).unwrap_or(in_memory)
}

/// The current thread, which has just accessed this word, writes `value` where memory has
/// `in_memory`. Returns whether the caller must write it to memory.
pub(super) fn store(address: usize, in_memory: Bits, value: Bits) -> bool {
    with(|state| state.store(address, in_memory, value)).unwrap_or(true)
}

/// The price of plain memory that is read, or written: it must be memory that a lock protects, or
/// that no other thread has. `bytes` may span lines.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, touch};
///
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| {
///     let values = [0_u64; 64];
///     touch(&raw const values, size_of_val(&values), false);
/// });
/// assert!(run.accesses >= 8); // lines
/// ```
#[track_caller]
pub fn touch<T: ?Sized>(value: *const T, bytes: usize, writes: bool) {
    if !INSIDE.get() {
        return;
    }
    let (begin, from) = (value.addr(), Location::caller());
    let last = (begin + bytes.max(1) - 1) / super::directory::LINE;
    let kind = if writes { Kind::Store } else { Kind::Load };
    in_order(|state| {
        for line in begin / super::directory::LINE..=last {
            state.access(line * super::directory::LINE, kind, from);
        }
    });
}

/// Asks for the line of an address that the calling virtual thread will access soon, or write: an
/// access waits only for what is left of its way. The address need not be valid. Without a
/// simulation it does nothing.
///
/// ```
/// use tremula_sync::atomic::{AtomicU64, Ordering};
/// use tremula_sync::sim::{Machine, Prices, Simulation, prefetch, work};
///
/// let prices = Prices::named(|name| if name == "far_cache" { 9_000 } else { 0 });
/// let machine = Machine { prices, ..Machine::free_of_charge(1) };
/// let run = Simulation::on(machine).run(|| {
///     let word = AtomicU64::new(0);
///     prefetch(&raw const word, true);
///     work(7);
///     word.store(1, Ordering::SeqCst);
///     drop(word.load(Ordering::Relaxed));
/// });
/// assert_eq!(run.elapsed, 9_000);
/// ```
pub fn prefetch<T>(address: *const T, writes: bool) {
    in_order(|state| state.prefetch(address.addr(), writes));
}

/// The current thread waits until others see all its stores.
pub(super) fn drain() {
    in_order(State::drain);
}

pub(super) fn fence() {
    in_order(State::fence);
}

/// Private work of the calling virtual thread that took this many nanoseconds: instructions, and
/// memory that only this thread uses. Without a simulation it does nothing.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, work};
///
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| work(30));
/// assert_eq!(run.elapsed, 30_000);
/// ```
pub fn work(nanoseconds: u64) {
    in_order(|state| state.work(nanoseconds * 1000));
}

/// The processor's pause in a loop that spins.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, spin_loop};
///
/// let mut machine = Machine::free_of_charge(1);
/// machine.prices.pause = 40_000;
/// assert_eq!(Simulation::on(machine).run(spin_loop).elapsed, 40_000);
/// ```
pub fn spin_loop() {
    if in_order(|state| state.work(state.machine.prices.pause)).is_none() {
        std::hint::spin_loop();
    }
}

pub(super) fn yield_now() {
    let left = with(|state| {
        state.call(state.machine.prices.yield_now);
        let left = state.others_wait_for_core();
        if left {
            state.leave_core();
        }
        left
    });
    match left {
        None => std::thread::yield_now(),
        Some(true) => stop(),
        Some(false) => drop(in_order(|_| ())),
    }
}

/// Sleeps at an address, if `is_right` still holds, for a lock that the thread wants to write under
/// or not. Returns whether the lock was handed over to it. Outside of a simulation it yields.
pub(super) fn sleep_at(address: usize, writes: bool, is_right: impl FnOnce() -> bool) -> bool {
    let sleeps = with(|state| {
        let sleeps = is_right();
        if sleeps {
            state.sleep_at(address, writes);
        }
        sleeps
    });
    match sleeps {
        None => std::thread::yield_now(),
        Some(true) => stop(),
        Some(false) => drop(in_order(|_| ())),
    }
    with(State::take_handed) == Some(true)
}

/// A lock at this address has been taken from this place.
pub(super) fn lock_taken(address: usize, from: &'static Location<'static>) {
    with(|state| state.lock_taken(address, from));
}

/// From where the lock at this address was taken last, if somebody asks for blame.
pub(super) fn lock_place(address: usize) -> Option<&'static Location<'static>> {
    with(|state| state.lock_place(address)).flatten()
}

/// Wakes the first threads that sleep at the address, as long as `wakes` says so of what they want.
pub(super) fn wake_at(address: usize, wakes: impl FnMut(bool) -> bool) -> Woken {
    with(|state| state.wake_at(address, wakes)).unwrap_or_default()
}

/// Sleeps for this time.
pub(super) fn sleep(time: Duration) {
    let slept = with(|state| {
        let until = state.me().clock + picoseconds(time);
        state.block(Some(until));
    });
    match slept {
        None => std::thread::sleep(time),
        Some(()) => stop(),
    }
}

pub(super) fn picoseconds(time: Duration) -> Picoseconds {
    u64::try_from(time.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX / 4)
}

/// The present time: in a simulation, the virtual time of the calling thread.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, now, work};
///
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| {
///     let begun = now();
///     work(500);
///     now() - begun
/// });
/// assert_eq!(run.result.as_nanos(), 500);
/// ```
#[must_use]
pub fn now() -> Instant {
    let clock = with(|state| state.me().clock);
    match (clock, BEGINNING.get()) {
        (Some(clock), Some(beginning)) => beginning + Duration::from_nanos(clock / 1000),
        _ => Instant::now(),
    }
}

/// The value of a type that the present run has once; outside of runs, none.
pub(crate) fn of_the_run<T: OfTheRun>(make: fn() -> T) -> Option<&'static T> {
    let key = TypeId::of::<T>();
    let found = with(|state| state.once.get(key))?;
    let value = found.unwrap_or_else(|| {
        let made: *mut dyn OfTheRun = Box::into_raw(Box::new(make()));
        with(|state| state.once.keep(key, made)).unwrap_or(made)
    });
    // SAFETY: it has this type, which is the key, and lives until the run has ended.
    Some(unsafe { &*value.cast::<T>() })
}

/// The run of this thread of the system begins, or ends with a null pointer.
pub(super) fn set_state(state: *mut State) {
    INSIDE.set(false);
    STATE.set(state);
    BEGINNING.set((!state.is_null()).then(Instant::now));
}

/// Whether a run is under way on this thread of the system.
pub(super) fn has_run() -> bool {
    !STATE.get().is_null()
}

/// A virtual thread goes on, or has stopped.
pub(super) fn set_inside(inside: bool) {
    INSIDE.set(inside);
}
