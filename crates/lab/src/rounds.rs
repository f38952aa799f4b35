//! The order of measuring: contestants take turns within every run.

use crate::{
    LabError, Settings,
    contestants::Contestant,
    experiments::{Case, Experiment},
    measure::{Sample, median},
    record::{MadeBy, Record},
};

/// One who follows a run of an experiment.
pub trait Watch {
    /// How many measurements will be made, said once before the first.
    fn begins(&mut self, measurements: u64);

    /// A measurement begins.
    fn measures(&mut self, case: &Case, engine: &str);

    /// The measurement is over.
    fn measured(&mut self);

    /// All runs of a case are over; the records of its contestants, in their order.
    ///
    /// # Errors
    ///
    /// Whatever should end the experiment here.
    fn finished(&mut self, records: &[Record]) -> Result<(), LabError>;
}

/// Runs the experiment and returns a record for each case and contestant.
///
/// Each run of a case makes its job once and gives it to every contestant in turn (run 1: A,
/// B, C; run 2: A, B, C; …), so that whatever changes on the machine meanwhile meets all alike.
///
/// # Errors
///
/// The settings do not fit the experiment, a contestant failed, or the watcher did.
pub fn run(
    experiment: &dyn Experiment,
    settings: &Settings,
    contestants: &mut [Box<dyn Contestant>],
    watch: &mut dyn Watch,
) -> Result<Vec<Record>, LabError> {
    check(experiment, settings)?;
    let cases = experiment.cases(settings);
    let turns: usize = cases
        .iter()
        .map(|case| settings.runs + usize::from(experiment.weighing(case, settings).is_some()))
        .sum();
    watch.begins((turns * contestants.len()) as u64);
    let mut records = Vec::new();
    for case in &cases {
        let results = measure(experiment, case, settings, contestants, watch)?;
        let finished = summarize(experiment, case, settings, contestants, &results);
        watch.finished(&finished)?;
        records.extend(finished);
    }
    Ok(records)
}

/// Whether the settings fit the experiment.
///
/// # Errors
///
/// The number of keys lies outside its limits, or it has no mixes to choose from.
pub(crate) fn check(experiment: &dyn Experiment, settings: &Settings) -> Result<(), LabError> {
    let (least, most) = experiment.keys_limits();
    if let Some(keys) = settings.keys.filter(|keys| !(least..=most).contains(keys)) {
        return Err(LabError::Keys {
            keys,
            experiment: experiment.name(),
            least,
            most,
        });
    }
    let workloads = experiment.workloads();
    if settings
        .mixes
        .iter()
        .any(|mix| !workloads.contains(&mix.name()))
    {
        return Err(LabError::NoMixes {
            experiment: experiment.name(),
        });
    }
    Ok(())
}

/// What one contestant gave in a case.
#[derive(Clone, Debug, Default)]
struct Results {
    runs: Vec<f64>,
    bytes_per_key: Vec<f64>,
}

fn measure(
    experiment: &dyn Experiment,
    case: &Case,
    settings: &Settings,
    contestants: &mut [Box<dyn Contestant>],
    watch: &mut dyn Watch,
) -> Result<Vec<Results>, LabError> {
    let mut results = vec![Results::default(); contestants.len()];
    let mut take_turns = |job, keep: &dyn Fn(&mut Results, Sample)| -> Result<(), LabError> {
        for (contestant, results) in contestants.iter_mut().zip(&mut results) {
            watch.measures(case, contestant.name().name());
            keep(results, contestant.measure(&job)?);
            watch.measured();
        }
        Ok(())
    };
    for run in 0..settings.runs {
        take_turns(experiment.job(case, run, settings), &|results, sample| {
            results.runs.push(sample.mops());
            results.bytes_per_key.extend(sample.bytes_per_key);
        })?;
    }
    if let Some(job) = experiment.weighing(case, settings) {
        take_turns(job, &|results, sample| {
            results.bytes_per_key.extend(sample.bytes_per_key);
        })?;
    }
    Ok(results)
}

