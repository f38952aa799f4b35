//! Generates, records and checks many histories.
//!
//! The operations are random, with three additions that find faults sooner:
//!
//! - Each history has its own subset of the operations (Groce et al., "Swarm testing", ISSTA 2012):
//!   operations that mask each other are separated in some histories, and operations that need each
//!   other are alone in some.
//! - Each value is written once, so an answer shows which write it saw.
//! - The few keys for which threads contend lie beside a number of other keys that fills nodes of
//!   the usual capacities completely, and where keys begin or cease to share bytes.

mod generate;

use crate::map::{Checked, Failure, Kind};
use crate::record::{Panicked, Session, Subject, record_sessions};
use crate::search::DEFAULT_BUDGET;
use generate::{Generator, Plan};
use std::fmt;
use std::ops::RangeInclusive;

/// What to record, and how to check it.
///
/// ```
/// use tremula_check::{Campaign, record::Indexed};
/// use tremula_index::Engine;
///
/// let campaign = Campaign {
///     sessions: 20,
///     ..Campaign::short()
/// };
/// let tally = campaign.run(|| Indexed::new(Engine::CaTree.create::<u64, u64>()))?;
/// assert_eq!(tally.histories, 20);
/// # Ok::<(), Box<tremula_check::Caught>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The number of threads in a history.
    pub threads: RangeInclusive<usize>,
    /// The number of operations in a history, of all threads together.
    pub operations: RangeInclusive<usize>,
    /// The number of keys that the operations of a session use.
    pub keys: RangeInclusive<usize>,
    /// The possible numbers of other keys that are inserted first.
    pub fillers: &'static [usize],
    /// The number of subjects. Each is new.
    pub sessions: usize,
    /// The number of histories recorded on each subject, one after another. More than one requires
    /// a subject that offers scans, snapshots or ranges.
    pub rounds: usize,
    /// The kinds of operations, if the subject offers them.
    pub kinds: &'static [Kind],
    /// Whether each history has only some of the kinds.
    pub swarm: bool,
    /// Whether to check by key, for histories that are long or have many keys, instead of as a
    /// whole.
    pub by_key: bool,
    /// The most configurations that each search may visit.
    pub budget: usize,
    /// The source of all randomness except the schedule.
    pub seed: u64,
}

impl Campaign {
    /// 1,000 histories of 8 to 12 operations of all kinds by 3 or 4 threads, each on a new
    /// subject, checked as a whole.
    #[must_use]
    pub const fn short() -> Self {
        Self {
            threads: 3..=4,
            operations: 8..=12,
            keys: 2..=6,
            fillers: &FILLERS,
            sessions: 1000,
            rounds: 1,
            kinds: &Kind::ALL,
            swarm: true,
            by_key: false,
            budget: DEFAULT_BUDGET,
            seed: 1,
        }
    }

    /// 10 histories of 20,000 point operations on 64 keys by 4 threads, each on a new subject,
    /// checked by key.
    #[must_use]
    pub const fn long() -> Self {
        Self {
            threads: 4..=4,
            operations: 20_000..=20_000,
            keys: 64..=64,
            sessions: 10,
            kinds: &Kind::POINT,
            swarm: false,
            by_key: true,
            ..Self::short()
        }
    }

    /// The number of histories.
    #[must_use]
    pub const fn histories(&self) -> usize {
        self.sessions * self.rounds
    }

    /// Records and checks all histories. Each session has a subject of its own, which `make` makes
    /// and which must be empty.
    ///
    /// # Errors
    ///
    /// The first history that fails, panics or cannot be decided.
    ///
    /// # Panics
    ///
    /// As [`record_sessions`]; or when `make` does.
    pub fn run<S: Subject>(&self, make: impl Fn() -> S) -> Result<Tally, Box<Caught>> {
        let mut tally = Tally::default();
        for begin in (0..self.sessions).step_by(BATCH) {
            let batch = begin..self.sessions.min(begin + BATCH);
            let (subjects, plans): (Vec<S>, Vec<Plan>) = batch
                .map(|session| {
                    let subject = make();
                    let plan = Generator::new(self, session as u64).plan(&subject);
                    plan.fill(&subject);
                    (subject, plan)
                })
                .unzip();
            let sessions: Vec<Session<'_>> = subjects
                .iter()
                .zip(plans)
                .map(|(subject, plan)| Session {
                    subject,
                    initial: plan.initial,
                    rounds: plan.rounds,
                })
                .collect();
            self.record(&sessions, &mut tally)?;
        }
        Ok(tally)
    }

    fn record(&self, sessions: &[Session<'_>], tally: &mut Tally) -> Result<(), Box<Caught>> {
        let caught = |fault, tally: &Tally| {
            Box::new(Caught {
                fault,
                histories: tally.histories,
                seed: self.seed,
            })
        };
        for recording in record_sessions(sessions) {
            if let Some(panicked) = recording.panics.into_iter().next() {
                return Err(caught(Fault::Panic(panicked), tally));
            }
            let history = recording.history;
            let outcome = if self.by_key {
                history.check_by_key(self.budget)
            } else {
                history.check(self.budget)
            };
            let checked = outcome.map_err(|failure| caught(Fault::History(failure), tally))?;
            tally.add(checked, history.history().overlaps());
        }
        Ok(())
    }
}

/// The number of sessions that the same threads record before they are checked.
const BATCH: usize = 64;

/// Numbers of keys around which nodes of the usual capacities split, merge, grow and shrink.
const FILLERS: [usize; 20] = [
    0, 0, 0, 0, 2, 4, 7, 8, 14, 15, 16, 17, 31, 32, 48, 49, 63, 64, 65, 130,
];

/// The totals of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of histories.
    pub histories: usize,
    /// The number of operations in them, including the looks at the end.
    pub operations: usize,
    /// The number of pairs of operations that overlapped.
    pub overlaps: usize,
    /// The number of configurations that the searches visited.
    pub configurations: usize,
}

impl Tally {
    const fn add(&mut self, checked: Checked, overlaps: usize) {
        self.histories += 1;
        self.operations += checked.operations;
        self.overlaps += overlaps;
        self.configurations += checked.configurations;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} histories, {} operations, {} overlapping pairs, {} configurations",
            self.histories, self.operations, self.overlaps, self.configurations
        )
    }
}

/// The history at which a campaign stopped.
#[derive(Clone, Debug, thiserror::Error)]
#[error("after {histories} good histories (seed {seed}): {fault}")]
pub struct Caught {
    /// What is wrong.
    pub fault: Fault,
    /// The number of histories that passed before.
    pub histories: usize,
    /// The seed of the campaign. It does not determine the schedule: the same seed makes the same
    /// calls, which need not overlap in the same way.
    pub seed: u64,
}

/// A fault that a campaign can find.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// A history with a fault in it, or one that cannot be decided.
    #[error(transparent)]
    History(Failure),
    /// A call that panicked.
    #[error("{} of thread {} panicked: {}", .0.operation, .0.thread, .0.message)]
    Panic(Panicked),
}
