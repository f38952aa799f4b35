//! Copying a log while another process writes to it.
//!
//! The copier takes no lock, so the log may be cut, and its segments used again, under its hands.
//! What must hold:
//!
//! 1. A segment is read frame by frame, and each frame has a checksum that holds the segment's
//!    salt: what an earlier or a later use of the file has left is none of its frames.
//! 2. A segment is renamed before it is used again. So a file that still has its name after it was
//!    read was not used again while it was read. If one has not, the copy begins anew.
//! 3. The copy ends where no further frame is whole, in the segment that was the last when the copy
//!    began, or in a later one. What was durable before is before that place. If a frame behind
//!    it says that more was durable, the copier looks again: that frame was written meanwhile,
//!    and the missing ones before it. If it finds nothing new, they are damaged.

use crate::batch::{Batches, micros, time_of};
use crate::disk::os::OsDisk;
use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, Failure, OpenError};
use crate::files::format::{Closed, FRAME_HEAD, FrameHead, NoSegment, SEGMENT_HEAD, SegmentHead};
use crate::files::format::{VERSION, frame_length};
use crate::files::recover::{CLOSED, read_closed};
use crate::files::segment::{Cursor, Segment, Step, first_of, name_of};
use crate::inspect;
use crate::log::Tail;
use crate::sequence::Sequence;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thiserror::Error;

/// How often a copy begins anew because the log was cut meanwhile. Each time the log has grown by
/// whole segments, so that many times are a disk that is much too slow.
const ATTEMPTS: usize = 8;

/// What [`copy`] has copied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// The first record of the copy.
    pub first: Sequence,
    /// Where the copy goes on.
    pub tail: Tail,
    /// When the last batch of it was written, if that is known.
    pub written: Option<SystemTime>,
    /// Bytes of frames.
    pub bytes: u64,
}

/// A place in a log, up to which it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point {
    /// Its end.
    End,
    /// Behind this record; or, if that stands amid a batch, before that batch.
    Sequence(Sequence),
    /// Behind the last batch that was written by this time. The time is that at which the log has
    /// written, some milliseconds after the append.
    Time(SystemTime),
}

/// What a log had at some point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reached {
    /// The last record; the one before the first that is there, if all are later.
    pub last: Sequence,
    /// When that was written, if that is known.
    pub written: Option<SystemTime>,
    /// Whether it was the last of the log.
    pub is_end: bool,
}

/// Why a log was not copied. What had been written to the copy is in its directory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The record from which the copy is to begin is not in the log any more, or not yet.
    #[error("the log in {} has sequences {first} up to {last}, and not {from}", path.display())]
    Missing {
        /// The log's directory.
        path: PathBuf,
        /// Where the copy was to begin.
        from: Sequence,
        /// The first record there is.
        first: Sequence,
        /// The last one.
        last: Sequence,
    },
    /// The log was cut again and again.
    #[error(
        "the log in {} is cut faster than it can be copied; let it keep more (--log-keep), or copy to a faster disk", path.display()
    )]
    TooSlow {
        /// The log's directory.
        path: PathBuf,
    },
    /// The log notes no times there.
    #[error(
        "the log in {} has no time at sequence {sequence}: an earlier version has written it; name a sequence instead", path.display()
    )]
    Untimed {
        /// The log's directory.
        path: PathBuf,
        /// The last batch without a time.
        sequence: Sequence,
    },
    /// The log to be copied, or the copy, cannot be read or written, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl From<Damage> for CopyError {
    fn from(damage: Damage) -> Self {
        Self::Open(damage.into())
    }
}

impl From<Failure> for CopyError {
    fn from(failure: Failure) -> Self {
        Self::Open(failure.into())
    }
}

