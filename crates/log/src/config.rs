//! The settings of a log in files.

use crate::error::OpenError;
use crate::files::format::{FRAME_HEAD, SEGMENT_HEAD};
use std::time::Duration;

/// The shortest segment: a few frames.
const LEAST_SEGMENT: u64 = 1024;

/// The longest batch: the length of a frame is a number of 32 bits.
const MOST_BATCH: usize = 1 << 31;

/// What a log keeps of the records that its caller needs no more: [`Config::keep`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// Segments of this many bytes at least, beside the one that is written.
    Bytes(u64),
    /// What was written within this time.
    Time(Duration),
}

/// The settings of a [`FileLog`](crate::FileLog).
///
/// ```
/// use std::time::Duration;
/// use tremula_log::Config;
///
/// // As Redis with `appendfsync everysec`: what nobody waits for is synced once a second.
/// let everysec = Config::default();
/// // As `appendfsync no`: the system decides when; a wait for a record still makes a sync.
/// let no = Config::default().sync_every(None);
/// assert_ne!(everysec, no);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    pub(crate) segment_bytes: u64,
    pub(crate) prepared: usize,
    pub(crate) kept: usize,
    pub(crate) keep: Keep,
    pub(crate) sync_every: Option<Duration>,
    pub(crate) gather: Duration,
    pub(crate) max_batch: usize,
    pub(crate) max_pending: usize,
    pub(crate) retry_after: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            prepared: 1,
            kept: 4,
            keep: Keep::Nothing,
            sync_every: Some(Duration::from_secs(1)),
            gather: Duration::from_millis(1),
            max_batch: 1 << 30,
            max_pending: 64 << 20,
            retry_after: Duration::from_secs(1),
        }
    }
}

impl Config {
    /// Bytes of a segment's file, 1 KiB at least [default: 64 MiB]. A longer batch gets a segment
    /// of its own length. Truncation frees whole segments.
    #[must_use]
    pub const fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Segments that a thread fills with zeroes ahead of time, if none are left that were truncated
    /// [default: 1]. With 0 there is no such thread: the log stops to fill a segment each time it
    /// needs one.
    #[must_use]
    pub const fn prepared(mut self, segments: usize) -> Self {
        self.prepared = segments;
        self
    }

    /// Segments that are kept when they are truncated, to be used again [default: 4]. That is
    /// faster than to fill new ones, and takes their room on the disk.
    #[must_use]
    pub const fn kept(mut self, segments: usize) -> Self {
        self.kept = segments;
        self
    }

    /// What stays when the log is truncated, though its caller needs it no more [default: nothing].
    /// Whole segments stay, so this is a little more than what is asked for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_log::{Config, Keep};
    ///
    /// // So that any state of the last week can be restored.
    /// let week = Config::default().keep(Keep::Time(Duration::from_secs(7 * 24 * 3600)));
    /// # assert_ne!(week, Config::default());
    /// ```
    #[must_use]
    pub const fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// How long something may be unsynced that nobody waits for [default: one second]. `None`
    /// leaves that to the system. A wait always makes the log sync at once, so each writer
    /// decides how durable its write is: it waits (`always`), or it does not (`everysec`, `no`).
    #[must_use]
    pub const fn sync_every(mut self, period: Option<Duration>) -> Self {
        self.sync_every = period;
        self
    }

    /// How long batches gather before they are written, if nobody waits for them [default: one
    /// millisecond]. The kill of the process loses that much, though the machine goes on.
    #[must_use]
    pub const fn gather(mut self, time: Duration) -> Self {
        self.gather = time;
        self
    }

    /// Bytes that a batch may have, 2 GiB at most [default: 1 GiB].
    #[must_use]
    pub const fn max_batch(mut self, bytes: usize) -> Self {
        self.max_batch = bytes;
        self
    }

    /// Bytes that may wait to be written [default: 64 MiB]. A batch is taken even if it alone is
    /// longer, when nothing else waits.
    #[must_use]
    pub const fn max_pending(mut self, bytes: usize) -> Self {
        self.max_pending = bytes;
        self
    }

    /// How long the log waits before it tries again to write to a full disk [default: one second].
    #[must_use]
    pub const fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = time;
        self
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let problem = if self.segment_bytes < LEAST_SEGMENT {
            let given = self.segment_bytes;
            format!("a segment of {given} bytes is too short; give {LEAST_SEGMENT} at least")
        } else if self.max_batch > MOST_BATCH {
            let given = self.max_batch;
            format!("a batch of {given} bytes is too long; allow {MOST_BATCH} at most")
        } else {
            return Ok(());
        };
        Err(OpenError::Config(problem))
    }

    /// The bytes that frames have in an ordinary segment. The end is kept for the note that another
    /// segment continues it.
    pub(crate) const fn usable(&self) -> u64 {
        usable(self.segment_bytes)
    }
}

/// The bytes that frames have in a segment of this length.
pub(crate) const fn usable(segment_bytes: u64) -> u64 {
    segment_bytes.saturating_sub((SEGMENT_HEAD + FRAME_HEAD) as u64)
}
