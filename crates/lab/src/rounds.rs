//! The order of measuring: contestants take turns within every run.

use crate::{
    LabError, Settings,
    contestants::{Contestant, ContestantName},
    experiments::{Case, Experiment},
    gauge::{Gauge, QUIET},
    measure::{Sample, median},
    record::{MadeBy, Moment, Record},
    workload::Job,
};
use std::collections::BTreeMap;

/// One who follows a run of an experiment.
pub trait Watch {
    /// How many measurements will be made, said once before the first.
    fn begins(&mut self, measurements: u64);

    /// A measurement begins: of this case, and of those of its group.
    fn measures(&mut self, case: &Case, engine: &str);

    /// A run of a case has given this.
    fn sampled(&mut self, _case: &Case, _engine: &str, _sample: &Sample) {}

    /// A rival answered wrongly in a measurement of this case: there will be no record of it.
    fn wrong(&mut self, case: &Case, fault: &LabError);

    /// The measurement is over.
    fn measured(&mut self);

    /// All runs of a group of cases are over; the records of its contestants, in their order, one
    /// case after the other.
    ///
    /// # Errors
    ///
    /// Whatever should end the experiment here.
    fn finished(&mut self, records: &[Record]) -> Result<(), LabError>;
}

/// Runs the experiment and returns a record for each case and contestant that can do it.
///
/// Each run of a group of cases makes its job once and gives it to every contestant in turn (run
/// 1: A, B, C; run 2: A, B, C; …), so that whatever changes on the machine meanwhile meets all
/// alike. What was measured while other work had more than a fifth of the machine is measured again,
/// as often as the settings say, and the quietest counts.
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
    let mut gauge = Gauge::of_this_machine();
    run_gauged(experiment, settings, contestants, watch, &mut || {
        gauge.read()
    })
}

/// As [`run`]; `share` reads what part of the machine's cores the program has.
fn run_gauged(
    experiment: &dyn Experiment,
    settings: &Settings,
    contestants: &mut [Box<dyn Contestant>],
    watch: &mut dyn Watch,
    share: &mut dyn FnMut() -> f64,
) -> Result<Vec<Record>, LabError> {
    check(experiment, settings)?;
    let groups = experiment.groups(settings);
    let turns = |group: &Vec<Case>| {
        let weighing = usize::from(experiment.weighing(group, settings).is_some());
        let taking_part = contestants
            .iter()
            .filter(|contestant| takes_part(experiment, group, contestant.name()))
            .count();
        (settings.runs + weighing) * taking_part
    };
    watch.begins(groups.iter().map(turns).sum::<usize>() as u64);
    let mut records = Vec::new();
    for group in &groups {
        let mut taking_part: Vec<_> = contestants
            .iter_mut()
            .filter(|contestant| takes_part(experiment, group, contestant.name()))
            .collect();
        let results = measure(experiment, group, settings, &mut taking_part, watch, share)?;
        let finished = summarize(experiment, group, settings, &taking_part, &results);
        watch.finished(&finished)?;
        records.extend(finished);
    }
    Ok(records)
}

/// Whether the contestant can do what the group asks for. All its cases have one key set.
fn takes_part(experiment: &dyn Experiment, group: &[Case], contestant: ContestantName) -> bool {
    group
        .iter()
        .all(|case| contestant.refuses_case(experiment, case).is_none())
}

/// Whether the settings fit the experiment.
///
/// # Errors
///
/// The number of keys lies outside its limits, or something was chosen that it does not offer.
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
    let offered = |flag, chosen: Vec<&str>, known: Vec<&str>| {
        let stranger = chosen.into_iter().find(|name| !known.contains(name));
        stranger.map_or(Ok(()), |name| {
            Err(LabError::NotOffered {
                flag,
                value: name.to_owned(),
                experiment: experiment.name(),
                offer: match &*known {
                    [] => "which leaves no choice".to_owned(),
                    known => format!("which has: {}", known.join(", ")),
                },
            })
        })
    };
    offered(
        "--mixes",
        settings.mixes.iter().map(String::as_str).collect(),
        experiment.mixes(),
    )?;
    offered(
        "--key-set",
        settings.key_sets.iter().map(|set| set.name()).collect(),
        experiment.key_sets().iter().map(|set| set.name()).collect(),
    )?;
    offered(
        "--messages",
        settings.messages.iter().map(|kind| kind.name()).collect(),
        experiment
            .messages()
            .iter()
            .map(|kind| kind.name())
            .collect(),
    )?;
    offered(
        "--distribution",
        settings.distributions.iter().map(|d| d.name()).collect(),
        experiment
            .distributions()
            .iter()
            .map(|d| d.name())
            .collect(),
    )
}

