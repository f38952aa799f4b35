//! The compression of Gorilla: T. Pelkonen et al., *Gorilla: A Fast, Scalable, In-Memory Time
//! Series Database*, PVLDB 8(12), 2015, section 4.1.
//!
//! A timestamp is coded as the difference between its distance from the previous one and the
//! previous distance. In a regular series that is 0, coded in one bit. A value is coded as the
//! exclusive or of its bits with those of the previous value. If it did not change that is 0, coded
//! in one bit. Else the bits between the leading and the trailing zeros follow, which mostly fit
//! into the window between those of the previous value.
//!
//! There are two differences from the paper. Its timestamps are seconds within two hours, ours are
//! any 64 bits: arithmetic wraps, and a difference that does not fit in 32 bits has a sixth code
//! with 64. Its encoder uses the previous window whenever the bits fit in it, ours only if a new
//! window would not be shorter.

use super::Point;
use super::bits::{BitBuffer, BitReader, BitSlice};

/// The number of bits that follow each code of a difference of distances. The code is as many ones
/// as the index here, and a zero unless it is [`LAST_CODE`]. The bits are in two's complement.
const DIFFERENCE_BITS: [u32; 6] = [0, 7, 9, 12, 32, 64];
const LAST_CODE: u32 = 5;

/// Bits for the number of leading zeros of a value; larger numbers are cut.
const LEADING_BITS: u32 = 5;
const MOST_LEADING: u32 = (1 << LEADING_BITS) - 1;
/// Bits for the number of meaningful bits; 64 is written as 0.
const LENGTH_BITS: u32 = 6;

/// What encoder and decoder know of the previous points.
#[derive(Clone, Debug)]
struct Context {
    timestamp: i64,
    distance: i64,
    value: u64,
    /// The number of zeros before and after the last window.
    leading: u32,
    trailing: u32,
}

impl Context {
    /// No value fits in the window of a new context.
    fn new(timestamp: i64, value: u64) -> Self {
        Self {
            timestamp,
            distance: 0,
            value,
            leading: 64,
            trailing: 64,
        }
    }

    fn point(&self) -> Point {
        Point {
            timestamp: self.timestamp,
            value: f64::from_bits(self.value),
        }
    }
}

/// Compresses points one by one, with any timestamps in any order and any values.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    bits: BitBuffer,
    points: u64,
    /// The least and the greatest timestamp, if there is a point.
    span: (i64, i64),
    context: Option<Context>,
}

impl Encoder {
    /// O(1) amortized.
    #[inline]
    pub(super) fn append(&mut self, point: Point) {
        let value = point.value.to_bits();
        self.points += 1;
        let Some(context) = &mut self.context else {
            self.bits.push(point.timestamp.cast_unsigned(), 64);
            self.bits.push(value, 64);
            self.span = (point.timestamp, point.timestamp);
            self.context = Some(Context::new(point.timestamp, value));
            return;
        };
        let (least, greatest) = self.span;
        self.span = (least.min(point.timestamp), greatest.max(point.timestamp));
        let distance = point.timestamp.wrapping_sub(context.timestamp);
        let difference = distance.wrapping_sub(context.distance);
        context.timestamp = point.timestamp;
        if difference == 0 && value == context.value {
            // The most frequent point: writes both codes at once.
            return self.bits.push(0, 2);
        }
        context.distance = distance;
        push_difference(&mut self.bits, difference);
        push_value(&mut self.bits, value ^ context.value, context);
        context.value = value;
    }

    /// The least and the greatest timestamp.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        (self.points > 0).then_some(self.span)
    }

    /// The last point's timestamp.
    #[inline]
    pub(super) fn last(&self) -> Option<i64> {
        self.context.as_ref().map(|context| context.timestamp)
    }

    pub(super) fn decode(&self) -> Decoder<'_> {
        Decoder::new(self.bits.as_slice(), self.points)
    }

    /// Bytes of memory held.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.bits.held()
    }

    pub(super) fn into_parts(self) -> (Box<[u64]>, usize, u64) {
        let (words, len) = self.bits.into_words();
        (words, len, self.points)
    }
}

