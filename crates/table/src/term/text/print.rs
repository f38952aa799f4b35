//! Prints terms as `io_lib:format("~0p")` does.

use super::super::{Bitstring, Elements, List, Term};
use super::atom::{write_atom, write_escaped};
use super::float::write_float;
use std::fmt::{self, Write};
use std::slice;

/// The rest of a term of which an inner term has been printed.
enum Open<'a> {
    Tuple(slice::Iter<'a, Term>),
    List(Elements<'a>),
    /// Only the end of a list.
    Tail,
    /// The value of an entry whose key has been printed, and the entries after it.
    Value(&'a Term, Entries<'a>),
    Entries(Entries<'a>),
}

type Entries<'a> = slice::Iter<'a, (Term, Term)>;

/// Erlang's text, on one line.
impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = Vec::new();
        let mut next = Some(self);
        loop {
            next = match next {
                Some(term) => begin(term, out, &mut open)?,
                None => match open.pop() {
                    Some(top) => go_on(top, out, &mut open)?,
                    None => return Ok(()),
                },
            };
        }
    }
}

/// Prints a term, or the part before its first inner term, which it returns.
fn begin<'a>(
    term: &'a Term,
    out: &mut fmt::Formatter<'_>,
    open: &mut Vec<Open<'a>>,
) -> Result<Option<&'a Term>, fmt::Error> {
    match term {
        Term::Integer(value) => write!(out, "{value}")?,
        Term::BigInteger(value) => write!(out, "{}", value.value())?,
        Term::Float(value) => write_float(*value, out)?,
        Term::Atom(atom) => write_atom(*atom, out)?,
        Term::Reference(reference) => write!(out, "{reference}")?,
        Term::Fun(fun) => write!(out, "{fun}")?,
        Term::Port(port) => write!(out, "{port}")?,
        Term::Pid(pid) => write!(out, "{pid}")?,
        Term::Bitstring(bits) => write_bitstring(bits, out)?,
        Term::Tuple(tuple) => {
            let mut elements = tuple.iter();
            if let Some(first) = elements.next() {
                out.write_char('{')?;
                open.push(Open::Tuple(elements));
                return Ok(Some(first));
            }
            out.write_str("{}")?;
        }
        Term::List(list) if is_string(list) => write_string(list, out)?,
        Term::List(list) => {
            let mut elements = list.iter();
            if let Some(first) = elements.next() {
                out.write_char('[')?;
                open.push(Open::List(elements));
                return Ok(Some(first));
            }
            out.write_str("[]")?;
        }
        Term::Map(map) => {
            let mut entries = map.entries().iter();
            if let Some((key, value)) = entries.next() {
                out.write_str("#{")?;
                open.push(Open::Value(value, entries));
                return Ok(Some(key));
            }
            out.write_str("#{}")?;
        }
    }
    Ok(None)
}

/// Prints what is between two inner terms and returns the second one, or prints the end.
fn go_on<'a>(
    top: Open<'a>,
    out: &mut fmt::Formatter<'_>,
    open: &mut Vec<Open<'a>>,
) -> Result<Option<&'a Term>, fmt::Error> {
    match top {
        Open::Tuple(mut elements) => {
            if let Some(next) = elements.next() {
                out.write_char(',')?;
                open.push(Open::Tuple(elements));
                return Ok(Some(next));
            }
            out.write_char('}')?;
        }
        Open::List(mut elements) => {
            if let Some(next) = elements.next() {
                out.write_char(',')?;
                open.push(Open::List(elements));
                return Ok(Some(next));
            }
            let tail = elements.tail();
            if !tail.is_nil() {
                out.write_char('|')?;
                open.push(Open::Tail);
                return Ok(Some(tail));
            }
            out.write_char(']')?;
        }
        Open::Tail => out.write_char(']')?,
        Open::Value(value, entries) => {
            out.write_str(" => ")?;
            open.push(Open::Entries(entries));
            return Ok(Some(value));
        }
        Open::Entries(mut entries) => {
            if let Some((key, value)) = entries.next() {
                out.write_char(',')?;
                open.push(Open::Value(value, entries));
                return Ok(Some(key));
            }
            out.write_char('}')?;
        }
    }
    Ok(None)
}

/// The characters of Latin-1 that a string may contain when printed; a list with others is printed
/// as numbers.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | 0xa0..=0xff | 0x08..=0x0d | 0x1b)
}

/// The character that an element of a printable list stands for.
fn printable(element: &Term) -> Option<char> {
    match element {
        Term::Integer(value) => {
            let byte = u8::try_from(*value).ok()?;
            is_printable(byte).then(|| char::from(byte))
        }
        _ => None,
    }
}

/// Whether a list is printed as a string.
fn is_string(list: &List) -> bool {
    let mut elements = list.iter();
    !list.is_empty()
        && elements
            .by_ref()
            .all(|element| printable(element).is_some())
        && elements.tail().is_nil()
}

fn write_string(list: &List, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    for character in list.iter().filter_map(printable) {
        write_escaped(character, '"', out)?;
    }
    out.write_char('"')
}

fn write_bitstring(bits: &Bitstring, out: &mut impl Write) -> fmt::Result {
    let bytes = bits.bytes();
    out.write_str("<<")?;
    if bits.is_binary() && !bytes.is_empty() && bytes.iter().all(|&byte| is_printable(byte)) {
        out.write_char('"')?;
        for &byte in bytes {
            write_escaped(char::from(byte), '"', out)?;
        }
        out.write_char('"')?;
    } else {
        let (full, last) = match bytes.split_last() {
            Some((last, full)) if !bits.is_binary() => (full, Some(last)),
            _ => (bytes, None),
        };
        for (index, byte) in full.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{byte}")?;
        }
        if let Some(last) = last {
            let comma = if full.is_empty() { "" } else { "," };
            let unused = bits.unused_bits();
            write!(out, "{comma}{}:{}", last >> unused, 8 - unused)?;
        }
    }
    out.write_str(">>")
}
