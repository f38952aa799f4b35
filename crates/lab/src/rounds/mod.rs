//! The order of measuring: contestants take turns within every run.

#[cfg(test)]
mod tests;

use crate::{
    LabError, Settings,
    contestants::{Contestant, ContestantName},
    experiments::{Case, Experiment},
    gauge::{Gauge, QUIET},
    measure::{self, Sample, median},
    record::{MadeBy, Moment, Record},
    workload::Job,
};
use std::{
    collections::BTreeMap,
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

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

    /// Whether this group of cases, of which these would be the records, was measured before and is not
    /// to be measured again. They have all that is known before, and no figures. Asked for each group
    /// before the first measurement.
    fn keeps(&mut self, _group: &[Record]) -> bool {
        false
    }

    /// Whether the experiment is to end here, before the next measurement.
    fn interrupted(&self) -> bool {
        false
    }

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
/// as often as the settings say, and the quietest counts. Before, each contestant's answers are
/// compared with a model's, once for each key set.
///
/// # Errors
///
/// The settings do not fit the experiment, a contestant failed, or the watcher did. A watcher that
/// interrupts gets [`LabError::Interrupted`]; the groups that were finished before are with it.
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
    let _pinned = measure::pin_workers(settings.pin)?;
    let mut groups = Vec::new();
    let mut checked = BTreeMap::new();
    for cases in experiment.groups(settings) {
        let mut taking_part = Vec::new();
        for (place, contestant) in contestants.iter_mut().enumerate() {
            if takes_part(experiment, &cases, contestant.name())
                && is_right(
                    &mut **contestant,
                    place,
                    &cases[0],
                    settings,
                    &mut checked,
                    watch,
                )?
            {
                taking_part.push(place);
            }
        }
        let blank = blank(experiment, &cases, settings, contestants, &taking_part);
        if !watch.keeps(&blank) {
            groups.push(Group {
                cases,
                taking_part,
                blank,
            });
        }
    }
    let turns = |group: &Group| {
        let weighing = usize::from(experiment.weighing(&group.cases, settings).is_some());
        (settings.runs + weighing) * group.taking_part.len()
    };
    watch.begins(groups.iter().map(turns).sum::<usize>() as u64);
    let mut records = Vec::new();
    for group in groups {
        let begun = (seconds_since_1970(), load_average());
        let taking_part = contestants.iter_mut().enumerate();
        let mut taking_part: Vec<_> = taking_part
            .filter(|(place, _)| group.taking_part.contains(place))
            .map(|(_, contestant)| contestant)
            .collect();
        let results = measure(
            experiment,
            &group.cases,
            settings,
            &mut taking_part,
            watch,
            share,
        )?;
        let finished = summarize(group.blank, &results, begun);
        watch.finished(&finished)?;
        records.extend(finished);
    }
    Ok(records)
}

/// Cases that are measured one after the other on one table.
struct Group {
    cases: Vec<Case>,
    /// The places of the contestants that do it, among all.
    taking_part: Vec<usize>,
    /// For each case and each of them, in this order, its record without figures.
    blank: Vec<Record>,
}

