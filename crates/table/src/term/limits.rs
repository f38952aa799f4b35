//! What a term that comes from outside may take.

/// Limits of reading a term from text or from the external format. What exceeds one is an error
/// that names it.
///
/// ```
/// use tremula_table::{Term, term::Limits};
///
/// let limits = Limits { nesting: 3, ..Limits::default() };
/// assert!(Term::parse("{{{a}}}", &limits).is_ok());
/// assert!(Term::parse("{{{{a}}}}", &limits).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Terms with terms inside, within each other. The elements of a list are side by side: only what is written as a
    /// list in a list's tail counts. Every level takes some 100 bytes while the term is read.
    pub nesting: usize,
    /// Bits of an integer. Printing one takes time in proportion to the square of its length.
    pub integer_bits: u64,
    /// Bytes that a short form may stand for, in one term: a compressed term, or binaries that
    /// are written with sizes (`<<0:800000>>`).
    pub expanded_bytes: usize,
    /// Whether atoms may be made that were not there. They are never freed: programs that read
    /// terms from strangers may say no.
    pub new_atoms: bool,
}

impl Limits {
    /// The default of [`nesting`](Self::nesting): deeper than data is, for a small part of what a
    /// thread's other memory takes.
    pub const NESTING: usize = 10_000;

    /// The default of [`integer_bits`](Self::integer_bits): 79,000 digits, which are printed in
    /// some milliseconds.
    pub const INTEGER_BITS: u64 = 1 << 18;

    /// The default of [`expanded_bytes`](Self::expanded_bytes): 64 MiB.
    pub const EXPANDED_BYTES: usize = 64 << 20;

    /// No limits but those of memory: for terms from one's own files.
    pub const NONE: Self = Self {
        nesting: usize::MAX,
        integer_bits: u64::MAX,
        expanded_bytes: usize::MAX,
        new_atoms: true,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            nesting: Self::NESTING,
            integer_bits: Self::INTEGER_BITS,
            expanded_bytes: Self::EXPANDED_BYTES,
            new_atoms: true,
        }
    }
}
