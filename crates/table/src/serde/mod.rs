//! Rows and terms from and into types with serde's `Serialize` and `Deserialize`. Needs the feature
//! `serde`.
//!
//! | Rust | term |
//! |---|---|
//! | a struct, a tuple struct | the tuple of its fields in the order of their declaration: a row |
//! | a tuple, an array | the tuple |
//! | a struct with one unnamed field | what the field becomes |
//! | `()`, a struct without fields | `{}` |
//! | a variant without fields | the atom of its name: `red`, if `rename_all = "snake_case"` |
//! | a variant with fields | the tuple of that atom and the fields |
//! | integers, finite floats, `bool` | the integer, the float, the atom `true` or `false` |
//! | text, `char` | the binary of its UTF-8 |
//! | bytes (`serde_bytes`) | the binary; serde sees a plain `Vec<u8>` as a list of numbers |
//! | a `Vec`, a set | the list |
//! | a map | the map |
//! | `Option` | the value, or the atom `undefined` |
//! | [`Term`], [`Tuple`] and the types of other terms | the term itself |
//!
//! So the first field of a struct is the key of its row, unless the table's
//! [`keypos`](crate::Options::keypos) is another. A field that is skipped because of its value
//! leaves
//! `undefined` in its place.
//!
//! Reading accepts what writing makes, and also: a map with atoms or binaries as keys for a struct,
//! a list for a tuple or an array, a binary for a `Vec<u8>`, and an integer for a float.
//!
//! Other formats write a [`Term`] as Erlang's text if they are for people (JSON), and otherwise in
//! the external term format; reading is subject to the default [`Limits`].
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tremula_table::serde::{from_row, to_row, to_term};
//! use tremula_table::{Kind, Options, Tables};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! #[serde(rename_all = "snake_case")]
//! enum Level {
//!     Guest,
//!     Member { since: u16 },
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct User {
//!     id: u64,
//!     name: String,
//!     level: Level,
//! }
//!
//! let users = Tables::new().create("users", Options::new().kind(Kind::OrderedSet))?;
//! let ada = User { id: 7, name: "ada".to_owned(), level: Level::Member { since: 1843 } };
//! users.insert(to_term(&ada)?)?;
//!
//! let row = users.get(&7.into())?.unwrap();
//! assert_eq!(row.to_string(), "{7,<<\"ada\">>,{member,1843}}");
//! assert_eq!(from_row::<User>(&row)?, ada);
//!
//! let row = to_row(&(8, "alan", "none"))?;
//! let error = from_row::<User>(&row).unwrap_err();
//! assert_eq!(error.to_string(), "element 3: <<\"none\">> is not a variant of the enum Level");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Term`]: crate::Term
//! [`Tuple`]: crate::term::Tuple
//! [`Limits`]: crate::term::Limits

mod de;
mod error;
mod ser;
mod terms;

pub use error::Error;

use crate::term::{Term, Tuple};
use serde_core::de::DeserializeOwned;
use serde_core::{Deserialize, Serialize};

/// How deep values may be nested: serde's functions are recursive, and the stack is not endless.
/// A [`Term`] that is itself a part of a value counts as one level.
pub const DEEPEST: usize = 128;

/// The term of a value. Takes time in proportion to its size; copies text and bytes.
///
/// ```
/// let term = tremula_table::serde::to_term(&("a", vec![1, 2], None::<()>))?;
/// assert_eq!(term.to_string(), "{<<\"a\">>,[1,2],undefined}");
/// # Ok::<(), tremula_table::serde::Error>(())
/// ```
///
/// # Errors
///
/// A float in it is not finite, the value is nested deeper than [`DEEPEST`], the name of a variant
/// cannot be an atom, or the value's own `Serialize` fails.
pub fn to_term<T: Serialize + ?Sized>(value: &T) -> Result<Term, Error> {
    value.serialize(ser::ToTerm::new())
}

/// The value of a term, from which it may borrow text and bytes.
///
/// ```
/// use tremula_table::Term;
///
/// let term: Term = "{<<\"ada\">>, [1, 2]}".parse()?;
/// let (name, numbers): (&str, Vec<u8>) = tremula_table::serde::from_term(&term)?;
/// assert_eq!((name, numbers), ("ada", vec![1, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The term is not what the type expects, or it is nested deeper than [`DEEPEST`]. The error names
/// the part that is wrong, and where it is.
pub fn from_term<'de, T: Deserialize<'de>>(term: &'de Term) -> Result<T, Error> {
    T::deserialize(de::FromTerm::new(term))
}

/// The row of a value, which is a struct, a tuple, or a variant with fields.
///
/// ```
/// use tremula_table::serde::to_row;
///
/// assert_eq!(to_row(&(7, "ada"))?, (7, "ada"));
/// let error = to_row(&7).unwrap_err();
/// assert_eq!(error.to_string(), "7 is not a row, which is a tuple");
/// # Ok::<(), tremula_table::serde::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`to_term`]; or the value becomes no tuple.
pub fn to_row<T: Serialize + ?Sized>(value: &T) -> Result<Tuple, Error> {
    match to_term(value)? {
        Term::Tuple(row) => Ok(row),
        other => Err(Error::new(format!(
            "{other} is not a row, which is a tuple"
        ))),
    }
}

/// The value of a row. It does not borrow from the row; see [`from_term`].
///
/// ```
/// use tremula_table::{serde::from_row, term::Tuple};
///
/// let row = Tuple::from((7, "ada"));
/// assert_eq!(from_row::<(u8, String)>(&row)?, (7, "ada".to_owned()));
/// # Ok::<(), tremula_table::serde::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`from_term`].
pub fn from_row<T: DeserializeOwned>(row: &Tuple) -> Result<T, Error> {
    from_term(&Term::Tuple(row.clone()))
}
