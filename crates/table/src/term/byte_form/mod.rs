//! The byte form: bytes that compare as their terms do, and from which a term is made again.
//!
//! Each term begins with a tag; tags are in the order of the kinds. What follows ends itself, so
//! that a form may stand within another one:
//!
//! ```text
//! number      tag of its sign, exponent, binary digits behind the leading one, 7 to a byte;
//!             all inverted if it is negative
//! atom        text, end
//! tuple       size, elements
//! map         size, keys, values
//! []          nothing
//! list        first element, then the rest as a term
//! bit string  bytes, end, 8 less the unused bits of the last byte
//! the others  the parts that the order compares, in its order
//! ```
//!
//! An integer and a float that are equal have the same digits, and so the same form; in the keys of
//! maps, which keep them apart, floats have tags of their own. The lowest bit of a byte of digits
//! says whether another one follows, and the last one is not zero, so a number has one form.
//!
//! In texts and bytes a zero is followed by 255, and the end is a zero and a one: so a string comes
//! before the longer ones that begin with it.
//!
//! - `encode`: writing; `decode`: reading; `number`: numbers.

mod decode;
mod encode;
mod number;
#[cfg(test)]
mod tests;

use super::{DecodeError, DecodeProblem, Limits, Term};
use std::cmp::Ordering;

/// The first bytes of forms, in the order of the kinds.
mod tag {
    pub(super) const NEGATIVE: u8 = 0x10;
    pub(super) const ZERO: u8 = 0x11;
    pub(super) const POSITIVE: u8 = 0x12;
    /// Floats where they are behind all integers.
    pub(super) const NEGATIVE_FLOAT: u8 = 0x14;
    pub(super) const ZERO_FLOAT: u8 = 0x15;
    pub(super) const POSITIVE_FLOAT: u8 = 0x16;
    pub(super) const ATOM: u8 = 0x20;
    pub(super) const REFERENCE: u8 = 0x24;
    pub(super) const LOCAL_FUN: u8 = 0x28;
    pub(super) const EXPORT: u8 = 0x29;
    pub(super) const PORT: u8 = 0x2c;
    pub(super) const PID: u8 = 0x30;
    pub(super) const TUPLE: u8 = 0x34;
    pub(super) const MAP: u8 = 0x38;
    pub(super) const NIL: u8 = 0x3c;
    pub(super) const LIST: u8 = 0x40;
    pub(super) const BITSTRING: u8 = 0x44;
}

/// Up to this size a size is one byte; above, this and the number of bytes that follow.
const SHORT_SIZE: u8 = 0xf0;

/// In strings: what follows the zero that ends them, and a zero of their own.
const END: u8 = 1;
const OWN_ZERO: u8 = 0xff;

impl Term {
    /// The byte form: bytes that compare as terms do in the term order. Terms that are `==` have
    /// the same form, and others have different ones; no form is the beginning of another.
    ///
    /// O(size of the term), without recursion.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let ascending = ["-1.5", "1", "1.5", "9223372036854775808", "a", "{b,2}", "{b,10}", "<<>>"];
    /// let forms = ascending.map(|text| text.parse::<Term>().unwrap().to_byte_form());
    /// assert!(forms.is_sorted());
    /// assert_eq!(Term::from(2).to_byte_form(), Term::try_from(2.0)?.to_byte_form());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_byte_form(&self) -> Vec<u8> {
        self.to_byte_form_within(usize::MAX)
    }

    /// The first `most` bytes of the [byte form](Self::to_byte_form), or all of it. A greater term
    /// never has a smaller beginning. Takes time in proportion to `most`, and to the digits of one
    /// integer.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let long = Term::binary(&[b'x'; 1000]);
    /// assert_eq!(long.to_byte_form_within(100), long.to_byte_form()[..100]);
    /// ```
    #[must_use]
    pub fn to_byte_form_within(&self, most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        encode::encode(self, most, &mut out);
        out.truncate(most);
        out
    }

    /// The term with this byte form.
    ///
    /// It is `==` to the term that the form was made of, not always identical: outside the keys of
    /// maps, `1.0` comes back as `1`, since both have one form. Of a local function only what the
    /// order compares comes back, and a reference without its leading zeros.
    ///
    /// Takes time and memory in proportion to the bytes, whatever sizes they declare.
    ///
    /// ```
    /// use tremula_table::{Term, term::Limits};
    ///
    /// let key: Term = "{user, <<\"ada\">>, [1, 2.5 | x], #{1.0 => y}}".parse()?;
    /// let form = key.to_byte_form();
    /// assert_eq!(Term::from_byte_form(&form, &Limits::default())?, key);
    /// let error = Term::from_byte_form(&form[..9], &Limits::default()).unwrap_err();
    /// assert_eq!(error.to_string(), "byte 9: the bytes end here; at least 1 more are needed");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The bytes are no byte form, or exceed a limit.
    pub fn from_byte_form(bytes: &[u8], limits: &Limits) -> Result<Self, DecodeError> {
        decode::decode(bytes, limits)
    }

    /// What can be seen of a term in the beginning of its byte form, for people: what is missing is
    /// the atom `'...'`, once. So is an atom that does not exist yet: none is made.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let key: Term = "{user, 17, \"a long name\"}".parse()?;
    /// let beginning = key.to_byte_form_within(20);
    /// let seen = Term::glimpse_byte_form(&beginning)?;
    /// assert_eq!(seen.to_string(), "{user,17,[97,32|'...']}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The bytes are not the beginning of a byte form, or have an integer of more than 2,048 bits.
    pub fn glimpse_byte_form(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode::glimpse(bytes)
    }

    /// Compares the [byte form](Self::to_byte_form) with bytes, without making more of it than
    /// decides. O(bytes).
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use tremula_table::Term;
    ///
    /// let key: Term = "{user, 17}".parse()?;
    /// assert_eq!(key.cmp_byte_form(&key.to_byte_form()), Ordering::Equal);
    /// assert_eq!(key.cmp_byte_form(&key.to_byte_form()[..3]), Ordering::Greater);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cmp_byte_form(&self, bytes: &[u8]) -> Ordering {
        // A byte more shows that the form goes on.
        let most = bytes.len().saturating_add(1);
        self.to_byte_form_within(most).as_slice().cmp(bytes)
    }
}

fn error<T>(offset: usize, problem: DecodeProblem) -> Result<T, DecodeError> {
    Err(DecodeError {
        offset,
        in_expanded: false,
        problem,
    })
}
