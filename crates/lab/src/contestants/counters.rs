//! Counters that many threads change: single words, striped counters, and the sizes of tables.

use super::{
    contestant::{
        Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
    },
    row_table::RowTable,
    subject::expect,
};
use crate::{
    LabError,
    case::ContestantKind,
    measure::{Lap, Sample, together_for},
    workload::{CounterJob, CounterMix},
};
use std::hint::black_box;
use tremula_sync::StripedCounter;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_table::{Table, Term};

/// A counter of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// One word that all threads add to.
    Central,
    /// A [`StripedCounter`].
    Striped,
    /// The size of a `set`.
    SizeOfSet,
    /// The size of an `ordered_set` that adapts to contention.
    SizeOfOrderedSet,
}

impl CounterKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Central,
        Self::Striped,
        Self::SizeOfSet,
        Self::SizeOfOrderedSet,
    ];

    fn measure(self, job: &CounterJob) -> Result<Sample, String> {
        let table = |kind: RowTable| kind.create().map_err(|error| error.to_string());
        match self {
            Self::Central => measure(&AtomicU64::new(0), job),
            Self::Striped => measure(&StripedCounter::new(), job),
            Self::SizeOfSet => measure(&table(RowTable::SET)?, job),
            Self::SizeOfOrderedSet => measure(&table(RowTable::ordered_set())?, job),
        }
    }
}

impl Entrant for CounterKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Central => "central",
            Self::Striped => "striped",
            Self::SizeOfSet => "size_of_table_set",
            Self::SizeOfOrderedSet => "size_of_table_ordered_set",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Central => "one atomic integer",
            Self::Striped => "a counter of Tremula that stripes itself when additions collide",
            Self::SizeOfSet => "the size of a table of type set of Tremula",
            Self::SizeOfOrderedSet => "the size of a table of type ordered_set of Tremula",
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Counters]
    }

    fn start(&self, _kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        Ok(Contestant::Counter(Box::new(CounterContestant(*self))))
    }
}

/// A counter that threads add to, one at a time.
trait Counter: Sync {
    /// Whether a thread takes its additions back, in alternating runs of [`CounterJob::ROWS`].
    const COMES_AND_GOES: bool;

    /// Makes the addition with this number, counted from 0, of this thread; `false` if it failed.
    fn add(&self, thread: u64, number: u64) -> bool;

    /// The current value.
    fn read(&self) -> u64;

    /// The value found by visiting every row, where that is possible.
    fn count(&self) -> Option<u64> {
        None
    }
}

impl Counter for AtomicU64 {
    const COMES_AND_GOES: bool = false;

    #[inline]
    fn add(&self, _thread: u64, _number: u64) -> bool {
        self.fetch_add(1, Ordering::Relaxed);
        true
    }

