//! From which snapshot an earlier state is made.

use super::{PastError, words};
use crate::disk::{Folder, SnapshotError, SnapshotRange};
use crate::store::Store;
use crate::{Expiry, Span};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tremula_log::{Log, Point, ReadError, Reader, Sequence};

/// What an earlier state is made from.
pub(super) struct Base {
    /// Its rows; `None` if the store was empty then.
    pub(super) snapshot: Option<SnapshotRange>,
    /// The log behind it.
    pub(super) reader: Box<dyn Reader>,
    /// The record that the log begins with.
    pub(super) begins: Sequence,
    /// When the snapshot was made: a time of its last record, unless others come behind it.
    pub(super) written: Option<SystemTime>,
}

/// A snapshot that is damaged.
pub(super) struct Unfit {
    pub(super) path: PathBuf,
    pub(super) error: SnapshotError,
}

/// Looks for the newest snapshot that leads to a point; those in `damaged` are not used.
pub(super) struct Choice<'a> {
    pub(super) store: &'a Store,
    pub(super) log: &'a dyn Log,
    pub(super) folder: Option<&'a Path>,
    pub(super) of: (usize, &'a Span),
    pub(super) point: Point,
}

impl Choice<'_> {
    pub(super) fn make(&self, damaged: &mut Vec<Unfit>) -> Result<Base, PastError> {
        let (mut oldest, mut untimed) = (None, None);
        let snapshots = self.folder.map(|path| Folder::new(path).snapshots());
        for path in snapshots.transpose()?.unwrap_or_default() {
            if damaged.iter().any(|unfit| unfit.path == path) {
                continue;
            }
            match self.snapshot(&path, &mut oldest) {
                Ok(Some(base)) => return Ok(base),
                Ok(None) => {}
                Err(PastError::Snapshot(SnapshotError::Failed(failure)))
                    if failure.source.kind() == io::ErrorKind::NotFound => {}
                Err(PastError::Snapshot(error @ SnapshotError::Damaged { .. })) => {
                    damaged.push(Unfit { path, error });
                }
                Err(error @ PastError::Untimed { .. }) => untimed = Some(error),
                Err(error) => return Err(error),
            }
        }
        let origin = self.store.origin();
        let is_before = matches!(self.point, Point::Sequence(last) if last < origin.before());
        if let Some(reader) = self.reader(origin)? {
            if !is_before {
                return Ok(Base {
                    snapshot: None,
                    reader,
                    begins: origin,
                    written: None,
                });
            }
            oldest = Some(origin.before());
        }
        let newest = damaged.drain(..).next();
        let wrong = newest.map(|unfit| unfit.error.into()).or(untimed);
        Err(wrong.unwrap_or_else(|| PastError::Gone {
            wanted: words(self.point),
            oldest,
            first: self.log.first(),
        }))
    }

    /// A snapshot, if it leads to the point.
    fn snapshot(
        &self,
        path: &Path,
        oldest: &mut Option<Sequence>,
    ) -> Result<Option<Base>, PastError> {
        let ends = Folder::ends(path)?;
        let (database, span) = self.of;
        let snapshot = SnapshotRange::open(path, database, span.clone())?;
        let begins = snapshot.begins();
        let Some(reader) = self.reader(begins)? else {
            return Ok(None);
        };
        *oldest = Some(ends);
        let written = snapshot.written();
        let leads = match self.point {
            Point::Sequence(last) => ends <= last,
            Point::Time(_) if ends == Sequence::NONE => true,
            Point::Time(time) => self
                .written_at(ends)?
                .or(written)
                .is_some_and(|written| written <= time),
            _ => true,
        };
        Ok(leads.then_some(Base {
            snapshot: Some(snapshot),
            reader,
            begins,
            written,
        }))
    }

    /// The log from a record on, if it reaches back so far.
    fn reader(&self, from: Sequence) -> Result<Option<Box<dyn Reader>>, PastError> {
        match self.log.read(from) {
            Ok(reader) => Ok(Some(reader)),
            Err(ReadError::Truncated { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// When a record was written; `None` if the log does not have it any more.
    fn written_at(&self, sequence: Sequence) -> Result<Option<SystemTime>, PastError> {
        let Some(mut reader) = self.reader(sequence)? else {
            return Ok(None);
        };
        let Some(entry) = reader.next().transpose()? else {
            return Ok(None);
        };
        let written = entry.written().ok_or(PastError::Untimed { sequence })?;
        Ok(Some(written))
    }
}

/// The time at which a key must expire later to be there.
pub(super) fn expiry_at(time: SystemTime) -> Option<Expiry> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let millis = u64::try_from(since.unwrap_or_default().as_millis());
    Some(
        millis
            .ok()
            .and_then(Expiry::from_millis)
            .unwrap_or(Expiry::LAST),
    )
}
