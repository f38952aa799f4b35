//! Random numbers that a seed reproduces everywhere, and the division of a whole among threads.

use rand::{SeedableRng, rngs::StdRng};

/// What a generator is for. Generators for different purposes, runs and threads are independent of
/// each other, though they come from one seed.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Which keys are present initially.
    Prefill = 1,
    /// The operations of one thread.
    Stream = 2,
    /// Keys to insert.
    Keys = 3,
    /// The keys of one thread's operations.
    Choices = 4,
    /// The runs that an interval is resampled from.
    Resamples = 5,
    /// The order in which contestants take their turns.
    Turns = 6,
}

/// The only source of random numbers in the lab: a generator for a purpose, a run and a thread.
#[must_use]
pub fn generator(seed: u64, purpose: Purpose, run: usize, thread: usize) -> StdRng {
    let mut bytes = [0; 32];
    let words = [seed, purpose as u64, run as u64, thread as u64];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    StdRng::from_seed(bytes)
}

/// The part of `0..count` that belongs to `thread` of `threads`: contiguous parts, in order.
#[must_use]
pub fn part(count: u64, thread: usize, threads: usize) -> std::ops::Range<u64> {
    let bound = |thread: usize| {
        let bound = u128::from(count) * thread as u128 / threads as u128;
        u64::try_from(bound).expect("a part of a u64 is a u64")
    };
    bound(thread)..bound(thread + 1)
}

/// The part of a list that belongs to `thread` of `threads`, as [`part`] divides it.
#[must_use]
pub fn part_of<T>(list: &[T], thread: usize, threads: usize) -> &[T] {
    let part = part(list.len() as u64, thread, threads);
    // A part lies within the list, which is in memory.
    &list[part.start as usize..part.end as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    #[test]
    fn generators_differ_by_all_that_they_are_for() {
        let first =
            |seed, purpose, run, thread| -> u64 { generator(seed, purpose, run, thread).random() };
        let one = first(7, Purpose::Keys, 0, 0);
        assert_eq!(one, first(7, Purpose::Keys, 0, 0));
        assert_ne!(one, first(8, Purpose::Keys, 0, 0));
        assert_ne!(one, first(7, Purpose::Prefill, 0, 0));
        assert_ne!(one, first(7, Purpose::Keys, 1, 0));
        assert_ne!(one, first(7, Purpose::Keys, 0, 1));
    }

    #[test]
    fn parts_cover_everything_once() {
        for (count, threads) in [(10, 3), (0, 2), (7, 7), (2, 5), (u64::MAX, 3)] {
            let mut end = 0;
            for thread in 0..threads {
                let part = part(count, thread, threads);
                assert_eq!(part.start, end);
                end = part.end;
            }
            assert_eq!(end, count);
        }
        let list = [1, 2, 3, 4, 5, 6, 7];
        let parts: Vec<_> = (0..3)
            .flat_map(|thread| part_of(&list, thread, 3))
            .collect();
        assert!(parts.into_iter().eq(&list));
    }
}
