//! Taking time: threads that start together, and their combined times.

use crate::{
    LabError,
    live::{Progress, Shown, ThreadProgress},
};
use serde::{Deserialize, Serialize};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};
use tremula_shard::topology::{self, Cpu};

/// The result of one measurement of one contestant.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Operations done, by all threads together.
    pub operations: u64,
    /// From the first thread's start to the last thread's end.
    pub elapsed: Duration,
    /// Million messages a second that were sent, where that differs from what was received.
    pub send_mops: Option<f64>,
    /// Bytes for each key of the filled table, where that was measured.
    pub bytes_per_key: Option<f64>,
    /// What else was measured, by name.
    pub figures: Vec<(String, f64)>,
    /// How it went, moment by moment, where that was measured.
    pub series: Vec<Moment>,
}

impl Sample {
    /// A measurement of time alone.
    #[must_use]
    pub const fn new(operations: u64, elapsed: Duration) -> Self {
        Self {
            operations,
            elapsed,
            send_mops: None,
            bytes_per_key: None,
            figures: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Million operations a second.
    #[must_use]
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6
    }
}

/// A stretch of a measurement that shows how it goes over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// When it ended, in seconds from the start of the measurement.
    pub seconds: f64,
    /// What was done in it, by name.
    pub phase: String,
    /// Million operations a second in it.
    pub mops: f64,
    /// What else was seen at its end, by name, such as the shape of the table.
    pub figures: BTreeMap<String, f64>,
}

/// How long threads work in a measurement that ends when its time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Before the operations count: caches, branch predictors and the table's own adaptation
    /// settle.
    pub warm_up: Duration,
    /// While the operations count.
    pub counted: Duration,
}

impl Span {
    /// The warm-up takes the counted time divided by this.
    const WARM_UP_PART: u32 = 4;

    /// A measurement of this duration, with a warm-up in proportion.
    #[must_use]
    pub fn warmed(counted: Duration) -> Self {
        Self {
            warm_up: counted / Self::WARM_UP_PART,
            counted,
        }
    }
}

thread_local! {
    /// The CPUs that worker threads started by this thread are pinned to.
    static PROCESSORS: RefCell<Rc<[Cpu]>> = RefCell::default();
}

/// While it lives, the worker threads that this thread starts are pinned.
#[derive(Debug)]
pub(crate) struct Pinned(());

/// If `asked`, pins the worker threads that this thread starts from now on. Each gets one of the
/// CPUs that the process may use, in turn, starting over if there are more threads than CPUs.
///
/// # Errors
///
/// The system does not report which CPUs may be used.
pub(crate) fn pin_workers(asked: bool) -> Result<Pinned, LabError> {
    if asked {
        let allowed = topology::allowed().map_err(|error| LabError::Pin { error })?;
        PROCESSORS.with(|processors| *processors.borrow_mut() = allowed.into());
    }
    Ok(Pinned(()))
}

impl Drop for Pinned {
    fn drop(&mut self) {
        PROCESSORS.with(|processors| *processors.borrow_mut() = Rc::default());
    }
}

/// The CPUs for the worker threads of this thread.
#[derive(Clone, Debug)]
pub(crate) struct Places(Vec<Cpu>);

impl Places {
    /// The choice made by [`pin_workers`]; any CPU if there was none.
    pub(crate) fn of_workers() -> Self {
        Self(PROCESSORS.with(|processors| processors.borrow().to_vec()))
    }

    /// Whether threads are pinned.
    pub(crate) const fn are_chosen(&self) -> bool {
        !self.0.is_empty()
    }

    /// Pins the calling thread, the worker with this number.
    ///
    /// # Panics
    ///
    /// The process has lost the CPU since the choice, so the measurement would not be the one asked
    /// for.
    pub(crate) fn take(&self, worker: usize) {
        if let Some(worker) = worker.checked_rem(self.0.len()) {
            let cpu = self.0[worker];
            topology::pin(cpu).unwrap_or_else(|error| {
                panic!("processor {} was taken from this process: {error}", cpu.0)
            });
        }
    }
}

/// What threads returned, and how long they took together.
#[derive(Debug)]
pub struct Timed<R> {
    /// Operations that counted, of all threads.
    pub operations: u64,
    /// From the first thread's start to the last thread's end by the clocks of these threads,
    /// because the scheduler may wake the thread that waits for them late.
    pub elapsed: Duration,
    /// What each thread returned, in the order of the threads.
    pub results: Vec<R>,
}

/// Runs `work` with the number of each of `threads` threads, which start together on a barrier,
/// until the last one is done. `operations` of the result is 0, because only `work` knows it.
///
/// # Panics
///
/// Passes on the panic of a thread.
pub fn together<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Timed<R> {
    start(threads, |_, _| (), |thread, _| work(thread))
}