/// Copies the log in a directory into another, which is made if it is missing and must have no log,
/// while a server may be writing to the first. The copy is durable, and was checked, when this
/// returns. It has everything from the batch with the record `from` on that was durable before,
/// or of that all batches whose records are not behind `to`. O(bytes).
///
/// # Errors
///
/// [`CopyError`] says what was missing, damaged or refused.
///
/// ```
/// use tremula_log::{Batch, Config, FileLog, Log, Sequence, copy};
///
/// let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// let config = Config::default().segment_bytes(4096);
/// let log = FileLog::open(one.path(), &config).unwrap();
/// for record in ["first", "second", "third"] {
///     let ticket = log.append(&Batch::of(record.as_bytes()), None).unwrap();
///     log.wait(ticket.last()).unwrap();
/// }
/// let copied = copy(one.path(), other.path(), Sequence::FIRST, Some(Sequence::new(2))).unwrap();
/// assert_eq!(copied.tail.next, Sequence::new(3));
/// let copy = FileLog::open(other.path(), &config).unwrap();
/// assert_eq!(copy.tail(), copied.tail);
/// ```
pub fn copy(
    directory: &Path,
    target: &Path,
    from: Sequence,
    to: Option<Sequence>,
) -> Result<Copied, CopyError> {
    let disk = OsDisk::open(target)?;
    for _ in 0..ATTEMPTS {
        let until = to.map_or(Until::End, Until::Sequence);
        let mut copying = Walk::new(directory, until, Some(&disk));
        match copying.run(from) {
            Ok(copied) => {
                drop(disk);
                let report = inspect::check(target)?;
                return match report.damage {
                    Some(damage) => Err(damage.into()),
                    None => Ok(copied),
                };
            }
            Err(Interrupted::Cut) => copying.clear()?,
            Err(Interrupted::Failed(error)) => return Err(error),
        }
    }
    let path = directory.to_owned();
    Err(CopyError::TooSlow { path })
}

/// The last record that the log in a directory has up to some point: where a batch ends. A server
/// may be writing to it. Reads about a segment.
///
/// # Errors
///
/// [`CopyError`] says what was missing, damaged or refused.
///
/// ```
/// use std::time::SystemTime;
/// use tremula_log::{Batch, Config, FileLog, Log, Point, Sequence, last_at};
///
/// let directory = tempfile::tempdir().unwrap();
/// let log = FileLog::open(directory.path(), &Config::default().segment_bytes(4096)).unwrap();
/// let before = SystemTime::now();
/// let ticket = log.append(&Batch::of(b"a record"), None).unwrap();
/// log.wait(ticket.last()).unwrap();
/// let last = |time| last_at(directory.path(), Point::Time(time)).unwrap().last;
/// assert_eq!(last(before), Sequence::NONE);
/// assert_eq!(last(SystemTime::now()), Sequence::FIRST);
/// ```
pub fn last_at(directory: &Path, point: Point) -> Result<Reached, CopyError> {
    let until = match point {
        Point::End => Until::End,
        Point::Sequence(sequence) => Until::Sequence(sequence),
        Point::Time(time) => Until::Time(micros(time)),
    };
    for _ in 0..ATTEMPTS {
        let mut walk = Walk::new(directory, until, None);
        let from = match walk.begin_at() {
            Ok(from) => from,
            Err(Interrupted::Cut) => continue,
            Err(Interrupted::Failed(error)) => return Err(error),
        };
        match walk.run(from) {
            Ok(copied) => {
                let last = copied.tail.next.before();
                let is_untimed = copied.written.is_none() && copied.tail.next > copied.first;
                if is_untimed && matches!(point, Point::Time(_)) {
                    return Err(CopyError::Untimed {
                        path: directory.to_owned(),
                        sequence: last,
                    });
                }
                return Ok(Reached {
                    last,
                    written: copied.written,
                    is_end: !walk.is_cut,
                });
            }
            // The segment in which it was to begin was cut in between.
            Err(Interrupted::Cut | Interrupted::Failed(CopyError::Missing { .. })) => {}
            Err(Interrupted::Failed(error)) => return Err(error),
        }
    }
    let path = directory.to_owned();
    Err(CopyError::TooSlow { path })
}

/// Where a walk ends.
#[derive(Clone, Copy)]
enum Until {
    End,
    Sequence(Sequence),
    Time(u64),
}

/// Why a walk has not come to its end.
enum Interrupted {
    /// The log was cut under it.
    Cut,
    Failed(CopyError),
}

impl<E: Into<CopyError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// How the frames of a segment end.
enum Ended {
    /// Another segment continues them.
    Continued,
    /// Here, for now or as asked for.
    Here,
}

