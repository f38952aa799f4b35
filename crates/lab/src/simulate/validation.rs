//! Predicted against measured: what a profile of the machine at hand foretells, beside what that
//! machine does.

use crate::{measure::median, record::Record, results::CaseKey};
use std::fmt::Write as _;

/// A workload that is measured and simulated, as the commands `run` and `simulate` take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) experiment: &'static str,
    pub(crate) engines: &'static str,
    /// The mixes, if the experiment has any.
    pub(crate) mixes: Option<&'static str>,
    pub(crate) keys: Option<u64>,
    /// How long it is simulated, in microseconds: some time slices, so that threads take turns.
    pub(crate) microseconds: u64,
}

/// What is compared: counters, and engines with locks, without, and with one lock, that read,
/// write, and insert.
pub(crate) const WORK: [Work; 4] = [
    Work {
        experiment: "counter_scaling",
        engines: "central,striped",
        mixes: Some("add"),
        keys: Some(1000),
        microseconds: 10_000,
    },
    Work {
        experiment: "ordered_mix",
        engines: "aspen,b_tree,ca_tree,locked",
        mixes: Some("lookup,update100"),
        keys: Some(65_536),
        microseconds: 10_000,
    },
    Work {
        experiment: "insert_disjoint_ranges",
        engines: "aspen,b_tree,ca_tree",
        mixes: None,
        keys: Some(200_000),
        microseconds: 10_000,
    },
    Work {
        experiment: "signals",
        engines: "mailbox_auto",
        mixes: Some("live"),
        keys: Some(10_000_000),
        microseconds: 10_000,
    },
];

/// The numbers of threads: one and two have a core each on a machine of two, the others do not.
pub(crate) const THREADS: &str = "1,2,4,8";

/// What a prediction is allowed to be off.
const NEAR: f64 = 0.25;

/// The share of the machine that a run must have had. With less, threads that fight for a line had
/// it alone for a while.
const ALL_BUT: f64 = 0.9;

/// Why predictions are off, a reason a line; the file's head says what its fields are.
const MISSES: &str = include_str!("../../data/misses.tsv");

/// A case of an engine, measured and simulated, in million operations a second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compared {
    pub(crate) what: String,
    pub(crate) threads: usize,
    pub(crate) predicted: f64,
    pub(crate) measured: f64,
}

impl Compared {
    pub(crate) fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }

    /// How far off the prediction is, as a fraction: 0.5 for half and for twice as much.
    fn error(&self) -> f64 {
        let ratio = self.ratio();
        1.0 - ratio.min(1.0 / ratio)
    }

    pub(crate) fn is_near(&self) -> bool {
        self.error() <= NEAR
    }

    /// Why the prediction is off, as far as it is known.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        let lines = MISSES.lines().filter(|line| !line.starts_with('#'));
        let mut rows = lines.filter_map(|line| {
            let (what, rest) = line.split_once('\t')?;
            let (threads, reason) = rest.split_once('\t')?;
            Some((what, threads, reason))
        });
        let is_meant = |(what, threads, _): &(&str, &str, &str)| {
            let mut threads = threads.split(',');
            *what == self.what && threads.any(|count| count.parse() == Ok(self.threads))
        };
        rows.find(is_meant).map(|(_, _, reason)| reason)
    }
}

/// The best of the runs that had the machine to themselves, or else the run that had most of it.
/// Other work makes runs slower, but not those whose threads fight: these it makes faster, because
/// only one of the threads runs at a time. `None` if nothing was measured.
fn best(measured: &[&Record]) -> Option<f64> {
    let runs = measured
        .iter()
        .flat_map(|record| record.runs.iter().zip(&record.shares));
    let quiet = runs.clone().filter(|(_, share)| **share >= ALL_BUT);
    let best = quiet.map(|(run, _)| *run).max_by(f64::total_cmp);
    let most = || runs.max_by(|one, other| one.1.total_cmp(other.1));
    best.or_else(|| most().map(|(run, _)| *run))
        .or_else(|| measured.last().map(|record| record.mops))
}

/// Pairs what was measured with what the machine's profile predicts, if both have as many cores.
pub(crate) fn compared(records: &[Record], machine: &str) -> Vec<Compared> {
    let is_prediction =
        |record: &&Record| record.simulated && record.made_by.machine.cpu == machine;
    let pair = |predicted: &Record| {
        let case = CaseKey {
            simulated_on: None,
            ..CaseKey::of(predicted)
        };
        let measured = records.iter().filter(|record| {
            !record.simulated
                && record.engine == predicted.engine
                && record.made_by.machine.cores == predicted.made_by.machine.cores
                && CaseKey::of(record) == case
        });
        let measured: Vec<&Record> = measured.collect();
        Some(Compared {
            what: format!(
                "{}, {}, {}, {}",
                predicted.experiment, predicted.workload, predicted.key_set, predicted.engine
            ),
            threads: predicted.threads,
            predicted: predicted.mops,
            measured: best(&measured)?,
        })
    };
    records
        .iter()
        .filter(is_prediction)
        .filter_map(pair)
        .collect()
}

