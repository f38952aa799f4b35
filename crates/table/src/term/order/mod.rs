//! Erlang's term order.
//!
//! number < atom < reference < fun < port < pid < tuple < map < `[]` < list < bit string. Tuples
//! are compared by size and then by elements; maps by size, then by keys in map order, then by
//! values; lists by elements; bit strings by bits. Source: the Erlang reference manual, section
//! "Term Comparisons". What it leaves open (references, ports, pids, functions) follows a running
//! Erlang 25.

mod number;
mod walk;

pub(super) use number::{Whole, compare_big, compare_integer, whole};

use super::{Bitstring, Exact, List, Map, Term, Tuple};
use std::cmp::Ordering;
use walk::Frame;

/// How an integer compares with a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// By their values, exactly: the term order.
    ByValue,
    /// Every integer comes before every float: the map order, in which only identical terms are
    /// equal. Keys of maps are always compared in this way.
    ByType,
}

/// Compares two terms without recursion. Allocates only where terms are nested.
#[inline]
pub(super) fn compare(one: &Term, two: &Term, numbers: Numbers) -> Ordering {
    finish(shallow(one, two, numbers))
}

/// Compares the inner terms, if the terms themselves have not decided.
#[inline]
fn finish(begun: Result<Ordering, Frame<'_>>) -> Ordering {
    match begun {
        Ok(ordering) => ordering,
        Err(frame) => walk::compare(frame),
    }
}

/// Compares two terms, or returns their inner terms to compare.
#[inline]
fn shallow<'a>(one: &'a Term, two: &'a Term, numbers: Numbers) -> Result<Ordering, Frame<'a>> {
    Ok(match (one, two) {
        (Term::Integer(one), Term::Integer(two)) => one.cmp(two),
        (Term::Atom(one), Term::Atom(two)) => one.cmp(two),
        (Term::Tuple(one), Term::Tuple(two)) => return tuples(one, two, numbers),
        (Term::List(one), Term::List(two)) if !one.is_empty() && !two.is_empty() => {
            return Err(Frame::list(one, two, numbers));
        }
        (Term::Map(one), Term::Map(two)) => return maps(one, two, numbers),
        (Term::Bitstring(one), Term::Bitstring(two)) => compare_bits(one, two),
        (Term::Reference(one), Term::Reference(two)) => one.cmp(two),
        (Term::Port(one), Term::Port(two)) => one.cmp(two),
        (Term::Pid(one), Term::Pid(two)) => one.cmp(two),
        (Term::Fun(one), Term::Fun(two)) => match one.cmp_code(two) {
            Ordering::Equal => return Err(Frame::elements(one.free(), two.free(), numbers)),
            ordering => ordering,
        },
        _ if one.is_number() && two.is_number() => compare_numbers(one, two, numbers),
        _ => one.kind().cmp(&two.kind()),
    })
}

#[inline]
fn tuples<'a>(one: &'a Tuple, two: &'a Tuple, numbers: Numbers) -> Result<Ordering, Frame<'a>> {
    match one.len().cmp(&two.len()) {
        Ordering::Equal if !std::ptr::eq(&**one, &**two) => Err(Frame::elements(one, two, numbers)),
        ordering => Ok(ordering),
    }
}

#[inline]
fn maps<'a>(one: &'a Map, two: &'a Map, numbers: Numbers) -> Result<Ordering, Frame<'a>> {
    match one.len().cmp(&two.len()) {
        Ordering::Equal if !std::ptr::eq(one.entries(), two.entries()) => {
            Err(Frame::map(one, two, numbers))
        }
        ordering => Ok(ordering),
    }
}

/// Compares the bytes first; if one string is a prefix of the other, the shorter one is smaller.
/// Unused bits are zero, so bytes compare as their bits do.
#[inline]
fn compare_bits(one: &Bitstring, two: &Bitstring) -> Ordering {
    one.bytes()
        .cmp(two.bytes())
        .then_with(|| two.unused_bits().cmp(&one.unused_bits()))
}

fn compare_numbers(one: &Term, two: &Term, numbers: Numbers) -> Ordering {
    use num_bigint::Sign;
    /// Compares a big integer with any `i64`.
    fn big_side(big: &super::BigInteger) -> Ordering {
        match big.value().sign() {
            Sign::Minus => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
    match (one, two) {
        (Term::Float(one), Term::Float(two)) => {
            // Both are finite, so they can be compared.
            one.partial_cmp(two).unwrap_or(Ordering::Equal)
        }
        (Term::BigInteger(one), Term::BigInteger(two)) => one.cmp(two),
        (Term::BigInteger(one), Term::Integer(_)) => big_side(one),
        (Term::Integer(_), Term::BigInteger(two)) => big_side(two).reverse(),
        (Term::Float(_), _) if numbers == Numbers::ByType => Ordering::Greater,
        (_, Term::Float(_)) if numbers == Numbers::ByType => Ordering::Less,
        (Term::Integer(one), Term::Float(two)) => compare_integer(*one, two.value()),
        (Term::Float(one), Term::Integer(two)) => compare_integer(*two, one.value()).reverse(),
        (Term::BigInteger(one), Term::Float(two)) => compare_big(one.value(), two.value()),
        (Term::Float(one), Term::BigInteger(two)) => {
            compare_big(two.value(), one.value()).reverse()
        }
        _ => one.kind().cmp(&two.kind()),
    }
}

impl Term {
    /// `=:=`: the same value of the same type; `1` and `1.0` are different.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let (one, float): (Term, Term) = ("{a, 1}".parse()?, "{a, 1.0}".parse()?);
    /// assert!(one == float && !one.is_identical(&float));
    /// # Ok::<(), tremula_table::term::ParseError>(())
    /// ```
    #[must_use]
    pub fn is_identical(&self, other: &Self) -> bool {
        compare(self, other, Numbers::ByType).is_eq()
    }

    /// The map order, which maps keep their keys in: the term order, except that all integers come
    /// before floats. Only identical terms are equal in it.
    #[must_use]
    pub fn cmp_exact(&self, other: &Self) -> Ordering {
        compare(self, other, Numbers::ByType)
    }
}

/// The term order. `==` is Erlang's: `1` and `1.0` are equal.
impl Ord for Term {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self, other, Numbers::ByValue)
    }
}

/// The map order. `==` is Erlang's `=:=`.
impl Ord for Exact {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_exact(&other.0)
    }
}

/// The term order, as of [`Term`].
impl Ord for Tuple {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        finish(tuples(self, other, Numbers::ByValue))
    }
}

/// The term order, as of [`Term`]: `[]` comes first.
impl Ord for List {
    fn cmp(&self, other: &Self) -> Ordering {
        match other.is_empty().cmp(&self.is_empty()) {
            Ordering::Equal if !self.is_empty() => {
                finish(Err(Frame::list(self, other, Numbers::ByValue)))
            }
            ordering => ordering,
        }
    }
}

/// The term order, as of [`Term`].
impl Ord for Map {
    fn cmp(&self, other: &Self) -> Ordering {
        finish(maps(self, other, Numbers::ByValue))
    }
}

/// The term order, as of [`Term`].
impl Ord for Bitstring {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare_bits(self, other)
    }
}

compared!(Bitstring, Exact, List, Map, Term, Tuple);
