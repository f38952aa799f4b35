//! Numbers in byte forms: a sign, an exponent, and the binary digits behind the leading one.

use super::super::order::Numbers;
use super::super::{DecodeError, DecodeProblem, Float, Limits, Term};
use super::{error, tag};
use num_bigint::{BigInt, BigUint, Sign};

/// Binary digits in a byte; its lowest bit says whether another byte follows.
const DIGITS: usize = 7;

/// Exponents from the first to the second are one byte, in this distance from zero.
const LEAST_SHORT: i64 = -63;
const MOST_SHORT: i64 = 190;
const SHORT_BIAS: i64 = 64;

/// In the place of a short exponent: a smaller one follows in two bytes, in this distance from
/// zero, or a greater one in eight.
const SMALL: u8 = 0;
const GREAT: u8 = 255;
const SMALL_BIAS: i64 = 2048;

/// Digits of a float's mantissa after the leading one, and its exponents.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const LEAST_NORMAL: i64 = f64::MIN_EXP as i64 - 1;
const MOST_NORMAL: i64 = f64::MAX_EXP as i64 - 1;

pub(super) fn append_integer(value: i64, out: &mut Vec<u8>) {
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        out.push(tag::ZERO);
        return;
    }
    let zeros = magnitude.leading_zeros();
    let exponent = i64::from(u64::BITS - 1 - zeros);
    let digits = (magnitude << zeros).to_be_bytes();
    let sign = sign_tag(value < 0, false);
    append(sign, value < 0, exponent, (&digits, 1), out);
}

pub(super) fn append_big(value: &BigInt, out: &mut Vec<u8>) {
    let (sign, bytes) = value.to_bytes_be();
    let zeros = bytes
        .first()
        .map_or(0, |byte| byte.leading_zeros() as usize);
    let exponent = value.bits() as i64 - 1;
    let is_negative = sign == Sign::Minus;
    let digits = (&*bytes, zeros + 1);
    append(
        sign_tag(is_negative, false),
        is_negative,
        exponent,
        digits,
        out,
    );
}

pub(super) fn append_float(value: f64, numbers: Numbers, out: &mut Vec<u8>) {
    let is_float = numbers == Numbers::ByType;
    if value == 0.0 {
        out.push(if is_float { tag::ZERO_FLOAT } else { tag::ZERO });
        return;
    }
    let bits = value.abs().to_bits();
    let (exponent, mantissa) = match (bits >> MANTISSA_BITS) as i64 {
        0 => {
            let zeros = bits.leading_zeros();
            let exponent = LEAST_NORMAL - i64::from(zeros - (u64::BITS - 1 - MANTISSA_BITS));
            (exponent, bits << zeros)
        }
        biased => {
            let mantissa = 1 << (u64::BITS - 1) | bits << (u64::BITS - 1 - MANTISSA_BITS);
            (biased - MOST_NORMAL, mantissa)
        }
    };
    let is_negative = value < 0.0;
    let digits = mantissa.to_be_bytes();
    let sign = sign_tag(is_negative, is_float);
    append(sign, is_negative, exponent, (&digits, 1), out);
}

const fn sign_tag(is_negative: bool, is_float: bool) -> u8 {
    match (is_negative, is_float) {
        (true, false) => tag::NEGATIVE,
        (false, false) => tag::POSITIVE,
        (true, true) => tag::NEGATIVE_FLOAT,
        (false, true) => tag::POSITIVE_FLOAT,
    }
}

