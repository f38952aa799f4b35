//! Writes the external term format as OTP 26 and later do: all atoms in UTF-8.

use super::super::inside::Inside;
use super::super::{Atom, Bitstring, FunKind, List, LocalFun, Pid, Port, Reference, Term};
use super::error::TooLarge;
use super::tag;
use num_bigint::{BigInt, Sign};

/// Writes a term without the version byte. Stops with an error soon after `out` has become longer
/// than `most`.
pub(super) fn encode(term: &Term, out: &mut Vec<u8>, most: usize) -> Result<(), TooLarge> {
    let mut open = Vec::new();
    let mut inside = begin(term, out)?;
    while let Some(begun) = &mut inside {
        if out.len() > most {
            let what = "term";
            let length = out.len();
            return Err(TooLarge { what, length });
        }
        if let Some((term, _)) = begun.terms.next() {
            if let Some(within) = begin(term, out)? {
                open.extend(inside.replace(within));
            }
        } else {
            begun.end(out)?;
            inside = open.pop();
        }
    }
    Ok(())
}

/// A term that is partly written.
struct Begun<'a> {
    terms: Inside<'a>,
    /// Where the size of a function goes, which is known at its end.
    size_at: Option<usize>,
}

impl Begun<'_> {
    fn end(&self, out: &mut [u8]) -> Result<(), TooLarge> {
        if let Some(at) = self.size_at {
            let size = out.len() - at;
            let size = length("function", size)?;
            out[at..at + size.len()].copy_from_slice(&size);
        }
        Ok(())
    }
}

/// A length in the form of the format.
fn length(what: &'static str, length: usize) -> Result<[u8; 4], TooLarge> {
    u32::try_from(length)
        .map(u32::to_be_bytes)
        .map_err(|_| TooLarge { what, length })
}

/// Writes a term without its inner terms; returns those if it may have any.
fn begin<'a>(term: &'a Term, out: &mut Vec<u8>) -> Result<Option<Begun<'a>>, TooLarge> {
    let mut size_at = None;
    match term {
        Term::Integer(value) => integer(*value, out),
        Term::BigInteger(value) => big(value.value(), out)?,
        Term::Float(float) => {
            out.push(tag::NEW_FLOAT);
            out.extend(float.value().to_be_bytes());
        }
        Term::Atom(value) => atom(*value, out),
        Term::Reference(value) => reference(value, out),
        Term::Port(value) => port(value, out),
        Term::Pid(value) => pid(value, out),
        Term::Bitstring(value) => bitstring(value, out)?,
        Term::Tuple(tuple) => match u8::try_from(tuple.len()) {
            Ok(small) => out.extend([tag::SMALL_TUPLE, small]),
            Err(_) => {
                out.push(tag::LARGE_TUPLE);
                out.extend(length("tuple", tuple.len())?);
            }
        },
        Term::Map(map) => {
            out.push(tag::MAP);
            out.extend(length("map", map.len())?);
        }
        Term::List(list) if list.is_empty() => out.push(tag::NIL),
        Term::List(list) => {
            if string(list, out) {
                return Ok(None);
            }
            out.push(tag::LIST);
            out.extend(length("list", list.iter().remaining().0)?);
        }
        Term::Fun(fun) => match fun.kind() {
            FunKind::Export(export) => {
                out.push(tag::EXPORT);
                atom(export.module, out);
                atom(export.function, out);
                out.extend([tag::SMALL_INTEGER, export.arity]);
            }
            FunKind::Local(fun) => size_at = Some(local_fun(fun, out)?),
        },
    }
    let terms = Inside::of(term);
    let is_open = term.holds_terms() || size_at.is_some();
    Ok(is_open.then_some(Begun { terms, size_at }))
}