/// Runs the work in one new thread, as [`together`] does.
///
/// # Panics
///
/// Passes on the panic of the thread.
pub(crate) fn alone<R: Send>(work: impl Fn() -> R + Sync) -> R {
    let mut results = together(1, |_| work()).results;
    results.pop().expect("there is one thread")
}

/// Runs threads as [`together`] does until the time is up; `work` must end when its [`Lap`] says
/// so.
///
/// # Panics
///
/// Passes on the panic of a thread.
pub fn together_for<R: Send>(
    threads: usize,
    span: Span,
    work: impl Fn(usize, &mut Lap<'_>) -> R + Sync,
) -> Timed<R> {
    let pass = |stage: &Stage, done: &Arc<Progress>| {
        let _shown = Shown::of(done);
        stage.pass(span);
    };
    start(threads, pass, work)
}

/// A part of the time of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Operations done in it, by all threads together.
    pub operations: u64,
    /// How long it was.
    pub elapsed: Duration,
}

/// Runs threads as [`together`] does for `slices` slices of time, without a warm-up; `work` must
/// end when its [`Lap`] says so. `watch` is called at the end of each slice; operations done during
/// that call belong to no slice.
///
/// # Panics
///
/// Passes on the panic of a thread, or of `watch`.
pub fn together_sliced<R: Send>(
    threads: usize,
    slices: u32,
    slice: Duration,
    work: impl Fn(usize, &mut Lap<'_>) -> R + Sync,
    mut watch: impl FnMut(Slice),
) -> Timed<R> {
    let pass = |stage: &Stage, done: &Arc<Progress>| {
        let _shown = Shown::of(done);
        stage.0.store(COUNTING, Ordering::Relaxed);
        for _ in 0..slices {
            let (begun, before) = (tremula_sync::now(), done.sum());
            tremula_sync::thread::sleep(slice);
            watch(Slice {
                operations: done.sum() - before,
                elapsed: tremula_sync::now() - begun,
            });
        }
        stage.0.store(OVER, Ordering::Relaxed);
    };
    start(threads, pass, work)
}

/// Ends the measurement when dropped, so that no thread works on after a panic.
struct Ending<'a>(&'a Stage);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.0.store(OVER, Ordering::Relaxed);
    }
}

/// The stage of a measurement, as its threads and tasks see it.
#[derive(Debug)]
pub(crate) struct Stage(AtomicU8);

const WARMING_UP: u8 = 0;
const COUNTING: u8 = 1;
const OVER: u8 = 2;

impl Stage {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(WARMING_UP))
    }

    /// Waits for the time of a measurement, and moves through its stages.
    pub(crate) fn pass(&self, span: Span) {
        // Relaxed: both stores publish no data; see `Lap::done`, which reads the stage.
        tremula_sync::thread::sleep(span.warm_up);
        self.0.store(COUNTING, Ordering::Relaxed);
        tremula_sync::thread::sleep(span.counted);
        self.0.store(OVER, Ordering::Relaxed);
    }
}

/// Counts one thread's operations from the end of the warm-up on.
#[derive(Debug)]
pub struct Lap<'a> {
    stage: &'a Stage,
    counts: bool,
    begun: Instant,
    operations: u64,
    /// All operations, including those of the warm-up, and where they are shown.
    all: u64,
    shown: Option<&'a ThreadProgress>,
}

impl<'a> Lap<'a> {
    pub(crate) fn new(stage: &'a Stage) -> Self {
        Self {
            stage,
            counts: false,
            begun: tremula_sync::now(),
            operations: 0,
            all: 0,
            shown: None,
        }
    }

    fn shown_at(stage: &'a Stage, shown: &'a ThreadProgress) -> Self {
        Self {
            shown: Some(shown),
            ..Self::new(stage)
        }
    }

    /// Reports the operations done since the last call. Returns whether to go on.
    ///
    /// Call it after the work, so that a thread that starts late under load has still done some.
    #[inline]
    pub fn done(&mut self, operations: u64) -> bool {
        self.operations += operations;
        if let Some(shown) = self.shown {
            self.all += operations;
            shown.show(self.all);
        }
        // Relaxed: the stage publishes no data. Joining the threads makes what they did visible.
        let stage = self.stage.0.load(Ordering::Relaxed);
        if stage == COUNTING && !self.counts {
            self.counts = true;
            self.begun = tremula_sync::now();
            self.operations = 0;
        }
        stage != OVER
    }

    /// Whether the warm-up is over.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.counts
    }

    /// When counting began, and how many operations were done since.
    pub(crate) fn end(&self) -> (Instant, u64) {
        (self.begun, self.operations)
    }
}

/// Runs `work` in threads that start together on a barrier, and `drive` in this thread meanwhile.
/// Returns what they returned, in order.
#[cfg(not(sim))]
pub(crate) fn side_by_side<R: Send>(
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    drive: impl FnOnce(),
) -> Vec<R> {
    let barrier = std::sync::Barrier::new(threads + 1);
    let places = Places::of_workers();
    let (barrier, places, work) = (&barrier, &places, &work);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    places.take(thread);
                    barrier.wait();
                    work(thread)
                })
            })
            .collect();
        barrier.wait();
        drive();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// In a simulation, the threads are virtual.
