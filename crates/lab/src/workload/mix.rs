//! The operations of `ordered_mix`: streams of operations on a half filled range of integers.

use crate::{LabError, measure::Span};
use rand::{Rng, RngExt, seq::index};
use std::{fmt, str::FromStr};

/// The number of operations in one thread's stream, four bytes each. A thread reads a stream of 1
/// MiB in order, so the processor prefetches it, and most of the cache is left to the index.
pub const STREAM_LENGTH: usize = 1 << 18;

/// How many `next` steps a sequence makes, unless the table ends before.
pub const SEQUENCE_STEPS: u32 = 1000;

/// The largest key range of a stream: a key has 30 bits in an [`Operation`].
pub const MOST_RANGE: u32 = 1 << 30;

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Look a key up.
    Lookup,
    /// Insert a key, or replace its value.
    Insert,
    /// Remove a key.
    Remove,
    /// Step to the next key, [`SEQUENCE_STEPS`] times or as often as the mix says.
    Sequence,
}

/// One operation in four bytes: the kind in the two low bits, the key above.
///
/// The Erlang contestant reads the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(u32);

impl Operation {
    /// An operation on a key below [`MOST_RANGE`].
    #[must_use]
    pub const fn new(kind: Kind, key: u32) -> Self {
        debug_assert!(key < MOST_RANGE);
        Self(key << 2 | kind as u32)
    }

    /// What it does.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Lookup,
            1 => Kind::Insert,
            2 => Kind::Remove,
            _ => Kind::Sequence,
        }
    }

    /// The key, before rotation.
    #[inline]
    #[must_use]
    pub const fn key(self) -> u32 {
        self.0 >> 2
    }

    /// The four bytes as another program reads them: a little-endian word.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// The share of each kind of operation, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Inserts.
    pub insert: u32,
    /// Removes.
    pub remove: u32,
    /// Lookups.
    pub lookup: u32,
    /// Sequences of `next`.
    pub sequence: u32,
}

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Updates only: half insert, half remove.
    Update100,
    /// Half updates, half lookups.
    Update50,
    /// A fifth updates, the rest lookups.
    Update20,
    /// One in a hundred an update, the rest lookups.
    Update1,
    /// Lookups only.
    Lookup,
    /// 10 % insert, 10 % remove, 40 % lookup, 40 % sequences of [`SEQUENCE_STEPS`] `next`.
    NextSeq,
}

impl Mix {
    /// Every mix.
    pub const ALL: [Self; 6] = [
        Self::Update100,
        Self::Update50,
        Self::Update20,
        Self::Update1,
        Self::Lookup,
        Self::NextSeq,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Update100 => "update100",
            Self::Update50 => "update50",
            Self::Update20 => "update20",
            Self::Update1 => "update1",
            Self::Lookup => "lookup",
            Self::NextSeq => "nextseq",
        }
    }

    /// The share of each kind of operation.
    #[must_use]
    pub const fn shares(self) -> Shares {
        let (insert, remove, sequence) = match self {
            Self::Update100 => (500, 500, 0),
            Self::Update50 => (250, 250, 0),
            Self::Update20 => (100, 100, 0),
            Self::Update1 => (5, 5, 0),
            Self::Lookup => (0, 0, 0),
            Self::NextSeq => (100, 100, 400),
        };
        Shares {
            insert,
            remove,
            lookup: 1000 - insert - remove - sequence,
            sequence,
        }
    }
}

