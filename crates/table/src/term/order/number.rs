//! Numbers by value: compares integers with floats exactly.

use num_bigint::{BigInt, BigUint, Sign};
use std::cmp::Ordering;

/// 2^63: the least float above every `i64`.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Bits of a float's mantissa after the leading one.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// Compares an integer with a finite float.
#[inline]
pub(crate) fn compare_integer(integer: i64, float: f64) -> Ordering {
    if float >= TWO_TO_63 {
        return Ordering::Less;
    }
    if float < -TWO_TO_63 {
        return Ordering::Greater;
    }
    // In this range the whole part of a float is exactly an `i64`.
    let whole = float as i64;
    integer.cmp(&whole).then_with(|| {
        let part = float - whole as f64;
        0.0.partial_cmp(&part).unwrap_or(Ordering::Equal)
    })
}

/// Compares an integer outside the range of `i64` with a finite float.
pub(crate) fn compare_big(integer: &BigInt, float: f64) -> Ordering {
    match whole(float) {
        Some(Whole::Big(whole)) => integer.cmp(&whole),
        // Nearer to zero than any such integer.
        _ if integer.sign() == Sign::Minus => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// A float without a fractional part, as an integer.
pub(crate) enum Whole {
    Small(i64),
    Big(BigInt),
}

/// The integer that equals a finite float, if there is one.
pub(crate) fn whole(float: f64) -> Option<Whole> {
    if float.trunc() != float {
        return None;
    }
    if (-TWO_TO_63..TWO_TO_63).contains(&float) {
        return Some(Whole::Small(float as i64));
    }
    let bits = float.to_bits();
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1) | 1 << MANTISSA_BITS;
    let exponent = (bits >> MANTISSA_BITS) as u32 & 0x7ff;
    // The float is at least 2^63, so its exponent exceeds the bias and the mantissa's length.
    let shift = exponent - (f64::MAX_EXP as u32 - 1) - MANTISSA_BITS;
    let sign = if float < 0.0 { Sign::Minus } else { Sign::Plus };
    Some(Whole::Big(BigInt::from_biguint(
        sign,
        BigUint::from(mantissa) << shift,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_two_to_the_53rd_integers_are_not_rounded() {
        let two_to_53 = 9_007_199_254_740_992;
        assert_eq!(
            compare_integer(two_to_53, two_to_53 as f64),
            Ordering::Equal
        );
        assert_eq!(
            compare_integer(two_to_53 + 1, two_to_53 as f64),
            Ordering::Greater
        );
        assert_eq!(compare_integer(i64::MAX, TWO_TO_63), Ordering::Less);
        assert_eq!(compare_integer(i64::MIN, -TWO_TO_63), Ordering::Equal);
        assert_eq!(compare_integer(-1, -1.5), Ordering::Greater);
        assert_eq!(compare_integer(-2, -1.5), Ordering::Less);
        assert_eq!(compare_integer(0, -0.0), Ordering::Equal);
        assert_eq!(compare_integer(0, 5e-324), Ordering::Less);
    }

    #[test]
    fn big_integers_are_not_rounded_either() {
        let big: BigInt = BigInt::from(1) << 80;
        let above: BigInt = big.clone() + 1;
        let huge: BigInt = BigInt::from(1) << 2000;
        let float = 2f64.powi(80);
        assert_eq!(compare_big(&big, float), Ordering::Equal);
        assert_eq!(compare_big(&above, float), Ordering::Greater);
        assert_eq!(compare_big(&-above, -float), Ordering::Less);
        assert_eq!(compare_big(&huge, f64::MAX), Ordering::Greater);
        assert_eq!(compare_big(&-huge, f64::MIN), Ordering::Less);
        assert_eq!(compare_big(&big, 0.5), Ordering::Greater);
        assert_eq!(compare_big(&-big, -1e9), Ordering::Less);
    }
}
