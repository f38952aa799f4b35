//! Files of results: reads several, and decides which record of a case counts.

use crate::{
    LabError,
    record::{self, Record},
};
use std::path::PathBuf;

/// What was measured, apart from the contestant. Records of one case are compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CaseKey<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The key set's name.
    pub key_set: &'a str,
    /// How many keys.
    pub keys: u64,
    /// The workload's name.
    pub workload: &'a str,
    /// How keys were chosen.
    pub distribution: Option<&'a str>,
    /// How many threads.
    pub threads: usize,
    /// The machine whose virtual cores it ran on; `None` if it was measured.
    pub simulated_on: Option<&'a str>,
}

impl<'a> CaseKey<'a> {
    /// The case of a record.
    #[must_use]
    pub fn of(record: &'a Record) -> Self {
        Self {
            experiment: &record.experiment,
            key_set: &record.key_set,
            keys: record.keys,
            workload: &record.workload,
            distribution: record.distribution.as_deref(),
            threads: record.threads,
            simulated_on: record.simulated_on(),
        }
    }
}

/// The records of these files, in order.
///
/// # Errors
///
/// A file cannot be read, has no records, or has a line that is no record.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Record>, LabError> {
    let mut records = Vec::new();
    for path in paths {
        let of_file = record::read(path)?;
        if of_file.is_empty() {
            return Err(LabError::NoRecords { path: path.clone() });
        }
        records.extend(of_file);
    }
    Ok(records)
}

/// The last record of each engine in each case, in the order of the first: a later measurement
/// replaces an earlier one.
#[must_use]
pub fn latest(records: Vec<Record>) -> Vec<Record> {
    let mut kept: Vec<Record> = Vec::with_capacity(records.len());
    let mut places = std::collections::HashMap::new();
    for record in records {
        let case = CaseKey::of(&record);
        let key = format!("{case:?} {}", record.engine);
        match places.get(&key) {
            Some(&place) => kept[place] = record,
            None => {
                places.insert(key, kept.len());
                kept.push(record);
            }
        }
    }
    kept
}

/// The records with figures, and a sentence for each contestant that answered wrongly, whose record
/// has no figures.
#[must_use]
pub fn without_wrong(records: Vec<Record>) -> (Vec<Record>, Vec<String>) {
    let (wrong, right): (Vec<_>, Vec<_>) = records
        .into_iter()
        .partition(|record| record.error.is_some());
    let sentence = |record: &Record| {
        let plural = if record.threads == 1 { "" } else { "s" };
        format!(
            "no figure in {}, {}, {}, {} thread{plural}: {}",
            record.experiment,
            record.workload,
            record.key_set,
            record.threads,
            record.error.as_deref().unwrap_or_default()
        )
    };
    (right, wrong.iter().map(sentence).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn a_simulation_does_not_replace_a_measurement() {
        let measured = some_record("lookup", 1, "locked", 1.0);
        let mut simulated = measured.clone();
        simulated.simulated = true;
        let mut elsewhere = simulated.clone();
        elsewhere.made_by.machine.cpu = "another".to_owned();
        let all = vec![measured, simulated, elsewhere];
        assert_eq!(latest(all.clone()), all);
    }

    #[test]
    fn the_last_record_of_an_engine_in_a_case_counts() {
        let records = latest(vec![
            some_record("lookup", 1, "locked", 1.0),
            some_record("lookup", 2, "locked", 2.0),
            some_record("lookup", 1, "ca_tree", 3.0),
            some_record("lookup", 1, "locked", 4.0),
        ]);
        let rows: Vec<_> = records
            .iter()
            .map(|record| (record.threads, record.engine.as_str(), record.mops))
            .collect();
        assert_eq!(
            rows,
            [(1, "locked", 4.0), (2, "locked", 2.0), (1, "ca_tree", 3.0)]
        );
    }

    #[test]
    fn a_record_of_wrong_answers_is_a_sentence_and_no_figure() {
        let mut wrong = some_record("lookup", 2, "congee", 0.0);
        wrong.error = Some("congee is wrong: 1 wrong result".to_owned());
        let right = some_record("lookup", 2, "locked", 2.0);
        let (kept, sentences) = without_wrong(vec![wrong, right.clone()]);
        assert_eq!(kept, [right]);
        assert_eq!(
            sentences,
            [
                "no figure in ordered_mix, lookup, dense_half_filled, 2 threads: \
              congee is wrong: 1 wrong result"
            ]
        );
    }

    #[test]
    fn files_without_records_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.jsonl");
        std::fs::write(&path, "").unwrap();
        let error = read(&[path]).unwrap_err().to_string();
        assert!(error.contains("empty.jsonl' has no records"), "{error}");
    }
}
