//! A request: the operation, the slot that carries it through a queue, and its outcome.

use super::asynchronous::{Lent, Turns};
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use tremula_sync::system::Arc;
use tremula_sync::{Mutex, contained, discard};

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The function panicked, with this message. The shard's state is as the function left it.
    #[error("the call panicked: {0}")]
    Panicked(String),
    /// The shards are shut down. The function did not run.
    #[error("the shards are shut down")]
    Closed,
    /// The shards were shut down while the asynchronous function awaited something. The shard's
    /// state is as the function left it.
    #[error("the shards were shut down while the function awaited something")]
    Interrupted,
    /// No thread can run the asynchronous function, for this reason. It did not run.
    #[error("no thread can run the asynchronous function: {0}")]
    NoExecutor(String),
    /// A worker, or a function on the same shards, would have waited for something that only a
    /// worker can do, or that happens only after the function has ended. The function did not run.
    #[error("a worker or a function of the shards must not wait for a call on them")]
    OnWorker,
}

/// Access to a state, as the strategy can give it.
pub enum Access<'a, S> {
    /// Side by side with other readers.
    Shared(&'a S),
    /// Exclusive.
    Exclusive(&'a mut S),
}

impl<S> fmt::Debug for Access<'_, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Shared(_) => "Shared(..)",
            Self::Exclusive(_) => "Exclusive(..)",
        })
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An operation on a state: [`Change`] or [`Read`].
pub trait Operation<S>: sealed::Sealed + Send + 'static {
    /// The result.
    type Output: Send + 'static;
    /// Whether it may run side by side with others of its kind.
    const SHARED: bool;
    /// Runs the operation. `None` if it needs another access, which types cannot exclude.
    #[doc(hidden)]
    fn apply(self, access: Access<'_, S>) -> Option<Self::Output>;
}

/// A function that may change the state.
pub struct Change<F, R>(F, PhantomData<fn() -> R>);

/// A function that only reads the state.
pub struct Read<F, R>(F, PhantomData<fn() -> R>);

impl<F, R> Change<F, R> {
    pub(super) fn new(function: F) -> Self {
        Self(function, PhantomData)
    }

    pub(super) fn into_inner(self) -> F {
        self.0
    }
}

impl<F, R> Read<F, R> {
    pub(super) fn new(function: F) -> Self {
        Self(function, PhantomData)
    }
}

impl<F, R> fmt::Debug for Change<F, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Change(..)")
    }
}

impl<F, R> fmt::Debug for Read<F, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Read(..)")
    }
}

impl<F, R> sealed::Sealed for Change<F, R> {}
impl<F, R> sealed::Sealed for Read<F, R> {}

impl<S, R: Send + 'static, F: FnOnce(&mut S) -> R + Send + 'static> Operation<S> for Change<F, R> {
    type Output = R;
    const SHARED: bool = false;

    fn apply(self, access: Access<'_, S>) -> Option<R> {
        match access {
            Access::Exclusive(state) => Some(self.0(state)),
            Access::Shared(_) => None,
        }
    }
}

impl<S, R: Send + 'static, F: FnOnce(&S) -> R + Send + 'static> Operation<S> for Read<F, R> {
    type Output = R;
    const SHARED: bool = true;

    fn apply(self, access: Access<'_, S>) -> Option<R> {
        Some(match access {
            Access::Exclusive(state) => self.0(state),
            Access::Shared(state) => self.0(state),
        })
    }
}

/// The outcome of a call.
pub(super) type Outcome<R> = Result<R, CallError>;

/// Runs an operation and catches its panic.
#[inline]
pub(super) fn perform<S, O: Operation<S>>(
    operation: O,
    access: Access<'_, S>,
) -> Outcome<O::Output> {
    // The shard's functions are responsible for a state that is sound after a panic, as documented.
    let result = catch_unwind(AssertUnwindSafe(|| operation.apply(access)));
    match result {
        Ok(output) => Ok(output.expect("each strategy lends what `SHARED` asks for")),
        Err(payload) => Err(CallError::Panicked(message(payload))),
    }
}

/// The text of a panic's payload. Drops the payload and contains what its drop does, because the
/// caller is using a shard.
pub(super) fn message(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    discard(payload);
    text.unwrap_or_else(|| "with something that is no text".to_owned())
}

/// Wakers of a batch, collected so that a task that waits for several answers is woken once.
#[derive(Debug, Default)]
pub(super) struct Wakes(Vec<Waker>);

