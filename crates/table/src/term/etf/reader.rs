//! Reads bytes from the front.

use super::error::{DecodeError, DecodeProblem};

/// Bytes that are read from the front. A length in them is trusted only as far as bytes follow.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    in_expanded: bool,
}

macro_rules! numbers {
    ($($number:ident),*) => {
        $(#[inline]
        pub(super) fn $number(&mut self) -> Result<$number, DecodeError> {
            self.array().map($number::from_be_bytes)
        })*
    };
}

impl<'a> Reader<'a> {
    numbers!(u8, u16, u32, u64);

    pub(super) const fn new(bytes: &'a [u8], in_expanded: bool) -> Self {
        Self {
            bytes,
            position: 0,
            in_expanded,
        }
    }

    pub(super) const fn position(&self) -> usize {
        self.position
    }

    pub(super) const fn left(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// An error about the part that begins at `offset`.
    #[cold]
    pub(super) fn error(&self, offset: usize, problem: DecodeProblem) -> DecodeError {
        DecodeError {
            offset,
            in_expanded: self.in_expanded,
            problem,
        }
    }

    /// Checks that at least `count` bytes are left.
    #[inline]
    pub(super) fn expect(&self, count: u64) -> Result<(), DecodeError> {
        let left = self.left() as u64;
        if count <= left {
            return Ok(());
        }
        let missing = count - left;
        Err(self.error(self.bytes.len(), DecodeProblem::Truncated { missing }))
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        self.expect(count as u64)?;
        let taken = &self.bytes[self.position..][..count];
        self.position += count;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Reads bytes that follow their length of 32 bits.
    #[inline]
    pub(super) fn block(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = self.u32()?;
        self.expect(length.into())?;
        self.take(length as usize)
    }
}
