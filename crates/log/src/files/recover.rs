//! What a directory holds: read from the first segment to the last, every byte of every frame.
//!
//! 1. Each segment but the last has frames up to exactly where the next one begins, by sequence and
//!    by chain. Anything else is damage.
//! 2. In the last segment frames end somewhere. If a later frame, or the note of the last close,
//!    says that more was durable, that is damage; else it is the torn end of the last write, which
//!    nobody was promised.
//! 3. A segment is named only when it is whole and all before it is durable, so its head and its
//!    length are never torn.

use super::format::{CLOSED_BYTES, Closed, NoSegment, SEGMENT_HEAD, SegmentHead, VERSION};
use super::segment::{Cursor, Segment, Step, first_of, name_of};
use crate::disk::Disk;
use crate::error::{Damage, Failure, OpenError};
use crate::log::Tail;
use std::collections::VecDeque;
use std::io::ErrorKind;

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 20;

/// The name of the note that the log was closed.
pub(crate) const CLOSED: &str = "CLOSED";

/// What a directory holds.
pub(crate) struct Found {
    pub(crate) names: Vec<String>,
    /// In their order, up to the first that is damaged; empty for a new log.
    pub(crate) segments: Vec<Segment>,
    pub(crate) closed: Option<Closed>,
    /// What is wrong with the head or the length of a segment, or with the note of the close.
    pub(crate) damage: Option<Damage>,
}

/// Where the frames of a log end.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) tail: Tail,
    /// When the last frame was written, as far as that is known.
    pub(crate) written: u64,
    /// The offset in the last segment.
    pub(crate) offset: u64,
    /// Bytes behind it that are no zeroes: a torn write, or what an earlier use of the file has
    /// left.
    pub(crate) rest: u64,
    /// The offset from which on no later frame says that it was durable.
    pub(crate) unwitnessed: u64,
}

/// Reads the heads of all segments, which must be of one log.
pub(crate) fn find(disk: &dyn Disk) -> Result<Found, OpenError> {
    let failed = |source| Failure::new("list", disk.path(""), source);
    let mut names = disk.list().map_err(failed)?;
    names.sort();
    let mut found = Found {
        names,
        segments: Vec::new(),
        closed: None,
        damage: None,
    };
    for name in found.names.iter().filter(|name| first_of(name).is_some()) {
        match find_segment(disk, name, found.segments.first()) {
            Ok(segment) => {
                let length = segment.length()?;
                let expected = segment.head.length;
                found.segments.push(segment);
                if length != expected {
                    let what = format!("the file has {length} bytes instead of {expected}");
                    let segment = found.segments.last();
                    let offset = length.min(expected);
                    found.damage = segment.map(|segment| segment.damage(offset, what));
                    return Ok(found);
                }
            }
            Err(OpenError::Damaged(damage)) => {
                found.damage = Some(damage);
                return Ok(found);
            }
            Err(other) => return Err(other),
        }
    }
    if found.names.iter().any(|name| name == CLOSED) {
        match find_closed(disk, found.segments.first()) {
            Ok(closed) => found.closed = Some(closed),
            Err(OpenError::Damaged(damage)) => found.damage = Some(damage),
            Err(other) => return Err(other),
        }
    }
    Ok(found)
}

/// The segment of this name. `other` is one of the same log.
fn find_segment(
    disk: &dyn Disk,
    name: &str,
    other: Option<&Segment>,
) -> Result<Segment, OpenError> {
    let failed = |action| {
        let path = disk.path(name);
        move |source| Failure::new(action, path, source)
    };
    let file = disk.open(name).map_err(failed("open"))?;
    let mut head = [0; SEGMENT_HEAD];
    let read = file.read_at(&mut head, 0).map_err(failed("read"))?;
    let damage = |what: String| Damage {
        path: disk.path(name),
        offset: 0,
        what,
    };
    let head = match SegmentHead::decode(&head[..read]) {
        Ok(head) => head,
        Err(NoSegment::Newer(found)) => {
            return Err(OpenError::Newer {
                path: disk.path(name),
                found,
                known: VERSION,
            });
        }
        Err(NoSegment::Damaged(what)) => return Err(damage(what.to_owned()).into()),
    };
    if first_of(name) != Some(head.first) {
        let what = format!("its head says that it is {}", name_of(head.first));
        return Err(damage(what).into());
    }
    if let Some(other) = other.filter(|other| other.head.id != head.id) {
        let what = format!("it is of another log than {}", other.name);
        return Err(damage(what).into());
    }
    Ok(Segment::new(head, disk, file))
}

fn find_closed(disk: &dyn Disk, segment: Option<&Segment>) -> Result<Closed, OpenError> {
    let damage = |what: &str| Damage {
        path: disk.path(CLOSED),
        offset: 0,
        what: what.to_owned(),
    };
    let closed = read_closed(disk)?.ok_or_else(|| damage("it has gone"))?;
    match segment {
        None => Err(damage("the log has lost all its segments").into()),
        Some(segment) if segment.head.id != closed.id => {
            Err(damage("the note is of another log").into())
        }
        Some(_) => Ok(closed),
    }
}

/// The note that the log was closed, if there is one.
pub(crate) fn read_closed(disk: &dyn Disk) -> Result<Option<Closed>, OpenError> {
    let failed = |source| Failure::new("read", disk.path(CLOSED), source);
    let file = match disk.open(CLOSED) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error).into()),
    };
    let mut bytes = [0; CLOSED_BYTES + 1];
    let read = file.read_at(&mut bytes, 0).map_err(failed)?;
    let closed = Closed::decode(&bytes[..read]).ok_or_else(|| Damage {
        path: disk.path(CLOSED),
        offset: 0,
        what: "the note of the last close is not what was written".to_owned(),
    })?;
    Ok(Some(closed))
}

