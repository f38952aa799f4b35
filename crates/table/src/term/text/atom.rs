//! Writes atoms, with quotes where necessary.

use super::super::Atom;
use std::fmt::{self, Write};

/// Words that are no atoms without quotes. The last two are reserved from OTP 27 on; older versions
/// also read them quoted.
const RESERVED: [&str; 29] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
    "rem", "try", "when", "xor", "else", "maybe",
];

/// Whether a word is reserved, so that as an atom it needs quotes.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether an atom without quotes may begin with this: a small letter of Latin-1.
pub(super) const fn begins_atom(character: char) -> bool {
    matches!(character, 'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ')
}

/// Whether a variable begins with this.
pub(super) const fn begins_variable(character: char) -> bool {
    matches!(character, 'A'..='Z' | '_' | 'À'..='Ö' | 'Ø'..='Þ')
}

/// Whether this may be in an atom or a variable.
pub(super) const fn in_word(character: char) -> bool {
    begins_atom(character) || begins_variable(character) || matches!(character, '0'..='9' | '@')
}

/// Writes an atom.
pub(in crate::term) fn write_atom(atom: Atom, out: &mut impl Write) -> fmt::Result {
    let text = atom.text();
    let bare = text.starts_with(begins_atom) && text.chars().all(in_word) && !is_reserved(text);
    if bare {
        return out.write_str(text);
    }
    out.write_char('\'')?;
    for character in text.chars() {
        write_escaped(character, '\'', out)?;
    }
    out.write_char('\'')
}

/// Writes a character within quotes, escaped where necessary. Characters beyond Latin-1 are
/// escaped, too, for readers that only read Latin-1.
pub(super) fn write_escaped(character: char, quote: char, out: &mut impl Write) -> fmt::Result {
    match character {
        '\n' => out.write_str("\\n"),
        '\t' => out.write_str("\\t"),
        '\x0b' => out.write_str("\\v"),
        '\x08' => out.write_str("\\b"),
        '\r' => out.write_str("\\r"),
        '\x0c' => out.write_str("\\f"),
        '\x1b' => out.write_str("\\e"),
        '\x7f' => out.write_str("\\d"),
        '\\' => out.write_str("\\\\"),
        _ if character == quote => write!(out, "\\{quote}"),
        '\0'..='\x1f' | '\u{80}'..='\u{9f}' => write!(out, "\\{:03o}", u32::from(character)),
        ' '..='\u{ff}' => out.write_char(character),
        _ => write!(out, "\\x{{{:X}}}", u32::from(character)),
    }
}
