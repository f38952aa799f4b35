//! Tables with planted faults; none may get a figure.

use super::insert_ranges::InsertRanges;
use crate::{
    contestants::subject::{Subject, Task},
    keys::{Key, KeyList},
    measure::{Sample, Span},
    workload::{
        AdaptationJob, Company, Distribution, LongScanJob, Mix, MixJob, Phase, Purpose, RemoveJob,
        SnapshotJob, YcsbJob, YcsbMix, actions, draw_keys, expected_scans, generator, random_half,
        scans, stream, update_stream,
    },
};
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tremula_index::Direction;

/// What a [`Faulty`] table does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    /// It reports inserts of odd keys without doing them.
    LosesInserts,
    /// Removed odd keys stay in it.
    KeepsRemoved,
    /// It finds the value of another key.
    ForeignValue,
    /// `next` stands still.
    StuckNext,
    /// A scan begins above its bound.
    SkipsFirst,
    /// A scan visits two keys out of order.
    OutOfOrder,
    /// A scan visits a key with another key's value.
    ForeignScan,
    /// A scan visits nothing.
    EmptyScan,
    /// A snapshot has its upper half from a later moment than its lower half.
    TornSnapshot,
}

struct Faulty {
    fault: Fault,
    entries: Mutex<BTreeMap<u64, u64>>,
    inserts: AtomicU64,
}

impl Faulty {
    /// What a scan from a key shows instead of these entries. Only scans with a bound are wrong.
    /// The check at the end would notice the others anyway.
    fn spoil(&self, shown: &mut Vec<(u64, u64)>) {
        match self.fault {
            Fault::SkipsFirst if shown.len() > 1 => drop(shown.remove(0)),
            Fault::OutOfOrder if shown.len() > 2 => shown.swap(1, 2),
            Fault::ForeignScan if !shown.is_empty() => shown[0].1 ^= 1,
            Fault::EmptyScan => shown.clear(),
            _ => {}
        }
    }
}

impl Subject<u64> for Faulty {
    fn insert(&self, key: &u64, value: u64) -> bool {
        self.inserts.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock().unwrap();
        if self.fault == Fault::LosesInserts && key % 2 == 1 {
            return !entries.contains_key(key);
        }
        entries.insert(*key, value).is_none()
    }

    fn remove(&self, key: &u64) -> bool {
        let mut entries = self.entries.lock().unwrap();
        if self.fault == Fault::KeepsRemoved && key % 2 == 1 {
            return entries.contains_key(key);
        }
        entries.remove(key).is_some()
    }

    fn get(&self, key: &u64) -> Option<u64> {
        let found = self.entries.lock().unwrap().get(key).copied();
        found.map(|value| value ^ u64::from(self.fault == Fault::ForeignValue))
    }

    fn next(&self, key: &u64) -> Option<u64> {
        if self.fault == Fault::StuckNext {
            return Some(*key);
        }
        let entries = self.entries.lock().unwrap();
        entries.range(key + 1..).next().map(|(key, _)| *key)
    }

    fn scan<F>(&self, from: Option<&u64>, limit: usize, mut visit: F)
    where
        F: FnMut(u64, u64),
    {
        let entries = self.entries.lock().unwrap();
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let range = entries.range((low, Bound::Unbounded));
        let mut shown: Vec<_> = range
            .map(|(key, value)| (*key, *value))
            .take(limit)
            .collect();
        if from.is_some() {
            self.spoil(&mut shown);
        }
        for (key, value) in shown {
            visit(key, value);
        }
    }

