//! One table over time, phase by phase, with its shape.

use super::ordered_mix::{STRIDE, Tally, operate};

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect, insert_all},
    keys::{Key, stamped},
    live::show_figures,
    measure::Moment,
    measure::{Lap, Sample, Timed, together, together_sliced},
    workload::{self, AdaptationJob, AdaptationPhase, Kind, LongScan, Operation, part_of},
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// The figures of the shape to show: those about the grain and about what it adapts to.
const SHOWN: [&str; 14] = [
    "base_nodes",
    "contended",
    "contention_splits",
    "cooled",
    "drains",
    "entries",
    "hot_leaves",
    "joins",
    "leaves",
    "merges",
    "retries",
    "route_depth",
    "splits",
    "waits",
];

/// Figures of which every table with a grain has one, and no other table has any.
const GRAIN: [&str; 2] = ["base_nodes", "contention_splits"];

/// The figures that are noted at the end of each phase.
const NOTED: [&str; 4] = ["base_nodes", "contention_splits", "hot_leaves", "leaves"];

impl Task<u64> for &AdaptationJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        let mut story = Story {
            table: &table,
            job: self,
            // Taking the shape walks through some tables, so it is taken only of tables that have a
            // grain.
            has_grain: (table.figures().iter()).any(|(name, _)| GRAIN.contains(name)),
            moments: Vec::new(),
            operations: 0,
            elapsed: Duration::ZERO,
            figures: Vec::new(),
        };
        let mut total = Tally::default();
        for phase in AdaptationPhase::ALL {
            for tally in story.tell(phase) {
                total.inserted += tally.inserted;
                total.removed += tally.removed;
                total.faults += tally.faults;
            }
            if phase == AdaptationPhase::Fill {
                expect(
                    "keys reported as new",
                    total.inserted,
                    self.fill.len() as u64,
                )?;
            }
        }
        expect("wrong results", total.faults, 0)?;
        let left = total.inserted.checked_sub(total.removed);
        expect("entries", check(&table)?, left.unwrap_or(0))?;
        let mut sample = Sample::new(story.operations, story.elapsed);
        sample.figures = story.figures;
        sample.series = story.moments;
        Ok(vec![Ok(sample)])
    }
}

/// What has happened to a table so far.
struct Story<'a, S> {
    table: &'a S,
    job: &'a AdaptationJob,
    has_grain: bool,
    moments: Vec<Moment>,
    /// The operations in all slices together.
    operations: u64,
    elapsed: Duration,
    figures: Vec<(String, f64)>,
}

impl<S: Subject<u64>> Story<'_, S> {
    /// Runs a phase. Returns what each thread has changed and seen.
    fn tell(&mut self, phase: AdaptationPhase) -> Vec<Tally> {
        let (table, job) = (self.table, self.job);
        let tallies = match phase {
            AdaptationPhase::Fill => {
                let filled = self.slices(phase, job.threads(), |thread, lap| {
                    fill(table, part_of(&job.fill, thread, job.threads()), lap)
                });
                // Insert the keys that the threads did not get to.
                let rest = together(job.threads(), |thread| {
                    let part = part_of(&job.fill, thread, job.threads());
                    let keys = part[filled.results[thread].done..].iter();
                    let keys: Vec<_> = keys.copied().map(u64::from).collect();
                    insert_all(table, &keys)
                });
                let results = filled.results.into_iter().zip(rest.results);
                results
                    .map(|(filled, rest)| Tally {
                        inserted: filled.inserted + rest,
                        ..Tally::default()
                    })
                    .collect()
            }
            AdaptationPhase::Single | AdaptationPhase::Quiet => {
                let keys = (0, job.range);
                let work = |_, lap: &mut Lap<'_>| work_off(table, &job.single, keys, lap);
                self.slices(phase, 1, work).results
            }
            AdaptationPhase::HotRange => {
                let keys = job.hot_keys();
                let work = |thread: usize, lap: &mut Lap<'_>| {
                    work_off(table, &job.hot_range[thread], keys, lap)
                };
                self.slices(phase, job.threads(), work).results
            }
            AdaptationPhase::HotKey => {
                let key = u64::from(job.hot_keys().0);
                let work = |_, lap: &mut Lap<'_>| replace(table, key, lap);
                self.slices(phase, job.threads(), work).results
            }
            AdaptationPhase::Append => {
                let (first, begun) = (u64::from(job.range), tremula_sync::now());
                let work = |thread, lap: &mut Lap<'_>| append(table, first, begun, thread, lap);
                self.slices(phase, job.threads(), work).results
            }
            AdaptationPhase::Scan => {
                let scans = expected(table, &job.scans);
                let work = |thread: usize, lap: &mut Lap<'_>| scan(table, &scans[thread], lap);
                self.slices(phase, job.threads(), work).results
            }
        };
        let last = self.moments.last();
        for name in NOTED {
            if let Some(figure) = last.and_then(|last| last.figures.get(name)) {
                let after = format!("{name}_after_{}", phase.name());
                self.figures.push((after, *figure));
            }
        }
        tallies
    }

    /// Runs the threads for the time of a phase, and records a moment for each slice of it.
    fn slices<R: Send>(
        &mut self,
        phase: AdaptationPhase,
        threads: usize,
        work: impl Fn(usize, &mut Lap<'_>) -> R + Sync,
    ) -> Timed<R> {
        let (table, job, has_grain) = (self.table, self.job, self.has_grain);
        let before = (self.operations, self.elapsed);
        let timed = together_sliced(threads, job.slices, job.slice, work, |slice| {
            self.operations += slice.operations;
            self.elapsed += slice.elapsed;
            let figures = if has_grain {
                table.figures()
            } else {
                Vec::new()
            };
            let shown = figures.into_iter().filter(|(name, _)| SHOWN.contains(name));
            let shown: Vec<_> = shown
                .map(|(name, figure)| (name.to_owned(), figure as f64))
                .collect();
            show_figures(shown.clone());
            self.moments.push(Moment {
                seconds: self.elapsed.as_secs_f64(),
                phase: phase.name().to_owned(),
                mops: Sample::new(slice.operations, slice.elapsed).mops(),
                figures: shown.into_iter().collect(),
            });
        });
        let (operations, elapsed) = (self.operations - before.0, self.elapsed - before.1);
        let mops = Sample::new(operations, elapsed).mops();
        self.figures.push((format!("{}_mops", phase.name()), mops));
        timed
    }
}

