//! Binaries: `<<"text", 1, 2:16/little, 1.5/float, "ü"/utf8, 5:3>>`.

use super::super::{Bitstring, Float, Term};
use super::error::{ParseError, ParseProblem};
use super::scan::Scanner;
use super::{number, parse, quoted};
use num_bigint::{BigInt, Sign};

/// The value of a segment.
enum Value {
    Number(Term),
    Text(String),
}

/// The type specifiers of a segment.
#[derive(Clone, Copy)]
struct Layout {
    kind: Kind,
    /// The size in units.
    size: Option<u64>,
    unit: Option<u64>,
    little: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Integer,
    Float,
    Utf8,
    Utf16,
    Utf32,
}

/// Bits, the high ones of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// How many bits of the last byte are used; 0 if it is full.
    used: u32,
}

impl Bits {
    fn push_bytes(&mut self, bytes: impl IntoIterator<Item = u8>) {
        if self.used == 0 {
            self.bytes.extend(bytes);
        } else {
            bytes.into_iter().for_each(|byte| self.push(byte, 8));
        }
    }

    /// Adds the low `count` bits of a byte, 1 to 8.
    fn push(&mut self, byte: u8, count: u32) {
        let high = byte << (8 - count);
        match self.bytes.last_mut() {
            Some(last) if self.used > 0 => {
                *last |= high >> self.used;
                if self.used + count > 8 {
                    self.bytes.push(high << (8 - self.used));
                }
            }
            _ => self.bytes.push(high),
        }
        self.used = (self.used + count) % 8;
    }

    fn bit_len(&self) -> usize {
        self.bytes.len() * 8 - (8 - self.used as usize) % 8
    }
}

/// Reads a binary after its `<<`.
pub(super) fn binary(scanner: &mut Scanner<'_>) -> Result<Term, ParseError> {
    let mut bits = Bits::default();
    scanner.skip_blanks();
    if scanner.take(">>") {
        return Ok(Term::binary(&[]));
    }
    loop {
        scanner.skip_blanks();
        segment(scanner, &mut bits)?;
        scanner.skip_blanks();
        if scanner.take(">>") {
            return Ok(Bitstring::from_bits(&bits.bytes, bits.bit_len()).into());
        }
        if !scanner.take(",") {
            return Err(scanner.wanted("',' or '>>'"));
        }
    }
}

fn segment(scanner: &mut Scanner<'_>, bits: &mut Bits) -> Result<(), ParseError> {
    let start = scanner.position();
    let value = match scanner.peek() {
        Some('"') => Value::Text(quoted::strings(scanner)?),
        Some('0'..='9' | '-' | '+' | '$') => Value::Number(parse::numeric(scanner)?),
        Some('<') => return Err(wrong(start, "a binary inside of a binary cannot be read")),
        _ => return Err(scanner.wanted("a number or a string")),
    };
    let layout = layout(scanner)?;
    if layout.unit.is_some() && layout.size.is_none() {
        return Err(wrong(start, "a unit needs a size"));
    }
    if matches!(layout.unit, Some(0) | Some(257..)) {
        return Err(wrong(start, "a unit has 1 to 256 bits"));
    }
    let bare = layout.kind == Kind::Integer && layout.size.is_none();
    match value {
        // Nearly all segments are of these two kinds.
        Value::Text(text) if bare => {
            // The low byte of each code point, as in Erlang.
            bits.push_bytes(text.chars().map(|c| u32::from(c) as u8));
            Ok(())
        }
        Value::Number(Term::Integer(value)) if bare => {
            bits.push_bytes([value as u8]);
            Ok(())
        }
        Value::Text(text) => {
            let mut characters = text.chars();
            characters.try_for_each(|character| {
                let point = Term::from(u32::from(character));
                write(scanner, start, &point, layout, bits)
            })
        }
        Value::Number(value) => write(scanner, start, &value, layout, bits),
    }
}

const fn wrong(start: usize, what: &'static str) -> ParseError {
    Scanner::error(start, ParseProblem::Segment(what))
}

