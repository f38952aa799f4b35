//! What is wrong with bytes that should be a term.

use super::super::AtomError;
use std::fmt;
use thiserror::Error;

/// Bytes that are no term in the external format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The byte at which the part begins that is wrong.
    pub offset: usize,
    /// Whether the offset is counted in the bytes that a compressed term expanded to.
    pub in_expanded: bool,
    /// What is wrong.
    pub problem: DecodeProblem,
}

/// What is wrong with an external term.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeProblem {
    /// The bytes end within a term, or say that more will come than there is.
    #[error("the bytes end here; at least {missing} more are needed")]
    Truncated {
        /// How many bytes are missing, at least.
        missing: u64,
    },
    /// The first byte is not 131.
    #[error("version {0}; the external term format begins with 131")]
    Version(u8),
    /// A tag that stands for no term.
    #[error("{0} is no tag of a term")]
    UnknownTag(u8),
    /// A tag of another term where the format has this one.
    #[error("tag {found} in the place of {wanted}")]
    WrongTag {
        /// The tag.
        found: u8,
        /// What must be here.
        wanted: &'static str,
    },
    /// There is no such atom.
    #[error("{0}")]
    Atom(AtomError),
    /// The atom is not there yet, and the limits allow no new ones.
    #[error("the atom '{0}' is not known, and new ones are not allowed")]
    NewAtom(String),
    /// An atom's text is not UTF-8.
    #[error("an atom whose text is not UTF-8")]
    NotUtf8,
    /// A float that is not finite, or not a number's text.
    #[error("a float that is no finite number")]
    Float,
    /// Bits in the last byte of a bit string that no byte can have.
    #[error("a bit string of {bytes} bytes with {bits} bits in the last")]
    BitCount {
        /// How many bytes.
        bytes: u32,
        /// How many bits in the last.
        bits: u8,
    },
    /// A key that is twice in one map.
    #[error("a map with a key that is there twice")]
    DuplicateKey,
    /// A reference with more words than any has.
    #[error("a reference of {0} words; it may have 5")]
    ReferenceWords(u16),
    /// A function whose size is not what it says.
    #[error("a function whose size is not the one that it says")]
    FunSize,
    /// Terms within terms beyond the limit.
    #[error("terms are nested deeper than {0}")]
    TooDeep(usize),
    /// An integer beyond the limit.
    #[error("an integer of {bits} bits; {limit} are allowed")]
    IntegerTooLong {
        /// How many bits it has, or could have.
        bits: u64,
        /// How many it may have.
        limit: u64,
    },
    /// A compressed term that is too large.
    #[error("a compressed term of {length} bytes; {limit} are allowed")]
    ExpandsTooFar {
        /// The length that it says.
        length: usize,
        /// What it may be.
        limit: usize,
    },
    /// Compressed bytes that are damaged.
    #[error("compressed bytes that are damaged")]
    Damaged,
    /// A compressed term of another length than it says.
    #[error("a compressed term that says {declared} bytes and has another number of them")]
    ExpandedLength {
        /// What it says.
        declared: usize,
    },
    /// Bytes behind the term.
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

/// A term with a part whose length the external format cannot say: its lengths have 32 bits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a {what} of {length}, more than the external term format can tell")]
pub struct TooLarge {
    /// What it is.
    pub what: &'static str,
    /// Its length.
    pub length: usize,
}
