//! Atoms: names, each kept once for the life of the process.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use thiserror::Error;
use tremula_sync::atomic::{AtomicU32, Ordering::Relaxed};
use tremula_sync::{Arc, LazyLock, RwLock};

/// A name. Equal atoms are the same pointer, so cloning and comparing for equality are almost free.
/// Atoms are ordered by the code points of their text, as in Erlang.
///
/// The texts are kept in one table for the whole process and never freed, as in Erlang. This table
/// is the only global state of the crate. An atom that counted its references would turn every
/// clone of `true` or `undefined` into a write to a cache line that all threads share. The table
/// therefore has a limit, and input from outside can be refused new atoms
/// ([`Limits::new_atoms`](super::Limits::new_atoms)).
///
/// ```
/// use tremula_table::term::Atom;
///
/// let colour = Atom::new("colour")?;
/// assert_eq!(colour, Atom::new("colour")?);
/// assert!(colour < Atom::new("shape")?);
/// assert_eq!(colour.text(), "colour");
/// # Ok::<(), tremula_table::term::AtomError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Atom(&'static Entry);

/// An atom's entry in the table.
struct Entry {
    /// The text's first eight bytes, which decide most comparisons.
    head: u64,
    /// A unique number, used for hashing.
    id: u32,
    text: &'static str,
}

/// Why an atom cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AtomError {
    /// The text is longer than an atom may be.
    #[error("an atom of {0} characters; it may have {max}", max = Atom::MAX_CHARACTERS)]
    TooLong(usize),
    /// There are as many atoms as the process, or an [`AtomQuota`], allows in all.
    #[error(
        "there are {0} atoms already, the limit for all; use binaries for names without number"
    )]
    TooMany(u32),
    /// As many have been made within one [`AtomQuota`] as it allows.
    #[error(
        "{0} atoms have been made here already, the limit for one; use binaries for names without number"
    )]
    QuotaSpent(u32),
}

/// Shards of the table, so that threads that make different atoms seldom contend.
const SHARDS: usize = 16;

/// How many atoms a thread remembers, by their texts, so that reading terms finds common atoms
/// without the table's locks.
const REMEMBERED: usize = 256;

type Shard = RwLock<HashMap<&'static str, &'static Entry>>;

struct Table {
    shards: [Shard; SHARDS],
    /// The number of atoms.
    count: RwLock<u32>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::with_known);

tremula_sync::thread_local! {
    static RECENT: [Cell<Option<&'static Entry>>; REMEMBERED] =
        const { [const { Cell::new(None) }; REMEMBERED] };
}

impl Atom {
    /// The most characters (code points) of an atom, as in Erlang.
    pub const MAX_CHARACTERS: usize = 255;

    /// The most atoms in one process: Erlang's default.
    pub const MAX_ATOMS: u32 = 1 << 20;

    /// The atom with this text. Takes constant time and, unless the atom is new, mostly no lock.
    ///
    /// # Errors
    ///
    /// The text is too long, or the atom would be new and the table is full.
    pub fn new(text: &str) -> Result<Self, AtomError> {
        Self::new_within(text, &|| Ok(Self::MAX_ATOMS)).map(|(atom, _)| atom)
    }

    /// The atom with this text, and whether it is new. If it is, `most` says how many atoms there
    /// may be in all.
    fn new_within(
        text: &str,
        most: &dyn Fn() -> Result<u32, AtomError>,
    ) -> Result<(Self, bool), AtomError> {
        if let Some(known) = Self::existing(text) {
            return Ok((known, false));
        }
        // A character takes at least one byte, so most texts need no counting.
        if text.len() > Self::MAX_CHARACTERS {
            let characters = text.chars().count();
            if characters > Self::MAX_CHARACTERS {
                return Err(AtomError::TooLong(characters));
            }
        }
        TABLE.add(text, most()?)
    }

    /// The atom with this text, if it is in the table.
    #[must_use]
    pub fn existing(text: &str) -> Option<Self> {
        let hash = quick_hash(text);
        RECENT.with(|recent| {
            let place = &recent[hash as usize % REMEMBERED];
            if let Some(entry) = place.get().filter(|entry| entry.text == text) {
                return Some(Self(entry));
            }
            let entry = *TABLE.shard(hash).read().get(text)?;
            place.set(Some(entry));
            Some(Self(entry))
        })
    }

    /// `true` or `false`.
    #[must_use]
    pub const fn boolean(value: bool) -> Self {
        if value { Self::TRUE } else { Self::FALSE }
    }

    /// The text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.0.text
    }

    /// How many atoms this process has; the limit is [`MAX_ATOMS`](Self::MAX_ATOMS).
    #[must_use]
    pub fn count() -> u32 {
        *TABLE.count.read()
    }

    /// The text's first eight bytes as a big-endian number, padded with zeros.
    pub(crate) const fn head(self) -> u64 {
        self.0.head
    }
}

