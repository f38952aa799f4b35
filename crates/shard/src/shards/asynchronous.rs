//! Asynchronous functions: their requests, the calls that wait for them, and the functions that a
//! thread has begun.
//!
//! An asynchronous function may await something while it uses the state. It has the state for
//! itself until it ends: the state is away from the shard, as if a thread held it, and what comes
//! meanwhile is queued. The thread that begins a function makes its future, keeps it, polls it, and
//! drops it. So the future need not be `Send`, and only threads that can poll later begin
//! functions: workers.
//!
//! ```text
//!   caller                queue of the shard            worker
//!     call_async --------> [ f ] --------------------->  takes f and the state, polls f
//!     call, send --------> [ g | h ]                     f awaits: the worker serves other shards
//!                                       waker of f --->  polls f again
//!     answer <-----------------------------------------  f ends: the state goes back
//!                          [ g | h ] ----------------->  runs g, h
//! ```
//!
//! Invariants:
//!
//! 1. The state is with the future ([`Lent`]), or in [`Function::back`] when the future has ended
//!    or has been dropped, however that happened. So no state is lost.
//! 2. If a waker of a function is woken after a turn of the function has begun, the function gets
//!    another turn: the turn clears [`Bell::rung`] before it looks at anything that could change.
//! 3. A thread that gives a function up takes its waker and wakes it after recording that. By (2)
//!    the worker then sees the record.

