//! A sorted array of heads, with hints: a search takes two steps.

use super::prefetch;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// The number of heads in a *segment*, which are compared together: two cache lines of them.
#[cfg(not(any(loom, shuttle)))]
pub const STRIDE: usize = 16;
#[cfg(any(loom, shuttle))]
pub const STRIDE: usize = 2;

/// The content of a place without an entry. No search counts it, because it is not below any head.
const UNUSED: u64 = u64::MAX;

/// The ascending heads of a node, and its *hints*: copies of the first head of each segment except
/// the first, kept together.
///
/// A binary search of 240 heads touches five cache lines, each of which is known only after the
/// previous one has been read. Here the hints, which lie beside the node's header, give the
/// segment, and the segment gives the place, so a search waits twice. Neither step has a branch to
/// mispredict: it compares all heads that may matter and adds up the outcomes.
///
/// All accesses are Relaxed: the node's [`VersionLock`](tremula_sync::VersionLock) guards the
/// arrays. An optimistic reader may get any place up to the capacity, and validates.
pub(crate) struct Heads<'a> {
    hints: &'a [AtomicU64],
    heads: &'a [AtomicU64],
}

/// The number of heads in a group. The greatest of a group is compared before the others.
pub const GROUP: usize = 4;

/// A head in a node.
pub trait Head {
    /// The head; unvalidated if an optimistic reader loads it.
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

/// The number of `heads` below `head`. They are ascending, and are whole groups, or less than one.
///
/// First the greatest head of each group is compared, then the heads of one group: of sixteen
/// heads, three and then four. That is faster than sixteen comparisons, and than the four of a
/// binary search, each of which waits for the one before.
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
    /// The number of hints for `capacity` heads, a multiple of [`STRIDE`]: whole groups, or less
    /// than one.
    pub(crate) const fn hints_of(capacity: usize) -> usize {
        let hints = capacity / STRIDE - 1;
        if hints < GROUP {
            hints
        } else {
            hints.next_multiple_of(GROUP)
        }
    }

    /// A view of a node's two arrays. Both were filled by [`unused`](Self::unused) at first, and
    /// only the methods of this type have written them since.
    #[inline]
    pub(crate) fn new(hints: &'a [AtomicU64], heads: &'a [AtomicU64]) -> Self {
        debug_assert!(heads.len().is_multiple_of(STRIDE));
        debug_assert_eq!(hints.len(), Self::hints_of(heads.len()));
        Self { hints, heads }
    }

    /// The initial content of the arrays.
    #[inline]
    pub(crate) fn unused() -> AtomicU64 {
        AtomicU64::new(UNUSED)
    }

    #[inline]
    pub(crate) fn load(&self, at: usize) -> u64 {
        self.heads[at].load(Ordering::Relaxed)
    }

    /// The first step of [`below`](Self::below): finds the segment.
    #[inline]
    pub(crate) fn segment(&self, head: u64) -> usize {
        count_below(self.hints, head)
    }

    #[inline]
    pub(crate) fn start(segment: usize) -> usize {
        segment * STRIDE
    }

    /// The address of a place; for prefetches only.
    #[inline]
    pub(crate) fn address(&self, at: usize) -> *const AtomicU64 {
        self.heads.as_ptr().wrapping_add(at)
    }

    #[inline]
    pub(crate) fn prefetch(&self, segment: usize) {
        let start = self.address(Self::start(segment));
        prefetch(start);
        prefetch(start.wrapping_add(STRIDE / 2));
    }

    /// The second step of [`below`](Self::below): finds the place.
    #[inline]
    pub(crate) fn below_in(&self, segment: usize, head: u64) -> usize {
        let start = Self::start(segment);
        start + count_below(&self.heads[start..start + STRIDE], head)
    }

    /// The number of heads below `head`, which is the place of the first that is not.
    #[inline]
    pub(crate) fn below(&self, head: u64) -> usize {
        self.below_in(self.segment(head), head)
    }

    /// The number of heads at or below `head`, if there are `count` in all.
    #[inline]
    pub(crate) fn at_or_below(&self, head: u64, count: usize) -> usize {
        match head.checked_add(1) {
            Some(above) => self.below(above),
            None => count,
        }
    }

    /// Inserts a head at a place among the first `count`. Writes only the hints that change: an
    /// insertion at the end leaves the cache lines of the hints alone.
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

    /// Copies to the hints those heads in the places `from..to` that begin a segment.
    #[inline]
    pub(crate) fn mend_hints(&self, from: usize, to: usize) {
        let mut segment = from.div_ceil(STRIDE).max(1);
        while Self::start(segment) < to {
            let head = self.load(Self::start(segment));
            self.hints[segment - 1].store(head, Ordering::Relaxed);
            segment += 1;
        }
    }

    /// Writes a head without the hints. The caller then calls [`seal`](Self::seal).
    #[inline]
    pub(crate) fn store(&self, at: usize, head: u64) {
        self.heads[at].store(head, Ordering::Relaxed);
    }

    /// Ends a change of many heads: marks all places from `count` on as unused, and copies all
    /// hints.
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

/// Moves the elements of a node's array after `at`, up to `count`, down by one.
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

    /// Heads that collide, and the greatest, which is also the content of unused places.
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
