//! Values into terms.

use super::terms::TERM;
use super::{DEEPEST, Error};
use crate::term::{Atom, IntoTerm, Limits, Term};
use serde_core::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The most elements that memory is reserved for before they come.
const MOST_RESERVED: usize = 1024;

/// Makes the term of a value.
#[derive(Clone, Copy)]
pub(super) struct ToTerm {
    /// How many levels the value may still have.
    left: usize,
}

impl ToTerm {
    pub(super) const fn new() -> Self {
        Self { left: DEEPEST }
    }

    /// For the values in this one.
    fn inner(self) -> Result<Self, Error> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left }),
            None => Err(too_deep()),
        }
    }

    fn elements(self, tag: Option<&str>, length: usize) -> Result<Elements, Error> {
        let inner = self.inner()?;
        let mut elements = Vec::with_capacity(length.saturating_add(1).min(MOST_RESERVED));
        if let Some(tag) = tag {
            elements.push(atom(tag)?);
        }
        Ok(Elements { inner, elements })
    }
}

pub(super) fn too_deep() -> Error {
    Error::new(format!("the value is nested deeper than {DEEPEST}"))
}

fn atom(text: &str) -> Result<Term, Error> {
    Term::atom(text).map_err(|error| Error::new(format!("the variant {text:?}: {error}")))
}

macro_rules! leaves {
    ($($method:ident: $type:ty),*) => {
        $(
            #[inline]
            fn $method(self, value: $type) -> Result<Term, Error> {
                value.into_term().map_err(|error| Error::new(error.to_string()))
            }
        )*
    };
}

impl Serializer for ToTerm {
    type Ok = Term;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Entries;
    type SerializeStruct = Elements;
    type SerializeStructVariant = Elements;

    leaves!(
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_str: &str,
        serialize_bytes: &[u8]
    );

    fn serialize_char(self, value: char) -> Result<Term, Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_none(self) -> Result<Term, Error> {
        Ok(Atom::UNDEFINED.into())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Term, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Term, Error> {
        Ok(().into())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Term, Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Term, Error> {
        atom(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Term, Error> {
        // One level, so that a struct in itself without end is noticed.
        let term = value.serialize(self.inner()?)?;
        match term.as_bytes() {
            Some(bytes) if name == TERM => Term::from_etf(bytes, &Limits::NONE)
                .map_err(|error| Error::new(format!("a term: {error}"))),
            _ => Ok(term),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Term, Error> {
        let mut elements = self.elements(Some(variant), 1)?;
        elements.add(value)?;
        elements.tuple()
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, Error> {
        self.elements(None, length.unwrap_or(0))
    }

    fn serialize_tuple(self, length: usize) -> Result<Elements, Error> {
        self.elements(None, length)
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Elements, Error> {
        self.elements(None, length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements, Error> {
        self.elements(Some(variant), length)
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Entries, Error> {
        Ok(Entries {
            inner: self.inner()?,
            key: None,
            entries: Vec::with_capacity(length.unwrap_or(0).min(MOST_RESERVED)),
        })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Elements, Error> {
        self.elements(None, length)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Elements, Error> {
        self.elements(Some(variant), length)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a list or a tuple.
pub(super) struct Elements {
    inner: ToTerm,
    elements: Vec<Term>,
}

impl Elements {
    fn add<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let place = self.elements.len();
        let element = value.serialize(self.inner);
        self.elements
            .push(element.map_err(|error| error.within(place))?);
        Ok(())
    }

    fn tuple(self) -> Result<Term, Error> {
        Ok(Term::tuple(self.elements))
    }
}

impl SerializeSeq for Elements {
    type Ok = Term;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }

    fn end(self) -> Result<Term, Error> {
        Ok(Term::list(self.elements))
    }
}

impl SerializeTuple for Elements {
    type Ok = Term;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(value)
    }

    fn end(self) -> Result<Term, Error> {
        self.tuple()
    }
}

/// Implements the traits of fields without names.
macro_rules! unnamed_fields {
    ($($trait:ident),*) => {
        $(impl $trait for Elements {
            type Ok = Term;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(value)
            }

            fn end(self) -> Result<Term, Error> {
                self.tuple()
            }
        })*
    };
}

unnamed_fields!(SerializeTupleStruct, SerializeTupleVariant);

/// Implements the traits of fields with names.
macro_rules! named_fields {
    ($($trait:ident),*) => {
        $(impl $trait for Elements {
            type Ok = Term;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.add(value)
            }

            /// Each field keeps its place.
            fn skip_field(&mut self, _: &'static str) -> Result<(), Error> {
                self.elements.push(Atom::UNDEFINED.into());
                Ok(())
            }

            fn end(self) -> Result<Term, Error> {
                self.tuple()
            }
        })*
    };
}

named_fields!(SerializeStruct, SerializeStructVariant);

/// The entries of a map.
pub(super) struct Entries {
    inner: ToTerm,
    key: Option<Term>,
    entries: Vec<(Term, Term)>,
}

impl SerializeMap for Entries {
    type Ok = Term;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(key.serialize(self.inner)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let Some(key) = self.key.take() else {
            return Err(Error::new("a value without a key"));
        };
        self.entries.push((key, value.serialize(self.inner)?));
        Ok(())
    }

    fn end(self) -> Result<Term, Error> {
        Ok(Term::map(self.entries))
    }
}
