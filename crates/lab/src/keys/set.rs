//! The key sets by name, and how each is made.

use super::{KeyList, Keys, email::Addresses};
use crate::{
    LabError,
    random::{self, Purpose, generator},
};
use rand::RngExt;
use std::{collections::HashSet, fmt, str::FromStr};

/// The most keys of a set: less than the 54 bits of a time stamp distinguish, and more than fits
/// into a machine's memory.
pub const MOST_KEYS: u64 = 1 << 40;

/// A set of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeySet {
    /// 0, 1, 2, …; each thread inserts a contiguous part in ascending order.
    MonoInt,
    /// Random 64-bit integers.
    RandInt,
    /// E-mail addresses.
    Email,
    /// Time stamps with the thread's number in their last bits; they ascend in every thread.
    Append,
}

/// How many low bits of a time-stamp key hold the thread's number: enough for
/// [`Settings::MOST_THREADS`](crate::Settings::MOST_THREADS).
const THREAD_BITS: u32 = 10;

/// The distance of a thread's consecutive time stamps where keys are made in advance: nanoseconds,
/// as if each thread inserted four million keys a second.
const STAMP_STEP: u64 = 250;

impl KeySet {
    /// Every key set.
    pub const ALL: [Self; 4] = [Self::MonoInt, Self::RandInt, Self::Email, Self::Append];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MonoInt => "mono_int",
            Self::RandInt => "rand_int",
            Self::Email => "email",
            Self::Append => "append",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::MonoInt => "0, 1, 2, …; each thread a contiguous part, ascending",
            Self::RandInt => "random 64-bit integers",
            Self::Email => "e-mail addresses, drawn from real lists of names and domains",
            Self::Append => "time stamps that end in the thread's number; all threads append",
        }
    }

    /// The default number of keys: what repetitions of the paper's comparison on a small machine
    /// usually take.
    #[must_use]
    pub const fn default_keys(self) -> u64 {
        match self {
            Self::Email => 2_000_000,
            _ => 5_000_000,
        }
    }

    /// Whether the keys are integers.
    #[must_use]
    pub const fn is_integers(self) -> bool {
        !matches!(self, Self::Email)
    }

    /// Makes `loaded` keys for `threads` threads, and `fresh` more. The same seed and run give the
    /// same list; all keys are different.
    ///
    /// # Panics
    ///
    /// There are more keys than memory can hold, or more than [`MOST_KEYS`].
    #[must_use]
    pub fn make(
        self,
        loaded: u64,
        fresh: u64,
        threads: usize,
        seed: u64,
        run: usize,
    ) -> Keys<KeyList<u64>, KeyList<String>> {
        let all = loaded + fresh;
        assert!(all <= MOST_KEYS, "{all} keys are too many");
        let split = |mut keys: Vec<u64>| {
            let fresh = keys.split_off(usize::try_from(loaded).expect("they are in memory"));
            Keys::Integers(KeyList {
                loaded: keys,
                fresh,
            })
        };
        match self {
            Self::MonoInt => split((0..all).collect()),
            Self::RandInt => {
                let mut random = generator(seed, Purpose::Keys, run, 0);
                let start: u64 = random.random();
                split((0..all).map(|i| scatter(start.wrapping_add(i))).collect())
            }
            Self::Append => Keys::Integers(KeyList {
                loaded: stamps(0, loaded, threads),
                fresh: stamps(loaded, fresh, threads),
            }),
            Self::Email => {
                let mut addresses = different_addresses(all, seed, run);
                let fresh =
                    addresses.split_off(usize::try_from(loaded).expect("they are in memory"));
                Keys::Texts(KeyList {
                    loaded: addresses,
                    fresh,
                })
            }
        }
    }
}

/// A time-stamp key: nanoseconds since some beginning, then the thread.
#[inline]
#[must_use]
pub(crate) const fn stamped(nanoseconds: u64, thread: usize) -> u64 {
    nanoseconds << THREAD_BITS | thread as u64
}

/// Time-stamp keys as threads that start together would make them, after they have made `before`
/// keys in all.
fn stamps(before: u64, count: u64, threads: usize) -> Vec<u64> {
    // Rounded up, so that the last earlier stamp of every thread lies below.
    let earlier = before.div_ceil(threads as u64);
    let of_thread = |thread| {
        let part = random::part(count, thread, threads);
        (0..part.end - part.start).map(move |i| stamped((earlier + i) * STAMP_STEP, thread))
    };
    (0..threads).flat_map(of_thread).collect()
}

