//! The table of the best engine of each case, in Markdown.

use crate::{
    LabError,
    contestants::{Side, side_of},
    record::Record,
};
use std::{collections::BTreeSet, fmt::Write};

/// The case that a row of the table shows.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Row<'a> {
    experiment: &'a str,
    key_set: &'a str,
    keys: u64,
    workload: &'a str,
    distribution: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            experiment: &record.experiment,
            key_set: &record.key_set,
            keys: record.keys,
            workload: &record.workload,
            distribution: record.distribution.as_deref(),
        }
    }

    /// The key set, with the number of keys if these rows have several.
    fn keys_among(self, rows: &[Self]) -> String {
        let like_it =
            |row: &&Self| (row.experiment, row.key_set) == (self.experiment, self.key_set);
        let mut like_it = rows.iter().filter(like_it);
        if like_it.all(|row| row.keys == self.keys) {
            format!("`{}`", self.key_set)
        } else {
            format!("{} `{}`", self.keys, self.key_set)
        }
    }

    fn name(self) -> String {
        let distribution = self.distribution.unwrap_or_default();
        format!("{} {distribution}", self.workload)
            .trim_end()
            .to_owned()
    }
}

/// The fastest contestant of each case, as a table: one row for each key set and workload, one
/// column for each number of threads, and below the table the conditions of the measurements.
///
/// A cell names the fastest contestant (in bold if it is ours), its million operations a second,
/// and the factor by which it is faster than the fastest of the other side: the rivals if it is
/// ours, ours if it is a rival.
///
/// # Errors
///
/// Two records are of the same contestant in the same case, so it is unclear which one counts.
pub fn table(records: &[Record]) -> Result<String, LabError> {
    let Some(first) = records.first() else {
        return Ok(String::new());
    };
    let mut rows: Vec<Row<'_>> = Vec::new();
    for row in records.iter().map(Row::of) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let threads: BTreeSet<usize> = records.iter().map(|record| record.threads).collect();
    let mut text = "| keys | workload |".to_owned();
    for &count in &threads {
        let plural = if count == 1 { "" } else { "s" };
        write!(text, " {count} thread{plural} |").expect("a string takes all text");
    }
    text += "\n|---|---|";
    text += &"---|".repeat(threads.len());
    text.push('\n');
    for &row in &rows {
        let keys = row.keys_among(&rows);
        write!(text, "| {keys} | {} |", row.name()).expect("a string takes all text");
        for &threads in &threads {
            let of_case = |record: &&Record| Row::of(record) == row && record.threads == threads;
            let of_case: Vec<_> = records.iter().filter(of_case).collect();
            write!(text, " {} |", cell(&of_case)?).expect("a string takes all text");
        }
        text.push('\n');
    }
    let machine = &first.made_by.machine;
    let sizes: Vec<_> = {
        let sizes = records.iter().map(|record| (&record.key_set, record.keys));
        let mut unique = Vec::new();
        for size in sizes {
            if !unique.contains(&size) {
                unique.push(size);
            }
        }
        unique
    };
    let sizes: Vec<_> = sizes
        .iter()
        .map(|(set, keys)| format!("{keys} `{set}`"))
        .collect();
    writeln!(
        text,
        "\n{} keys; medians of {}; {} × {}; seed {}.",
        sizes.join(", "),
        match first.runs.len() {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        },
        machine.cores,
        machine.cpu,
        first.made_by.seed,
    )
    .expect("a string takes all text");
    Ok(text)
}

