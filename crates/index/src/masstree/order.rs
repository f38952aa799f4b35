//! The permutation of a leaf: which slots are live, and in which order.

/// Bits of a slot number.
const BITS: usize = 4;

/// The lowest bit of each of the fifteen numbers, after they have been shifted down.
const LOWEST: u64 = 0x0111_1111_1111_1111;

/// The most slots that a permutation can order: the bits of a word, without those of the count.
pub(super) const MOST: usize = 15;

/// The order of a leaf's entries in one word, which a writer publishes by one store.
///
/// The lowest four bits count the live slots. Above them are the numbers of all fifteen slots, four
/// bits each: first the live slots in the order of their slices, then the free ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// The permutation in which the first `count` slots are live, in the order of their numbers.
    pub(super) const fn first(count: usize) -> Self {
        Self(0xedcb_a987_6543_2100 | count as u64)
    }

    #[inline]
    pub(super) const fn of_word(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    pub(super) const fn word(self) -> u64 {
        self.0
    }

    /// The number of live slots.
    #[inline]
    pub(super) const fn count(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// The slot numbers without the count.
    #[inline]
    const fn numbers(self) -> u64 {
        self.0 >> BITS
    }

    #[inline]
    const fn with(numbers: u64, count: usize) -> Self {
        Self(numbers << BITS | count as u64)
    }

    /// The slot at a rank. The slot at rank `count` is the one that the next insertion takes.
    #[inline]
    pub(super) const fn slot(self, rank: usize) -> usize {
        (self.numbers() >> (BITS * rank)) as usize & 0xf
    }

    /// Whether a slot is live.
    #[inline]
    pub(super) const fn has(self, slot: usize) -> bool {
        let others = self.numbers() ^ (LOWEST * slot as u64);
        // Marks the highest bit of each number that is zero. A borrow runs upwards only, so the
        // lowest mark is right, and exactly one of the fifteen numbers is zero.
        let zeros = others.wrapping_sub(LOWEST) & !others & LOWEST << 3;
        (zeros.trailing_zeros() as usize) / BITS < self.count()
    }

    /// The permutation with the next free slot at a rank. The slot must be filled before it is
    /// published.
    #[inline]
    pub(super) const fn inserted(self, rank: usize) -> Self {
        let (numbers, count) = (self.numbers(), self.count());
        let slot = self.slot(count) as u64;
        let before = numbers & below(rank);
        let behind = numbers & below(count) & !below(rank);
        let free = numbers & !below(count + 1);
        let numbers = before | slot << (BITS * rank) | behind << BITS | free;
        Self::with(numbers, count + 1)
    }

    /// The permutation without the slot at a rank, which becomes the next free one.
    #[inline]
    pub(super) const fn removed(self, rank: usize) -> Self {
        let (numbers, count) = (self.numbers(), self.count());
        let slot = self.slot(rank) as u64;
        let before = numbers & below(rank);
        let behind = numbers & below(count) & !below(rank + 1);
        let free = numbers & !below(count);
        let numbers = before | behind >> BITS | slot << (BITS * (count - 1)) | free;
        Self::with(numbers, count - 1)
    }

    /// The permutation of the first `count` entries only.
    pub(super) const fn truncated(self, count: usize) -> Self {
        Self::with(self.numbers(), count)
    }
}

/// The bits of the numbers below a rank.
#[inline]
const fn below(rank: usize) -> u64 {
    (1 << (BITS * rank)) - 1
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live(order: Order) -> Vec<usize> {
        (0..order.count()).map(|rank| order.slot(rank)).collect()
    }

    proptest! {
        #[test]
        fn orders_change_as_lists_do(steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8), 0..200)) {
            let mut order = Order::first(0);
            let mut model: Vec<usize> = Vec::new();
            for (index, kind) in steps {
                if kind == 0 && !model.is_empty() {
                    let count = index.index(model.len() + 1);
                    order = order.truncated(count);
                    model.truncate(count);
                } else if model.len() < MOST && (kind > 1 || model.is_empty()) {
                    let rank = index.index(model.len() + 1);
                    model.insert(rank, order.slot(order.count()));
                    order = order.inserted(rank);
                } else {
                    let rank = index.index(model.len());
                    model.remove(rank);
                    order = order.removed(rank);
                }
                prop_assert_eq!(live(order), model.clone());
                let mut all: Vec<_> = (0..MOST).map(|rank| order.slot(rank)).collect();
                all.sort_unstable();
                prop_assert_eq!(all, Vec::from_iter(0..MOST));
                for slot in 0..MOST {
                    prop_assert_eq!(order.has(slot), model.contains(&slot));
                }
            }
        }
    }
}
