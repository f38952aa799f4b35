//! Making an earlier state of a range, step by step.

use super::base::{Base, Choice, Unfit, expiry_at};
use super::rows::Rows;
use super::{Past, PastError, PastRange};
use crate::disk::{SnapshotError, SnapshotRange};
use crate::effects::record::Record;
use crate::store::Store;
use crate::{Expiry, Span, Version};
use std::mem;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::SystemTime;
use tremula_log::{Entry, Log, Point, ReadError, Reader, Sequence};
use tremula_sync::system::Arc;

/// What a record counts as besides its bytes: what it takes to look at it.
const RECORD: u64 = 32;

/// How often a newer snapshot is tried because the log was cut meanwhile.
const ATTEMPTS: usize = 20;

/// Reads a range as it was, step by step: made by [`Store::past_reader`].
pub struct PastReader {
    database: usize,
    span: Span,
    point: Point,
    folder: Option<PathBuf>,
    /// The last record that the state may have.
    last: Sequence,
    rows: Rows,
    /// Bytes that may be read still, of how many.
    left: u64,
    most_read: u64,
    most_held: usize,
    stage: Stage,
    damaged: Vec<Unfit>,
    attempts: usize,
    /// What it has come to.
    seen: Sequence,
    /// The time by which keys have expired, and whether it was asked for.
    at: Option<Expiry>,
    is_timed: bool,
}

enum Stage {
    /// The log is to be durable up to the point.
    Wait,
    /// A snapshot is to be chosen.
    Choose,
    Snapshot(Box<SnapshotRange>, Box<dyn Reader>),
    Log(Box<dyn Reader>),
    Done,
}

impl PastReader {
    pub(super) fn new(store: &Store, past: Past) -> Result<Self, PastError> {
        store.log().ok_or(PastError::NoLog)?;
        let newest = store.last_effect();
        let now = SystemTime::now();
        let (point, last, at) = match past.point {
            Point::Sequence(wanted) if wanted > newest => {
                return Err(PastError::Beyond {
                    wanted,
                    last: newest,
                });
            }
            Point::Sequence(wanted) => (past.point, wanted, None),
            Point::Time(time) if time < now => (past.point, newest, expiry_at(time)),
            _ => (Point::Sequence(newest), newest, expiry_at(now)),
        };
        Ok(Self {
            database: past.database,
            rows: Rows::new(past.span.clone(), past.filter),
            span: past.span,
            point,
            folder: past.snapshots,
            last,
            left: past.most_read,
            most_read: past.most_read,
            most_held: past.most_held,
            stage: Stage::Wait,
            damaged: Vec::new(),
            attempts: 0,
            seen: Sequence::NONE,
            at,
            is_timed: at.is_some(),
        })
    }

