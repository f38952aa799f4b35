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

/// A case of an engine, measured and simulated, in million operations a second.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compared {
    pub(crate) what: String,
    pub(crate) threads: usize,
    pub(crate) predicted: f64,
    pub(crate) measured: f64,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.predicted / self.measured
    }

    /// How far off the prediction is, as a fraction: 0.5 for half and for twice as much.
    fn error(&self) -> f64 {
        let ratio = self.ratio();
        1.0 - ratio.min(1.0 / ratio)
    }
}

/// Pairs what was measured with what the machine's profile predicts. Of the measured runs the best
/// one counts: other work on the machine only takes.
pub(crate) fn compared(records: &[Record], machine: &str) -> Vec<Compared> {
    let is_prediction =
        |record: &&Record| record.simulated && record.made_by.machine.cpu == machine;
    let pair = |predicted: &Record| {
        let case = CaseKey {
            simulated_on: None,
            ..CaseKey::of(predicted)
        };
        let measured = records.iter().rfind(|record| {
            !record.simulated && record.engine == predicted.engine && CaseKey::of(record) == case
        })?;
        let best = measured.runs.iter().copied().fold(measured.mops, f64::max);
        Some(Compared {
            what: format!(
                "{}, {}, {}, {}",
                predicted.experiment, predicted.workload, predicted.key_set, predicted.engine
            ),
            threads: predicted.threads,
            predicted: predicted.mops,
            measured: best,
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
    /// What a prediction is allowed to be off.
    const NEAR: f64 = 0.25;
    let mut text =
        "| workload | threads | predicted | measured | ratio |\n|---|---|---|---|---|\n".to_owned();
    for one in all {
        let mark = if one.error() > NEAR { " *" } else { "" };
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
    let of = |chosen: &dyn Fn(&Compared) -> bool| {
        let errors: Vec<f64> = all
            .iter()
            .filter(|one| chosen(one))
            .map(Compared::error)
            .collect();
        let near = errors.iter().filter(|error| **error <= NEAR).count();
        let middle = 100.0 * median(&errors).unwrap_or(0.0);
        format!(
            "{near} of {} within 25 %, {middle:.0} % off in the median",
            errors.len()
        )
    };
    let _ = writeln!(
        text,
        "\none thread: {}; two: {}; more threads than cores: {}; all: {}",
        of(&|one| one.threads == 1),
        of(&|one| one.threads == 2),
        of(&|one| one.threads > 2),
        of(&|_| true)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn a_prediction_is_compared_with_the_best_run_of_the_same_case() {
        let mut measured = some_record("lookup", 1, "a", 8.0);
        measured.runs = vec![8.0, 10.0, 7.0];
        let mut predicted = some_record("lookup", 1, "a", 5.0);
        predicted.simulated = true;
        predicted.made_by.machine.cpu = "it".to_owned();
        let mut another = some_record("lookup", 2, "a", 5.0);
        another.simulated = true;
        another.made_by.machine.cpu = "it".to_owned();
        let records = [measured, predicted, another];
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
