//! The order of measuring: contestants take turns within every run.

#[cfg(test)]
mod tests;

use crate::{
    LabError,
    case::Case,
    contestants::{Contestant, ContestantName, Side},
    gauge::{Gauge, QUIET},
    measure::{self, Moment, Sample, median},
    plan::{Group, Plan},
    random::{Purpose, generator},
    record::{MadeBy, Record},
    simulate,
    workload::Job,
};
use rand::seq::SliceRandom;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

/// Observes a run of an experiment.
pub trait Watch {
    /// How many measurements will be made; called once, before the first.
    fn begins(&mut self, measurements: u64);

    /// A measurement of this case and of its group begins.
    fn measures(&mut self, case: &Case, engine: &str);

    /// A run of a case has given this sample.
    fn sampled(&mut self, _case: &Case, _engine: &str, _sample: &Sample) {}

    /// A rival answered wrongly in this case. Its record will have the error, and no figures.
    fn wrong(&mut self, case: &Case, fault: &LabError);

    /// Whether this group of cases is already measured and need not be measured again. `group` has
    /// the records that it would produce, with everything that is known before, and no figures.
    /// Called for each group before the first measurement.
    fn keeps(&mut self, _group: &[Record]) -> bool {
        false
    }

    /// Whether the experiment has to end before the next measurement.
    fn interrupted(&self) -> bool {
        false
    }

    /// The measurement is over.
    fn measured(&mut self);

    /// All runs of a group of cases are over. `records` has its records, case by case, with the
    /// contestants in order.
    ///
    /// # Errors
    ///
    /// Any error; it ends the experiment.
    fn finished(&mut self, records: &[Record]) -> Result<(), LabError>;
}

/// Does what the plan says with its contestants, which [`Plan::start`] starts. Returns a record for
/// each case and each contestant that can do it.
///
/// Each run of a group of cases makes its job once and gives it to every contestant in turn, so
/// that changes of the machine meanwhile affect all alike. Each run has its own order, which comes
/// from the seed, so that no contestant always follows the same other one. A measurement during
/// which other work had more than a fifth of the machine is repeated, as often as the settings say,
/// and the quietest counts. Before that, each contestant's answers are compared with a model's,
/// once for each key set. A rival that answers wrongly gets a record with the error.
///
/// # Errors
///
/// A contestant of this project answered wrongly, a contestant failed, or the watcher did. If the
/// watcher interrupts, the error is [`LabError::Interrupted`]; the watcher already has the finished
/// groups.
pub fn run(
    plan: &Plan,
    contestants: &mut [Contestant],
    watch: &mut dyn Watch,
) -> Result<Vec<Record>, LabError> {
    if simulate::profile().is_some() {
        // Virtual time does not pass while others have the machine.
        return run_gauged(plan, contestants, watch, &mut || 1.0);
    }
    let mut gauge = Gauge::of_this_machine();
    run_gauged(plan, contestants, watch, &mut || gauge.read())
}

/// Does the same as [`run`]; `share` reads the fraction of the machine's cores that the program
/// has.
fn run_gauged(
    plan: &Plan,
    contestants: &mut [Contestant],
    watch: &mut dyn Watch,
    share: &mut dyn FnMut() -> f64,
) -> Result<Vec<Record>, LabError> {
    let _pinned = measure::pin_workers(plan.settings.pin)?;
    let mut groups = Vec::new();
    let mut checked = BTreeMap::new();
    for group in &plan.groups {
        let mut faults = Vec::new();
        for &place in &group.taking_part {
            let name = plan.contestants[place];
            let case = &group.cases[0];
            let fault = match checked.entry((place, case.key_set)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let contestant = contestants[place].started();
                    let answers = contestant.check_against_model(case, plan.settings.seed);
                    unknown.insert(believed(name, case, answers, watch)?.err())
                }
            };
            faults.push(fault.clone());
        }
        let blank = blank(plan, group, contestants, &faults);
        let is_right = |(place, fault): (&usize, Option<String>)| fault.is_none().then_some(*place);
        let right = group.taking_part.iter().zip(faults).filter_map(is_right);
        if !blank.is_empty() && !watch.keeps(&blank) {
            groups.push(Turns {
                group,
                right: right.collect(),
                blank,
            });
        }
    }
    let measurements = |turns: &Turns<'_>| turns.group.measurements * turns.right.len();
    watch.begins(groups.iter().map(measurements).sum::<usize>() as u64);
    let mut records = Vec::new();
    for turns in groups {
        let begun = match simulate::profile() {
            // Two simulations with the same seed have the same records.
            Some(_) => (None, None),
            None => (Some(seconds_since_1970()), load_average()),
        };
        let measured = measure(plan, &turns, contestants, watch, share)?;
        let finished = summarize(turns.blank, measured, begun);
        watch.finished(&finished)?;
        records.extend(finished);
    }
    Ok(records)
}

