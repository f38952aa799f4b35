//! Looking into a directory that no log has open: what is whole, what is in it, and repair.

use crate::batch::{Batches, Entry};
use crate::disk::os::OsDisk;
use crate::error::{Damage, Failure, OpenError, ReadError};
use crate::files::recover::{CLOSED, Found, find, verify};
use crate::files::segment::{Cursor, Segment, Step, first_of};
use crate::log::Tail;
use crate::sequence::Sequence;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::vec;

/// What a segment holds, as far as it is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentReport {
    /// The file.
    pub path: PathBuf,
    /// Its first record.
    pub first: Sequence,
    /// Where it ends, as far as it is whole.
    pub tail: Tail,
    /// Batches that were appended.
    pub batches: u64,
    /// Frames: what was written at once, with one checksum.
    pub frames: u64,
    /// Bytes of the file up to the end of the last whole frame.
    pub bytes: u64,
}

/// What a directory holds, made by [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The segments in their order, up to the first damage.
    pub segments: Vec<SegmentReport>,
    /// Whether the log was closed: if not, it may have a torn end, which the next open clears.
    pub was_closed: bool,
    /// Bytes behind the last whole batch that are no zeroes: a torn write, or what was left of an
    /// earlier use of the file.
    pub rest: u64,
    /// Why a log there does not open, if it does not.
    pub damage: Option<Damage>,
}

impl Report {
    /// The first record that is there.
    #[must_use]
    pub fn first(&self) -> Sequence {
        self.segments
            .first()
            .map_or(Sequence::FIRST, |segment| segment.first)
    }

    /// Where what is whole ends.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.segments
            .last()
            .map_or(Tail::START, |segment| segment.tail)
    }
}

/// Reads and checks every byte of the log in a directory, and changes nothing. O(bytes).
///
/// # Errors
///
/// The directory cannot be read, is in use, or belongs to a newer version. Damage is no error, but
/// in the report.
///
/// ```
/// use tremula_log::{Batch, Config, FileLog, Log, Sequence, inspect};
///
/// let directory = tempfile::tempdir().unwrap();
/// let log = FileLog::open(directory.path(), &Config::default().segment_bytes(4096)).unwrap();
/// log.append(&Batch::of(b"a record"), None).unwrap();
/// drop(log);
/// let report = inspect::check(directory.path()).unwrap();
/// assert_eq!(report.tail().next, Sequence::new(2));
/// assert_eq!(report.damage, None);
/// ```
pub fn check(directory: &Path) -> Result<Report, OpenError> {
    let disk = OsDisk::open_to_read(directory)?;
    let found = find(&disk)?;
    let segments = found
        .segments
        .iter()
        .map(report_on)
        .collect::<Result<Vec<_>, _>>()?;
    let was_closed = found.closed.is_some();
    match verify(&found) {
        Ok(end) => Ok(Report {
            segments,
            was_closed,
            rest: end.map_or(0, |end| end.rest),
            damage: None,
        }),
        Err(OpenError::Damaged(damage)) => {
            // What lies behind the damaged segment does not continue what is whole.
            let whole = whole_segments(&found)?;
            let segments = segments.into_iter().take(whole).collect();
            Ok(Report {
                segments,
                was_closed,
                rest: 0,
                damage: Some(damage),
            })
        }
        Err(other) => Err(other),
    }
}

fn report_on(segment: &Segment) -> Result<SegmentReport, Failure> {
    let mut cursor = Cursor::new(segment);
    let (mut batches, mut frames) = (0, 0);
    while let Step::Frame(frame, _) = cursor.step(segment)? {
        frames += 1;
        batches += frame.count() as u64;
    }
    Ok(SegmentReport {
        path: segment.path.clone(),
        first: segment.head.first,
        tail: cursor.tail,
        batches,
        frames,
        bytes: cursor.offset,
    })
}

/// How many segments continue each other, the one included in which that ends.
fn whole_segments(found: &Found) -> Result<usize, Failure> {
    for (index, segment) in found.segments.iter().enumerate() {
        let tail = end_of_frames(segment)?.tail;
        let next = found.segments.get(index + 1);
        if next.is_none_or(|next| next.tail_before() != tail) {
            return Ok(index + 1);
        }
    }
    Ok(0)
}

