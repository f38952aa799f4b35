//! How segments and frames look on disk. All numbers are little-endian.
//!
//! ```text
//! segment                                  frame, at a multiple of 8
//! ┌──────────────────────────────┐         ┌──────────────────────────────┐
//! │ 0  magic                   8 │         │ 0  magic                   4 │
//! │ 8  version                 4 │         │ 4  CRC of 8..64 and salt   4 │
//! │ 12 CRC of the others       4 │         │ 8  length of the body      4 │
//! │ 16 id of the log          16 │         │ 12 CRC of the body         4 │
//! │ 32 first sequence          8 │         │ 16 first sequence          8 │
//! │ 40 length of the file      8 │         │ 24 count of records        4 │
//! │ 48 chain before it        16 │         │ 28 flags                   4 │
//! │ 64 when it was begun       8 │         │ 32 durable sequence        8 │
//! │ 72 zeroes                 56 │         │ 40 chain before it        16 │
//! ├──────────────────────────────┤         │ 56 when it was written     8 │
//! │ 128 frames                   │         ├──────────────────────────────┤
//! │     ...                      │         │ 64 batches                   │
//! │ end: zeroes, or what an      │         │    zeroes up to a multiple   │
//! │ earlier use has left         │         │                              │
//! └──────────────────────────────┘         └──────────────────────────────┘
//! ```
//!
//! The *salt* of a segment is a hash of its id, first sequence and chain. It goes into the CRC of
//! each frame's head, so that frames of an earlier use of the same file, and bytes that a user has
//! made to look like a frame, are none here.
//!
//! The *durable sequence* of a frame is the last record that was durable when the frame was
//! written: it witnesses that everything up to there was synced, so what is missing there is
//! damage and not the torn end of a write.
//!
//! Times are microseconds since 1970. In one log they never go back, even if the machine's clock
//! does. A time of 0 is not known: earlier builds wrote zeroes there.

use crate::log::Tail;
use crate::sequence::{Chain, Sequence};
use twox_hash::XxHash3_128;

/// The newest format that this version reads, and the one that it writes.
pub(crate) const VERSION: u32 = 1;

/// Bytes of a segment before its first frame.
pub(crate) const SEGMENT_HEAD: usize = 128;

/// Bytes of a frame before its batches.
pub(crate) const FRAME_HEAD: usize = 64;

/// Frames begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: [u8; 8] = *b"tremula\n";

const FRAME_MAGIC: [u8; 4] = *b"fram";

const CLOSED_MAGIC: [u8; 8] = *b"closed\n\0";

/// Bytes of the note that a log was closed.
pub(crate) const CLOSED_BYTES: usize = 56;

/// The flag of a frame without records that ends a segment which another one continues.
const CONTINUED: u32 = 1;

/// The length of a frame whose body has this number of bytes.
pub(crate) const fn frame_length(body: usize) -> usize {
    FRAME_HEAD + body.next_multiple_of(ALIGNMENT)
}

/// What a segment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) id: u128,
    pub(crate) first: Sequence,
    pub(crate) length: u64,
    pub(crate) chain: Chain,
    /// When it was begun.
    pub(crate) began: u64,
}

/// Why bytes are no head of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoSegment {
    Newer(u32),
    Damaged(&'static str),
}

