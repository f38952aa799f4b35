//! Each adapter does its work, and results name the measured versions.

use super::run;
use crate::{
    LabError, Plan, Settings, Watch,
    case::Case,
    contestants::{Channel, ChannelRival, ChannelTask, channel_tests::does_its_work as check},
    experiments,
    record::Record,
};
use std::time::Duration;

struct Works;

impl ChannelTask<Box<u64>> for Works {
    type Output = ();

    fn run<C: Channel<Box<u64>>>(self, channel: &C) {
        check(channel);
    }
}

fn works(rival: ChannelRival) {
    run(rival, Works);
}

#[test]
fn std_mpsc_does_its_work() {
    works(ChannelRival::StdMpsc);
}

#[test]
fn crossbeam_channel_does_its_work() {
    works(ChannelRival::CrossbeamChannel);
}

#[test]
fn flume_does_its_work() {
    works(ChannelRival::Flume);
}

#[test]
fn kanal_does_its_work() {
    works(ChannelRival::Kanal);
}

#[test]
fn tokio_mpsc_does_its_work() {
    works(ChannelRival::TokioMpsc);
}

#[test]
fn seg_queue_does_its_work() {
    works(ChannelRival::SegQueue);
}

#[test]
fn crossfire_does_its_work() {
    works(ChannelRival::Crossfire);
}

#[test]
fn spillway_does_its_work() {
    works(ChannelRival::Spillway);
}

#[test]
fn mutex_vec_does_its_work() {
    works(ChannelRival::MutexVec);
}

#[test]
fn the_versions_are_those_that_are_built() {
    let lock = crate::rivals::tests::lock_file();
    for rival in ChannelRival::ALL {
        if rival == ChannelRival::StdMpsc {
            continue; // its version is the compiler's
        }
        let (name, version) = rival.version().split_once(' ').unwrap();
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{}", rival.version());
    }
}

/// Keeps nothing, and fails on any wrong answer.
struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _measurements: u64) {}
    fn measures(&mut self, _case: &Case, _engine: &str) {}
    fn measured(&mut self) {}

    fn wrong(&mut self, _case: &Case, fault: &LabError) {
        panic!("{fault}");
    }

    fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
        Ok(())
    }
}

#[test]
fn every_rival_takes_part_in_signals() {
    let mixes = ["drain", "live", "ping_pong", "uncontended_send", "phases"];
    let settings = Settings {
        threads: Some(vec![2]),
        duration: Duration::from_millis(8),
        runs: 1,
        mixes: mixes.map(str::to_owned).into(),
        ..Settings::default()
    };
    let names = ChannelRival::ALL.map(|rival| rival.name().parse().unwrap());
    let experiment = experiments::find("signals").unwrap();
    let plan = Plan::of_asked(experiment, settings, &names).unwrap();
    let records = crate::run(&plan, &mut plan.start().unwrap(), &mut Quiet).unwrap();
    let cases: usize = plan.groups.iter().map(|group| group.cases.len()).sum();
    assert_eq!(records.len(), cases * names.len());
}
