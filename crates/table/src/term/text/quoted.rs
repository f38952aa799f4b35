//! Strings, quoted atoms and `$` characters: texts that may have escapes.

use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;

/// Reads a quoted text, including its first quote.
pub(super) fn quoted(scanner: &mut Scanner<'_>) -> Result<String, ParseError> {
    let start = scanner.position();
    let mut text = String::new();
    let Some(quote) = scanner.next() else {
        return Err(scanner.wanted("a quote"));
    };
    loop {
        text.push_str(scanner.take_while(|c| c != quote && c != '\\'));
        match scanner.next() {
            Some('\\') => text.push(escape(scanner)?),
            Some(_) => return Ok(text),
            None => return Err(Scanner::error(start, ParseProblem::Unclosed(quote))),
        }
    }
}

/// Reads adjacent strings, which form one: `"ab" "c"`.
pub(super) fn strings(scanner: &mut Scanner<'_>) -> Result<String, ParseError> {
    let mut text = quoted(scanner)?;
    loop {
        scanner.skip_blanks();
        if scanner.peek_byte() != Some(b'"') {
            return Ok(text);
        }
        text.push_str(&quoted(scanner)?);
    }
}

/// Reads a character after its `$`.
pub(super) fn character(scanner: &mut Scanner<'_>) -> Result<char, ParseError> {
    match scanner.next() {
        Some('\\') => escape(scanner),
        Some(character) => Ok(character),
        None => Err(scanner.wanted("a character")),
    }
}

/// Reads an escape after its backslash.
fn escape(scanner: &mut Scanner<'_>) -> Result<char, ParseError> {
    let start = scanner.position() - 1;
    let wrong = || Scanner::error(start, ParseProblem::Escape);
    Ok(match scanner.next().ok_or_else(wrong)? {
        'b' => '\x08',
        'd' => '\x7f',
        'e' => '\x1b',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        's' => ' ',
        't' => '\t',
        'v' => '\x0b',
        '^' => match scanner.next() {
            Some(letter @ ('@'..='_' | 'a'..='z')) => char::from(letter as u8 & 31),
            _ => return Err(wrong()),
        },
        'x' if scanner.take("{") => {
            let digits = scanner.take_while(|c| c.is_ascii_hexdigit());
            let value = u32::from_str_radix(digits, 16).ok();
            let character = value.and_then(char::from_u32).ok_or_else(wrong)?;
            if !scanner.take("}") {
                return Err(wrong());
            }
            character
        }
        'x' => {
            let digits = scanner.rest().get(..2).ok_or_else(wrong)?;
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex);
            scanner.take(digits);
            char::from(value.ok_or_else(wrong)?)
        }
        first @ '0'..='7' => {
            let mut value = u32::from(first) - u32::from('0');
            for _ in 0..2 {
                let Some(digit @ b'0'..=b'7') = scanner.peek_byte() else {
                    break;
                };
                scanner.next();
                value = value * 8 + u32::from(digit - b'0');
            }
            char::from_u32(value).ok_or_else(wrong)?
        }
        other => other,
    })
}