impl SegmentHead {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEAD] {
        let mut bytes = [0; SEGMENT_HEAD];
        put(&mut bytes, 0, SEGMENT_MAGIC);
        put(&mut bytes, 8, VERSION.to_le_bytes());
        put(&mut bytes, 16, self.id.to_le_bytes());
        put(&mut bytes, 32, self.first.get().to_le_bytes());
        put(&mut bytes, 40, self.length.to_le_bytes());
        put(&mut bytes, 48, self.chain.get().to_le_bytes());
        put(&mut bytes, 64, self.began.to_le_bytes());
        let crc = crc_without_itself(&bytes);
        put(&mut bytes, 12, crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NoSegment> {
        let Some(bytes) = bytes.first_chunk::<SEGMENT_HEAD>() else {
            return Err(NoSegment::Damaged("the file is too short for its head"));
        };
        if get::<8>(bytes, 0) != SEGMENT_MAGIC {
            return Err(NoSegment::Damaged(
                "the head does not begin as a log's does",
            ));
        }
        let is_whole = u32_at(bytes, 12) == crc_without_itself(bytes);
        let version = u32_at(bytes, 8);
        if version > VERSION && is_whole {
            return Err(NoSegment::Newer(version));
        }
        if !is_whole || version == 0 {
            return Err(NoSegment::Damaged("the head's checksum does not fit"));
        }
        Ok(Self {
            id: u128_at(bytes, 16),
            first: Sequence::new(u64_at(bytes, 32)),
            length: u64_at(bytes, 40),
            chain: Chain::new(u128_at(bytes, 48)),
            began: u64_at(bytes, 64),
        })
    }

    pub(crate) fn salt(&self) -> Salt {
        let mut bytes = [0; 40];
        put(&mut bytes, 0, self.id.to_le_bytes());
        put(&mut bytes, 16, self.first.get().to_le_bytes());
        put(&mut bytes, 24, self.chain.get().to_le_bytes());
        let hash = XxHash3_128::oneshot(&bytes);
        Salt(crc32c::crc32c(&hash.to_le_bytes()))
    }
}

/// The CRC of a segment's head, without the bytes of the CRC.
fn crc_without_itself(bytes: &[u8; SEGMENT_HEAD]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

/// What the checksums of a segment's frames begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(u32);

/// What a frame says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    pub(crate) first: Sequence,
    pub(crate) count: u32,
    pub(crate) body: u32,
    pub(crate) body_crc: u32,
    pub(crate) durable: Sequence,
    pub(crate) chain: Chain,
    /// When it was written.
    pub(crate) written: u64,
}

impl FrameHead {
    /// The end of a segment that the one which begins with `next` continues.
    pub(crate) fn continued(next: Sequence, chain: Chain) -> Self {
        Self {
            first: next,
            count: 0,
            body: 0,
            body_crc: 0,
            durable: next.before(),
            chain,
            written: 0,
        }
    }

    pub(crate) const fn is_continued(&self) -> bool {
        self.count == 0
    }

    /// The sequence behind the frame.
    pub(crate) const fn next(&self) -> Sequence {
        self.first.plus(self.count as u64)
    }

    pub(crate) fn encode(&self, salt: Salt) -> [u8; FRAME_HEAD] {
        let flags = if self.is_continued() { CONTINUED } else { 0 };
        let mut bytes = [0; FRAME_HEAD];
        put(&mut bytes, 0, FRAME_MAGIC);
        put(&mut bytes, 8, self.body.to_le_bytes());
        put(&mut bytes, 12, self.body_crc.to_le_bytes());
        put(&mut bytes, 16, self.first.get().to_le_bytes());
        put(&mut bytes, 24, self.count.to_le_bytes());
        put(&mut bytes, 28, flags.to_le_bytes());
        put(&mut bytes, 32, self.durable.get().to_le_bytes());
        put(&mut bytes, 40, self.chain.get().to_le_bytes());
        put(&mut bytes, 56, self.written.to_le_bytes());
        let crc = crc32c::crc32c_append(salt.0, &bytes[8..]);
        put(&mut bytes, 4, crc.to_le_bytes());
        bytes
    }

    /// `None` if these bytes are no head of a frame of the segment with this salt.
    pub(crate) fn decode(bytes: &[u8], salt: Salt) -> Option<Self> {
        let bytes = bytes.first_chunk::<FRAME_HEAD>()?;
        if get::<4>(bytes, 0) != FRAME_MAGIC
            || u32_at(bytes, 4) != crc32c::crc32c_append(salt.0, &bytes[8..])
        {
            return None;
        }
        let head = Self {
            body: u32_at(bytes, 8),
            body_crc: u32_at(bytes, 12),
            first: Sequence::new(u64_at(bytes, 16)),
            count: u32_at(bytes, 24),
            durable: Sequence::new(u64_at(bytes, 32)),
            chain: Chain::new(u128_at(bytes, 40)),
            written: u64_at(bytes, 56),
        };
        let is_continued = u32_at(bytes, 28) == CONTINUED;
        (is_continued == head.is_continued()).then_some(head)
    }

    /// The bytes of the frame with its head and what fills it up.
    pub(crate) const fn length(&self) -> usize {
        frame_length(self.body as usize)
    }

