//! What is wrong with bytes that should be a term.

use super::super::AtomError;
use std::fmt;
use thiserror::Error;

/// Bytes that are no term in the external format, or no byte form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeError {
    /// The byte at which the wrong part begins.
    pub offset: usize,
    /// Whether the offset is counted in the bytes that a compressed term expanded to.
    pub in_expanded: bool,
    /// What is wrong.
    pub problem: DecodeProblem,
}

/// What is wrong with an external term, or a byte form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeProblem {
    /// The bytes end within a term, or promise more than there are.
    #[error("the bytes end here; at least {missing} more are needed")]
    Truncated {
        /// At least how many bytes are missing.
        missing: u64,
    },
    /// The first byte is not 131.
    #[error("version {0}; the external term format begins with 131")]
    Version(u8),
    /// A tag of no term.
    #[error("{0} is no tag of a term")]
    UnknownTag(u8),
    /// A tag of a wrong kind of term.
    #[error("tag {found} in the place of {wanted}")]
    WrongTag {
        /// The tag.
        found: u8,
        /// The kind that is required.
        wanted: &'static str,
    },
    /// The atom cannot be made.
    #[error("{0}")]
    Atom(AtomError),
    /// The atom does not exist, and the limits allow no new ones.
    #[error("the atom '{0}' is not known, and new ones are not allowed")]
    NewAtom(String),
    /// An atom's text is not UTF-8.
    #[error("an atom whose text is not UTF-8")]
    NotUtf8,
    /// A float that is not finite, or whose text is no number.
    #[error("a float that is no finite number")]
    Float,
    /// A number of bits in the last byte that is impossible.
    #[error("a bit string of {bytes} bytes with {bits} bits in the last")]
    BitCount {
        /// How many bytes.
        bytes: u32,
        /// How many bits in the last.
        bits: u8,
    },
    /// A map with a duplicate key; in a byte form, or with keys that do not ascend.
    #[error("a map with a key that is there twice")]
    DuplicateKey,
    /// A reference with too many words.
    #[error("a reference of {0} words; it may have 5")]
    ReferenceWords(u16),
    /// A function with a wrong size.
    #[error("a function whose size is not the one that it says")]
    FunSize,
    /// Terms within terms beyond the limit.
    #[error("terms are nested deeper than {0}")]
    TooDeep(usize),
    /// An integer beyond the limit.
    #[error("an integer of {bits} bits; {limit} are allowed")]
    IntegerTooLong {
        /// Its length in bits, or an upper bound of it.
        bits: u64,
        /// The allowed length.
        limit: u64,
    },
    /// A compressed term that is too large.
    #[error("a compressed term of {length} bytes; {limit} are allowed")]
    ExpandsTooFar {
        /// The length that it declares.
        length: usize,
        /// The allowed length.
        limit: usize,
    },
    /// Compressed bytes that are damaged.
    #[error("compressed bytes that are damaged")]
    Damaged,
    /// A compressed term with a wrong length.
    #[error("a compressed term that says {declared} bytes and has another number of them")]
    ExpandedLength {
        /// The length that it declares.
        declared: usize,
    },
    /// A number, a size or a string of a byte form that is not in its only form.
    #[error("not in the only form that it has")]
    NotCanonical,
    /// Bytes after the term.
    #[error("{0} bytes more than the term has")]
    Trailing(usize),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_expanded {
            " of the expanded term"
        } else {
            ""
        };
        write!(formatter, "byte {}{place}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for DecodeError {}

/// A term with a part whose length does not fit into the 32 bits of the external format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a {what} of {length}, more than the external term format can tell")]
#[non_exhaustive]
pub struct TooLarge {
    /// What it is.
    pub what: &'static str,
    /// Its length.
    pub length: usize,
}
