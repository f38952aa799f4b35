//! Terms into values.

use super::ser::too_deep;
use super::terms::TERM;
use super::{DEEPEST, Error};
use crate::term::{Atom, BigInteger, List, Term};
use serde_core::de::value::{BorrowedStrDeserializer, BytesDeserializer, SeqDeserializer};
use serde_core::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_core::forward_to_deserialize_any;
use std::slice;

/// Makes the value of a term.
#[derive(Clone, Copy)]
pub(super) struct FromTerm<'de> {
    term: &'de Term,
    /// How many levels the term may still have.
    left: usize,
}

impl<'de> FromTerm<'de> {
    pub(super) const fn new(term: &'de Term) -> Self {
        let left = DEEPEST;
        Self { term, left }
    }

    fn wrong(self, expected: &str) -> Error {
        Error::new(format!("{} is not {expected}", self.term))
    }

    /// How many levels the inner terms may have.
    fn left_inside(self) -> Result<usize, Error> {
        self.left.checked_sub(1).ok_or_else(too_deep)
    }

    /// Lets the visitor take these terms, which are elements of this one from a place on, and which
    /// must not be more than it takes.
    fn visit_elements<V: Visitor<'de>>(
        self,
        elements: impl Iterator<Item = &'de Term>,
        place: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut elements = Elements {
            elements,
            place,
            left: self.left_inside()?,
        };
        let value = visitor.visit_seq(&mut elements)?;
        match elements.elements.next() {
            None => Ok(value),
            Some(more) => {
                let place = elements.place + 1;
                let text = format!("element {place}, {more}, is one too many in {}", self.term);
                Err(Error::new(text))
            }
        }
    }

    fn visit_tuple<V: Visitor<'de>>(
        self,
        elements: &'de [Term],
        place: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.visit_elements(elements.iter(), place, visitor)
    }

    fn visit_list<V: Visitor<'de>>(self, list: &'de List, visitor: V) -> Result<V::Value, Error> {
        if !list.is_proper() {
            return Err(self.wrong("a proper list"));
        }
        self.visit_elements(list.iter(), 0, visitor)
    }

    fn visit_map<V: Visitor<'de>>(
        self,
        entries: &'de [(Term, Term)],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_map(Entries {
            entries: entries.iter(),
            value: None,
            left: self.left_inside()?,
        })
    }

    fn visit_big<V: Visitor<'de>>(self, value: &BigInteger, visitor: V) -> Result<V::Value, Error> {
        let value = value.value();
        if let Ok(value) = value.try_into() {
            return visitor.visit_u64(value);
        }
        if let Ok(value) = value.try_into() {
            return visitor.visit_i128(value);
        }
        match value.try_into() {
            Ok(value) => visitor.visit_u128(value),
            Err(_) => Err(self.wrong("an integer of 128 bits")),
        }
    }

    /// The text of an atom or a binary.
    fn name(self) -> Option<&'de str> {
        match self.term.as_atom() {
            Some(atom) => Some(atom.text()),
            None => self.term.as_str(),
        }
    }
}

