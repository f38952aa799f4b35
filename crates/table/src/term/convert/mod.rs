//! Terms from Rust values, and Rust values from terms.
//!
//! `leaves`: numbers, booleans, texts, bytes, and the types of terms; `collections`: lists, maps,
//! `Option`; `tuples`; `error`: a term of another kind than expected.

mod collections;
mod error;
mod leaves;
mod tuples;

pub use error::UnexpectedTerm;

use super::{NotFinite, Term};

/// A Rust value that becomes a term.
///
/// | Rust | term |
/// |---|---|
/// | integers | the integer, of any size |
/// | `f64`, `f32` | the float, if it is finite |
/// | `bool` | the atom `true` or `false` |
/// | `&str`, `String`, `Cow<str>` | the **binary** of its UTF-8, not a list and not an atom |
/// | `Vec<u8>`, `&[u8]`, `[u8; N]` | the **binary** |
/// | any other `Vec`, slice or array | the list |
/// | tuples of up to 12 elements, `()` | the tuple |
/// | `BTreeMap`, `HashMap` | the map |
/// | `Option` | the value, or the atom `undefined` |
/// | [`Atom`](super::Atom), [`Tuple`](super::Tuple), … | the term |
///
/// For all of these, `Term` is also `From` the value, unless there is a float in it: a float can be
/// infinite or not a number, and a term cannot. `Term` is `TryFrom` a float itself. Atoms are
/// [`Term::atom`], and lists of code points, Erlang's strings, are [`Term::string`].
///
/// ```
/// use tremula_table::Term;
/// use tremula_table::term::{Atom, IntoTerm};
///
/// let row = Term::from((1, "ada", true, vec![7, 8], None::<i64>, Atom::OK));
/// assert_eq!(row.to_string(), "{1,<<\"ada\">>,true,[7,8],undefined,ok}");
/// assert_eq!((1, 3.5).into_term()?.to_string(), "{1,3.5}");
/// assert!((1, f64::NAN).into_term().is_err());
/// # Ok::<(), tremula_table::term::NotFinite>(())
/// ```
///
/// A program may implement it for types of its own:
///
/// ```
/// use tremula_table::Term;
/// use tremula_table::term::{IntoTerm, NotFinite};
///
/// struct Point(f64, f64);
///
/// impl IntoTerm for Point {
///     fn into_term(self) -> Result<Term, NotFinite> {
///         (self.0, self.1).into_term()
///     }
/// }
///
/// assert_eq!(vec![Point(0.0, 1.5)].into_term()?.to_string(), "[{0.0,1.5}]");
/// # Ok::<(), NotFinite>(())
/// ```
pub trait IntoTerm: Sized {
    /// The value as a term. Copies text and bytes.
    ///
    /// # Errors
    ///
    /// There is a float in it that is infinite or not a number.
    fn into_term(self) -> Result<Term, NotFinite>;

    /// The bytes of a slice, if a list of such values is a binary. Only for `u8`.
    #[doc(hidden)]
    fn slice_as_bytes(_: &[Self]) -> Option<&[u8]> {
        None
    }
}

/// A Rust value made of a term, from which it may borrow.
///
/// It is implemented for the types that [`IntoTerm`] lists, and returns the value that the term was
/// made of. It never loses anything: an integer has to fit, and a float is no integer. There is one
/// liberty: for a float, an integer that equals a float exactly will do. A `Vec<u8>` is made of a
/// binary or of a list of bytes.
///
/// All of these types but `Option` are also `TryFrom<Term>` and `TryFrom<&Term>`, and the tuples
/// `TryFrom<Tuple>` and `TryFrom<&Tuple>` too. `&str` and `&[u8]` borrow from the term.
///
/// ```
/// use tremula_table::Term;
///
/// let row: Term = "{7, <<\"ada\">>, [1.5, 2]}".parse()?;
/// let (id, name, scores): (u32, &str, Vec<f64>) = (&row).try_into()?;
/// assert_eq!((id, name, scores), (7, "ada", vec![1.5, 2.0]));
///
/// let error = u8::try_from(Term::from(300)).unwrap_err();
/// assert_eq!(error.to_string(), "300 is not an integer that fits in u8");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromTerm<'a>: Sized {
    /// The value.
    ///
    /// # Errors
    ///
    /// The term is of another kind, or does not fit.
    fn from_term(term: &'a Term) -> Result<Self, UnexpectedTerm>;

    /// The values of a binary, if a list of them is one. Only for `u8`.
    #[doc(hidden)]
    fn list_from_bytes(_: &[u8]) -> Option<Vec<Self>> {
        None
    }
}
