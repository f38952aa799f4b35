//! Compressed points that do not change any more.

use super::Point;
use super::bits::BitSlice;
use super::codec::{Decoder, Encoder};
use std::ops::RangeInclusive;

/// The bytes of the number of points in a block's byte form.
const HEADER: usize = size_of::<u64>();

/// Points compressed as Gorilla does (PVLDB 8(12), 2015, section 4.1). Timestamps may come in any
/// order, and every bit of every value is kept.
///
/// ```
/// use tremula_papers::series::{Block, Point};
///
/// let points: Vec<Point> = (0..1000)
///     .map(|minute| Point { timestamp: minute * 60, value: f64::from(minute as u32 / 100) })
///     .collect();
/// let block: Block = points.iter().copied().collect();
/// assert!(block.to_bytes().len() < 400); // of 16,000
/// let copy = Block::from_bytes(&block.to_bytes()).unwrap();
/// assert!(copy.points().eq(points));
/// ```
#[derive(Clone, Debug)]
pub struct Block {
    words: Box<[u64]>,
    /// The number of bits used.
    bits: usize,
    len: u64,
    /// The least and the greatest timestamp.
    span: Option<(i64, i64)>,
}

/// Why bytes are not a [`Block`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Too few bytes for the number of points.
    #[error("a block has {HEADER} bytes at least, for the number of points; here are {0}")]
    TooShort(usize),
    /// The bits end, or have no meaning, before all points are decoded.
    #[error(
        "the block should hold {points} points, and point {point} (from 0) at bit {bit} is none"
    )]
    Broken {
        /// How many points there should be.
        points: u64,
        /// Which one is wrong.
        point: u64,
        /// The bit at which the previous point ends, counted from the end of the header.
        bit: usize,
    },
    /// The last point is followed by more than zeros up to the next byte.
    #[error("something follows the last point, which ends at bit {0}")]
    Trailing(usize),
}

impl Block {
    pub(super) fn from_encoder(encoder: Encoder) -> Self {
        let span = encoder.span();
        let (words, bits, len) = encoder.into_parts();
        Self {
            words,
            bits,
            len,
            span,
        }
    }

    /// The number of points.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no point.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// From the least timestamp to the greatest; `None` if there is no point.
    #[must_use]
    pub fn span(&self) -> Option<RangeInclusive<i64>> {
        self.span.map(|(least, greatest)| least..=greatest)
    }

    /// Bytes of memory that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }

    /// The points, in the order in which they were appended. O(1) a point.
    #[must_use]
    pub fn points(&self) -> Points<'_> {
        let bits = BitSlice {
            words: &self.words,
            len: self.bits,
        };
        Points(Decoder::new(bits, self.len))
    }

    /// The byte form: the number of points in 8 bytes, then their bits from the most significant
    /// one of each byte, padded with zeros to a whole byte.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = self.len.to_be_bytes();
        let bits = self.words.iter().flat_map(|word| word.to_be_bytes());
        count
            .into_iter()
            .chain(bits.take(self.bits.div_ceil(8)))
            .collect()
    }

    /// Reads the byte form. Decodes every point once, so that the result is sound for any bytes.
    /// O(bytes); reserves no more memory than the bytes take.
    ///
    /// # Errors
    ///
    /// The bytes are not what [`to_bytes`](Self::to_bytes) writes. Some others are accepted.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BlockError> {
        let (count, coded) = bytes
            .split_first_chunk::<HEADER>()
            .ok_or(BlockError::TooShort(bytes.len()))?;
        let word = |chunk: &[u8]| {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_be_bytes(word)
        };
        let mut block = Self {
            words: coded.chunks(size_of::<u64>()).map(word).collect(),
            bits: coded.len() * 8,
            len: u64::from_be_bytes(*count),
            span: None,
        };
        let mut points = block.points();
        let span = points.by_ref().fold(None, widen);
        let (left, end) = (points.0.left(), points.0.position());
        if left > 0 {
            return Err(BlockError::Broken {
                points: block.len,
                point: block.len - left,
                bit: end,
            });
        }
        let beyond = end % 64;
        let rest = match block.words.get(end / 64) {
            Some(word) => word << beyond,
            None => 0,
        };
        if end.div_ceil(8) != coded.len() || rest != 0 {
            return Err(BlockError::Trailing(end));
        }
        block.bits = end;
        block.span = span;
        Ok(block)
    }
}

fn widen(span: Option<(i64, i64)>, point: Point) -> Option<(i64, i64)> {
    let (least, greatest) = span.unwrap_or((point.timestamp, point.timestamp));
    Some((least.min(point.timestamp), greatest.max(point.timestamp)))
}

impl FromIterator<Point> for Block {
    fn from_iter<I: IntoIterator<Item = Point>>(points: I) -> Self {
        let mut encoder = Encoder::default();
        points.into_iter().for_each(|point| encoder.append(point));
        Self::from_encoder(encoder)
    }
}

/// The points of a [`Block`].
#[derive(Clone, Debug)]
pub struct Points<'a>(Decoder<'a>);

impl Iterator for Points<'_> {
    type Item = Point;

    #[inline]
    fn next(&mut self) -> Option<Point> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.0.left()).unwrap_or(usize::MAX);
        // No lower bound, because bytes from elsewhere may claim more points than they hold.
        (0, Some(left))
    }
}
