//! Writers update keys, alone and beside snapshots of the whole table.

use crate::{
    contestants::subject::{Measured, Subject, Task, expect},
    measure::{Lap, Sample, Timed, together, together_for},
    workload::{Company, SnapshotJob, part_of},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// How many updates a writer does before it looks at the time again.
const STRIDE: usize = 64;

/// The name of the figure that counts snapshots.
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
    Snapshots(Snapshots),
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

/// The snapshots of a measurement.
struct Snapshots {
    count: u64,
    elapsed: Duration,
    /// The last one, to be checked when the time is over.
    last: Option<Vec<(u64, u64)>>,
}

impl SnapshotJob {
    /// Measures the writers, which go on until the last snapshot is complete. Their throughput is
    /// that of the time that counts, though, and not of what the last snapshot takes longer.
    fn measure<S: Subject<u64>>(
        &self,
        table: &S,
        company: Company,
        done: &mut [u64],
    ) -> Result<Result<Sample, String>, String> {
        let writers = self.writers();
        let beside = company == Company::Snapshots;
        let is_over = AtomicBool::new(!beside);
        let threads = writers + usize::from(beside);
        let timed = together_for(threads, self.span, |thread, lap| match done.get(thread) {
            Some(done) => {
                let stream = &self.streams[thread];
                Done::Updates(update(table, stream, *done, lap, &is_over))
            }
            None => Done::Snapshots(take_snapshots(table, lap, &is_over)),
        });
        let (mut updates, mut snapshots) = (Vec::new(), None);
        for result in timed.results {
            match result {
                Done::Updates(of_writer) => updates.push(of_writer),
                Done::Snapshots(taken) => snapshots = Some(taken),
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
        if let Some(taken) = snapshots {
            let last = taken.last.ok_or("it gave no snapshot")?;
            if let Err(fault) = self.check(&last, None) {
                return Ok(Err(fault));
            }
            let seconds = taken.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
            let figure = (SNAPSHOTS.to_owned(), taken.count as f64 / seconds);
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

/// Takes one snapshot after the other until the time is up; at least one.
fn take_snapshots<S: Subject<u64>>(
    table: &S,
    lap: &mut Lap<'_>,
    is_over: &AtomicBool,
) -> Snapshots {
    let _over = Over(is_over);
    let begun = Instant::now();
    let mut count = 0;
    loop {
        let last = table.snapshot();
        count += 1;
        if !lap.done(0) || last.is_none() {
            return Snapshots {
                count,
                elapsed: begun.elapsed(),
                last,
            };
        }
    }
}
