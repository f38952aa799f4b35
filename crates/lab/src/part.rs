//! Parts of what `tremula-lab all` measures, each of which takes about as long as any other.
//!
//! The groups of all plans, in their order, are divided where the parts have equal estimated times.
//! The division depends on the plans only, and not on what is already measured: the parts of one
//! number together are the whole, and each group is in one of them.

use crate::plan::Plan;
use std::{fmt, str::FromStr};

/// The estimated seconds of a part: three quarters of an hour, because slow tables take longer than
/// estimated, and disturbed measurements are repeated.
const SECONDS: f64 = 2700.0;

/// One of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Counted from 1.
    number: usize,
    of: usize,
}

impl Part {
    /// How many parts these plans should have, so that none takes much longer than an hour.
    pub(crate) fn advised(plans: &[Plan]) -> usize {
        let seconds: f64 = plans.iter().map(Plan::seconds).sum();
        ((seconds / SECONDS).ceil() as usize).max(1)
    }

    /// Leaves in the plans only what belongs to this part.
    pub(crate) fn retain_in(self, plans: &mut Vec<Plan>) {
        let all: f64 = plans.iter().map(Plan::seconds).sum();
        let mut before = 0.0;
        for plan in &mut *plans {
            plan.groups.retain(|group| {
                // The part in which the middle of the group lies.
                let middle = before + group.all_seconds() / 2.0;
                before += group.all_seconds();
                let place = (middle / all * self.of as f64) as usize;
                place.min(self.of - 1) + 1 == self.number
            });
        }
        plans.retain(|plan| !plan.groups.is_empty());
    }
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let part = Self {
                number: number.parse().ok()?,
                of: of.parse().ok()?,
            };
            (1..=part.of).contains(&part.number).then_some(part)
        });
        numbers.ok_or_else(|| "a part is K/N: the K-th of N parts, such as 1/6".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, case::Case, experiments};

    fn plans() -> Vec<Plan> {
        let names = ["locked", "ca_tree"].map(|name| name.parse().unwrap());
        let plan = |experiment, keys| {
            let settings = Settings {
                threads: Some(vec![1, 2, 8]),
                keys: Some(keys),
                ..Settings::default()
            };
            Plan::new(experiments::find(experiment).unwrap(), settings, &names).unwrap()
        };
        vec![
            plan("insert_disjoint_ranges", 1_000_000),
            plan("ordered_mix", 1000),
            plan("ycsb", 50_000_000),
            plan("high_contention", 1000),
        ]
    }

    fn cases(plans: &[Plan]) -> Vec<(&'static str, Case)> {
        let groups = |plan: &Plan| {
            let name = plan.experiment.name();
            let cases = plan.groups.iter().flat_map(|group| group.cases.clone());
            cases.map(|case| (name, case)).collect::<Vec<_>>()
        };
        plans.iter().flat_map(groups).collect()
    }

    #[test]
    fn parts_are_the_whole_and_nothing_twice() {
        let whole = cases(&plans());
        for of in [1, 2, 3, 7, 100] {
            let mut parts = Vec::new();
            for number in 1..=of {
                let mut part = plans();
                Part { number, of }.retain_in(&mut part);
                assert!(part.iter().all(|plan| !plan.groups.is_empty()));
                parts.extend(cases(&part));
            }
            assert_eq!(parts, whole, "{of}");
        }
    }

    #[test]
    fn a_part_takes_its_share_of_the_time_give_or_take_half_a_group_at_each_end() {
        let whole = plans();
        let seconds = |plans: &[Plan]| plans.iter().map(Plan::seconds).sum::<f64>();
        let groups = whole.iter().flat_map(|plan| &plan.groups);
        let longest = groups.map(|group| group.all_seconds()).fold(0.0, f64::max);
        for number in 1..=4 {
            let mut part = plans();
            Part { number, of: 4 }.retain_in(&mut part);
            let share = seconds(&whole) / 4.0;
            assert!((seconds(&part) - share).abs() <= longest + 1e-6);
        }
        let advised = Part::advised(&whole) as f64;
        assert!(seconds(&whole) / advised <= SECONDS);
        assert_eq!(Part::advised(&[]), 1);
    }

    #[test]
    fn the_numbers_of_groups_stay_those_of_the_whole() {
        let mut part = plans();
        Part { number: 2, of: 2 }.retain_in(&mut part);
        let numbers: Vec<_> = part[0].groups.iter().map(|group| group.number).collect();
        let last = plans()[2].groups.len() - 1;
        assert_eq!(part[0].experiment.name(), "ycsb");
        assert!(
            numbers[0] > 0 && numbers.last() == Some(&last),
            "{numbers:?}"
        );
    }

    #[test]
    fn a_part_is_written_as_a_fraction() {
        assert_eq!("2/6".parse(), Ok(Part { number: 2, of: 6 }));
        assert_eq!("1/1".parse::<Part>().unwrap().to_string(), "1/1");
        for wrong in ["", "3", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"] {
            let error = wrong.parse::<Part>().unwrap_err();
            assert!(error.contains("K/N"), "{wrong}");
        }
    }
}
