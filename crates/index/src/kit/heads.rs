//! A sorted array of heads with hints: found in two steps, none of which waits for the other's
//! comparisons.

use super::prefetch;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// The heads of a *segment*, which are compared together: two cache lines of them.
#[cfg(not(any(loom, shuttle)))]
pub const STRIDE: usize = 16;
#[cfg(any(loom, shuttle))]
pub const STRIDE: usize = 2;

/// What is in a place that no entry uses. No search counts it: nothing is below it that is not
/// below every head.
const UNUSED: u64 = u64::MAX;

/// The ascending heads of a node, and its *hints*: copies of the first head of each segment but
/// the first, kept together.
///
/// A binary search of 240 heads touches five cache lines, each known only when the last one has
/// come. Here the hints, which lie beside the node's header, tell the segment, and the segment
/// the place: two waits. Within each step nothing is there to be mispredicted: all heads are
/// compared that may have to be, and the outcomes added up.
///
/// All accesses are relaxed: the node's [`VersionLock`](tremula_sync::VersionLock) guards the
/// arrays. An optimistic reader may be told any place up to the capacity, and validates.
pub(crate) struct Heads<'a> {
    hints: &'a [AtomicU64],
    heads: &'a [AtomicU64],
}

/// The heads of a group, of which the greatest is compared before the others are.
pub const GROUP: usize = 4;

/// A head in a node.
pub trait Head {
    /// The head; of an optimistic reader, unvalidated.
    fn load(&self) -> u64;
}

impl Head for u64 {
    #[inline]
    fn load(&self) -> u64 {
        *self
    }
}

impl Head for AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

/// How many of some ascending heads, whole groups of them or less than one, lie below `head`.
///
/// First the greatest of each group tell the group, then its heads are looked at: of sixteen
/// three and four are compared. One by one, sixteen comparisons take longer, and so do the four
/// of a binary search, each of which waits for the last.
#[inline(always)]
pub fn count_below<T: Head>(heads: &[T], head: u64) -> usize {
    let is_below = |other: &T| usize::from(other.load() < head);
    let Some(last) = heads.len().checked_sub(GROUP) else {
        return heads.iter().map(is_below).sum();
    };
    let greatest = heads[..last].iter().skip(GROUP - 1).step_by(GROUP);
    let start = GROUP * greatest.map(is_below).sum::<usize>();
    let group = &heads[start..start + GROUP];
    start + group.iter().map(is_below).sum::<usize>()
}

impl<'a> Heads<'a> {
    /// The room for hints that so many heads, a multiple of [`STRIDE`], need: whole groups.
    pub(crate) const fn hints_of(capacity: usize) -> usize {
        let hints = capacity / STRIDE - 1;
        if hints < GROUP {
            hints
        } else {
            hints.next_multiple_of(GROUP)
        }
    }

    /// A view of a node's two arrays. Both have been filled by [`unused`](Self::unused) at
    /// first, and been written only by the methods of this type since.
    #[inline]
    pub(crate) fn new(hints: &'a [AtomicU64], heads: &'a [AtomicU64]) -> Self {
        debug_assert!(heads.len().is_multiple_of(STRIDE));
        debug_assert_eq!(hints.len(), Self::hints_of(heads.len()));
        Self { hints, heads }
    }

    /// What an array begins with.
    #[inline]
    pub(crate) fn unused() -> AtomicU64 {
        AtomicU64::new(UNUSED)
    }

    /// The head at a place.
    #[inline]
    pub(crate) fn load(&self, at: usize) -> u64 {
        self.heads[at].load(Ordering::Relaxed)
    }

    /// The first step of [`below`](Self::below): the segment.
    #[inline]
    pub(crate) fn segment(&self, head: u64) -> usize {
        count_below(self.hints, head)
    }

    /// Where a segment begins.
    #[inline]
    pub(crate) fn start(segment: usize) -> usize {
        segment * STRIDE
    }

    /// The address of a place; for prefetches only.
    #[inline]
    pub(crate) fn address(&self, at: usize) -> *const AtomicU64 {
        self.heads.as_ptr().wrapping_add(at)
    }

    /// Asks for the cache lines of a segment.
    #[inline]
    pub(crate) fn prefetch(&self, segment: usize) {
        let start = self.address(Self::start(segment));
        prefetch(start);
        prefetch(start.wrapping_add(STRIDE / 2));
    }

    /// The second step of [`below`](Self::below).
    #[inline]
    pub(crate) fn below_in(&self, segment: usize, head: u64) -> usize {
        let start = Self::start(segment);
        start + count_below(&self.heads[start..start + STRIDE], head)
    }

    /// How many heads lie below `head`: the place of the first that does not.
    #[inline]
    pub(crate) fn below(&self, head: u64) -> usize {
        self.below_in(self.segment(head), head)
    }

    /// How many of the first `count` heads lie at or below `head`.
    #[inline]
    pub(crate) fn at_or_below(&self, head: u64, count: usize) -> usize {
        match head.checked_add(1) {
            Some(above) => self.below(above),
            None => count,
        }
    }

