//! The permutation of a leaf: which of its slots are live, and in what order.

/// Bits of a number of a slot.
const BITS: usize = 4;

/// The lowest bit of each of the fifteen numbers, once they have been shifted down.
const LOWEST: u64 = 0x0111_1111_1111_1111;

/// The greatest number of slots that a permutation orders: what is left of a word beside the
/// count.
pub(super) const MOST: usize = 15;

/// The order of a leaf's entries in one word, which is published by one store.
///
/// The lowest four bits count the live slots. Behind them are the numbers of all fifteen, four
/// bits each: first those of the live ones, in the order of their slices, then the free ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order(u64);

impl Order {
    /// The first `count` slots, in the order in which they are.
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

    /// How many slots are live.
    #[inline]
    pub(super) const fn count(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// The numbers alone.
    #[inline]
    const fn numbers(self) -> u64 {
        self.0 >> BITS
    }

    #[inline]
    const fn with(numbers: u64, count: usize) -> Self {
        Self(numbers << BITS | count as u64)
    }

    /// The slot of this rank. At the count it is the one that the next insertion takes.
    #[inline]
    pub(super) const fn slot(self, rank: usize) -> usize {
        (self.numbers() >> (BITS * rank)) as usize & 0xf
    }

    /// Whether a slot is live.
    #[inline]
    pub(super) const fn has(self, slot: usize) -> bool {
        let others = self.numbers() ^ (LOWEST * slot as u64);
        // The highest bit of each number that is zero; a borrow runs upwards only, so the lowest
        // mark is right, and there is but one zero among the fifteen.
        let zeros = others.wrapping_sub(LOWEST) & !others & LOWEST << 3;
        (zeros.trailing_zeros() as usize) / BITS < self.count()
    }

    /// The order with the next free slot at a rank, before which it has to be filled.
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

    /// The order without the slot of a rank, which becomes the next free one.
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

    /// The first entries alone.
    pub(super) const fn truncated(self, count: usize) -> Self {
        Self::with(self.numbers(), count)
    }
}

/// The bits of the first numbers.
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
