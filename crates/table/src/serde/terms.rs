//! Terms themselves as parts of values.

use crate::term::{Atom, Bitstring, Float, Limits, List, Map, Pid, Port, Reference, Term, Tuple};
use serde_core::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde_core::ser::{Error as _, Serialize, Serializer};
use std::fmt;

/// The name of the struct that a term looks like. This crate's own serializer and deserializer
/// recognise it.
pub(super) const TERM: &str = "$tremula_table::Term";

/// Erlang's text where people read it, otherwise the external term format.
impl Serialize for Term {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(TERM, &Written(self))
    }
}

/// What is written of a term.
struct Written<'a>(&'a Term);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.collect_str(self.0);
        }
        serializer.serialize_bytes(&self.0.to_etf().map_err(S::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Term {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TERM, Reads)
    }
}

/// Reads what is written of a term.
struct Reads;

impl<'de> Visitor<'de> for Reads {
    type Value = Term;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a term, as Erlang's text or in the external term format")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, written: D) -> Result<Term, D::Error> {
        if written.is_human_readable() {
            written.deserialize_str(self)
        } else {
            written.deserialize_bytes(self)
        }
    }

    fn visit_str<E: serde_core::de::Error>(self, text: &str) -> Result<Term, E> {
        Term::parse(text, &Limits::default())
            .map_err(|error| E::custom(format_args!("the term {text:?}: {error}")))
    }

    fn visit_bytes<E: serde_core::de::Error>(self, bytes: &[u8]) -> Result<Term, E> {
        Term::from_etf(bytes, &Limits::default()).map_err(E::custom)
    }
}

/// Writes and reads the parts of terms that have types of their own as the terms.
macro_rules! as_term {
    ($($type:ident),*) => {
        $(
            /// As the [`Term`].
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    Term::from(self).serialize(serializer)
                }
            }

            /// As the [`Term`].
            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    Self::try_from(Term::deserialize(deserializer)?).map_err(D::Error::custom)
                }
            }
        )*
    };
}

as_term!(
    Atom, Bitstring, Float, List, Map, Pid, Port, Reference, Tuple
);