fn integer(value: i64, out: &mut Vec<u8>) {
    if let Ok(byte) = u8::try_from(value) {
        out.extend([tag::SMALL_INTEGER, byte]);
    } else if let Ok(small) = i32::try_from(value) {
        out.push(tag::INTEGER);
        out.extend(small.to_be_bytes());
    } else {
        let magnitude = value.unsigned_abs();
        let count = size_of::<u64>() - magnitude.leading_zeros() as usize / 8;
        out.extend([tag::SMALL_BIG, count as u8, u8::from(value < 0)]);
        out.extend(&magnitude.to_le_bytes()[..count]);
    }
}

fn big(value: &BigInt, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    let (sign, digits) = value.to_bytes_le();
    match u8::try_from(digits.len()) {
        Ok(small) => out.extend([tag::SMALL_BIG, small]),
        Err(_) => {
            out.push(tag::LARGE_BIG);
            out.extend(length("integer", digits.len())?);
        }
    }
    out.push(u8::from(sign == Sign::Minus));
    out.extend(digits);
    Ok(())
}

fn atom(atom: Atom, out: &mut Vec<u8>) {
    let text = atom.text();
    match u8::try_from(text.len()) {
        Ok(small) => out.extend([tag::SMALL_ATOM_UTF8, small]),
        Err(_) => {
            // An atom has at most 255 characters, so this fits.
            out.push(tag::ATOM_UTF8);
            out.extend((text.len() as u16).to_be_bytes());
        }
    }
    out.extend(text.as_bytes());
}

/// Writes a list of bytes as a string, if it is one and short enough.
fn string(list: &List, out: &mut Vec<u8>) -> bool {
    let (length, tail) = list.iter().remaining();
    let Ok(length) = u16::try_from(length) else {
        return false;
    };
    let byte = |term: &Term| match term {
        Term::Integer(value) => u8::try_from(*value).ok(),
        _ => None,
    };
    let is_string = tail.is_nil() && list.iter().all(|element| byte(element).is_some());
    if is_string {
        out.push(tag::STRING);
        out.extend(length.to_be_bytes());
        out.extend(list.iter().filter_map(byte));
    }
    is_string
}

fn bitstring(bits: &Bitstring, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    let size = length("binary", bits.bytes().len())?;
    if bits.is_binary() {
        out.push(tag::BINARY);
        out.extend(size);
    } else {
        out.push(tag::BIT_BINARY);
        out.extend(size);
        out.push(8 - bits.unused_bits());
    }
    out.extend(bits.bytes());
    Ok(())
}

fn pid(pid: &Pid, out: &mut Vec<u8>) {
    out.push(tag::NEW_PID);
    atom(pid.node(), out);
    for number in [pid.id(), pid.serial(), pid.creation()] {
        out.extend(number.to_be_bytes());
    }
}

fn port(port: &Port, out: &mut Vec<u8>) {
    /// The least port number that needs the wide form.
    const WIDE: u64 = 1 << 28;
    if port.id() < WIDE {
        out.push(tag::NEW_PORT);
        atom(port.node(), out);
        out.extend((port.id() as u32).to_be_bytes());
    } else {
        out.push(tag::V4_PORT);
        atom(port.node(), out);
        out.extend(port.id().to_be_bytes());
    }
    out.extend(port.creation().to_be_bytes());
}

fn reference(reference: &Reference, out: &mut Vec<u8>) {
    out.push(tag::NEWER_REFERENCE);
    out.extend((reference.words().len() as u16).to_be_bytes());
    atom(reference.node(), out);
    out.extend(reference.creation().to_be_bytes());
    for word in reference.words() {
        out.extend(word.to_be_bytes());
    }
}

/// Writes a function without the values that it holds. Returns where its size goes.
fn local_fun(fun: &LocalFun, out: &mut Vec<u8>) -> Result<usize, TooLarge> {
    out.push(tag::NEW_FUN);
    let size_at = out.len();
    out.extend([0; 4]);
    out.push(fun.arity);
    out.extend(fun.unique);
    out.extend(fun.index.to_be_bytes());
    out.extend(length("function", fun.free.len())?);
    atom(fun.module, out);
    integer(fun.old_index, out);
    integer(fun.old_unique, out);
    pid(&fun.pid, out);
    Ok(size_at)
}