use super::backend::{Backend, Submitted};
use super::call::{wait_until_ready, waker_of_this_thread};
use super::request::{CallError, Job, Outcome, Ran, Run, Wakes, message};
use super::running::{Running, Tag, must_not_await, runs_on};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Wake, Waker};
use tremula_sync::atomic::{AtomicBool, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::{Mutex, contained};

/// The future of an asynchronous function. It returns the waker of the caller that waits for the
/// answer.
pub(super) type Turns = Pin<Box<dyn Future<Output = Option<Waker>>>>;

/// Where a state is put when its function has ended.
type Back<S> = Rc<Cell<Option<Box<S>>>>;

/// The state that an asynchronous function uses. Dropping it gives the state back.
pub(super) struct Lent<S> {
    state: Option<Box<S>>,
    back: Back<S>,
}

impl<S> Lent<S> {
    fn get_mut(&mut self) -> &mut S {
        self.state.as_mut().expect("it is taken by the drop only")
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        self.back.set(self.state.take());
    }
}

/// The request of an asynchronous function.
pub(super) struct AsyncRequest<F, R>(Mutex<Content<F, R>>);

struct Content<F, R> {
    /// `None` once the function has begun or has been given up.
    function: Option<F>,
    outcome: Option<Outcome<R>>,
    /// The waker of the thread or task that waits for the outcome.
    caller: Option<Waker>,
    /// Wakes the worker at which the function awaits something.
    worker: Option<Waker>,
    /// Whether the outcome is wanted.
    wanted: bool,
    given_up: bool,
}

impl<F, R> AsyncRequest<F, R> {
    pub(super) fn new(function: F, wanted: bool) -> Arc<Self> {
        let request = Arc::new(Self(Mutex::new(Content {
            function: Some(function),
            outcome: None,
            caller: None,
            worker: None,
            wanted,
            given_up: false,
        })));
        crate::keep_under_tsan(&request);
        request
    }

    /// The function, if it has not begun.
    pub(super) fn take_function(&self) -> Option<F> {
        self.0.lock().function.take()
    }

    /// Stores the outcome. Returns the waker of the caller that waits for it.
    fn answer(&self, outcome: Outcome<R>) -> Option<Waker> {
        let mut content = self.0.lock();
        let worker = content.worker.take();
        let (unwanted, caller) = if content.wanted {
            content.outcome = Some(outcome);
            (None, content.caller.take())
        } else {
            (Some(outcome), None)
        };
        drop(content);
        // User code, which may panic; the panic concerns no request.
        contained(|| drop((worker, unwanted)));
        caller
    }
}

impl<S, F, R> Run<S> for AsyncRequest<F, R>
where
    S: 'static,
    R: Send + 'static,
    F: AsyncFnOnce(&mut S) -> R + Send + 'static,
{
    fn run(&self, _: &mut S, _: &mut Wakes) -> Ran {
        unreachable!("asynchronous functions begin");
    }

    fn reads(&self) -> bool {
        false
    }

    fn fail(&self, error: CallError, wakes: &mut Wakes) {
        let function = self.take_function();
        contained(|| drop(function)); // user code
        if let Some(caller) = self.answer(Err(error)) {
            wakes.add(caller);
        }
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    fn begin(self: Arc<Self>, mut lent: Lent<S>, at: &Waker) -> Option<Turns> {
        let at = at.clone();
        let mut content = self.0.lock();
        let function = content.function.take()?;
        content.worker = Some(at);
        drop(content);
        Some(Box::pin(async move {
            let result = function(lent.get_mut()).await;
            drop(lent);
            self.answer(Ok(result))
        }))
    }

    fn is_given_up(&self) -> bool {
        self.0.lock().given_up
    }
}

/// What a call knows of its request.
trait Answer<R>: Send + Sync {
    /// Returns the outcome, or registers the waker to be woken when it is there.
    fn poll(&self, waker: &Waker) -> Poll<Outcome<R>>;
    /// Gives the request up.
    fn give_up(&self);
}

impl<F: Send, R: Send> Answer<R> for AsyncRequest<F, R> {
    fn poll(&self, waker: &Waker) -> Poll<Outcome<R>> {
        let waker = waker.clone(); // user code: must not run under the lock
        let mut content = self.0.lock();
        if let Some(outcome) = content.outcome.take() {
            return Poll::Ready(outcome);
        }
        let before = content.caller.replace(waker);
        drop(content);
        drop(before);
        Poll::Pending
    }

    fn give_up(&self) {
        let mut content = self.0.lock();
        content.wanted = false;
        content.given_up = true;
        let worker = content.worker.take();
        let left = (
            content.function.take(),
            content.outcome.take(),
            content.caller.take(),
        );
        drop(content);
        drop(left);
        if let Some(worker) = worker {
            worker.wake();
        }
    }
}

/// The result of an asynchronous function. A task awaits it, or a thread waits for it.
///
/// The call has already been made, as that of [`Call`](super::Call). Only if the shard's queue was
/// full does the call begin to wait for room when it is first polled.
///
/// Dropping it gives the call up: if the function has not begun, it never begins. If it awaits
/// something, it is dropped there, and the shard goes on with the state as the function left it.
/// For functions that must run to their end there is
/// [`Shards::send_async`](super::Shards::send_async).
///
/// # Panics
///
/// Polled again after it has ended.
///
/// ```
/// use std::time::Duration;
/// use tremula_shard::{CallError, Config, Shards, Strategy};
///
/// let shards = Shards::start(Config::new(Strategy::Affinity), |_| 0_u64).unwrap();
/// let runtime = tokio::runtime::Runtime::new().unwrap();
/// runtime.block_on(async {
///     let never = shards.call_async("key", async |_| std::future::pending::<()>().await);
///     assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
///     // The function has been dropped with its call, and the shard is free again.
///     assert_eq!(shards.call("key", |count| *count).await, Ok(0));
/// });
/// ```
#[must_use = "dropping a call gives it up; `send_async` is for what nobody waits for"]
pub struct AsyncCall<S: 'static, R> {
    /// What the call needs to be made again, while the shard's queue is full.
    full: Option<(Arc<dyn Backend<S>>, Job<S>)>,
    shard: Tag,
    /// `None` after the end.
    answer: Option<Arc<dyn Answer<R>>>,
}

impl<S: 'static, R: Send + 'static> AsyncCall<S, R> {
    pub(super) fn begin<F>(backend: &Arc<dyn Backend<S>>, shard: Tag, function: F) -> Self
    where
        F: AsyncFnOnce(&mut S) -> R + Send + 'static,
    {
        let request = AsyncRequest::new(function, true);
        let job: Job<S> = Arc::clone(&request) as Job<S>;
        let mut call = Self {
            full: None,
            shard,
            answer: Some(request),
        };
        call.submit(Arc::clone(backend), job, None);
        call
    }

    fn submit(&mut self, backend: Arc<dyn Backend<S>>, job: Job<S>, waker: Option<&Waker>) {
        let error = match backend.submit_asynchronous(self.shard.shard(), &job, waker) {
            Submitted::Ran | Submitted::Queued => return,
            Submitted::Full => {
                self.full = Some((backend, job));
                return;
            }
            Submitted::Closed => CallError::Closed,
            Submitted::NoExecutor(why) => CallError::NoExecutor(why),
        };
        job.fail(error, &mut Wakes::default()); // no waker is registered yet
    }

    /// The outcome, if the call has ended.
    fn settle(&mut self, waker: &Waker) -> Poll<Outcome<R>> {
        if let Some((backend, job)) = self.full.take() {
            self.submit(backend, job, Some(waker));
            if self.full.is_some() {
                return Poll::Pending;
            }
        }
        let answer = self.answer.as_ref();
        let polled = answer
            .expect("a call is not polled after its end")
            .poll(waker);
        if polled.is_ready() {
            self.answer = None;
        }
        polled
    }

    /// Blocks the thread until the result is there.
    ///
    /// # Errors
    ///
    /// The same as for awaiting it, and [`CallError::OnWorker`] as
    /// [`Call::wait`](super::Call::wait) gives it.
    ///
    /// # Panics
    ///
    /// As [`Call::wait`](super::Call::wait).
    ///
    /// ```
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let shards = Shards::start(Config::new(Strategy::Affinity), |_| 1_u64).unwrap();
    /// let double = shards.call_async("key", async |count| { *count *= 2; *count });
    /// assert_eq!(double.wait(), Ok(2));
    /// ```
    pub fn wait(mut self) -> Result<R, CallError> {
        self.must_not_be_its_own();
        if super::worker::is_worker() || super::running::runs_beside(self.shard) {
            return match self.settle(Waker::noop()) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => Err(CallError::OnWorker),
            };
        }
        wait_until_ready(&waker_of_this_thread(), |waker| self.settle(waker))
    }

    /// Like [`Call::must_not_be_its_own`](super::Call).
    fn must_not_be_its_own(&self) {
        debug_assert!(
            !runs_on(self.shard),
            "a function on shard {0} waits for a call on shard {0}, which cannot begin before the \
             function has ended",
            self.shard.shard()
        );
    }
}

