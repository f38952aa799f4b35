//! The table at the end of a run.

use crate::{gauge::QUIET, record::Record, results};
use std::{collections::BTreeSet, fmt::Write};

/// The contestants that others are compared with: the first of these that takes part, or else the
/// first one that does.
const BASE_LINES: [&str; 2] = ["btreemap", "locked"];

/// The records of one experiment as text: a row for each workload, key set and number of threads, a
/// column for each contestant, and then the same for every other figure.
///
/// A cell has the median, half the range of the runs relative to the median (±), the ratio to the
/// baseline, and a mark if the machine was busy with other work. Contestants that answered wrongly
/// are named below.
#[must_use]
pub fn table(records: &[Record]) -> String {
    let (right, wrong) = results::without_wrong(records.to_vec());
    let mut text = figures(&right);
    for sentence in wrong {
        writeln!(text, "\n{sentence}").expect("a string takes all text");
    }
    text
}

/// The table of records with figures.
fn figures(records: &[Record]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let engines = in_order(records.iter().map(|record| record.engine.as_str()));
    let base = BASE_LINES.into_iter().find(|base| engines.contains(base));
    let base = base.unwrap_or(engines[0]);
    let made_by = &first.made_by;
    let mut text = format!(
        "{}: million operations a second, median of {} runs (± half their spread), × {base}\n\
         {}, seed {}, {} × {}, {}\n\n",
        first.experiment,
        first.runs.len(),
        key_sets(records),
        made_by.seed,
        made_by.machine.cores,
        made_by.machine.cpu,
        made_by.machine.system(),
    );
    text += &grid(records, &engines, |record, row| {
        let base = row.iter().find(|other| other.engine == base);
        let ratio = base.map_or(1.0, |base| record.mops / base.mops);
        let mark = if record.is_disturbed() { '!' } else { ' ' };
        format!("{:.3}{} ×{ratio:<5.2}{mark}", record.mops, spread(record))
    });
    if records.iter().any(Record::is_disturbed) {
        text += &format!(
            "\n!  in most runs other work had more than {:.0} % of the machine\n",
            (1.0 - QUIET) * 100.0
        );
    }
    if records.iter().any(Record::is_oversubscribed) {
        text += "\n*  oversubscribed: more threads work than there are cores\n";
    }
    if records.iter().any(|record| record.send_mops.is_some()) {
        text += "\nsend_mops\n\n";
        text += &grid(records, &engines, |record, _| number(record.send_mops, 3));
    }
    if records.iter().any(|record| record.bytes_per_key.is_some()) {
        text += "\nbytes_per_key\n\n";
        text += &grid(records, &engines, |record, _| {
            number(record.bytes_per_key, 1)
        });
    }
    let figures: BTreeSet<_> = records.iter().flat_map(|r| r.figures.keys()).collect();
    for figure in figures {
        write!(text, "\n{figure}\n\n").expect("a string takes all text");
        text += &grid(records, &engines, |record, _| {
            number(record.figures.get(figure).copied(), 2)
        });
    }
    text
}

fn number(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.decimals$}"))
}

/// How many keys each set has, and their mean length.
fn key_sets(records: &[Record]) -> String {
    let names = in_order(records.iter().map(|record| record.key_set.as_str()));
    let describe = |name: &&str| {
        let of_set = records.iter().find(|record| record.key_set == *name);
        of_set.map_or_else(String::new, |record| {
            format!(
                "{} keys {name} of {:.1} bytes",
                record.keys, record.key_bytes
            )
        })
    };
    names.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn in_order<T: PartialEq>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// Half the distance from the slowest run to the fastest, relative to the median.
fn spread(record: &Record) -> String {
    if record.runs.len() < 2 {
        return String::new();
    }
    let most = record.runs.iter().copied().fold(f64::MIN, f64::max);
    let least = record.runs.iter().copied().fold(f64::MAX, f64::min);
    format!(" ±{:>2.0} %", (most - least) / 2.0 / record.mops * 100.0)
}

/// The case that a row of the table shows.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Row<'a> {
    workload: &'a str,
    distribution: Option<&'a str>,
    key_set: &'a str,
    threads: usize,
    oversubscribed: bool,
}