fn end_of_frames(segment: &Segment) -> Result<Cursor, Failure> {
    let mut cursor = Cursor::new(segment);
    while let Step::Frame(..) = cursor.step(segment)? {}
    Ok(cursor)
}

/// The batches of the log in a directory, up to its end or to its damage. Changes nothing.
///
/// # Errors
///
/// As [`check`]. The iterator's last item is an error if something is damaged.
///
/// ```
/// use tremula_log::{Batch, Config, FileLog, Log, inspect};
///
/// let directory = tempfile::tempdir().unwrap();
/// let log = FileLog::open(directory.path(), &Config::default().segment_bytes(4096)).unwrap();
/// log.append(&Batch::of(b"a record"), None).unwrap();
/// drop(log);
/// let entry = inspect::entries(directory.path()).unwrap().next().unwrap().unwrap();
/// assert_eq!(entry.records().next(), Some(&b"a record"[..]));
/// ```
pub fn entries(directory: &Path) -> Result<Entries, OpenError> {
    let disk = OsDisk::open_to_read(directory)?;
    let found = find(&disk)?;
    let verdict = match verify(&found) {
        Ok(_) => None,
        Err(OpenError::Damaged(damage)) => Some(damage),
        Err(other) => return Err(other),
    };
    let whole = whole_segments(&found)?;
    let mut segments = found.segments;
    segments.truncate(whole);
    Ok(Entries {
        _disk: disk,
        segments: segments.into_iter(),
        current: None,
        batches: None,
        damage: verdict,
    })
}

/// The batches of a log, made by [`entries`].
pub struct Entries {
    /// Locked until this is dropped.
    _disk: OsDisk,
    segments: vec::IntoIter<Segment>,
    current: Option<(Segment, Cursor)>,
    batches: Option<Batches>,
    damage: Option<Damage>,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Entries of {} more segments", self.segments.len())
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batches.as_mut().and_then(Iterator::next) {
                return Some(Ok(entry));
            }
            self.batches = None;
            if let Some((segment, cursor)) = &mut self.current {
                match cursor.step(segment) {
                    Ok(Step::Frame(batches, _)) => {
                        self.batches = Some(batches);
                        continue;
                    }
                    Ok(_) => self.current = None,
                    Err(failure) => {
                        self.current = None;
                        return Some(Err(failure.into()));
                    }
                }
            }
            let Some(segment) = self.segments.next() else {
                return self.damage.take().map(|damage| Err(damage.into()));
            };
            let cursor = Cursor::new(&segment);
            self.current = Some((segment, cursor));
        }
    }
}

/// What [`repair`] has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// What was damaged.
    pub damage: Damage,
    /// Where the log goes on now. Records from there on are not in it any more.
    pub tail: Tail,
    /// The folder that has the files as they were.
    pub backup: PathBuf,
    /// The files in it.
    pub files: Vec<String>,
}

