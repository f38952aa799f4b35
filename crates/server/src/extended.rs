//! Arithmetic on 80-bit extended floats, for `INCRBYFLOAT`.
//!
//! Redis reads, adds and prints with C's `long double`, which on x86-64 has a mantissa of 64 bits
//! and an exponent of 15. This module does the same with exact integers. The text is read as an
//! exact fraction and rounded once, the sum is exact and rounded once, and the print is exact up to
//! the 17th decimal place. Each rounding is to nearest, ties to even, as in the hardware and in
//! glibc. So results are equal over the whole range, including subnormal numbers.

use num_bigint::{BigInt, BigUint, Sign};

/// The bits of a mantissa.
const MANTISSA_BITS: i64 = 64;
/// The exponent of the smallest subnormal number, 2^-16445.
const MIN_EXPONENT: i64 = -16_445;
/// Every finite number is below 2 to this power.
const MAX_EXPONENT: i64 = 16_384;
/// Redis rejects a number whose text has this many bytes or more.
const MAX_TEXT: usize = 5 * 1024;
/// Decimal exponents beyond this, in either direction, are out of range for any digits: texts have
/// fewer than 5120 digits, and the range ends at 10^4932 and 10^-4951.
const MAX_DECIMAL_EXPONENT: i64 = 20_000;
/// Decimal places that are printed.
const PLACES: usize = 17;

/// A number that is not NaN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// `mantissa * 2^exponent`; the mantissa has at most 64 bits.
    Finite { mantissa: BigInt, exponent: i64 },
    /// Infinity of either sign.
    Infinite,
}

impl Extended {
    /// Reads what C's `strtold` reads, with nothing before or after it: a decimal or hexadecimal
    /// number, with or without an exponent, or an infinity. `None` for NaN, and for a number that
    /// rounds to infinity or, without being zero, to zero.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= MAX_TEXT {
            return None;
        }
        let (sign, digits) = match text {
            [b'-', rest @ ..] => (Sign::Minus, rest),
            [b'+', rest @ ..] => (Sign::Plus, rest),
            _ => (Sign::Plus, text),
        };
        if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::Infinite);
        }
        let (numerator, denominator, exponent) = match digits {
            [b'0', b'x' | b'X', rest @ ..] => {
                let literal = Literal::parse(rest, 16, b'p')?;
                // Each hexadecimal place is four binary places.
                (
                    literal.digits,
                    BigUint::from(1_u8),
                    literal.exponent - 4 * literal.places,
                )
            }
            _ => {
                let literal = Literal::parse(digits, 10, b'e')?;
                let exponent = literal.exponent - literal.places;
                if literal.digits == BigUint::ZERO {
                    (literal.digits, BigUint::from(1_u8), 0)
                } else if exponent.abs() > MAX_DECIMAL_EXPONENT {
                    return None;
                } else {
                    #[expect(clippy::cast_possible_truncation, reason = "at most 20000")]
                    let power = BigUint::from(10_u8).pow(exponent.unsigned_abs() as u32);
                    if exponent >= 0 {
                        (literal.digits * power, BigUint::from(1_u8), 0)
                    } else {
                        (literal.digits, power, 0)
                    }
                }
            }
        };
        let is_zero = numerator == BigUint::ZERO;
        let number = round_quotient(sign, numerator, &denominator, exponent)?;
        (is_zero || !number.is_zero()).then_some(number)
    }

    /// The sum; `None` if it is not a finite number.
    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        let (
            Self::Finite {
                mantissa: left,
                exponent: left_exponent,
            },
            Self::Finite {
                mantissa: right,
                exponent: right_exponent,
            },
        ) = (self, other)
        else {
            return None;
        };
        let exponent = *left_exponent.min(right_exponent);
        let sum = (left << (left_exponent - exponent)) + (right << (right_exponent - exponent));
        let (sign, sum) = sum.into_parts();
        round(sign, &sum, exponent, false)
    }

    /// The digits as C prints `%.17Lf`, without zeros at the end of the fraction.
    pub(crate) fn print(&self) -> String {
        let Self::Finite { mantissa, exponent } = self else {
            return "inf".to_owned();
        };
        let (negative, magnitude) = (mantissa.sign() == Sign::Minus, mantissa.magnitude());
        let mut text = if *exponent >= 0 {
            (magnitude << *exponent).to_string()
        } else {
            let scaled = magnitude * BigUint::from(10_u8).pow(17);
            let digits =
                shift_right_to_nearest(&scaled, exponent.unsigned_abs(), false).to_string();
            let digits = format!("{digits:0>width$}", width = PLACES + 1);
            let (whole, fraction) = digits.split_at(digits.len() - PLACES);
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{whole}{point}{fraction}")
        };
        if negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }

    fn is_zero(&self) -> bool {
        matches!(self, Self::Finite { mantissa, .. } if mantissa.sign() == Sign::NoSign)
    }
}

/// `digits / base^places * 2^exponent` or, in base ten, `* 10^exponent`.
struct Literal {
    digits: BigUint,
    places: i64,
    exponent: i64,
}

