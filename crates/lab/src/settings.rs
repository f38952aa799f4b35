//! What the user chose for a run.

use crate::{
    keys::KeySet,
    measure::Span,
    memory::FillCommand,
    workload::{Distribution, MessageKind},
};
use std::time::Duration;

/// Seconds to make a key, to insert it, and to look it up once at the end: most tables take less
/// than a microsecond. Finished measurements correct the estimate.
const SECONDS_A_KEY: f64 = 1e-6;

/// Seconds around each measurement: starting threads, and two readings of how busy the machine is.
pub(crate) const SECONDS_BESIDE: f64 = 0.02;

/// The choices that all experiments share; `None` leaves a choice to the experiment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Numbers of threads, each measured on its own; each at least 1.
    pub threads: Option<Vec<usize>>,
    /// The number of keys, in the sense that the experiment gives it.
    pub keys: Option<u64>,
    /// How long one measurement lasts, in an experiment that does not end by itself.
    pub duration: Duration,
    /// How many times each measurement is made, at least once.
    pub runs: usize,
    /// How many times a measurement is repeated if other work on the machine disturbed it.
    pub repeats: usize,
    /// Whether each worker thread is pinned to a processor.
    pub pin: bool,
    /// The seed that every random choice comes from.
    pub seed: u64,
    /// The mixes to measure, by name, in an experiment that has mixes; empty: all.
    pub mixes: Vec<String>,
    /// The key sets to measure with, in an experiment with a choice; empty: the experiment's
    /// default.
    pub key_sets: Vec<KeySet>,
    /// The distributions to choose keys by, in an experiment with a choice; empty: all.
    pub distributions: Vec<Distribution>,
    /// The kinds of message to send, in an experiment that sends any; empty: all.
    pub messages: Vec<MessageKind>,
    /// How to start a process that does one thing and weighs itself; without it no memory is
    /// measured.
    pub fill_command: Option<FillCommand>,
}

impl Settings {
    /// The default of [`runs`](Self::runs).
    pub const RUNS: usize = 3;
    /// The default of [`repeats`](Self::repeats).
    pub const REPEATS: usize = 1;
    /// The default of [`duration`](Self::duration).
    pub const DURATION: Duration = Duration::from_millis(500);
    /// The default of [`seed`](Self::seed).
    pub const SEED: u64 = 42;
    /// The most threads that one measurement may have.
    pub const MOST_THREADS: usize = 1024;

    /// The [`duration`](Self::duration), after a warm-up.
    #[must_use]
    pub fn span(&self) -> Span {
        Span::warmed(self.duration)
    }

    /// The estimated seconds of a measurement with `timed` parts, each of which lasts as these
    /// settings say, one after the other on a table with `keys` keys.
    #[must_use]
    pub fn seconds_of(&self, timed: usize, keys: u64) -> f64 {
        let span = self.span();
        let length = (span.warm_up + span.counted).as_secs_f64();
        length * timed as f64 + keys as f64 * SECONDS_A_KEY + SECONDS_BESIDE
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threads: None,
            keys: None,
            duration: Self::DURATION,
            runs: Self::RUNS,
            repeats: Self::REPEATS,
            pin: false,
            seed: Self::SEED,
            mixes: Vec::new(),
            key_sets: Vec::new(),
            distributions: Vec::new(),
            messages: Vec::new(),
            fill_command: None,
        }
    }
}
