//! Following a range: its snapshot, and each change of it in the order of the log.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | [`Watch`], an iterator that waits |
//! | `event` | what has happened to a key or a range |
//! | `events` | reading events out of the log |
//! | `follower` | a snapshot that goes over into the log without a gap; opens with its invariants |
//! | `stream` | a [`Watch`] as a stream of tasks |
//!
//! The log is the only source: a watcher that is slow reads what it has missed from the disk, and
//! nothing is kept for it in memory. Only durable records are shown, so no crash takes back a
//! change that a watcher has seen, and no sequence ever stands for another change later.

mod event;
mod events;
mod follower;
mod stream;

use crate::store::Store;
pub use event::{Event, Happened, Previous, Span};
pub use events::Events;
pub use follower::{Follower, Following};
use std::collections::VecDeque;
pub use stream::WatchStream;
use thiserror::Error;
use tremula_log::{ReadError, Sequence, Stopped};

/// Bytes of the log that a watch reads at once.
const AT_ONCE: usize = 64 << 10;

/// With what a [`Watch`] begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// With what happens from now on.
    Now,
    /// With what has this sequence or a later one.
    Sequence(Sequence),
    /// With everything that is there, and then what happens to it.
    Snapshot,
}

/// Why a range cannot be followed, or not any further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WatchError {
    /// There is no log.
    #[error("this store has no log, so there is nothing to follow")]
    NoLog,
    /// The log does not reach back so far any more.
    #[error(
        "sequence {from} is not kept any more, the oldest one is {oldest}; begin with a snapshot"
    )]
    Gone {
        /// What was to be read next.
        from: Sequence,
        /// The first sequence that there is.
        oldest: Sequence,
    },
    /// The log has not come so far: what was seen before is not of this log, or was lost.
    #[error("there is no sequence {from} yet, the next one is {next}; begin with a snapshot")]
    Beyond {
        /// What was to be read.
        from: Sequence,
        /// The sequence of the next change.
        next: Sequence,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(ReadError),
    /// The log has a record that means nothing.
    #[error("record {sequence} of the log: {source}")]
    Record {
        /// Its sequence.
        sequence: Sequence,
        /// What is wrong.
        #[source]
        source: crate::BadRecord,
    },
    /// What was before a change is asked for, and was not written with it.
    #[error("the log does not have what was before the change {sequence}")]
    NoPrevious {
        /// The change.
        sequence: Sequence,
    },
    /// The log has stopped: nothing more happens.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<ReadError> for WatchError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Truncated { from, first } => Self::Gone {
                from,
                oldest: first,
            },
            ReadError::Beyond { from, next } => Self::Beyond { from, next },
            other => Self::Log(other),
        }
    }
}

/// What happens to a range of a store, in the order of the log: made by [`Store::watch`].
///
/// As an iterator it waits for the next event, and ends only after an error. In asynchronous code
/// use [`event`](Self::event), or make a [stream](Self::into_stream) of it. None of them computes
/// anything meanwhile.
///
/// # Consistency
///
/// Each change of the range is shown once, in the order in which it took effect for its key, when
/// it is durable. Changes of one atomic step follow each other. A copy that applies the rows of the
/// snapshot and the events behind them is, behind [`Happened::Complete`], what the range was when
/// the last event took effect; before that, the same holds for the keys that the rows have reached.
///
/// # Costs
///
/// Reading the log from where the watch is: O(records), those of other keys too. Memory: one part
/// of the log, or of the snapshot, of some hundred kilobytes, or one value if it is longer. A watch
/// holds up no writer, but for the copy of a part of a snapshot, and does not keep the log from
/// being truncated. Waiting makes the log sync at once, as any [wait](tremula_log::Log::wait) does.
pub struct Watch<'s> {
    store: &'s Store,
    follower: Follower,
    ready: VecDeque<Event<'static>>,
    /// What comes behind the events that are ready.
    next: Sequence,
    has_failed: bool,
}