/// Whether the contestant answers as the model does, with keys of the case's set: found out once.
/// One of our own that does not is an error.
fn is_right(
    contestant: &mut dyn Contestant,
    place: usize,
    case: &Case,
    settings: &Settings,
    checked: &mut BTreeMap<(usize, &'static str), bool>,
    watch: &mut dyn Watch,
) -> Result<bool, LabError> {
    if let Some(right) = checked.get(&(place, case.key_set)) {
        return Ok(*right);
    }
    let result = contestant.check_against_model(case, settings.seed);
    let right = believed(contestant.name(), case, result, watch)?.is_some();
    checked.insert((place, case.key_set), right);
    Ok(right)
}

/// Whether the contestant can do what the group asks for. All its cases have one key set.
pub(crate) fn takes_part(
    experiment: &dyn Experiment,
    group: &[Case],
    contestant: ContestantName,
) -> bool {
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
                if watch.interrupted() {
                    return Err(LabError::Interrupted);
                }
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
    let mut believe = |case: &Case, sample| believed(who, case, sample, watch);
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

/// What came out; `None` if it is wrong, and a rival's. What is wrong in one of our own is an error.
fn believed<T>(
    who: ContestantName,
    case: &Case,
    result: Result<T, LabError>,
    watch: &mut dyn Watch,
) -> Result<Option<T>, LabError> {
    let rival = matches!(
        who,
        ContestantName::Rival(_) | ContestantName::ChannelRival(_)
    );
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error @ LabError::Wrong { .. }) if rival => {
            watch.wrong(case, &error);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The records of a group without figures: all that is known before it is measured.
fn blank(
    experiment: &dyn Experiment,
    group: &[Case],
    settings: &Settings,
    contestants: &[Box<dyn Contestant>],
    taking_part: &[usize],
) -> Vec<Record> {
    let names = taking_part.iter().map(|place| contestants[*place].name());
    let names: Vec<_> = names.map(|name| name.to_string()).collect();
    let on_table = |case: &Case| match case.distribution {
        Some(distribution) => format!("{} {distribution}", case.workload),
        None => case.workload.to_owned(),
    };
    let record = |case: &Case, contestant: &dyn Contestant| {
        let mut made_by = MadeBy::this_lab(
            experiment,
            case,
            settings,
            names.clone(),
            contestant.version(),
        );
        if group.len() > 1 {
            made_by.configuration.one_table = group.iter().map(on_table).collect();
        }
        let cores = made_by.machine.cores;
        let mut record = Record {
            experiment: experiment.name().to_owned(),
            workload: case.workload.to_owned(),
            distribution: case
                .distribution
                .map(|distribution| distribution.to_string()),
            engine: contestant.name().to_string(),
            key_set: case.key_set.to_owned(),
            key_bytes: 0.0,
            threads: case.threads,
            keys: case.keys,
            mops: 0.0,
            runs: Vec::new(),
            shares: Vec::new(),
            disturbed: false,
            oversubscribed: experiment.working_threads(case) > cores,
            send_mops: None,
            bytes_per_key: None,
            figures: BTreeMap::new(),
            series: Vec::new(),
            made_by,
        };
        record.made_by.configuration_hash = Some(record.hash_configuration());
        record
    };
    let of_case = |case| {
        let record = &record;
        let taking_part = taking_part.iter();
        taking_part.map(move |place| record(case, &*contestants[*place]))
    };
    group.iter().flat_map(of_case).collect()
}

/// Fills the records in with what was measured; leaves out what was wrong.
fn summarize(
    blank: Vec<Record>,
    measured: &Measured,
    (started, load_before): (u64, Option<f64>),
) -> Vec<Record> {
    let load_average = load_before.zip(load_average());
    let contestants = measured.results.len();
    let results = |place: usize| &measured.results[place % contestants][place / contestants];
    let fill_in = |(place, mut record): (usize, Record)| {
        let results = results(place);
        record.key_bytes = measured.key_bytes;
        record.mops = median(&results.runs).unwrap_or_default();
        record.runs.clone_from(&results.runs);
        record.shares.clone_from(&results.shares);
        record.disturbed = record.is_disturbed();
        record.send_mops = median(&results.send_mops);
        record.bytes_per_key = median(&results.bytes_per_key);
        let figures = results.figures.iter();
        record.figures = figures
            .filter_map(|(name, figures)| Some((name.clone(), median(figures)?)))
            .collect();
        record.series = results.series_of_median();
        record.made_by.started = Some(started);
        record.made_by.load_average = load_average.map(|(before, after)| [before, after]);
        (!results.wrong).then_some(record)
    };
    let mut records: Vec<_> = blank.into_iter().enumerate().filter_map(fill_in).collect();
    let group_records = Some(records.len());
    for record in &mut records {
        record.made_by.group_records = group_records;
    }
    records
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// How many threads of the whole system wanted to run, on average over the last minute.
fn load_average() -> Option<f64> {
    let loads = fs::read_to_string("/proc/loadavg").ok()?;
    loads.split_whitespace().next()?.parse().ok()
}
