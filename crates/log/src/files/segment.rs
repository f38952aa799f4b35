//! One file of the log, and how its frames are read.

use super::format::{FRAME_HEAD, FrameHead, SEGMENT_HEAD, Salt, SegmentHead};
use crate::batch::Batches;
use crate::disk::{Disk, DiskFile};
use crate::error::{Damage, Failure};
use crate::log::Tail;
use crate::sequence::Sequence;
use std::path::PathBuf;

/// How names of segments end.
const ENDING: &str = ".segment";

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// A file with frames.
pub(crate) struct Segment {
    pub(crate) head: SegmentHead,
    pub(crate) salt: Salt,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn DiskFile>,
}

impl Segment {
    /// The segment with this head, which lies in `file` or will.
    pub(crate) fn new(head: SegmentHead, disk: &dyn Disk, file: Box<dyn DiskFile>) -> Self {
        let name = name_of(head.first);
        Self {
            salt: head.salt(),
            path: disk.path(&name),
            head,
            name,
            file,
        }
    }

    /// Where frames end at the latest: behind lies the note that another segment continues it.
    pub(crate) const fn end(&self) -> u64 {
        self.head.length - FRAME_HEAD as u64
    }

    /// What comes before the first frame.
    pub(crate) const fn tail_before(&self) -> Tail {
        Tail {
            next: self.head.first,
            chain: self.head.chain,
        }
    }

    /// The length of the file, which should be what the head says.
    pub(crate) fn length(&self) -> Result<u64, Failure> {
        self.file.length().map_err(self.failure("measure"))
    }

    pub(crate) fn damage(&self, offset: u64, what: impl Into<String>) -> Damage {
        Damage {
            path: self.path.clone(),
            offset,
            what: what.into(),
        }
    }

    pub(crate) fn failure(&self, action: &'static str) -> impl FnOnce(std::io::Error) -> Failure {
        let path = self.path.clone();
        move |source| Failure::new(action, path, source)
    }
}

/// The name of the segment that begins with this sequence.
pub(crate) fn name_of(first: Sequence) -> String {
    format!("{:020}{ENDING}", first.get())
}

/// The sequence that a segment of this name begins with.
pub(crate) fn first_of(name: &str) -> Option<Sequence> {
    let digits = name.strip_suffix(ENDING)?;
    let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number
        .then(|| digits.parse().ok().map(Sequence::new))
        .flatten()
}

/// Makes a file a segment: its head is written, and everything before it is durable.
pub(crate) fn give_name(disk: &dyn Disk, spare: &str, segment: &Segment) -> Result<(), Failure> {
    segment.file.sync().map_err(segment.failure("sync"))?;
    disk.rename(spare, &segment.name)
        .and_then(|()| disk.sync_directory())
        .map_err(segment.failure("name"))
}

/// Where a walk over frames is, with a part of the file.
pub(crate) struct Cursor {
    pub(crate) offset: u64,
    pub(crate) tail: Tail,
    /// When the last frame before the cursor was written, as far as that is known.
    pub(crate) written: u64,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    begins: u64,
}

