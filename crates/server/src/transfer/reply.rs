//! What a server replies, and how that is read: by the client here, and by the page's console.

use std::io::{self, BufRead, Read};

/// How deep a reply may be nested.
const MOST_DEPTH: usize = 32;

/// The longest line of a reply, and the most elements of one.
const MOST_LINE: u64 = 64 << 10;
const MOST_ELEMENTS: usize = 1 << 20;
/// The longest string of a reply, as Redis takes by default.
const MOST_STRING: u64 = 512 << 20;

/// What a server replies, in either version of the protocol.
///
/// ```
/// use tremula_server::transfer::Reply;
///
/// let pair = Reply::Many(vec![Reply::Integer(1), Reply::Text(b"one".to_vec())]);
/// assert_ne!(pair, Reply::Nothing);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short text.
    Line(String),
    /// A whole number of 64 bits.
    Integer(i64),
    /// A finite number with a fraction.
    Double(f64),
    /// Yes or no.
    Flag(bool),
    /// An error, with its code.
    Error(String),
    /// Bytes; also a number that is too large, or not finite.
    Text(Vec<u8>),
    /// No value.
    Nothing,
    /// Several replies.
    Many(Vec<Self>),
    /// Several pairs of replies.
    Pairs(Vec<(Self, Self)>),
}

/// Why there is no reply to read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The connection broke.
    Broken(io::Error),
    /// What came is no reply, or its end is missing.
    Wrong(String),
}

impl Reply {
    /// Reads the next reply, and nothing behind it. O(bytes).
    pub(crate) fn read(from: &mut impl BufRead) -> Result<Self, Unread> {
        read_at(from, MOST_DEPTH)
    }
}

fn read_at(from: &mut impl BufRead, depth: usize) -> Result<Reply, Unread> {
    let line = read_line(from)?;
    let wrong = || Unread::Wrong(format!("a reply that is none: {line:?}"));
    let depth = depth.checked_sub(1).ok_or_else(wrong)?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(wrong)?;
    let string = || {
        let length = rest.parse().ok().filter(|length| *length <= MOST_STRING);
        length.ok_or_else(|| Unread::Wrong(format!("a string of {rest} bytes")))
    };
    let count = || {
        let count = rest.parse().ok().filter(|count| *count <= MOST_ELEMENTS);
        count.ok_or_else(|| Unread::Wrong(format!("a list of {rest}")))
    };
    Ok(match kind {
        "+" => Reply::Line(rest.to_owned()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Integer(rest.parse().map_err(|_| wrong())?),
        "," => match rest.parse::<f64>() {
            Ok(number) if number.is_finite() => Reply::Double(number),
            Ok(_) => Reply::Text(rest.into()),
            Err(_) => return Err(wrong()),
        },
        "#" => Reply::Flag(rest == "t"),
        "_" => Reply::Nothing,
        "(" => Reply::Text(rest.into()),
        "$" | "*" if rest == "-1" => Reply::Nothing,
        "$" => Reply::Text(read_text(from, string()?)?),
        // Behind three letters, which say what it is, and a colon.
        "=" => {
            let text = read_text(from, string()?)?;
            Reply::Text(text.get(4..).ok_or_else(wrong)?.to_vec())
        }
        "!" => {
            let text = read_text(from, string()?)?;
            Reply::Error(String::from_utf8_lossy(&text).into_owned())
        }
        "*" | "~" | ">" => {
            let mut elements = Vec::new();
            for _ in 0..count()? {
                elements.push(read_at(from, depth)?);
            }
            Reply::Many(elements)
        }
        "%" => {
            let mut pairs = Vec::new();
            for _ in 0..count()? {
                pairs.push((read_at(from, depth)?, read_at(from, depth)?));
            }
            Reply::Pairs(pairs)
        }
        _ => return Err(wrong()),
    })
}

/// Reads a line, and returns it without its end.
pub(super) fn read_line(from: &mut impl BufRead) -> Result<String, Unread> {
    let mut line = Vec::new();
    let read = from.take(MOST_LINE).read_until(b'\n', &mut line);
    read.map_err(Unread::Broken)?;
    if line.pop() != Some(b'\n') {
        let what = "the connection ended, or a line is too long";
        return Err(Unread::Wrong(what.to_owned()));
    }
    line.pop_if(|byte| *byte == b'\r');
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Reads a text of this length, and the end of its line.
fn read_text(from: &mut impl BufRead, length: u64) -> Result<Vec<u8>, Unread> {
    let mut text = Vec::new();
    let read = from.take(length + 2).read_to_end(&mut text);
    let read = read.map_err(Unread::Broken)?;
    if read as u64 != length + 2 {
        return Err(Unread::Wrong("the connection ended".to_owned()));
    }
    text.truncate(text.len() - 2);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Reply, Unread> {
        let mut bytes = text.as_bytes();
        let reply = Reply::read(&mut bytes)?;
        assert!(bytes.is_empty(), "{text:?} leaves {bytes:?}");
        Ok(reply)
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let text = |text: &str| Reply::Text(text.into());
        for (bytes, expected) in [
            ("+OK\r\n", Reply::Line("OK".to_owned())),
            ("-ERR no\r\n", Reply::Error("ERR no".to_owned())),
            ("!6\r\nERR no\r\n", Reply::Error("ERR no".to_owned())),
            (":-7\r\n", Reply::Integer(-7)),
            (",1.5\r\n", Reply::Double(1.5)),
            (",-inf\r\n", text("-inf")),
            ("(12345678901234567890\r\n", text("12345678901234567890")),
            ("#t\r\n", Reply::Flag(true)),
            ("#f\r\n", Reply::Flag(false)),
            ("_\r\n", Reply::Nothing),
            ("$-1\r\n", Reply::Nothing),
            ("*-1\r\n", Reply::Nothing),
            ("$4\r\na\r\nb\r\n", text("a\r\nb")),
            ("=6\r\ntxt:hi\r\n", text("hi")),
            (
                "*2\r\n:1\r\n~1\r\n$0\r\n\r\n",
                Reply::Many(vec![Reply::Integer(1), Reply::Many(vec![text("")])]),
            ),
            (
                "%1\r\n+a\r\n*0\r\n",
                Reply::Pairs(vec![(Reply::Line("a".to_owned()), Reply::Many(Vec::new()))]),
            ),
        ] {
            assert_eq!(read(bytes).expect(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        let deep = "*1\r\n".repeat(2 * MOST_DEPTH) + ":1\r\n";
        for bytes in [
            &deep[..],
            "",
            "\r\n",
            "+OK",
            "?1\r\n",
            ":one\r\n",
            ",one\r\n",
            "$-2\r\n",
            "$9\r\nshort\r\n",
            "=2\r\nhi\r\n",
            "$99999999999\r\n",
            "*9999999999\r\n",
            "*2\r\n:1\r\n",
        ] {
            assert!(matches!(read(bytes), Err(Unread::Wrong(_))), "{bytes:?}");
        }
    }
}
