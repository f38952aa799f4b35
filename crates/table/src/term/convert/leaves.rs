//! Numbers, booleans, texts, bytes, and the types of terms.

use super::{FromTerm, IntoTerm, UnexpectedTerm};
use crate::term::{
    Atom, Bitstring, Export, Float, List, LocalFun, Map, NotFinite, Pid, Port, Reference, Term,
    Tuple,
};
use num_bigint::BigInt;
use std::borrow::Cow;

/// Implements [`IntoTerm`] for types that `Term` is `From`.
macro_rules! into_term {
    ($($type:ty),*) => {
        $(impl IntoTerm for $type {
            #[inline]
            fn into_term(self) -> Result<Term, NotFinite> {
                Ok(Term::from(self))
            }
        })*
    };
}

into_term!(
    i8, i16, i32, i64, i128, isize, u16, u32, u64, u128, usize, BigInt
);
into_term!(bool, &str, String, Cow<'_, str>, Term);
into_term!(
    Atom, Bitstring, Export, Float, List, LocalFun, Map, Pid, Port, Reference, Tuple
);

impl IntoTerm for u8 {
    #[inline]
    fn into_term(self) -> Result<Term, NotFinite> {
        Ok(Term::from(self))
    }

    fn slice_as_bytes(bytes: &[Self]) -> Option<&[u8]> {
        Some(bytes)
    }
}

impl IntoTerm for f64 {
    #[inline]
    fn into_term(self) -> Result<Term, NotFinite> {
        Term::try_from(self)
    }
}

impl IntoTerm for f32 {
    #[inline]
    fn into_term(self) -> Result<Term, NotFinite> {
        Term::try_from(self)
    }
}

/// The float of 64 bits that equals it, if it is finite.
impl TryFrom<f32> for Term {
    type Error = NotFinite;

    fn try_from(value: f32) -> Result<Self, NotFinite> {
        Self::try_from(f64::from(value))
    }
}

/// The atom `true` or `false`.
impl From<bool> for Term {
    fn from(value: bool) -> Self {
        Self::Atom(Atom::boolean(value))
    }
}

/// The binary of its UTF-8.
impl From<&str> for Term {
    fn from(text: &str) -> Self {
        Self::binary(text.as_bytes())
    }
}

/// The binary of its UTF-8.
impl From<String> for Term {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

/// The binary of its UTF-8.
impl From<Cow<'_, str>> for Term {
    fn from(text: Cow<'_, str>) -> Self {
        Self::from(&*text)
    }
}

/// Implements `TryFrom` a term, owned and borrowed, by [`FromTerm`].
macro_rules! try_from_term {
    ($($type:ty),*) => {
        $(
            impl TryFrom<&Term> for $type {
                type Error = UnexpectedTerm;

                #[inline]
                fn try_from(term: &Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(term)
                }
            }

            impl TryFrom<Term> for $type {
                type Error = UnexpectedTerm;

                #[inline]
                fn try_from(term: Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(&term)
                }
            }
        )*
    };
}

/// The error unless there is a value.
fn expect<T>(value: Option<T>, term: &Term, expected: &'static str) -> Result<T, UnexpectedTerm> {
    value.ok_or_else(|| UnexpectedTerm::new(term, expected))
}

/// The value of an integer, if it fits.
fn integer<'a, T: TryFrom<i64> + TryFrom<&'a BigInt>>(term: &'a Term) -> Option<T> {
    match term {
        Term::Integer(value) => T::try_from(*value).ok(),
        Term::BigInteger(value) => T::try_from(value.value()).ok(),
        _ => None,
    }
}

macro_rules! from_integer {
    ($($type:ident $({ $($more:tt)* })?),*) => {
        $(
            impl FromTerm<'_> for $type {
                #[inline]
                fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
                    const EXPECTED: &str =
                        concat!("an integer that fits in ", stringify!($type));
                    expect(integer(term), term, EXPECTED)
                }

                $($($more)*)?
            }
        )*

        try_from_term!($($type),*);
    };
}

from_integer!(i8, i16, i32, i64, i128, isize, u16, u32, u64, u128, usize);
from_integer!(u8 {
    fn list_from_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
});

impl FromTerm<'_> for BigInt {
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        match term {
            Term::Integer(value) => Ok(Self::from(*value)),
            Term::BigInteger(value) => Ok(value.value().clone()),
            _ => Err(UnexpectedTerm::new(term, "an integer")),
        }
    }
}

impl FromTerm<'_> for f64 {
    #[inline]
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        expect(term.as_f64(), term, "a float of 64 bits")
    }
}

impl FromTerm<'_> for f32 {
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        let exact = |wide: f64| {
            let narrow = wide as Self;
            (f64::from(narrow) == wide).then_some(narrow)
        };
        expect(term.as_f64().and_then(exact), term, "a float of 32 bits")
    }
}

impl FromTerm<'_> for bool {
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        expect(term.as_bool(), term, "true or false")
    }
}

impl<'a> FromTerm<'a> for &'a str {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        expect(term.as_str(), term, "a binary in UTF-8")
    }
}

impl FromTerm<'_> for String {
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        <&str>::from_term(term).map(Self::from)
    }
}

impl<'a> FromTerm<'a> for &'a [u8] {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        expect(term.as_bytes(), term, "a binary")
    }
}

impl<'a> TryFrom<&'a Term> for &'a str {
    type Error = UnexpectedTerm;

    fn try_from(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        Self::from_term(term)
    }
}

impl<'a> TryFrom<&'a Term> for &'a [u8] {
    type Error = UnexpectedTerm;

    fn try_from(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        Self::from_term(term)
    }
}

impl FromTerm<'_> for Term {
    #[inline]
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        Ok(term.clone())
    }
}

impl<'a> FromTerm<'a> for &'a Term {
    #[inline]
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        Ok(term)
    }
}

/// Takes the variants of a term with their names.
macro_rules! from_variants {
    ($($type:ident: $expected:literal),*) => {
        $(impl FromTerm<'_> for $type {
            #[inline]
            fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
                match term {
                    Term::$type(value) => Ok(value.clone()),
                    _ => Err(UnexpectedTerm::new(term, $expected)),
                }
            }
        })*

        try_from_term!($($type),*);
    };
}

from_variants!(
    Atom: "an atom",
    Bitstring: "a binary or bit string",
    Float: "a float",
    List: "a list",
    Map: "a map",
    Pid: "a pid",
    Port: "a port",
    Reference: "a reference",
    Tuple: "a tuple"
);
try_from_term!(BigInt, bool, f32, f64, String);