    /// Inserts a head at a place among the first `count`. Of the hints only those that change
    /// are written: an insertion at the end leaves their cache lines alone.
    #[inline]
    pub(crate) fn insert(&self, at: usize, count: usize, head: u64) {
        open(self.heads, at, count, |to, from| {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        self.heads[at].store(head, Ordering::Relaxed);
        self.mend_hints(at, count + 1);
    }

    /// Removes the head at a place among the first `count`.
    #[inline]
    pub(crate) fn remove(&self, at: usize, count: usize) {
        close(self.heads, at, count, |to, from| {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        self.heads[count - 1].store(UNUSED, Ordering::Relaxed);
        self.mend_hints(at, count);
    }

    /// Replaces the head at a place by another that keeps the order.
    pub(crate) fn replace(&self, at: usize, head: u64) {
        self.heads[at].store(head, Ordering::Relaxed);
        self.mend_hints(at, at + 1);
    }

    /// Copies the hints whose heads are at the places `from..to`.
    #[inline]
    fn mend_hints(&self, from: usize, to: usize) {
        let mut segment = from.div_ceil(STRIDE).max(1);
        while Self::start(segment) < to {
            let head = self.load(Self::start(segment));
            self.hints[segment - 1].store(head, Ordering::Relaxed);
            segment += 1;
        }
    }

    /// Writes a head without regard for the hints: [`seal`](Self::seal) follows.
    #[inline]
    pub(crate) fn store(&self, at: usize, head: u64) {
        self.heads[at].store(head, Ordering::Relaxed);
    }

    /// Ends a change of many heads: from now on there are `count`.
    pub(crate) fn seal(&self, count: usize) {
        for unused in &self.heads[count..] {
            unused.store(UNUSED, Ordering::Relaxed);
        }
        self.mend_hints(0, self.heads.len());
    }
}

/// Moves the elements of a node's array from `at` to `count` up by one.
#[inline]
pub(crate) fn open<T>(array: &[T], at: usize, count: usize, copy: impl Fn(&T, &T)) {
    for pair in array[at..=count].windows(2).rev() {
        copy(&pair[1], &pair[0]);
    }
}

/// Moves the elements of a node's array behind `at`, up to `count`, down by one.
#[inline]
pub(crate) fn close<T>(array: &[T], at: usize, count: usize, copy: impl Fn(&T, &T)) {
    for pair in array[at..count].windows(2) {
        copy(&pair[0], &pair[1]);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: usize = 11 * STRIDE;

    struct Arrays {
        hints: Vec<AtomicU64>,
        heads: Vec<AtomicU64>,
    }

    impl Arrays {
        fn new() -> Self {
            let unused = |length| std::iter::repeat_with(Heads::unused).take(length).collect();
            Self {
                hints: unused(Heads::hints_of(CAPACITY)),
                heads: unused(CAPACITY),
            }
        }

        fn view(&self) -> Heads<'_> {
            Heads::new(&self.hints, &self.heads)
        }
    }

    /// Heads that collide, and the greatest, which stands for unused places too.
    fn head() -> impl Strategy<Value = u64> {
        prop_oneof![4 => 0..60_u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 2 => any::<u64>()]
    }

    fn agrees(view: &Heads<'_>, model: &[u64], wanted: u64) {
        let below = model.iter().filter(|head| **head < wanted).count();
        let at_or_below = model.iter().filter(|head| **head <= wanted).count();
        assert_eq!(view.below(wanted), below, "{wanted} in {model:?}");
        assert_eq!(
            view.at_or_below(wanted, model.len()),
            at_or_below,
            "{wanted} in {model:?}"
        );
    }

    proptest! {
        #[test]
        fn searches_agree_with_a_count_while_heads_come_and_go(
            steps in prop::collection::vec((head(), any::<bool>(), any::<prop::sample::Index>()), 1..500),
            wanted in prop::collection::vec(head(), 1..8),
        ) {
            let arrays = Arrays::new();
            let view = arrays.view();
            let mut model: Vec<u64> = Vec::new();
            for (head, grows, index) in steps {
                if model.is_empty() || (grows && model.len() < CAPACITY) {
                    let at = model.partition_point(|other| *other < head);
                    view.insert(at, model.len(), head);
                    model.insert(at, head);
                } else if grows {
                    let count = index.index(model.len());
                    view.seal(count);
                    model.truncate(count);
                } else {
                    let at = index.index(model.len());
                    view.remove(at, model.len());
                    model.remove(at);
                }
                for wanted in wanted.iter().chain([&0, &u64::MAX, &head]) {
                    agrees(&view, &model, *wanted);
                }
            }
        }
    }

    #[test]
    fn a_replaced_head_is_found() {
        let arrays = Arrays::new();
        let view = arrays.view();
        let mut model: Vec<u64> = (0..CAPACITY as u64).map(|n| n * 10 + 5).collect();
        for (at, head) in model.iter().enumerate() {
            view.store(at, *head);
        }
        view.seal(CAPACITY);
        for at in 0..CAPACITY {
            model[at] += 3;
            view.replace(at, model[at]);
            for wanted in 0..=(CAPACITY as u64 * 10) {
                agrees(&view, &model, wanted);
            }
        }
    }
}