// Nothing in it is pinned.
impl<S: 'static, R> Unpin for AsyncCall<S, R> {}

impl<S: 'static, R: Send + 'static> Future for AsyncCall<S, R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.must_not_be_its_own();
        let polled = self.settle(cx.waker());
        if polled.is_pending() && must_not_await(self.shard) {
            return Poll::Ready(Err(CallError::OnWorker));
        }
        polled
    }
}

impl<S: 'static, R> Drop for AsyncCall<S, R> {
    fn drop(&mut self) {
        if let Some(answer) = &self.answer {
            answer.give_up();
        }
    }
}

impl<S: 'static, R> fmt::Debug for AsyncCall<S, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AsyncCall")
            .field("shard", &self.shard.shard())
            .finish_non_exhaustive()
    }
}

/// Notifies a worker that a function of its can go on, once until the function's next turn.
pub(super) struct Bell<N> {
    rung: AtomicBool,
    notify: N,
}

impl<N: Fn()> Bell<N> {
    fn ring(&self) {
        // AcqRel, here and in `silence`: what a thread did before it woke the function is seen by
        // the function's next turn, even if the worker was already notified.
        if !self.rung.swap(true, Ordering::AcqRel) {
            (self.notify)();
        }
    }
}

impl<N: Fn() + Send + Sync> Wake for Bell<N> {
    fn wake(self: Arc<Self>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ring();
    }
}

/// A bell that the worker silences.
trait Silence {
    fn silence(&self);
}