impl<'a> Row<'a> {
    fn of(record: &'a Record) -> Self {
        Self {
            workload: &record.workload,
            distribution: record.distribution.as_deref(),
            key_set: &record.key_set,
            threads: record.threads,
            oversubscribed: record.is_oversubscribed(),
        }
    }

    fn cells(self) -> Vec<String> {
        let distribution = self.distribution.unwrap_or_default();
        vec![
            format!("{} {distribution}", self.workload)
                .trim()
                .to_owned(),
            self.key_set.to_owned(),
            format!(
                "{}{}",
                self.threads,
                if self.oversubscribed { "*" } else { "" }
            ),
        ]
    }
}

/// A grid of right-aligned cells under the names of the contestants. `cell` gets a record, and all
/// records of its row.
fn grid(
    records: &[Record],
    engines: &[&str],
    cell: impl Fn(&Record, &[&Record]) -> String,
) -> String {
    let mut heading: Vec<_> = ["workload", "keys", "threads"].map(str::to_owned).into();
    heading.extend(engines.iter().map(|&engine| engine.to_owned()));
    let mut rows = vec![heading];
    for row in in_order(records.iter().map(Row::of)) {
        let of_row: Vec<_> = records.iter().filter(|r| Row::of(r) == row).collect();
        let mut cells = row.cells();
        cells.extend(engines.iter().map(|engine| {
            let record = of_row.iter().find(|record| record.engine == *engine);
            record.map_or_else(|| "-".to_owned(), |record| cell(record, &of_row))
        }));
        rows.push(cells);
    }
    align(&rows)
}

/// Rows of cells as text, the first column aligned to the left and the others to the right.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(line, "  {cell:>width$}").expect("a string takes all text");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn a_row_for_each_workload_and_thread_count_with_ratios_to_the_base_line() {
        let records = [
            some_record("lookup", 1, "ca_tree", 3.0),
            some_record("lookup", 1, "locked", 2.0),
            some_record("lookup", 2, "ca_tree", 8.0),
            some_record("lookup", 2, "locked", 2.0),
            some_record("update1", 1, "ca_tree", 1.0),
            some_record("update1", 1, "locked", 2.0),
        ];
        let text = table(&records);
        let rows: Vec<_> = text.lines().skip(3).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[0].contains("ca_tree") && rows[0].contains("locked"));
        let row = rows[2];
        assert!(
            row.starts_with("lookup") && row.contains("8.000 ±10 % ×4.00"),
            "{row}"
        );
        assert!(row.contains("×1.00"), "{row}");
        assert!(rows[3].contains("×0.50"), "{text}");
        assert!(!text.contains("bytes_per_key"));
    }

    #[test]
    fn key_sets_and_distributions_have_rows_of_their_own() {
        let mut records = Vec::new();
        for key_set in ["rand_int", "email"] {
            for distribution in ["zipfian", "uniform"] {
                let mut record = some_record("c", 2, "locked", 1.0);
                record.key_set = key_set.to_owned();
                record.distribution = Some(distribution.to_owned());
                records.push(record);
            }
        }
        let text = table(&records);
        let rows: Vec<_> = text.lines().skip(4).collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(rows[1].starts_with("c uniform") && rows[1].contains("rand_int"));
        assert!(rows[2].starts_with("c zipfian") && rows[2].contains("email"));
    }

    #[test]
    fn bytes_and_other_figures_are_shown_where_measured() {
        let mut record = some_record("insert_random", 1, "ca_tree", 3.0);
        record.bytes_per_key = Some(31.25);
        record
            .figures
            .insert("restarts_per_operation".to_owned(), 0.125);
        let text = table(&[record, some_record("insert_random", 1, "locked", 3.0)]);
        assert!(
            text.contains("bytes_per_key") && text.contains("31.2"),
            "{text}"
        );
        let figures = text.split_once("restarts_per_operation").unwrap().1;
        assert!(figures.contains("0.12") && figures.contains('-'), "{text}");
    }

    #[test]
    fn no_records_no_table() {
        assert_eq!(table(&[]), "");
    }
}
