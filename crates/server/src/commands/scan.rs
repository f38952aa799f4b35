//! `SCAN`: pages of keys, without missing a key that stays. See `tremula_store::Cursors`.

use super::{Context, Failure, Next, Outcome};
use crate::glob;
use crate::resp::{Arguments, number};
use std::ops::{Bound, ControlFlow};
use tremula_store::Key;
use tremula_store::Position;
use tremula_store::{Direction, KeyRange};
use tremula_store::{prefix_bounds, walk};

/// The most bytes that a key takes in a reply besides its own.
const KEY_OVERHEAD: usize = 32;

/// Keys that a page looks at without `COUNT`. Redis's default.
const DEFAULT_COUNT: usize = 10;

struct Options<'a> {
    pattern: &'a [u8],
    count: usize,
    /// Whether keys of the requested type can exist: all values are strings.
    wants_strings: bool,
}

pub(super) fn scan(context: &mut Context<'_>, arguments: Arguments<'_>) -> Outcome {
    let cursor = parse_cursor(arguments.get(1))?;
    let options = Options::parse(arguments)?;
    let (mut low, high) = prefix_bounds(&glob::literal_prefix(options.pattern));
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
    let database = context.database();
    let range = KeyRange::new(low.as_ref(), high.as_ref());
    let mut page: Vec<Key> = Vec::new();
    let mut seen = 0;
    let mut last = None;
    // A page may end early, and must not exceed the output buffer.
    let most_bytes = context.server.limits.max_output_buffer.0 / 2;
    let mut bytes = 0;
    walk(
        database,
        range,
        Direction::Ascending,
        options.count,
        |key, _| {
            seen += 1;
            if seen == options.count || bytes > most_bytes {
                last = Some(key.clone());
            }
            if options.wants_strings && glob::matches(options.pattern, key.as_bytes()) {
                bytes += key.as_bytes().len() + KEY_OVERHEAD;
                page.push(key.clone());
            }
            if last.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        },
    );
    let next = last.map_or(0, |after| {
        context.server.store.cursors().suspend(Position {
            database: number,
            after,
        })
    });
    context.reply.array(2);
    context.reply.bulk(next.to_string().as_bytes());
    context.reply.array(page.len());
    for key in &page {
        context.reply.bulk(key.as_bytes());
    }
    Ok(Next::Reply)
}

impl<'a> Options<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<Self, Failure> {
        let mut options = Self {
            pattern: b"*",
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
                options.pattern = value;
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
