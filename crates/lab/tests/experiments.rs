//! Every experiment, tiny, on every engine of this process, through the library.

use std::time::Duration;
use tremula_index::Engine;
use tremula_lab::{
    LabError, Settings, Watch,
    contestants::{self, ContestantName},
    experiments::{self, Case},
    record::Record,
};

/// Keeps nothing.
struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _measurements: u64) {}
    fn measures(&mut self, _case: &Case, _engine: &str) {}
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
            assert_eq!(record.key_set, "disjoint_ranges");
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
fn memory_needs_a_command_to_start() {
    let settings = tiny(10);
    let names = [ContestantName::Index(Engine::Locked)];
    let mut contestants = contestants::assemble(&names, &settings).unwrap();
    let experiment = experiments::find("memory").unwrap();
    let result = tremula_lab::run(experiment, &settings, &mut contestants, &mut Quiet);
    assert!(matches!(result, Err(LabError::NoFillCommand { .. })));
}