    fn scan_down<F>(&self, from: Option<&u64>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(u64, u64),
    {
        let entries = self.entries.lock().unwrap();
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let range = entries.range((Bound::Unbounded, high)).rev();
        let shown = range.map(|(key, value)| (*key, *value)).take(limit);
        let mut shown: Vec<_> = shown.collect();
        self.spoil(&mut shown);
        for (key, value) in shown {
            visit(key, value);
        }
        true
    }

    fn snapshot(&self) -> Option<Vec<(u64, u64)>> {
        let copy = || self.entries.lock().unwrap().clone().into_iter();
        let mut copied: Vec<_> = copy().collect();
        if self.fault == Fault::TornSnapshot {
            // Enough for every key to be updated meanwhile.
            let before = self.inserts.load(Ordering::Relaxed);
            while self.inserts.load(Ordering::Relaxed) - before < 50_000 {
                thread::yield_now();
            }
            let half = copied.len() / 2;
            copied.truncate(half);
            copied.extend(copy().skip(half));
        }
        self.spoil(&mut copied);
        Some(copied)
    }

    fn length(&self) -> Option<u64> {
        Some(self.entries.lock().unwrap().len() as u64)
    }
}

fn faulty(fault: Fault) -> impl Fn() -> Faulty {
    move || Faulty {
        fault,
        entries: Mutex::default(),
        inserts: AtomicU64::new(0),
    }
}

/// The fault found in a measurement or in the table; `None` if every figure would be believed.
fn fault_of(measured: super::Measured) -> Option<String> {
    match measured {
        Ok(samples) => samples.into_iter().find_map(Result::err),
        Err(fault) => Some(fault),
    }
}

const SPAN: Span = Span {
    warm_up: Duration::from_millis(5),
    counted: Duration::from_millis(25),
};

fn mix_job(mix: Mix) -> MixJob {
    let range = 1 << 14;
    let streams = (0..2).map(|thread| {
        let mut random = generator(5, Purpose::Stream, 0, thread);
        stream(mix.shares(), range, 1 << 12, &mut random)
    });
    MixJob {
        range,
        prefill: random_half(range, &mut generator(5, Purpose::Prefill, 0, 0)),
        streams: streams.collect(),
        span: SPAN,
    }
}

fn ycsb_job(mix: YcsbMix) -> YcsbJob<u64> {
    let keys = KeyList {
        loaded: (0..3000_u64).map(|i| i * 7).collect(),
        fresh: (0..500_u64).map(|i| i * 7 + 1).collect(),
    };
    let length = 2000;
    let mut random = generator(5, Purpose::Stream, 0, 0);
    let mut draw = |_| draw_keys(&keys.loaded, Distribution::Uniform, length, &mut random);
    let streams = (0..2).map(&mut draw).collect();
    let phase = Phase {
        distribution: Distribution::Uniform,
        actions: (0..2).map(|_| actions(mix, length, &mut random)).collect(),
    };
    YcsbJob {
        keys,
        threads: 2,
        insert_counts: true,
        streams: vec![(Distribution::Uniform, streams)],
        phases: vec![phase],
        span: SPAN,
    }
}

fn adaptation_job() -> AdaptationJob {
    let range = 1 << 12;
    let mut random = generator(5, Purpose::Stream, 0, 0);
    let mut job = AdaptationJob {
        range,
        fill: random_half(range, &mut generator(5, Purpose::Prefill, 0, 0)),
        single: stream(Mix::Update50.shares(), range, 1 << 10, &mut random),
        hot_range: Vec::new(),
        scans: Vec::new(),
        slices: 2,
        slice: Duration::from_millis(5),
    };
    let hot = job.hot_keys().1;
    for _ in 0..2 {
        let shares = Mix::Update100.shares();
        job.hot_range
            .push(stream(shares, hot, 1 << 10, &mut random));
        job.scans.push(scans(range / 2, 9..=9, 100, &mut random));
    }
    job
}

fn remove_job() -> RemoveJob {
    let keys = (0..1001_u64).map(|i| i * 7).collect();
    RemoveJob::new(keys, 2, &mut generator(5, Purpose::Choices, 0, 0))
}

fn long_scan_job(direction: Direction) -> LongScanJob {
    let keys: Vec<u64> = (0..12_000).map(|i| i * 7).collect();
    let mut random = generator(5, Purpose::Choices, 0, 0);
    let scans = (0..2).map(|_| expected_scans(&keys, direction, 50, &mut random));
    LongScanJob {
        direction,
        scans: scans.collect(),
        span: SPAN,
        keys,
    }
}

fn snapshot_job() -> SnapshotJob {
    // Not in order, so that the keys of each writer lie everywhere.
    let keys: Vec<u64> = (0..500).map(|i| i * 181 % 500 * 7).collect();
    let mut random = generator(5, Purpose::Choices, 0, 0);
    let streams = (0..2).map(|writer| update_stream(&keys, writer, 2, 4000, &mut random));
    SnapshotJob {
        streams: streams.collect(),
        company: Company::ALL.into(),
        span: SPAN,
        keys,
    }
}

#[test]
fn a_right_table_is_believed() {
    for mix in Mix::ALL {
        let samples = mix_job(mix).run(faulty(Fault::Nothing)).unwrap();
        assert!(samples[0].as_ref().unwrap().operations > 0);
    }
    for mix in [YcsbMix::C, YcsbMix::A, YcsbMix::E] {
        let samples = ycsb_job(mix).run(faulty(Fault::Nothing)).unwrap();
        assert_eq!(samples[0].as_ref().unwrap().operations, 3000);
        assert!(samples[1].as_ref().unwrap().operations > 0);
    }
    let samples = adaptation_job().run(faulty(Fault::Nothing)).unwrap();
    assert_eq!(samples[0].as_ref().unwrap().series.len(), 14);
    let ranges = InsertRanges {
        keys: 1001,
        threads: 3,
    };
    let samples = ranges.run(faulty(Fault::Nothing)).unwrap();
    assert_eq!(samples[0].as_ref().unwrap().operations, 1001);
    let samples = remove_job().run(faulty(Fault::Nothing)).unwrap();
    assert_eq!(samples[0].as_ref().unwrap().operations, 1001);
    for direction in [Direction::Ascending, Direction::Descending] {
        let samples = long_scan_job(direction).run(faulty(Fault::Nothing));
        assert!(samples.unwrap()[0].as_ref().unwrap().operations > 0);
    }
    let samples = snapshot_job().run(faulty(Fault::Nothing)).unwrap();
    let figures = |at: usize| {
        let sample: &Sample = samples[at].as_ref().unwrap();
        let figures = sample.figures.iter();
        figures
            .map(|(name, figure)| (&**name, *figure > 0.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(0), []);
    assert_eq!(figures(1), [("scans_per_second", true)]);
    assert_eq!(figures(2), [("snapshots_per_second", true)]);
}

#[test]
fn a_wrong_table_is_not_believed_when_it_is_emptied() {
    for fault in [Fault::LosesInserts, Fault::KeepsRemoved] {
        let found = fault_of(remove_job().run(faulty(fault)));
        assert!(found.is_some(), "{fault:?}");
    }
}

#[test]
fn a_wrong_table_is_not_believed_in_long_scans() {
    for direction in [Direction::Ascending, Direction::Descending] {
        for fault in [
            Fault::LosesInserts,
            Fault::SkipsFirst,
            Fault::OutOfOrder,
            Fault::ForeignScan,
            Fault::EmptyScan,
        ] {
            let found = fault_of(long_scan_job(direction).run(faulty(fault)));
            assert!(found.is_some(), "{direction:?} {fault:?}");
        }
    }
}

#[test]
fn a_wrong_table_is_not_believed_beside_snapshots() {
    for fault in [
        Fault::LosesInserts,
        Fault::SkipsFirst,
        Fault::OutOfOrder,
        Fault::ForeignScan,
        Fault::EmptyScan,
        Fault::TornSnapshot,
    ] {
        let found = fault_of(snapshot_job().run(faulty(fault)));
        assert!(found.is_some(), "{fault:?}");
    }
}

/// Fails if a table with a fault could still get a figure.
#[test]
fn a_wrong_table_is_not_believed_in_a_mix() {
    for (fault, mix) in [
        (Fault::LosesInserts, Mix::Update50),
        (Fault::KeepsRemoved, Mix::Update50),
        (Fault::ForeignValue, Mix::Update50),
        (Fault::StuckNext, Mix::NextSeq),
    ] {
        assert!(
            fault_of(mix_job(mix).run(faulty(fault))).is_some(),
            "{fault:?}"
        );
    }
    let ranges = InsertRanges {
        keys: 1001,
        threads: 3,
    };
    let found = fault_of(ranges.run(faulty(Fault::LosesInserts)));
    assert!(found.unwrap().contains("expected 1001"));
}

#[test]
fn a_wrong_table_is_not_believed_in_ycsb() {
    for (fault, mix) in [
        (Fault::LosesInserts, YcsbMix::C),
        (Fault::ForeignValue, YcsbMix::C),
        (Fault::ForeignValue, YcsbMix::A),
        (Fault::SkipsFirst, YcsbMix::E),
        (Fault::OutOfOrder, YcsbMix::E),
        (Fault::ForeignScan, YcsbMix::E),
        (Fault::EmptyScan, YcsbMix::E),
    ] {
        assert!(
            fault_of(ycsb_job(mix).run(faulty(fault))).is_some(),
            "{fault:?}"
        );
    }
}

/// Fails if the model misses a fault that at best a measurement would find.
#[test]
fn a_wrong_table_is_found_out_by_the_model() {
    let keys: Vec<u64> = (0..2000).collect();
    let check = |fault| {
        let check = super::model::Check {
            keys: &keys,
            seed: 5,
        };
        check.run(faulty(fault))
    };
    assert_eq!(check(Fault::Nothing), Ok(()));
    for (fault, said) in [
        (Fault::LosesInserts, "expected"),
        (Fault::KeepsRemoved, "expected"),
        (Fault::ForeignValue, "get"),
        (Fault::StuckNext, "next"),
        (Fault::SkipsFirst, "scan of"),
        (Fault::OutOfOrder, "scan of"),
        (Fault::ForeignScan, "scan of"),
        (Fault::EmptyScan, "scan of"),
    ] {
        let found = check(fault).unwrap_err();
        assert!(found.contains(said), "{fault:?}: {found}");
    }
}

#[test]
fn a_wrong_table_is_not_believed_over_time() {
    for fault in [
        Fault::LosesInserts,
        Fault::KeepsRemoved,
        Fault::ForeignValue,
        Fault::SkipsFirst,
        Fault::OutOfOrder,
        Fault::ForeignScan,
        Fault::EmptyScan,
    ] {
        assert!(
            fault_of(adaptation_job().run(faulty(fault))).is_some(),
            "{fault:?}"
        );
    }
}

#[test]
fn values_in_a_table_belong_to_its_keys() {
    let table = faulty(Fault::Nothing)();
    table.insert(&7, u64::value_of(7));
    assert_eq!(crate::contestants::check(&table), Ok(1));
    table.insert(&8, 8);
    assert!(crate::contestants::check(&table).is_err());
}
