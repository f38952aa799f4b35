//! Writers update keys, alone and beside a thread that reads the whole table.

use crate::{
    contestants::subject::{Measured, Subject, Task, expect},
    measure::{Lap, Sample, Timed, together, together_for},
    workload::{Company, SnapshotJob, part_of},
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// How many updates a writer does before it looks at the time again.
const STRIDE: usize = 64;

/// The names of the figures that count what the reader does.
const SCANS: &str = "scans_per_second";
const SNAPSHOTS: &str = "snapshots_per_second";

impl Task<u64> for &SnapshotJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        let filled: Timed<u64> = together(self.writers(), |writer| {
            let own = part_of(&self.keys, writer, self.writers()).iter();
            own.map(|key| u64::from(table.insert(key, 0))).sum()
        });
        let new = filled.results.iter().sum();
        expect("keys reported as new", new, self.keys.len() as u64)?;
        // How many updates each writer has done on this table.
        let mut done = vec![0; self.writers()];
        let mut samples = Vec::new();
        for company in &self.company {
            samples.push(self.measure(&table, *company, &mut done)?);
        }
        let mut entries = Vec::new();
        table.scan(None, usize::MAX, |key, value| entries.push((key, value)));
        self.check(&entries, Some(&done))?;
        if let Some(length) = table.length() {
            expect("entries reported", length, self.keys.len() as u64)?;
        }
        Ok(samples)
    }
}

/// What a thread has done.
enum Done {
    Updates(Updates),
    Reads(Reads),
}

/// The updates of a writer.
struct Updates {
    /// How many it has done on this table so far.
    done: u64,
    /// How many of them count, and from when to when.
    counted: u64,
    begun: Instant,
    ended: Instant,
}

/// The scans or snapshots of a measurement.
struct Reads {
    count: u64,
    elapsed: Duration,
    /// The last one, to be checked when the time is over.
    last: Last,
}

enum Last {
    /// How many entries the scan visited.
    Scan(usize),
    Snapshot(Vec<(u64, u64)>),
    /// It was read in parts, and not kept.
    Parts,
    /// The table gives no snapshots.
    Nothing,
}

impl SnapshotJob {
    /// Measures the writers, which go on until the last scan or snapshot is complete. Their
    /// throughput is that of the time that counts, though, and not of what the last one takes
    /// longer.
    fn measure<S: Subject<u64>>(
        &self,
        table: &S,
        company: Company,
        done: &mut [u64],
    ) -> Result<Result<Sample, String>, String> {
        let writers = self.writers();
        let beside = company != Company::Nobody;
        let is_over = AtomicBool::new(!beside);
        let threads = writers + usize::from(beside);
        let timed = together_for(threads, self.span, |thread, lap| match done.get(thread) {
            Some(done) => {
                let stream = &self.streams[thread];
                Done::Updates(update(table, stream, *done, lap, &is_over))
            }
            None => Done::Reads(read(table, company, lap, &is_over)),
        });
        let (mut updates, mut reads) = (Vec::new(), None);
        for result in timed.results {
            match result {
                Done::Updates(of_writer) => updates.push(of_writer),
                Done::Reads(of_reader) => reads = Some(of_reader),
            }
        }
        for (done, updates) in done.iter_mut().zip(&updates) {
            *done = updates.done;
        }
        let begun = updates.iter().map(|updates| updates.begun).min();
        let ended = updates.iter().map(|updates| updates.ended).max();
        let elapsed = ended.zip(begun).map(|(ended, begun)| ended - begun);
        let counted = updates.iter().map(|updates| updates.counted).sum();
        let mut sample = Sample::new(counted, elapsed.unwrap_or_default());
        if let Some(reads) = reads {
            let (name, checked) = match reads.last {
                Last::Scan(visited) => (SCANS, self.check_length(visited)),
                Last::Snapshot(copy) => (SNAPSHOTS, self.check(&copy, None)),
                Last::Parts | Last::Nothing => return Err("it gave no snapshot".into()),
            };
            if let Err(fault) = checked {
                return Ok(Err(fault));
            }
            let seconds = reads.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let figure = (name.to_owned(), reads.count as f64 / seconds);
            sample.figures.push(figure);
        }
        Ok(Ok(sample))
    }
}

/// Writes the numbers of its updates under the keys of the stream, after the `done` ones before,
/// until the time is up, and then without counting until all is over.
fn update<S: Subject<u64>>(
    table: &S,
    stream: &[u64],
    mut done: u64,
    lap: &mut Lap<'_>,
    is_over: &AtomicBool,
) -> Updates {
    let mut counted_until = None;
    let mut place = (done % stream.len().max(1) as u64) as usize;
    loop {
        let stride = STRIDE.min(stream.len());
        for _ in 0..stride {
            done += 1;
            table.update(&stream[place], done);
            place += 1;
            if place == stream.len() {
                place = 0;
            }
        }
        if counted_until.is_none() && !lap.done(stride as u64) {
            counted_until = Some((lap.end(), Instant::now()));
        }
        // Relaxed: the flag publishes no data. Joining the threads makes what they did visible.
        if let Some(((begun, counted), ended)) = counted_until
            && is_over.load(Ordering::Relaxed)
        {
            return Updates {
                done,
                counted,
                begun,
                ended,
            };
        }
    }
}

/// Sets a flag when dropped, so that the writers end after a panic, too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the whole table again and again until the time is up; at least once.
fn read<S: Subject<u64>>(
    table: &S,
    company: Company,
    lap: &mut Lap<'_>,
    is_over: &AtomicBool,
) -> Reads {
    let _over = Over(is_over);
    let begun = Instant::now();
    let mut count = 0;
    loop {
        let last = match company {
            Company::Scans => {
                let (mut visited, mut sum) = (0, 0_u64);
                table.scan(None, usize::MAX, |_, value| {
                    visited += 1;
                    sum = sum.wrapping_add(value);
                });
                black_box(sum);
                Last::Scan(visited)
            }
            Company::Parts => {
                let mut sum = 0_u64;
                let can = table.snapshot_in_parts(|part| {
                    let values = part.iter().map(|(_, value)| value);
                    sum = values.fold(sum, |sum, value| sum.wrapping_add(*value));
                });
                black_box(sum);
                if can { Last::Parts } else { Last::Nothing }
            }
            _ => table.snapshot().map_or(Last::Nothing, Last::Snapshot),
        };
        count += 1;
        if !lap.done(0) || matches!(last, Last::Nothing) {
            let elapsed = begun.elapsed();
            let last = match last {
                // To be checked, one more is kept.
                Last::Parts => {
                    let mut entries = Vec::new();
                    table.snapshot_in_parts(|part| entries.extend_from_slice(part));
                    Last::Snapshot(entries)
                }
                last => last,
            };
            return Reads {
                count,
                elapsed,
                last,
            };
        }
    }
}