/// A table in Markdown, a row for each case, and below it how near the predictions are.
pub(crate) fn table(all: &[Compared]) -> String {
    let mut text =
        "| workload | threads | predicted | measured | ratio |\n|---|---|---|---|---|\n".to_owned();
    for one in all {
        let mark = if one.is_near() { "" } else { " *" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2}{mark} |",
            one.what,
            one.threads,
            one.predicted,
            one.measured,
            one.ratio()
        );
    }
    let _ = writeln!(
        text,
        "\none thread: {}; two: {}; more threads than cores: {}; all: {}",
        how_near(all, |one| one.threads == 1),
        how_near(all, |one| one.threads == 2),
        how_near(all, |one| one.threads > 2),
        how_near(all, |_| true)
    );
    text
}

/// How near the chosen predictions are, in words.
pub(crate) fn how_near(all: &[Compared], is_chosen: impl Fn(&Compared) -> bool) -> String {
    let chosen = all.iter().filter(|one| is_chosen(one));
    let errors: Vec<f64> = chosen.map(Compared::error).collect();
    let near = errors.iter().filter(|error| **error <= NEAR).count();
    let middle = 100.0 * median(&errors).unwrap_or(0.0);
    format!(
        "{near} of {} within 25 %, {middle:.0} % off in the median",
        errors.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn a_prediction_is_compared_with_the_best_undisturbed_run_of_the_same_case() {
        let mut measured = some_record("lookup", 1, "a", 8.0);
        measured.runs = vec![8.0, 10.0, 12.0];
        measured.shares = vec![0.95, 0.9, 0.6];
        let mut predicted = some_record("lookup", 1, "a", 5.0);
        predicted.simulated = true;
        predicted.made_by.machine.cpu = "it".to_owned();
        let mut another = some_record("lookup", 2, "a", 5.0);
        another.simulated = true;
        another.made_by.machine.cpu = "it".to_owned();
        let mut larger = predicted.clone();
        larger.made_by.machine.cores += 1;
        let records = [measured, predicted, another, larger];
        let compared = compared(&records, "it");
        assert_eq!(compared.len(), 1);
        assert_eq!((compared[0].predicted, compared[0].measured), (5.0, 10.0));
        assert!(super::compared(&records, "another").is_empty());
        let table = table(&compared);
        assert!(
            table.contains("| 0.50 * |") && table.contains("0 of 1 within 25 %, 50 % off"),
            "{table}"
        );
    }

    #[test]
    fn where_all_runs_were_disturbed_the_least_disturbed_one_counts() {
        let mut measured = some_record("lookup", 1, "a", 8.0);
        measured.runs = vec![8.0, 10.0, 12.0];
        measured.shares = vec![0.7, 0.5, 0.6];
        assert_eq!(best(&[&measured]), Some(8.0));
        measured.shares.clear();
        assert_eq!(best(&[&measured]), Some(8.0), "nothing is known of them");
        // Measured twice: all runs count.
        let mut again = measured.clone();
        again.runs = vec![7.0];
        again.shares = vec![0.95];
        assert_eq!(best(&[&measured, &again]), Some(7.0));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn a_miss_has_a_reason_if_one_is_written_down() {
        for line in MISSES.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [what, threads, reason] = *fields else {
                panic!("these are not the three fields of a reason: {line}");
            };
            assert!(reason.ends_with('.'), "{line}");
            for threads in threads.split(',') {
                let threads = threads.parse().expect("threads are numbers");
                let miss = Compared {
                    what: what.to_owned(),
                    threads,
                    predicted: 1.0,
                    measured: 10.0,
                };
                assert!(!miss.is_near());
                assert_eq!(
                    miss.reason(),
                    Some(reason),
                    "{line}: another line is of it too"
                );
            }
        }
        let unknown = Compared {
            what: "nothing".to_owned(),
            threads: 1,
            predicted: 1.0,
            measured: 1.0,
        };
        assert_eq!((unknown.is_near(), unknown.reason()), (true, None));
    }

    #[test]
    fn half_and_twice_are_equally_far_off() {
        let error = |predicted| {
            let what = String::new();
            Compared {
                what,
                threads: 1,
                predicted,
                measured: 10.0,
            }
            .error()
        };
        assert_eq!([error(5.0), error(20.0), error(10.0)], [0.5, 0.5, 0.0]);
    }
}