/// Reads every frame, and says where they end; `None` for a new log.
pub(crate) fn verify(found: &Found) -> Result<Option<End>, OpenError> {
    if let Some(damage) = &found.damage {
        return Err(damage.clone().into());
    }
    let mut end = None;
    for (index, segment) in found.segments.iter().enumerate() {
        let next = found.segments.get(index + 1);
        let mut cursor = Cursor::new(segment);
        let mut unwitnessed = VecDeque::new();
        let ends_because = loop {
            if next.is_some_and(|next| next.tail_before() == cursor.tail) {
                break None;
            }
            let offset = cursor.offset;
            match cursor.step(segment)? {
                Step::Frame(_, durable) => {
                    unwitnessed.push_back((cursor.tail.next.before(), offset));
                    while unwitnessed
                        .front()
                        .is_some_and(|(last, _)| *last <= durable)
                    {
                        unwitnessed.pop_front();
                    }
                }
                Step::Wrong(what) => return Err(segment.damage(offset, what).into()),
                Step::Continued => break Some("it ends here, and continues in another segment"),
                Step::Nothing(what) => break Some(what),
            }
        };
        match (next, ends_because) {
            (Some(next), Some(what)) => return Err(hole(segment, next, &cursor, what).into()),
            (None, _) => {
                let unwitnessed = unwitnessed.front().map(|(_, offset)| *offset);
                end = Some(end_of(segment, cursor, unwitnessed, found.closed)?);
            }
            (Some(_), None) => {}
        }
    }
    Ok(end)
}

/// What is wrong before a segment that is not where the one before it ends.
fn hole(segment: &Segment, next: &Segment, cursor: &Cursor, what: &str) -> Damage {
    let (reached, first) = (cursor.tail.next, next.head.first);
    let what = if reached == first {
        format!("its frames are not those that {} continues", next.name)
    } else {
        format!(
            "{what}: its frames reach sequence {reached}, and the next segment, {}, begins at {first}",
            next.name
        )
    };
    segment.damage(cursor.offset, what)
}

/// Where the last segment ends, which nothing may contradict.
fn end_of(
    segment: &Segment,
    mut cursor: Cursor,
    unwitnessed: Option<u64>,
    closed: Option<Closed>,
) -> Result<End, OpenError> {
    let (offset, tail) = (cursor.offset, cursor.tail);
    let next = tail.next;
    if let Step::Continued = cursor.step(segment)? {
        let missing = name_of(next);
        let what = format!("it is continued in {missing}, which is missing");
        return Err(segment.damage(offset, what).into());
    }
    if cursor.finds_witness(segment, next)? {
        let what = format!(
            "the record {next} was durable and is not here: this is not the torn end of a write"
        );
        return Err(segment.damage(offset, what).into());
    }
    let differs = |closed: &Closed| closed.tail() != tail;
    if let Some(closed) = closed.filter(differs) {
        let what = format!(
            "the log was closed at sequence {}, and its frames end at {tail}",
            closed.tail()
        );
        return Err(segment.damage(offset, what).into());
    }
    Ok(End {
        tail,
        written: cursor.written,
        offset,
        rest: rest(segment, offset)?,
        unwitnessed: unwitnessed.unwrap_or(offset),
    })
}

/// How many bytes from the offset on there are up to the last that is not 0.
fn rest(segment: &Segment, offset: u64) -> Result<u64, Failure> {
    let mut buffer = vec![0; CHUNK.min(segment.head.length as usize)];
    let (mut at, mut rest) = (offset, 0);
    loop {
        let read = segment
            .file
            .read_at(&mut buffer, at)
            .map_err(segment.failure("read"))?;
        if read == 0 {
            return Ok(rest);
        }
        if let Some(last) = buffer[..read].iter().rposition(|byte| *byte != 0) {
            rest = at + last as u64 + 1 - offset;
        }
        at += read as u64;
    }
}

/// Makes the end of a log that was not closed as durable as it looks, before anybody is promised
/// that it is.
///
/// What no later frame witnesses may be in the system's memory only, and the system may take it for
/// written, after a sync that failed. So it is written again, and then synced. What lies behind the
/// end is overwritten with zeroes, so that it can never pass for a frame.
pub(crate) fn settle(segment: &Segment, end: &End) -> Result<(), Failure> {
    let zeroed = end.offset + end.rest;
    let mut at = end.unwitnessed;
    let mut buffer = vec![0; CHUNK.min((zeroed - at) as usize)];
    while at < end.offset {
        let count = buffer.len().min((end.offset - at) as usize);
        let chunk = &mut buffer[..count];
        segment
            .file
            .read_at(chunk, at)
            .map_err(segment.failure("read"))?;
        write(segment, chunk, at)?;
        at += count as u64;
    }
    buffer.fill(0);
    while at < zeroed {
        let count = buffer.len().min((zeroed - at) as usize);
        write(segment, &buffer[..count], at)?;
        at += count as u64;
    }
    segment.file.sync().map_err(segment.failure("sync"))
}

fn write(segment: &Segment, bytes: &[u8], offset: u64) -> Result<(), Failure> {
    let written = segment.file.write_at(bytes, offset);
    written.map_err(segment.failure("write"))
}
