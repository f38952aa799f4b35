//! Reading what is durable, while more is written.

use super::segment::{Cursor, Segment, Step};
use super::shared::Shared;
use crate::batch::{Batches, Entry};
use crate::error::ReadError;
use crate::log::Reader;
use crate::sequence::Sequence;
use tremula_sync::Arc;

pub(super) struct FileReader {
    shared: Arc<Shared>,
    segment: Arc<Segment>,
    cursor: Cursor,
    /// The batches of the frame before the cursor that were not given out.
    batches: Option<Batches>,
    /// What was durable when the cursor last read.
    seen: Sequence,
}

impl FileReader {
    /// A reader that begins with the batch that has the record `from` in it.
    pub(super) fn new(shared: &Arc<Shared>, from: Sequence) -> Result<Self, ReadError> {
        let from = from.max(Sequence::FIRST);
        let next = shared.queue.tail().next;
        if from > next {
            return Err(ReadError::Beyond { from, next });
        }
        let segments = shared.segments.lock();
        let after = segments.partition_point(|segment| segment.head.first <= from);
        let Some(segment) = after.checked_sub(1).map(|index| &segments[index]) else {
            let first = segments[0].head.first;
            return Err(ReadError::Truncated { from, first });
        };
        let segment = Arc::clone(segment);
        drop(segments);
        let mut reader = Self {
            shared: Arc::clone(shared),
            cursor: Cursor::new(&segment),
            segment,
            batches: None,
            seen: Sequence::NONE,
        };
        reader.skip_to(from)?;
        Ok(reader)
    }

    /// Skips the batches before the one that has this record.
    fn skip_to(&mut self, from: Sequence) -> Result<(), ReadError> {
        loop {
            if let Some(batches) = &mut self.batches {
                let before = batches.clone();
                match batches.next() {
                    Some(entry) if entry.last() < from => continue,
                    Some(_) => {
                        self.batches = Some(before);
                        return Ok(());
                    }
                    None => self.batches = None,
                }
            }
            if !self.load()? {
                return Ok(());
            }
        }
    }

    /// Reads the next frame, if one is durable.
    fn load(&mut self) -> Result<bool, ReadError> {
        let next = self.cursor.tail.next;
        let durable = self.shared.watermark.get();
        if durable < next {
            return Ok(false);
        }
        if next > self.seen {
            // What the cursor has read ahead may be from before these frames were written.
            self.cursor.forget();
            self.seen = durable;
        }
        loop {
            let offset = self.cursor.offset;
            match self.cursor.step(&self.segment)? {
                Step::Frame(batches, _) => {
                    self.batches = Some(batches);
                    return Ok(true);
                }
                Step::Wrong(what) => return Err(self.segment.damage(offset, what).into()),
                Step::Continued | Step::Nothing(_) => self.go_on()?,
            }
        }
    }

    /// Goes to the segment that continues this one.
    fn go_on(&mut self) -> Result<(), ReadError> {
        let next = self.cursor.tail.next;
        let segments = self.shared.segments.lock();
        let found = segments.iter().find(|segment| segment.head.first == next);
        let Some(segment) = found.filter(|found| !Arc::ptr_eq(found, &self.segment)) else {
            let first = segments[0].head.first;
            if first > next {
                return Err(ReadError::Truncated { from: next, first });
            }
            let what = format!("the record {next} is durable, and is not here any more");
            return Err(self.segment.damage(self.cursor.offset, what).into());
        };
        let segment = Arc::clone(segment);
        drop(segments);
        self.cursor = Cursor::new(&segment);
        self.segment = segment;
        Ok(())
    }
}

impl Iterator for FileReader {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batches.as_mut().and_then(Iterator::next) {
                return Some(Ok(entry));
            }
            self.batches = None;
            match self.load() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Reader for FileReader {
    fn next_sequence(&self) -> Sequence {
        let waiting = self.batches.as_ref().filter(|batches| !batches.is_at_end());
        waiting.map_or(self.cursor.tail.next, Batches::next_sequence)
    }
}