/// Appends a number that is not zero. Its digits begin at a bit of these bytes.
fn append(
    sign: u8,
    is_negative: bool,
    exponent: i64,
    (bytes, first): (&[u8], usize),
    out: &mut Vec<u8>,
) {
    out.push(sign);
    let begin = out.len();
    match exponent {
        LEAST_SHORT..=MOST_SHORT => out.push((exponent + SHORT_BIAS) as u8),
        ..LEAST_SHORT => {
            out.push(SMALL);
            out.extend(((exponent + SMALL_BIAS) as u16).to_be_bytes());
        }
        _ => {
            out.push(GREAT);
            out.extend(exponent.to_be_bytes());
        }
    }
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let last = bytes.get(bytes.len() - zeros - 1);
    let end = (bytes.len() - zeros) * 8 - last.map_or(0, |byte| byte.trailing_zeros() as usize);
    let mut at = first;
    loop {
        let byte = |at: usize| u16::from(bytes.get(at / 8).copied().unwrap_or(0));
        let digits = (byte(at) << 8 | byte(at + 8)) << (at % 8) >> (16 - DIGITS) << 1;
        at += DIGITS;
        let goes_on = at < end;
        out.push(digits as u8 | u8::from(goes_on));
        if !goes_on {
            break;
        }
    }
    if is_negative {
        out[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Reads a number behind its tag, and how many bytes it took. It may be a float only, an integer
/// only, or either.
pub(super) fn read(
    tag: u8,
    bytes: &[u8],
    by_type: bool,
    limits: &Limits,
) -> Result<(Term, usize), DecodeError> {
    let is_negative = matches!(tag, tag::NEGATIVE | tag::NEGATIVE_FLOAT);
    let is_float = matches!(tag, tag::NEGATIVE_FLOAT | tag::POSITIVE_FLOAT);
    let byte = |at: usize| match bytes.get(at) {
        Some(&byte) => Ok(if is_negative { !byte } else { byte }),
        None => error(bytes.len(), DecodeProblem::Truncated { missing: 1 }),
    };
    let (exponent, mut at) = match byte(0)? {
        SMALL => {
            let biased = u16::from_be_bytes([byte(1)?, byte(2)?]);
            (i64::from(biased) - SMALL_BIAS, 3)
        }
        GREAT => {
            let mut all = [0; 8];
            for (at, read) in all.iter_mut().enumerate() {
                *read = byte(1 + at)?;
            }
            (i64::from_be_bytes(all), 9)
        }
        short => (i64::from(short) - SHORT_BIAS, 1),
    };
    let is_short = (LEAST_SHORT..=MOST_SHORT).contains(&exponent);
    if at > 1 && (is_short || (at == 3) != (exponent < 0)) {
        return error(0, DecodeProblem::NotCanonical);
    }
    // The digits as bits, the leading one first, in bytes.
    let mut digits = vec![0x80_u8];
    let mut end = 1;
    loop {
        let read = byte(at)?;
        let seven = read >> 1;
        let shifted = u16::from(seven) << (16 - DIGITS) >> (end % 8);
        let [high, low] = shifted.to_be_bytes();
        digits.resize((end + DIGITS).div_ceil(8), 0);
        digits[end / 8] |= high;
        if let Some(next) = digits.get_mut(end / 8 + 1) {
            *next |= low;
        }
        end += DIGITS;
        at += 1;
        if read & 1 == 1 {
            continue;
        }
        if seven == 0 && end > 1 + DIGITS {
            return error(at - 1, DecodeProblem::NotCanonical);
        }
        break;
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let last = digits
        .last()
        .map_or(0, |byte| byte.trailing_zeros() as usize);
    // How many digits there are behind the leading one.
    let behind = digits.len() * 8 - last - 1;
    let number = if !is_float && exponent >= behind as i64 {
        let bits = exponent as u64 + 1;
        if bits > limits.integer_bits {
            let limit = limits.integer_bits;
            return error(0, DecodeProblem::IntegerTooLong { bits, limit });
        }
        integer(is_negative, bits, &digits)
    } else if is_float || !by_type {
        match float(exponent, behind, &digits) {
            Some(magnitude) => {
                let value = if is_negative { -magnitude } else { magnitude };
                match Float::new(value) {
                    Ok(value) => value.into(),
                    Err(_) => return error(0, DecodeProblem::Float),
                }
            }
            None => return error(0, DecodeProblem::Float),
        }
    } else {
        return error(0, DecodeProblem::NotCanonical);
    };
    Ok((number, at))
}

fn integer(is_negative: bool, bits: u64, digits: &[u8]) -> Term {
    let magnitude = BigUint::from_bytes_be(digits);
    let have = digits.len() as u64 * 8;
    let magnitude = if bits >= have {
        magnitude << (bits - have)
    } else {
        magnitude >> (have - bits)
    };
    let sign = if is_negative { Sign::Minus } else { Sign::Plus };
    Term::from(BigInt::from_biguint(sign, magnitude))
}

/// The float with these digits, if it has no more than a float does.
fn float(exponent: i64, behind: usize, digits: &[u8]) -> Option<f64> {
    let below = LEAST_NORMAL.saturating_sub(exponent).max(0);
    // Each binary place below the normal numbers takes a digit away.
    let room = i64::from(MANTISSA_BITS) - below;
    if exponent > MOST_NORMAL || room < 0 || behind as i64 > room {
        return None;
    }
    let mut first = [0; 8];
    let length = digits.len().min(8);
    first[..length].copy_from_slice(&digits[..length]);
    let mantissa = u64::from_be_bytes(first) >> (u64::BITS - 1 - MANTISSA_BITS);
    let bits = if below > 0 {
        mantissa >> below
    } else {
        let biased = (exponent + MOST_NORMAL) as u64;
        biased << MANTISSA_BITS | mantissa & ((1 << MANTISSA_BITS) - 1)
    };
    Some(f64::from_bits(bits))
}
