//! What changed between two runs of the lab, beyond noise.

use crate::{
    record::Record,
    report::align,
    results::CaseKey,
    statistics::{Interval, ratio},
};
use serde::Serialize;
use std::fmt::Write;

/// The exit status of `tremula-lab compare` if something got worse. It differs from 1 and 2, which
/// say that the comparison itself failed.
pub const WORSE: u8 = 3;

/// Two files of results, side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The relative difference above which a figure counts as changed.
    pub threshold: f64,
    /// Differences in how the files were made, which make their figures incomparable.
    pub warnings: Vec<String>,
    /// What both files have, in the order of the new file.
    pub rows: Vec<Row>,
    /// What only the old file has.
    pub only_old: Vec<Place>,
    /// What only the new file has.
    pub only_new: Vec<Place>,
}

/// A contestant in a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The experiment's name.
    pub experiment: String,
    /// The workload's name, and how keys were chosen.
    pub workload: String,
    /// The key set's name.
    pub key_set: String,
    /// How many keys.
    pub keys: u64,
    /// How many threads.
    pub threads: usize,
    /// The contestant's name.
    pub engine: String,
}

/// A figure of a contestant in a case, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The contestant and the case that the figure belongs to.
    #[serde(flatten)]
    pub place: Place,
    /// Which figure it is.
    pub figure: Figure,
    /// The figure before.
    pub old: f64,
    /// The figure after.
    pub new: f64,
    /// The new figure divided by the old one; null if the old one was 0.
    pub ratio: Option<f64>,
    /// Both ends of the ratio's 95 % interval; null where there are too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// Whether the figure changed.
    pub change: Change,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Million operations a second: more is better.
    Mops,
    /// Bytes for each key: less is better.
    BytesPerKey,
}

/// Whether and how a figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It changed for the better.
    Better,
    /// It changed for the worse.
    Worse,
    /// It did not change, or the change is within the noise.
    Same,
}

impl Place {
    fn of(record: &Record) -> Self {
        let distribution = record.distribution.as_deref().unwrap_or_default();
        let workload = format!("{} {distribution}", record.workload);
        Self {
            experiment: record.experiment.clone(),
            workload: workload.trim_end().to_owned(),
            key_set: record.key_set.clone(),
            keys: record.keys,
            threads: record.threads,
            engine: record.engine.clone(),
        }
    }
}

fn is_same(one: &Record, other: &Record) -> bool {
    one.engine == other.engine && CaseKey::of(one) == CaseKey::of(other)
}

impl Comparison {
    /// Compares earlier records with later ones. Each side has one record of a contestant in a
    /// case, as [`latest`](crate::results::latest) leaves it.
    ///
    /// A throughput has changed if the 95 % interval of its ratio (see [`ratio`]) does not contain
    /// 1, *and* the ratio is further from 1 than the threshold. With only one run on a side it
    /// never counts as changed. Of the bytes for each key a record has only the median; they have
    /// changed if they differ by more than the threshold.
    ///
    /// ```
    /// use std::path::Path;
    /// use tremula_lab::{compare::Comparison, record};
    ///
    /// let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../index/results");
    /// let old = record::read(&folder.join("ycsb_email.jsonl"))?;
    /// let mut new = old.clone();
    /// for run in &mut new[0].runs {
    ///     *run /= 2.0;
    /// }
    /// let comparison = Comparison::new(&old, &new, 0.05);
    /// assert!(comparison.is_worse());
    /// assert_eq!(comparison.rows.len(), old.len());
    /// # Ok::<(), tremula_lab::LabError>(())
    /// ```
    #[must_use]
    pub fn new(old: &[Record], new: &[Record], threshold: f64) -> Self {
        let mut rows = Vec::new();
        for after in new {
            let Some(before) = old.iter().find(|before| is_same(before, after)) else {
                continue;
            };
            rows.extend(speed(before, after, threshold));
            rows.extend(weight(before, after, threshold));
        }
        let only = |these: &[Record], others: &[Record]| {
            let is_alone = |record: &&Record| !others.iter().any(|other| is_same(record, other));
            these.iter().filter(is_alone).map(Place::of).collect()
        };
        Self {
            threshold,
            warnings: warnings(old, new),
            rows,
            only_old: only(old, new),
            only_new: only(new, old),
        }
    }

    /// Whether a figure changed for the worse.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.rows.iter().any(|row| row.change == Change::Worse)
    }

    fn count(&self, change: Change) -> usize {
        self.rows.iter().filter(|row| row.change == change).count()
    }
}

