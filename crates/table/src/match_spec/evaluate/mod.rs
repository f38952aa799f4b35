//! The values of functions. `None` is an exception.

mod arithmetic;

use super::function::{Comparison, Compute};
use crate::term::{Atom, Term};
use std::cmp::Ordering;

/// Whether a comparison holds. For two integers it takes one instruction.
#[inline]
pub(super) fn compare(comparison: Comparison, one: &Term, two: &Term) -> bool {
    if let (Term::Integer(one), Term::Integer(two)) = (one, two) {
        return holds(comparison, one.cmp(two));
    }
    compare_any(comparison, one, two)
}

#[inline(never)]
fn compare_any(comparison: Comparison, one: &Term, two: &Term) -> bool {
    match comparison {
        Comparison::Identical => one.is_identical(two),
        Comparison::NotIdentical => !one.is_identical(two),
        _ => holds(comparison, one.cmp(two)),
    }
}

#[inline]
const fn holds(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal | Comparison::Identical => ordering.is_eq(),
        Comparison::NotEqual | Comparison::NotIdentical => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::AtMost => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::AtLeast => ordering.is_ge(),
    }
}

/// The value of `true` or `false`; `None` for other terms.
#[inline]
pub(super) fn boolean(term: &Term) -> Option<bool> {
    match term {
        Term::Atom(atom) if *atom == Atom::TRUE => Some(true),
        Term::Atom(atom) if *atom == Atom::FALSE => Some(false),
        _ => None,
    }
}

/// How many times a long integer is visited when it is multiplied or divided, and a key when it is
/// looked up in a large map: roughly, and at most.
pub(super) const PASSES: usize = 64;

/// How many bytes a function compares and copies: at least roughly, and 0 where it takes constant
/// time.
#[inline]
pub(super) fn work<'t>(function: Compute, mut arguments: impl Iterator<Item = &'t Term>) -> usize {
    match function {
        Compute::Max | Compute::Min => {
            let bytes = arguments.map(Term::heap_bytes);
            bytes.min().unwrap_or(0)
        }
        Compute::Tail => arguments.next().map_or(0, Term::heap_bytes),
        // A list that was made element by element is visited so.
        Compute::Length => arguments.next().map_or(0, Term::heap_bytes) / size_of::<Term>(),
        Compute::Multiply | Compute::Div | Compute::Rem => {
            let long = arguments.filter(|one| matches!(one, Term::BigInteger(_)));
            long.map(|one| one.heap_bytes() * PASSES).sum()
        }
        Compute::IsMapKey => arguments.next().map_or(0, Term::heap_bytes) * PASSES,
        _ => 0,
    }
}

/// A function of one argument.
pub(super) fn unary(function: Compute, term: &Term) -> Option<Term> {
    Some(match function {
        Compute::IsAtom => matches!(term, Term::Atom(_)).into(),
        Compute::IsBinary => matches!(term, Term::Bitstring(bits) if bits.is_binary()).into(),
        Compute::IsBitstring => matches!(term, Term::Bitstring(_)).into(),
        Compute::IsBoolean => boolean(term).is_some().into(),
        Compute::IsFloat => matches!(term, Term::Float(_)).into(),
        Compute::IsFunction => matches!(term, Term::Fun(_)).into(),
        Compute::IsInteger => matches!(term, Term::Integer(_) | Term::BigInteger(_)).into(),
        Compute::IsList => matches!(term, Term::List(_)).into(),
        Compute::IsMap => matches!(term, Term::Map(_)).into(),
        Compute::IsNumber => term.is_number().into(),
        Compute::IsPid => matches!(term, Term::Pid(_)).into(),
        Compute::IsPort => matches!(term, Term::Port(_)).into(),
        Compute::IsReference => matches!(term, Term::Reference(_)).into(),
        Compute::IsTuple => matches!(term, Term::Tuple(_)).into(),
        Compute::Not => (!boolean(term)?).into(),
        _ => return size(function, term),
    })
}

/// A size or a part of a term, or a function of a number.
fn size(function: Compute, term: &Term) -> Option<Term> {
    Some(match (function, term) {
        (Compute::BitSize, Term::Bitstring(bits)) => bits.bit_len().into(),
        (Compute::ByteSize, Term::Bitstring(bits)) => bits.bytes().len().into(),
        // Only full bytes count.
        (Compute::Size, Term::Bitstring(bits)) => (bits.bit_len() / 8).into(),
        (Compute::Size | Compute::TupleSize, Term::Tuple(tuple)) => tuple.len().into(),
        (Compute::MapSize, Term::Map(map)) => map.len().into(),
        (Compute::Length, Term::List(list)) => list.proper_len()?.into(),
        (Compute::Tail, Term::List(list)) => list.rest()?,
        (Compute::NodeOf, Term::Pid(pid)) => pid.node().into(),
        (Compute::NodeOf, Term::Port(port)) => port.node().into(),
        (Compute::NodeOf, Term::Reference(reference)) => reference.node().into(),
        _ => return arithmetic::unary(function, term),
    })
}

/// A function of two arguments.
pub(super) fn binary(function: Compute, one: &Term, two: &Term) -> Option<Term> {
    Some(match (function, two) {
        (Compute::IsMapKey, Term::Map(map)) => map.get(one).is_some().into(),
        (Compute::Xor, _) => (boolean(one)? != boolean(two)?).into(),
        // Of two equal terms the first, as in Erlang.
        (Compute::Max, _) => if one >= two { one } else { two }.clone(),
        (Compute::Min, _) => if one <= two { one } else { two }.clone(),
        (Compute::BinaryPart, Term::Tuple(part)) => match part.elements() {
            [start, length] => binary_part(one, start, length)?,
            _ => return None,
        },
        _ => return arithmetic::binary(function, one, two),
    })
}

/// A function of three arguments.
pub(super) fn ternary(function: Compute, one: &Term, two: &Term, three: &Term) -> Option<Term> {
    match function {
        Compute::BinaryPart => binary_part(one, two, three),
        Compute::IsRecord => is_record(one, two, three),
        _ => None,
    }
}

/// `length` bytes from `start` on, or the bytes before `start` if the length is negative.
fn binary_part(binary: &Term, start: &Term, length: &Term) -> Option<Term> {
    let (Term::Bitstring(bits), &Term::Integer(start), &Term::Integer(length)) =
        (binary, start, length)
    else {
        return None;
    };
    let bytes = bits.as_binary()?;
    let end = start.checked_add(length)?;
    let (from, to) = (start.min(end), start.max(end));
    let part = bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
    Some(Term::binary(part))
}

fn is_record(term: &Term, tag: &Term, size: &Term) -> Option<Term> {
    /// Integers outside this range are big integers in Erlang, which takes none of them for a size.
    const SMALL: std::ops::Range<i64> = -(1 << 59)..1 << 59;
    let (Term::Atom(_), &Term::Integer(size)) = (tag, size) else {
        return None;
    };
    if !SMALL.contains(&size) {
        return None;
    }
    let Term::Tuple(tuple) = term else {
        return Some(false.into());
    };
    let sized = usize::try_from(size).is_ok_and(|size| tuple.len() == size);
    let tagged = tuple.first().is_some_and(|first| first.is_identical(tag));
    Some((sized && tagged).into())
}
