//! Throughput by number of threads as the originals have published it, read from
//! `data/published.tsv`, which explains its fields.
//!
//! Their machines, languages and rows are others, so a figure of theirs says nothing of one here.
//! What can be compared is how a figure changes with the threads: each is divided by the one of the
//! same curve with the fewest threads.

use super::Source;
use crate::record::Record;
use std::{collections::BTreeMap, sync::LazyLock};

const TEXT: &str = include_str!("../../data/published.tsv");

/// Every published curve.
pub static CURVES: LazyLock<Vec<Curve>> = LazyLock::new(|| read(TEXT));

/// What an original has published of one workload.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The experiment that measures it here.
    pub experiment: &'static str,
    /// The workload.
    pub workload: &'static str,
    /// The key set.
    pub key_set: &'static str,
    /// The contestant that is built as what was measured there.
    pub engine: &'static str,
    /// Where it was published; its cores are hardware threads.
    pub source: Source,
    /// What was measured there.
    pub what: &'static str,
    /// Threads, and million operations a second.
    pub points: Vec<(usize, f64)>,
}

/// A point of a curve beside a record with as many threads, both relative to the fewest threads
/// that the curve and the records have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// The number of threads.
    pub threads: usize,
    /// How many times as much as with the fewest threads, in the original.
    pub published: f64,
    /// The same of the records.
    pub here: f64,
}

impl Scaled {
    /// Two figures this near say the same.
    pub const NEAR: f64 = 1.25;

    /// Whether both rise or both fall, or are nearly the same.
    #[must_use]
    pub fn agrees(self) -> bool {
        let apart = self.here / self.published;
        let is_near = (1.0 / Self::NEAR..=Self::NEAR).contains(&apart);
        is_near || (self.here > 1.0) == (self.published > 1.0)
    }
}

impl Curve {
    /// Whether the record is of what this curve shows, whatever its threads.
    #[must_use]
    pub fn is_of(&self, record: &Record) -> bool {
        record.experiment == self.experiment
            && record.workload == self.workload
            && record.key_set == self.key_set
            && record.engine == self.engine
    }

    /// The points that can be compared with records of one machine and one number of keys, by
    /// threads, from the fewest on; that one is 1 in both. Points with more threads than either
    /// machine runs at once are left out. Empty if there are not two.
    #[must_use]
    pub fn beside(&self, records: &[&Record]) -> Vec<Scaled> {
        let of_threads = |threads| {
            let mut records = records.iter().rev();
            let found = records.find(|record| {
                self.is_of(record)
                    && record.threads == threads
                    && threads <= record.made_by.machine.cores.min(self.source.cores)
            });
            found.map(|record| record.mops).filter(|mops| *mops > 0.0)
        };
        let common: Vec<_> = self
            .points
            .iter()
            .filter_map(|&(threads, figure)| Some((threads, figure, of_threads(threads)?)))
            .collect();
        match common[..] {
            [(_, figure_of_first, mops_of_first), _, ..] => common
                .into_iter()
                .map(|(threads, figure, mops)| Scaled {
                    threads,
                    published: figure / figure_of_first,
                    here: mops / mops_of_first,
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Parses the curves of a text.
///
/// # Panics
///
/// A line is neither a source nor a curve. The text is part of the program, and a test reads it.
fn read(text: &'static str) -> Vec<Curve> {
    let mut sources = BTreeMap::new();
    let mut curves = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        match *fields {
            ["source", key, cores, name] => {
                let cores = cores.parse().expect("a source has a number of threads");
                sources.insert(key, Source { name, cores });
            }
            [
                "curve",
                experiment,
                workload,
                key_set,
                engine,
                source,
                what,
                points,
            ] => curves.push(Curve {
                experiment,
                workload,
                key_set,
                engine,
                source: sources[source],
                what,
                points: points.split(' ').map(point).collect(),
            }),
            _ => panic!("this is no curve: {line}"),
        }
    }
    curves
}

fn point(text: &str) -> (usize, f64) {
    let (threads, figure) = text.split_once(':').expect("a point has two numbers");
    let threads = threads.parse().expect("a point's threads are a number");
    (threads, figure.parse().expect("a point's figure is one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::some_record;

    fn curve(points: &[(usize, f64)]) -> Curve {
        Curve {
            experiment: "ordered_mix",
            workload: "lookup",
            key_set: "dense_half_filled",
            engine: "ca_tree",
            source: Source {
                name: "a paper",
                cores: 8,
            },
            what: "a tree",
            points: points.to_vec(),
        }
    }

    fn record(threads: usize, mops: f64) -> Record {
        let mut record = some_record("lookup", threads, "ca_tree", mops);
        record.made_by.machine.cores = 64;
        record
    }

    #[test]
    fn a_curve_and_records_are_relative_to_the_fewest_threads_of_both() {
        let curve = curve(&[(1, 1.0), (2, 4.0), (4, 6.0), (8, 2.0), (16, 9.0)]);
        let records = [
            record(2, 10.0),
            record(8, 30.0),
            record(16, 50.0),
            record(4, 5.0),
        ];
        let scaled = curve.beside(&records.each_ref());
        let figures: Vec<_> = scaled
            .iter()
            .map(|point| (point.threads, point.published, point.here))
            .collect();
        // With one thread there is no record, and 16 are more than the original's machine had.
        assert_eq!(figures, [(2, 1.0, 1.0), (4, 1.5, 0.5), (8, 0.5, 3.0)]);
        let agrees: Vec<_> = scaled.iter().map(|point| point.agrees()).collect();
        assert_eq!(agrees, [true, false, false]);
        assert!(curve.beside(&[&records[0]]).is_empty(), "one point is none");
    }

    #[test]
    fn nearly_the_same_agrees_on_both_sides_of_one() {
        let agrees = |published, here| {
            let point = Scaled {
                threads: 2,
                published,
                here,
            };
            point.agrees()
        };
        assert!(agrees(0.95, 1.1) && agrees(30.0, 3.0) && agrees(0.02, 0.5));
        assert!(!agrees(0.8, 1.1) && !agrees(3.0, 0.9));
    }

    #[test]
    fn records_of_smaller_machines_and_other_cases_are_left_out() {
        let curve = curve(&[(1, 1.0), (4, 2.0)]);
        let mut small = record(4, 5.0);
        small.made_by.machine.cores = 2;
        assert!(curve.beside(&[&record(1, 1.0), &small]).is_empty());
        let mut other = record(4, 5.0);
        other.key_set = "another".to_owned();
        assert!(curve.beside(&[&record(1, 1.0), &other]).is_empty());
        assert!(curve.beside(&[&record(1, 0.0), &record(4, 1.0)]).is_empty());
    }

    #[test]
    fn every_curve_is_of_an_experiment_and_a_contestant_that_there_are() {
        assert!(CURVES.len() >= 10);
        for curve in CURVES.iter() {
            let experiment = crate::experiments::find(curve.experiment).unwrap();
            let name = format!("{}, {}", curve.experiment, curve.engine);
            curve
                .engine
                .parse::<crate::contestants::ContestantName>()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(experiment.workloads().contains(&curve.workload), "{name}");
            assert!(curve.points.len() > 1, "{name}");
            let ascends = |pair: &[(usize, f64)]| pair[0].0 < pair[1].0;
            assert!(curve.points.windows(2).all(ascends), "{name}");
            let (most, _) = curve.points[curve.points.len() - 1];
            assert!(most <= curve.source.cores, "{name}");
            assert!(curve.points.iter().all(|(_, figure)| *figure > 0.0));
        }
    }
}