#[cfg(sim)]
pub(crate) use tremula_sync::sim::scoped as side_by_side;

/// Runs `work` in `threads` threads; this thread calls `drive` as soon as they have started.
fn start<R: Send>(
    threads: usize,
    drive: impl FnOnce(&Stage, &Arc<Progress>),
    work: impl Fn(usize, &mut Lap<'_>) -> R + Sync,
) -> Timed<R> {
    let stage = Stage::new();
    let progress = Arc::new(Progress::of(threads));
    let one = |thread: usize| {
        let mut lap = Lap::shown_at(&stage, progress.of_thread(thread));
        let result = work(thread, &mut lap);
        let (begun, operations) = lap.end();
        (begun, tremula_sync::now(), operations, result)
    };
    let done = side_by_side(threads, one, || {
        let _ending = Ending(&stage);
        drive(&stage, &progress);
    });
    let first = done.iter().map(|(begun, ..)| *begun).min();
    let last = done.iter().map(|(_, end, ..)| *end).max();
    Timed {
        operations: done.iter().map(|(.., operations, _)| operations).sum(),
        elapsed: first
            .zip(last)
            .map_or(Duration::ZERO, |(first, last)| last - first),
        results: done.into_iter().map(|(.., result)| result).collect(),
    }
}

/// The median: of an even number of values the mean of the middle two; of no values `None`.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn median_of_odd_even_one_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[5.0]), Some(5.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn every_thread_works_once_and_starts_after_all_are_there() {
        let there = AtomicUsize::new(0);
        let timed = together(4, |thread| {
            there.fetch_add(1, Ordering::SeqCst);
            while there.load(Ordering::SeqCst) < 4 {
                std::thread::yield_now();
            }
            thread
        });
        assert_eq!(timed.results, [0, 1, 2, 3]);
    }

    #[test]
    fn pinned_threads_run_on_one_processor_each_and_unpinned_ones_anywhere() {
        let all = topology::allowed().unwrap();
        let places = || together(3, |_| topology::allowed().unwrap()).results;
        let pinned = pin_workers(true).unwrap();
        let expected: Vec<_> = (0..3).map(|thread| vec![all[thread % all.len()]]).collect();
        assert_eq!(places(), expected);
        drop(pinned);
        assert_eq!(places(), vec![all; 3]);
    }

    #[test]
    fn the_time_is_up_after_warm_up_and_counting() {
        let span = Span {
            warm_up: Duration::from_millis(5),
            counted: Duration::from_millis(5),
        };
        let begun = tremula_sync::now();
        let timed = together_for(2, span, |_, lap| {
            while lap.done(1) {
                std::thread::yield_now();
            }
        });
        assert!(begun.elapsed() >= span.warm_up + span.counted);
        assert_eq!(timed.results.len(), 2);
    }

    #[test]
    fn what_was_done_while_warming_up_does_not_count() {
        let stage = Stage::new();
        let mut lap = Lap::new(&stage);
        assert!(lap.done(100) && lap.done(100));
        stage.0.store(COUNTING, Ordering::Relaxed);
        assert!(lap.done(100));
        assert!(lap.done(3) && lap.done(4));
        stage.0.store(OVER, Ordering::Relaxed);
        assert!(!lap.done(5));
        assert_eq!(lap.operations, 12);
    }

    #[test]
    fn slices_tell_all_that_was_done_while_nobody_looked() {
        let slice = Duration::from_millis(3);
        let mut seen = Vec::new();
        let timed = together_sliced(
            2,
            4,
            slice,
            |_, lap| {
                let mut strides = 1;
                while lap.done(7) {
                    strides += 1;
                    std::thread::yield_now();
                }
                strides * 7
            },
            |slice| seen.push(slice),
        );
        assert_eq!(seen.len(), 4);
        assert!(seen.iter().all(|seen| seen.elapsed >= slice));
        let in_slices: u64 = seen.iter().map(|slice| slice.operations).sum();
        assert!(seen.iter().all(|slice| slice.operations % 7 == 0));
        assert!(in_slices <= timed.results.iter().sum(), "{seen:?}");
    }

    #[test]
    fn threads_end_when_the_watcher_panics() {
        let watched = std::panic::catch_unwind(|| {
            together_sliced(
                1,
                1,
                Duration::from_millis(1),
                |_, lap| while lap.done(1) {},
                |_| panic!("it cannot look"),
            )
        });
        assert!(watched.is_err());
    }

    #[test]
    fn mops_are_millions_a_second() {
        let sample = Sample::new(3_000_000, Duration::from_millis(1500));
        assert_eq!(sample.mops(), 2.0);
    }
}
