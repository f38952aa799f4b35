//! A range as it was: at an earlier record of the log, or at an earlier time.
//!
//! ```text
//!             snapshot                          the state that is asked for
//!    begins ├──────────┤ ends                              │
//!  ──┬──────┴──────────┴───────────────────────────────────┴────────────> log
//!    │        its rows of the range, and all records of the range from `begins` on
//!  first record that is kept
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `mod` | what is asked for, and why there may be no answer |
//! | `base` | from which snapshot it is made |
//! | `reader` | making it, step by step |
//! | `rows` | the rows, as records change them |
//!
//! What holds:
//!
//! 1. A snapshot leads to a state only if it has seen nothing behind it: if it ends at its record
//!    or before. Without such a one the log has to reach back to when the store was empty.
//! 2. All records up to the state's are applied, of the range's keys, as a store does that is
//!    opened again.
//! 3. A key whose time had come is not there: at the time that was asked for, or at that at which
//!    the log has written the record that was asked for.
//! 4. Nothing is read before it is durable, so no crash takes back what somebody has seen.

mod base;
mod reader;
mod rows;

use crate::disk::{FileFailure, Folder, SnapshotError};
use crate::store::Store;
use crate::{Key, Span, Value};
pub use reader::PastReader;
use rows::Filter;
use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;
use thiserror::Error;
use tremula_log::{Point, ReadError, Sequence, Stopped};

/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 20;

/// A range of a database at some point of its past, for [`Store::read_past`].
///
/// A [`Point::Sequence`] is the state behind the record with this number, which is the
/// [`Version`](crate::Version) of the values that it has made, and what [`Event`](crate::Event)s
/// have. Amid an atomic step it shows a part of it. A [`Point::Time`] is the state behind what the
/// log had written by then, which is some milliseconds later than a change itself; a time that
/// has not come is now.
#[must_use]
pub struct Past {
    database: usize,
    span: Span,
    point: Point,
    snapshots: Option<PathBuf>,
    filter: Option<Filter>,
    most_read: u64,
    most_held: usize,
}

impl Past {
    /// The keys of a database in a span at some point, without limits.
    ///
    /// # Panics
    ///
    /// If the number is not below [`DATABASES`](crate::DATABASES).
    pub fn new(database: usize, span: Span, point: Point) -> Self {
        assert!(
            database < crate::DATABASES,
            "there is no database {database}"
        );
        Self {
            database,
            span,
            point,
            snapshots: None,
            filter: None,
            most_read: u64::MAX,
            most_held: usize::MAX,
        }
    }

    /// The snapshots that may be used. Without them the log has to reach back to the beginning.
    pub fn snapshots(mut self, folder: &Folder) -> Self {
        self.snapshots = Some(folder.path().to_path_buf());
        self
    }

    /// Only keys for which this returns `true`. Others take no memory.
    pub fn filter(mut self, filter: impl Fn(&[u8]) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(filter));
        self
    }

    /// The most bytes of snapshots and of the log that are read, and the most that the rows may
    /// hold while they are put together; beyond either there is an error.
    pub const fn limits(mut self, read: u64, held: usize) -> Self {
        (self.most_read, self.most_held) = (read, held);
        self
    }
}

impl fmt::Debug for Past {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            database,
            span,
            point,
            ..
        } = self;
        write!(out, "Past of {span:?} in {database} at {point:?}")
    }
}

/// A range as it was: what [`Store::read_past`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PastRange {
    /// The last record that it has seen; [`Sequence::NONE`] if it is from before the first one.
    pub sequence: Sequence,
    /// The keys in their order, with the values, versions and times that they had.
    pub entries: Vec<(Key, Value)>,
}

