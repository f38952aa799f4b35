//! The contestants in a real Erlang. These tests need `escript`; without it they fail and say
//! how to get it, rather than pass without having looked.

use std::time::Duration;
use tremula_lab::{
    LabError, Settings,
    contestants::{Contestant, ContestantName, ErlangMachine, Ets},
    experiments,
    workload::{FillJob, FillKeys, Job, Kind, MixJob, Operation},
};

fn machine() -> ErlangMachine {
    if let Some(missing) = ContestantName::Erlang(Ets::New).missing() {
        panic!("this test needs Erlang: {missing}");
    }
    ErlangMachine::start().expect("Erlang starts")
}

#[test]
fn both_tables_do_every_experiment_on_one_machine() {
    let machine = machine();
    let settings = Settings {
        threads: Some(vec![1, 3]),
        keys: Some(1000),
        duration: Duration::from_millis(50),
        ..Settings::default()
    };
    for kind in Ets::ALL {
        let mut table = machine.table(kind);
        assert!(
            table.version().contains("Erlang/OTP"),
            "{}",
            table.version()
        );
        for experiment in experiments::ALL {
            for case in experiment.cases(&settings) {
                let job = experiment.job(&case, 0, &settings);
                let sample = table.measure(&job).unwrap();
                assert!(sample.operations > 0, "{kind:?} {case:?} {sample:?}");
                assert!(sample.elapsed > Duration::ZERO);
                assert!(experiment.is_timed() || sample.operations == 1000);
            }
        }
    }
}

#[test]
fn a_filled_table_is_weighed() {
    for keys in [FillKeys::Ranges, FillKeys::Random] {
        let job = Job::Fill(FillJob {
            keys,
            count: 20_000,
            threads: 2,
            seed: 1,
            run: 0,
        });
        let sample = machine().table(Ets::New).measure(&job).unwrap();
        // An AVL node: an object of seven words.
        let bytes = sample.bytes_per_key.unwrap();
        assert!((50.0..70.0).contains(&bytes), "{bytes}");
    }
}

#[test]
fn an_error_in_erlang_is_reported_and_does_not_end_it() {
    let mut table = machine().table(Ets::Old);
    let job = |streams| {
        Job::Mix(MixJob {
            range: 4,
            prefill: vec![0, 2],
            streams,
            duration: Duration::from_millis(1),
        })
    };
    let error = table.measure(&job(Vec::new())).unwrap_err();
    assert!(matches!(error, LabError::Answer { .. }), "{error}");
    let stream = vec![Operation::new(Kind::Lookup, 1); 64];
    assert!(table.measure(&job(vec![stream])).unwrap().operations >= 64);
}
