//! The order of measuring, with contestants that only note their turns.

use super::*;
use crate::{
    Settings,
    contestants::{Measures, Started},
    experiments,
    workload::TableJob,
};
use std::{cell::RefCell, rc::Rc, time::Duration};

/// Notes each turn, and takes one more second for the same work from run to run. Its answers to the
/// check before the runs may be wrong.
struct Noting {
    name: &'static str,
    is_right: bool,
    turns: Rc<RefCell<Vec<&'static str>>>,
    seconds: u64,
}

impl Started for Noting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        "0".to_owned()
    }

    fn check_against_model(&mut self, _case: &Case, _seed: u64) -> Result<(), LabError> {
        assert!(
            self.turns.borrow().is_empty(),
            "answers come before measuring"
        );
        if self.is_right {
            return Ok(());
        }
        Err(LabError::Wrong {
            engine: self.name,
            fault: "get 1: None, expected Some(2)".to_owned(),
        })
    }
}

impl Measures<TableJob> for Noting {
    fn measure(&mut self, _job: &TableJob) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        self.turns.borrow_mut().push(self.name);
        self.seconds += 1;
        let mut sample = Sample::new(6_000_000, Duration::from_secs(self.seconds));
        sample.send_mops = Some(self.seconds as f64);
        sample.bytes_per_key = Some(self.seconds as f64);
        sample
            .figures
            .push(("restarts".to_owned(), self.seconds as f64));
        Ok(vec![Ok(sample)])
    }
}

const LOCKED: &str = "locked";
const CA_TREE: &str = "ca_tree";
const RIVAL: &str = "ferntree";

/// The order of turns, and the records, of these contestants (some wrong), with these numbers of
/// threads, on a machine that leaves this fraction of itself to them.
fn run_noting(
    engines: &[(&'static str, bool)],
    threads: &[usize],
    share: f64,
    watch: &mut Counting,
) -> (Vec<&'static str>, Result<Vec<Record>, LabError>) {
    let turns = Rc::new(RefCell::new(Vec::new()));
    let noting = |&(name, is_right): &(&'static str, bool)| {
        Contestant::Table(Box::new(Noting {
            name,
            is_right,
            turns: Rc::clone(&turns),
            seconds: 0,
        }))
    };
    let mut contestants: Vec<_> = engines.iter().map(noting).collect();
    let names: Vec<_> = engines
        .iter()
        .map(|(name, _)| name.parse().unwrap())
        .collect();
    let settings = Settings {
        threads: Some(threads.to_vec()),
        ..Settings::default()
    };
    let experiment = experiments::find("insert_disjoint_ranges").unwrap();
    let plan = Plan::on_machine(experiment, settings, &names, |_| None).unwrap();
    let result = run_gauged(&plan, &mut contestants, watch, &mut || share);
    (turns.take(), result)
}

#[derive(Default)]
struct Counting {
    /// It interrupts after this many measurements.
    most: Option<u64>,
    /// Cases with this many threads count as measured before.
    keeps_threads: Option<usize>,
    wrong: Vec<String>,
    begun: u64,
    measured: u64,
    groups: usize,
}

impl Watch for Counting {
    fn begins(&mut self, measurements: u64) {
        self.begun = measurements;
    }

    fn measures(&mut self, _case: &Case, _engine: &str) {}

    fn wrong(&mut self, _case: &Case, fault: &LabError) {
        self.wrong.push(fault.to_string());
    }

    fn keeps(&mut self, group: &[Record]) -> bool {
        Some(group[0].threads) == self.keeps_threads
    }

    fn interrupted(&self) -> bool {
        Some(self.measured) == self.most
    }

    fn measured(&mut self) {
        self.measured += 1;
    }

    fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
        self.groups += 1;
        Ok(())
    }
}

#[test]
fn contestants_take_turns_and_the_median_is_kept() {
    let mut watch = Counting::default();
    let (turns, records) = run_noting(&[(LOCKED, true), (CA_TREE, true)], &[1], 1.0, &mut watch);
    let records = records.unwrap();
    for run in turns.chunks(2) {
        assert!(run.contains(&LOCKED) && run.contains(&CA_TREE), "{turns:?}");
    }
    assert_eq!((watch.begun, watch.measured, watch.groups), (6, 6, 1));
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record.runs, [6.0, 3.0, 2.0]);
        assert_eq!(record.shares, [1.0; 3]);
        assert_eq!(record.mops, 3.0);
        assert_eq!(record.send_mops, Some(2.0));
        assert_eq!(record.bytes_per_key, Some(2.0));
        assert_eq!(record.figures["restarts"], 2.0);
        assert_eq!(record.key_bytes, 8.0);
        let made_by = &record.made_by;
        assert_eq!(made_by.group_records, Some(2));
        assert_eq!(
            made_by.configuration_hash,
            Some(record.hash_configuration())
        );
        assert!(
            made_by
                .started
                .is_some_and(|started| started > 1_700_000_000)
        );
        assert_eq!(made_by.configuration.runs, Some(3));
    }
}

