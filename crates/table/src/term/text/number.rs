//! Integers, in any base, and floats.

use super::super::{Float, Term};
use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;
use num_bigint::BigInt;
use std::borrow::Cow;

/// The number of decimal digits that always fit into an `i64`.
const SHORT: usize = 18;

/// Reads a number that begins with a digit; `negative` if a minus preceded it.
pub(super) fn number(scanner: &mut Scanner<'_>, negative: bool) -> Result<Term, ParseError> {
    let start = scanner.position();
    let whole = digits(scanner, 10)?;
    if whole.len() <= 2 && scanner.take("#") {
        return in_base(scanner, start, &whole, negative);
    }
    if scanner.peek_byte() == Some(b'#') {
        return Err(Scanner::error(
            start,
            ParseProblem::Base(whole.into_owned()),
        ));
    }
    let mut behind_point = scanner.rest().bytes().skip(1);
    if scanner.peek_byte() == Some(b'.') && behind_point.next().is_some_and(|b| b.is_ascii_digit())
    {
        return float(scanner, start, negative);
    }
    integer(scanner, start, &whole, 10, negative)
}

/// Reads digits of a base, with single underscores between them. Returns them without underscores.
fn digits<'a>(scanner: &mut Scanner<'a>, base: u32) -> Result<Cow<'a, str>, ParseError> {
    let start = scanner.position();
    loop {
        if scanner.take_while(|c| c.is_digit(base)).is_empty() {
            return Err(scanner.wanted("a digit"));
        }
        let mut next = scanner.rest().chars();
        let goes_on = next.next() == Some('_') && next.next().is_some_and(|c| c.is_digit(base));
        if !goes_on {
            break;
        }
        scanner.take("_");
    }
    let text = scanner.since(start);
    Ok(if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    })
}

/// Reads an integer after its base and the `#`.
fn in_base(
    scanner: &mut Scanner<'_>,
    start: usize,
    base: &str,
    negative: bool,
) -> Result<Term, ParseError> {
    let radix = base.parse().ok().filter(|radix| (2..=36).contains(radix));
    let problem = || ParseProblem::Base(base.to_owned());
    let radix = radix.ok_or_else(|| Scanner::error(start, problem()))?;
    let digits = digits(scanner, radix)?;
    integer(scanner, start, &digits, radix, negative)
}

fn integer(
    scanner: &Scanner<'_>,
    start: usize,
    digits: &str,
    radix: u32,
    negative: bool,
) -> Result<Term, ParseError> {
    if radix == 10 && digits.len() <= SHORT {
        let value = digits
            .bytes()
            .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        return Ok(Term::from(if negative { -value } else { value }));
    }
    let significant = digits.trim_start_matches('0');
    let bits = bits_of_digits(significant.len() as u64, radix);
    let limit = scanner.limits.integer_bits;
    if bits > limit {
        return Err(Scanner::error(
            start,
            ParseProblem::IntegerTooLong { bits, limit },
        ));
    }
    // The digits are of that base, and there is at least one.
    let value = BigInt::parse_bytes(digits.as_bytes(), radix)
        .ok_or_else(|| Scanner::error(start, ParseProblem::NumberTooLarge))?;
    Ok(Term::from(if negative { -value } else { value }))
}

/// An upper bound for the bits of a number of this many digits; exact if the base is a power of
/// two.
fn bits_of_digits(digits: u64, radix: u32) -> u64 {
    if radix.is_power_of_two() {
        return digits.saturating_mul(radix.trailing_zeros().into());
    }
    (digits as f64 * f64::from(radix).log2()).ceil() as u64
}

/// Reads a float whose whole part has been read.
fn float(scanner: &mut Scanner<'_>, start: usize, negative: bool) -> Result<Term, ParseError> {
    scanner.take(".");
    digits(scanner, 10)?;
    if matches!(scanner.peek_byte(), Some(b'e' | b'E')) {
        scanner.next();
        if !scanner.take("-") {
            scanner.take("+");
        }
        digits(scanner, 10)?;
    }
    let text = scanner.since(start).replace('_', "");
    let value = text
        .parse::<f64>()
        .ok()
        .map(|value| if negative { -value } else { value });
    let float = value.and_then(|value| Float::new(value).ok());
    let too_large = || Scanner::error(start, ParseProblem::FloatTooLarge);
    float.map(Term::Float).ok_or_else(too_large)
}

/// Reads an unsigned decimal integer, as in sizes and opaque forms.
pub(super) fn plain<T: std::str::FromStr>(scanner: &mut Scanner<'_>) -> Result<T, ParseError> {
    let start = scanner.position();
    let digits = scanner.take_while(|c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(scanner.wanted("a number"));
    }
    digits
        .parse()
        .map_err(|_| Scanner::error(start, ParseProblem::NumberTooLarge))
}