impl Literal {
    fn parse(text: &[u8], base: u32, exponent_mark: u8) -> Option<Self> {
        let is_digit = |byte: &u8| char::from(*byte).is_digit(base);
        let (whole, rest) = text.split_at(text.iter().take_while(|byte| is_digit(byte)).count());
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => {
                rest.split_at(rest.iter().take_while(|byte| is_digit(byte)).count())
            }
            _ => (&[][..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [mark, exponent @ ..] if mark.eq_ignore_ascii_case(&exponent_mark) => {
                parse_exponent(exponent)?
            }
            _ => return None,
        };
        Some(Self {
            digits: BigUint::parse_bytes(&[whole, fraction].concat(), base)?,
            places: i64::try_from(fraction.len()).ok()?,
            exponent,
        })
    }
}

/// An exponent. One that is far out of range is cut to another that is out of range, too.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let exponent = digits.iter().fold(0_i64, |sum, digit| {
        (sum * 10 + i64::from(digit - b'0')).min(1_000_000)
    });
    Some(sign * exponent)
}

/// `numerator / denominator * 2^exponent`, rounded.
fn round_quotient(
    sign: Sign,
    numerator: BigUint,
    denominator: &BigUint,
    exponent: i64,
) -> Option<Extended> {
    // Enough bits that the quotient has more bits than a mantissa.
    let wanted = MANTISSA_BITS + 2 + bits(denominator) - bits(&numerator);
    let shift = wanted.max(0);
    let numerator = numerator << shift;
    let quotient = &numerator / denominator;
    let inexact = &quotient * denominator != numerator;
    round(sign, &quotient, exponent - shift, inexact)
}

/// `magnitude * 2^exponent`, plus less than one unit if `inexact`, rounded; `None` on overflow.
fn round(sign: Sign, magnitude: &BigUint, exponent: i64, inexact: bool) -> Option<Extended> {
    let dropped = (bits(magnitude) - MANTISSA_BITS)
        .max(MIN_EXPONENT - exponent)
        .max(0);
    let mantissa = shift_right_to_nearest(magnitude, dropped.unsigned_abs(), inexact);
    if mantissa == BigUint::ZERO {
        return Some(Extended::Finite {
            mantissa: BigInt::ZERO,
            exponent: 0,
        });
    }
    let exponent = exponent + dropped;
    (bits(&mantissa) + exponent <= MAX_EXPONENT).then(|| Extended::Finite {
        mantissa: BigInt::from_biguint(sign, mantissa),
        exponent,
    })
}

/// `number / 2^shift` to the nearest integer, ties to even. If `inexact`, the exact number is
/// larger than `number` by less than one unit; then `shift` is not zero.
fn shift_right_to_nearest(number: &BigUint, shift: u64, inexact: bool) -> BigUint {
    let kept = number >> shift;
    let Some(half) = shift.checked_sub(1) else {
        return kept;
    };
    let beyond_half = inexact || number.trailing_zeros().is_some_and(|zeros| zeros < half);
    if number.bit(half) && (beyond_half || kept.bit(0)) {
        kept + 1_u8
    } else {
        kept
    }
}

fn bits(number: &BigUint) -> i64 {
    // No number here has more than a few hundred thousand bits.
    i64::try_from(number.bits()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(left: &str, right: &str) -> Option<String> {
        let left = Extended::parse(left.as_bytes())?;
        let right = Extended::parse(right.as_bytes())?;
        Some(left.add(&right)?.print())
    }

    /// The expected sums are those of a redis-server 7.0 on x86-64.
    #[test]
    fn sums_print_as_redis_prints_them() {
        for (left, right, expected) in [
            ("0", "0.1", "0.1"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "-0.1", "0"),
            ("-0", "-0", "0"),
            ("0", "0x1.8p3", "12"),
            ("3000", "1e17", "100000000000003000"),
            ("0", "1e-4950", "0"),
            ("0", "-1e-30", "0"),
            ("0", ".5", "0.5"),
            ("0", "5.", "5"),
            ("0", "+5", "5"),
        ] {
            assert_eq!(
                sum(left, right).as_deref(),
                Some(expected),
                "{left} + {right}"
            );
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "abc",
            "nan",
            "1e",
            "1e+",
            ".",
            "e5",
            "0x",
            "0xp1",
            "--1",
            "1e5000",
            "1e-5000",
            "1e-4951",
            "0x1p99999",
            "1_000",
            "infinit",
            "1e99999999999999999999",
        ] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Extended::parse(&[b'1'; MAX_TEXT]), None);
        assert!(Extended::parse(&[b'1'; 4000]).is_some());
        assert_eq!(sum("1", "-inf"), None);
        let most = format!("{}p16320", "0xffffffffffffffff");
        assert!(sum("0", &most).is_some());
        assert_eq!(sum(&most, &most), None);
    }

    proptest! {
        /// Integers of up to 63 bits are exact, and so are their sums.
        #[test]
        fn integers_add_exactly(left in -(1_i64 << 62)..1 << 62, right in -(1_i64 << 62)..1 << 62) {
            let expected = Some((left + right).to_string());
            prop_assert_eq!(sum(&left.to_string(), &right.to_string()), expected);
        }

        /// A `f64` is exact in a mantissa of 64 bits. A number that is rounded to 64 bits and then
        /// to 17 places differs from it by less than the places can show.
        #[test]
        fn small_doubles_read_and_print_as_they_are(number in -1e3_f64..1e3) {
            let printed = sum(&format!("{number:.30}"), "0").unwrap();
            let expected = format!("{number:.17}");
            let expected = expected.trim_end_matches('0').trim_end_matches('.');
            let expected = if expected == "-0" { "0" } else { expected };
            prop_assert_eq!(printed, expected);
        }

        #[test]
        fn no_text_panics(text in "[-+]?(0x)?[0-9a-f]{0,30}[.]?[0-9]{0,30}([ep][-+]?[0-9]{1,5})?") {
            if let Some(number) = Extended::parse(text.as_bytes()) {
                let _ = number.print();
            }
        }
    }
}