fn summarize(
    experiment: &dyn Experiment,
    case: &Case,
    settings: &Settings,
    contestants: &[Box<dyn Contestant>],
    results: &[Results],
) -> Vec<Record> {
    let names = || contestants.iter().map(|c| c.name().to_string());
    let record = |contestant: &dyn Contestant, results: &Results| Record {
        experiment: experiment.name().to_owned(),
        workload: case.workload.to_owned(),
        engine: contestant.name().to_string(),
        key_set: case.key_set.to_owned(),
        threads: case.threads,
        keys: case.keys,
        mops: median(&results.runs).unwrap_or_default(),
        runs: results.runs.clone(),
        bytes_per_key: median(&results.bytes_per_key),
        made_by: MadeBy::this_lab(
            experiment,
            settings,
            names().collect(),
            contestant.version(),
        ),
    };
    contestants
        .iter()
        .zip(results)
        .map(|(contestant, results)| record(&**contestant, results))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contestants::ContestantName, experiments, workload::Job};
    use std::{cell::RefCell, rc::Rc, time::Duration};
    use tremula_index::Engine;

    /// Notes each turn; takes one more second for the same work from run to run.
    struct Noting {
        engine: Engine,
        turns: Rc<RefCell<Vec<&'static str>>>,
        seconds: u64,
    }

    impl Contestant for Noting {
        fn name(&self) -> ContestantName {
            ContestantName::Index(self.engine)
        }

        fn version(&self) -> String {
            "0".to_owned()
        }

        fn measure(&mut self, _job: &Job) -> Result<Sample, LabError> {
            self.turns.borrow_mut().push(self.engine.name());
            self.seconds += 1;
            Ok(Sample {
                operations: 6_000_000,
                elapsed: Duration::from_secs(self.seconds),
                bytes_per_key: Some(self.seconds as f64),
            })
        }
    }

    #[derive(Default)]
    struct Counting {
        begun: u64,
        measured: u64,
        groups: usize,
    }

    impl Watch for Counting {
        fn begins(&mut self, measurements: u64) {
            self.begun = measurements;
        }

        fn measures(&mut self, _case: &Case, _engine: &str) {}

        fn measured(&mut self) {
            self.measured += 1;
        }

        fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
            self.groups += 1;
            Ok(())
        }
    }

    #[test]
    fn contestants_alternate_and_the_median_is_kept() {
        let turns = Rc::new(RefCell::new(Vec::new()));
        let noting = |engine| Noting {
            engine,
            turns: Rc::clone(&turns),
            seconds: 0,
        };
        let mut contestants: Vec<Box<dyn Contestant>> = vec![
            Box::new(noting(Engine::Locked)),
            Box::new(noting(Engine::CaTree)),
        ];
        let settings = Settings {
            threads: Some(vec![1]),
            ..Settings::default()
        };
        let mut watch = Counting::default();
        let experiment = experiments::find("insert_disjoint_ranges").unwrap();
        let records = run(experiment, &settings, &mut contestants, &mut watch).unwrap();
        assert_eq!(*turns.borrow(), ["locked", "ca_tree"].repeat(3));
        assert_eq!((watch.begun, watch.measured, watch.groups), (6, 6, 1));
        assert_eq!(records.len(), 2);
        for record in records {
            assert_eq!(record.runs, [6.0, 3.0, 2.0]);
            assert_eq!(record.mops, 3.0);
            assert_eq!(record.bytes_per_key, Some(2.0));
        }
    }

    #[test]
    fn settings_that_do_not_fit_are_refused() {
        let experiment = experiments::find("memory").unwrap();
        let refused = |settings| check(experiment, &settings).unwrap_err().to_string();
        let keys = refused(Settings {
            keys: Some(0),
            ..Settings::default()
        });
        assert!(keys.contains("--keys 0"), "{keys}");
        let mixes = refused(Settings {
            mixes: vec![crate::workload::Mix::Lookup],
            ..Settings::default()
        });
        assert!(mixes.contains("'memory'"), "{mixes}");
    }
}
