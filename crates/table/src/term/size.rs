//! The memory of a term.

use super::inside::visit_all;
use super::{Bitstring, Term};

impl Term {
    /// Bytes of this term on the heap, besides its own 16: what was requested from the allocator,
    /// which may take some more. A shared part counts in full in every term that shares it; atoms
    /// count as nothing.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::from(7).heap_bytes(), 0);
    /// assert_eq!(Term::tuple([Term::from(7)]).heap_bytes(), 32);
    /// ```
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let mut bytes = 0;
        visit_all(self, |term, _| bytes += term.own_heap_bytes());
        bytes
    }

    /// Calls `visit` with each bit string in this term.
    pub(crate) fn visit_binaries(&self, visit: &mut dyn FnMut(&Bitstring)) {
        visit_all(self, |term, _| {
            if let Self::Bitstring(bits) = term {
                visit(bits);
            }
        });
    }

    /// Whether this term contains a float zero: the two zeros are identical but print differently.
    pub(crate) fn holds_zero(&self) -> bool {
        let is_zero = |term: &Self| matches!(term, Self::Float(float) if float.value() == 0.0);
        let mut found = false;
        visit_all(self, |term, _| found |= is_zero(term));
        found
    }

    /// Bytes of this term on the heap, without those of its inner terms.
    fn own_heap_bytes(&self) -> usize {
        match self {
            Self::Integer(_) | Self::Float(_) | Self::Atom(_) => 0,
            Self::BigInteger(value) => value.heap_bytes(),
            Self::Reference(_) => super::Reference::HEAP_BYTES,
            Self::Fun(fun) => fun.own_heap_bytes(),
            Self::Port(_) => super::Port::HEAP_BYTES,
            Self::Pid(_) => super::Pid::HEAP_BYTES,
            Self::Tuple(tuple) => bytes_of(tuple),
            Self::Map(map) => bytes_of(map.entries()),
            Self::List(list) => list.heap_bytes_of_chunks(),
            Self::Bitstring(bits) => bytes_of(bits.bytes()),
        }
    }
}

/// Bytes on the heap of elements with their reference count and length, without what the elements
/// hold; no elements need no memory.
pub(super) const fn bytes_of<T>(elements: &[T]) -> usize {
    match elements {
        [] => 0,
        some => 2 * size_of::<usize>() + size_of_val(some),
    }
}
