//! Reading replies, as a client does.

/// One line of a reply, with the bytes that it announces.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A line: its first byte, which is its kind, and what follows.
    Line(u8, Vec<u8>),
    /// A string with its length: its kind, and the bytes.
    Text(u8, Vec<u8>),
}

impl Token {
    /// Its bytes, without its kind and its length.
    pub(super) fn text(&self) -> &[u8] {
        let (Self::Line(_, text) | Self::Text(_, text)) = self;
        text
    }
}

/// Reads the tokens of replies, and counts the elements that the last reply lacks. `None` if the
/// bytes are no replies.
pub(super) fn tokens(mut bytes: &[u8]) -> Option<(Vec<Token>, u64)> {
    let mut tokens = Vec::new();
    let mut missing = 0_u64;
    while let Some((kind, rest)) = bytes.split_first() {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let line = &rest[..end];
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return None;
        }
        bytes = &rest[end + 2..];
        missing = missing.saturating_sub(1);
        let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
        match kind {
            b'+' | b'-' | b'_' => (),
            b':' => drop(number()?),
            b'$' | b'=' if line != b"-1" => {
                let length = usize::try_from(number()?).ok()?;
                let text = bytes.get(..length)?;
                bytes = bytes[length..].strip_prefix(b"\r\n")?;
                tokens.push(Token::Text(*kind, text.to_vec()));
                continue;
            }
            b'*' | b'$' if line == b"-1" => (),
            b'*' | b'~' => missing = missing.checked_add(u64::try_from(number()?).ok()?)?,
            b'%' => missing = missing.checked_add(2 * u64::try_from(number()?).ok()?)?,
            _ => return None,
        }
        tokens.push(Token::Line(*kind, line.to_vec()));
    }
    Some((tokens, missing))
}
