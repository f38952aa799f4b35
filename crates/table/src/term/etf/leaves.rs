//! Reads the terms without inner terms.

use super::super::text::latin1;
use super::super::{Atom, Bitstring, Export, Float, Limits, Pid, Port, Reference, Term};
use super::error::{DecodeError, DecodeProblem};
use super::reader::Reader;
use super::tag;
use num_bigint::{BigInt, Sign};
use std::borrow::Cow;

type Result<T> = std::result::Result<T, DecodeError>;

/// The bytes of a float in text form.
const FLOAT_TEXT: usize = 31;

/// Reads a term of this tag, which was at `offset`; `None` if the tag is of another kind of term.
#[inline]
pub(super) fn leaf(
    reader: &mut Reader<'_>,
    offset: usize,
    tag: u8,
    limits: &Limits,
) -> Result<Option<Term>> {
    Ok(Some(match tag {
        tag::SMALL_INTEGER => Term::from(reader.u8()?),
        tag::INTEGER => Term::from(i32::from_be_bytes(reader.array()?)),
        tag::SMALL_BIG | tag::LARGE_BIG => {
            let length = match tag {
                tag::SMALL_BIG => reader.u8()?.into(),
                _ => reader.u32()?,
            };
            big(reader, offset, length, limits)?
        }
        tag::NEW_FLOAT => float(reader, offset)?,
        tag::FLOAT => float_text(reader, offset)?,
        tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8 => {
            Term::Atom(atom_of(reader, offset, tag, limits)?)
        }
        tag::NIL => Term::NIL,
        tag::STRING => {
            let length = reader.u16()?;
            let bytes = reader.take(length.into())?;
            Term::list(bytes.iter().map(|&byte| Term::from(byte)))
        }
        tag::BINARY => Term::binary(reader.block()?),
        tag::BIT_BINARY => bits(reader, offset)?,
        tag::NEW_PID | tag::PID => Term::Pid(pid_of(reader, tag, limits)?),
        tag::V4_PORT | tag::NEW_PORT | tag::PORT => port(reader, tag, limits)?,
        tag::NEWER_REFERENCE | tag::NEW_REFERENCE | tag::REFERENCE => {
            reference(reader, offset, tag, limits)?
        }
        tag::EXPORT => export(reader, limits)?,
        _ => return Ok(None),
    }))
}

fn big(reader: &mut Reader<'_>, offset: usize, length: u32, limits: &Limits) -> Result<Term> {
    let sign = reader.u8()?;
    let bits = u64::from(length) * 8;
    if bits > limits.integer_bits {
        let limit = limits.integer_bits;
        return Err(reader.error(offset, DecodeProblem::IntegerTooLong { bits, limit }));
    }
    let digits = reader.take(length as usize)?;
    let sign = if sign == 0 { Sign::Plus } else { Sign::Minus };
    Ok(Term::from(BigInt::from_bytes_le(sign, digits)))
}

fn float(reader: &mut Reader<'_>, offset: usize) -> Result<Term> {
    let value = f64::from_bits(reader.u64()?);
    Term::try_from(value).map_err(|_| reader.error(offset, DecodeProblem::Float))
}

fn float_text(reader: &mut Reader<'_>, offset: usize) -> Result<Term> {
    let text: [u8; FLOAT_TEXT] = reader.array()?;
    let end = text.iter().position(|&byte| byte == 0);
    let value = std::str::from_utf8(&text[..end.unwrap_or(FLOAT_TEXT)])
        .ok()
        .and_then(|text| text.trim_start().parse::<f64>().ok())
        .and_then(|value| Float::new(value).ok());
    let value = value.ok_or_else(|| reader.error(offset, DecodeProblem::Float))?;
    Ok(Term::Float(value))
}

fn bits(reader: &mut Reader<'_>, offset: usize) -> Result<Term> {
    let bytes = reader.u32()?;
    let bits = reader.u8()?;
    let fits = if bytes == 0 {
        bits == 0 || bits == 8
    } else {
        (1..=8).contains(&bits)
    };
    if !fits {
        return Err(reader.error(offset, DecodeProblem::BitCount { bytes, bits }));
    }
    reader.expect(bytes.into())?;
    let string = reader.take(bytes as usize)?;
    let unused = if bytes == 0 { 0 } else { 8 - usize::from(bits) };
    Ok(Bitstring::from_bits(string, string.len() * 8 - unused).into())
}

#[cold]
fn wrong_tag(reader: &Reader<'_>, offset: usize, found: u8, wanted: &'static str) -> DecodeError {
    reader.error(offset, DecodeProblem::WrongTag { found, wanted })
}

