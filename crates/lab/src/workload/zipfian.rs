//! Skewed choices, made as in YCSB.

use rand::{Rng, RngExt};

/// Chooses among many items by Zipf's law with the exponent 0.99, the popular items scattered among
/// the others: the default of YCSB (Cooper, Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking
/// cloud serving systems with YCSB", SoCC 2010).
///
/// A rank is drawn among ten thousand million, regardless of the number of items, by the method of
/// Gray, Sundaresan, Englert, Baclawski and Weinberger ("Quickly generating billion-record
/// synthetic databases", SIGMOD 1994). A hash of the rank, modulo the number of items, is the
/// choice.
#[derive(Clone, Copy, Debug)]
pub struct ScatteredZipfian {
    items: u64,
}

/// The exponent.
const THETA: f64 = 0.99;
/// How many ranks there are.
const RANKS: f64 = 1e10;
/// The sum of 1 / i^θ for i from 1 to [`RANKS`].
const ZETA: f64 = 26.469_028_201_783_02;

impl ScatteredZipfian {
    /// Choices among `0..items`.
    #[must_use]
    pub const fn new(items: u64) -> Self {
        Self { items }
    }

    /// One choice.
    pub fn draw(&self, random: &mut impl Rng) -> u64 {
        scatter(rank(random.random())) % self.items
    }
}

/// The rank for a number drawn uniformly from 0 to 1; 0 is the most popular.
fn rank(uniform: f64) -> u64 {
    let second = 0.5_f64.powf(THETA);
    let scaled = uniform * ZETA;
    if scaled < 1.0 {
        return 0;
    }
    if scaled < 1.0 + second {
        return 1;
    }
    let eta = (1.0 - (2.0 / RANKS).powf(1.0 - THETA)) / (1.0 - (1.0 + second) / ZETA);
    // The method truncates the fraction.
    (RANKS * (eta * uniform - eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64
}

/// The hash of Fowler, Noll and Vo over the eight bytes of a number, least significant first. As in
/// YCSB, the sign is dropped.
fn scatter(rank: u64) -> u64 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let hash = rank.to_le_bytes().iter().fold(BASIS, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    });
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};
    use std::collections::HashMap;

    #[test]
    fn ranks_occur_as_zipf_says() {
        let mut random = generator(1, Purpose::Choices, 0, 0);
        let draws = 200_000;
        let mut counts = [0_u32; 3];
        for _ in 0..draws {
            if let Some(count) = counts.get_mut(rank(random.random()) as usize) {
                *count += 1;
            }
        }
        for (rank, count) in (1..).zip(counts).take(2) {
            let expected = f64::from(draws) / f64::from(rank).powf(THETA) / ZETA;
            // Six standard deviations.
            let room = 6.0 * expected.sqrt();
            assert!(
                (f64::from(count) - expected).abs() < room,
                "{rank}: {count} {expected}"
            );
        }
    }

    #[test]
    fn the_ends_of_the_interval_are_the_first_and_the_last_rank() {
        assert_eq!(rank(0.0), 0);
        assert!(rank(1.0 - f64::EPSILON) <= RANKS as u64);
    }

    #[test]
    fn popular_items_are_scattered_over_all() {
        let mut random = generator(2, Purpose::Choices, 0, 0);
        let zipfian = ScatteredZipfian::new(1_000_000);
        let mut counts = HashMap::new();
        for _ in 0..100_000 {
            *counts.entry(zipfian.draw(&mut random)).or_insert(0_u32) += 1;
        }
        let mut popular: Vec<_> = counts
            .into_iter()
            .map(|(item, count)| (count, item))
            .collect();
        popular.sort_unstable_by(|a, b| b.cmp(a));
        // 100 000 / 26.47 draws of the most popular item.
        assert!((3_300..4_300).contains(&popular[0].0), "{:?}", popular[0]);
        let items: Vec<_> = popular[..16].iter().map(|(_, item)| *item).collect();
        assert!(items.iter().any(|item| *item < 400_000));
        assert!(items.iter().any(|item| *item > 600_000));
    }
}