/// A walk over the frames of a log, which may copy them.
struct Walk<'a> {
    directory: &'a Path,
    source: OsDisk,
    until: Until,
    target: Option<&'a OsDisk>,
    id: Option<u128>,
    made: Vec<String>,
    bytes: u64,
    written: u64,
    /// Whether the log goes on behind what was asked for.
    is_cut: bool,
}

impl<'a> Walk<'a> {
    fn new(directory: &'a Path, until: Until, target: Option<&'a OsDisk>) -> Self {
        Self {
            directory,
            source: OsDisk::unlocked(directory),
            until,
            target,
            id: None,
            made: Vec::new(),
            bytes: 0,
            written: 0,
            is_cut: false,
        }
    }

    /// The first sequences of all segments, in their order.
    fn segments(&self) -> Result<Vec<Sequence>, Interrupted> {
        let failed = |source| Failure::new("list", self.directory.to_owned(), source);
        let names = self.source.list().map_err(failed)?;
        let mut firsts: Vec<Sequence> = names.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        Ok(firsts)
    }

    /// The first sequence of the last segment in which the end may be; of the first segment if it
    /// is in none.
    fn begin_at(&self) -> Result<Sequence, Interrupted> {
        let firsts = self.segments()?;
        for first in firsts.iter().rev() {
            let is_before = match self.until {
                Until::End => true,
                Until::Sequence(to) => *first <= to,
                Until::Time(micros) => {
                    let (segment, _) = self.open(*first)?;
                    (1..=micros).contains(&segment.head.began)
                }
            };
            if is_before {
                return Ok(*first);
            }
        }
        Ok(firsts.first().copied().unwrap_or(Sequence::FIRST))
    }

    /// Walks from the segment that has this record.
    fn run(&mut self, from: Sequence) -> Result<Copied, Interrupted> {
        let closed = read_closed(&self.source)?;
        let firsts = self.segments()?;
        let after = firsts.partition_point(|first| *first <= from);
        let (Some(begin), Some(last)) = (after.checked_sub(1), firsts.last().copied()) else {
            return Err(self.missing(from, &firsts, Sequence::NONE));
        };
        let first = firsts[begin];
        let mut next = first;
        let tail = loop {
            let (tail, ended) = self.segment(next, last)?;
            match ended {
                Ended::Continued => next = tail.next,
                Ended::Here => break tail,
            }
        };
        if from > tail.next {
            return Err(self.missing(from, &firsts, tail.next.before()));
        }
        self.check_close(closed, tail)?;
        if let (Some(target), Some(id)) = (self.target, self.id) {
            close(target, id, tail)?;
        }
        Ok(Copied {
            first,
            tail,
            written: time_of(self.written),
            bytes: self.bytes,
        })
    }

    fn missing(&self, from: Sequence, firsts: &[Sequence], last: Sequence) -> Interrupted {
        let first = firsts.first().copied().unwrap_or(Sequence::FIRST);
        CopyError::Missing {
            path: self.directory.to_owned(),
            from,
            first,
            last,
        }
        .into()
    }

    /// If the log is closed, and was when the walk began, it must have been walked to its end.
    fn check_close(&self, before: Option<Closed>, tail: Tail) -> Result<(), Interrupted> {
        let (Until::End, Some(closed)) = (self.until, before) else {
            return Ok(());
        };
        if closed.tail() != tail && read_closed(&self.source)? == Some(closed) {
            return Err(Damage {
                path: self.source.path(CLOSED),
                offset: 0,
                what: format!(
                    "the log was closed at sequence {}, and its frames end at {tail}",
                    closed.tail()
                ),
            }
            .into());
        }
        Ok(())
    }

