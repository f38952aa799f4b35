//! What the original papers and programs found, and whether the lab finds it again: each figure
//! that this project's structures are known for, with the same figure computed from records.
//!
//! The list is [`ALL`]. A claim is never left out because the lab disagrees with it, and one that
//! was not measured says so. [`CURVES`] are figures by number of threads, for records of machines
//! with many cores.

mod curves;
mod list;

pub use curves::{CURVES, Curve, Scaled};
pub use list::ALL;

use crate::{
    gauge::QUIET,
    measure::median,
    record::{self, Record},
    statistics::{Interval, ratio},
};
use std::fmt;

/// A finding of an original paper or program.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The experiment that measures it.
    pub experiment: &'static str,
    /// The finding, in a sentence.
    pub says: &'static str,
    /// Where it was found.
    pub source: Source,
    /// The number given by the original.
    pub original: Original,
    /// How the same number is computed here.
    pub measure: Measure,
    /// When the two numbers agree.
    pub rule: Rule,
    /// Why they disagree, or why there is nothing to compare, where that is known; else `""`.
    pub why: &'static str,
}

impl Claim {
    /// Whether a machine with this number of hardware threads runs each of the claim's threads at
    /// once, as the original's did, or is as large as that one.
    #[must_use]
    pub fn fits(&self, cores: usize) -> bool {
        let fits = |pick: &Pick| match pick.threads {
            Threads::Just(threads) => threads <= cores.min(self.source.cores),
            Threads::Cores => self.source.cores <= cores,
        };
        cores == self.source.cores || self.picks().iter().all(fits)
    }

    /// The figures that the claim is computed from.
    #[must_use]
    pub fn picks(&self) -> Vec<Pick> {
        match self.measure {
            Measure::Ratio(above, below) => vec![above, below],
            Measure::Value(pick) => vec![pick],
        }
    }
}

/// The source of a claim.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The paper or the program, and the figure or section.
    pub name: &'static str,
    /// How many cores its machine had.
    pub cores: usize,
}

/// The number that the original gives, if it gives one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Original {
    /// The number.
    Figure(f64),
    /// It gives no number, but words or a curve say that it is above 1.
    AboveOne,
    /// It gives no number, but words or a curve say that it is below 1.
    BelowOne,
}

/// What is computed from records.
#[derive(Clone, Copy, Debug)]
pub enum Measure {
    /// A figure of one record, divided by the same of another.
    Ratio(Pick, Pick),
    /// A figure of one record.
    Value(Pick),
}

/// A figure of a record.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    /// The workload.
    pub workload: &'static str,
    /// The key set, or the kind of message; `""` where there is only one.
    pub key_set: &'static str,
    /// The contestant.
    pub engine: &'static str,
    /// With how many threads.
    pub threads: Threads,
    /// Which figure.
    pub field: Field,
}

/// A number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Exactly this many.
    Just(usize),
    /// The greatest measured number for which the machine and the original's machine have as many
    /// cores or more.
    Cores,
}

/// A figure in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Million operations a second.
    Mops,
    /// Million messages a second that were sent.
    SendMops,
    /// Bytes for each key.
    BytesPerKey,
    /// One of the other figures.
    Figure(&'static str),
}

/// When a figure here agrees with the original's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// It lies on the same side of 1: the same contestant is ahead.
    SameSide,
    /// It is greater or less by at most this factor.
    Within(f64),
    /// It is not greater.
    AtMost,
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameSide => out.write_str("the same one is ahead"),
            Self::Within(factor) => write!(out, "within a factor of {factor}"),
            Self::AtMost => out.write_str("at most as much"),
        }
    }
}

impl Rule {
    fn agrees(self, original: Original, here: f64) -> bool {
        match (self, original) {
            (Self::SameSide, Original::Figure(original)) => (original > 1.0) == (here > 1.0),
            (Self::SameSide, Original::AboveOne) => here > 1.0,
            (Self::SameSide, Original::BelowOne) => here < 1.0,
            (Self::Within(factor), Original::Figure(original)) => {
                (original / factor..=original * factor).contains(&here)
            }
            (Self::AtMost, Original::Figure(original)) => here <= original,
            // There is nothing to compare with.
            (Self::Within(_) | Self::AtMost, _) => false,
        }
    }
}

/// What records say about a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The figures agree.
    Agrees(Finding),
    /// They do not.
    Differs(Finding),
    /// The records cannot decide; the text says what is missing.
    NotMeasured(String),
}

/// The figure of a claim, computed from records.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The figure.
    pub here: f64,
    /// Its 95 % confidence interval, where there are enough runs for one.
    pub interval: Option<Interval>,
    /// The thread counts of the numerator and of the denominator.
    pub threads: (usize, usize),
    /// Reservations, such as that this machine has fewer cores.
    pub remarks: Vec<String>,
}

