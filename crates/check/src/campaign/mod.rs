//! Histories in great number: generated, recorded and checked.
//!
//! Random operations, with three things added that find faults sooner:
//!
//! - Each history has its own subset of the operations (Groce et al., "Swarm testing", ISSTA
//!   2012): what hides one another is apart in some, what needs one another is alone in some.
//! - Each value is written once, so that an answer tells which write it saw.
//! - The few keys that threads fight over lie beside a number of others that fills nodes of the
//!   usual capacities to the brim, and at the places where keys share bytes or stop to.

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
    /// The threads of a history.
    pub threads: RangeInclusive<usize>,
    /// The operations of a history, of all threads together.
    pub operations: RangeInclusive<usize>,
    /// The keys that the operations of a session are about.
    pub keys: RangeInclusive<usize>,
    /// The numbers of other keys that a map may be filled with first.
    pub fillers: &'static [usize],
    /// The subjects, each new.
    pub sessions: usize,
    /// The histories that are recorded on each subject, one after another. More than one takes a
    /// subject that offers scans, snapshots or ranges.
    pub rounds: usize,
    /// The kinds of operations, as far as the subject offers them.
    pub kinds: &'static [Kind],
    /// Whether each history has only some of the kinds.
    pub swarm: bool,
    /// Whether to check by key, for histories that are long or have many keys, instead of as a
    /// whole.
    pub by_key: bool,
    /// The configurations that each search may visit.
    pub budget: usize,
    /// Where all that is random comes from, but for the schedule.
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

    /// How many histories there will be.
    #[must_use]
    pub const fn histories(&self) -> usize {
        self.sessions * self.rounds
    }

    /// Records and checks all histories, each on a subject that `make` makes or on one that had
    /// its rounds before. Subjects must be empty.
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

/// The sessions that are recorded by the same threads before they are checked.
const BATCH: usize = 64;

/// Numbers of keys around which nodes of the usual capacities split, merge, grow and shrink.
const FILLERS: [usize; 20] = [
    0, 0, 0, 0, 2, 4, 7, 8, 14, 15, 16, 17, 31, 32, 48, 49, 63, 64, 65, 130,
];

/// What a campaign has checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The histories.
    pub histories: usize,
    /// The operations in them, with the closing looks.
    pub operations: usize,
    /// The pairs of operations that overlapped.
    pub overlaps: usize,
    /// The configurations that the searches visited.
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

/// A history that a campaign stopped at.
#[derive(Clone, Debug, thiserror::Error)]
#[error("after {histories} good histories (seed {seed}): {fault}")]
pub struct Caught {
    /// What is wrong.
    pub fault: Fault,
    /// The histories that passed before.
    pub histories: usize,
    /// The seed of the campaign. The schedule is not in it: the same seed makes the same calls,
    /// which need not overlap in the same way.
    pub seed: u64,
}

/// What a campaign can find.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// A history with a fault in it, or one that cannot be decided.
    #[error(transparent)]
    History(Failure),
    /// A call that panicked.
    #[error("{} of thread {} panicked: {}", .0.operation, .0.thread, .0.message)]
    Panic(Panicked),
}