    /// Opens the segment that begins with this sequence.
    fn open(&self, first: Sequence) -> Result<(Segment, u64), Interrupted> {
        let name = name_of(first);
        let path = self.source.path(&name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Interrupted::Cut),
            Err(error) => return Err(Failure::new("open", path, error).into()),
        };
        let failed = |source| Failure::new("read", path.clone(), source);
        let inode = file.metadata().map_err(failed)?.ino();
        let mut head = [0; SEGMENT_HEAD];
        let read = DiskFile::read_at(&file, &mut head, 0).map_err(failed)?;
        let head = match SegmentHead::decode(&head[..read]) {
            Ok(head) => head,
            Err(NoSegment::Newer(found)) => {
                return Err(OpenError::Newer {
                    path,
                    found,
                    known: VERSION,
                }
                .into());
            }
            Err(NoSegment::Damaged(what)) => {
                self.check_name(first, inode)?;
                let what = what.to_owned();
                return Err(Damage {
                    path,
                    offset: 0,
                    what,
                }
                .into());
            }
        };
        let segment = Segment::new(head, &self.source, Box::new(file));
        if segment.head.first != first || self.id.is_some_and(|id| id != segment.head.id) {
            self.check_name(first, inode)?;
            let what = "its head is of another segment, or of another log";
            return Err(segment.damage(0, what).into());
        }
        Ok((segment, inode))
    }

    /// That the segment still has the name with which it was opened: so it was not used again.
    fn check_name(&self, first: Sequence, inode: u64) -> Result<(), Interrupted> {
        let path = self.source.path(&name_of(first));
        match fs::metadata(&path) {
            Ok(found) if found.ino() == inode => Ok(()),
            Ok(_) => Err(Interrupted::Cut),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Interrupted::Cut),
            Err(error) => Err(Failure::new("look at", path, error).into()),
        }
    }

    /// Walks over one segment. If it is not the last one, it must lead to another.
    fn segment(&mut self, first: Sequence, last: Sequence) -> Result<(Tail, Ended), Interrupted> {
        let (segment, inode) = self.open(first)?;
        self.id = Some(segment.head.id);
        let out = self.begin(&segment)?;
        let mut cursor = Cursor::new(&segment);
        let mut looked_again = None;
        let ended = loop {
            let (offset, before) = (cursor.offset, cursor.tail);
            match cursor.step(&segment)? {
                Step::Frame(batches, durable) => {
                    let raw = cursor.raw(offset);
                    let wanted = self.wanted(&batches, raw);
                    match wanted {
                        Wanted::All => {
                            self.bytes += raw.len() as u64;
                            self.written = frame_time(raw);
                            put(out.as_deref(), &segment, raw, offset)?;
                        }
                        Wanted::Beginning { count, body } => {
                            let head = FrameHead {
                                first: before.next,
                                count,
                                body: body as u32,
                                body_crc: crc32c::crc32c(&raw[FRAME_HEAD..][..body]),
                                durable,
                                chain: before.chain,
                                written: frame_time(raw),
                            };
                            let mut frame = head.encode(segment.salt).to_vec();
                            frame.extend_from_slice(&raw[FRAME_HEAD..][..body]);
                            frame.resize(frame_length(body), 0);
                            self.bytes += frame.len() as u64;
                            self.written = frame_time(raw);
                            put(out.as_deref(), &segment, &frame, offset)?;
                            cursor.tail = tail_behind(batches, count);
                            self.is_cut = true;
                            break Ended::Here;
                        }
                        Wanted::Nothing => {
                            cursor.tail = before;
                            self.is_cut = true;
                            break Ended::Here;
                        }
                    }
                }
                Step::Wrong(what) => {
                    self.check_name(first, inode)?;
                    return Err(segment.damage(offset, what).into());
                }
                Step::Continued => break self.go_on(cursor.tail, last),
                Step::Nothing(what) => {
                    let next = cursor.tail.next;
                    let is_continued = next != first && self.source.path(&name_of(next)).exists();
                    if is_continued {
                        break self.go_on(cursor.tail, last);
                    }
                    let mut ahead = Cursor::new(&segment);
                    ahead.offset = offset;
                    let more = ahead.finds_witness(&segment, next)? || first < last;
                    if more && looked_again != Some(offset) {
                        looked_again = Some(offset);
                        cursor.forget();
                        continue;
                    }
                    self.check_name(first, inode)?;
                    if more {
                        return Err(segment.damage(offset, what).into());
                    }
                    break Ended::Here;
                }
            }
        };
        if let (Some(out), Ended::Continued) = (&out, &ended) {
            let tail = cursor.tail;
            let note = FrameHead::continued(tail.next, tail.chain).encode(segment.salt);
            put(Some(&**out), &segment, &note, cursor.offset)?;
        }
        self.check_name(first, inode)?;
        if let (Some(out), Some(target)) = (out, self.target) {
            let failed = |source| Failure::new("sync", target.path(&segment.name), source);
            out.sync().map_err(failed)?;
        }
        Ok((cursor.tail, ended))
    }

    /// What follows a segment that is full: the next one, unless it was begun after the walk was.
    fn go_on(&mut self, tail: Tail, last: Sequence) -> Ended {
        let is_there = || tail.next <= last || self.source.path(&name_of(tail.next)).exists();
        let has_more = match self.until {
            Until::End => tail.next <= last,
            Until::Sequence(to) => tail.next <= to && is_there(),
            Until::Time(_) => is_there(),
        };
        if has_more {
            return Ended::Continued;
        }
        self.is_cut = true;
        Ended::Here
    }

    /// What of a frame is to be copied.
    fn wanted(&self, batches: &Batches, raw: &[u8]) -> Wanted {
        match self.until {
            Until::End => Wanted::All,
            Until::Time(time) if frame_time(raw) > time => Wanted::Nothing,
            Until::Time(_) => Wanted::All,
            Until::Sequence(to) => {
                let (mut count, mut body, mut is_whole) = (0_u32, 0, true);
                for batch in batches.clone() {
                    if batch.last() > to {
                        is_whole = false;
                        break;
                    }
                    count += batch.count() as u32;
                    body += batch.encoded().len();
                }
                match (is_whole, count) {
                    (true, _) => Wanted::All,
                    (false, 0) => Wanted::Nothing,
                    (false, count) => Wanted::Beginning { count, body },
                }
            }
        }
    }

    /// Makes the segment's file in the copy, of the same length.
    fn begin(&mut self, segment: &Segment) -> Result<Option<Box<dyn DiskFile>>, Interrupted> {
        let Some(target) = self.target else {
            return Ok(None);
        };
        self.made.push(segment.name.clone());
        let path = target.path(&segment.name);
        let failed = |source| Failure::new("write", path.clone(), source);
        let file = File::create_new(&path).map_err(failed)?;
        file.set_len(segment.head.length).map_err(failed)?;
        file.write_at(&segment.head.encode(), 0).map_err(failed)?;
        Ok(Some(Box::new(file)))
    }

    /// Removes what was copied.
    fn clear(&mut self) -> Result<(), CopyError> {
        let Some(target) = self.target else {
            return Ok(());
        };
        for name in std::mem::take(&mut self.made) {
            let failed = |source| Failure::new("remove", target.path(&name), source);
            target.remove(&name).map_err(failed)?;
        }
        Ok(())
    }
}