/// What one contestant gave in a case.
#[derive(Clone, Debug, Default)]
struct Results {
    runs: Vec<f64>,
    shares: Vec<f64>,
    send_mops: Vec<f64>,
    bytes_per_key: Vec<f64>,
    figures: BTreeMap<String, Vec<f64>>,
    /// What each run was like, moment by moment.
    series: Vec<Vec<Moment>>,
    /// Whether a run gave wrong answers, so that none of its figures counts.
    wrong: bool,
}

impl Results {
    fn keep_weight(&mut self, sample: &Sample, _share: f64) {
        self.bytes_per_key.extend(sample.bytes_per_key);
        for (name, figure) in &sample.figures {
            self.figures.entry(name.clone()).or_default().push(*figure);
        }
    }

    fn keep(&mut self, sample: &Sample, share: f64) {
        self.runs.push(sample.mops());
        self.shares.push(share);
        self.send_mops.extend(sample.send_mops);
        self.series.push(sample.series.clone());
        self.keep_weight(sample, share);
    }

    /// The moments of the run whose result is the median; of two such runs, the slower one.
    fn series_of_median(&self) -> Vec<Moment> {
        let mut runs: Vec<_> = self.runs.iter().zip(&self.series).collect();
        runs.sort_by(|one, two| one.0.total_cmp(two.0));
        let middle = runs.len().saturating_sub(1) / 2;
        runs.get(middle)
            .map_or_else(Vec::new, |(_, series)| series.to_vec())
    }
}

/// What was measured in a group.
struct Measured {
    /// For each contestant and case, what came out.
    results: Vec<Vec<Results>>,
    /// How long the keys are on average.
    key_bytes: f64,
}

fn measure(
    experiment: &dyn Experiment,
    group: &[Case],
    settings: &Settings,
    contestants: &mut [&mut Box<dyn Contestant>],
    watch: &mut dyn Watch,
    share: &mut dyn FnMut() -> f64,
) -> Result<Measured, LabError> {
    let mut results = vec![vec![Results::default(); group.len()]; contestants.len()];
    let mut key_bytes = Vec::new();
    let mut take_turns = |job: &Job, keep: &dyn Fn(&mut Results, &Sample, f64)| {
        for (contestant, results) in contestants.iter_mut().zip(&mut results) {
            watch.measures(&group[0], contestant.name().name());
            let (samples, share) = quietest(settings.repeats, share, || {
                believe(contestant.name(), group, contestant.measure(job), watch)
            })?;
            for ((results, sample), case) in results.iter_mut().zip(&samples).zip(group) {
                match sample {
                    Some(sample) => {
                        keep(results, sample, share);
                        watch.sampled(case, contestant.name().name(), sample);
                    }
                    None => results.wrong = true,
                }
            }
            watch.measured();
        }
        Ok::<(), LabError>(())
    };
    for run in 0..settings.runs {
        let job = experiment.job(group, run, settings);
        key_bytes.push(job.key_bytes());
        take_turns(&job, &Results::keep)?;
    }
    if let Some(job) = experiment.weighing(group, settings) {
        take_turns(&job, &Results::keep_weight)?;
    }
    Ok(Measured {
        results,
        key_bytes: median(&key_bytes).unwrap_or_default(),
    })
}

/// Measures, again if the machine was busy with other work and at most so often; what was measured
/// when it was least busy, and the part of it that the program had then. Wrong answers count whenever
/// they are given.
fn quietest(
    repeats: usize,
    share: &mut dyn FnMut() -> f64,
    mut measure: impl FnMut() -> Result<Vec<Option<Sample>>, LabError>,
) -> Result<(Vec<Option<Sample>>, f64), LabError> {
    let mut before = share();
    let mut take = || {
        let samples = measure()?;
        let after = share();
        let least = std::mem::replace(&mut before, after).min(after);
        Ok::<_, LabError>((samples, least))
    };
    let mut best = take()?;
    for _ in 0..repeats {
        if best.1 >= QUIET || best.0.contains(&None) {
            break;
        }
        let next = take()?;
        if next.1 > best.1 || next.0.contains(&None) {
            best = next;
        }
    }
    Ok(best)
}