/// What lies at a cursor.
pub(crate) enum Step {
    /// A frame that fits to what was before it, and what was durable when it was written. The
    /// cursor has moved behind it.
    Frame(Batches, Sequence),
    /// The note that another segment continues this one.
    Continued,
    /// No whole frame.
    Nothing(&'static str),
    /// A frame whose checksums fit, but that cannot be here.
    Wrong(&'static str),
}

impl Cursor {
    /// A cursor at the first frame.
    pub(crate) fn new(segment: &Segment) -> Self {
        Self {
            offset: SEGMENT_HEAD as u64,
            tail: segment.tail_before(),
            written: segment.head.began,
            buffer: Vec::new(),
            begins: 0,
        }
    }

    /// The bytes of the frame that the cursor has just stepped over, which began at this offset.
    pub(crate) fn raw(&self, offset: u64) -> &[u8] {
        let place = |offset: u64| offset.saturating_sub(self.begins) as usize;
        &self.buffer[place(offset)..place(self.offset)]
    }

    /// Forgets what was read, because more has been written since.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// What lies at the cursor. Moves behind it if it is a frame.
    pub(crate) fn step(&mut self, segment: &Segment) -> Result<Step, Failure> {
        let Some(head) = self.head(segment)? else {
            return Ok(Step::Nothing("there is no frame"));
        };
        if head.first != self.tail.next {
            return Ok(Step::Nothing("a frame is missing before this one"));
        }
        if head.chain != self.tail.chain {
            return Ok(Step::Wrong(
                "the frame continues other frames than those before it",
            ));
        }
        if head.is_continued() {
            return Ok(Step::Continued);
        }
        let length = head.length();
        if self.offset + length as u64 > segment.end() {
            return Ok(Step::Wrong("the frame is longer than its segment"));
        }
        let bytes = self.bytes(segment, length)?;
        let Some(body) = bytes.get(FRAME_HEAD..FRAME_HEAD + head.body as usize) else {
            return Ok(Step::Nothing("the file ends within a frame"));
        };
        if !head.fits(body) {
            return Ok(Step::Nothing("the checksum of a frame does not fit"));
        }
        let batches = Batches::new(body, head.first, head.chain, head.written);
        let mut walk = batches.clone();
        walk.by_ref().for_each(drop);
        if !walk.is_at_end() || walk.next_sequence() != head.next() {
            return Ok(Step::Wrong(
                "the frame's batches are not those that its head counts",
            ));
        }
        self.offset += length as u64;
        self.written = self.written.max(head.written);
        self.tail = Tail {
            next: head.next(),
            chain: walk.next_chain(),
        };
        Ok(Step::Frame(batches, head.durable))
    }

    /// Whether somewhere from here on a frame says that `sequence` was durable when it was written.
    pub(crate) fn finds_witness(
        &mut self,
        segment: &Segment,
        sequence: Sequence,
    ) -> Result<bool, Failure> {
        use super::format::ALIGNMENT;
        let mut witness = false;
        let mut at = self.offset;
        while at < segment.head.length && !witness {
            self.offset = at;
            let bytes = self.bytes(segment, READ_BYTES)?;
            let places = bytes.len().saturating_sub(FRAME_HEAD - 1);
            if places == 0 {
                break;
            }
            witness = (0..places)
                .step_by(ALIGNMENT)
                .filter_map(|place| FrameHead::decode(&bytes[place..], segment.salt))
                .any(|head| head.durable >= sequence);
            at += places.next_multiple_of(ALIGNMENT) as u64;
        }
        Ok(witness)
    }

    /// The head at the cursor, if there is one.
    fn head(&mut self, segment: &Segment) -> Result<Option<FrameHead>, Failure> {
        let salt = segment.salt;
        let bytes = self.bytes(segment, FRAME_HEAD)?;
        Ok(FrameHead::decode(bytes, salt))
    }

    /// This number of bytes from the cursor on, or fewer where the file ends.
    fn bytes(&mut self, segment: &Segment, count: usize) -> Result<&[u8], Failure> {
        let within = |buffer: &[u8], begins: u64, offset: u64| {
            let skipped = offset.checked_sub(begins)? as usize;
            (skipped + count <= buffer.len()).then_some(skipped)
        };
        let skipped = match within(&self.buffer, self.begins, self.offset) {
            Some(skipped) => skipped,
            None => {
                self.buffer.resize(count.max(READ_BYTES), 0);
                let read = segment
                    .file
                    .read_at(&mut self.buffer, self.offset)
                    .map_err(segment.failure("read"))?;
                self.buffer.truncate(read);
                self.begins = self.offset;
                0
            }
        };
        let rest = &self.buffer[skipped..];
        Ok(&rest[..count.min(rest.len())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_its_segment_begins() {
        let name = name_of(Sequence::new(42));
        assert_eq!(name, "00000000000000000042.segment");
        assert_eq!(first_of(&name), Some(Sequence::new(42)));
        for other in [
            "42.segment",
            "0000000000000000004x.segment",
            "spare.1",
            "99999999999999999999.segment",
        ] {
            assert_eq!(first_of(other), None, "{other}");
        }
    }
}