impl Wakes {
    pub(super) fn add(&mut self, waker: Waker) {
        let known = |other: &Waker| other.will_wake(&waker);
        if self.0.last().is_some_and(known) {
            contained(|| drop(waker)); // user code, within a batch
        } else {
            self.0.push(waker);
        }
    }

    /// Wakes all tasks. The panic of a waker is contained.
    pub(super) fn wake(&mut self) {
        for waker in self.0.drain(..) {
            contained(|| waker.wake());
        }
    }
}

/// A request in a queue.
pub(super) trait Run<S>: Send + Sync {
    /// Runs the request unless it has been given up, and returns how it went.
    fn run(&self, state: &mut S, wakes: &mut Wakes) -> Ran;
    /// Whether the request only reads.
    fn reads(&self) -> bool;
    /// Answers the request with this error, instead of running it or going on with it.
    fn fail(&self, error: CallError, wakes: &mut Wakes);
    /// Whether the request is an asynchronous function, which [begins](Self::begin) rather than
    /// runs.
    fn is_asynchronous(&self) -> bool {
        false
    }
    /// Begins an asynchronous function, unless it has been given up. `at` wakes the thread that
    /// polls it.
    fn begin(self: Arc<Self>, lent: Lent<S>, at: &Waker) -> Option<Turns> {
        let _ = (lent, at);
        None
    }
    /// Whether an asynchronous function has been given up.
    fn is_given_up(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    Well,
    Panicked,
    /// The call was given up before it started, or, if it is asynchronous, before it ended.
    Cancelled,
}

impl Ran {
    #[inline]
    pub(super) fn of<R>(outcome: &Outcome<R>) -> Self {
        match outcome {
            Ok(_) => Self::Well,
            Err(_) => Self::Panicked,
        }
    }
}

pub(super) type Job<S> = Arc<dyn Run<S>>;

/// Carries a queued operation, and then its outcome. The thread that made it uses it again once no
/// other thread refers to it.
pub(super) struct Slot<O, R>(Mutex<Content<O, R>>);

struct Content<O, R> {
    operation: Option<O>,
    outcome: Option<Outcome<R>>,
    waker: Option<Waker>,
    /// Whether a thread or task waits for the outcome.
    wanted: bool,
}

impl<S, O: Operation<S>> Run<S> for Slot<O, O::Output> {
    fn reads(&self) -> bool {
        O::SHARED
    }

    fn run(&self, state: &mut S, wakes: &mut Wakes) -> Ran {
        let Some(operation) = self.0.lock().operation.take() else {
            return Ran::Cancelled;
        };
        let outcome = perform(operation, Access::Exclusive(state));
        let ran = Ran::of(&outcome);
        self.answer(outcome, wakes);
        ran
    }

    fn fail(&self, error: CallError, wakes: &mut Wakes) {
        let operation = self.0.lock().operation.take();
        if operation.is_some() {
            contained(|| drop(operation)); // user code
            self.answer(Err(error), wakes);
        }
    }
}

impl<O, R> Slot<O, R> {
    fn answer(&self, outcome: Outcome<R>, wakes: &mut Wakes) {
        let mut content = self.0.lock();
        if !content.wanted {
            drop(content);
            // User code, which may panic; the panic concerns no request.
            contained(|| drop(outcome));
            return;
        }
        content.outcome = Some(outcome);
        if let Some(waker) = content.waker.take() {
            drop(content);
            wakes.add(waker);
        }
    }

    /// Returns the outcome, or registers the waker to be woken when it is there.
    pub(super) fn poll(&self, waker: &Waker) -> Poll<Outcome<R>> {
        let mut content = self.0.lock();
        if let Some(outcome) = content.outcome.take() {
            return Poll::Ready(outcome);
        }
        if content
            .waker
            .as_ref()
            .is_some_and(|known| known.will_wake(waker))
        {
            return Poll::Pending;
        }
        drop(content);
        let waker = waker.clone(); // user code: must not run under the lock
        let mut content = self.0.lock();
        if let Some(outcome) = content.outcome.take() {
            return Poll::Ready(outcome);
        }
        let before = content.waker.replace(waker);
        drop(content);
        drop(before);
        Poll::Pending
    }

    /// The outcome, if it is there.
    pub(super) fn outcome(&self) -> Option<Outcome<R>> {
        self.0.lock().outcome.take()
    }