/// The cell for the records of one case.
fn cell(records: &[&Record]) -> Result<String, LabError> {
    for (at, record) in records.iter().enumerate() {
        if records[..at].iter().any(|r| r.engine == record.engine) {
            return Err(LabError::MeasuredTwice {
                engine: record.engine.clone(),
                workload: record.workload.clone(),
                key_set: record.key_set.clone(),
                threads: record.threads,
            });
        }
    }
    let fastest = |ours: bool| {
        let of_side = records.iter().filter(|r| is_ours(&r.engine) == ours);
        of_side.max_by(|one, other| one.mops.total_cmp(&other.mops))
    };
    let show = |record: &Record, other: Option<&&Record>| {
        let mark = if is_ours(&record.engine) { "**" } else { "" };
        let mut text = format!("{mark}`{}`{mark} {:.2}", record.engine, record.mops);
        if let Some(other) = other {
            let ratio = record.mops / other.mops;
            write!(text, ", ×{ratio:.2} `{}`", other.engine).expect("a string takes all text");
        }
        text
    };
    Ok(match (fastest(true), fastest(false)) {
        (None, None) => "–".to_owned(),
        (Some(ours), None) => show(ours, None),
        (Some(ours), Some(rival)) if ours.mops >= rival.mops => show(ours, Some(rival)),
        (ours, Some(rival)) => show(rival, ours),
    })
}

/// Whether a contestant is of this project; `false` for one that this lab does not know.
fn is_ours(engine: &str) -> bool {
    side_of(engine) == Some(Side::Ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    fn rows(records: &[Record]) -> Vec<String> {
        let text = table(records).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn each_cell_has_the_fastest_and_how_far_the_other_side_is_behind() {
        let rows = rows(&[
            some_record("lookup", 1, "locked", 2.0),
            some_record("lookup", 1, "ca_tree", 3.0),
            some_record("lookup", 1, "congee", 1.5),
            some_record("lookup", 8, "ca_tree", 4.0),
            some_record("lookup", 8, "congee", 5.0),
            some_record("lookup", 8, "artmap", 4.5),
            some_record("update1", 1, "ca_tree", 1.0),
        ]);
        assert_eq!(rows[0], "| keys | workload | 1 thread | 8 threads |");
        assert_eq!(rows[1], "|---|---|---|---|");
        assert_eq!(
            rows[2],
            "| `dense_half_filled` | lookup | **`ca_tree`** 3.00, ×2.00 `congee` \
             | `congee` 5.00, ×1.25 `ca_tree` |"
        );
        assert_eq!(
            rows[3],
            "| `dense_half_filled` | update1 | **`ca_tree`** 1.00 | – |"
        );
        assert!(
            rows[5].starts_with("1048576 `dense_half_filled` keys; medians of 3 runs; "),
            "{rows:?}"
        );
        assert_eq!(rows.len(), 6);
    }

    #[test]
    fn key_sets_sizes_and_distributions_have_rows_of_their_own() {
        let record = |key_set: &str, keys, distribution: &str| Record {
            key_set: key_set.to_owned(),
            keys,
            distribution: Some(distribution.to_owned()),
            ..some_record("c", 2, "locked", 1.0)
        };
        let rows = rows(&[
            record("email", 10, "zipfian"),
            record("email", 20, "zipfian"),
            record("email", 20, "uniform"),
            record("rand_int", 20, "uniform"),
        ]);
        assert!(
            rows[2].starts_with("| 10 `email` | c zipfian |"),
            "{rows:?}"
        );
        assert!(
            rows[4].starts_with("| 20 `email` | c uniform |"),
            "{rows:?}"
        );
        assert!(
            rows[5].starts_with("| `rand_int` | c uniform |"),
            "{rows:?}"
        );
        assert!(
            rows[7].starts_with("10 `email`, 20 `email`, 20 `rand_int` keys"),
            "{rows:?}"
        );
    }

    #[test]
    fn two_records_of_one_case_are_refused() {
        let record = some_record("lookup", 2, "ca_tree", 1.0);
        let error = table(&[record.clone(), record]).unwrap_err().to_string();
        for part in ["ca_tree", "lookup", "dense_half_filled", "2 threads"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn no_records_no_table() {
        assert_eq!(table(&[]).unwrap(), "");
    }
}