/// Atoms that exist from the start, as constants.
macro_rules! known {
    ($($name:ident = $text:literal $(: $meaning:literal)?;)*) => {
        impl Atom {
            $(
                #[doc = concat!("`", $text, "`", $($meaning)?)]
                pub const $name: Self = Self(&known::$name);
            )*
        }

        /// Each has one address, so that equal atoms are the same pointer.
        mod known {
            use super::{Entry, head};

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Id { $($name),* }

            $(pub(super) static $name: Entry = Entry {
                head: head($text),
                id: Id::$name as u32,
                text: $text,
            };)*

            pub(super) const ALL: &[&Entry] = &[$(&$name),*];
        }
    };
}

known! {
    TRUE = "true";
    FALSE = "false";
    UNDEFINED = "undefined";
    OK = "ok";
    ERROR = "error";
    NONE = "none";
    UNDERSCORE = "_": ", which matches anything in a pattern.";
    END_OF_TABLE = "$end_of_table";
    WHOLE_ROW = "$_": ", which is the whole row in a match specification.";
    ALL_VARIABLES = "$$": ", which is the list of all variables' values in a match specification.";
    CONST = "const": ", which marks a constant in a match specification.";
    EXIT = "EXIT":
        ", the value of a function without a value in the body of a match specification.";
    NO_NODE = "nonode@nohost": ", the node name of an Erlang that is not distributed.";
    SET = "set";
    ORDERED_SET = "ordered_set";
    BAG = "bag";
    DUPLICATE_BAG = "duplicate_bag";
    PUBLIC = "public";
    PROTECTED = "protected";
    PRIVATE = "private";
    AUTO = "auto";
    ID = "id";
    DECENTRALIZED_COUNTERS = "decentralized_counters";
    READ_CONCURRENCY = "read_concurrency";
    WRITE_CONCURRENCY = "write_concurrency";
    COMPRESSED = "compressed";
    MEMORY = "memory";
    OWNER = "owner";
    HEIR = "heir";
    NAME = "name";
    SIZE = "size";
    NODE = "node";
    NAMED_TABLE = "named_table";
    TYPE = "type";
    KEYPOS = "keypos";
    PROTECTION = "protection";
    BINARY = "binary";
    FIXED = "fixed";
    SAFE_FIXED = "safe_fixed";
    SAFE_FIXED_MONOTONIC_TIME = "safe_fixed_monotonic_time";
    STATS = "stats";
    ENGINE = "engine";
    VERSION = "version";
    EXTENDED_INFO = "extended_info";
    OBJECT_COUNT = "object_count";
    MD5SUM = "md5sum";
    END = "end";
}

/// How many new atoms one source of terms, such as a client, may still make; see
/// [`Limits::atom_quota`](super::Limits::atom_quota). Atoms that exist already cost nothing. Clones
/// are the same quota.
///
/// ```
/// use tremula_table::{Term, term::{Atom, AtomQuota, Limits}};
///
/// let quota = AtomQuota::new(2, Atom::MAX_ATOMS);
/// let limits = Limits::default().atom_quota(Some(quota.clone()));
/// assert!(Term::parse("[one_new_atom, another_new_atom, one_new_atom, ok]", &limits).is_ok());
/// assert_eq!(quota.made(), 2);
/// let error = Term::parse("a_third_new_atom", &limits).unwrap_err().to_string();
/// assert!(error.starts_with("byte 0: 2 atoms have been made here already"), "{error}");
/// assert!(Atom::existing("a_third_new_atom").is_none());
/// ```
#[derive(Clone, Debug)]
pub struct AtomQuota(Arc<Quota>);

#[derive(Debug)]
struct Quota {
    made: AtomicU32,
    limit: u32,
    in_all: u32,
}

impl AtomQuota {
    /// A quota of `limit` new atoms, as long as there are fewer than `in_all` in the process.
    #[must_use]
    pub fn new(limit: u32, in_all: u32) -> Self {
        Self(Arc::new(Quota {
            made: AtomicU32::new(0),
            limit,
            in_all: in_all.min(Atom::MAX_ATOMS),
        }))
    }

