//! Threads: virtual ones in a simulation, the system's outside of one.

use super::current::{self as running, picoseconds};
use super::local;
use super::machine::Picoseconds;
use super::state::Id;
use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
pub use std::thread::panicking;
use std::time::Duration;

/// The stack of a virtual thread. Only what is used takes memory.
const STACK: usize = 4 << 20;

/// The coroutine of a virtual thread.
pub(super) fn coroutine(body: Box<dyn FnOnce()>) -> Coroutine<(), (), ()> {
    let stack = DefaultStack::new(STACK).expect("there is memory for the stack of a thread");
    Coroutine::with_stack(stack, move |yielder, ()| {
        let yielder = std::ptr::from_ref(yielder);
        running::with(|state| state.me().yielder = yielder);
        body();
        local::end_of_thread();
    })
}

type Result<R> = std::thread::Result<R>;

/// Where a thread leaves what it returned.
pub(super) struct Packet<R>(Mutex<Option<Result<R>>>);

impl<R> Packet<R> {
    pub(super) fn take(&self) -> Option<Result<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The function as the body of a thread, and where its result will be.
pub(super) fn packed<'f, R: 'f>(
    work: impl FnOnce() -> R + 'f,
) -> (Box<dyn FnOnce() + 'f>, Arc<Packet<R>>) {
    let packet = Arc::new(Packet(Mutex::new(None)));
    let there = Arc::clone(&packet);
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        *there.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    };
    (Box::new(body), packet)
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread(Which);

#[derive(Clone, Debug)]
enum Which {
    Virtual(Id, Option<String>),
    System(std::thread::Thread),
}

/// The identity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(WhichId);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WhichId {
    Virtual(Id),
    System(std::thread::ThreadId),
}

impl Thread {
    /// As std's.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Which::Virtual(_, name) => name.as_deref(),
            Which::System(thread) => thread.name(),
        }
    }

    /// As std's.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Which::Virtual(id, _) => WhichId::Virtual(*id),
            Which::System(thread) => WhichId::System(thread.id()),
        })
    }

    /// As std's: a thread that is not parked returns at once from its next [`park`].
    pub fn unpark(&self) {
        match &self.0 {
            Which::System(thread) => thread.unpark(),
            Which::Virtual(id, _) => {
                // Those that are earlier go first: they do not see yet what this thread has stored.
                running::drain();
                running::with(|state| {
                    state.threads[*id].token = true;
                    if std::mem::take(&mut state.threads[*id].parked) {
                        state.wake(*id);
                    }
                });
            }
        }
    }
}

/// The calling thread.
#[must_use]
pub fn current() -> Thread {
    let me = running::with(|state| (state.current, state.me().name.clone()));
    Thread(match me {
        Some((id, name)) => Which::Virtual(id, name),
        None => Which::System(std::thread::current()),
    })
}

/// As std's.
pub fn park() {
    wait(None);
}

/// As std's.
pub fn park_timeout(time: Duration) {
    wait(Some(time));
}

fn wait(time: Option<Duration>) {
    let blocked = running::with(|state| {
        if std::mem::take(&mut state.me().token) {
            return false;
        }
        state.call(state.machine.prices.sleep);
        let deadline = time.map(|time| state.me().clock + picoseconds(time));
        state.me().parked = true;
        state.block(deadline);
        true
    });
    match (blocked, time) {
        (Some(true), _) => {
            running::stop();
            running::with(|state| {
                let me = state.me();
                (me.token, me.parked) = (false, false);
            });
        }
        (Some(false), _) => {}
        (None, None) => std::thread::park(),
        (None, Some(time)) => std::thread::park_timeout(time),
    }
}

/// As std's.
pub fn yield_now() {
    running::yield_now();
}

/// As std's.
pub fn sleep(time: Duration) {
    running::sleep(time);
}

/// As std's.
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// As std's.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As std's.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// As std's. The stacks of virtual threads have one size.
    #[must_use]
    pub fn stack_size(mut self, size: usize) -> Self {
        self.stack_size = Some(size);
        self
    }

    /// As std's.
    ///
    /// # Errors
    ///
    /// If the system has no more threads.
    pub fn spawn<R: Send + 'static>(
        self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> io::Result<JoinHandle<R>> {
        if running::is_simulated() {
            let (body, packet) = packed(work);
            return Ok(spawn_virtual(self.name, body, packet));
        }
        let mut builder = std::thread::Builder::new();
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(size) = self.stack_size {
            builder = builder.stack_size(size);
        }
        builder.spawn(work).map(|handle| JoinHandle {
            thread: Thread(Which::System(handle.thread().clone())),
            rest: Rest::System(handle),
        })
    }
}

