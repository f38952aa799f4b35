//! The plans fit the experiments, the claims and the time.

use super::*;
use crate::{
    claims::{self, Claim, Pick, Threads},
    part::Part,
};
use std::collections::{BTreeMap, BTreeSet};

/// The plans for a machine that lacks nothing.
fn plans_of(extent: Extent) -> Vec<Plan> {
    plans(extent, &Settings::default(), &[], |_| None).unwrap()
}

#[test]
fn every_experiment_is_planned_with_settings_that_it_takes() {
    let huge = plans_of(Extent::Huge);
    assert!(
        huge.iter()
            .all(|plan| plan.contestants.len() == AHEAD.len())
    );
    for extent in [Extent::Quick, Extent::Full] {
        let planned = plans_of(extent);
        for experiment in experiments::ALL {
            let parts = planned.iter();
            let parts = parts.filter(|part| part.experiment.name() == experiment.name());
            let parts: Vec<_> = parts.collect();
            assert!(!parts.is_empty(), "{experiment:?} is not planned");
            assert!(parts.iter().all(|part| !part.contestants.is_empty()));
        }
    }
}

/// A report of the full plan has a verdict on each claim.
#[test]
fn every_claim_is_measured_by_the_full_plan() {
    let planned = plans_of(Extent::Full);
    let is_measured = |claim: &Claim, pick: &Pick| {
        let engine: ContestantName = pick.engine.parse().unwrap();
        planned
            .iter()
            .filter(|part| part.experiment.name() == claim.experiment)
            .filter(|part| part.contestants.contains(&engine))
            .flat_map(|part| &part.groups)
            .flat_map(|group| &group.cases)
            .any(|case| {
                case.workload == pick.workload
                    && (pick.key_set.is_empty() || case.key_set == pick.key_set)
                    && match pick.threads {
                        Threads::Just(threads) => case.threads == threads,
                        Threads::Cores => true,
                    }
            })
    };
    let mut missing = Vec::new();
    for claim in claims::ALL.iter() {
        for pick in claim.picks() {
            if !is_measured(claim, &pick) {
                missing.push(format!("{}: {pick:?}", claim.experiment));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

const MINUTE: f64 = 60.0;

fn minutes(planned: &[Plan]) -> f64 {
    planned.iter().map(Plan::seconds).sum::<f64>() / MINUTE
}

/// By the estimates, with all engines and rivals, the plans take the promised time, and quick
/// at most half of it, because machines differ.
#[test]
fn plans_take_as_long_as_promised() {
    let quick = minutes(&plans_of(Extent::Quick));
    assert!(quick < 5.0, "{quick} minutes");
    let full = minutes(&plans_of(Extent::Full));
    assert!((180.0..600.0).contains(&full), "{full} minutes");
    let huge = minutes(&plans_of(Extent::Huge));
    assert!((10.0..60.0).contains(&huge), "{huge} minutes");
}

#[test]
fn no_part_of_the_full_plan_takes_much_longer_than_an_hour() {
    let parts = Part::advised(&plans_of(Extent::Full));
    for number in 1..=parts {
        let mut planned = plans_of(Extent::Full);
        let part: Part = format!("{number}/{parts}").parse().unwrap();
        part.retain_in(&mut planned);
        let minutes = minutes(&planned);
        assert!((25.0..60.0).contains(&minutes), "{part}: {minutes} minutes");
    }
}

/// Each table of integers or addresses is shown at the size of its papers' small machines and at
/// one that leaves the caches.
#[test]
fn the_full_plan_has_every_column_of_ordered_maps_at_two_sizes() {
    let planned = plans_of(Extent::Full);
    for experiment in [
        "insert_disjoint_ranges",
        "ycsb",
        "high_contention",
        "batched_get",
        "remove",
        "long_scan",
        "snapshot_beside_writers",
        "bw_tree_ablation",
        "memory",
        "sequential_overhead",
    ] {
        let plans = planned.iter();
        let plans = plans.filter(|plan| plan.experiment.name() == experiment);
        let groups = plans.flat_map(|plan| &plan.groups);
        let mut sizes: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
        for case in groups.flat_map(|group| &group.cases) {
            let column = (case.workload, case.key_set, case.threads);
            sizes.entry(column).or_default().insert(case.keys);
        }
        for ((workload, key_set, threads), sizes) in sizes {
            let large = if key_set == "email" {
                2_000_000
            } else {
                5_000_000
            };
            let expected = [500_000, large].into();
            assert_eq!(
                sizes, expected,
                "{experiment} {workload} {key_set} {threads}"
            );
        }
    }
}

#[test]
fn the_engines_that_are_planned_exist() {
    for entry in SUITE {
        let setups = entry.quick.iter().chain(entry.full).chain(entry.huge);
        for setup in setups {
            for engine in setup.engines {
                engine.parse::<ContestantName>().unwrap();
            }
        }
    }
}