#[inline]
fn push_difference(bits: &mut BitBuffer, difference: i64) {
    if difference == 0 {
        return bits.push(0, 1);
    }
    let fits = |width: u32| {
        let unused = 64 - width;
        (difference << unused) >> unused == difference
    };
    let code = (1..LAST_CODE)
        .find(|&code| fits(DIFFERENCE_BITS[code as usize]))
        .unwrap_or(LAST_CODE);
    let ones = (1 << code) - 1;
    if code == LAST_CODE {
        bits.push(ones, LAST_CODE);
    } else {
        bits.push(ones << 1, code + 1);
    }
    let width = DIFFERENCE_BITS[code as usize];
    bits.push(
        difference.cast_unsigned() & (u64::MAX >> (64 - width)),
        width,
    );
}

#[inline]
fn push_value(bits: &mut BitBuffer, change: u64, context: &mut Context) {
    if change == 0 {
        return bits.push(0, 1);
    }
    let leading = change.leading_zeros().min(MOST_LEADING);
    let trailing = change.trailing_zeros();
    let length = 64 - leading - trailing;
    let fits = leading >= context.leading && trailing >= context.trailing;
    // If nothing fits, `window` is not used, and both numbers of zeros are 64.
    let window = 64_u32.wrapping_sub(context.leading + context.trailing);
    if fits && window <= length + LEADING_BITS + LENGTH_BITS {
        bits.push(0b10, 2);
        bits.push(change >> context.trailing, window);
    } else {
        let lengths = u64::from(leading << LENGTH_BITS | (length & 63));
        bits.push(0b11 << (LEADING_BITS + LENGTH_BITS) | lengths, 13);
        bits.push(change >> trailing, length);
        context.leading = leading;
        context.trailing = trailing;
    }
}

/// Decompresses points. Ends early if the bits are not what an [`Encoder`] writes.
#[derive(Clone, Debug)]
pub(super) struct Decoder<'a> {
    bits: BitReader<'a>,
    /// Points not decoded yet.
    left: u64,
    context: Option<Context>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bits: BitSlice<'a>, points: u64) -> Self {
        Self {
            bits: BitReader::new(bits),
            left: points,
            context: None,
        }
    }

    /// Bits decoded so far.
    pub(super) fn position(&self) -> usize {
        self.bits.position()
    }

    /// Points not decoded yet.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    #[inline]
    fn decode(&mut self) -> Option<Point> {
        let bits = &mut self.bits;
        let Some(context) = &mut self.context else {
            let timestamp = bits.read(64)?.cast_signed();
            let first = Context::new(timestamp, bits.read(64)?);
            return Some(self.context.insert(first).point());
        };
        // The most frequent point: the same distance and the same value as before.
        let ahead = bits.peek();
        if ahead >> 62 == 0 {
            bits.skip(2)?;
            context.timestamp = context.timestamp.wrapping_add(context.distance);
            return Some(context.point());
        }
        let difference = read_difference(bits, ahead)?;
        context.distance = context.distance.wrapping_add(difference);
        context.timestamp = context.timestamp.wrapping_add(context.distance);
        context.value ^= read_change(bits, context)?;
        Some(context.point())
    }
}

#[inline]
fn read_difference(bits: &mut BitReader<'_>, ahead: u64) -> Option<i64> {
    if ahead >> 63 == 0 {
        bits.skip(1)?;
        return Some(0);
    }
    let code = ahead.leading_ones().min(LAST_CODE);
    bits.skip((code + 1).min(LAST_CODE))?;
    let width = DIFFERENCE_BITS[code as usize];
    let unused = 64 - width;
    Some((bits.read(width)? << unused).cast_signed() >> unused)
}

#[inline]
fn read_change(bits: &mut BitReader<'_>, context: &mut Context) -> Option<u64> {
    let ahead = bits.peek();
    if ahead >> 63 == 0 {
        bits.skip(1)?;
        return Some(0);
    }
    if ahead >> 62 == 0b11 {
        bits.skip(2 + LEADING_BITS + LENGTH_BITS)?;
        let lengths = (ahead >> (62 - LEADING_BITS - LENGTH_BITS)) as u32;
        let length = match lengths & 63 {
            0 => 64,
            length => length,
        };
        context.leading = lengths >> LENGTH_BITS & MOST_LEADING;
        context.trailing = 64_u32.checked_sub(context.leading + length)?;
    } else {
        bits.skip(2)?;
    }
    // The difference is negative before the first window.
    let length = 64_u32.checked_sub(context.leading + context.trailing)?;
    Some(bits.read(length)? << context.trailing)
}

impl Iterator for Decoder<'_> {
    type Item = Point;

    #[inline]
    fn next(&mut self) -> Option<Point> {
        if self.left == 0 {
            return None;
        }
        let point = self.decode()?;
        self.left -= 1;
        Some(point)
    }
}