/// Reads the creation of a node, which has 8 bits in `old` forms.
fn creation(reader: &mut Reader<'_>, old: bool) -> Result<u32> {
    if old {
        reader.u8().map(u32::from)
    } else {
        reader.u32()
    }
}

/// Reads an atom, including its tag.
pub(super) fn atom(reader: &mut Reader<'_>, limits: &Limits) -> Result<Atom> {
    let offset = reader.position();
    let found = reader.u8()?;
    match found {
        tag::ATOM | tag::SMALL_ATOM | tag::ATOM_UTF8 | tag::SMALL_ATOM_UTF8 => {
            atom_of(reader, offset, found, limits)
        }
        _ => Err(wrong_tag(reader, offset, found, "an atom")),
    }
}

#[inline]
fn atom_of(reader: &mut Reader<'_>, offset: usize, tag: u8, limits: &Limits) -> Result<Atom> {
    let length = match tag {
        tag::SMALL_ATOM | tag::SMALL_ATOM_UTF8 => reader.u8()?.into(),
        _ => reader.u16()?,
    };
    let bytes = reader.take(length.into())?;
    let text = match tag {
        tag::ATOM | tag::SMALL_ATOM => Cow::Owned(latin1(bytes)),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => return Err(reader.error(offset, DecodeProblem::NotUtf8)),
        },
    };
    match limits.atom(&text) {
        Ok(Some(atom)) => Ok(atom),
        Ok(None) => Err(reader.error(offset, DecodeProblem::NewAtom(text.into_owned()))),
        Err(error) => Err(reader.error(offset, DecodeProblem::Atom(error))),
    }
}

/// Reads a small integer, including its tag.
pub(super) fn integer(reader: &mut Reader<'_>, limits: &Limits) -> Result<i64> {
    let offset = reader.position();
    let found = reader.u8()?;
    match leaf(reader, offset, found, limits)? {
        Some(Term::Integer(value)) => Ok(value),
        _ => Err(wrong_tag(reader, offset, found, "an integer")),
    }
}

/// Reads a process identifier, including its tag.
pub(super) fn pid(reader: &mut Reader<'_>, limits: &Limits) -> Result<Pid> {
    let offset = reader.position();
    match reader.u8()? {
        tag @ (tag::NEW_PID | tag::PID) => pid_of(reader, tag, limits),
        found => Err(wrong_tag(reader, offset, found, "a pid")),
    }
}

fn pid_of(reader: &mut Reader<'_>, tag: u8, limits: &Limits) -> Result<Pid> {
    let node = atom(reader, limits)?;
    let (id, serial) = (reader.u32()?, reader.u32()?);
    let creation = creation(reader, tag == tag::PID)?;
    Ok(Pid::new(node, id, serial, creation))
}

fn port(reader: &mut Reader<'_>, tag: u8, limits: &Limits) -> Result<Term> {
    let node = atom(reader, limits)?;
    let id = match tag {
        tag::V4_PORT => reader.u64()?,
        _ => reader.u32()?.into(),
    };
    let creation = creation(reader, tag == tag::PORT)?;
    Ok(Port::new(node, id, creation).into())
}

fn reference(reader: &mut Reader<'_>, offset: usize, tag: u8, limits: &Limits) -> Result<Term> {
    let count = match tag {
        tag::REFERENCE => 1,
        _ => reader.u16()?,
    };
    let too_many = DecodeProblem::ReferenceWords(count);
    if usize::from(count) > Reference::MAX_WORDS {
        return Err(reader.error(offset, too_many));
    }
    let node = atom(reader, limits)?;
    let mut words = [0; Reference::MAX_WORDS];
    let words = &mut words[..count.into()];
    // The old form has its single word before the creation.
    if tag == tag::REFERENCE {
        words[0] = reader.u32()?;
    }
    let creation = creation(reader, tag != tag::NEWER_REFERENCE)?;
    if tag != tag::REFERENCE {
        for word in words.iter_mut() {
            *word = reader.u32()?;
        }
    }
    let reference = Reference::new(node, creation, words);
    reference
        .map(Term::Reference)
        .ok_or_else(|| reader.error(offset, too_many))
}

fn export(reader: &mut Reader<'_>, limits: &Limits) -> Result<Term> {
    let module = atom(reader, limits)?;
    let function = atom(reader, limits)?;
    let offset = reader.position();
    let arity = u8::try_from(integer(reader, limits)?)
        .map_err(|_| wrong_tag(reader, offset, tag::INTEGER, "an arity"))?;
    Ok(Term::from(Export {
        module,
        function,
        arity,
    }))
}
