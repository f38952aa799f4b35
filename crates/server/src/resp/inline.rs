//! Inline commands: a line of words, with Redis's rules for quotes.

use super::request::Span;

/// Splits `line` into words, and appends their bytes to `out` and their positions to `spans`.
/// `None` if quotes are unbalanced or a closing quote touches the next word.
///
/// Blanks separate words. Inside double quotes `\xHH`, `\n`, `\r`, `\t`, `\b`, `\a` are escapes,
/// and a backslash before any other byte stands for that byte. Inside single quotes only `\'` is an
/// escape. A quote may open in the middle of a word.
pub(super) fn split(line: &[u8], out: &mut Vec<u8>, spans: &mut Vec<Span>) -> Option<()> {
    let mut rest = line;
    loop {
        while let [first, tail @ ..] = rest
            && is_space(*first)
        {
            rest = tail;
        }
        if rest.is_empty() {
            return Some(());
        }
        let start = out.len();
        rest = word(rest, out)?;
        spans.push(Span {
            start,
            end: out.len(),
        });
    }
}

/// Takes one word off the front of `rest`.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return Some(rest),
            [blank, tail @ ..] if is_word_end(*blank) => return Some(tail),
            [b'"', tail @ ..] => return closed(double_quoted(tail, out)?),
            [b'\'', tail @ ..] => return closed(single_quoted(tail, out)?),
            [byte, tail @ ..] => {
                out.push(*byte);
                tail
            }
        }
    }
}

/// After a closing quote there must be a blank or the end.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first()
        .is_none_or(|byte| is_space(*byte))
        .then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                out.push(hex_digit(*high) << 4 | hex_digit(*low));
                tail
            }
            [b'\\', escaped, tail @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                tail
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                tail
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                out.push(b'\'');
                tail
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                tail
            }
        }
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Whether C's `isspace` considers the byte a blank.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r')
}

/// The blanks that end a word. A vertical tab or a form feed separates words but ends none, as in
/// Redis.
fn is_word_end(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<Vec<u8>>> {
        let (mut out, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut out, &mut spans)?;
        Some(
            spans
                .iter()
                .map(|span| out[span.start..span.end].to_vec())
                .collect(),
        )
    }

    fn plain(line: &str, expected: &[&str]) {
        let expected = expected
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        assert_eq!(words(line), Some(expected), "{line:?}");
    }

    #[test]
    fn words_are_split_at_blanks() {
        plain("", &[]);
        plain(" \t ", &[]);
        plain("get key", &["get", "key"]);
        plain("  get\tkey  ", &["get", "key"]);
        plain("ping\x0bx", &["ping\x0bx"]);
        plain("\x0bping", &["ping"]);
    }

    #[test]
    fn quotes_group_and_escape() {
        plain(r#"set a "b c""#, &["set", "a", "b c"]);
        plain(r#"set a "\x41\n\q\"""#, &["set", "a", "A\nq\""]);
        plain(r#"a "\xg1""#, &["a", "xg1"]);
        plain(r"set a 'b\'c\n'", &["set", "a", r"b'c\n"]);
        plain(r#"a"b" c"#, &["ab", "c"]);
        plain("''", &[""]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in ["\"", "'", "a \"b", "'a'b", "\"a\"b", r#""a\""#, r"'a\'"] {
            assert_eq!(words(line), None, "{line:?}");
        }
    }
}
