//! How a message is written, but for its first byte.
//!
//! RESP2 has an array where RESP3 has a push, and all other bytes are the same. So one text serves
//! the subscribers of both.

use std::io::Write;
use tremula_store::Value;

/// A message of these parts.
pub(super) fn message(parts: &[&[u8]]) -> Value {
    let bytes: usize = parts.iter().map(|part| part.len() + 32).sum();
    let mut text = Vec::with_capacity(bytes);
    // Writing to a vector does not fail.
    let _ = write!(text, "{}\r\n", parts.len());
    for part in parts {
        let _ = write!(text, "${}\r\n", part.len());
        text.extend_from_slice(part);
        text.extend_from_slice(b"\r\n");
    }
    Value::from(text)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_is_an_array_without_its_sign() {
        let message = super::message(&[b"message", b"", b"\r\n"]);
        assert_eq!(&*message, b"3\r\n$7\r\nmessage\r\n$0\r\n\r\n$2\r\n\r\n\r\n");
    }
}
