//! Process identifiers, ports and references: values of an Erlang node. Here they have no meaning,
//! but are stored, compared and returned unchanged.

use super::{Atom, Term};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use triomphe::Arc;

/// Implements the traits of a type that is ordered by its `key` and whose text is opaque:
/// `#Name<node.number…>`.
macro_rules! opaque {
    ($name:ident, $key:expr) => {
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                let key: for<'a> fn(&'a Self) -> _ = $key;
                key(self).cmp(&key(other))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                let key: for<'a> fn(&'a Self) -> _ = $key;
                key(self).hash(state);
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
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

// Erlang first compares a number whose high half is the serial.
opaque!(Pid, |pid| (
    pid.serial(),
    pid.id(),
    pid.node(),
    pid.creation()
));

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

    /// The node that the process is on.
    #[must_use]
    pub fn node(&self) -> Atom {
        self.0.node
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id
    }

    /// How often the node's numbers had been used up.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.0.serial
    }

    /// Which run of the node made it.
    #[must_use]
    pub fn creation(&self) -> u32 {
        self.0.creation
    }

    /// Bytes on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<usize>() + size_of::<PidParts>();
}

impl fmt::Display for Pid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, id) = (self.node(), self.id());
        let (serial, creation) = (self.serial(), self.creation());
        write!(formatter, "#Pid<{node}.{id}.{serial}.{creation}>")
    }
}

impl From<Pid> for Term {
    fn from(pid: Pid) -> Self {
        Self::Pid(pid)
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

opaque!(Port, |port| (port.node(), port.creation(), port.id()));

impl Port {
    /// The port with this number on this node.
    #[must_use]
    pub fn new(node: Atom, id: u64, creation: u32) -> Self {
        Self(Arc::new(PortParts { node, id, creation }))
    }

    /// The node that the port is on.
    #[must_use]
    pub fn node(&self) -> Atom {
        self.0.node
    }

    /// The port's number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Which run of the node made it.
    #[must_use]
    pub fn creation(&self) -> u32 {
        self.0.creation
    }

    /// Bytes on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<usize>() + size_of::<PortParts>();
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, id, creation) = (self.node(), self.id(), self.creation());
        write!(formatter, "#Port<{node}.{id}.{creation}>")
    }
}

impl From<Port> for Term {
    fn from(port: Port) -> Self {
        Self::Port(port)
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

// The words are compared as one number, so zeros at its upper end do not count.
opaque!(Reference, |reference| (
    reference.node(),
    reference.creation(),
    reference.most_significant_first()
));

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

    /// The node that made it.
    #[must_use]
    pub fn node(&self) -> Atom {
        self.0.node
    }

    /// Which run of the node made it.
    #[must_use]
    pub fn creation(&self) -> u32 {
        self.0.creation
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

    /// Bytes on the heap.
    pub(super) const HEAP_BYTES: usize = size_of::<usize>() + size_of::<ReferenceParts>();
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

impl From<Reference> for Term {
    fn from(reference: Reference) -> Self {
        Self::Reference(reference)
    }
}