/// What of a frame is to be copied.
enum Wanted {
    All,
    /// The first batches: their records, and their bytes in the body.
    Beginning {
        count: u32,
        body: usize,
    },
    Nothing,
}

/// Where a frame goes on behind this number of its records.
fn tail_behind(mut batches: Batches, count: u32) -> Tail {
    let end = batches.next_sequence().plus(u64::from(count));
    while batches.next_sequence() < end && batches.next().is_some() {}
    Tail {
        next: batches.next_sequence(),
        chain: batches.next_chain(),
    }
}

/// When a frame was written, which stands in its head.
fn frame_time(raw: &[u8]) -> u64 {
    FrameHead::written_of(raw)
}

fn put(
    out: Option<&dyn DiskFile>,
    segment: &Segment,
    bytes: &[u8],
    offset: u64,
) -> Result<(), CopyError> {
    let Some(out) = out else { return Ok(()) };
    let written = out.write_at(bytes, offset);
    Ok(written.map_err(segment.failure("copy"))?)
}

/// Leaves the note of the end, by which the loss of a file of the copy is noticed.
fn close(target: &OsDisk, id: u128, tail: Tail) -> Result<(), CopyError> {
    let closed = Closed {
        id,
        next: tail.next,
        chain: tail.chain,
    };
    let leave = || {
        let file = target.create(CLOSED)?;
        file.write_at(&closed.encode(), 0)?;
        file.sync()?;
        target.sync_directory()
    };
    let failed = |source| Failure::new("write", target.path(CLOSED), source);
    Ok(leave().map_err(failed)?)
}
