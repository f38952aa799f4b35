//! The future of a call.

use super::backend::{Backend, Submitted};
use super::request::{CallError, Operation, Outcome, Pending};
use super::running::{Tag, must_not_await, runs_beside, runs_on};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use tremula_sync::system::Arc;
use tremula_sync::thread::{self, Thread};

/// How often a thread looks whether its request has been run before it sleeps. Under a checker it
/// sleeps at once.
const LOOKS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 10 };

/// Before the first ones it pauses, longer each time, for half a microsecond in all. Before the
/// others it yields its core, perhaps to the thread that runs the request.
const PAUSING_LOOKS: u32 = 6;

/// The result of a call. A task awaits it, or a thread waits for it.
///
/// The call has already been made: awaiting it only fetches the result. Only if the shard's queue
/// was full does the call begin to wait for room when it is first polled.
///
/// Dropping it gives the call up. If the function has not started, it never runs. If it has, it
/// runs to its end, and its result is dropped.
///
/// # Panics
///
/// Polled again after it has ended.
#[must_use = "dropping a call gives it up; `send` is for what nobody waits for"]
pub struct Call<S: 'static, O: Operation<S>> {
    pub(super) backend: Option<Arc<dyn Backend<S>>>,
    pub(super) shard: Tag,
    pub(super) pending: Pending<O, O::Output>,
}

impl<S: 'static, O: Operation<S>> Call<S, O> {
    /// A call that has ended.
    #[inline]
    pub(super) fn ended(shard: Tag, outcome: Outcome<O::Output>) -> Self {
        Self {
            backend: None,
            shard,
            pending: Pending::ended(outcome),
        }
    }

    /// Submits the request. Keeps the backend only if the request must be submitted again.
    #[inline]
    pub(super) fn begin(backend: &Arc<dyn Backend<S>>, shard: Tag, operation: O) -> Self {
        let mut call = Self {
            backend: None,
            shard,
            pending: Pending::new(operation, true),
        };
        match backend.submit(shard.shard(), &mut call.pending, None) {
            Submitted::Ran | Submitted::Queued => {}
            Submitted::Full => call.backend = Some(Arc::clone(backend)),
            Submitted::Closed | Submitted::NoExecutor(_) => {
                call.pending.outcome = Some(Err(CallError::Closed))
            }
        }
        call
    }

    /// The outcome, if the call has ended.
    fn settle(&mut self, waker: &Waker) -> Poll<Outcome<O::Output>> {
        if let Some(backend) = self.backend.take() {
            match backend.submit(self.shard.shard(), &mut self.pending, Some(waker)) {
                Submitted::Ran | Submitted::Queued => {}
                Submitted::Full => {
                    self.backend = Some(backend);
                    return Poll::Pending;
                }
                Submitted::Closed | Submitted::NoExecutor(_) => {
                    return Poll::Ready(Err(CallError::Closed));
                }
            }
        }
        if let Some(outcome) = self.pending.outcome.take() {
            return Poll::Ready(outcome);
        }
        let slot = self.pending.slot.as_ref();
        let polled = slot
            .expect("a call is not polled after its end")
            .poll(waker);
        if polled.is_ready() {
            self.pending.slot = None;
        }
        polled
    }

    /// Panics in a debug build if a function waits for its own shard, under every strategy alike.
    #[inline]
    fn must_not_be_its_own(&self) {
        debug_assert!(
            !runs_on(self.shard),
            "a function on shard {0} waits for a call on shard {0}, which cannot begin before the \
             function has ended",
            self.shard.shard()
        );
    }

    /// Blocks the thread until the result is there.
    ///
    /// # Errors
    ///
    /// The same as for awaiting it. In addition, a worker of any shards must not wait unless the
    /// result is already there, because it would wait for what only workers can do. Nor must a
    /// function on the same shards, because its request may have to wait for its own end. Both get
    /// [`CallError::OnWorker`].
    ///
    /// # Panics
    ///
    /// A function that waits for a call on its own shard waits for itself. In a build with debug
    /// assertions it panics; without them it gets [`CallError::OnWorker`].
    ///
    /// ```
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let shards = Shards::start(Config::new(Strategy::Affinity), |_| 0_u64).unwrap();
    /// let sum = shards.call("key", |count| { *count += 2; *count }).wait();
    /// assert_eq!(sum, Ok(2));
    /// ```
    #[inline]
    pub fn wait(mut self) -> Result<O::Output, CallError> {
        self.must_not_be_its_own();
        if let Some(outcome) = self.pending.outcome.take() {
            return outcome;
        }
        self.wait_here()
    }

    fn wait_here(mut self) -> Result<O::Output, CallError> {
        if super::worker::is_worker() || runs_beside(self.shard) {
            return match self.settle(Waker::noop()) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => Err(CallError::OnWorker),
            };
        }
        if let Some(outcome) = self.settle_soon() {
            return outcome;
        }
        wait_until_ready(&waker_of_this_thread(), |waker| self.settle(waker))
    }

    /// Looks for a while whether a queued request has been run, before the thread sleeps: to sleep
    /// and to be woken takes longer than most requests, and the thread that runs this one would pay
    /// for the second half of that.
    fn settle_soon(&mut self) -> Option<Outcome<O::Output>> {
        let slot = self
            .pending
            .slot
            .as_ref()
            .filter(|_| self.backend.is_none());
        let slot = slot?;
        let outcome = (0..LOOKS).find_map(|look| {
            if look < PAUSING_LOOKS {
                (0..1 << look).for_each(|_| tremula_sync::spin_loop());
            } else {
                thread::yield_now();
            }
            slot.outcome()
        })?;
        self.pending.slot = None;
        Some(outcome)
    }
}

// Nothing in it is pinned.
impl<S: 'static, O: Operation<S>> Unpin for Call<S, O> {}

impl<S: 'static, O: Operation<S>> Future for Call<S, O> {
    type Output = Result<O::Output, CallError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.must_not_be_its_own();
        if let Some(outcome) = self.pending.outcome.take() {
            return Poll::Ready(outcome);
        }
        let polled = self.settle(cx.waker());
        if polled.is_pending() && must_not_await(self.shard) {
            // The function cannot return to an executor, so its thread is about to block.
            return Poll::Ready(Err(CallError::OnWorker));
        }
        polled
    }
}

impl<S: 'static, O: Operation<S>> Drop for Call<S, O> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = &self.pending.slot {
            slot.give_up();
        }
    }
}

impl<S: 'static, O: Operation<S>> fmt::Debug for Call<S, O> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call")
            .field("shard", &self.shard.shard())
            .finish_non_exhaustive()
    }
}

/// Wakes a thread that is parked.
struct WakeThread(Thread);

impl Wake for WakeThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

pub(super) fn waker_of_this_thread() -> Waker {
    tremula_sync::thread_local! {
        static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
    }
    let make = || {
        let waker = Arc::new(WakeThread(thread::current()));
        crate::keep_under_tsan(&waker);
        Waker::from(waker)
    };
    let known = WAKER.try_with(|waker| waker.borrow_mut().get_or_insert_with(make).clone());
    known.unwrap_or_else(|_| make())
}

/// Blocks the thread until a future is ready.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    wait_until_ready(&waker_of_this_thread(), |waker| {
        future.as_mut().poll(&mut Context::from_waker(waker))
    })
}

/// Parks the thread, which `waker` wakes, until `poll` is ready.
pub(super) fn wait_until_ready<T>(waker: &Waker, mut poll: impl FnMut(&Waker) -> Poll<T>) -> T {
    loop {
        match poll(waker) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