impl<N> Silence for Bell<N> {
    fn silence(&self) {
        self.rung.swap(false, Ordering::AcqRel);
    }
}

/// The functions that a thread has begun and that await something, at most one for each shard.
pub(super) struct Suspended<S>(HashMap<usize, Function<S>>);

struct Function<S> {
    job: Job<S>,
    turns: Turns,
    back: Back<S>,
    bell: Arc<dyn Silence>,
    waker: Waker,
}

/// A function has ended: the state, and how it went.
pub(super) struct Over<S> {
    pub(super) state: Box<S>,
    pub(super) ran: Ran,
}

impl<S: 'static> Suspended<S> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Begins a function. Returns `None` if it awaits something. `notify` must cause a
    /// [`go_on`](Self::go_on) by this thread.
    pub(super) fn begin(
        &mut self,
        shard: Tag,
        state: Box<S>,
        job: Job<S>,
        notify: impl Fn() + Send + Sync + 'static,
        wakes: &mut Wakes,
    ) -> Option<Over<S>> {
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(false),
            notify,
        });
        crate::keep_under_tsan(&bell);
        let waker = Waker::from(Arc::clone(&bell));
        let back = Back::default();
        let lent = Lent {
            state: Some(state),
            back: Rc::clone(&back),
        };
        let Some(turns) = Arc::clone(&job).begin(lent, &waker) else {
            return Some(Over {
                state: given_back(&back),
                ran: Ran::Cancelled,
            });
        };
        let function = Function {
            job,
            turns,
            back,
            bell,
            waker,
        };
        self.turn(shard, function, wakes)
    }

    /// Gives a function another turn. Returns `None` if it awaits something, or if there is no
    /// function on this shard.
    pub(super) fn go_on(&mut self, shard: Tag, wakes: &mut Wakes) -> Option<Over<S>> {
        let function = self.0.remove(&shard.shard())?;
        self.turn(shard, function, wakes)
    }

    fn turn(
        &mut self,
        shard: Tag,
        mut function: Function<S>,
        wakes: &mut Wakes,
    ) -> Option<Over<S>> {
        let _running = Running::asynchronous(shard);
        function.bell.silence();
        if function.job.is_given_up() {
            return Some(function.end(Ran::Cancelled));
        }
        let mut cx = Context::from_waker(&function.waker);
        let turns = function.turns.as_mut();
        // The function is responsible for a state that is sound after a panic, as documented.
        let polled = catch_unwind(AssertUnwindSafe(|| turns.poll(&mut cx)));
        let ran = match polled {
            Ok(Poll::Pending) => {
                self.0.insert(shard.shard(), function);
                return None;
            }
            Ok(Poll::Ready(caller)) => {
                caller.into_iter().for_each(|caller| wakes.add(caller));
                Ran::Well
            }
            Err(payload) => {
                let error = CallError::Panicked(message(payload));
                function.job.fail(error, wakes);
                Ran::Panicked
            }
        };
        Some(function.end(ran))
    }

    /// The shards with a function that awaits something.
    pub(super) fn shards(&self) -> Vec<usize> {
        self.0.keys().copied().collect()
    }

    /// Interrupts the function on a shard, if there is one.
    pub(super) fn interrupt(&mut self, shard: Tag, wakes: &mut Wakes) -> Option<Over<S>> {
        let function = self.0.remove(&shard.shard())?;
        let _running = Running::asynchronous(shard);
        let job = Arc::clone(&function.job);
        let over = function.end(Ran::Cancelled);
        job.fail(CallError::Interrupted, wakes);
        Some(over)
    }
}

impl<S> Function<S> {
    /// Drops the future, which is user code, and takes the state.
    fn end(self, ran: Ran) -> Over<S> {
        contained(|| drop(self.turns));
        let state = given_back(&self.back);
        contained(|| drop(self.job));
        Over { state, ran }
    }
}

fn given_back<S>(back: &Back<S>) -> Box<S> {
    back.take()
        .expect("a future that is dropped gives its state back")
}
