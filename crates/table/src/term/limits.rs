//! Limits for terms from outside.

use super::{Atom, AtomError, AtomQuota};

/// Limits of reading a term from text or from the external format. Exceeding one is an error that
/// names it.
///
/// ```
/// use tremula_table::{Term, term::Limits};
///
/// let limits = Limits::default().nesting(3);
/// assert!(Term::parse("{{{a}}}", &limits).is_ok());
/// assert!(Term::parse("{{{{a}}}}", &limits).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The greatest depth of nested terms. The elements of a list are at one level; a list counts
    /// one level more only where the text has it in another list's tail. Every level takes some 100
    /// bytes while the term is read.
    pub nesting: usize,
    /// The most bits of an integer. Printing one takes time in proportion to the square of its
    /// length.
    pub integer_bits: u64,
    /// The most bytes that short forms may expand to in one term: a compressed term, or binaries
    /// written with sizes (`<<0:800000>>`).
    pub expanded_bytes: usize,
    /// Whether atoms may be made that do not exist yet. Atoms are never freed, so a program that
    /// reads terms from strangers may forbid new ones.
    pub new_atoms: bool,
    /// How many new atoms may be made, by all terms that are read within this quota. `None` leaves
    /// only the limit of the process.
    pub atom_quota: Option<AtomQuota>,
}

impl Limits {
    /// The default of [`nesting`](Self::nesting): deeper than real data, and cheap compared with
    /// the other memory of a thread.
    pub const NESTING: usize = 10_000;

    /// The default of [`integer_bits`](Self::integer_bits): 79,000 digits, which still print fast.
    pub const INTEGER_BITS: u64 = 1 << 18;

    /// The default of [`expanded_bytes`](Self::expanded_bytes): 64 MiB.
    pub const EXPANDED_BYTES: usize = 64 << 20;

    /// No limits but memory, for terms from one's own files.
    pub const NONE: Self = Self {
        nesting: usize::MAX,
        integer_bits: u64::MAX,
        expanded_bytes: usize::MAX,
        new_atoms: true,
        atom_quota: None,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nesting: Self::NESTING,
            integer_bits: Self::INTEGER_BITS,
            expanded_bytes: Self::EXPANDED_BYTES,
            new_atoms: true,
            atom_quota: None,
        }
    }
}

impl Limits {
    /// Sets the greatest depth of nested terms.
    #[must_use]
    pub const fn nesting(mut self, nesting: usize) -> Self {
        self.nesting = nesting;
        self
    }

    /// Sets the most bits of an integer.
    #[must_use]
    pub const fn integer_bits(mut self, integer_bits: u64) -> Self {
        self.integer_bits = integer_bits;
        self
    }

    /// Sets the most bytes that short forms may expand to in one term.
    #[must_use]
    pub const fn expanded_bytes(mut self, expanded_bytes: usize) -> Self {
        self.expanded_bytes = expanded_bytes;
        self
    }

    /// Sets whether atoms may be made that do not exist yet.
    #[must_use]
    pub const fn new_atoms(mut self, new_atoms: bool) -> Self {
        self.new_atoms = new_atoms;
        self
    }

    /// Sets a quota of new atoms.
    #[must_use]
    pub fn atom_quota(mut self, quota: Option<AtomQuota>) -> Self {
        self.atom_quota = quota;
        self
    }

    /// The atom with this text; `None` if it does not exist and new ones are not allowed.
    #[inline]
    pub(super) fn atom(&self, text: &str) -> Result<Option<Atom>, AtomError> {
        if !self.new_atoms {
            return Ok(Atom::existing(text));
        }
        match &self.atom_quota {
            Some(quota) => quota.atom(text),
            None => Atom::new(text),
        }
        .map(Some)
    }
}
