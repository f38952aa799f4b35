//! The records of one experiment, grouped for display.

use super::markup;
use crate::{
    claims::{CURVES, Curve, Scaled},
    record::Record,
    simulate::WITHOUT_TRANSFERS,
};

/// Everything that was measured in one experiment.
pub(super) struct Study<'a> {
    /// The experiment's name.
    pub(super) experiment: &'a str,
    pub(super) records: Vec<&'a Record>,
    pub(super) panels: Vec<Panel<'a>>,
}

/// The contents of one chart: a workload on a key set.
pub(super) struct Panel<'a> {
    /// The workload; for slices, the common prefix of their names.
    pub(super) workload: &'a str,
    pub(super) distribution: Option<&'a str>,
    pub(super) key_set: &'a str,
    pub(super) keys: u64,
    /// Whether its records are slices of time, in order.
    pub(super) has_slices: bool,
    /// The machine whose virtual cores its records are of; `None` if they were measured.
    pub(super) simulated_on: Option<&'a str>,
    pub(super) records: Vec<&'a Record>,
}

/// Whether the prices of a simulated machine are those of a real one.
pub(super) fn is_as_bought(machine: &str) -> bool {
    !machine.ends_with(WITHOUT_TRANSFERS)
}

/// The words for what an experiment counts.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) threads: &'static str,
    pub(super) operations: &'static str,
}

impl Words {
    pub(super) fn of(experiment: &str) -> Self {
        let (threads, operations) = match experiment {
            "signals" => ("senders", "messages"),
            "shard_cache" => ("workers", "requests"),
            "redis" => ("threads", "commands"),
            "transactions" => ("clients", "transactions"),
            "feeds" => ("writers", "events"),
            "memory" => ("threads", "inserts"),
            "remove" => ("threads", "removals"),
            "long_scan" => ("threads", "entries"),
            "snapshot_beside_writers" => ("writers", "updates"),
            _ => ("threads", "operations"),
        };
        Self {
            threads,
            operations,
        }
    }
}

/// The workload of `signals` that is measured slice by slice: `phases_01`, `phases_02`, …
const SLICED: &str = "phases";

/// The number of a slice; `None` if the workload is no slice.
pub(super) fn slice_of(workload: &str) -> Option<u32> {
    let number = workload.strip_prefix(SLICED)?.strip_prefix('_')?;
    number.parse().ok()
}

impl<'a> Study<'a> {
    /// The studies of these records, in the order of their first records.
    pub(super) fn all(records: &'a [Record]) -> Vec<Self> {
        let mut studies: Vec<Self> = Vec::new();
        for record in records {
            let of_experiment = |study: &&mut Self| study.experiment == record.experiment;
            let study = match studies.iter_mut().find(of_experiment) {
                Some(study) => study,
                None => {
                    studies.push(Self {
                        experiment: &record.experiment,
                        records: Vec::new(),
                        panels: Vec::new(),
                    });
                    studies.last_mut().expect("one was added")
                }
            };
            study.records.push(record);
            study.add(record);
        }
        studies
    }

    fn add(&mut self, record: &'a Record) {
        let slice = slice_of(&record.workload);
        let workload = slice.map_or(record.workload.as_str(), |_| SLICED);
        let belongs = |panel: &&mut Panel<'a>| {
            panel.workload == workload
                && panel.distribution == record.distribution.as_deref()
                && panel.key_set == record.key_set
                && panel.keys == record.keys
                && panel.has_slices == slice.is_some()
                && panel.simulated_on == record.simulated_on()
        };
        match self.panels.iter_mut().find(belongs) {
            Some(panel) => panel.records.push(record),
            None => self.panels.push(Panel {
                workload,
                distribution: record.distribution.as_deref(),
                key_set: &record.key_set,
                keys: record.keys,
                has_slices: slice.is_some(),
                simulated_on: record.simulated_on(),
                records: vec![record],
            }),
        }
    }
}

impl<'a> Panel<'a> {
    /// The caption of the panel.
    pub(super) fn name(&self) -> String {
        let distribution = self.distribution.map(|d| format!(", {d}"));
        let simulated = self
            .simulated_on
            .map(|machine| format!(" · simulated on {machine}"));
        format!(
            "{}{} · {} × {}{}",
            self.workload,
            distribution.unwrap_or_default(),
            self.key_set,
            markup::count(self.keys),
            simulated.unwrap_or_default()
        )
    }

    /// The contestants, in the order of their records.
    pub(super) fn engines(&self) -> Vec<&'a str> {
        in_order(self.records.iter().map(|record| record.engine.as_str()))
    }

    /// The numbers of threads, ascending.
    pub(super) fn thread_counts(&self) -> Vec<usize> {
        let mut counts = in_order(self.records.iter().map(|record| record.threads));
        counts.sort_unstable();
        counts
    }

    /// The records of one contestant.
    pub(super) fn of_engine(&self, engine: &str) -> impl Iterator<Item = &'a Record> {
        let records = self.records.iter().copied();
        records.filter(move |record| record.engine == engine)
    }

    /// The published curves that can be compared with what was simulated here, and their points.
    pub(super) fn published(&self) -> Vec<(&'static Curve, Vec<Scaled>)> {
        if !self.simulated_on.is_some_and(is_as_bought) {
            return Vec::new();
        }
        let curves = CURVES
            .iter()
            .map(|curve| (curve, curve.beside(&self.records)));
        curves.filter(|(_, points)| !points.is_empty()).collect()
    }

    /// The records with this number of threads.
    pub(super) fn with_threads(&self, threads: usize) -> Vec<&'a Record> {
        let records = self.records.iter().copied();
        records.filter(|record| record.threads == threads).collect()
    }
}

/// Each name once, in the order of first occurrence.
pub(super) fn in_order<T: PartialEq>(names: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    #[test]
    fn panels_are_workloads_on_key_sets_and_slices_are_put_together() {
        let mut records = vec![
            some_record("lookup", 1, "locked", 1.0),
            some_record("lookup", 2, "ca_tree", 1.0),
            some_record("phases_01", 2, "ca_tree", 1.0),
            some_record("phases_02", 2, "ca_tree", 1.0),
        ];
        records[1].keys = records[0].keys;
        let mut other = some_record("lookup", 1, "locked", 1.0);
        other.experiment = "something_new".to_owned();
        records.push(other);
        let studies = Study::all(&records);
        assert_eq!(studies.len(), 2);
        let panels = &studies[0].panels;
        assert_eq!(panels.len(), 2);
        assert_eq!(panels[0].thread_counts(), [1, 2]);
        assert_eq!(panels[0].engines(), ["locked", "ca_tree"]);
        assert!(panels[1].has_slices && panels[1].workload == "phases");
        assert_eq!(panels[1].records.len(), 2);
    }

    #[test]
    fn simulated_records_have_panels_of_their_own_that_say_so() {
        let measured = some_record("lookup", 1, "locked", 1.0);
        let mut simulated = measured.clone();
        simulated.simulated = true;
        simulated.made_by.machine.cpu = "two_sockets".to_owned();
        let records = [measured, simulated];
        let studies = Study::all(&records);
        let names: Vec<_> = studies[0].panels.iter().map(Panel::name).collect();
        assert_eq!(names.len(), 2);
        assert!(!names[0].contains("simulated"), "{names:?}");
        assert!(names[1].ends_with("simulated on two_sockets"), "{names:?}");
    }

    #[test]
    fn slices_have_a_number() {
        assert_eq!(slice_of("phases_12"), Some(12));
        assert_eq!(slice_of("phases"), None);
        assert_eq!(slice_of("write_64"), None);
    }
}