impl Store {
    /// Follows the keys of a database from one bound to another. The store needs a log.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tremula_log::MemoryLog;
    /// use tremula_store::{Engine, Happened, Key, Since, Span, Store, StoreConfig, Value};
    ///
    /// let log = Arc::new(MemoryLog::new());
    /// let store = Store::logging(&StoreConfig::new(Engine::Aspen), log)?;
    /// let mut watch = store.watch(0, Span::prefix(b"user:"), Since::Now)?;
    ///
    /// let (key, value) = (Key::from(&b"user:1"[..]), Value::from(&b"Ada"[..]));
    /// store.commit(|effects| store.database(0).insert(effects, key, value))?;
    /// store.forward();
    ///
    /// let event = watch.next().ok_or("an event")??;
    /// assert!(matches!(event.what, Happened::Set { key, .. } if *key == *b"user:1"));
    /// // After a disconnect, another watch goes on with Since::Sequence(watch.next_sequence()).
    /// assert_eq!(watch.next_sequence(), event.sequence.plus(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no log, or it does not have the sequence to begin with: [`WatchError`].
    ///
    /// # Panics
    ///
    /// If the number is not below [`DATABASES`](crate::DATABASES).
    pub fn watch(
        &self,
        database: usize,
        span: Span,
        since: Since,
    ) -> Result<Watch<'_>, WatchError> {
        let follower = self.follower(database, span, since)?;
        Ok(Watch {
            store: self,
            next: follower.next_sequence(),
            follower,
            ready: VecDeque::new(),
            has_failed: false,
        })
    }
}

impl Watch<'_> {
    /// The next event, if there is one already. O(records of other keys before it), up to a limit.
    ///
    /// # Errors
    ///
    /// As [`Store::watch`]. After an error the watch shows nothing more.
    pub fn try_next(&mut self) -> Result<Option<Event<'static>>, WatchError> {
        loop {
            match self.step()? {
                Step::Event(event) => return Ok(Some(event)),
                Step::Again => (),
                Step::Wait(_) => return Ok(None),
            }
        }
    }

    /// The next event, when there is one. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`try_next`](Self::try_next), and if the log has stopped.
    pub async fn event(&mut self) -> Result<Event<'static>, WatchError> {
        loop {
            match self.step()? {
                Step::Event(event) => return Ok(event),
                Step::Again => (),
                Step::Wait(sequence) => {
                    let log = self.store.log().ok_or(WatchError::NoLog)?;
                    log.until(sequence).await?;
                }
            }
        }
    }

    /// The sequence from which another watch shows what this one has not shown yet. While rows of a
    /// snapshot come, that other watch has to begin with a snapshot too.
    #[must_use]
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Whether the snapshot that was asked for has been shown, if one was.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ready.is_empty() && self.follower.is_complete()
    }

    fn step(&mut self) -> Result<Step, WatchError> {
        if let Some(event) = self.ready.pop_front() {
            self.next = match event.what {
                Happened::Row { .. } => self.next,
                _ => event.sequence.plus(1),
            };
            return Ok(Step::Event(event));
        }
        self.next = self.follower.next_sequence();
        let ready = &mut self.ready;
        let mut show = |event: Event<'_>| ready.push_back(event.into_owned());
        match self.follower.step(self.store, AT_ONCE, &mut show)? {
            Following::More => Ok(Step::Again),
            Following::Wait(_) if !self.ready.is_empty() => Ok(Step::Again),
            Following::Wait(sequence) => Ok(Step::Wait(sequence)),
        }
    }

    fn wait(&mut self) -> Result<Event<'static>, WatchError> {
        loop {
            match self.step()? {
                Step::Event(event) => return Ok(event),
                Step::Again => (),
                Step::Wait(sequence) => {
                    let log = self.store.log().ok_or(WatchError::NoLog)?;
                    log.wait(sequence)?;
                }
            }
        }
    }
}

enum Step {
    Event(Event<'static>),
    Again,
    /// Until this record is durable.
    Wait(Sequence),
}

impl Iterator for Watch<'_> {
    type Item = Result<Event<'static>, WatchError>;

    /// Waits for the next event.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let event = self.wait();
        self.has_failed = event.is_err();
        Some(event)
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Watch that goes on at {}", self.next)
    }
}
