//! The table at the end of a run.

use crate::record::Record;
use std::fmt::Write;

/// The contestant that others are compared with, if it takes part; else the first one.
const BASE_LINE: &str = "locked";

/// The records of one experiment as text: a row for each workload and number of threads, a
/// column for each contestant, then the same for bytes a key where they were measured.
///
/// A cell has the median, the range of the runs as a part of the median (± half of it), and
/// the ratio to the base line.
#[must_use]
pub fn table(records: &[Record]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    let engines = in_order(records.iter().map(|record| record.engine.as_str()));
    let base = if engines.contains(&BASE_LINE) {
        BASE_LINE
    } else {
        engines[0]
    };
    let made_by = &first.made_by;
    let mut text = format!(
        "{}: million operations a second, median of {} runs (± half their spread), × {base}\n\
         {} keys, seed {}, {} × {}, Linux {}\n\n",
        first.experiment,
        first.runs.len(),
        first.keys,
        made_by.seed,
        made_by.machine.cores,
        made_by.machine.cpu,
        made_by.machine.kernel,
    );
    text += &grid(records, &engines, |record, row| {
        let base = row.iter().find(|other| other.engine == base);
        let ratio = base.map_or(1.0, |base| record.mops / base.mops);
        format!("{:.3}{} ×{ratio:<5.2}", record.mops, spread(record))
    });
    if records.iter().any(|record| record.bytes_per_key.is_some()) {
        text += "\nbytes a key\n\n";
        text += &grid(records, &engines, |record, _| {
            record
                .bytes_per_key
                .map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.1}"))
        });
    }
    text
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

/// Half the distance from the slowest run to the fastest, as a part of the median.
fn spread(record: &Record) -> String {
    if record.runs.len() < 2 {
        return String::new();
    }
    let most = record.runs.iter().copied().fold(f64::MIN, f64::max);
    let least = record.runs.iter().copied().fold(f64::MAX, f64::min);
    format!(" ±{:>2.0} %", (most - least) / 2.0 / record.mops * 100.0)
}

/// A grid of right-aligned cells under the names of the contestants. `cell` gets a record, and
/// all records of its row.
fn grid(
    records: &[Record],
    engines: &[&str],
    cell: impl Fn(&Record, &[&Record]) -> String,
) -> String {
    let mut rows = vec![vec!["workload".to_owned(), "threads".to_owned()]];
    rows[0].extend(engines.iter().map(|&engine| engine.to_owned()));
    for workload in in_order(records.iter().map(|record| record.workload.as_str())) {
        let of_workload = records.iter().filter(|record| record.workload == workload);
        let mut threads: Vec<_> = of_workload.clone().map(|record| record.threads).collect();
        threads.dedup();
        for threads in threads {
            let row: Vec<_> = of_workload
                .clone()
                .filter(|record| record.threads == threads)
                .collect();
            let mut cells = vec![workload.to_owned(), threads.to_string()];
            cells.extend(engines.iter().map(|engine| {
                let record = row.iter().find(|record| record.engine == *engine);
                record.map_or_else(|| "-".to_owned(), |record| cell(record, &row))
            }));
            rows.push(cells);
        }
    }
    align(&rows)
}

fn align(rows: &[Vec<String>]) -> String {
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
        assert!(!text.contains("bytes a key"));
    }

    #[test]
    fn bytes_a_key_are_shown_where_measured() {
        let mut record = some_record("insert_random", 1, "ca_tree", 3.0);
        record.bytes_per_key = Some(31.25);
        let text = table(&[record]);
        assert!(
            text.contains("bytes a key") && text.contains("31.2"),
            "{text}"
        );
    }

    #[test]
    fn no_records_no_table() {
        assert_eq!(table(&[]), "");
    }
}