/// The samples of a group; `None` for one that a rival answered wrongly in. What is wrong in one of
/// our own is an error.
fn believe(
    who: ContestantName,
    group: &[Case],
    measured: Result<Vec<Result<Sample, LabError>>, LabError>,
    watch: &mut dyn Watch,
) -> Result<Vec<Option<Sample>>, LabError> {
    let rival = matches!(
        who,
        ContestantName::Rival(_) | ContestantName::ChannelRival(_)
    );
    let mut believe = |case: &Case, sample| match sample {
        Ok(sample) => Ok(Some(sample)),
        Err(error @ LabError::Wrong { .. }) if rival => {
            watch.wrong(case, &error);
            Ok(None)
        }
        Err(error) => Err(error),
    };
    match measured {
        Ok(samples) => group
            .iter()
            .zip(samples)
            .map(|(case, sample)| believe(case, sample))
            .collect(),
        // Nothing that it did can be believed.
        Err(error) => {
            believe(&group[0], Err(error))?;
            Ok(vec![None; group.len()])
        }
    }
}

fn summarize(
    experiment: &dyn Experiment,
    group: &[Case],
    settings: &Settings,
    contestants: &[&mut Box<dyn Contestant>],
    measured: &Measured,
) -> Vec<Record> {
    let names = || contestants.iter().map(|c| c.name().to_string());
    let record = |case: &Case, contestant: &dyn Contestant, results: &Results| Record {
        experiment: experiment.name().to_owned(),
        workload: case.workload.to_owned(),
        distribution: case
            .distribution
            .map(|distribution| distribution.to_string()),
        engine: contestant.name().to_string(),
        key_set: case.key_set.to_owned(),
        key_bytes: measured.key_bytes,
        threads: case.threads,
        keys: case.keys,
        mops: median(&results.runs).unwrap_or_default(),
        runs: results.runs.clone(),
        shares: results.shares.clone(),
        send_mops: median(&results.send_mops),
        bytes_per_key: median(&results.bytes_per_key),
        figures: results
            .figures
            .iter()
            .filter_map(|(name, figures)| Some((name.clone(), median(figures)?)))
            .collect(),
        series: results.series_of_median(),
        made_by: MadeBy::this_lab(
            experiment,
            case,
            settings,
            names().collect(),
            contestant.version(),
        ),
    };
    let mut records = Vec::new();
    for (place, case) in group.iter().enumerate() {
        for (contestant, results) in contestants.iter().zip(&measured.results) {
            if !results[place].wrong {
                records.push(record(case, &***contestant, &results[place]));
            }
        }
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{experiments, keys::KeySet, workload::Distribution};
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

        fn measure(&mut self, _job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
            self.turns.borrow_mut().push(self.engine.name());
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

        fn wrong(&mut self, _case: &Case, _fault: &LabError) {}

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
        let records = run_gauged(
            experiment,
            &settings,
            &mut contestants,
            &mut watch,
            &mut || 1.0,
        )
        .unwrap();
        assert_eq!(*turns.borrow(), ["locked", "ca_tree"].repeat(3));
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
        }
    }

    #[test]
    fn what_was_disturbed_is_measured_again_and_the_quietest_counts() {
        // Each reading is the end of one measurement, and the beginning of the next.
        let measured = |repeats: usize, readings: &[f64], wrong: Option<usize>| {
            let mut readings = readings.iter().copied();
            let mut times = 0;
            let (samples, share) = quietest(repeats, &mut || readings.next().unwrap(), || {
                times += 1;
                let sample = Sample::new(times as u64, Duration::from_secs(1));
                Ok(vec![(wrong != Some(times)).then_some(sample)])
            })
            .unwrap();
            let which = samples[0].as_ref().map(|sample| sample.operations);
            (times, which, share)
        };
        assert_eq!(measured(2, &[1.0, 0.9], None), (1, Some(1), 0.9));
        assert_eq!(measured(0, &[1.0, 0.5], None), (1, Some(1), 0.5));
        assert_eq!(measured(2, &[1.0, 0.5, 0.9, 1.0], None), (3, Some(3), 0.9));
        assert_eq!(measured(2, &[0.6, 0.7, 0.5, 0.5], None), (3, Some(1), 0.6));
        assert_eq!(measured(2, &[0.6, 0.7, 0.5], Some(2)), (2, None, 0.5));
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
            mixes: vec!["lookup".to_owned()],
            ..Settings::default()
        });
        assert!(mixes.contains("--mixes lookup") && mixes.contains("'memory'"));
        let distributions = refused(Settings {
            distributions: vec![Distribution::Uniform],
            ..Settings::default()
        });
        assert!(distributions.contains("--distribution uniform"));
        let experiment = experiments::find("high_contention").unwrap();
        let settings = Settings {
            key_sets: vec![KeySet::Email],
            ..Settings::default()
        };
        let error = check(experiment, &settings).unwrap_err().to_string();
        assert!(error.contains("--key-set email"), "{error}");
    }
}