    /// When the frame with these bytes was written.
    pub(crate) fn written_of(frame: &[u8]) -> u64 {
        frame
            .first_chunk::<FRAME_HEAD>()
            .map_or(0, |head| u64_at(head, 56))
    }

    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        crc32c::crc32c(body) == self.body_crc
    }
}

/// The note of a log that was closed, by which the loss of its end is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) id: u128,
    pub(crate) next: Sequence,
    pub(crate) chain: Chain,
}

impl Closed {
    pub(crate) const fn tail(&self) -> Tail {
        Tail {
            next: self.next,
            chain: self.chain,
        }
    }

    pub(crate) fn encode(&self) -> [u8; CLOSED_BYTES] {
        let mut bytes = [0; CLOSED_BYTES];
        put(&mut bytes, 0, CLOSED_MAGIC);
        put(&mut bytes, 8, self.id.to_le_bytes());
        put(&mut bytes, 24, self.next.get().to_le_bytes());
        put(&mut bytes, 32, self.chain.get().to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..48]);
        put(&mut bytes, 48, crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CLOSED_BYTES] = bytes.try_into().ok()?;
        let is_whole = get::<8>(bytes, 0) == CLOSED_MAGIC
            && u32_at(bytes, 48) == crc32c::crc32c(&bytes[..48])
            && u32_at(bytes, 52) == 0;
        is_whole.then(|| Self {
            id: u128_at(bytes, 8),
            next: Sequence::new(u64_at(bytes, 24)),
            chain: Chain::new(u128_at(bytes, 32)),
        })
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(get(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(get(bytes, at))
}

fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(get(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: SegmentHead = SegmentHead {
        id: 1 << 100 | 7,
        first: Sequence::new(3),
        length: 4096,
        chain: Chain::new(99 << 64),
        began: 1_700_000_000_000_000,
    };

    const FRAME: FrameHead = FrameHead {
        first: Sequence::new(3),
        count: 2,
        body: 10,
        body_crc: 77,
        durable: Sequence::new(1),
        chain: Chain::new(5 << 90),
        written: 1_700_000_000_000_001,
    };

    #[test]
    fn heads_are_read_as_they_were_written() {
        assert_eq!(SegmentHead::decode(&SEGMENT.encode()), Ok(SEGMENT));
        let salt = SEGMENT.salt();
        assert_eq!(FrameHead::decode(&FRAME.encode(salt), salt), Some(FRAME));
        let end = FrameHead::continued(Sequence::new(9), Chain::new(1));
        assert_eq!(FrameHead::decode(&end.encode(salt), salt), Some(end));
        let closed = Closed {
            id: 3,
            next: Sequence::new(4),
            chain: Chain::new(5),
        };
        assert_eq!(Closed::decode(&closed.encode()), Some(closed));
    }

    #[test]
    fn no_bit_of_a_head_may_change() {
        let salt = SEGMENT.salt();
        let closed = Closed {
            id: 3,
            next: Sequence::new(4),
            chain: Chain::new(5),
        };
        for bit in 0..8 * SEGMENT_HEAD {
            let mut bytes = SEGMENT.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHead::decode(&bytes).is_err(), "bit {bit}");
        }
        for bit in 0..8 * FRAME_HEAD {
            let mut bytes = FRAME.encode(salt);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHead::decode(&bytes, salt), None, "bit {bit}");
        }
        for bit in 0..8 * CLOSED_BYTES {
            let mut bytes = closed.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Closed::decode(&bytes), None, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_another_use_of_the_file_is_none_here() {
        let earlier = SegmentHead {
            first: Sequence::new(2),
            ..SEGMENT
        };
        let bytes = FRAME.encode(earlier.salt());
        assert_eq!(FrameHead::decode(&bytes, SEGMENT.salt()), None);
    }

    #[test]
    fn a_newer_format_is_not_damage() {
        let mut bytes = SEGMENT.encode();
        put(&mut bytes, 8, 2_u32.to_le_bytes());
        let damaged = SegmentHead::decode(&bytes);
        assert!(matches!(damaged, Err(NoSegment::Damaged(_))));
        let crc = crc_without_itself(&bytes);
        put(&mut bytes, 12, crc.to_le_bytes());
        assert_eq!(SegmentHead::decode(&bytes), Err(NoSegment::Newer(2)));
    }
}
