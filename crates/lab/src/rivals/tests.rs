//! Each adapter does its work in one thread, and results name the measured versions.

use super::{run_integers, run_texts};
use crate::{
    LabError, Plan, Settings, Watch,
    case::Case,
    contestants::{
        Rival, Subject, Task,
        subject_tests::{does_its_work, some_integers, some_texts},
    },
    experiments,
    keys::{Key, KeySet},
    plan::Group,
    record::Record,
};
use std::time::Duration;

struct Works<'a, K>(&'a [K]);

impl<K: Key> Task<K> for Works<'_, K> {
    type Output = ();

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) {
        does_its_work(&make(), self.0);
    }
}

/// Whether a table scans in descending order, and whether it gives snapshots.
struct Can;

impl Task<u64> for Can {
    type Output = (bool, bool);

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> (bool, bool) {
        let table = make();
        table.insert(&1, 1);
        (
            table.scan_down(None, 1, |_, _| {}),
            table.snapshot().is_some(),
        )
    }
}

fn works(rival: Rival) {
    run_integers(rival, Works(&some_integers()));
    let can = run_integers(rival, Can);
    assert_eq!(can, (rival.scans_down(), rival.gives_snapshots()));
    if rival.refuses(KeySet::Email).is_none() {
        run_texts(rival, Works(&some_texts()));
    }
}

#[test]
fn rwlock_btreemap_does_its_work() {
    works(Rival::LockedBTreeMap);
}

#[test]
fn crossbeam_skiplist_does_its_work() {
    works(Rival::CrossbeamSkiplist);
}

#[test]
fn scc_tree_index_does_its_work() {
    works(Rival::SccTreeIndex);
}

#[test]
fn concurrent_map_does_its_work() {
    works(Rival::ConcurrentMap);
}

#[test]
fn congee_does_its_work() {
    works(Rival::Congee);
}

#[test]
fn masstree_does_its_work() {
    works(Rival::Masstree);
}

#[test]
fn ferntree_does_its_work() {
    works(Rival::Ferntree);
}

#[test]
fn artmap_does_its_work() {
    works(Rival::Artmap);
}

#[test]
fn arctic_map_does_its_work() {
    works(Rival::ArcticMap);
}

#[test]
fn arctic_map_with_hazard_keys_does_its_work() {
    works(Rival::ArcticMapHazard);
}

#[test]
fn bbtree_does_its_work() {
    works(Rival::Bbtree);
}

/// The workspace's lock file, which a published package does not contain.
pub(super) fn lock_file() -> String {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    std::fs::read_to_string(lock).expect("the workspace has a lock file")
}

#[test]
fn the_versions_are_those_that_are_built() {
    let lock = lock_file();
    for rival in Rival::ALL {
        let (name, version) = rival.version().split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{}", rival.version());
    }
}

/// Counts the measurements in which a rival answered wrongly.
#[derive(Default)]
struct Noting {
    wrong: usize,
}

impl Watch for Noting {
    fn begins(&mut self, _measurements: u64) {}
    fn measures(&mut self, _case: &Case, _engine: &str) {}
    fn measured(&mut self) {}

    fn wrong(&mut self, _case: &Case, _fault: &LabError) {
        self.wrong += 1;
    }

    fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
        Ok(())
    }
}

/// A rival with wrong answers has a record with the error; the other contestants are measured.
#[test]
fn every_rival_takes_part_in_all_that_it_does_not_refuse() {
    let settings = Settings {
        threads: Some(vec![2]),
        keys: Some(2000),
        duration: Duration::from_millis(8),
        runs: 1,
        ..Settings::default()
    };
    let names = Rival::ALL.map(|rival| rival.name().parse().unwrap());
    for name in [
        "insert_disjoint_ranges",
        "ordered_mix",
        "ycsb",
        "high_contention",
        "batched_get",
        "remove",
        "long_scan",
        "snapshot_beside_writers",
    ] {
        let experiment = experiments::find(name).unwrap();
        let mut watch = Noting::default();
        let plan = Plan::new(experiment, settings.clone(), &names).unwrap();
        let records = crate::run(&plan, &mut plan.start().unwrap(), &mut watch).unwrap();
        let taking_part = |group: &Group| group.cases.len() * group.taking_part.len();
        let expected: usize = plan.groups.iter().map(taking_part).sum();
        let wrong = records.iter().filter(|record| record.error.is_some());
        assert_eq!(records.len(), expected, "{experiment:?}");
        assert_eq!(wrong.count() > 0, watch.wrong > 0);
        assert!(
            records
                .iter()
                .all(|record| record.mops > 0.0 || record.error.is_some())
        );
    }
}
