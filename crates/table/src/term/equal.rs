//! Comparing terms with Rust values.
//!
//! A term equals a Rust value if it equals (`==`, so `1` and `1.0` are equal) the term of the
//! value, and with numbers it has the term order.
//! Only the term may be on the left: a second meaning of `==` for Rust's own types would take away
//! what the compiler infers from them.

use super::convert::IntoTerm;
use super::{Atom, Bitstring, Float, List, Map, Pid, Port, Reference, Term, Tuple};
use std::cmp::Ordering;

macro_rules! equals_as_term {
    ($($type:ty),*) => {
        $(
            #[doc = concat!("Equals what `Term::from` the `", stringify!($type), "` equals.")]
            impl PartialEq<$type> for Term {
                #[inline]
                fn eq(&self, other: &$type) -> bool {
                    self.partial_cmp(other) == Some(Ordering::Equal)
                }
            }

            #[doc = concat!("Compares as with what `Term::from` the `", stringify!($type), "` is.")]
            impl PartialOrd<$type> for Term {
                #[inline]
                fn partial_cmp(&self, other: &$type) -> Option<Ordering> {
                    Some(self.cmp(&Self::from(*other)))
                }
            }
        )*
    };
}

equals_as_term!(
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, bool
);

macro_rules! equals_variant {
    ($($kind:ident),*) => {
        $(
            #[doc = concat!("Equals the term that holds the `", stringify!($kind), "`.")]
            impl PartialEq<$kind> for Term {
                #[inline]
                fn eq(&self, other: &$kind) -> bool {
                    matches!(self, Self::$kind(held) if held == other)
                }
            }
        )*
    };
}

equals_variant!(Atom, Bitstring, List, Map, Pid, Port, Reference, Tuple);

/// Equals the number that equals the float exactly. No term equals an infinite float, or one that
/// is not a number.
///
/// ```
/// use tremula_table::Term;
///
/// assert!(Term::from(1) == 1.0 && Term::try_from(1.0)? == 1);
/// assert!(Term::from(1) != f64::NAN);
/// # Ok::<(), tremula_table::term::NotFinite>(())
/// ```
impl PartialEq<f64> for Term {
    fn eq(&self, other: &f64) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

/// Compares as with the number that equals the float exactly. There is no order between a term and
/// a float that is infinite or not a number.
///
/// ```
/// use tremula_table::Term;
///
/// assert!(Term::from(1) < 1.5 && Term::from(2) > 1);
/// assert!(Term::from("text") > 1e300, "binaries are greater than numbers");
/// ```
impl PartialOrd<f64> for Term {
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        let other = Float::new(*other).ok()?;
        Some(self.cmp(&Self::Float(other)))
    }
}

/// Equals the binary of the text's UTF-8.
///
/// ```
/// use tremula_table::Term;
///
/// assert!(Term::binary(b"abc") == "abc");
/// assert!(Term::atom("abc")? != "abc", "an atom is no binary");
/// # Ok::<(), tremula_table::term::AtomError>(())
/// ```
impl PartialEq<str> for Term {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == Some(other.as_bytes())
    }
}

/// Equals the binary of the text's UTF-8.
impl PartialEq<String> for Term {
    fn eq(&self, other: &String) -> bool {
        *self == **other
    }
}

/// Equals what the value equals that the reference refers to.
impl<T: ?Sized> PartialEq<&T> for Term
where
    Self: PartialEq<T>,
{
    #[inline]
    fn eq(&self, other: &&T) -> bool {
        <Self as PartialEq<T>>::eq(self, other)
    }
}

/// Equals `undefined` or the term of the value.
impl<T> PartialEq<Option<T>> for Term
where
    Self: PartialEq<T>,
{
    fn eq(&self, other: &Option<T>) -> bool {
        match other {
            Some(value) => self == value,
            None => self.as_atom() == Some(Atom::UNDEFINED),
        }
    }
}

/// Equals the binary of bytes, or the proper list of other values.
///
/// ```
/// use tremula_table::Term;
///
/// assert!(Term::list([Term::from(1), Term::from("b")]) != [1, 2]);
/// assert!(Term::binary(&[1, 2]) == [1_u8, 2]);
/// ```
impl<T: IntoTerm> PartialEq<[T]> for Term
where
    Self: PartialEq<T>,
{
    fn eq(&self, other: &[T]) -> bool {
        equals_slice(self, other)
    }
}

/// Equals the binary of bytes, or the proper list of other values.
impl<T: IntoTerm, const N: usize> PartialEq<[T; N]> for Term
where
    Self: PartialEq<T>,
{
    fn eq(&self, other: &[T; N]) -> bool {
        equals_slice(self, other)
    }
}

/// Equals the binary of bytes, or the proper list of other values.
impl<T: IntoTerm> PartialEq<Vec<T>> for Term
where
    Self: PartialEq<T>,
{
    fn eq(&self, other: &Vec<T>) -> bool {
        equals_slice(self, other)
    }
}

/// Whether a term equals the binary or the list that is made of these values.
fn equals_slice<T: IntoTerm>(term: &Term, other: &[T]) -> bool
where
    Term: PartialEq<T>,
{
    if let Some(bytes) = T::slice_as_bytes(other) {
        return term.as_bytes() == Some(bytes);
    }
    let Term::List(list) = term else {
        return false;
    };
    let mut elements = list.iter();
    let mut values = other.iter();
    // Neither may have more than the other.
    values.all(|value| elements.next().is_some_and(|element| element == value))
        && elements.next().is_none()
        && elements.tail().is_nil()
}

/// Equals the empty tuple.
impl PartialEq<()> for Tuple {
    fn eq(&self, (): &()) -> bool {
        self.is_empty()
    }
}

/// Equals the empty tuple.
impl PartialEq<()> for Term {
    fn eq(&self, other: &()) -> bool {
        self.as_tuple().is_some_and(|tuple| tuple == other)
    }
}

macro_rules! equals_tuple {
    ($($size:literal: $($type:ident $place:tt)*;)*) => {
        $(
            /// Equals the tuple of equal elements.
            impl<$($type),*> PartialEq<($($type,)*)> for Tuple
            where
                $(Term: PartialEq<$type>),*
            {
                #[inline]
                fn eq(&self, other: &($($type,)*)) -> bool {
                    self.len() == $size $(&& self[$place] == other.$place)*
                }
            }

            /// Equals the tuple of equal elements.
            impl<$($type),*> PartialEq<($($type,)*)> for Term
            where
                $(Self: PartialEq<$type>),*
            {
                fn eq(&self, other: &($($type,)*)) -> bool {
                    self.as_tuple().is_some_and(|tuple| tuple == other)
                }
            }
        )*
    };
}

equals_tuple! {
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