impl<'de> Deserializer<'de> for FromTerm<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term {
            Term::Integer(value) => visitor.visit_i64(*value),
            Term::BigInteger(value) => self.visit_big(value, visitor),
            Term::Float(value) => visitor.visit_f64(value.value()),
            Term::Atom(atom) if *atom == Atom::UNDEFINED => visitor.visit_unit(),
            Term::Atom(atom) => match self.term.as_bool() {
                Some(value) => visitor.visit_bool(value),
                None => visitor.visit_borrowed_str(atom.text()),
            },
            Term::Tuple(tuple) => self.visit_tuple(tuple, 0, visitor),
            Term::List(list) => self.visit_list(list, visitor),
            Term::Map(map) => self.visit_map(map.entries(), visitor),
            Term::Bitstring(_) => match (self.term.as_str(), self.term.as_bytes()) {
                (Some(text), _) => visitor.visit_borrowed_str(text),
                (None, Some(bytes)) => visitor.visit_borrowed_bytes(bytes),
                (None, None) => Err(self.wrong("a binary")),
            },
            Term::Reference(_) | Term::Fun(_) | Term::Port(_) | Term::Pid(_) => {
                Err(self.wrong("a value of Rust, unless of the type Term"))
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term.as_str() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => Err(self.wrong("a binary in UTF-8")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term.as_bytes() {
            Some(bytes) => visitor.visit_borrowed_bytes(bytes),
            None => self.deserialize_seq(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term.as_bool() {
            Some(value) => visitor.visit_bool(value),
            None => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term.as_atom() {
            Some(atom) if atom == Atom::UNDEFINED => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term.as_tuple() {
            Some(tuple) if tuple.is_empty() => visitor.visit_unit(),
            _ => Err(self.wrong("an empty tuple")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == TERM {
            let bytes = self.term.to_etf();
            let bytes = bytes.map_err(|error| Error::new(error.to_string()))?;
            return visitor.visit_newtype_struct(BytesDeserializer::new(&bytes));
        }
        let left = self.left_inside()?;
        visitor.visit_newtype_struct(Self { left, ..self })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.term, self.term.as_bytes()) {
            (Term::List(list), _) => self.visit_list(list, visitor),
            (_, Some(bytes)) => {
                SeqDeserializer::new(bytes.iter().copied()).deserialize_any(visitor)
            }
            _ => Err(self.wrong("a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        match self.term {
            Term::Tuple(tuple) => self.visit_tuple(tuple, 0, visitor),
            Term::List(list) => self.visit_list(list, visitor),
            _ => Err(self.wrong("a tuple")),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.term {
            Term::Map(map) => self.visit_map(map.entries(), visitor),
            _ => Err(self.wrong("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.term {
            Term::Tuple(tuple) => self.visit_tuple(tuple, 0, visitor),
            Term::Map(map) => self.visit_map(map.entries(), visitor),
            _ => Err(self.wrong(&format!("a tuple, which the struct {name} is"))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (tag, fields) = match self.term {
            Term::Tuple(tuple) => match tuple.split_first() {
                Some((first, fields)) => (first.as_atom(), fields),
                None => (None, &[][..]),
            },
            other => (other.as_atom(), &[][..]),
        };
        match tag {
            Some(tag) if variants.contains(&tag.text()) => visitor.visit_enum(Variant {
                term: self,
                tag,
                fields,
            }),
            _ => Err(self.wrong(&format!("a variant of the enum {name}"))),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.name() {
            Some(name) => visitor.visit_borrowed_str(name),
            None => Err(self.wrong("the name of a field, an atom or a binary")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a tuple or a list.
struct Elements<I> {
    elements: I,
    /// The place of the next element.
    place: usize,
    left: usize,
}

impl<'de, I: Iterator<Item = &'de Term>> SeqAccess<'de> for Elements<I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(term) = self.elements.next() else {
            return Ok(None);
        };
        let (place, left) = (self.place, self.left);
        self.place += 1;
        let value = seed.deserialize(FromTerm { term, left });
        value.map(Some).map_err(|error| error.within(place))
    }
}

/// The entries of a map.
struct Entries<'de> {
    entries: slice::Iter<'de, (Term, Term)>,
    value: Option<&'de Term>,
    left: usize,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((term, value)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let left = self.left;
        seed.deserialize(FromTerm { term, left }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(term) = self.value.take() else {
            return Err(Error::new("a value is asked for before its key"));
        };
        let left = self.left;
        seed.deserialize(FromTerm { term, left })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A variant of an enum.
struct Variant<'de> {
    /// The whole variant.
    term: FromTerm<'de>,
    tag: Atom,
    fields: &'de [Term],
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let name = BorrowedStrDeserializer::<Error>::new(self.tag.text());
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        // The atom by itself; a tuple of one element is that of a variant with no fields.
        if self.fields.is_empty() && self.term.term.as_atom().is_some() {
            return Ok(());
        }
        let expected = format!("the atom {}, a variant without fields", self.tag);
        Err(self.term.wrong(&expected))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let [term] = self.fields else {
            let expected = format!("{{{},Value}}, a variant with one field", self.tag);
            return Err(self.term.wrong(&expected));
        };
        let left = self.term.left_inside()?;
        let value = seed.deserialize(FromTerm { term, left });
        value.map_err(|error| error.within(1))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.term.visit_tuple(self.fields, 1, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.term.visit_tuple(self.fields, 1, visitor)
    }
}