/// A group whose contestants take turns.
struct Turns<'a> {
    group: &'a Group,
    /// The indices of the contestants whose answers match the model's.
    right: Vec<usize>,
    /// For each case and each participating contestant, in this order, its record without figures.
    blank: Vec<Record>,
}

/// The results of one contestant in a case.
#[derive(Clone, Debug, Default)]
struct Results {
    runs: Vec<f64>,
    shares: Vec<f64>,
    send_mops: Vec<f64>,
    bytes_per_key: Vec<f64>,
    figures: BTreeMap<String, Vec<f64>>,
    /// The moments of each run.
    series: Vec<Vec<Moment>>,
    /// What was wrong in the answers of a run; then none of the figures counts.
    fault: Option<String>,
}

impl Results {
    fn keep_weight(&mut self, sample: &Sample) {
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
        self.keep_weight(sample);
    }

    /// The moments of the run with the median result; of two middle runs, the slower one.
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
    /// For each record, in order, its results.
    results: Vec<Results>,
    /// The mean length of the keys.
    key_bytes: f64,
}

fn measure(
    plan: &Plan,
    turns: &Turns<'_>,
    contestants: &mut [Contestant],
    watch: &mut dyn Watch,
    share: &mut dyn FnMut() -> f64,
) -> Result<Measured, LabError> {
    let settings = &plan.settings;
    let cases = &turns.group.cases;
    let taking_part = &turns.group.taking_part;
    let mut results = vec![Results::default(); turns.blank.len()];
    let mut take_turns = |run: usize, job: &Job, weighs_only: bool| {
        let mut order = turns.right.clone();
        let mut random = generator(settings.seed, Purpose::Turns, run, turns.group.number);
        order.shuffle(&mut random);
        for place in order {
            let name = plan.contestants[place];
            watch.measures(&cases[0], name.name());
            let (samples, share) = quietest(settings.repeats, share, || {
                if watch.interrupted() {
                    return Err(LabError::Interrupted);
                }
                let contestant = &mut contestants[place];
                let samples = simulate::simulated(settings.seed, || contestant.measure(job));
                believe(name, cases, samples, watch)
            })?;
            let column = taking_part.iter().position(|other| *other == place);
            let of_cases = results.chunks_mut(taking_part.len());
            for ((sample, case), of_case) in samples.iter().zip(cases).zip(of_cases) {
                let results = &mut of_case[column.expect("it takes part")];
                match sample {
                    Ok(sample) if weighs_only => results.keep_weight(sample),
                    Ok(sample) => results.keep(sample, share),
                    Err(fault) => results.fault = Some(fault.clone()),
                }
                if let Ok(sample) = sample {
                    watch.sampled(case, name.name(), sample);
                }
            }
            watch.measured();
        }
        Ok::<(), LabError>(())
    };
    let mut key_bytes = Vec::new();
    if !turns.right.is_empty() {
        for run in 0..settings.runs {
            let job = plan.experiment.job(cases, run, settings);
            key_bytes.push(job.key_bytes());
            take_turns(run, &job, false)?;
        }
        if let Some(job) = plan.experiment.weighing(cases, settings) {
            take_turns(settings.runs, &job, true)?;
        }
    }
    Ok(Measured {
        results,
        key_bytes: median(&key_bytes).unwrap_or_default(),
    })
}

/// The samples of the cases of a group; a wrong one is replaced by its fault.
type Samples = Vec<Result<Sample, String>>;

/// Measures, and repeats it at most `repeats` times while the machine is busy with other work.
/// Returns the samples of the quietest time, and the fraction of the machine that the program had
/// then. Samples with wrong answers are returned whenever they occur.
fn quietest(
    repeats: usize,
    share: &mut dyn FnMut() -> f64,
    mut measure: impl FnMut() -> Result<Samples, LabError>,
) -> Result<(Samples, f64), LabError> {
    let mut before = share();
    let mut take = || {
        let samples = measure()?;
        let after = share();
        let least = std::mem::replace(&mut before, after).min(after);
        Ok::<_, LabError>((samples, least))
    };
    let is_wrong = |samples: &Samples| samples.iter().any(Result::is_err);
    let mut best = take()?;
    for _ in 0..repeats {
        if best.1 >= QUIET || is_wrong(&best.0) {
            break;
        }
        let next = take()?;
        if next.1 > best.1 || is_wrong(&next.0) {
            best = next;
        }
    }
    Ok(best)
}

