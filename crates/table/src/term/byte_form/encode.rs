//! Writing byte forms.

use super::super::order::Numbers;
use super::super::{Atom, Elements, Fun, FunKind, Map, Reference, Term};
use super::number::{append_big, append_float, append_integer};
use super::{END, OWN_ZERO, SHORT_SIZE, tag};

/// Terms that are still to be written.
enum Pending<'a> {
    Elements(&'a [Term]),
    List(Elements<'a>),
    /// The entries whose keys are to be written, and the map, whose values follow.
    Keys(&'a [(Term, Term)], &'a Map),
    Values(&'a [(Term, Term)]),
}

/// Appends the form of a term; what is behind the first `most` bytes may be missing.
pub(super) fn encode(term: &Term, most: usize, out: &mut Vec<u8>) {
    let mut pending = Vec::new();
    append(term, Numbers::ByValue, most, out, &mut pending);
    while out.len() < most
        && let Some((next, numbers)) = pending.pop()
    {
        let (term, of_term) = match next {
            Pending::Elements([]) | Pending::Values([]) => continue,
            Pending::Elements([first, rest @ ..]) => {
                pending.push((Pending::Elements(rest), numbers));
                (first, numbers)
            }
            Pending::Values([(_, first), rest @ ..]) => {
                pending.push((Pending::Values(rest), numbers));
                (first, numbers)
            }
            Pending::Keys([], map) => {
                pending.push((Pending::Values(map.entries()), numbers));
                continue;
            }
            Pending::Keys([(first, _), rest @ ..], map) => {
                pending.push((Pending::Keys(rest, map), numbers));
                (first, Numbers::ByType)
            }
            Pending::List(mut elements) => match elements.next() {
                None => (elements.tail(), numbers),
                Some(first) => {
                    out.push(tag::LIST);
                    pending.push((Pending::List(elements), numbers));
                    (first, numbers)
                }
            },
        };
        append(term, of_term, most, out, &mut pending);
    }
}

/// Appends what a term has before its inner terms, which are left pending.
fn append<'a>(
    term: &'a Term,
    numbers: Numbers,
    most: usize,
    out: &mut Vec<u8>,
    pending: &mut Vec<(Pending<'a>, Numbers)>,
) {
    let mut inner = |terms| pending.push((terms, numbers));
    match term {
        Term::Integer(value) => append_integer(*value, out),
        Term::BigInteger(value) => append_big(value.value(), out),
        Term::Float(value) => append_float(value.value(), numbers, out),
        Term::Atom(atom) => {
            out.push(tag::ATOM);
            append_atom(*atom, out);
        }
        Term::Reference(reference) => append_reference(reference, out),
        Term::Fun(fun) => {
            append_fun(fun, out);
            inner(Pending::Elements(fun.free()));
        }
        Term::Port(port) => {
            out.push(tag::PORT);
            append_atom(port.node(), out);
            out.extend(port.creation().to_be_bytes());
            out.extend(port.id().to_be_bytes());
        }
        Term::Pid(pid) => {
            out.push(tag::PID);
            out.extend(pid.serial().to_be_bytes());
            out.extend(pid.id().to_be_bytes());
            append_atom(pid.node(), out);
            out.extend(pid.creation().to_be_bytes());
        }
        Term::Tuple(tuple) => {
            out.push(tag::TUPLE);
            append_size(tuple.len(), out);
            inner(Pending::Elements(tuple));
        }
        Term::Map(map) => {
            out.push(tag::MAP);
            append_size(map.len(), out);
            inner(Pending::Keys(map.entries(), map));
        }
        Term::List(list) if list.is_empty() => out.push(tag::NIL),
        Term::List(list) => inner(Pending::List(list.iter())),
        Term::Bitstring(string) => {
            out.push(tag::BITSTRING);
            let bytes = string.bytes();
            append_bytes(&bytes[..bytes.len().min(most)], out);
            out.push(8 - string.unused_bits());
        }
    }
}

fn append_reference(reference: &Reference, out: &mut Vec<u8>) {
    out.push(tag::REFERENCE);
    append_atom(reference.node(), out);
    out.extend(reference.creation().to_be_bytes());
    let words = reference.words();
    let missing = Reference::MAX_WORDS - words.len();
    let zeros = std::iter::repeat_n(0, missing);
    let most_significant_first = zeros.chain(words.iter().rev().copied());
    out.extend(most_significant_first.flat_map(u32::to_be_bytes));
}

/// Appends what is compared of a function before the values that it holds.
fn append_fun(fun: &Fun, out: &mut Vec<u8>) {
    match fun.kind() {
        FunKind::Local(fun) => {
            out.push(tag::LOCAL_FUN);
            let (module, index, old_unique, size) = fun.code();
            append_atom(module, out);
            out.extend(index.to_be_bytes());
            // With the highest bit inverted, negative numbers come first.
            out.extend((old_unique ^ i64::MIN).to_be_bytes());
            append_size(size, out);
        }
        FunKind::Export(fun) => {
            out.push(tag::EXPORT);
            append_atom(fun.module, out);
            append_atom(fun.function, out);
            out.push(fun.arity);
        }
    }
}

fn append_size(size: usize, out: &mut Vec<u8>) {
    match u8::try_from(size) {
        Ok(short) if short <= SHORT_SIZE => out.push(short),
        _ => {
            let bytes = size.to_be_bytes();
            let zeros = (size.leading_zeros() / u8::BITS) as usize;
            out.push(SHORT_SIZE + (bytes.len() - zeros) as u8);
            out.extend(&bytes[zeros..]);
        }
    }
}

fn append_atom(atom: Atom, out: &mut Vec<u8>) {
    append_bytes(atom.text().as_bytes(), out);
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(OWN_ZERO);
        }
    }
    out.extend([0, END]);
}