impl Claim {
    /// Compares the claim with these records.
    #[must_use]
    pub fn judge(&self, records: &[Record]) -> Verdict {
        let of_experiment: Vec<&Record> = records
            .iter()
            .filter(|record| record.experiment == self.experiment)
            .collect();
        if of_experiment.is_empty() {
            return self.not_measured(&format!("{} is not in these results", self.experiment));
        }
        let (picks, found) = match self.measure {
            Measure::Value(pick) => {
                let found = of_experiment.iter().find_map(|record| {
                    let value = pick.of(record, &of_experiment, self.source.cores)?;
                    Some((vec![*record], value, None))
                });
                (vec![pick], found)
            }
            Measure::Ratio(above, below) => (
                vec![above, below],
                divide(above, below, &of_experiment, self.source.cores),
            ),
        };
        let Some((used, here, interval)) = found else {
            let missing = picks.iter().find(|pick| {
                let mut records = of_experiment.iter();
                !records.any(|record| pick.of(record, &of_experiment, self.source.cores).is_some())
            });
            return self.not_measured(&missing.map_or_else(
                || "not measured with the same keys".to_owned(),
                |pick| format!("no record of {pick}"),
            ));
        };
        let mut finding = Finding {
            here,
            interval,
            threads: (used[0].threads, used[used.len() - 1].threads),
            remarks: self.remarks(&used),
        };
        if self.rule.agrees(self.original, here) {
            Verdict::Agrees(finding)
        } else {
            finding
                .remarks
                .extend((!self.why.is_empty()).then(|| self.why.to_owned()));
            Verdict::Differs(finding)
        }
    }

    fn not_measured(&self, what_is_missing: &str) -> Verdict {
        Verdict::NotMeasured(match self.why {
            "" => what_is_missing.to_owned(),
            why => format!("{what_is_missing}; {why}"),
        })
    }

    fn remarks(&self, used: &[&Record]) -> Vec<String> {
        let mut remarks = Vec::new();
        let cores = used[0].made_by.machine.cores;
        if cores != self.source.cores {
            let original = self.source.cores;
            remarks.push(format!("{cores} cores here, {original} there"));
        }
        let oversubscribed = used.iter().map(|record| record.threads).max();
        if let Some(threads) = oversubscribed.filter(|&threads| threads > cores) {
            remarks.push(format!(
                "oversubscribed: {threads} threads on {cores} cores"
            ));
        }
        if used.iter().any(|record| record.is_disturbed()) {
            let part = (1.0 - QUIET) * 100.0;
            remarks.push(format!(
                "disturbed: other work had over {part:.0} % of the machine"
            ));
        }
        if used[0].made_by.configuration.build == record::DEBUG {
            remarks.push(format!("a {} build", used[0].made_by.configuration.build));
        }
        remarks
    }
}

type Found<'a> = (Vec<&'a Record>, f64, Option<Interval>);

/// Divides figures that were measured with the same keys, chosen in the same way.
fn divide<'a>(above: Pick, below: Pick, records: &[&'a Record], cores: usize) -> Option<Found<'a>> {
    for &upper in records {
        let Some(numerator) = above.of(upper, records, cores) else {
            continue;
        };
        let lower = records.iter().find(|lower| {
            lower.keys == upper.keys
                && lower.distribution == upper.distribution
                && below
                    .of(lower, records, cores)
                    .is_some_and(|value| value > 0.0)
        });
        let Some(&lower) = lower else { continue };
        let denominator = below.of(lower, records, cores)?;
        // A record has the runs of `mops` only; of other figures it has the median alone.
        let runs = above.field == Field::Mops && below.field == Field::Mops;
        let interval = runs.then(|| ratio(&upper.runs, &lower.runs).ok()?.interval);
        return Some((
            vec![upper, lower],
            numerator / denominator,
            interval.flatten(),
        ));
    }
    None
}

impl Pick {
    /// The figure of this record, if this record is the one meant among these. The original's
    /// machine had `there` cores.
    fn of(&self, record: &Record, among: &[&Record], there: usize) -> Option<f64> {
        let is_meant = |record: &Record| {
            record.workload == self.workload
                && record.engine == self.engine
                && (self.key_set.is_empty() || record.key_set == self.key_set)
        };
        let threads = match self.threads {
            Threads::Just(threads) => threads,
            Threads::Cores => {
                let like_it = among.iter().filter(|record| is_meant(record));
                let counts = like_it.map(|record| record.threads);
                let cores = record.made_by.machine.cores.min(there);
                counts.filter(|&threads| threads <= cores).max()?
            }
        };
        if !is_meant(record) || record.threads != threads {
            return None;
        }
        let value = match self.field {
            // The median of the runs, so that the interval belongs to the same figure.
            Field::Mops => median(&record.runs).or(Some(record.mops)),
            Field::SendMops => record.send_mops,
            Field::BytesPerKey => record.bytes_per_key,
            Field::Figure(name) => record.figures.get(name).copied(),
        };
        value.filter(|value| value.is_finite())
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} in {}", self.engine, self.workload)?;
        if !self.key_set.is_empty() {
            write!(out, " of {}", self.key_set)?;
        }
        match self.threads {
            Threads::Just(1) => out.write_str(", 1 thread")?,
            Threads::Just(threads) => write!(out, ", {threads} threads")?,
            Threads::Cores => out.write_str(", a thread on each core")?,
        }
        match self.field {
            Field::Mops => Ok(()),
            Field::SendMops => out.write_str(", sent"),
            Field::BytesPerKey => out.write_str(", bytes per key"),
            Field::Figure(name) => write!(out, ", {name}"),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(pick) => write!(out, "{pick}"),
            Self::Ratio(above, below)
                if above.workload != below.workload
                    || (above.engine == below.engine && above.field != below.field) =>
            {
                write!(out, "{above} ÷ {below}")
            }
            Self::Ratio(above, below) if above.engine == below.engine => {
                let pick = Pick {
                    threads: above.threads,
                    ..*below
                };
                write!(out, "{pick} ÷ ")?;
                match below.threads {
                    Threads::Just(threads) => write!(out, "with {threads}"),
                    Threads::Cores => out.write_str("one on each core"),
                }
            }
            Self::Ratio(above, below) => {
                write!(out, "{} ÷ {below}", above.engine)
            }
        }
    }
}

#[cfg(test)]
mod tests;