/// The samples of a group. A wrong one of a contestant of this project is an error.
fn believe(
    who: ContestantName,
    cases: &[Case],
    measured: Result<Vec<Result<Sample, LabError>>, LabError>,
    watch: &mut dyn Watch,
) -> Result<Samples, LabError> {
    let mut believe = |case: &Case, sample| believed(who, case, sample, watch);
    match measured {
        Ok(samples) => cases
            .iter()
            .zip(samples)
            .map(|(case, sample)| believe(case, sample))
            .collect(),
        // None of its answers can be trusted.
        Err(error) => {
            let nothing: Result<Sample, String> = believe(&cases[0], Err(error))?;
            Ok(vec![nothing; cases.len()])
        }
    }
}

/// The result, or the fault if a rival's answers were wrong. A fault of a contestant of this
/// project is an error.
fn believed<T>(
    who: ContestantName,
    case: &Case,
    result: Result<T, LabError>,
    watch: &mut dyn Watch,
) -> Result<Result<T, String>, LabError> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(error @ LabError::Wrong { .. }) if who.side() == Side::Rival => {
            watch.wrong(case, &error);
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// The records of a group without figures: everything that is known before it is measured. `faults`
/// has for each participating contestant what was wrong in its answers.
fn blank(
    plan: &Plan,
    group: &Group,
    contestants: &mut [Contestant],
    faults: &[Option<String>],
) -> Vec<Record> {
    let experiment = plan.experiment;
    let taking_part = || group.taking_part.iter().zip(faults);
    let right = taking_part().filter(|(_, fault)| fault.is_none());
    let names: Vec<_> = right
        .map(|(place, _)| plan.contestants[*place].to_string())
        .collect();
    let on_table = |case: &Case| match case.distribution {
        Some(distribution) => format!("{} {distribution}", case.workload),
        None => case.workload.to_owned(),
    };
    let mut records = Vec::new();
    for case in &group.cases {
        for (place, fault) in taking_part() {
            let mut made_by = MadeBy::this_lab(
                experiment.is_timed(case),
                &plan.settings,
                names.clone(),
                contestants[*place].started().version(),
            );
            if group.cases.len() > 1 {
                made_by.configuration.one_table = group.cases.iter().map(on_table).collect();
            }
            let cores = made_by.machine.cores;
            let mut record = Record {
                experiment: experiment.name().to_owned(),
                workload: case.workload.to_owned(),
                distribution: case
                    .distribution
                    .map(|distribution| distribution.to_string()),
                engine: plan.contestants[*place].to_string(),
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
                error: fault.clone(),
                simulated: simulate::profile().is_some(),
                made_by,
            };
            record.made_by.configuration_hash = Some(record.hash_configuration());
            records.push(record);
        }
    }
    records
}

/// Fills in what was measured. A record with wrong answers gets the error and no figures.
fn summarize(
    mut records: Vec<Record>,
    measured: Measured,
    (started, load_before): (Option<u64>, Option<f64>),
) -> Vec<Record> {
    let load_average = load_before.zip(load_average());
    let group_records = Some(records.len());
    for (record, results) in records.iter_mut().zip(measured.results) {
        record.made_by.started = started;
        record.made_by.load_average = load_average.map(|(before, after)| [before, after]);
        record.made_by.group_records = group_records;
        record.key_bytes = measured.key_bytes;
        if let Some(fault) = &results.fault {
            record.error.get_or_insert_with(|| fault.clone());
            continue;
        }
        record.mops = median(&results.runs).unwrap_or_default();
        record.series = results.series_of_median();
        record.shares = results.shares;
        record.disturbed = record.is_disturbed();
        record.send_mops = median(&results.send_mops);
        record.bytes_per_key = median(&results.bytes_per_key);
        let figures = results.figures.iter();
        record.figures = figures
            .filter_map(|(name, figures)| Some((name.clone(), median(figures)?)))
            .collect();
        record.runs = results.runs;
    }
    records
}

fn seconds_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The load average: how many threads of the system wanted to run over the last minute.
fn load_average() -> Option<f64> {
    let loads = fs::read_to_string("/proc/loadavg").ok()?;
    loads.split_whitespace().next()?.parse().ok()
}