/// The closure, as if it lived forever.
///
/// # Safety
///
/// It has been called, and dropped, before what it borrows ends; or neither happens ever.
pub(super) unsafe fn forever(body: Box<dyn FnOnce() + '_>) -> Box<dyn FnOnce()> {
    // SAFETY: as the caller promises; only the lifetime changes.
    unsafe { std::mem::transmute(body) }
}

fn spawn_virtual<R>(
    name: Option<String>,
    body: Box<dyn FnOnce()>,
    packet: Arc<Packet<R>>,
) -> JoinHandle<R> {
    add_virtual(name, start_another(), body, packet)
}

/// The calling thread starts another one; returns when that begins.
fn start_another() -> Picoseconds {
    let start = running::with(|state| {
        state.drain();
        state.call(state.machine.prices.wake);
        state.me().clock + state.varied(state.machine.prices.wake_delay)
    });
    start.expect("the caller is a virtual thread")
}

fn add_virtual<R>(
    name: Option<String>,
    start: Picoseconds,
    body: Box<dyn FnOnce()>,
    packet: Arc<Packet<R>>,
) -> JoinHandle<R> {
    let id = running::with(|state| state.add(start, name.clone(), coroutine(body)));
    let id = id.expect("the caller is a virtual thread");
    JoinHandle {
        thread: Thread(Which::Virtual(id, name)),
        rest: Rest::Virtual(id, packet),
    }
}

/// As std's.
///
/// # Panics
///
/// If the system has no more threads.
pub fn spawn<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let spawned = Builder::new().spawn(work);
    spawned.expect("the system has another thread")
}

/// As std's.
pub struct JoinHandle<R> {
    thread: Thread,
    rest: Rest<R>,
}

enum Rest<R> {
    Virtual(Id, Arc<Packet<R>>),
    System(std::thread::JoinHandle<R>),
}

impl<R> JoinHandle<R> {
    /// As std's.
    #[must_use]
    pub const fn thread(&self) -> &Thread {
        &self.thread
    }

    /// As std's.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.rest {
            Rest::Virtual(id, _) => running::with(|state| state.sees_end_of(*id)).unwrap_or(true),
            Rest::System(handle) => handle.is_finished(),
        }
    }

    /// As std's.
    ///
    /// # Errors
    ///
    /// Returns the panic of the thread, if it panicked.
    pub fn join(self) -> Result<R> {
        match self.rest {
            Rest::System(handle) => handle.join(),
            Rest::Virtual(id, packet) => {
                while running::with(|state| state.has_ended_or_tells_me(id)) == Some(false) {
                    running::stop();
                }
                packet.take().unwrap_or_else(|| {
                    let abandoned: Box<dyn Any + Send> = Box::new("the thread was abandoned");
                    Err(abandoned)
                })
            }
        }
    }
}

impl<R> fmt::Debug for JoinHandle<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Runs `work` in `count` virtual threads, with the number of each, beside `drive` in the calling
/// thread; returns what they returned, in the order of their numbers. The threads begin at the same
/// time, as from a barrier.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, scoped};
///
/// let run = Simulation::on(Machine::free_of_charge(3));
/// assert_eq!(run.run(|| scoped(3, |number| number * 2, || {})).result, [0, 2, 4]);
/// ```
///
/// # Panics
///
/// Passes on the first panic of a thread, after all have ended. Panics outside of a simulation.
pub fn scoped<R: Send>(
    count: usize,
    work: impl Fn(usize) -> R + Sync,
    drive: impl FnOnce(),
) -> Vec<R> {
    let results: Vec<Mutex<Option<R>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let (work, places) = (&work, &results);
    let start = start_another();
    let handles: Vec<JoinHandle<()>> = (0..count)
        .map(|number| {
            let (body, packet) = packed(move || {
                let result = work(number);
                *places[number]
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(result);
            });
            // SAFETY: every thread is joined below before this function returns or unwinds, so what
            // the closure borrows outlives it. Only the lifetime changes.
            let body = unsafe { forever(body) };
            add_virtual(None, start, body, packet)
        })
        .collect();
    let driven = catch_unwind(AssertUnwindSafe(drive));
    let joined: Vec<_> = handles.into_iter().map(JoinHandle::join).collect();
    for outcome in std::iter::once(driven).chain(joined) {
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }
    let results = results.into_iter().map(Mutex::into_inner);
    results
        .map(|result| {
            let result = result.unwrap_or_else(PoisonError::into_inner);
            result.expect("a thread that did not panic has left its result")
        })
        .collect()
}

/// A small number that no other living thread of the run has.
#[must_use]
pub fn thread_index() -> usize {
    running::with(|state| state.me().index).unwrap_or(0)
}
