//! The bytes of a file, record by record.

use super::error::FileProblem;
use crate::term::{Limits, Term};
use std::fs::File;
use std::io::{BufReader, Read};

/// Reads a file from its beginning. Reserves no memory for a length that exceeds the rest of the
/// file.
pub(super) struct Records {
    input: BufReader<File>,
    offset: u64,
    length: u64,
}

impl Records {
    pub(super) fn new(file: File) -> Result<Self, FileProblem> {
        Ok(Self {
            length: file.metadata()?.len(),
            input: BufReader::new(file),
            offset: 0,
        })
    }

    /// The offset of the next byte.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the file has been read to its end.
    pub(super) const fn is_over(&self) -> bool {
        self.offset == self.length
    }

    /// Fails unless the file ends here with `found` rows, as many as it says at `offset`.
    pub(super) fn check_end(&self, offset: u64, said: u64, found: u64) -> Result<(), FileProblem> {
        if said != found {
            return Err(FileProblem::Count {
                offset,
                said,
                found,
            });
        }
        if !self.is_over() {
            let offset = self.offset;
            return Err(FileProblem::Trailing { offset });
        }
        Ok(())
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FileProblem> {
        let mut bytes = [0; N];
        self.check_left(N as u64)?;
        self.input.read_exact(&mut bytes)?;
        self.offset += N as u64;
        Ok(bytes)
    }

    /// The next `count` bytes.
    pub(super) fn bytes(&mut self, count: u32) -> Result<Vec<u8>, FileProblem> {
        self.check_left(count.into())?;
        let mut bytes = vec![0; count as usize];
        self.input.read_exact(&mut bytes)?;
        self.offset += u64::from(count);
        Ok(bytes)
    }

    fn check_left(&self, count: u64) -> Result<(), FileProblem> {
        if self.length - self.offset < count {
            let offset = self.length;
            return Err(FileProblem::Truncated { offset });
        }
        Ok(())
    }

    /// The next record of a file in our format.
    pub(super) fn record(&mut self) -> Result<Term, FileProblem> {
        let start = self.offset;
        let length = self.array::<4>()?;
        let checksum = u32::from_be_bytes(self.array()?);
        let payload = self.bytes(u32::from_be_bytes(length))?;
        if record_checksum(length, &payload) != checksum {
            return Err(FileProblem::Damaged { offset: start });
        }
        self.term(&payload)
    }

    /// The term of a payload that has just been read.
    pub(super) fn term(&self, payload: &[u8]) -> Result<Term, FileProblem> {
        Term::from_etf(payload, &Limits::NONE).map_err(|error| FileProblem::Term {
            offset: self.offset - payload.len() as u64,
            error,
        })
    }
}

/// The checksum of a record.
pub(super) fn record_checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}