fn speed(before: &Record, after: &Record, threshold: f64) -> Option<Row> {
    let compared = ratio(&after.runs, &before.runs).ok();
    let interval = compared.and_then(|ratio| ratio.interval);
    let differs = interval.is_some_and(|interval| !interval.contains(1.0));
    let change = match compared.map(|ratio| ratio.value) {
        Some(value) if differs && value > 1.0 + threshold => Change::Better,
        Some(value) if differs && value < 1.0 - threshold => Change::Worse,
        _ => Change::Same,
    };
    Some(Row {
        place: Place::of(after),
        figure: Figure::Mops,
        old: before.mops,
        new: after.mops,
        ratio: compared.map(|ratio| ratio.value),
        interval: interval.map(|Interval { low, high }| (low, high)),
        change,
    })
}

fn weight(before: &Record, after: &Record, threshold: f64) -> Option<Row> {
    let (old, new) = (before.bytes_per_key?, after.bytes_per_key?);
    let ratio = (old > 0.0).then_some(new / old);
    let change = match ratio {
        Some(ratio) if ratio > 1.0 + threshold => Change::Worse,
        Some(ratio) if ratio < 1.0 - threshold => Change::Better,
        _ => Change::Same,
    };
    Some(Row {
        place: Place::of(after),
        figure: Figure::BytesPerKey,
        old,
        new,
        ratio,
        interval: None,
        change,
    })
}

/// Differences in how the two sides were made.
fn warnings(old: &[Record], new: &[Record]) -> Vec<String> {
    let mut warnings = Vec::new();
    let (Some(before), Some(after)) = (old.first(), new.first()) else {
        return warnings;
    };
    let mut differ = |what: &str, old: String, new: String| {
        if old != new {
            warnings.push(format!("the {what} differ: {old} before, {new} after"));
        }
    };
    let machine = |record: &Record| {
        let machine = &record.made_by.machine;
        format!("{} × {}", machine.cores, machine.cpu)
    };
    differ("machines", machine(before), machine(after));
    let build = |record: &Record| record.made_by.configuration.build.clone();
    differ("builds", build(before), build(after));
    let allocator = |record: &Record| {
        let other = record.made_by.configuration.allocator.clone();
        other.unwrap_or_else(|| "mimalloc".to_owned())
    };
    differ("allocators", allocator(before), allocator(after));
    let seed = |record: &Record| record.made_by.seed.to_string();
    differ("seeds", seed(before), seed(after));
    warnings
}

