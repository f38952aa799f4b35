//! What a run reports: its time, what the threads spent it on, and where.

use super::machine::Picoseconds;
use std::collections::BTreeMap;
use std::panic::Location;

/// What a thread spent its time on.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation, work};
///
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| work(30));
/// let (lived, spent) = run.threads[0];
/// assert_eq!((spent.work, spent.sum()), (30_000, lived));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// What would be paid if no other core existed.
    pub work: Picoseconds,
    /// Waiting for lines that were on their way to other cores.
    pub waiting: Picoseconds,
    /// Lines on their way to the thread's core.
    pub transfers: Picoseconds,
    /// Without a core: blocked, asleep, or while other threads had it.
    pub off: Picoseconds,
}

impl Spent {
    /// The sum.
    #[must_use]
    pub const fn sum(&self) -> Picoseconds {
        self.work + self.waiting + self.transfers + self.off
    }
}

/// What one place of the source made threads wait.
///
/// ```
/// use tremula_sync::atomic::{AtomicU64, Ordering};
/// use tremula_sync::sim::{Machine, Prices, Simulation, scoped};
///
/// let prices = Prices::named(|name| if name.starts_with("changed") { 50_000 } else { 0 });
/// let machine = Machine { prices, ..Machine::free_of_charge(2) };
/// let run = Simulation::on(machine).blame(true).run(|| {
///     let word = AtomicU64::new(0);
///     scoped(2, |_| (0..9).for_each(|_| drop(word.fetch_add(1, Ordering::Relaxed))), || {});
/// });
/// let blame = &run.blame[0];
/// assert_eq!(blame.time(), blame.waiting + blame.transferring);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blame {
    /// The source file.
    pub file: &'static str,
    /// The line in it, from 1.
    pub line: u32,
    /// The column of the access in that line, from 1.
    pub column: u32,
    /// How often a line of the cache had to come.
    pub transfers: u64,
    /// How long the transfers took.
    pub transferring: Picoseconds,
    /// How long threads waited until a transfer could begin.
    pub waiting: Picoseconds,
    /// The time by line of the cache, which has a number in the order of the first touch.
    pub by_line: BTreeMap<u32, Picoseconds>,
    /// The time by when it was lost: by stretches of [`Blame::STRETCH`] from the run's beginning.
    pub over_time: BTreeMap<u64, Picoseconds>,
}

impl Blame {
    pub(super) fn at(location: &'static Location<'static>) -> Self {
        Self {
            file: location.file(),
            line: location.line(),
            column: location.column(),
            transfers: 0,
            transferring: 0,
            waiting: 0,
            by_line: BTreeMap::new(),
            over_time: BTreeMap::new(),
        }
    }

    /// The stretches of time that blame is counted in: ten microseconds.
    pub const STRETCH: Picoseconds = 10_000_000;

    pub(super) fn add(
        &mut self,
        line: u32,
        at: Picoseconds,
        (waiting, transfer): (Picoseconds, Picoseconds),
    ) {
        *self.over_time.entry(at / Self::STRETCH).or_default() += waiting + transfer;
        self.transfers += 1;
        self.transferring += transfer;
        self.waiting += waiting;
        *self.by_line.entry(line).or_default() += waiting + transfer;
    }

    /// All time that the place cost.
    #[must_use]
    pub const fn time(&self) -> Picoseconds {
        self.waiting + self.transferring
    }
}

/// What a run gave.
///
/// ```
/// use tremula_sync::sim::{Machine, Simulation};
///
/// let run = Simulation::on(Machine::free_of_charge(1)).run(|| 7);
/// assert_eq!((run.result, run.elapsed, run.threads.len()), (7, 0, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<R> {
    /// What the function returned.
    pub result: R,
    /// The virtual time that it took.
    pub elapsed: Picoseconds,
    /// How many accesses of lines were simulated.
    pub accesses: u64,
    /// For each thread, in the order in which they started: how long it was there, and what it
    /// spent that on.
    pub threads: Vec<(Picoseconds, Spent)>,
    /// The places of the source by the time that they cost all threads but the first, most first;
    /// empty unless asked for.
    pub blame: Vec<Blame>,
    /// How many chunks of memory the run could not give back, because something in them outlives
    /// it: what it returned, or what threads have that did not end.
    pub kept: usize,
}
