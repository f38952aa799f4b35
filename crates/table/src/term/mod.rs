//! Erlang's terms.
//!
//! A [`Term`] is a value of Erlang: cheap to clone, compared in Erlang's order, written and read as
//! Erlang's text and in its external format.
//!
//! | file | holds |
//! |---|---|
//! | `atom`, `integer`, `float`, `bitstring`, `opaque`, `fun` | terms without inner terms |
//! | `tuple`, `list`, `map` | terms with inner terms |
//! | `access` | what a term holds, as a Rust value |
//! | `convert/` | terms from Rust values, and back |
//! | `equal` | comparing terms with Rust values |
//! | `order/` | comparing: `==` and `<`, and identity, `=:=` |
//! | `exact`, `hash` | a term under `=:=`; the two hashes |
//! | `head` | the order-preserving 8 bytes beside a key |
//! | `byte_form/` | the bytes that compare as terms do, and are read back |
//! | `text/`, `etf/` | the two written forms |
//! | `limits` | limits for terms from outside |
//! | `inside` | visiting the inner terms of a term |
//! | `extent`, `size` | the size and the depth that a term carries |
//! | `external` | how long the external form of a row is |
//! | `bounds` | the greatest size and depth of terms that are kept |
//! | `reclaim` | dropping |
//! | `traits` | implementations that several types share |
//!
//! # The two equalities
//!
//! Erlang compares in two ways, and so does this module:
//!
//! | in Erlang | here | `1` and `1.0` | used by |
//! |---|---|---|---|
//! | `==`, `<`, … | `==`, `<`, `Ord`, `Hash` of [`Term`] | equal | keys of an `ordered_set` |
//! | `=:=` | [`Term::is_identical`], [`Exact`] | different | all other keys, patterns |
//!
//! A Rust value equals a term if the term that it [becomes](IntoTerm) does, under `==`. The parts
//! of terms that have types of their own ([`Tuple`], [`List`], [`Map`], [`Bitstring`]) are compared
//! as the terms are.
//!
//! # No recursion
//!
//! A term may be nested as deep as memory allows. Comparing, hashing, printing, encoding, reading
//! and dropping keep their pending work in a vector rather than on the stack. (Cloning copies a
//! pointer.) Terms from outside are subject to [`Limits`].

#[macro_use]
pub(crate) mod traits;

mod access;
mod atom;
mod bitstring;
mod bounds;
mod byte_form;
mod convert;
mod equal;
mod etf;
mod exact;
mod extent;
mod external;
mod float;
mod fun;
mod hash;
mod head;
mod inside;
mod integer;
mod limits;
mod list;
mod map;
mod opaque;
mod order;
mod reclaim;
mod size;
mod text;
mod tuple;

pub use atom::{Atom, AtomError, AtomQuota};
pub use bitstring::Bitstring;
pub use bounds::{Bounds, OutOfBounds};
pub use convert::{FromTerm, IntoTerm, UnexpectedTerm};
pub use etf::{DecodeError, DecodeProblem, TooLarge};
pub use exact::Exact;
pub use float::{Float, NotFinite};
pub use fun::{Export, Fun, FunKind, LocalFun};
pub use head::TermHead;
pub(crate) use head::{Prefix, short_integer};
pub use integer::BigInteger;
pub use limits::Limits;
pub use list::{Elements, List};
pub use map::Map;
pub(crate) use map::pairs;
pub use opaque::{Pid, Port, Reference};
pub use text::{ParseError, ParseProblem};
pub use tuple::Tuple;
pub(crate) use tuple::TupleWord;

/// A value of Erlang.
///
/// It takes 16 bytes, so that a cache line holds four, and an `Option` costs nothing. Integers of
/// 64 bits, floats and atoms are stored in it; all else is a pointer to memory that clones share.
/// Eight bytes, as in Erlang, would need tagged pointers, for which Rust has no safe form, and
/// would leave integers 60 bits.
///
/// ```
/// use tremula_table::Term;
///
/// let row: Term = "{42, <<\"a value\">>, \"a string\", [1, 2 | x], #{a => 1.5}}".parse()?;
/// assert_eq!(row.to_string(), "{42,<<\"a value\">>,\"a string\",[1,2|x],#{a => 1.5}}");
/// assert!(row > Term::from(7), "tuples are greater than numbers");
/// assert_eq!(row.as_tuple().unwrap()[1], "a value");
/// assert!(Term::from(1) == Term::try_from(1.0)?);
/// assert!(!Term::from(1).is_identical(&Term::try_from(1.0)?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub enum Term {
    /// An integer of 64 bits.
    Integer(i64),
    /// Any other integer.
    BigInteger(BigInteger),
    /// A finite float.
    Float(Float),
    /// A name.
    Atom(Atom),
    /// A reference of an Erlang node.
    Reference(Reference),
    /// A function of Erlang.
    Fun(Fun),
    /// A port of an Erlang node.
    Port(Port),
    /// A process of an Erlang node.
    Pid(Pid),
    /// A fixed number of terms.
    Tuple(Tuple),
    /// Keys with values.
    Map(Map),
    /// A list, which may be `[]` or improper.
    List(List),
    /// A binary or a bit string.
    Bitstring(Bitstring),
}

