//! Lists, maps, `Option`, references.

use super::{FromTerm, IntoTerm, UnexpectedTerm};
use crate::term::{Atom, NotFinite, Term};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// The term of what the reference refers to.
impl<T: Into<Term> + Clone> From<&T> for Term {
    fn from(value: &T) -> Self {
        value.clone().into()
    }
}

impl<T: IntoTerm + Clone> IntoTerm for &T {
    fn into_term(self) -> Result<Term, NotFinite> {
        self.clone().into_term()
    }
}

/// The value, or the atom `undefined`.
impl<T: Into<Term>> From<Option<T>> for Term {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Atom(Atom::UNDEFINED), Into::into)
    }
}

impl<T: IntoTerm> IntoTerm for Option<T> {
    fn into_term(self) -> Result<Term, NotFinite> {
        self.map_or(Ok(Term::Atom(Atom::UNDEFINED)), T::into_term)
    }
}

impl<'a, T: FromTerm<'a>> FromTerm<'a> for Option<T> {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        match term {
            Term::Atom(atom) if *atom == Atom::UNDEFINED => Ok(None),
            _ => T::from_term(term).map(Some),
        }
    }
}

/// The binary of bytes, or the list of other values.
impl<T: IntoTerm + Into<Term>> From<Vec<T>> for Term {
    fn from(values: Vec<T>) -> Self {
        match T::slice_as_bytes(&values) {
            Some(bytes) => Self::binary(bytes),
            None => Self::list(values.into_iter().map(Into::into)),
        }
    }
}

/// The binary of bytes, or the list of other values.
impl<T: IntoTerm + Into<Term> + Clone> From<&[T]> for Term {
    fn from(values: &[T]) -> Self {
        match T::slice_as_bytes(values) {
            Some(bytes) => Self::binary(bytes),
            None => Self::list(values.iter().cloned().map(Into::into)),
        }
    }
}

/// The binary of bytes, or the list of other values.
impl<T: IntoTerm + Into<Term>, const N: usize> From<[T; N]> for Term {
    fn from(values: [T; N]) -> Self {
        match T::slice_as_bytes(&values) {
            Some(bytes) => Self::binary(bytes),
            None => Self::list(values.map(Into::into)),
        }
    }
}

/// The list of these values, which are no bytes.
fn list<T: IntoTerm>(values: impl IntoIterator<Item = T>) -> Result<Term, NotFinite> {
    let elements = values.into_iter().map(T::into_term);
    Ok(Term::list(elements.collect::<Result<Vec<_>, _>>()?))
}

impl<T: IntoTerm> IntoTerm for Vec<T> {
    fn into_term(self) -> Result<Term, NotFinite> {
        match T::slice_as_bytes(&self) {
            Some(bytes) => Ok(Term::binary(bytes)),
            None => list(self),
        }
    }
}

impl<T: IntoTerm + Clone> IntoTerm for &[T] {
    fn into_term(self) -> Result<Term, NotFinite> {
        match T::slice_as_bytes(self) {
            Some(bytes) => Ok(Term::binary(bytes)),
            None => list(self.iter().cloned()),
        }
    }
}

impl<T: IntoTerm, const N: usize> IntoTerm for [T; N] {
    fn into_term(self) -> Result<Term, NotFinite> {
        match T::slice_as_bytes(&self) {
            Some(bytes) => Ok(Term::binary(bytes)),
            None => list(self),
        }
    }
}

impl<'a, T: FromTerm<'a>> FromTerm<'a> for Vec<T> {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        if let Some(values) = term.as_bytes().and_then(T::list_from_bytes) {
            return Ok(values);
        }
        let Some(list) = term.as_list().filter(|list| list.is_proper()) else {
            return Err(UnexpectedTerm::new(term, "a proper list"));
        };
        let values = list.iter().enumerate();
        values
            .map(|(place, value)| T::from_term(value).map_err(|error| error.within(place)))
            .collect()
    }
}

impl<'a, T: FromTerm<'a>, const N: usize> FromTerm<'a> for [T; N] {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        Vec::from_term(term)?
            .try_into()
            .map_err(|_| UnexpectedTerm::new(term, "a list as long as the array"))
    }
}

/// The map.
impl<K: Into<Term>, V: Into<Term>> From<BTreeMap<K, V>> for Term {
    fn from(entries: BTreeMap<K, V>) -> Self {
        let entries = entries.into_iter();
        Self::map(
            entries
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl<K: IntoTerm, V: IntoTerm> IntoTerm for BTreeMap<K, V> {
    fn into_term(self) -> Result<Term, NotFinite> {
        map(self)
    }
}

impl<'a, K: FromTerm<'a> + Ord, V: FromTerm<'a>> FromTerm<'a> for BTreeMap<K, V> {
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        entries(term)
    }
}

/// The map.
impl<K: Into<Term>, V: Into<Term>, S> From<HashMap<K, V, S>> for Term {
    fn from(entries: HashMap<K, V, S>) -> Self {
        let entries = entries.into_iter();
        Self::map(
            entries
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl<K: IntoTerm, V: IntoTerm, S> IntoTerm for HashMap<K, V, S> {
    fn into_term(self) -> Result<Term, NotFinite> {
        map(self)
    }
}

impl<'a, K: FromTerm<'a> + Eq + Hash, V: FromTerm<'a>, S: BuildHasher + Default> FromTerm<'a>
    for HashMap<K, V, S>
{
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
        entries(term)
    }
}

/// The map of these entries.
fn map<K: IntoTerm, V: IntoTerm>(
    entries: impl IntoIterator<Item = (K, V)>,
) -> Result<Term, NotFinite> {
    let entries = entries.into_iter();
    let entries = entries.map(|(key, value)| Ok((key.into_term()?, value.into_term()?)));
    Ok(Term::map(entries.collect::<Result<_, _>>()?))
}

/// The entries of a map.
fn entries<'a, K: FromTerm<'a>, V: FromTerm<'a>, M: FromIterator<(K, V)>>(
    term: &'a Term,
) -> Result<M, UnexpectedTerm> {
    let Some(map) = term.as_map() else {
        return Err(UnexpectedTerm::new(term, "a map"));
    };
    let entries = map.entries().iter();
    entries
        .map(|(key, value)| Ok((K::from_term(key)?, V::from_term(value)?)))
        .collect()
}

/// Implements `TryFrom` a term, owned and borrowed, by [`FromTerm`].
macro_rules! try_from_term {
    ($([$($parameter:ident),* $(; const $n:ident)?] $type:ty;)*) => {
        $(
            impl<'a, $($parameter,)* $(const $n: usize)?> TryFrom<&'a Term> for $type
            where
                $type: FromTerm<'a>,
            {
                type Error = UnexpectedTerm;

                fn try_from(term: &'a Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(term)
                }
            }

            impl<$($parameter,)* $(const $n: usize)?> TryFrom<Term> for $type
            where
                $type: for<'a> FromTerm<'a>,
            {
                type Error = UnexpectedTerm;

                fn try_from(term: Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(&term)
                }
            }
        )*
    };
}

try_from_term! {
    [T] Vec<T>;
    [T; const N] [T; N];
    [K, V] BTreeMap<K, V>;
    [K, V, S] HashMap<K, V, S>;
}
