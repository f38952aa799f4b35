//! A watch as a stream of tasks.

use super::{Event, Step, Watch, WatchError};
use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Steps of reading in one poll, before the other tasks come: about a megabyte of the log.
const STEPS: usize = 16;

/// Ends after an error, as the iterator does. It needs no thread: the log wakes the task when there
/// is more, whatever the runtime is. A poll reads what there is, which blocks no longer than the
/// disk takes.
///
/// ```
/// use futures_util::StreamExt;
/// use std::sync::Arc;
/// use tremula_log::MemoryLog;
/// use tremula_store::{Engine, Key, Since, Span, Store, StoreConfig, Value};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let store = Store::logging(&StoreConfig::new(Engine::Aspen), Arc::new(MemoryLog::new()))?;
/// let watch = store.watch(0, Span::prefix(b"user:"), Since::Now)?;
/// for name in ["user:1", "other", "user:2"] {
///     let (key, value) = (Key::from(name.as_bytes()), Value::from(&b"here"[..]));
///     store.commit(|effects| store.database(0).insert(effects, key, value))?;
/// }
/// store.forward();
/// let keys: Vec<_> = watch
///     .take(2)
///     .map(|event| event.map(|event| event.key().map(<[u8]>::to_vec)))
///     .collect()
///     .await;
/// assert_eq!(keys[1].as_ref().unwrap().as_deref(), Some(&b"user:2"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Stream for Watch<'_> {
    type Item = Result<Event<'static>, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.has_failed {
            return Poll::Ready(None);
        }
        for _ in 0..STEPS {
            if let Some(event) = ready!(this.poll_step(task)) {
                this.has_failed = event.is_err();
                return Poll::Ready(Some(event));
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

impl FusedStream for Watch<'_> {
    fn is_terminated(&self) -> bool {
        self.has_failed
    }
}

impl Watch<'_> {
    /// One step; `None` if there may be more.
    fn poll_step(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<'static>, WatchError>>> {
        let sequence = match self.step() {
            Ok(Step::Event(event)) => return Poll::Ready(Some(Ok(event))),
            Ok(Step::Again) => return Poll::Ready(None),
            Ok(Step::Wait(sequence)) => sequence,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        let Some(log) = self.store.log() else {
            return Poll::Ready(Some(Err(WatchError::NoLog)));
        };
        // Registered before the old one is dropped, which may wait for the same record.
        let mut until = log.until(sequence);
        let polled = Pin::new(&mut until).poll(task);
        self.until = Some(until);
        let stopped = ready!(polled).err();
        Poll::Ready(stopped.map(|stopped| Err(stopped.into())))
    }
}
