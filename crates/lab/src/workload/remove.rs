//! The removals of `remove`.

use rand::{Rng, seq::SliceRandom};

/// A table is filled, and then all of its keys are removed in another order.
#[derive(Clone, Debug)]
pub struct RemoveJob {
    /// What the table is filled with; each thread inserts its part.
    pub keys: Vec<u64>,
    /// The same keys in the order of removal; each thread removes its part.
    pub order: Vec<u64>,
    /// How many threads fill the table and empty it.
    pub threads: usize,
}

impl RemoveJob {
    /// Removes these keys in a random order.
    #[must_use]
    pub fn new(keys: Vec<u64>, threads: usize, random: &mut impl Rng) -> Self {
        let mut order = keys.clone();
        order.shuffle(random);
        Self {
            keys,
            order,
            threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};

    #[test]
    fn all_keys_are_removed_in_another_order() {
        let keys: Vec<u64> = (0..1000).collect();
        let random = &mut generator(1, Purpose::Choices, 0, 0);
        let mut job = RemoveJob::new(keys.clone(), 2, random);
        assert_ne!(job.order, keys);
        job.order.sort_unstable();
        assert_eq!(job.order, keys);
    }
}