    /// How many atoms have been made within it.
    #[must_use]
    pub fn made(&self) -> u32 {
        self.0.made.load(Relaxed)
    }

    /// The atom with this text.
    ///
    /// # Errors
    ///
    /// Those of [`Atom::new`], or the atom would be new and the quota is spent.
    pub fn atom(&self, text: &str) -> Result<Atom, AtomError> {
        // Relaxed: the number guards nothing else. Threads that share a quota may exceed it by one
        // atom each.
        let most = &|| match self.made() {
            made if made >= self.0.limit => Err(AtomError::QuotaSpent(self.0.limit)),
            _ => Ok(self.0.in_all),
        };
        let (atom, is_new) = Atom::new_within(text, most)?;
        if is_new {
            self.0.made.fetch_add(1, Relaxed);
        }
        Ok(atom)
    }
}

/// Two quotas are equal if they are the same one.
impl PartialEq for AtomQuota {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(&raw const *self.0, &raw const *other.0)
    }
}

impl Eq for AtomQuota {}

impl Table {
    fn with_known() -> Self {
        let table = Self {
            shards: std::array::from_fn(|_| RwLock::new(HashMap::new())),
            count: RwLock::new(known::ALL.len() as u32),
        };
        for entry in known::ALL {
            let hash = quick_hash(entry.text);
            table.shard(hash).write().insert(entry.text, entry);
        }
        table
    }

    /// The shard of a text, chosen by bits of the hash that [`RECENT`] does not use.
    fn shard(&self, hash: u32) -> &Shard {
        &self.shards[(hash >> 16) as usize % SHARDS]
    }

    fn add(&self, text: &str, most: u32) -> Result<(Atom, bool), AtomError> {
        let mut shard = self.shard(quick_hash(text)).write();
        // Another thread may have added it since.
        if let Some(entry) = shard.get(text) {
            return Ok((Atom(entry), false));
        }
        let mut count = self.count.write();
        if *count >= most {
            return Err(AtomError::TooMany(most));
        }
        let text: &'static str = Box::leak(text.into());
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            head: head(text),
            id: *count,
            text,
        }));
        *count += 1;
        shard.insert(text, entry);
        Ok((Atom(entry), true))
    }
}

/// A hash (FNV-1a) only for [`RECENT`] and the choice of a shard, where texts chosen to collide
/// cost no more than the lock. The shards' own maps use a keyed hash.
fn quick_hash(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u32 ^ hash as u32
}

const fn head(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut first = [0; 8];
    let mut index = 0;
    while index < 8 && index < bytes.len() {
        first[index] = bytes[index];
        index += 1;
    }
    u64::from_be_bytes(first)
}

impl PartialEq for Atom {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Atom {}

impl Ord for Atom {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        // The bytes of UTF-8 have the order of its code points.
        let (one, two) = (self.0, other.0);
        one.head.cmp(&two.head).then_with(|| one.text.cmp(two.text))
    }
}

impl PartialOrd for Atom {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Hashes a number, which differs between processes.
impl Hash for Atom {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.id);
    }
}

/// Erlang's text, quoted where necessary.
impl fmt::Display for Atom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::text::write_atom(*self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn the_known_are_found_by_their_texts() {
        for entry in known::ALL {
            assert_eq!(Atom::new(entry.text), Ok(Atom(entry)));
        }
        assert_eq!(Atom::boolean(true).text(), "true");
    }

    #[test]
    fn equal_texts_are_one_atom_in_every_thread() {
        let make = || -> Vec<Atom> {
            (0..500)
                .map(|number| Atom::new(&format!("thread_test_{number}")).unwrap())
                .collect()
        };
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(make)).collect();
        let here = make();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), here);
        }
    }

    #[test]
    fn the_order_is_that_of_code_points() {
        let texts = [
            "",
            "Z",
            "a",
            "a\0",
            "ab",
            "abcdefgh",
            "abcdefgha",
            "abcdefghb",
            "é",
            "α",
            "𝕏",
        ];
        let atoms = texts.map(|text| Atom::new(text).unwrap());
        assert!(atoms.is_sorted_by(|one, two| one < two));
    }

    #[test]
    fn what_is_too_long_is_refused_and_what_is_unknown_is_not_made() {
        assert!(Atom::new(&"é".repeat(255)).is_ok());
        assert_eq!(Atom::new(&"é".repeat(256)), Err(AtomError::TooLong(256)));
        assert_eq!(Atom::existing("an atom that no test makes"), None);
    }
}