const _: () = assert!(size_of::<Term>() == 16 && size_of::<Option<Term>>() == 16);

/// The kinds of terms in Erlang's order, which decides before values do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Kind {
    Number,
    Atom,
    Reference,
    Fun,
    Port,
    Pid,
    Tuple,
    Map,
    Nil,
    List,
    Bitstring,
}

impl Clone for Term {
    #[inline]
    fn clone(&self) -> Self {
        // Most keys are these. Copied here, they stay in registers.
        match self {
            Self::Integer(value) => Self::Integer(*value),
            Self::Float(value) => Self::Float(*value),
            Self::Atom(value) => Self::Atom(*value),
            shared => shared.share(),
        }
    }
}

impl Term {
    /// A copy that shares what the term points to.
    #[inline(never)]
    fn share(&self) -> Self {
        match self {
            Self::Integer(value) => Self::Integer(*value),
            Self::BigInteger(value) => Self::BigInteger(value.clone()),
            Self::Float(value) => Self::Float(*value),
            Self::Atom(value) => Self::Atom(*value),
            Self::Reference(value) => Self::Reference(value.clone()),
            Self::Fun(value) => Self::Fun(value.clone()),
            Self::Port(value) => Self::Port(value.clone()),
            Self::Pid(value) => Self::Pid(value.clone()),
            Self::Tuple(value) => Self::Tuple(value.clone()),
            Self::Map(value) => Self::Map(value.clone()),
            Self::List(value) => Self::List(value.clone()),
            Self::Bitstring(value) => Self::Bitstring(value.clone()),
        }
    }

    /// The empty list, `[]`.
    pub const NIL: Self = Self::List(List::EMPTY);

    /// The atom with this text.
    ///
    /// # Errors
    ///
    /// See [`Atom::new`].
    pub fn atom(text: &str) -> Result<Self, AtomError> {
        Atom::new(text).map(Self::Atom)
    }

    /// A binary.
    #[must_use]
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Bitstring(Bitstring::from_bytes(bytes))
    }

    /// A tuple of these elements.
    pub fn tuple<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = Self, IntoIter: ExactSizeIterator>,
    {
        Self::Tuple(Tuple::new(elements))
    }

    /// A proper list of these elements.
    pub fn list<I>(elements: I) -> Self
    where
        I: IntoIterator<Item = Self, IntoIter: ExactSizeIterator>,
    {
        Self::List(List::new(elements))
    }

    /// A string in Erlang's sense: the list of its code points.
    #[must_use]
    pub fn string(text: &str) -> Self {
        let points: Vec<_> = text.chars().map(|c| Self::from(u32::from(c))).collect();
        Self::list(points)
    }

    /// A map of these entries; of entries with the same key, the last counts.
    #[must_use]
    pub fn map(entries: Vec<(Self, Self)>) -> Self {
        Self::Map(Map::new(entries))
    }

    /// Whether it is `[]`.
    #[must_use]
    pub const fn is_nil(&self) -> bool {
        matches!(self, Self::List(list) if list.is_empty())
    }

    /// Whether it is an integer or a float.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Integer(_) | Self::BigInteger(_) | Self::Float(_)
        )
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Integer(_) | Self::BigInteger(_) | Self::Float(_) => Kind::Number,
            Self::Atom(_) => Kind::Atom,
            Self::Reference(_) => Kind::Reference,
            Self::Fun(_) => Kind::Fun,
            Self::Port(_) => Kind::Port,
            Self::Pid(_) => Kind::Pid,
            Self::Tuple(_) => Kind::Tuple,
            Self::Map(_) => Kind::Map,
            Self::List(list) if list.is_empty() => Kind::Nil,
            Self::List(_) => Kind::List,
            Self::Bitstring(_) => Kind::Bitstring,
        }
    }
}

/// `[]`, which needs no allocation.
impl Default for Term {
    fn default() -> Self {
        Self::NIL
    }
}

variants!(
    Atom, Bitstring, Float, List, Map, Pid, Port, Reference, Tuple
);
debug_as_text!(Atom, Exact, Fun, LocalFun, Pid, Port, Reference, Term);
text_as_term!(Bitstring, List, Map, Tuple);