    /// Gives the request up. If its operation has not started, it never runs.
    pub(super) fn give_up(&self) {
        let mut content = self.0.lock();
        content.wanted = false;
        let left = (
            content.operation.take(),
            content.outcome.take(),
            content.waker.take(),
        );
        drop(content);
        drop(left);
    }
}

/// A request before it is queued. The backend runs it in place, or queues its job.
pub(super) trait Request<S> {
    /// Whether the request only reads.
    fn is_shared(&self) -> bool;
    /// Whether the request is a call, whose outcome is wanted, rather than a send.
    fn is_wanted(&self) -> bool;
    /// Runs the request in place.
    fn run(&mut self, access: Access<'_, S>) -> Ran;
    /// The job to queue. Its slot is a reusable one if `again`, else one of its own.
    fn job(&mut self, again: bool) -> Job<S>;
    /// Takes the operation back from a job that could not be queued.
    fn take_back(&mut self);
}

/// The request of a call or a send.
pub(super) struct Pending<O, R> {
    pub(super) operation: Option<O>,
    pub(super) outcome: Option<Outcome<R>>,
    pub(super) slot: Option<Arc<Slot<O, R>>>,
    pub(super) wanted: bool,
}

impl<O, R> Pending<O, R> {
    /// A request that has been run.
    #[inline]
    pub(super) fn ended(outcome: Outcome<R>) -> Self {
        Self {
            operation: None,
            outcome: Some(outcome),
            slot: None,
            wanted: true,
        }
    }

    pub(super) fn new(operation: O, wanted: bool) -> Self {
        Self {
            operation: Some(operation),
            outcome: None,
            slot: None,
            wanted,
        }
    }
}

impl<S: 'static, O: Operation<S>> Request<S> for Pending<O, O::Output> {
    fn is_shared(&self) -> bool {
        O::SHARED
    }

    fn is_wanted(&self) -> bool {
        self.wanted
    }

    fn run(&mut self, access: Access<'_, S>) -> Ran {
        let Some(operation) = self.operation.take() else {
            return Ran::Cancelled;
        };
        let outcome = perform(operation, access);
        let ran = Ran::of(&outcome);
        self.outcome = Some(outcome);
        ran
    }

    fn job(&mut self, again: bool) -> Job<S> {
        // Under a checker, one thread of the system runs all threads of all executions.
        let again = again && !cfg!(shuttle);
        let slot = if again { free_slot() } else { new_slot() };
        *slot.0.lock() = Content {
            operation: self.operation.take(),
            outcome: None,
            waker: None,
            wanted: self.wanted,
        };
        self.slot = Some(Arc::clone(&slot));
        slot
    }

    fn take_back(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.operation = slot.0.lock().operation.take();
        }
    }
}

/// Slots of one type that a thread keeps. If more requests than this are under way, each further
/// one gets a slot of its own.
const KEPT: usize = 512;

/// Types of slots that a thread keeps. The least recently used types are dropped.
const KINDS: usize = 16;

tremula_sync::thread_local! {
    /// The slots of this thread, by their type.
    static SLOTS: RefCell<Vec<(TypeId, Box<dyn Any>)>> = const { RefCell::new(Vec::new()) };
}

/// The least recently used slot of this thread, if no other thread refers to it; else a new slot.
fn free_slot<O: 'static, R: 'static>() -> Arc<Slot<O, R>> {
    type Kept<O, R> = VecDeque<Arc<Slot<O, R>>>;
    let kept = SLOTS.try_with(|slots| {
        let mut slots = slots.borrow_mut();
        let kind = TypeId::of::<Slot<O, R>>();
        match slots.iter().position(|(other, _)| *other == kind) {
            Some(0) => {}
            Some(index) => slots[..=index].rotate_right(1),
            None => {
                slots.truncate(KINDS - 1);
                slots.insert(0, (kind, Box::new(Kept::<O, R>::new())));
            }
        }
        let kept = slots[0].1.downcast_mut::<Kept<O, R>>()?;
        let is_free = kept
            .front_mut()
            .is_some_and(|slot| Arc::get_mut(slot).is_some());
        let free = if is_free { kept.pop_front() } else { None };
        let slot = free.unwrap_or_else(new_slot);
        if kept.len() < KEPT {
            kept.push_back(Arc::clone(&slot));
        } else {
            kept.rotate_left(1); // another one may be free sooner
        }
        Some(slot)
    });
    // A thread that is being torn down has no kept slots.
    kept.ok().flatten().unwrap_or_else(new_slot)
}

fn new_slot<O, R>() -> Arc<Slot<O, R>> {
    let slot = Arc::new(Slot(Mutex::new(Content {
        operation: None,
        outcome: None,
        waker: None,
        wanted: false,
    })));
    crate::keep_under_tsan(&slot);
    slot
}
