//! How much of the machine a measurement got.

use std::{
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};
use tremula_shard::topology::{self, Cpu};

/// A measurement is quiet if the program had at least this fraction of the machine before and after
/// it.
pub(crate) const QUIET: f64 = 0.8;

/// How long a reading takes.
const READING: Duration = Duration::from_millis(10);

/// Measures the fraction of the machine's cores that the program gets at the moment.
///
/// A virtual machine does not learn that its host lends its cores to others, and the load average
/// of the system does not include neighbours. So a reading does work: a thread counts on each core,
/// and their speeds are compared with the highest speed that any thread ever reached. The threads
/// are pinned, because the scheduler often leaves two of them on one core for the whole reading.
pub(crate) struct Gauge {
    cores: usize,
    /// One for each core; empty where the system does not report them.
    processors: Vec<Cpu>,
    /// The highest count a second of one thread in any reading.
    fastest: f64,
}

impl Gauge {
    pub(crate) fn of_this_machine() -> Self {
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            processors: topology::allowed().unwrap_or_default(),
            fastest: 0.0,
        }
    }

    /// Takes a reading: the fraction of the cores, 0 to 1.
    pub(crate) fn read(&mut self) -> f64 {
        let barrier = Barrier::new(self.cores);
        let speeds: Vec<f64> = thread::scope(|scope| {
            let counting: Vec<_> = (0..self.cores)
                .map(|core| {
                    let (barrier, processor) = (&barrier, self.processors.get(core).copied());
                    scope.spawn(move || count(barrier, processor))
                })
                .collect();
            counting
                .into_iter()
                .map(|thread| thread.join().unwrap_or_default())
                .collect()
        });
        self.judge(&speeds)
    }

    fn judge(&mut self, speeds: &[f64]) -> f64 {
        self.fastest = speeds.iter().copied().fold(self.fastest, f64::max);
        speeds.iter().sum::<f64>() / (self.fastest * speeds.len() as f64)
    }
}

/// Counts on this processor for the time of a reading. Returns the count a second.
fn count(barrier: &Barrier, processor: Option<Cpu>) -> f64 {
    /// How far a thread counts before it looks at the clock again.
    const STRIDE: u64 = 1000;

    if let Some(processor) = processor {
        // If the process has lost this processor since, the scheduler places the thread.
        let _ = topology::pin(processor);
    }
    barrier.wait();
    let begun = Instant::now();
    let mut counted = 0_u64;
    while begun.elapsed() < READING {
        for _ in 0..STRIDE {
            counted = black_box(counted + 1);
        }
    }
    counted as f64 / begun.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_a_part() {
        let mut gauge = Gauge::of_this_machine();
        for _ in 0..3 {
            let share = gauge.read();
            assert!(share > 0.0 && share <= 1.0, "{share}");
        }
    }

    #[test]
    fn threads_are_compared_with_the_fastest_that_one_ever_was() {
        let mut gauge = Gauge {
            cores: 2,
            processors: Vec::new(),
            fastest: 0.0,
        };
        assert_eq!(gauge.judge(&[4.0, 2.0]), 0.75);
        assert_eq!(gauge.judge(&[2.0, 2.0]), 0.5);
        assert_eq!(gauge.judge(&[8.0, 8.0]), 1.0);
        assert_eq!(gauge.judge(&[4.0, 4.0]), 0.5);
    }
}
