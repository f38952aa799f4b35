//! The workloads of the comparison of indexes by Wang, Pavlo, Lim, Leis, Zhang, Kaminsky and
//! Andersen ("Building a Bw-Tree takes more than just buzz words", SIGMOD 2018), taken from YCSB.

use super::ScatteredZipfian;
use crate::{
    LabError,
    keys::{Key, KeyList},
    measure::Span,
};
use rand::{Rng, RngExt};
use std::{fmt, str::FromStr};

/// The most entries that a scan visits.
pub const LONGEST_SCAN: u8 = 100;

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YcsbMix {
    /// Insert-only: fills an empty table. It ends when all keys are inserted, not at a given time.
    Insert,
    /// Read-only, YCSB's workload C.
    C,
    /// Half reads, half updates of present keys: YCSB's workload A.
    A,
    /// 95 % scans of 1 to [`LONGEST_SCAN`] entries, 5 % inserts of new keys: YCSB's workload E.
    E,
}

impl YcsbMix {
    /// Every mix.
    pub const ALL: [Self; 4] = [Self::Insert, Self::C, Self::A, Self::E];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::C => "c",
            Self::A => "a",
            Self::E => "e",
        }
    }
}

impl fmt::Display for YcsbMix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for YcsbMix {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|mix| mix.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// How operations choose among the present keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// A few keys often, most rarely: [`ScatteredZipfian`].
    Zipfian,
    /// All keys equally often.
    Uniform,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: [Self; 2] = [Self::Zipfian, Self::Uniform];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zipfian => "zipfian",
            Self::Uniform => "uniform",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Distribution {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|distribution| distribution.name() == name)
            .ok_or_else(|| LabError::UnknownDistribution {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// What one operation does, in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(u8);

impl Action {
    /// Look the key up.
    pub const READ: Self = Self(0);
    /// Replace the value of the key.
    pub const UPDATE: Self = Self(254);
    /// Insert the thread's next fresh key; the operation's own key is not used.
    pub const INSERT: Self = Self(255);

    /// Visit this many entries from the key on: at least one, at most [`LONGEST_SCAN`].
    #[must_use]
    pub const fn scan(entries: u8) -> Self {
        debug_assert!(1 <= entries && entries <= LONGEST_SCAN);
        Self(entries)
    }

    /// How many entries are visited, if it is a scan.
    #[inline]
    #[must_use]
    pub const fn scanned(self) -> Option<u8> {
        if 1 <= self.0 && self.0 <= LONGEST_SCAN {
            Some(self.0)
        } else {
            None
        }
    }
}

/// The actions of one thread in a mix, one for each key of its stream.
///
/// # Panics
///
/// The mix is [`YcsbMix::Insert`], which has no stream.
#[must_use]
pub fn actions(mix: YcsbMix, length: usize, random: &mut impl Rng) -> Vec<Action> {
    (0..length).map(|_| draw_action(mix, random)).collect()
}

fn draw_action(mix: YcsbMix, random: &mut impl Rng) -> Action {
    match mix {
        YcsbMix::Insert => panic!("insert-only has no stream"),
        YcsbMix::C => Action::READ,
        YcsbMix::A if random.random_bool(0.5) => Action::READ,
        YcsbMix::A => Action::UPDATE,
        YcsbMix::E if random.random_bool(0.05) => Action::INSERT,
        YcsbMix::E => Action::scan(random.random_range(1..=LONGEST_SCAN)),
    }
}

/// The keys of one thread's stream, copied so that they are contiguous in memory: an index into the
/// list would add a cache miss to each operation.
#[must_use]
pub fn draw_keys<K: Key>(
    keys: &[K],
    distribution: Distribution,
    length: usize,
    random: &mut impl Rng,
) -> Vec<K> {
    let zipfian = ScatteredZipfian::new(keys.len() as u64);
    let mut place = || match distribution {
        Distribution::Zipfian => usize::try_from(zipfian.draw(random)).expect("below the length"),
        Distribution::Uniform => random.random_range(0..keys.len()),
    };
    (0..length).map(|_| keys[place()].clone()).collect()
}

/// How many operations the stream of each of `threads` threads has, on such keys.
///
/// It is long enough not to repeat within the usual time of a run, because a repetition would find
/// its keys in the cache. It is short enough that making it takes less time than that, and no more
/// than 128 MB.
#[must_use]
pub fn stream_length<K: Key>(threads: usize, keys: &KeyList<K>) -> usize {
    const ALL_BYTES: usize = 128 << 20;
    // It need not be longer than choosing all keys many times takes.
    const TIMES: usize = 8;
    // Many threads on few cores do not get far in their streams.
    const LEAST: usize = 1 << 14;
    let bytes = size_of::<K>() + keys.mean_length() as usize;
    let all = (ALL_BYTES / bytes).min(keys.loaded.len() * TIMES);
    (all / threads).max(LEAST)
}

/// A table is filled, then operation streams run on it, one after the other.
#[derive(Clone, Debug)]
pub struct YcsbJob<K> {
    /// What the table is filled with, and what is inserted afterwards.
    pub keys: KeyList<K>,
    /// How many threads fill the table and work on it.
    pub threads: usize,
    /// Whether the filling counts as the first measurement.
    pub insert_counts: bool,
    /// For each distribution, the keys of each thread's stream.
    pub streams: Vec<(Distribution, Vec<Vec<K>>)>,
    /// What is measured on the filled table.
    pub phases: Vec<Phase>,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

/// A mix on a filled table.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Which of [`YcsbJob::streams`] has the keys.
    pub distribution: Distribution,
    /// Each thread's actions, one for each key of its stream.
    pub actions: Vec<Vec<Action>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};

    fn count(mix: YcsbMix, of: impl Fn(Action) -> bool) -> usize {
        let mut random = generator(4, Purpose::Stream, 0, 0);
        let actions = actions(mix, 100_000, &mut random);
        actions.into_iter().filter(|action| of(*action)).count()
    }

    #[test]
    fn mixes_have_the_promised_shares() {
        assert_eq!(count(YcsbMix::C, |action| action == Action::READ), 100_000);
        let updates = count(YcsbMix::A, |action| action == Action::UPDATE);
        let reads = count(YcsbMix::A, |action| action == Action::READ);
        assert_eq!(updates + reads, 100_000);
        assert!((49_000..51_000).contains(&updates), "{updates}");
        let inserts = count(YcsbMix::E, |action| action == Action::INSERT);
        let scans = count(YcsbMix::E, |action| action.scanned().is_some());
        assert_eq!(inserts + scans, 100_000);
        assert!((4_500..5_500).contains(&inserts), "{inserts}");
    }

    #[test]
    fn scans_are_of_1_to_100_entries_uniformly() {
        let mut random = generator(4, Purpose::Stream, 0, 1);
        let lengths: Vec<_> = actions(YcsbMix::E, 100_000, &mut random)
            .into_iter()
            .filter_map(Action::scanned)
            .collect();
        assert_eq!(lengths.iter().min(), Some(&1));
        assert_eq!(lengths.iter().max(), Some(&LONGEST_SCAN));
        let sum: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
        let mean = sum as f64 / lengths.len() as f64;
        assert!((50.0..51.0).contains(&mean), "{mean}");
    }

    #[test]
    fn uniform_keys_are_spread_and_zipfian_keys_are_not() {
        let keys: Vec<u64> = (0..1000).collect();
        let most = |distribution| {
            let mut random = generator(4, Purpose::Choices, 0, 0);
            let mut counts = vec![0_u32; keys.len()];
            for key in draw_keys(&keys, distribution, 100_000, &mut random) {
                counts[key as usize] += 1;
            }
            counts.into_iter().max().unwrap()
        };
        assert!(most(Distribution::Uniform) < 200);
        assert!(most(Distribution::Zipfian) > 3000);
    }

    #[test]
    fn names_read_back() {
        for mix in YcsbMix::ALL {
            assert_eq!(mix.name().parse::<YcsbMix>().unwrap(), mix);
        }
        for distribution in Distribution::ALL {
            assert_eq!(
                distribution.name().parse::<Distribution>().unwrap(),
                distribution
            );
        }
        let error = "zipf".parse::<Distribution>().unwrap_err().to_string();
        assert!(
            error.contains("'zipf'") && error.contains("uniform"),
            "{error}"
        );
    }
}
