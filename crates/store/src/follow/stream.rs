//! A watch as a stream of tasks.

use super::{Event, Step, Watch, WatchError};
use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tremula_log::{Sequence, Until};

/// Steps of reading in one poll, before the other tasks come: about a megabyte of the log.
const STEPS: usize = 16;

/// What happens to a range, as a [`Stream`]: made by [`Watch::into_stream`]. Not the watch itself,
/// which is an iterator: both have a `map` and a `take`.
///
/// It ends after an error, as the iterator does. It needs no thread: the log wakes the task when
/// there is more, whatever the runtime is. A poll reads what there is, which blocks no longer than
/// the disk takes.
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
/// let stream = store.watch(0, Span::prefix(b"user:"), Since::Now)?.into_stream();
/// for name in ["user:1", "other", "user:2"] {
///     let (key, value) = (Key::from(name.as_bytes()), Value::from(&b"here"[..]));
///     store.commit(|effects| store.database(0).insert(effects, key, value))?;
/// }
/// store.forward();
/// let keys: Vec<_> = stream
///     .take(2)
///     .map(|event| event.map(|event| event.key().map(<[u8]>::to_vec)))
///     .collect()
///     .await;
/// assert_eq!(keys[1].as_ref().unwrap().as_deref(), Some(&b"user:2"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WatchStream<'s> {
    watch: Watch<'s>,
    /// For what the task waits.
    until: Option<Until<'s>>,
}

impl<'s> Watch<'s> {
    /// The rest of what it shows, as a stream.
    #[must_use]
    pub const fn into_stream(self) -> WatchStream<'s> {
        WatchStream {
            watch: self,
            until: None,
        }
    }
}

impl<'s> WatchStream<'s> {
    /// As [`Watch::next_sequence`].
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.watch.next_sequence()
    }

    /// As [`Watch::is_complete`].
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.watch.is_complete()
    }

    /// The rest of what it shows, as an iterator.
    #[must_use]
    pub fn into_watch(self) -> Watch<'s> {
        self.watch
    }
}

impl fmt::Debug for WatchStream<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "WatchStream that goes on at {}", self.next_sequence())
    }
}

impl Stream for WatchStream<'_> {
    type Item = Result<Event<'static>, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.watch.has_failed {
            return Poll::Ready(None);
        }
        for _ in 0..STEPS {
            if let Some(event) = ready!(this.poll_step(task)) {
                this.watch.has_failed = event.is_err();
                return Poll::Ready(Some(event));
            }
        }
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

impl FusedStream for WatchStream<'_> {
    fn is_terminated(&self) -> bool {
        self.watch.has_failed
    }
}

impl WatchStream<'_> {
    /// One step; `None` if there may be more.
    fn poll_step(
        &mut self,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<'static>, WatchError>>> {
        let sequence = match self.watch.step() {
            Ok(Step::Event(event)) => return Poll::Ready(Some(Ok(event))),
            Ok(Step::Again) => return Poll::Ready(None),
            Ok(Step::Wait(sequence)) => sequence,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        let Some(log) = self.watch.store.log() else {
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