/// A comparison as text: the changes, what only one side has, and the number of each.
#[must_use]
pub fn table(comparison: &Comparison) -> String {
    let mut text = String::new();
    for warning in &comparison.warnings {
        writeln!(text, "warning: {warning}").expect("a string takes all text");
    }
    let heading = [
        "experiment",
        "workload",
        "keys",
        "threads",
        "engine",
        "figure",
    ];
    let heading = heading.into_iter();
    let heading = heading.chain(["old", "new", "ratio", "95 % interval", "change"]);
    let mut rows = vec![heading.map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(comparison.rows.iter().map(cells));
    if !comparison.rows.is_empty() {
        text += &align(&rows);
    }
    for (side, places) in [("old", &comparison.only_old), ("new", &comparison.only_new)] {
        for place in places {
            let Place {
                experiment,
                workload,
                key_set,
                keys,
                threads,
                engine,
            } = place;
            writeln!(
                text,
                "only in {side}: {experiment}, {workload}, {keys} {key_set}, {threads} threads: \
                 {engine}"
            )
            .expect("a string takes all text");
        }
    }
    writeln!(
        text,
        "\n{} compared: {} better, {} worse, {} the same within noise and {} %; {} only in old, {} \
         only in new",
        comparison.rows.len(),
        comparison.count(Change::Better),
        comparison.count(Change::Worse),
        comparison.count(Change::Same),
        (comparison.threshold * 1000.0).round() / 10.0,
        comparison.only_old.len(),
        comparison.only_new.len(),
    )
    .expect("a string takes all text");
    text
}

fn cells(row: &Row) -> Vec<String> {
    let (figure, decimals) = match row.figure {
        Figure::Mops => ("mops", 3),
        Figure::BytesPerKey => ("bytes_per_key", 1),
    };
    let none = || "-".to_owned();
    let interval = |(low, high)| format!("{low:.3} to {high:.3}");
    let change = match row.change {
        Change::Better => "better",
        Change::Worse => "WORSE",
        Change::Same => "",
    };
    let place = &row.place;
    vec![
        place.experiment.clone(),
        place.workload.clone(),
        format!("{} {}", place.keys, place.key_set),
        place.threads.to_string(),
        place.engine.clone(),
        figure.to_owned(),
        format!("{:.decimals$}", row.old),
        format!("{:.decimals$}", row.new),
        row.ratio.map_or_else(none, |ratio| format!("{ratio:.3}")),
        row.interval.map_or_else(none, interval),
        change.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::tests::some_record,
        workload::{Purpose, generator},
    };
    use rand::RngExt;

    /// Records of many cases with runs within 4 % of their middle.
    fn noisy(seed: u64, middle: impl Fn(usize) -> f64) -> Vec<Record> {
        let mut random = generator(seed, Purpose::Stream, 0, 0);
        let mut run = |middle: f64| middle * (0.96 + 0.08 * random.random::<f64>());
        (0..100)
            .map(|case| {
                let mut record = some_record("lookup", case + 1, "locked", middle(case));
                record.runs = (0..7).map(|_| run(middle(case))).collect();
                record.mops = crate::measure::median(&record.runs).unwrap();
                record
            })
            .collect()
    }

    #[test]
    fn planted_changes_of_a_fifth_are_found_and_noise_is_not() {
        let middle = |case: usize| 1.0 + case as f64 / 10.0;
        let planted = |case: usize| match case % 10 {
            3 => middle(case) * 0.8,
            7 => middle(case) * 1.2,
            _ => middle(case),
        };
        let comparison = Comparison::new(&noisy(1, middle), &noisy(2, planted), 0.05);
        assert_eq!(comparison.rows.len(), 100);
        for (case, row) in comparison.rows.iter().enumerate() {
            let expected = match case % 10 {
                3 => Change::Worse,
                7 => Change::Better,
                _ => Change::Same,
            };
            assert_eq!(row.change, expected, "{row:?}");
        }
        assert!(comparison.is_worse());
        assert!(!Comparison::new(&noisy(3, middle), &noisy(4, middle), 0.05).is_worse());
    }

    #[test]
    fn a_change_must_be_beyond_the_threshold_too() {
        let record = |mops: f64| {
            let mut record = some_record("lookup", 1, "locked", mops);
            record.runs = vec![mops; 3];
            vec![record]
        };
        let change = |threshold| {
            let comparison = Comparison::new(&record(1.0), &record(0.97), threshold);
            comparison.rows[0].change
        };
        assert_eq!((change(0.05), change(0.01)), (Change::Same, Change::Worse));
    }

    #[test]
    fn one_run_is_never_a_change() {
        let single = |mops: f64| {
            let mut record = some_record("lookup", 1, "locked", mops);
            record.runs = vec![mops];
            vec![record]
        };
        let comparison = Comparison::new(&single(2.0), &single(1.0), 0.05);
        let row = &comparison.rows[0];
        assert_eq!(
            (row.change, row.ratio, row.interval),
            (Change::Same, Some(0.5), None)
        );
    }

    #[test]
    fn bytes_are_compared_too_and_more_are_worse() {
        let record = |bytes| {
            let mut record = some_record("fill", 1, "locked", 1.0);
            record.bytes_per_key = Some(bytes);
            vec![record]
        };
        let change = |old, new| {
            let comparison = Comparison::new(&record(old), &record(new), 0.05);
            assert_eq!(comparison.rows[1].figure, Figure::BytesPerKey);
            comparison.rows[1].change
        };
        assert_eq!(change(20.0, 24.0), Change::Worse);
        assert_eq!(change(20.0, 16.0), Change::Better);
        assert_eq!(change(20.0, 20.5), Change::Same);
        assert_eq!(change(0.0, 20.5), Change::Same);
    }

    #[test]
    fn what_is_on_one_side_only_is_listed_and_other_conditions_are_warned_of() {
        let old = vec![
            some_record("lookup", 1, "locked", 1.0),
            some_record("lookup", 2, "locked", 1.0),
        ];
        let mut new = vec![
            some_record("lookup", 1, "locked", 1.0),
            some_record("update1", 1, "locked", 1.0),
        ];
        for record in &mut new {
            record.made_by.machine.cores += 1;
            record.made_by.seed += 1;
            record.made_by.configuration.allocator = Some("another".to_owned());
        }
        let comparison = Comparison::new(&old, &new, 0.05);
        assert_eq!((comparison.rows.len(), comparison.warnings.len()), (1, 3));
        assert_eq!(comparison.only_old[0].threads, 2);
        assert_eq!(comparison.only_new[0].workload, "update1");
        let text = table(&comparison);
        for part in [
            "warning: the machines differ",
            ", another after",
            "only in old: ordered_mix, lookup, 1048576 dense_half_filled, 2 threads: locked",
            "only in new: ordered_mix, update1",
            "1 compared: 0 better, 0 worse, 1 the same within noise and 5 %",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn as_json_it_has_the_promised_fields() {
        let records = [some_record("lookup", 1, "locked", 1.0)];
        let json = serde_json::to_value(Comparison::new(&records, &records, 0.05)).unwrap();
        let row = json["rows"][0].as_object().unwrap();
        let mut fields: Vec<_> = row.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(
            fields,
            [
                "change",
                "engine",
                "experiment",
                "figure",
                "interval",
                "key_set",
                "keys",
                "new",
                "old",
                "ratio",
                "threads",
                "workload"
            ]
        );
        assert_eq!(
            (&row["change"], &row["figure"]),
            (&"same".into(), &"mops".into())
        );
        assert_eq!(json["threshold"], 0.05);
    }
}
