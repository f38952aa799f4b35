//! The memory of a term.

use super::extent::Extent;
use super::inside::visit_all;
use super::{Bitstring, Term};

impl Term {
    /// Bytes of this term on the heap, besides its own 16: what was requested from the allocator,
    /// which may take some more. A shared part counts in full in every term that shares it, up to a
    /// terabyte in all; atoms count as nothing. Takes constant time: a term carries its size.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// assert_eq!(Term::from(7).heap_bytes(), 0);
    /// assert_eq!(Term::tuple([Term::from(7)]).heap_bytes(), 40);
    /// let twice = |term: Term| Term::tuple([term.clone(), term]);
    /// assert_eq!((0..100).fold(Term::NIL, |term, _| twice(term)).heap_bytes(), (1 << 40) - 1);
    /// ```
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        usize::try_from(self.extent().bytes()).unwrap_or(usize::MAX)
    }

    /// How deep terms are nested in this term, up to 16,777,215: 0 without inner terms, 1 in
    /// `{a, b}` and in `[a, b | c]`. Takes constant time: a term carries its depth.
    ///
    /// ```
    /// use tremula_table::Term;
    ///
    /// let depth = |text: &str| text.parse::<Term>().map(|term| term.depth());
    /// assert_eq!(depth("{}")?, 0);
    /// assert_eq!(depth("{a, [b, {c}], #{d => []}}")?, 3);
    /// assert_eq!(depth("[a | [b | [c]]]")?, 1, "the tail of a list is a part of the list");
    /// # Ok::<(), tremula_table::term::ParseError>(())
    /// ```
    #[must_use]
    pub fn depth(&self) -> usize {
        usize::try_from(self.extent().depth()).unwrap_or(usize::MAX)
    }

    #[inline]
    pub(super) fn extent(&self) -> Extent {
        match self {
            Self::Integer(_) | Self::Float(_) | Self::Atom(_) => Extent::default(),
            Self::BigInteger(value) => Extent::of_leaf(value.heap_bytes()),
            Self::Reference(_) => Extent::of_leaf(super::Reference::HEAP_BYTES),
            Self::Fun(fun) => fun.extent(),
            Self::Port(_) => Extent::of_leaf(super::Port::HEAP_BYTES),
            Self::Pid(_) => Extent::of_leaf(super::Pid::HEAP_BYTES),
            Self::Tuple(tuple) => tuple.extent(),
            Self::Map(map) => map.extent(),
            Self::List(list) => list.extent(),
            Self::Bitstring(bits) => Extent::of_leaf(bytes_of(bits.bytes())),
        }
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
}

/// Bytes on the heap of the bytes of a bit string, with their reference count and length.
const fn bytes_of(bytes: &[u8]) -> usize {
    match bytes {
        [] => 0,
        some => 2 * size_of::<usize>() + some.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::extent::{HEADER, LIST_HEADER};
    use super::super::inside::visit_all;
    use super::*;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};

    /// The bytes of a term's own allocations.
    fn own_bytes(term: &Term) -> usize {
        let cell = size_of::<Term>();
        match term {
            Term::Tuple(tuple) if !tuple.is_empty() => HEADER + tuple.len() * cell,
            Term::Map(map) if !map.is_empty() => HEADER + map.len() * 2 * cell,
            Term::List(list) => {
                let (mut bytes, mut chunk) = (0, list);
                while !chunk.is_empty() {
                    let (elements, tail) = chunk.chunk();
                    bytes += LIST_HEADER + size_of_val(elements);
                    let Term::List(next) = tail else { break };
                    chunk = next;
                }
                bytes
            }
            leaf => leaf.heap_bytes(),
        }
    }

    /// The depth, by its definition.
    fn depth(term: &Term) -> usize {
        let below = |terms: &mut dyn Iterator<Item = &Term>| terms.map(depth).max().unwrap_or(0);
        match term {
            Term::Tuple(tuple) if !tuple.is_empty() => 1 + below(&mut tuple.iter()),
            Term::List(list) if !list.is_empty() => {
                let mut elements = list.iter();
                let of_elements = below(&mut elements.by_ref());
                1 + of_elements.max(depth(elements.tail()))
            }
            Term::Map(map) if !map.is_empty() => {
                1 + below(&mut map.entries().iter().flat_map(|(key, value)| [key, value]))
            }
            _ => 0,
        }
    }

    fn random_term(random: &mut StdRng, parts: &[Term]) -> Term {
        let mut some = |most| -> Vec<Term> {
            let count = random.random_range(0..=most);
            (0..count)
                .map(|_| parts.choose(random).cloned().unwrap_or_default())
                .collect()
        };
        let terms = some(4);
        match random.random_range(0..6) {
            0 => Term::tuple(terms),
            1 => Term::list(terms),
            2 => {
                let tail = parts.choose(random).cloned().unwrap_or_default();
                Term::list_with_tail(terms, tail)
            }
            3 => Term::map(terms.into_iter().map(|key| (key, Term::from(1))).collect()),
            4 => Term::binary(&vec![7; random.random_range(0..100)]),
            _ => Term::from(random.random::<i128>()),
        }
    }

    /// Fails if a term carries another size or depth than a visit of all its parts finds.
    #[test]
    fn what_a_term_carries_is_what_a_visit_of_it_finds() {
        let mut random = StdRng::seed_from_u64(3);
        for _ in 0..300 {
            let mut parts = vec![Term::from(1), Term::NIL, Term::from("text")];
            for _ in 0..12 {
                let term = random_term(&mut random, &parts);
                let mut bytes = 0;
                visit_all(&term, |part, _| bytes += own_bytes(part));
                assert_eq!(term.heap_bytes(), bytes, "{term}");
                assert_eq!(term.depth(), depth(&term), "{term}");
                let read: Term =
                    Term::from_etf(&term.to_etf().unwrap(), &super::super::Limits::NONE).unwrap();
                assert_eq!(read.depth(), term.depth(), "{term}");
                parts.push(term);
            }
        }
    }

    #[test]
    fn sizes_and_depths_stay_at_their_greatest_values() {
        let twice = |term: Term| Term::tuple([term.clone(), term]);
        let large = (0..60).fold(Term::from(1), |term, _| twice(term));
        assert_eq!((large.heap_bytes(), large.depth()), ((1 << 40) - 1, 60));
        let deep = (0..3_000_000).fold(Term::from(1), |term, _| Term::tuple([term]));
        assert_eq!((deep.heap_bytes(), deep.depth()), (120_000_000, 3_000_000));
    }
}
