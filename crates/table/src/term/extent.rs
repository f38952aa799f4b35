//! How large and how deep a term is. Each term with inner terms carries it, so that asking for it
//! takes constant time, however often the term shares its parts.

use super::Term;
use triomphe::{Arc, ThinArc};

/// Bytes on the heap and depth, in one word: the low [`DEPTH_BITS`](Self::DEPTH_BITS) bits are the
/// depth, the others the bytes. Both stay at the greatest value that they can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent(u64);

impl Extent {
    /// 16 million levels, and a terabyte in the other bits.
    const DEPTH_BITS: u32 = 24;

    const MOST_DEPTH: u64 = (1 << Self::DEPTH_BITS) - 1;

    const MOST_BYTES: u64 = u64::MAX >> Self::DEPTH_BITS;

    fn new(bytes: u64, depth: u64) -> Self {
        let (bytes, depth) = (bytes.min(Self::MOST_BYTES), depth.min(Self::MOST_DEPTH));
        Self(bytes << Self::DEPTH_BITS | depth)
    }

    /// The extent of a term without inner terms.
    pub(super) fn of_leaf(bytes: usize) -> Self {
        Self::new(bytes as u64, 0)
    }

    /// With more bytes at the same depth.
    pub(super) fn plus(self, bytes: usize) -> Self {
        Self::new(self.bytes().saturating_add(bytes as u64), self.depth())
    }

    pub(crate) const fn bytes(self) -> u64 {
        self.0 >> Self::DEPTH_BITS
    }

    pub(super) const fn depth(self) -> u64 {
        self.0 & Self::MOST_DEPTH
    }
}

/// Terms that belong together in one allocation, shared by clones: the elements of a tuple, the
/// entries of a map, a chunk of a list.
pub(crate) type Shared<H, T> = ThinArc<WithExtent<H>, T>;

/// What stands before the elements: the extent of all, and for a list its tail.
pub(crate) struct WithExtent<H> {
    pub(super) extent: Extent,
    pub(super) more: H,
}

/// What an allocation holds besides elements and header: the number of references, the number of
/// elements.
const COUNTS: usize = 2 * size_of::<usize>();

/// The bytes of an allocation without its elements, in a tuple or a map.
#[cfg(test)]
pub(super) const HEADER: usize = COUNTS + size_of::<WithExtent<()>>();

/// The bytes of an allocation without its elements, in a list.
#[cfg(test)]
pub(super) const LIST_HEADER: usize = COUNTS + size_of::<WithExtent<Term>>();

/// The extents of parts, added up.
#[derive(Default)]
pub(super) struct Sum {
    bytes: u64,
    depth: u64,
}

impl Sum {
    #[inline]
    fn add(&mut self, term: &Term) {
        // Most elements are numbers and atoms.
        if let Term::Integer(_) | Term::Float(_) | Term::Atom(_) = term {
            return;
        }
        let extent = term.extent();
        self.bytes = self.bytes.saturating_add(extent.bytes());
        self.depth = self.depth.max(extent.depth());
    }
}

/// A part of a term: an element, or an entry of a map.
pub(super) trait Part {
    fn add_to(&self, sum: &mut Sum);
}

impl Part for Term {
    #[inline]
    fn add_to(&self, sum: &mut Sum) {
        sum.add(self);
    }
}

impl Part for (Term, Term) {
    #[inline]
    fn add_to(&self, sum: &mut Sum) {
        sum.add(&self.0);
        sum.add(&self.1);
    }
}

/// What a list has besides its elements, and other terms have not.
pub(super) trait Tail {
    fn tail(&self) -> Option<&Term>;
}

impl Tail for () {
    #[inline]
    fn tail(&self) -> Option<&Term> {
        None
    }
}

impl Tail for Term {
    #[inline]
    fn tail(&self) -> Option<&Term> {
        Some(self)
    }
}

/// Allocates parts, at least one, with their extent.
#[inline]
pub(super) fn share<H: Tail, T: Part>(
    more: H,
    parts: impl ExactSizeIterator<Item = T>,
) -> Shared<H, T> {
    let mut sum = Sum::default();
    let own = COUNTS + size_of::<WithExtent<H>>() + parts.len() * size_of::<T>();
    let header = WithExtent {
        extent: Extent::default(),
        more,
    };
    let parts = parts.inspect(|part| part.add_to(&mut sum));
    let mut shared = ThinArc::from_header_and_iter(header, parts);
    shared.with_arc_mut(|shared| {
        let Some(shared) = Arc::get_mut(shared) else {
            unreachable!("what has just been allocated is not shared yet");
        };
        let header = shared.header_mut();
        let mut depth = sum.depth + 1;
        if let Some(tail) = header.more.tail() {
            sum.add(tail);
            // The elements of a list are at one level, in whichever chunk they are.
            let level = u64::from(!matches!(tail, Term::List(_)));
            depth = depth.max(tail.extent().depth() + level);
        }
        header.extent = Extent::new(sum.bytes.saturating_add(own as u64), depth);
    });
    shared
}