impl Shares {
    fn draw(self, random: &mut impl Rng) -> Kind {
        let mut ticket = random.random_range(0..1000);
        for (kind, share) in [
            (Kind::Insert, self.insert),
            (Kind::Remove, self.remove),
            (Kind::Sequence, self.sequence),
        ] {
            if ticket < share {
                return kind;
            }
            ticket -= share;
        }
        Kind::Lookup
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Mix {
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

/// One thread's operations: kinds as the shares say, keys uniform below `range`.
#[must_use]
pub fn stream(shares: Shares, range: u32, length: usize, random: &mut impl Rng) -> Vec<Operation> {
    (0..length)
        .map(|_| Operation::new(shares.draw(random), random.random_range(0..range)))
        .collect()
}

/// How far the keys of a stream are rotated from one pass over it to the next.
///
/// If a stream were simply repeated, each pass would do the same to each key: a key that occurs
/// once would be inserted again and again, and most updates would change nothing. Rotated by the
/// golden part of the range, each pass meets keys in states left by unrelated operations, and about
/// half of all updates change something, as in an endless stream.
#[must_use]
pub const fn rotation_step(range: u32) -> u32 {
    // 2^32 divided by the golden ratio.
    const GOLDEN: u64 = 0x9E37_79B9;
    let step = (range as u64 * GOLDEN) >> 32;
    if step == 0 { 1 } else { step as u32 }
}

/// `key` rotated by `offset` within `range`; both lie below it.
#[inline]
#[must_use]
pub const fn rotate(key: u32, offset: u32, range: u32) -> u32 {
    let sum = key + offset;
    if sum >= range { sum - range } else { sum }
}

/// Half of the keys below `range`, chosen at random, in random order.
#[must_use]
pub fn random_half(range: u32, random: &mut impl Rng) -> Vec<u32> {
    index::sample(random, range as usize, range as usize / 2)
        .into_iter()
        .map(|key| u32::try_from(key).expect("the key lies below a u32"))
        .collect()
}

/// Operation streams on a half filled table.
#[derive(Clone, Debug)]
pub struct MixJob {
    /// Keys lie below this.
    pub range: u32,
    /// The initial keys, in the order in which one thread inserts them.
    pub prefill: Vec<u32>,
    /// A stream for each thread; all have the same length.
    pub streams: Vec<Vec<Operation>>,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};
    use std::collections::HashSet;

    fn some_stream(mix: Mix, seed: u64, thread: usize) -> Vec<Operation> {
        let mut random = generator(seed, Purpose::Stream, 0, thread);
        stream(mix.shares(), 1 << 20, 100_000, &mut random)
    }

    #[test]
    fn an_operation_keeps_its_kind_and_key() {
        for kind in [Kind::Lookup, Kind::Insert, Kind::Remove, Kind::Sequence] {
            for key in [0, 1, 12345, MOST_RANGE - 1] {
                let operation = Operation::new(kind, key);
                assert_eq!((operation.kind(), operation.key()), (kind, key));
            }
        }
        assert_eq!(Operation::new(Kind::Remove, 3).to_bytes(), [14, 0, 0, 0]);
    }

    #[test]
    fn streams_have_the_promised_shares() {
        for mix in Mix::ALL {
            let stream = some_stream(mix, 1, 0);
            let shares = mix.shares();
            for (kind, share) in [
                (Kind::Insert, shares.insert),
                (Kind::Remove, shares.remove),
                (Kind::Lookup, shares.lookup),
                (Kind::Sequence, shares.sequence),
            ] {
                let count = stream.iter().filter(|o| o.kind() == kind).count() as f64;
                let expected = stream.len() as f64 * f64::from(share) / 1000.0;
                // Six standard deviations of a binomial count.
                let room = 6.0 * (expected * (1.0 - f64::from(share) / 1000.0)).sqrt();
                assert!((count - expected).abs() <= room, "{mix} {kind:?} {count}");
            }
        }
    }

    #[test]
    fn keys_are_uniform_over_the_range() {
        let stream = some_stream(Mix::Update100, 1, 0);
        let mut counts = [0.0_f64; 16];
        for operation in &stream {
            counts[(operation.key() >> 16) as usize] += 1.0;
        }
        let expected = stream.len() as f64 / 16.0;
        assert!(
            counts
                .iter()
                .all(|c| (c - expected).abs() < 6.0 * expected.sqrt())
        );
    }

    #[test]
    fn a_seed_reproduces_and_everything_else_differs() {
        let stream = some_stream(Mix::Update50, 7, 0);
        assert_eq!(stream, some_stream(Mix::Update50, 7, 0));
        assert_ne!(stream, some_stream(Mix::Update50, 8, 0));
        assert_ne!(stream, some_stream(Mix::Update50, 7, 1));
    }

    #[test]
    fn a_random_half_is_half_without_duplicates() {
        let half = random_half(1001, &mut generator(1, Purpose::Prefill, 0, 0));
        assert_eq!(half.len(), 500);
        assert_eq!(half.iter().collect::<HashSet<_>>().len(), 500);
        assert!(half.iter().all(|key| *key < 1001));
    }

    #[test]
    fn rotation_is_a_permutation() {
        for range in [1, 2, 3, 1000, MOST_RANGE] {
            let step = rotation_step(range);
            assert!(step >= 1 && step <= range);
            assert_eq!(rotate(range - 1, range - 1, range), range.saturating_sub(2));
        }
        let rotated: HashSet<_> = (0..1000).map(|key| rotate(key, 617, 1000)).collect();
        assert_eq!(rotated.len(), 1000);
    }

    /// Fails if updates stop changing anything when a stream is repeated: without rotation less
    /// than a third of them would change something.
    #[test]
    fn half_of_all_updates_change_something_in_every_pass() {
        let range = 1 << 17;
        let mut random = generator(3, Purpose::Stream, 0, 0);
        let stream = stream(Mix::Update100.shares(), range, 1 << 17, &mut random);
        let mut present = vec![false; range as usize];
        for key in random_half(range, &mut random) {
            present[key as usize] = true;
        }
        let mut offset = 0;
        for pass in 0..8 {
            let mut changes = 0_u32;
            for operation in &stream {
                let place = &mut present[rotate(operation.key(), offset, range) as usize];
                let insert = operation.kind() == Kind::Insert;
                changes += u32::from(*place != insert);
                *place = insert;
            }
            let share = f64::from(changes) / stream.len() as f64;
            assert!((0.48..0.52).contains(&share), "pass {pass}: {share}");
            offset = rotate(offset, rotation_step(range), range);
        }
    }
}
