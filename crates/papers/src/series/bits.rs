//! Bits in words, the most significant first.

/// Bits that grow at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct BitBuffer {
    /// The last word is filled from its most significant bit; its unwritten bits are 0.
    words: Vec<u64>,
    /// Bits written.
    len: usize,
}

impl BitBuffer {
    /// Appends the `count` least significant bits of `bits`, at most 64. The other bits must be 0.
    #[inline]
    pub(super) fn push(&mut self, bits: u64, count: u32) {
        debug_assert!(count <= 64 && (count == 64 || bits >> count == 0));
        let free = (self.words.len() * 64 - self.len) as u32;
        self.len += count as usize;
        if count <= free {
            if let Some(last) = self.words.last_mut() {
                *last |= bits << (free - count);
            }
            return;
        }
        let rest = count - free;
        if let Some(last) = self.words.last_mut()
            && free > 0
        {
            *last |= bits >> rest;
        }
        self.words.push(bits << (64 - rest));
    }

    pub(super) fn as_slice(&self) -> BitSlice<'_> {
        BitSlice {
            words: &self.words,
            len: self.len,
        }
    }

    /// Bytes of memory held.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The words, without spare memory, and the number of bits.
    pub(super) fn into_words(self) -> (Box<[u64]>, usize) {
        (self.words.into_boxed_slice(), self.len)
    }
}

/// Borrowed bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitSlice<'a> {
    /// Exactly as many words as the length needs.
    pub(super) words: &'a [u64],
    pub(super) len: usize,
}

/// Reads bits from the front.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'a> {
    bits: BitSlice<'a>,
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bits: BitSlice<'a>) -> Self {
        Self { bits, position: 0 }
    }

    /// Bits read so far.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// The next 64 bits, without reading them; 0 behind the end.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        let (word, shift) = (self.position / 64, self.position % 64);
        let at = |word: usize| self.bits.words.get(word).copied().unwrap_or(0);
        // Shifts twice, so that no bit of the second word is taken if `shift` is 0.
        at(word) << shift | at(word + 1) >> 1 >> (63 - shift)
    }

    /// Skips `count` bits; `None` if there are fewer.
    #[inline]
    pub(super) fn skip(&mut self, count: u32) -> Option<()> {
        let position = self.position + count as usize;
        (position <= self.bits.len).then(|| self.position = position)
    }

    /// The next `count` bits, 1 to 64; `None` if there are fewer.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> Option<u64> {
        let bits = self.peek() >> (64 - count);
        self.skip(count)?;
        Some(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_pushed_is_read(pieces in prop::collection::vec((any::<u64>(), 1..=64_u32), 0..100)) {
            let mut buffer = BitBuffer::default();
            for &(bits, count) in &pieces {
                buffer.push(bits >> (64 - count), count);
            }
            let mut reader = BitReader::new(buffer.as_slice());
            for (bits, count) in pieces {
                prop_assert_eq!(reader.read(count), Some(bits >> (64 - count)));
            }
            prop_assert_eq!(reader.read(1), None);
        }
    }
}