/// A permutation of the 64-bit integers that looks random: the finalizer of SplitMix64 (Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). It turns consecutive
/// numbers into random-looking keys that are certainly different, which drawn keys are not.
const fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Addresses in the order in which they are first drawn. One that was drawn before is drawn again.
fn different_addresses(count: u64, seed: u64, run: usize) -> Vec<String> {
    let mut random = generator(seed, Purpose::Keys, run, 0);
    let addresses = Addresses::new();
    let count = usize::try_from(count).expect("they are in memory");
    let mut seen = HashSet::with_capacity(count);
    let mut list = Vec::with_capacity(count);
    while list.len() < count {
        let address = addresses.draw(&mut random);
        if !seen.contains(&address) {
            seen.insert(address.clone());
            list.push(address);
        }
    }
    list
}

impl fmt::Display for KeySet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for KeySet {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|set| set.name() == name)
            .ok_or_else(|| LabError::UnknownKeySet {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Key;

    fn integers(set: KeySet, loaded: u64, fresh: u64, threads: usize, seed: u64) -> KeyList<u64> {
        match set.make(loaded, fresh, threads, seed, 0) {
            Keys::Integers(list) => list,
            Keys::Texts(_) => panic!("{set} are integers"),
        }
    }

    fn texts(loaded: u64, fresh: u64, seed: u64) -> KeyList<String> {
        match KeySet::Email.make(loaded, fresh, 2, seed, 0) {
            Keys::Texts(list) => list,
            Keys::Integers(_) => panic!("addresses are texts"),
        }
    }

    fn all_different<K: Key + std::hash::Hash>(list: &KeyList<K>) {
        let all: HashSet<_> = list.loaded.iter().chain(&list.fresh).collect();
        assert_eq!(all.len(), list.loaded.len() + list.fresh.len());
    }

    #[test]
    fn lists_have_the_asked_lengths_and_no_key_twice() {
        for set in KeySet::ALL {
            match set.make(3001, 70, 3, 5, 0) {
                Keys::Integers(list) => {
                    assert_eq!((list.loaded.len(), list.fresh.len()), (3001, 70));
                    all_different(&list);
                }
                Keys::Texts(list) => {
                    assert_eq!((list.loaded.len(), list.fresh.len()), (3001, 70));
                    all_different(&list);
                }
            }
        }
    }

    #[test]
    fn a_seed_reproduces_and_another_differs() {
        for set in [KeySet::RandInt, KeySet::Append] {
            let keys = |seed| integers(set, 500, 0, 2, seed).loaded;
            assert_eq!(keys(1), keys(1));
            assert_eq!(keys(1) == keys(2), set == KeySet::Append);
        }
        assert_eq!(texts(500, 0, 1).loaded, texts(500, 0, 1).loaded);
        assert_ne!(texts(500, 0, 1).loaded, texts(500, 0, 2).loaded);
    }

    #[test]
    fn random_integers_are_spread_evenly() {
        let mut counts = [0.0_f64; 16];
        for key in integers(KeySet::RandInt, 160_000, 0, 1, 9).loaded {
            counts[(key >> 60) as usize] += 1.0;
        }
        assert!(counts.iter().all(|c| (c - 1e4).abs() < 600.0), "{counts:?}");
    }

    /// Fails if an appended key would not go to the end of the table, whichever thread inserts it.
    #[test]
    fn time_stamps_ascend_in_each_thread_and_interleave_between_them() {
        let list = integers(KeySet::Append, 10, 7, 3, 1);
        let part = |keys: &[u64], thread| {
            let part = random::part(keys.len() as u64, thread, 3);
            keys[part.start as usize..part.end as usize].to_vec()
        };
        let mut last = 0;
        for thread in 0..3 {
            let keys = part(&list.loaded, thread);
            assert!(keys.is_sorted());
            assert_eq!(keys[0], thread as u64);
            last = last.max(keys[keys.len() - 1]);
            assert!(part(&list.fresh, thread).is_sorted());
        }
        assert!(list.fresh.iter().all(|key| *key > last));
    }

    #[test]
    fn names_read_back() {
        for set in KeySet::ALL {
            assert_eq!(set.name().parse::<KeySet>().unwrap(), set);
        }
        let error = "emails".parse::<KeySet>().unwrap_err().to_string();
        assert!(
            error.contains("'emails'") && error.contains("append"),
            "{error}"
        );
    }
}
