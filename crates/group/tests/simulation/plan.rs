//! What one run does: chosen from its seed, so that runs differ in what they stress.

use rand::RngExt;
use rand::rngs::SmallRng;
use std::time::Duration;
use tremula_group::Config;

/// Microseconds in a millisecond.
pub(crate) const MS: u64 = 1_000;

/// A known loss of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    Tail,
    Hole,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// Of a thousand: appends and answers that get lost, answers that come twice, deliveries that
    /// are lost or come twice.
    pub(crate) lost: u32,
    pub(crate) repeated: u32,
    pub(crate) glitches: u32,
    /// The longest usual delay of a message, in microseconds; every hundredth takes fifty times as
    /// long.
    pub(crate) delay: u64,
    /// Faults of machines, by their numbers in `faults`, that happen in this run.
    pub(crate) faults: Vec<u8>,
    /// Bytes added to each effect.
    pub(crate) filler: usize,
    /// How much a clock differs from the time of the world.
    pub(crate) drift: f64,
    /// When the last fault is over.
    pub(crate) healed: u64,
    pub(crate) end: u64,
    pub(crate) loss: Option<Loss>,
}

/// The kinds of faults of machines.
const FAULTS: u8 = 8;

impl Plan {
    pub(crate) fn new(random: &mut SmallRng, loss: Option<Loss>) -> Self {
        let small = random.random_bool(0.5);
        let mut config = Config {
            window: [1, 3, 64][random.random_range(0..3)],
            batch_bytes: [100, 256 << 10][random.random_range(0..2)],
            // Records of commands go in up to five parts.
            message_bytes: if small { 160 } else { 1_000_000 },
            most_once: 200,
            ..Config::default()
        };
        config.batch_delay = Duration::from_millis(random.random_range(1..20));
        let healed = random.random_range(4_000..9_000) * MS;
        let odds = |random: &mut SmallRng| [0, 20, 200][random.random_range(0..3)];
        Self {
            nodes: random.random_range(2..=4),
            clients: random.random_range(2..=4),
            lost: odds(random),
            repeated: odds(random),
            glitches: [0, 0, 50][random.random_range(0..3)],
            delay: [300, 3 * MS, 20 * MS][random.random_range(0..3)],
            faults: (0..FAULTS).filter(|_| random.random_bool(0.5)).collect(),
            filler: if small { random.random_range(0..80) } else { 0 },
            // The margin is a fifth of the lease: enough for clocks that differ by a sixth.
            drift: [0.0, 0.03, 0.08][random.random_range(0..3)],
            healed,
            end: healed + 9_000 * MS,
            loss,
            config,
        }
    }
}
