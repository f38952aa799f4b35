//! Every experiment, tiny, on every engine of this process, through the library.

use std::time::Duration;
use tremula_index::Engine;
use tremula_lab::{
    LabError, Settings, Watch,
    contestants::{self, ContestantName},
    experiments::{self, Case},
    keys::KeySet,
    record::Record,
    workload::Distribution,
};

/// Keeps nothing.
struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _measurements: u64) {}
    fn measures(&mut self, _case: &Case, _engine: &str) {}
    fn wrong(&mut self, _case: &Case, _fault: &LabError) {}
    fn measured(&mut self) {}
    fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
        Ok(())
    }
}

fn tiny(keys: u64) -> Settings {
    Settings {
        threads: Some(vec![1, 3]),
        keys: Some(keys),
        duration: Duration::from_millis(50),
        runs: 2,
        ..Settings::default()
    }
}

/// As [`tiny`], for experiments of many cases.
fn brief(keys: u64) -> Settings {
    Settings {
        duration: Duration::from_millis(8),
        runs: 1,
        ..tiny(keys)
    }
}

fn run(experiment: &str, settings: &Settings) -> Vec<Record> {
    let names = Engine::ALL.map(ContestantName::Index);
    let mut contestants = contestants::assemble(&names, settings).unwrap();
    let experiment = experiments::find(experiment).unwrap();
    tremula_lab::run(experiment, settings, &mut contestants, &mut Quiet).unwrap()
}

#[test]
fn insert_disjoint_ranges_records_every_engine_and_thread_count() {
    // 1001: not a multiple of the threads. 2: fewer keys than threads.
    for keys in [1001, 2] {
        let records = run("insert_disjoint_ranges", &tiny(keys));
        assert_eq!(records.len(), 2 * Engine::ALL.len());
        for record in records {
            assert_eq!(record.keys, keys);
            assert_eq!(record.key_set, "mono_int");
            assert!(record.mops > 0.0 && record.runs.len() == 2, "{record:?}");
            assert_eq!(record.made_by.configuration.seconds, None);
        }
    }
}

#[test]
fn ordered_mix_records_every_mix_engine_and_thread_count() {
    let records = run("ordered_mix", &tiny(5000));
    assert_eq!(records.len(), 6 * 2 * Engine::ALL.len());
    for record in records {
        assert!(record.mops > 0.0 && record.runs.len() == 2, "{record:?}");
        assert_eq!(record.made_by.configuration.seconds, Some(0.05));
        assert_eq!(record.bytes_per_key, None);
    }
}

/// The smallest range has one key present and one not; streams rotate through both.
#[test]
fn ordered_mix_runs_on_the_smallest_range() {
    assert!(!run("ordered_mix", &tiny(2)).is_empty());
}

#[test]
fn ycsb_records_every_key_set_mix_distribution_engine_and_thread_count() {
    let settings = Settings {
        key_sets: KeySet::ALL.to_vec(),
        ..brief(3000)
    };
    let records = run("ycsb", &settings);
    // Insert-only once; c, a and e with each distribution.
    let rows = 1 + 3 * Distribution::ALL.len();
    assert_eq!(
        records.len(),
        KeySet::ALL.len() * 2 * rows * Engine::ALL.len()
    );
    for record in records {
        assert!(record.mops > 0.0 && record.runs.len() == 1, "{record:?}");
        let insert = record.workload == "insert";
        assert_eq!(record.distribution.is_none(), insert);
        assert_eq!(record.made_by.configuration.seconds.is_none(), insert);
        assert_eq!(record.key_bytes == 8.0, record.key_set != "email");
    }
}

/// Fewer keys than threads, and so threads without keys of their own.
#[test]
fn ycsb_runs_on_the_smallest_table() {
    assert!(!run("ycsb", &brief(1)).is_empty());
}

#[test]
fn high_contention_tells_how_often_operations_begin_again() {
    let settings = Settings {
        threads: Some(vec![2]),
        keys: Some(20_000),
        runs: 1,
        ..Settings::default()
    };
    for record in run("high_contention", &settings) {
        assert!(record.mops > 0.0);
        assert_eq!(record.key_set, "append");
        let retries = record.figures.get("retries_per_operation");
        assert_eq!(retries.is_some(), record.engine == "ca_tree", "{record:?}");
        assert!(retries.is_none_or(|retries| (0.0..100.0).contains(retries)));
    }
}

#[test]
fn batched_get_records_both_ways_of_looking_up() {
    let records = run("batched_get", &brief(1000));
    // Two key sets, two numbers of threads.
    assert_eq!(records.len(), 2 * 2 * 2 * Engine::ALL.len());
    assert!(records.iter().all(|record| record.mops > 0.0));
    let batched = records.iter().filter(|r| r.workload == "batches_of_16");
    assert_eq!(batched.count(), records.len() / 2);
}

#[test]
fn memory_needs_a_command_to_start() {
    let settings = tiny(10);
    let names = [ContestantName::Index(Engine::Locked)];
    let mut contestants = contestants::assemble(&names, &settings).unwrap();
    let experiment = experiments::find("memory").unwrap();
    let result = tremula_lab::run(experiment, &settings, &mut contestants, &mut Quiet);
    assert!(matches!(result, Err(LabError::NoFillCommand { .. })));
}
