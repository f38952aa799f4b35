//! Tuples.

use super::{FromTerm, IntoTerm, UnexpectedTerm};
use crate::term::{NotFinite, Term, Tuple};

/// The elements of a tuple, if it has `N`.
fn elements<'a, const N: usize>(
    tuple: &'a Tuple,
    expected: &'static str,
) -> Result<&'a [Term; N], UnexpectedTerm> {
    let wrong = |_| UnexpectedTerm::new(&Term::Tuple(tuple.clone()), expected);
    tuple.elements().try_into().map_err(wrong)
}

/// Implements all conversions of tuples with these types at these positions.
macro_rules! tuples {
    ($($size:literal: $($type:ident $place:tt)*;)*) => {
        $(
            impl<$($type: Into<Term>),*> From<($($type,)*)> for Tuple {
                fn from(values: ($($type,)*)) -> Self {
                    Self::new([$(values.$place.into()),*])
                }
            }

            impl<$($type: Into<Term>),*> From<($($type,)*)> for Term {
                fn from(values: ($($type,)*)) -> Self {
                    Self::Tuple(values.into())
                }
            }

            impl<$($type: IntoTerm),*> IntoTerm for ($($type,)*) {
                fn into_term(self) -> Result<Term, NotFinite> {
                    Ok(Term::tuple([$(self.$place.into_term()?),*]))
                }
            }

            impl<'a, $($type: FromTerm<'a>),*> FromTerm<'a> for ($($type,)*) {
                fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm> {
                    match term {
                        Term::Tuple(tuple) => tuple.try_into(),
                        _ => Err(UnexpectedTerm::new(term, EXPECTED[$size])),
                    }
                }
            }

            impl<'a, $($type: FromTerm<'a>),*> TryFrom<&'a Tuple> for ($($type,)*) {
                type Error = UnexpectedTerm;

                fn try_from(tuple: &'a Tuple) -> Result<Self, UnexpectedTerm> {
                    let elements = elements::<$size>(tuple, EXPECTED[$size])?;
                    let value = ($(
                        $type::from_term(&elements[$place])
                            .map_err(|error| error.within($place))?,
                    )*);
                    Ok(value)
                }
            }

            impl<$($type: for<'a> FromTerm<'a>),*> TryFrom<Tuple> for ($($type,)*) {
                type Error = UnexpectedTerm;

                fn try_from(tuple: Tuple) -> Result<Self, UnexpectedTerm> {
                    (&tuple).try_into()
                }
            }

            impl<'a, $($type: FromTerm<'a>),*> TryFrom<&'a Term> for ($($type,)*) {
                type Error = UnexpectedTerm;

                fn try_from(term: &'a Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(term)
                }
            }

            impl<$($type: for<'a> FromTerm<'a>),*> TryFrom<Term> for ($($type,)*) {
                type Error = UnexpectedTerm;

                fn try_from(term: Term) -> Result<Self, UnexpectedTerm> {
                    Self::from_term(&term)
                }
            }
        )*
    };
}

/// What is expected of a tuple, by its size.
const EXPECTED: [&str; 13] = [
    "an empty tuple",
    "a tuple of 1 element",
    "a tuple of 2 elements",
    "a tuple of 3 elements",
    "a tuple of 4 elements",
    "a tuple of 5 elements",
    "a tuple of 6 elements",
    "a tuple of 7 elements",
    "a tuple of 8 elements",
    "a tuple of 9 elements",
    "a tuple of 10 elements",
    "a tuple of 11 elements",
    "a tuple of 12 elements",
];

tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    9: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    10: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    11: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    12: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}

/// The empty tuple, `{}`.
impl From<()> for Tuple {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// The empty tuple, `{}`.
impl From<()> for Term {
    fn from((): ()) -> Self {
        Self::Tuple(Tuple::default())
    }
}

impl IntoTerm for () {
    fn into_term(self) -> Result<Term, NotFinite> {
        Ok(Term::from(()))
    }
}

impl FromTerm<'_> for () {
    fn from_term(term: &Term) -> Result<Self, UnexpectedTerm> {
        match term {
            Term::Tuple(tuple) if tuple.is_empty() => Ok(()),
            _ => Err(UnexpectedTerm::new(term, EXPECTED[0])),
        }
    }
}
