//! Taking time: threads that start together, and what their times amount to.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// What one measurement of one contestant gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Operations done, by all threads together.
    pub operations: u64,
    /// From the first thread's start to the last thread's end.
    pub elapsed: Duration,
    /// Bytes that the filled table takes for a key, where that was measured.
    pub bytes_per_key: Option<f64>,
}

impl Sample {
    /// Million operations a second.
    #[must_use]
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6
    }
}

/// What threads returned, and how long they took together.
#[derive(Debug)]
pub struct Timed<R> {
    /// From the first thread's start to the last thread's end, by the threads' own readings:
    /// the thread that waits for them may be scheduled late.
    pub elapsed: Duration,
    /// What each thread returned, in the order of the threads.
    pub results: Vec<R>,
}

/// Runs `work` with the number of each of `threads` threads, which start together on a
/// barrier, until the last is done.
///
/// # Panics
///
/// Passes on the panic of a thread.
pub fn together<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Timed<R> {
    start(threads, None, |thread, _| work(thread))
}

/// As [`together`], and sets the flag that `work` gets after `duration`; `work` must then end.
///
/// # Panics
///
/// Passes on the panic of a thread.
pub fn together_for<R: Send>(
    threads: usize,
    duration: Duration,
    work: impl Fn(usize, &AtomicBool) -> R + Sync,
) -> Timed<R> {
    start(threads, Some(duration), work)
}

fn start<R: Send>(
    threads: usize,
    duration: Option<Duration>,
    work: impl Fn(usize, &AtomicBool) -> R + Sync,
) -> Timed<R> {
    let barrier = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    let (barrier, stop, work) = (&barrier, &stop, &work);
    let done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    barrier.wait();
                    let start = Instant::now();
                    let result = work(thread, stop);
                    (start, Instant::now(), result)
                })
            })
            .collect();
        barrier.wait();
        if let Some(duration) = duration {
            thread::sleep(duration);
            // Carries no data: what the workers did is seen through joining them.
            stop.store(true, Ordering::Relaxed);
        }
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let first = done.iter().map(|(start, ..)| *start).min();
    let last = done.iter().map(|(_, end, _)| *end).max();
    Timed {
        elapsed: first
            .zip(last)
            .map_or(Duration::ZERO, |(first, last)| last - first),
        results: done.into_iter().map(|(.., result)| result).collect(),
    }
}

/// The median; of an even number of values the mean of the middle two, of none `None`.
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
                thread::yield_now();
            }
            thread
        });
        assert_eq!(timed.results, [0, 1, 2, 3]);
    }

    #[test]
    fn the_flag_rises_after_the_duration() {
        let duration = Duration::from_millis(5);
        let timed = together_for(2, duration, |_, stop| {
            while !stop.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        });
        assert_eq!(timed.results.len(), 2);
    }

    #[test]
    fn mops_are_millions_a_second() {
        let sample = Sample {
            operations: 3_000_000,
            elapsed: Duration::from_millis(1500),
            bytes_per_key: None,
        };
        assert_eq!(sample.mops(), 2.0);
    }
}
