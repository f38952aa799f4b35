//! Where an input is cut.

/// Lengths of pieces that the input itself decides, so that the same input is cut in the same way.
pub(super) struct Cuts(u64);

impl Cuts {
    pub(super) fn of(data: &[u8]) -> Self {
        // FNV-1a. Its state must not be 0.
        let hash = data.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash | 1)
    }

    /// The length of the next piece, at least 1: most are short.
    pub(super) fn next(&mut self) -> usize {
        // Xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bits = self.0 >> 60;
        1 + (self.0 >> 8) as usize % (1 << (bits / 2))
    }
}
