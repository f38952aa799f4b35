//! Prints terms as `io_lib:format("~0p")` does.

use super::super::{Bitstring, Elements, List, Term};
use super::atom::{write_atom, write_escaped};
use super::float::write_float;
use std::fmt::{self, Write};
use std::slice;

/// The rest of a term that is being printed.
enum Open<'a> {
    /// Elements, and what closes the term.
    Elements(slice::Iter<'a, Term>, char),
    List(Elements<'a>),
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
                    Some(top) => go_on(top, ",", out, &mut open)?,
                    None => return Ok(()),
                },
            }
        }
    }
}

/// Prints a term, or the part before its first inner term, which it returns.
fn begin<'a>(
    term: &'a Term,
    out: &mut fmt::Formatter<'_>,
    open: &mut Vec<Open<'a>>,
) -> Result<Option<&'a Term>, fmt::Error> {
    let (opening, inside) = match term {
        Term::Tuple(tuple) => ("{", Open::Elements(tuple.iter(), '}')),
        Term::List(list) if is_string(list) => return write_string(list, out).map(|()| None),
        Term::List(list) => ("[", Open::List(list.iter())),
        Term::Map(map) => ("#{", Open::Entries(map.entries().iter())),
        leaf => return write_leaf(leaf, out).map(|()| None),
    };
    out.write_str(opening)?;
    go_on(inside, "", out, open)
}

fn write_leaf(leaf: &Term, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match leaf {
        Term::Integer(value) => write!(out, "{value}"),
        Term::BigInteger(value) => write!(out, "{}", value.value()),
        Term::Float(value) => write_float(*value, out),
        Term::Atom(atom) => write_atom(*atom, out),
        Term::Reference(reference) => write!(out, "{reference}"),
        Term::Fun(fun) => write!(out, "{fun}"),
        Term::Port(port) => write!(out, "{port}"),
        Term::Pid(pid) => write!(out, "{pid}"),
        Term::Bitstring(bits) => write_bitstring(bits, out),
        Term::Tuple(_) | Term::List(_) | Term::Map(_) => Ok(()),
    }
}

/// Prints what is before the next inner term and returns that, or prints the end. `comma` is what
/// stands before an element or an entry.
fn go_on<'a>(
    top: Open<'a>,
    comma: &'static str,
    out: &mut fmt::Formatter<'_>,
    open: &mut Vec<Open<'a>>,
) -> Result<Option<&'a Term>, fmt::Error> {
    let (separator, next, rest) = match top {
        Open::Elements(mut elements, closing) => match elements.next() {
            Some(next) => (comma, next, Open::Elements(elements, closing)),
            None => return out.write_char(closing).map(|()| None),
        },
        Open::List(mut elements) => match elements.next() {
            Some(next) => (comma, next, Open::List(elements)),
            None if elements.tail().is_nil() => return out.write_char(']').map(|()| None),
            None => ("|", elements.tail(), Open::Elements([].iter(), ']')),
        },
        Open::Value(value, entries) => (" => ", value, Open::Entries(entries)),
        Open::Entries(mut entries) => match entries.next() {
            Some((key, value)) => (comma, key, Open::Value(value, entries)),
            None => return out.write_char('}').map(|()| None),
        },
    };
    out.write_str(separator)?;
    open.push(rest);
    Ok(Some(next))
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
