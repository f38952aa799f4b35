//! Writes floats with the fewest digits that read back as the same float; among those the nearest
//! digits, and of two equally near ones the even one. `ryu` gives these digits; the standard
//! library does not choose the even ones.

use super::super::Float;
use std::fmt::{self, Write};

/// 2^53. From here on not every integer is a float, and plain digits would look more exact than
/// they are.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Writes a float plainly, or with an exponent where that is shorter.
pub(in crate::term) fn write_float(float: Float, out: &mut impl Write) -> fmt::Result {
    let value = float.value();
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // The value is 0.DIGITS times ten to the power of `point`.
    let all = [whole, part].concat();
    let zeros = all.len() - all.trim_start_matches('0').len();
    let digits = match all.trim_matches('0') {
        "" => "0",
        digits => digits,
    };
    let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
    let point = match digits {
        "0" => 1,
        _ => whole.len() as i32 - zeros as i32 + exponent,
    };
    if value.is_sign_negative() {
        out.write_char('-')?;
    }
    let (first, rest) = digits.split_at(1);
    let rest = if rest.is_empty() { "0" } else { rest };
    let scientific = 1 + 1 + rest.len() + 1 + decimal_len(point - 1);
    if value.abs() < INEXACT && plain_len(digits.len(), point) <= scientific {
        return write_plain(digits, point, out);
    }
    write!(out, "{first}.{rest}e{}", point - 1)
}

/// Characters of an integer in decimal.
fn decimal_len(value: i32) -> usize {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(value < 0)
}

/// The length of this many digits with the decimal point at `point`.
fn plain_len(digits: usize, point: i32) -> usize {
    let places = point.unsigned_abs() as usize;
    if point <= 0 {
        2 + places + digits
    } else if places >= digits {
        places + 2
    } else {
        digits + 1
    }
}

fn write_plain(digits: &str, point: i32, out: &mut impl Write) -> fmt::Result {
    let places = point.unsigned_abs() as usize;
    if point <= 0 {
        write!(out, "0.{:0>width$}{digits}", "", width = places)
    } else if places >= digits.len() {
        write!(
            out,
            "{digits}{:0>width$}.0",
            "",
            width = places - digits.len()
        )
    } else {
        let (whole, part) = digits.split_at(places);
        write!(out, "{whole}.{part}")
    }
}