/// Why a range is not shown as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PastError {
    /// There is no log.
    #[error("this store has no log, so nothing is known of its past")]
    NoLog,
    /// Nothing that is kept leads to it.
    #[error("nothing that is kept leads to the state of {wanted}; {}", kept(*oldest, *first))]
    Gone {
        /// What was asked for, in words.
        wanted: String,
        /// The oldest state that something leads to, if anything does.
        oldest: Option<Sequence>,
        /// The first record of the log.
        first: Sequence,
    },
    /// It has not come so far.
    #[error("there is no sequence {wanted} yet, the last one is {last}")]
    Beyond {
        /// What was asked for.
        wanted: Sequence,
        /// The last record that there is.
        last: Sequence,
    },
    /// A part of the log that an earlier version has written has no times.
    #[error("the log has no time at sequence {sequence}; ask for a sequence instead")]
    Untimed {
        /// A record there.
        sequence: Sequence,
    },
    /// It takes more reading than is allowed.
    #[error("more than {most} bytes of snapshots and of the log lie before that state")]
    TooFar {
        /// The bytes that may be read.
        most: u64,
    },
    /// The range has more than may be held.
    #[error("the range held more than {most} bytes")]
    TooLarge {
        /// The bytes that may be held.
        most: usize,
    },
    /// A snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The folder of the snapshots cannot be read.
    #[error(transparent)]
    Folder(#[from] FileFailure),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// The log has a record that means nothing.
    #[error("record {sequence} of the log: {source}")]
    Record {
        /// Its sequence.
        sequence: Sequence,
        /// What is wrong.
        #[source]
        source: crate::BadRecord,
    },
    /// The log has stopped before it had what was asked for.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The past of a store with a log.
impl Store {
    /// A range as it was at an earlier record of the log, or at an earlier time, as far back as the
    /// snapshots and the log reach that are kept: see [`Keep`](tremula_log::Keep).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tremula_log::MemoryLog;
    /// use tremula_store::{Engine, Key, Past, Point, Span, Store, StoreConfig, Value};
    ///
    /// let store = Store::logging(&StoreConfig::new(Engine::Aspen), Arc::new(MemoryLog::new()))?;
    /// let key = Key::from(&b"user:1"[..]);
    /// for name in ["Ada", "Grace"] {
    ///     let value = Value::from(name.as_bytes());
    ///     store.commit(|effects| store.database(0).insert(effects, key.clone(), value))?;
    /// }
    /// let versions: Vec<_> = [1, 2].map(|number| {
    ///     let point = Point::Sequence(tremula_store::Sequence::new(number));
    ///     store.read_past(Past::new(0, Span::prefix(b"user:"), point))
    /// }).into_iter().collect::<Result<_, _>>()?;
    /// assert_eq!(&*versions[0].entries[0].1, b"Ada");
    /// assert_eq!(&*versions[1].entries[0].1, b"Grace");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Consistency
    ///
    /// Exactly the effects up to one record, those of all threads and databases; the range has what
    /// the store had then.
    ///
    /// # Costs
    ///
    /// The newest snapshot that leads there is read, of blocks before and behind the range only the
    /// beginning; and all of the log from where that begins up to the state: O(bytes). Memory: the
    /// rows of the range. Takes no lock that writers take. Waits until the log is durable up to the
    /// state. [`past_reader`](Self::past_reader) does the same in steps.
    ///
    /// # Errors
    ///
    /// [`PastError`]: nothing leads to that state any more, it has not come yet, a limit was
    /// passed, or something cannot be read.
    pub fn read_past(&self, past: Past) -> Result<PastRange, PastError> {
        let mut reader = self.past_reader(past)?;
        while !reader.step(self, AT_ONCE)? {}
        Ok(reader.finish())
    }

    /// Begins to read a range as it was, for a program that has other things to do in between.
    ///
    /// # Errors
    ///
    /// There is no log, or the sequence has not come yet.
    pub fn past_reader(&self, past: Past) -> Result<PastReader, PastError> {
        PastReader::new(self, past)
    }
}

/// What is kept, in words.
fn kept(oldest: Option<Sequence>, first: Sequence) -> String {
    match oldest {
        Some(oldest) => format!("the oldest one is that of sequence {oldest}"),
        None => format!("the log begins at sequence {first}, and no snapshot leads to that"),
    }
}

/// A point, in words.
fn words(point: Point) -> String {
    match point {
        Point::Sequence(sequence) => format!("sequence {sequence}"),
        Point::Time(time) => {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            let since = since.unwrap_or_default();
            format!("@{}.{:06}", since.as_secs(), since.subsec_micros())
        }
        _ => "now".to_owned(),
    }
}