/// What a filling thread has done.
struct Filled {
    inserted: u64,
    /// How many of its keys the thread has inserted.
    done: usize,
}

/// Inserts the keys again and again until the time is up.
fn fill<S: Subject<u64>>(table: &S, keys: &[u32], lap: &mut Lap<'_>) -> Filled {
    let mut filled = Filled {
        inserted: 0,
        done: 0,
    };
    // With more threads than keys, some threads have nothing to do.
    if keys.is_empty() {
        return filled;
    }
    loop {
        for stride in keys.chunks(STRIDE) {
            for key in stride {
                let key = u64::from(*key);
                filled.inserted += u64::from(table.insert(&key, u64::value_of(key)));
            }
            filled.done = (filled.done + stride.len()).min(keys.len());
            if !lap.done(stride.len() as u64) {
                return filled;
            }
        }
    }
}

/// Runs the stream again and again, each time with rotated keys among the `count` keys from `first`
/// on, until the time is up.
fn work_off<S: Subject<u64>>(
    table: &S,
    stream: &[Operation],
    (first, count): (u32, u32),
    lap: &mut Lap<'_>,
) -> Tally {
    let mut tally = Tally::default();
    let mut offset = 0;
    loop {
        for stride in stream.chunks(STRIDE) {
            for operation in stride {
                let key = first + workload::rotate(operation.key(), offset, count);
                operate(table, operation.kind(), u64::from(key), &mut tally);
            }
            if !lap.done(stride.len() as u64) {
                return black_box(tally);
            }
        }
        offset = workload::rotate(offset, workload::rotation_step(count), count);
    }
}

/// Replaces the value of one key until the time is up.
fn replace<S: Subject<u64>>(table: &S, key: u64, lap: &mut Lap<'_>) -> Tally {
    let mut tally = Tally::default();
    loop {
        for _ in 0..STRIDE {
            operate(table, Kind::Insert, key, &mut tally);
        }
        if !lap.done(STRIDE as u64) {
            return tally;
        }
    }
}

/// Inserts keys that are readings of the clock, above `first`, until the time is up.
fn append<S: Subject<u64>>(
    table: &S,
    first: u64,
    begun: Instant,
    thread: usize,
    lap: &mut Lap<'_>,
) -> Tally {
    let mut tally = Tally::default();
    let mut last = 0;
    loop {
        for _ in 0..STRIDE {
            // The clock may show the same time twice.
            let since = tremula_sync::now() - begun;
            let now = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
            last = now.max(last + 1);
            operate(
                table,
                Kind::Insert,
                stamped(first + last, thread),
                &mut tally,
            );
        }
        if !lap.done(STRIDE as u64) {
            return tally;
        }
    }
}

/// The scans, each with the number of keys that it must see. No thread changes the table meanwhile.
fn expected<S: Subject<u64>>(table: &S, scans: &[Vec<LongScan>]) -> Vec<Vec<(LongScan, usize)>> {
    let mut present = Vec::new();
    table.scan(None, usize::MAX, |key, _| present.push(key));
    let expected = |scan: &LongScan| {
        let below = present.partition_point(|key| *key < u64::from(scan.from));
        let above = present.len() - below;
        (*scan, above.min(scan.length as usize))
    };
    let of_thread = |scans: &Vec<LongScan>| scans.iter().map(expected).collect();
    scans.iter().map(of_thread).collect()
}

/// Does the scans again and again until the time is up.
fn scan<S: Subject<u64>>(table: &S, scans: &[(LongScan, usize)], lap: &mut Lap<'_>) -> Tally {
    let mut tally = Tally::default();
    for (scan, expected) in scans.iter().cycle() {
        tally.faults += u64::from(scan.visit(table) != Some(*expected));
        if !lap.done(1) {
            break;
        }
    }
    tally
}
