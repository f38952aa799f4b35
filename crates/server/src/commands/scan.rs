//! `SCAN`: pages of keys, without missing a key that stays. See `tremula_store::Cursors`.

use super::listing::{Page, Source, list};
use super::{Context, Failure, Outcome};
use crate::glob;
use crate::resp::{Arguments, number};
use std::ops::Bound;
use tremula_store::{Direction, Key, KeyRange, prefix_bounds};

/// Keys that a page looks at without `COUNT`. Redis's default.
const DEFAULT_COUNT: usize = 10;

struct Options {
    /// The argument with the pattern.
    pattern: Option<usize>,
    count: usize,
    /// Whether keys of the requested type can exist: all values are strings.
    wants_strings: bool,
}

pub(super) fn scan(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let cursor = parse_cursor(arguments.get(1))?;
    let options = Options::parse(arguments)?;
    let pattern = options.pattern.map_or(&b"*"[..], |at| arguments.get(at));
    let (mut low, high) = prefix_bounds(&glob::literal_prefix(pattern));
    let number = context.session.database;
    if cursor != 0
        && let Some(after) = context.server.store.cursors().resume(cursor, number)
    {
        // Begins behind the cursor's key, but not before the first key that can match, because the
        // cursor may come from a call with another pattern.
        if KeyRange::new(low.as_ref(), Bound::Unbounded).starts_before(&after) {
            low = Bound::Excluded(after);
        }
    }
    let page = Page {
        database: number,
        count: options.count,
        wants_strings: options.wants_strings,
    };
    let source = Source::walk(context, low, high, Direction::Ascending, options.count);
    list::<Key>(context, arguments, source, options.pattern, Some(page))
}

impl Options {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Failure> {
        let mut options = Self {
            pattern: None,
            count: DEFAULT_COUNT,
            wants_strings: true,
        };
        let mut rest = arguments.skip(2);
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or(Failure::SYNTAX)?;
            if name.eq_ignore_ascii_case(b"count") {
                let count = number::parse(value).ok_or(Failure::NOT_AN_INTEGER)?;
                options.count = usize::try_from(count)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or(Failure::SYNTAX)?;
            } else if name.eq_ignore_ascii_case(b"match") {
                options.pattern = Some(arguments.len() - rest.len() - 1);
            } else if name.eq_ignore_ascii_case(b"type") {
                options.wants_strings = value.eq_ignore_ascii_case(b"string");
            } else {
                return Err(Failure::SYNTAX);
            }
        }
        Ok(options)
    }
}

/// Reads what C's `strtoul` reads, except leading blanks: digits that fit into 64 bits, of either
/// sign, or nothing.
fn parse_cursor(text: &[u8]) -> Result<u64, Failure> {
    let (negative, digits) = match text {
        [] => return Ok(0),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Failure::CURSOR);
    }
    let cursor = digits
        .iter()
        .try_fold(0_u64, |sum, digit| {
            sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .ok_or(Failure::CURSOR)?;
    Ok(if negative {
        cursor.wrapping_neg()
    } else {
        cursor
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_as_redis_reads_them() {
        for (text, cursor) in [
            ("", 0),
            ("0", 0),
            ("007", 7),
            ("+7", 7),
            ("-1", u64::MAX),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_cursor(text.as_bytes()).ok(), Some(cursor), "{text}");
        }
        for text in ["x", " 1", "1 ", "-", "+", "18446744073709551616"] {
            assert!(parse_cursor(text.as_bytes()).is_err(), "{text}");
        }
    }
}
