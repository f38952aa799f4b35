//! What a term holds, as a Rust value.

use super::order::{compare_big, compare_integer};
use super::{Atom, BigInteger, Float, List, Map, Term, Tuple};

impl Term {
    /// The integer, if it is one of 64 bits.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::from(-7).as_i64(), Some(-7));
    /// assert_eq!(Term::from(u64::MAX).as_i64(), None);
    /// assert_eq!(Term::try_from(1.0)?.as_i64(), None, "a float is no integer");
    /// # Ok::<(), tremula_table::term::NotFinite>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if it is one of 64 bits without a sign.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::from(u64::MAX).as_u64(), Some(u64::MAX));
    /// assert_eq!(Term::from(-1).as_u64(), None);
    /// ```
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.try_into().ok()
    }

    /// The float, or the float that equals the integer exactly.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::try_from(1.5)?.as_f64(), Some(1.5));
    /// assert_eq!(Term::from(3).as_f64(), Some(3.0));
    /// assert_eq!(Term::from((1_i64 << 53) + 1).as_f64(), None, "no float equals it");
    /// # Ok::<(), tremula_table::term::NotFinite>(())
    /// ```
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(float) => Some(float.value()),
            Self::Integer(value) => {
                let float = *value as f64;
                compare_integer(*value, float).is_eq().then_some(float)
            }
            Self::BigInteger(value) => exact_float(value),
            _ => None,
        }
    }

    /// `true` for the atom `true`, `false` for the atom `false`.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!("true".parse::<Term>()?.as_bool(), Some(true));
    /// assert_eq!("ok".parse::<Term>()?.as_bool(), None);
    /// # Ok::<(), tremula_table::term::ParseError>(())
    /// ```
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        let atom = self.as_atom()?;
        (atom == Atom::TRUE || atom == Atom::FALSE).then_some(atom == Atom::TRUE)
    }

    /// The atom.
    ///
    /// ```
    /// use tremula_table::{Term, term::Atom};
    ///
    /// let term = Term::atom("colour")?;
    /// assert_eq!(term.as_atom().map(Atom::text), Some("colour"));
    /// assert_eq!(Term::from("colour").as_atom(), None, "a binary is no atom");
    /// # Ok::<(), tremula_table::term::AtomError>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_atom(&self) -> Option<Atom> {
        match self {
            Self::Atom(atom) => Some(*atom),
            _ => None,
        }
    }

    /// The text of a binary in UTF-8. Takes time in proportion to its bytes, which are checked.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::from("a value").as_str(), Some("a value"));
    /// assert_eq!(Term::binary(b"\xff").as_str(), None, "not UTF-8");
    /// assert_eq!(Term::string("a list").as_str(), None, "a list of code points");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// The bytes of a binary.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::binary(&[1, 2]).as_bytes(), Some(&[1, 2][..]));
    /// assert_eq!("<<5:3>>".parse::<Term>()?.as_bytes(), None, "its byte is not full");
    /// # Ok::<(), tremula_table::term::ParseError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bitstring(bits) => bits.as_binary(),
            _ => None,
        }
    }

    /// The tuple.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let term = Term::from((1, "a"));
    /// assert_eq!(term.as_tuple().map(|row| row.len()), Some(2));
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_tuple(&self) -> Option<&Tuple> {
        match self {
            Self::Tuple(tuple) => Some(tuple),
            _ => None,
        }
    }

    /// The list, which may be `[]` or improper.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let term = Term::from(vec![1, 2, 3]);
    /// let sum: Option<i64> = term.as_list().unwrap().iter().map(Term::as_i64).sum();
    /// assert_eq!(sum, Some(6));
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_list(&self) -> Option<&List> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The map.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let term: Term = "#{a => 1}".parse()?;
    /// let map = term.as_map().unwrap();
    /// assert_eq!(map.get(&Term::atom("a")?), Some(&Term::from(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }
}

/// The float that equals a big integer exactly.
fn exact_float(value: &BigInteger) -> Option<f64> {
    let float = value.to_float().map(Float::value)?;
    compare_big(value.value(), float).is_eq().then_some(float)
}