#[test]
fn the_seed_decides_the_order_of_each_run_and_nobody_always_follows_the_same_one() {
    let turns = || {
        let engines = [LOCKED, CA_TREE, "b_tree", "art"].map(|name| (name, true));
        let threads: Vec<_> = (1..=8).collect();
        run_noting(&engines, &threads, 1.0, &mut Counting::default()).0
    };
    let first = turns();
    assert_eq!(first, turns());
    for engine in [LOCKED, CA_TREE, "b_tree", "art"] {
        let before: std::collections::BTreeSet<_> = first
            .chunks(4)
            .filter_map(|run| {
                let place = run.iter().position(|name| *name == engine)?;
                Some(run[place.checked_sub(1)?])
            })
            .collect();
        assert_eq!(before.len(), 3, "{engine} follows {before:?} only");
    }
}

#[test]
fn one_of_ours_with_a_wrong_answer_ends_all_before_anything_is_measured() {
    let mut watch = Counting::default();
    let (turns, result) = run_noting(&[(LOCKED, true), (CA_TREE, false)], &[1], 1.0, &mut watch);
    assert!(matches!(
        result,
        Err(LabError::Wrong {
            engine: "ca_tree",
            ..
        })
    ));
    assert!(turns.is_empty() && watch.begun == 0);
}

#[test]
fn a_rival_with_a_wrong_answer_gets_a_record_with_the_error_and_a_note() {
    let mut watch = Counting::default();
    let engines = [(LOCKED, true), (RIVAL, false)];
    let (turns, records) = run_noting(&engines, &[1, 2], 1.0, &mut watch);
    assert_eq!(turns, ["locked"; 6]);
    let records = records.unwrap();
    let fault = "ferntree is wrong: get 1: None, expected Some(2)";
    let errors: Vec<_> = records
        .iter()
        .map(|record| (record.engine.as_str(), record.error.as_deref()))
        .collect();
    assert_eq!(errors, [(LOCKED, None), (RIVAL, Some(fault))].repeat(2));
    for record in &records {
        assert_eq!(record.made_by.configuration.engines, ["locked"]);
        assert_eq!(record.made_by.group_records, Some(2));
        assert_eq!(record.runs.is_empty(), record.error.is_some());
    }
    // Once for the key set, regardless of the number of cases.
    assert_eq!(watch.wrong, [fault]);
}

#[test]
fn disturbed_and_oversubscribed_cases_are_labelled() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for (share, disturbed) in [(1.0, false), (0.5, true)] {
        let mut watch = Counting::default();
        let threads = [1, cores + 1];
        let (turns, records) = run_noting(&[(LOCKED, true)], &threads, share, &mut watch);
        let records = records.unwrap();
        // A disturbed run is repeated once.
        assert_eq!(turns.len(), 2 * 3 * (1 + usize::from(disturbed)));
        assert!(records.iter().all(|record| record.disturbed == disturbed));
        assert_eq!(
            records
                .iter()
                .map(|record| record.oversubscribed)
                .collect::<Vec<_>>(),
            [false, true]
        );
    }
}

#[test]
fn an_interrupted_experiment_ends_before_the_next_measurement_with_the_groups_before() {
    let mut watch = Counting {
        most: Some(8),
        ..Counting::default()
    };
    let (turns, result) = run_noting(&[(LOCKED, true), (CA_TREE, true)], &[1, 2], 1.0, &mut watch);
    assert!(matches!(result, Err(LabError::Interrupted)));
    assert_eq!((turns.len(), watch.groups), (8, 1));
}

#[test]
fn what_the_watcher_keeps_is_not_measured_again() {
    let mut watch = Counting {
        keeps_threads: Some(1),
        ..Counting::default()
    };
    let (turns, records) = run_noting(&[(LOCKED, true)], &[1, 2], 1.0, &mut watch);
    assert_eq!((turns.len(), watch.begun), (3, 3));
    assert_eq!(records.unwrap()[0].threads, 2);
}

#[test]
fn what_was_disturbed_is_measured_again_and_the_quietest_counts() {
    // Each reading ends one measurement, and begins the next.
    let measured = |repeats: usize, readings: &[f64], wrong: Option<usize>| {
        let mut readings = readings.iter().copied();
        let mut times = 0;
        let (samples, share) = quietest(repeats, &mut || readings.next().unwrap(), || {
            times += 1;
            let sample = Sample::new(times as u64, Duration::from_secs(1));
            let is_wrong = wrong == Some(times);
            Ok(vec![if is_wrong {
                Err(String::new())
            } else {
                Ok(sample)
            }])
        })
        .unwrap();
        let which = samples[0].as_ref().ok().map(|sample| sample.operations);
        (times, which, share)
    };
    assert_eq!(measured(2, &[1.0, 0.9], None), (1, Some(1), 0.9));
    assert_eq!(measured(0, &[1.0, 0.5], None), (1, Some(1), 0.5));
    assert_eq!(measured(2, &[1.0, 0.5, 0.9, 1.0], None), (3, Some(3), 0.9));
    assert_eq!(measured(2, &[0.6, 0.7, 0.5, 0.5], None), (3, Some(1), 0.6));
    assert_eq!(measured(2, &[0.6, 0.7, 0.5], Some(2)), (2, None, 0.5));
}
