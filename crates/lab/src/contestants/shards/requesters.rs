//! The threads on which requesters run in a simulation: virtual ones, each of which polls some of
//! the requesters and parks while none of them can go on. They take the place of tokio's runtime,
//! whose threads know no virtual time.

use crate::{
    measure::{Span, Stage, side_by_side},
    workload::ShardCacheJob,
};
use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};
use tremula_sync::{
    atomic::{AtomicBool, Ordering},
    thread::{self, Thread},
};

/// The threads.
pub(super) struct Requesters {
    threads: usize,
}

/// A requester's waker: notes that it can go on, and wakes its thread.
struct Bell {
    rung: AtomicBool,
    thread: Thread,
}

impl Bell {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            rung: AtomicBool::new(true),
            thread: thread::current(),
        })
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: pairs with the acquire in `turn`, for what the future waited for.
        self.rung.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A requester that runs, and what it returned at its end.
struct Task<F: Future> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
    output: Option<F::Output>,
}

impl<F: Future> Task<F> {
    fn new(future: F) -> Self {
        let bell = Bell::new();
        Self {
            future: Box::pin(future),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            output: None,
        }
    }

    /// Polls the future if it can go on; returns whether it could.
    fn turn(&mut self) -> bool {
        if self.output.is_some() || !self.bell.rung.load(Ordering::Acquire) {
            return false;
        }
        self.bell.rung.store(false, Ordering::Relaxed);
        let mut context = Context::from_waker(&self.waker);
        if let Poll::Ready(output) = self.future.as_mut().poll(&mut context) {
            self.output = Some(output);
        }
        true
    }
}

impl Requesters {
    #[expect(clippy::unnecessary_wraps, reason = "those of tokio may fail")]
    pub(super) const fn new(job: &ShardCacheJob) -> Result<Self, String> {
        Ok(Self {
            threads: job.workers,
        })
    }

    #[expect(clippy::unused_self, reason = "those of tokio have a runtime")]
    pub(super) fn wait_for<R>(&self, future: impl Future<Output = R>) -> R {
        let mut future = pin!(future);
        let bell = Bell::new();
        let waker = Waker::from(bell);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => thread::park(),
            }
        }
    }

    /// Runs the requesters, and returns what each returned.
    #[expect(clippy::unnecessary_wraps, reason = "those of tokio may fail")]
    pub(super) fn run<F: Future<Output: Send>>(
        &self,
        span: Span,
        requester: impl Fn(usize, &Arc<Stage>) -> F + Sync,
    ) -> Result<Vec<F::Output>, String> {
        let stage = Arc::new(Stage::new());
        let work = |thread: usize| {
            let numbers = (thread..ShardCacheJob::REQUESTERS).step_by(self.threads);
            let task = |number| Task::new(requester(number, &stage));
            let mut tasks: Vec<_> = numbers.map(task).collect();
            while tasks.iter().any(|task| task.output.is_none()) {
                let turns = tasks.iter_mut().map(Task::turn).filter(|went_on| *went_on);
                if turns.count() == 0 {
                    thread::park();
                }
            }
            let outputs = tasks.into_iter().filter_map(|task| task.output);
            outputs.collect::<Vec<_>>()
        };
        let outputs = side_by_side(self.threads, work, || stage.pass(span));
        Ok(outputs.into_iter().flatten().collect())
    }
}
