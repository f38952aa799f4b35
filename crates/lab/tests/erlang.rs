//! The contestants in a real Erlang. These tests need `escript`. Without it they fail and say how
//! to get it, rather than pass without a check.

use std::time::Duration;
use tremula_lab::{
    LabError, Settings,
    case::ContestantKind,
    contestants::{
        Asked, Contestant, ContestantName, Entrant, Ets, EtsCounter, MessageQueue, Starter,
    },
    experiments,
    keys::KeySet,
    measure::Span,
    workload::{
        CounterJob, CounterMix, FillJob, Job, Kind, MessageKind, MixJob, Operation, SignalsJob,
        TableJob, Traffic,
    },
};

fn starter() -> Starter {
    if let Some(missing) = Ets::New.missing() {
        panic!("this test needs Erlang: {missing}");
    }
    Starter::default()
}

#[test]
fn all_tables_do_all_that_they_do_not_refuse_on_one_machine() {
    let mut starter = starter();
    let settings = Settings {
        threads: Some(vec![1, 3]),
        keys: Some(1000),
        duration: Duration::from_millis(50),
        ..Settings::default()
    };
    for kind in Ets::ALL {
        let name: ContestantName = kind.name().parse().unwrap();
        let mut table = |kind| name.start(kind, &mut starter).unwrap();
        let version = table(ContestantKind::Tables).started().version();
        assert!(version.contains("Erlang/OTP"), "{version}");
        let mut done = Vec::new();
        for experiment in experiments::ALL {
            for group in experiment.groups(&settings) {
                let key_set = group[0].key_set.parse().ok();
                let asked = Asked {
                    experiment: experiment.name(),
                    workload: Some(group[0].workload),
                    key_set: Some(group[0].key_set),
                };
                let of_kind = experiment.contestants();
                let refused = name.refuses(of_kind, &asked);
                let is_of_kind = name.is_of(of_kind);
                let mut table = table(if is_of_kind { of_kind } else { name.kind() });
                let job = experiment.job(&group, 0, &settings);
                if refused.is_some() {
                    // Start the job in spite of the refusal: Erlang does not have this experiment.
                    let has = kind == Ets::Set || key_set == Some(KeySet::Email);
                    assert!(has || table.measure(&job).is_err());
                    continue;
                }
                done.push(experiment.name());
                let samples = table.measure(&job).unwrap();
                assert_eq!(samples.len(), group.len());
                let sample = samples.into_iter().next().unwrap().unwrap();
                assert!(sample.operations > 0, "{kind:?} {group:?} {sample:?}");
                assert!(sample.elapsed > Duration::ZERO);
                assert!(experiment.is_timed(&group[0]) || sample.operations == 1000);
            }
        }
        done.dedup();
        let ordered = [
            "insert_disjoint_ranges",
            "ordered_mix",
            "memory",
            "ets_throughput",
            "ets_bench",
        ];
        let first = if kind == Ets::Set { 3 } else { 0 };
        assert_eq!(done, ordered[first..]);
    }
}

#[test]
fn processes_do_all_that_they_do_not_refuse() {
    let mut starter = starter();
    let span = Span::warmed(Duration::from_millis(20));
    for queue in MessageQueue::ALL {
        let name: ContestantName = queue.name().parse().unwrap();
        let mut process = name.start(ContestantKind::Channels, &mut starter).unwrap();
        for traffic in Traffic::ALL {
            for message in MessageKind::ALL {
                let asked = Asked {
                    experiment: "signals",
                    workload: Some(traffic.name()),
                    key_set: Some(message.name()),
                };
                let refused = queue.refuses(&asked);
                let job = Job::Signals(SignalsJob {
                    traffic,
                    message,
                    senders: 3,
                    messages: 10,
                    span,
                });
                if refused.is_some() {
                    // Start the job in spite of the refusal.
                    assert!(process.measure(&job).is_err());
                    continue;
                }
                let sample = process.measure(&job).unwrap().remove(0).unwrap();
                assert!(sample.operations > 0, "{queue:?} {job:?} {sample:?}");
                let sends = traffic != Traffic::PingPong;
                assert_eq!(sample.send_mops.is_some(), sends);
                assert!(sample.send_mops.is_none_or(|mops| mops >= sample.mops()));
                assert_eq!(sample.figures.is_empty(), traffic == Traffic::Live);
            }
        }
    }
}

#[test]
fn sizes_of_tables_are_counted_in_both_ways() {
    let mut starter = starter();
    for kind in EtsCounter::ALL {
        let mut counter = kind.start(ContestantKind::Counters, &mut starter).unwrap();
        for mix in CounterMix::ALL {
            let job = Job::Counter(CounterJob {
                mix,
                threads: 3,
                start: 100,
                span: Span::warmed(Duration::from_millis(20)),
            });
            let sample = counter.measure(&job).unwrap().remove(0).unwrap();
            assert!(sample.operations > 0, "{kind:?} {mix:?} {sample:?}");
        }
        // Start a job of another kind.
        let ranges = Job::Table(TableJob::InsertRanges {
            keys: 1,
            threads: 1,
        });
        assert!(counter.measure(&ranges).is_err());
    }
}

fn table(kind: Ets) -> Contestant {
    kind.start(ContestantKind::Tables, &mut starter()).unwrap()
}

#[test]
fn a_filled_table_is_weighed() {
    for key_set in [KeySet::MonoInt, KeySet::RandInt, KeySet::Append] {
        let job = Job::Table(TableJob::Fill(FillJob {
            key_set,
            count: 20_000,
            threads: 2,
            seed: 1,
            run: 0,
        }));
        let mut samples = table(Ets::New).measure(&job).unwrap();
        // An AVL node is an object of seven words.
        let bytes = samples.remove(0).unwrap().bytes_per_key.unwrap();
        assert!((50.0..70.0).contains(&bytes), "{bytes}");
    }
}

#[test]
fn an_error_in_erlang_is_reported_and_does_not_end_it() {
    let mut table = table(Ets::Old);
    let job = |streams| {
        Job::Table(TableJob::Mix(MixJob {
            range: 4,
            prefill: vec![0, 2],
            streams,
            span: Span::warmed(Duration::from_millis(4)),
        }))
    };
    let error = table.measure(&job(Vec::new())).unwrap_err();
    assert!(matches!(error, LabError::Answer { .. }), "{error}");
    let stream = vec![Operation::new(Kind::Lookup, 1); 64];
    let samples = table.measure(&job(vec![stream])).unwrap();
    assert!(samples[0].as_ref().unwrap().operations >= 64);
}