/// Reads the type specifiers after a value: its size, its type, and so on.
fn layout(scanner: &mut Scanner<'_>) -> Result<Layout, ParseError> {
    let mut layout = Layout {
        kind: Kind::Integer,
        size: None,
        unit: None,
        little: false,
    };
    scanner.skip_blanks();
    if scanner.take(":") {
        scanner.skip_blanks();
        layout.size = Some(number::plain(scanner)?);
        scanner.skip_blanks();
    }
    if !scanner.take("/") {
        return Ok(layout);
    }
    loop {
        scanner.skip_blanks();
        let start = scanner.position();
        match scanner.take_while(|c| c.is_ascii_alphanumeric()) {
            "integer" => layout.kind = Kind::Integer,
            "float" => layout.kind = Kind::Float,
            "utf8" => layout.kind = Kind::Utf8,
            "utf16" => layout.kind = Kind::Utf16,
            "utf32" => layout.kind = Kind::Utf32,
            "big" => layout.little = false,
            "little" => layout.little = true,
            "native" => layout.little = cfg!(target_endian = "little"),
            // Signedness does not affect the bits that are written.
            "signed" | "unsigned" => {}
            "unit" => {
                scanner.expect(":")?;
                layout.unit = Some(number::plain(scanner)?);
            }
            "" => return Err(scanner.wanted("a type")),
            _ => return Err(wrong(start, "no type of a number or a string in a binary")),
        }
        scanner.skip_blanks();
        if !scanner.take("-") {
            return Ok(layout);
        }
    }
}

/// Adds one number.
fn write(
    scanner: &mut Scanner<'_>,
    start: usize,
    value: &Term,
    layout: Layout,
    bits: &mut Bits,
) -> Result<(), ParseError> {
    let unit = layout.unit.unwrap_or(1);
    let size = layout.size.map(|size| size.saturating_mul(unit));
    let written = match layout.kind {
        Kind::Integer => {
            let size = size.unwrap_or(8);
            let limit = scanner.limits.expanded_bytes;
            let bytes = usize::try_from(size.div_ceil(8)).unwrap_or(usize::MAX);
            scanner.expanded = scanner.expanded.saturating_add(bytes);
            if scanner.expanded > limit {
                return Err(Scanner::error(start, ParseProblem::ExpandsTooFar(limit)));
            }
            integer(value, size, layout.little, bits)
        }
        Kind::Float => float(value, size.unwrap_or(64), layout.little, bits),
        _ if size.is_some() => Err("a character has no size"),
        kind => character(value, kind, layout.little, bits),
    };
    written.map_err(|what| wrong(start, what))
}

/// The result of adding a number, or what is wrong with it.
type Written = Result<(), &'static str>;

/// Adds the low `size` bits of an integer.
fn integer(value: &Term, size: u64, little: bool, bits: &mut Bits) -> Written {
    let value = match value {
        Term::Integer(value) => BigInt::from(*value),
        Term::BigInteger(value) => value.value().clone(),
        _ => return Err("a float is not an integer"),
    };
    let fill = if value.sign() == Sign::Minus { 0xff } else { 0 };
    let mut bytes = value.to_signed_bytes_le();
    bytes.resize(size.div_ceil(8) as usize, fill);
    // The high byte may be partial.
    let high_bits = (size % 8) as u32;
    let high = if high_bits > 0 { bytes.pop() } else { None };
    if little {
        bits.push_bytes(bytes);
        if let Some(high) = high {
            bits.push(high, high_bits);
        }
    } else {
        if let Some(high) = high {
            bits.push(high, high_bits);
        }
        bits.push_bytes(bytes.into_iter().rev());
    }
    Ok(())
}

fn float(value: &Term, size: u64, little: bool, bits: &mut Bits) -> Written {
    let value = match value {
        Term::Float(value) => value.value(),
        Term::Integer(value) => *value as f64,
        _ => return Err("an integer too large for a float"),
    };
    let narrow = value as f32;
    let mut bytes = match size {
        64 => value.to_be_bytes().to_vec(),
        32 if Float::new(narrow.into()).is_ok() => narrow.to_be_bytes().to_vec(),
        32 => return Err("a float too large for 32 bits"),
        _ => return Err("a float of 32 or 64 bits can be read"),
    };
    if little {
        bytes.reverse();
    }
    bits.push_bytes(bytes);
    Ok(())
}

fn character(value: &Term, kind: Kind, little: bool, bits: &mut Bits) -> Written {
    let character = match value {
        Term::Integer(value) => u32::try_from(*value).ok().and_then(char::from_u32),
        _ => None,
    };
    let character = character.ok_or("no Unicode character")?;
    let in_order = |mut bytes: Vec<u8>| {
        if little {
            bytes.reverse();
        }
        bytes
    };
    match kind {
        Kind::Utf8 => bits.push_bytes(character.encode_utf8(&mut [0; 4]).bytes()),
        Kind::Utf16 => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                bits.push_bytes(in_order(unit.to_be_bytes().to_vec()));
            }
        }
        _ => bits.push_bytes(in_order(u32::from(character).to_be_bytes().to_vec())),
    }
    Ok(())
}