    #[inline]
    fn read(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

impl Counter for StripedCounter {
    const COMES_AND_GOES: bool = false;

    #[inline]
    fn add(&self, _thread: u64, _number: u64) -> bool {
        Self::add(self, 1);
        true
    }

    #[inline]
    fn read(&self) -> u64 {
        u64::try_from(self.sum()).unwrap_or(u64::MAX)
    }
}

/// A thread inserts its own rows, and then deletes them.
impl Counter for Table {
    const COMES_AND_GOES: bool = true;

    #[inline]
    fn add(&self, thread: u64, number: u64) -> bool {
        let key = Term::from(thread * CounterJob::ROWS + number % CounterJob::ROWS);
        let done = if (number / CounterJob::ROWS).is_multiple_of(2) {
            self.insert(Term::tuple([key]))
        } else {
            self.delete_key(&key)
        };
        done.is_ok()
    }

    #[inline]
    fn read(&self) -> u64 {
        self.size().map_or(u64::MAX, |size| size as u64)
    }

    fn count(&self) -> Option<u64> {
        self.tab2list().ok().map(|rows| rows.len() as u64)
    }
}

/// What this many additions of one thread leave.
const fn left_by<C: Counter>(additions: u64) -> u64 {
    if !C::COMES_AND_GOES {
        return additions;
    }
    let rest = additions % CounterJob::ROWS;
    if (additions / CounterJob::ROWS).is_multiple_of(2) {
        rest
    } else {
        CounterJob::ROWS - rest
    }
}

/// How many operations a thread does before it looks at the time again.
const STRIDE: u64 = 64;

/// What one thread has done and seen.
struct Tally {
    additions: u64,
    faults: u64,
}

fn measure<C: Counter>(counter: &C, job: &CounterJob) -> Result<Sample, String> {
    // The initial rows have keys beyond those of the threads.
    let first = job.threads as u64;
    let refused = (0..job.start)
        .filter(|number| !counter.add(first + number / CounterJob::ROWS, number % CounterJob::ROWS))
        .count();
    expect("additions refused", refused as u64, 0)?;
    let timed = together_for(job.threads, job.span, |thread, lap| match job.mix {
        CounterMix::Size => read(counter, job, lap),
        CounterMix::Add | CounterMix::AddAndRead => add(counter, job, thread as u64, lap),
    });
    let faults = timed.results.iter().map(|tally| tally.faults).sum();
    expect("wrong results", faults, 0)?;
    let left = timed
        .results
        .iter()
        .map(|tally| left_by::<C>(tally.additions));
    let expected = job.start + left.sum::<u64>();
    expect("counted", counter.read(), expected)?;
    if let Some(count) = counter.count() {
        expect("there", count, expected)?;
    }
    Ok(Sample::new(timed.operations, timed.elapsed))
}

fn add<C: Counter>(counter: &C, job: &CounterJob, thread: u64, lap: &mut Lap<'_>) -> Tally {
    let mut tally = Tally {
        additions: 0,
        faults: 0,
    };
    let mut last = job.start;
    let (mut until_read, period) = (job.mix.period(), job.mix.period());
    loop {
        for _ in 0..STRIDE {
            until_read -= 1;
            if until_read == 0 {
                until_read = period;
                tally.faults += u64::from(!can_be_read::<C>(counter.read(), job, &mut last));
            } else {
                tally.faults += u64::from(!counter.add(thread, tally.additions));
                tally.additions += 1;
            }
        }
        if !lap.done(STRIDE) {
            return black_box(tally);
        }
    }
}

/// Whether a thread may read this value after `last` while other threads add. Sets `last` to it.
fn can_be_read<C: Counter>(read: u64, job: &CounterJob, last: &mut u64) -> bool {
    if C::COMES_AND_GOES {
        // No thread ever has more than its own rows in the table, whatever operation it is in.
        return read <= job.start + job.threads as u64 * CounterJob::ROWS;
    }
    let last = std::mem::replace(last, read);
    read >= last
}

fn read<C: Counter>(counter: &C, job: &CounterJob, lap: &mut Lap<'_>) -> Tally {
    let mut faults = 0;
    loop {
        for _ in 0..STRIDE {
            faults += u64::from(counter.read() != job.start);
        }
        if !lap.done(STRIDE) {
            return black_box(Tally {
                additions: 0,
                faults,
            });
        }
    }
}

/// A counter as a contestant.
#[derive(Clone, Copy, Debug)]
struct CounterContestant(CounterKind);

impl Started for CounterContestant {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> String {
        match self.0 {
            CounterKind::Central => "std".to_owned(),
            _ => own_version(),
        }
    }
}

impl Measures<CounterJob> for CounterContestant {
    fn measure(&mut self, job: &CounterJob) -> Samples {
        samples(
            self.0.name(),
            self.0.measure(job).map(|sample| vec![Ok(sample)]),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Span;
    use std::time::Duration;

    fn job(mix: CounterMix) -> CounterJob {
        CounterJob {
            mix,
            threads: 2,
            start: 130,
            span: Span::warmed(Duration::from_millis(4)),
        }
    }

    #[test]
    fn what_is_left_is_known_by_the_additions() {
        let left = [0, 1, 63, 64, 65, 127, 128, 130].map(left_by::<Table>);
        assert_eq!(left, [0, 1, 63, 64, 63, 1, 0, 2]);
        assert_eq!(left_by::<AtomicU64>(65), 65);
    }

    #[test]
    fn every_counter_does_every_mix() {
        for kind in CounterKind::ALL {
            for mix in CounterMix::ALL {
                let sample = kind.measure(&job(mix)).unwrap();
                assert!(sample.operations > 0, "{kind:?} {mix:?}");
            }
        }
    }

    /// Loses an addition in a hundred, or reads one too few every other time.
    struct Wrong {
        loses: bool,
        value: AtomicU64,
        tried: AtomicU64,
    }

    impl Counter for Wrong {
        const COMES_AND_GOES: bool = false;

        fn add(&self, thread: u64, number: u64) -> bool {
            let tried = self.tried.fetch_add(1, Ordering::Relaxed);
            (self.loses && tried.is_multiple_of(100)) || self.value.add(thread, number)
        }

        fn read(&self) -> u64 {
            let stale = u64::from(!self.loses);
            let tried = self.tried.fetch_add(1, Ordering::Relaxed);
            self.value.read() - stale * (tried % 2)
        }
    }

    #[test]
    fn a_wrong_counter_is_not_believed() {
        for (loses, mix) in [
            (true, CounterMix::Add),
            (true, CounterMix::AddAndRead),
            (true, CounterMix::Size),
            // While other threads add, a number that is too small may have been right a moment ago.
            (false, CounterMix::Size),
        ] {
            let wrong = Wrong {
                loses,
                value: AtomicU64::new(0),
                tried: AtomicU64::new(0),
            };
            let believed = measure(&wrong, &job(mix));
            assert!(believed.is_err(), "{loses} {mix:?}");
        }
    }
}
