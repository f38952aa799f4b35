//! Reading the keys of a range out of a snapshot, and little of the rest.
//!
//! The blocks of a database lie one behind the other, and its keys rise from block to block. So of
//! a block before the range only the first key is read, and of what lies behind it nothing.

use super::format::{BLOCK_HEAD_BYTES, ENTRIES, EXPIRING, Entry, HEAD_BYTES, VERSIONED, part};
use super::format::{MOST_BLOCK, read_entries, read_head};
use super::read::{check, damaged, fill, read_block};
use super::{FileFailure, SnapshotError};
use crate::effects::fields::Fields;
use crate::{Expiry, Span, Version};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tremula_log::Sequence;

/// Bytes that are read of a block of which only the first key is of interest.
const BEGINNING: usize = 256;

/// What gets an entry: its key, its value, and what that carries.
type Show<'s> = dyn FnMut(&[u8], &[u8], Version, Option<Expiry>) + 's;

/// The keys of a range in a snapshot, read in steps.
pub(crate) struct SnapshotRange {
    path: PathBuf,
    file: File,
    database: usize,
    span: Span,
    begins: Sequence,
    /// Where the next block begins.
    offset: u64,
    /// The last block that begins before the range: the range may begin in it.
    before: Option<u64>,
    /// The first key of the last block of the database.
    last: Option<Vec<u8>>,
}

/// The beginning of a block.
struct Beginning {
    /// Behind its last byte.
    ends: u64,
    database: usize,
    key: Vec<u8>,
}

impl SnapshotRange {
    /// Opens a snapshot. It may be removed while it is read.
    pub(crate) fn open(path: &Path, database: usize, span: Span) -> Result<Self, SnapshotError> {
        let mut file = File::open(path).map_err(|error| FileFailure::new("open", path, error))?;
        let mut head = [0; HEAD_BYTES];
        fill(&mut file, &mut head, 0, path)?;
        Ok(Self {
            begins: Sequence::new(read_head(&head, path)?),
            path: path.to_path_buf(),
            file,
            database,
            span,
            offset: HEAD_BYTES as u64,
            before: None,
            last: None,
        })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The record of the log at which the snapshot begins.
    pub(crate) const fn begins(&self) -> Sequence {
        self.begins
    }

    /// When the file was written.
    pub(crate) fn written(&self) -> Option<SystemTime> {
        self.file.metadata().and_then(|file| file.modified()).ok()
    }

    /// Reads about this many bytes, and shows the entries of the range. Values without a version
    /// get that of the last record before the snapshot. Returns how many bytes were read, and
    /// whether there is more.
    pub(crate) fn step(
        &mut self,
        most: usize,
        show: &mut Show<'_>,
    ) -> Result<(usize, ControlFlow<()>), SnapshotError> {
        let mut bytes = 0;
        while bytes < most {
            let beginning = self.beginning()?;
            bytes += BEGINNING;
            let Some(beginning) = beginning.filter(|one| one.database <= self.database) else {
                return Ok((bytes + self.end(show)?, ControlFlow::Break(())));
            };
            let at = std::mem::replace(&mut self.offset, beginning.ends);
            if beginning.database < self.database {
                continue;
            }
            if self.last.as_ref().is_some_and(|last| *last > beginning.key) {
                return Err(damaged(&self.path, at, "its keys are not in order"));
            }
            let is_before = *beginning.key <= *self.span.low();
            let is_behind = self.span.high().is_some_and(|high| *beginning.key >= *high);
            self.last = Some(beginning.key);
            if is_before {
                self.before = Some(at);
                continue;
            }
            bytes += self.end(show)?;
            if is_behind {
                return Ok((bytes, ControlFlow::Break(())));
            }
            bytes += self.block(at, show)?;
        }
        Ok((bytes, ControlFlow::Continue(())))
    }

    /// Shows what the last block before the range has of it, unless that was done.
    fn end(&mut self, show: &mut Show<'_>) -> Result<usize, SnapshotError> {
        match self.before.take() {
            Some(at) => self.block(at, show),
            None => Ok(0),
        }
    }

    /// Shows what a block has of the range. Returns its length.
    fn block(&mut self, at: u64, show: &mut Show<'_>) -> Result<usize, SnapshotError> {
        self.go_to(at)?;
        let block = read_block(&mut self.file, at, &self.path)?;
        check(&block, &self.path)?;
        let unknown = Version::wrapping(self.begins.before().get());
        let shown = read_entries(block.kind, &block.body, |entry: Entry<'_>| {
            if self.span.contains(entry.key) {
                let version = entry.version.unwrap_or(unknown);
                show(entry.key, entry.value, version, entry.expiry);
            }
        });
        shown.map_err(|what| damaged(&self.path, at, what))?;
        Ok(BLOCK_HEAD_BYTES + block.body.len())
    }

    fn go_to(&mut self, offset: u64) -> Result<(), SnapshotError> {
        let failure = |error| FileFailure::new("read", &self.path, error);
        self.file.seek(SeekFrom::Start(offset)).map_err(failure)?;
        Ok(())
    }

    /// The beginning of the next block; `None` if it is not one of entries, which come first.
    fn beginning(&mut self) -> Result<Option<Beginning>, SnapshotError> {
        let at = self.offset;
        self.go_to(at)?;
        let mut head = [0; BLOCK_HEAD_BYTES];
        fill(&mut self.file, &mut head, at, &self.path)?;
        let length = u32::from_le_bytes(part(&head, 0)) as usize;
        if length > MOST_BLOCK {
            let what = format!("a block of {length} bytes");
            return Err(damaged(&self.path, at, what));
        }
        let kind = head[8];
        if ![ENTRIES, EXPIRING, VERSIONED].contains(&kind) {
            return Ok(None);
        }
        let mut read = BEGINNING.min(length);
        loop {
            let mut body = Vec::new();
            let failure = |error| FileFailure::new("read", &self.path, error);
            let part = (&mut self.file).take(read as u64).read_to_end(&mut body);
            part.map_err(failure)?;
            if let Some((database, key)) = first_of(&body) {
                return Ok(Some(Beginning {
                    ends: at + (BLOCK_HEAD_BYTES + length) as u64,
                    database,
                    key,
                }));
            }
            if read == length {
                return Err(damaged(&self.path, at, "a block without a whole key"));
            }
            // A long key.
            read = length;
            self.go_to(at + BLOCK_HEAD_BYTES as u64)?;
        }
    }
}

/// The database of a block that begins so, and its first key; `None` if that does not end here.
fn first_of(body: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (database, rest) = body.split_first()?;
    let mut fields = Fields(rest);
    // It has nothing in common with a key before it.
    let _ = fields.number().ok().filter(|common| *common == 0)?;
    Some((usize::from(*database), fields.text().ok()?.to_vec()))
}