    /// What the rows hold so far, in bytes.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.rows.bytes()
    }

    /// Reads about this many bytes. Returns whether the range is complete. The first call may wait
    /// for the disk.
    ///
    /// # Errors
    ///
    /// As [`Store::read_past`]; it is of no use then.
    pub fn step(&mut self, store: &Store, most: usize) -> Result<bool, PastError> {
        let log = store.log().ok_or(PastError::NoLog)?;
        match mem::replace(&mut self.stage, Stage::Done) {
            Stage::Wait => {
                if log.durable() < self.last {
                    store.forward();
                    log.wait(self.last)?;
                }
                self.stage = Stage::Choose;
            }
            Stage::Choose => self.choose(store, log)?,
            Stage::Snapshot(snapshot, reader) => self.read_snapshot(most, snapshot, reader)?,
            Stage::Log(reader) => match self.read_log(most, log, reader) {
                // A newer snapshot may lead there as well.
                Err(PastError::Log(ReadError::Truncated { .. })) if self.attempts < ATTEMPTS => {
                    self.attempts += 1;
                    self.begin_anew();
                }
                read => read?,
            },
            Stage::Done => {}
        }
        if self.rows.bytes() > self.most_held {
            let most = self.most_held;
            return Err(PastError::TooLarge { most });
        }
        Ok(matches!(self.stage, Stage::Done))
    }

    /// The range, once a [`step`](Self::step) has said that it is complete. O(n).
    #[must_use]
    pub fn finish(self) -> PastRange {
        PastRange {
            sequence: self.seen,
            entries: self.rows.into_entries(self.at),
        }
    }

    fn begin_anew(&mut self) {
        self.rows.clear();
        self.stage = Stage::Choose;
    }

    fn choose(&mut self, store: &Store, log: &Arc<dyn Log>) -> Result<(), PastError> {
        let choice = Choice {
            store,
            log: &**log,
            folder: self.folder.as_deref(),
            of: (self.database, &self.span),
            point: self.point,
        };
        let Base {
            snapshot,
            reader,
            begins,
            written,
        } = choice.make(&mut self.damaged)?;
        self.seen = begins.before();
        if !self.is_timed {
            self.at = written.and_then(expiry_at);
        }
        self.stage = match snapshot {
            Some(snapshot) => Stage::Snapshot(Box::new(snapshot), reader),
            None => Stage::Log(reader),
        };
        Ok(())
    }

    /// Counts bytes that were read.
    const fn spend(&mut self, bytes: u64) -> Result<(), PastError> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(PastError::TooFar {
                most: self.most_read,
            }),
        }
    }

    fn read_snapshot(
        &mut self,
        most: usize,
        mut snapshot: Box<SnapshotRange>,
        reader: Box<dyn Reader>,
    ) -> Result<(), PastError> {
        let rows = &mut self.rows;
        let step = snapshot.step(most, &mut |key, text, version, expiry| {
            rows.put(key, text, version, expiry);
        });
        match step {
            Ok((bytes, more)) => {
                self.spend(bytes as u64)?;
                self.stage = match more {
                    ControlFlow::Continue(()) => Stage::Snapshot(snapshot, reader),
                    ControlFlow::Break(()) => Stage::Log(reader),
                };
                Ok(())
            }
            // An older one may be whole.
            Err(error @ SnapshotError::Damaged { .. }) => {
                let path = snapshot.path().to_path_buf();
                self.damaged.push(Unfit { path, error });
                self.begin_anew();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read_log(
        &mut self,
        most: usize,
        log: &Arc<dyn Log>,
        mut reader: Box<dyn Reader>,
    ) -> Result<(), PastError> {
        let enough = self.left.saturating_sub(most as u64);
        loop {
            if reader.next_sequence() > self.last {
                return Ok(());
            }
            let Some(entry) = reader.next().transpose()? else {
                // Only the beginning of a batch is durable.
                log.wait(log.durable().plus(1))?;
                break;
            };
            if !self.read_entry(&entry)? {
                return Ok(());
            }
            if self.left <= enough {
                break;
            }
        }
        self.stage = Stage::Log(reader);
        Ok(())
    }

    /// Applies the records of a batch. Returns whether others may come behind it.
    fn read_entry(&mut self, entry: &Entry) -> Result<bool, PastError> {
        match self.point {
            Point::Time(time) => {
                let sequence = entry.first();
                let written = entry.written().ok_or(PastError::Untimed { sequence })?;
                if written > time {
                    return Ok(false);
                }
            }
            _ if !self.is_timed && entry.last() >= self.last => {
                self.at = entry.written().map_or(self.at, expiry_at);
            }
            _ => {}
        }
        for (number, record) in (entry.first().get()..).zip(entry.records()) {
            self.spend(record.len() as u64 + RECORD)?;
            let sequence = Sequence::new(number);
            if sequence <= self.seen {
                continue;
            }
            if sequence > self.last {
                return Ok(false);
            }
            self.seen = sequence;
            let record =
                Record::read(record).map_err(|source| PastError::Record { sequence, source })?;
            match record {
                Record::Database(database, what, _) if database == self.database => {
                    self.rows.apply(Version::wrapping(number), &what);
                }
                // All that does not concern the range, by name: what is new may.
                Record::Database(..)
                | Record::Table(..)
                | Record::Mail(..)
                | Record::Answer(..)
                | Record::Note(..)
                | Record::Nothing => {}
            }
        }
        Ok(self.seen < self.last)
    }
}
