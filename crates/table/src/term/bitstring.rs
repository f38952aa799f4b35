//! Binaries, and bit strings, whose last byte may be partial.

use tremula_index::kit::prefetch;
use triomphe::ThinArc;

/// Bytes, of whose last one some low bits may not belong to the string. A binary is a bit string of
/// full bytes. Clones share the bytes.
#[derive(Clone, Default)]
pub struct Bitstring {
    /// `None` if it has no bytes. Unused bits are zero.
    bytes: Option<ThinArc<(), u8>>,
    unused: UnusedBits,
}

/// How many low bits of the last byte are unused. It is an enum because the unused values of its
/// byte then encode the kind of term, so that a term takes 16 bytes and not 24.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
enum UnusedBits {
    #[default]
    Zero,
    One,
    Two,
    Three,
    Four,
    Five,
    Six,
    Seven,
}

impl UnusedBits {
    const ALL: [Self; 8] = {
        use UnusedBits::{Five, Four, One, Seven, Six, Three, Two, Zero};
        [Zero, One, Two, Three, Four, Five, Six, Seven]
    };
}

impl Bitstring {
    /// A binary of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self {
            bytes: (!bytes.is_empty()).then(|| ThinArc::from_header_and_slice((), bytes)),
            unused: UnusedBits::Zero,
        }
    }

    /// The first `bits` bits of these bytes, the high bits of a byte first; all of them if there
    /// are fewer.
    ///
    /// ```
    /// use tremula_table::{Term, term::Bitstring};
    ///
    /// let bits = Bitstring::from_bits(&[0b1010_1111], 3);
    /// assert_eq!(Term::from(bits).to_string(), "<<5:3>>");
    /// ```
    #[must_use]
    pub fn from_bits(bytes: &[u8], bits: usize) -> Self {
        let length = bits.div_ceil(8);
        let unused = length * 8 - bits;
        match bytes.get(..length) {
            Some([first @ .., last]) if unused > 0 => {
                let last = last >> unused << unused;
                let bytes = first.iter().copied().chain([last]);
                let bytes = bytes.collect::<Vec<u8>>();
                Self {
                    bytes: Some(ThinArc::from_header_and_slice((), &bytes)),
                    unused: UnusedBits::ALL[unused],
                }
            }
            fitting => Self::from_bytes(fitting.unwrap_or(bytes)),
        }
    }

    /// How many terms share the bytes.
    pub(crate) fn references(&self) -> usize {
        self.bytes.as_ref().map_or(0, ThinArc::strong_count)
    }

    /// Asks for the memory of its number of references, where the bytes begin.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let Some(bytes) = &self.bytes {
            prefetch(bytes.heap_ptr());
        }
    }

    /// The bytes, the last of which may have [unused bits](Self::unused_bits), which are zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_ref().map_or(&[], |bytes| &bytes.slice)
    }

    /// The bytes of a binary; `None` if the last byte is partial.
    #[must_use]
    pub fn as_binary(&self) -> Option<&[u8]> {
        self.is_binary().then(|| self.bytes())
    }

    /// Whether all its bytes are full.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        self.unused == UnusedBits::Zero
    }

    /// How many low bits of the last byte do not belong to the string: 0 to 7.
    #[must_use]
    pub const fn unused_bits(&self) -> u8 {
        self.unused as u8
    }

    /// The length in bits.
    #[must_use]
    pub fn bit_len(&self) -> usize {
        self.bytes().len() * 8 - usize::from(self.unused_bits())
    }

    /// Whether it has no bits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_beyond_the_length_are_gone() {
        let bits = Bitstring::from_bits(&[0xff, 0xff], 11);
        assert_eq!(bits.bytes(), [0xff, 0b1110_0000]);
        assert_eq!((bits.bit_len(), bits.unused_bits()), (11, 5));
        assert_eq!(bits.as_binary(), None);
        assert_eq!(Bitstring::from_bits(&[1, 2], 8).as_binary(), Some(&[1][..]));
        assert_eq!(Bitstring::from_bits(&[1], 100).as_binary(), Some(&[1][..]));
        assert!(Bitstring::from_bits(&[1], 0).is_empty());
    }
}
