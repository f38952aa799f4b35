//! How an atom is written: with quotes where it must.

use super::super::Atom;
use std::fmt::{self, Write};

/// Words that are no atoms without quotes. The last two are reserved from OTP 27 on: quoted, older
/// versions read them too.
const RESERVED: [&str; 29] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
    "rem", "try", "when", "xor", "else", "maybe",
];

/// Whether an atom may not be written without quotes though it looks as if it could.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether an atom without quotes may begin with this: the small letters of Latin-1.
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

/// Writes a character within quotes, escaped where it must be and, for the sake of what reads
/// Latin-1 only, where it is beyond that.
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