/// Cuts the log in a directory behind its last batch before the damage, so that it opens again.
/// `None` if it would open anyway.
///
/// Nothing is lost: each file that is changed or taken out is in the folder `damaged.N` of the
/// directory first, as it was.
///
/// # Errors
///
/// The directory cannot be written, is in use, or belongs to a newer version; or the damage is in
/// the first segment's head, so that nothing would be left.
///
/// ```
/// use std::fs;
/// use tremula_log::{Batch, Config, FileLog, Log, inspect};
///
/// let directory = tempfile::tempdir().unwrap();
/// let config = Config::default().segment_bytes(4096);
/// let log = FileLog::open(directory.path(), &config).unwrap();
/// log.append(&Batch::of(b"a record"), None).unwrap();
/// drop(log);
/// let path = directory.path().join("00000000000000000001.segment");
/// let mut bytes = fs::read(&path).unwrap();
/// bytes[200] ^= 1; // in the record
/// fs::write(&path, bytes).unwrap();
/// assert!(FileLog::open(directory.path(), &config).is_err());
///
/// let repaired = inspect::repair(directory.path()).unwrap().unwrap();
/// let log = FileLog::open(directory.path(), &config).unwrap();
/// assert_eq!(log.tail(), repaired.tail);
/// ```
pub fn repair(directory: &Path) -> Result<Option<Repaired>, OpenError> {
    // So that none is made here.
    let failed = |source| Failure::new("read", directory.to_owned(), source);
    fs::read_dir(directory).map_err(|source| OpenError::Directory(failed(source)))?;
    let disk = OsDisk::open(directory)?;
    let found = find(&disk)?;
    let damage = match verify(&found) {
        Ok(_) => return Ok(None),
        Err(OpenError::Damaged(damage)) => damage,
        Err(other) => return Err(other),
    };
    let whole = whole_segments(&found)?;
    let Some(last) = whole.checked_sub(1).map(|index| &found.segments[index]) else {
        // Without it nobody knows which sequences were given out.
        return Err(damage.into());
    };
    let end = end_of_frames(last)?;
    let is_cut = is_cut(last, end.offset)?;
    // The latest first: what is left is the beginning of a log at each moment.
    let mut moved: Vec<String> = found
        .names
        .iter()
        .filter(|name| first_of(name).is_some_and(|first| first > last.head.first))
        .rev()
        .cloned()
        .collect();
    moved.extend(found.names.iter().find(|name| *name == CLOSED).cloned());
    let backup = Backup::new(directory)?;
    if is_cut {
        backup.copy(&last.name)?;
    }
    for name in &moved {
        backup.take(name)?;
    }
    if is_cut {
        cut(last, end.offset)?;
    }
    moved.extend(is_cut.then(|| last.name.clone()));
    moved.sort();
    Ok(Some(Repaired {
        damage,
        tail: end.tail,
        backup: backup.folder,
        files: moved,
    }))
}

/// Whether something is to be cut off behind this offset: bytes that are no zeroes, or a length
/// that is not right.
fn is_cut(segment: &Segment, offset: u64) -> Result<bool, Failure> {
    let length = segment.length()?;
    let mut bytes = vec![0; length.saturating_sub(offset) as usize];
    segment
        .file
        .read_at(&mut bytes, offset)
        .map_err(segment.failure("read"))?;
    Ok(length != segment.head.length || bytes.iter().any(|byte| *byte != 0))
}

/// Makes everything from this offset on zeroes, up to the length that the head says.
fn cut(segment: &Segment, offset: u64) -> Result<(), Failure> {
    let cut = || {
        let file = OpenOptions::new().write(true).open(&segment.path)?;
        file.set_len(segment.head.length)?;
        let zeroes = vec![0; (segment.head.length - offset) as usize];
        file.write_all_at(&zeroes, offset)?;
        file.sync_all()
    };
    cut().map_err(segment.failure("cut"))
}

/// A new folder for files as they were.
struct Backup {
    directory: PathBuf,
    folder: PathBuf,
}

impl Backup {
    fn new(directory: &Path) -> Result<Self, Failure> {
        let mut number = 1;
        let folder = loop {
            let folder = directory.join(format!("damaged.{number}"));
            match fs::create_dir(&folder) {
                Ok(()) => break folder,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(Failure::new("make the folder", folder, source)),
            }
        };
        Ok(Self {
            directory: directory.to_owned(),
            folder,
        })
    }

    /// Puts a copy of the file there.
    fn copy(&self, name: &str) -> Result<(), Failure> {
        let to = self.folder.join(name);
        let copy = || {
            fs::copy(self.directory.join(name), &to)?;
            File::open(&to)?.sync_all()?;
            self.sync()
        };
        copy().map_err(|source| Failure::new("copy to", to.clone(), source))
    }

    /// Moves the file there.
    fn take(&self, name: &str) -> Result<(), Failure> {
        let to = self.folder.join(name);
        fs::rename(self.directory.join(name), &to)
            .and_then(|()| self.sync())
            .map_err(|source| Failure::new("move to", to, source))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()?;
        File::open(&self.directory)?.sync_all()
    }
}
