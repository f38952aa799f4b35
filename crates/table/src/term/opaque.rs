//! Process identifiers, ports and references: values of an Erlang node. Here they have no meaning,
//! but are stored, compared and returned unchanged.

use super::Atom;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use triomphe::Arc;

/// Implements the parts and the traits of a type that is ordered by its `key` and whose text is
/// opaque: `#Name<node.number…>`.
macro_rules! opaque {
    ($name:ident, $parts:ident, $key:expr, $($(#[$doc:meta])* $part:ident: $type:ty;)*) => {
        impl $name {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $part(&self) -> $type {
                    self.0.$part
                }
            )*

            /// Bytes on the heap.
            pub(super) const HEAP_BYTES: usize = size_of::<usize>() + size_of::<$parts>();
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                let key: for<'a> fn(&'a Self) -> _ = $key;
                key(self).cmp(&key(other))
            }
        }

        compared!($name);

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                let key: for<'a> fn(&'a Self) -> _ = $key;
                key(self).hash(state);
            }
        }
    };
}

/// A process identifier.
///
/// Its text is `#Pid<node.id.serial.creation>`. Unlike Erlang's `<0.83.0>` it contains everything,
/// so that it can be read back.
///
/// ```
/// use tremula_table::{Term, term::{Atom, Pid}};
///
/// let pid = Pid::new(Atom::NO_NODE, 83, 0, 0);
/// let text = Term::from(pid.clone()).to_string();
/// assert_eq!(text, "#Pid<nonode@nohost.83.0.0>");
/// assert_eq!(text.parse::<Term>()?, Term::from(pid));
/// # Ok::<(), tremula_table::term::ParseError>(())
/// ```
#[derive(Clone)]
pub struct Pid(Arc<PidParts>);

struct PidParts {
    node: Atom,
    id: u32,
    serial: u32,
    creation: u32,
}

opaque! {
    // Erlang first compares a number whose high half is the serial.
    Pid, PidParts, |pid| (pid.serial(), pid.id(), pid.node(), pid.creation()),
    /// The node that the process is on.
    node: Atom;
    /// The process's number.
    id: u32;
    /// How often the node's numbers had been used up.
    serial: u32;
    /// Which run of the node made it.
    creation: u32;
}

impl Pid {
    /// The process with these numbers on this node.
    #[must_use]
    pub fn new(node: Atom, id: u32, serial: u32, creation: u32) -> Self {
        Self(Arc::new(PidParts {
            node,
            id,
            serial,
            creation,
        }))
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, id) = (self.node(), self.id());
        let (serial, creation) = (self.serial(), self.creation());
        write!(formatter, "#Pid<{node}.{id}.{serial}.{creation}>")
    }
}

/// A port: Erlang's handle for an outside resource. Its text is `#Port<node.id.creation>`.
#[derive(Clone)]
pub struct Port(Arc<PortParts>);

struct PortParts {
    node: Atom,
    id: u64,
    creation: u32,
}

opaque! {
    Port, PortParts, |port| (port.node(), port.creation(), port.id()),
    /// The node that the port is on.
    node: Atom;
    /// The port's number.
    id: u64;
    /// Which run of the node made it.
    creation: u32;
}

impl Port {
    /// The port with this number on this node.
    #[must_use]
    pub fn new(node: Atom, id: u64, creation: u32) -> Self {
        Self(Arc::new(PortParts { node, id, creation }))
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, id, creation) = (self.node(), self.id(), self.creation());
        write!(formatter, "#Port<{node}.{id}.{creation}>")
    }
}

/// A reference: a unique name. Its text is `#Ref<node.creation.word…>`.
#[derive(Clone)]
pub struct Reference(Arc<ReferenceParts>);

struct ReferenceParts {
    node: Atom,
    creation: u32,
    /// The words, least significant first; those beyond the length are zero.
    words: [u32; Reference::MAX_WORDS],
    length: u8,
}

opaque! {
    // The words are compared as one number, so zeros at its upper end do not count.
    Reference, ReferenceParts,
    |reference| (reference.node(), reference.creation(), reference.most_significant_first()),
    /// The node that made it.
    node: Atom;
    /// Which run of the node made it.
    creation: u32;
}

impl Reference {
    /// Words that a reference may have.
    pub const MAX_WORDS: usize = 5;

    /// The reference with these words on this node; `None` if there are more than
    /// [`MAX_WORDS`](Self::MAX_WORDS).
    #[must_use]
    pub fn new(node: Atom, creation: u32, words: &[u32]) -> Option<Self> {
        let mut all = [0; Self::MAX_WORDS];
        all.get_mut(..words.len())?.copy_from_slice(words);
        Some(Self(Arc::new(ReferenceParts {
            node,
            creation,
            words: all,
            length: words.len() as u8,
        })))
    }

    /// The number that distinguishes it from others, the least significant word first.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.0.words[..usize::from(self.0.length)]
    }

    fn most_significant_first(&self) -> [u32; Self::MAX_WORDS] {
        let mut words = self.0.words;
        words.reverse();
        words
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#Ref<{}.{}", self.node(), self.creation())?;
        for word in self.words() {
            write!(formatter, ".{word}")?;
        }
        formatter.write_str(">")
    }
}
