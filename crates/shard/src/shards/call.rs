//! The future of a call.

use super::backend::{Backend, Submitted};
use super::request::{CallError, Operation, Outcome, Pending};
use super::running::{Tag, runs_beside, runs_on};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// The result of a call, to be awaited, or waited for by a thread.
///
/// The call has been made already: awaiting it only fetches the result. Only where the shard's
/// queue was full does the call begin to wait for room when it is first polled.
///
/// Dropping it gives the call up: what has not started will not, and what has is finished, and its
/// result dropped.
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

    /// Sends the request off. The backend is kept only where it must be tried again.
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
            Submitted::Closed => call.pending.outcome = Some(Err(CallError::Closed)),
        }
        call
    }

    /// Whether the call has ended, or must wait.
    fn settle(&mut self, waker: &Waker) -> Poll<Outcome<O::Output>> {
        if let Some(backend) = self.backend.take() {
            match backend.submit(self.shard.shard(), &mut self.pending, Some(waker)) {
                Submitted::Ran | Submitted::Queued => {}
                Submitted::Full => {
                    self.backend = Some(backend);
                    return Poll::Pending;
                }
                Submitted::Closed => return Poll::Ready(Err(CallError::Closed)),
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

    /// Says so where a function waits for its own shard, under every strategy alike.
    #[inline]
    fn must_not_be_its_own(&self) {
        debug_assert!(
            !runs_on(self.shard),
            "a function on shard {0} waits for a call on shard {0}, which cannot begin before the \
             function has ended",
            self.shard.shard()
        );
    }

    /// Waits for the result as a thread.
    ///
    /// # Errors
    ///
    /// As for awaiting it; and a worker of any shards must not wait, unless the result is there
    /// already: it would wait for what only workers can do. Nor must a function on the same shards:
    /// what it has asked for may have to wait for its own end. Both get [`CallError::OnWorker`].
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
        let waker = waker_of_this_thread();
        loop {
            match self.settle(&waker) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => std::thread::park(),
            }
        }
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
        if polled.is_pending() && runs_beside(self.shard) {
            // A function has nothing to return to: whoever polls here is going to block.
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

fn waker_of_this_thread() -> Waker {
    thread_local! {
        static WAKER: RefCell<Option<Waker>> = const { RefCell::new(None) };
    }
    let make = || {
        let waker = Arc::new(WakeThread(std::thread::current()));
        crate::keep_under_tsan(&waker);
        Waker::from(waker)
    };
    let known = WAKER.try_with(|waker| waker.borrow_mut().get_or_insert_with(make).clone());
    known.unwrap_or_else(|_| make())
}

/// Waits for a future as a thread.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = waker_of_this_thread();
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
