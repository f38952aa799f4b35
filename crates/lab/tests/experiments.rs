//! Every experiment, tiny, on every engine or mailbox of this process, through the library.

use std::time::Duration;
use tremula_index::Scans;
use tremula_lab::{
    LabError, Plan, Settings, Watch,
    case::Case,
    contestants::{
        ChannelKind, ContestantName, CounterKind, Entrant, FixedGrain, ShardForm, Starter,
    },
    experiments,
    keys::KeySet,
    record::{Moment, Record},
    workload::{CacheTraffic, Distribution, MessageKind, ValueSize},
};
use tremula_mailbox::Mode;
use tremula_papers::AnyEngine;

/// Keeps nothing.
struct Quiet;

impl Watch for Quiet {
    fn begins(&mut self, _measurements: u64) {}
    fn measures(&mut self, _case: &Case, _engine: &str) {}
    fn wrong(&mut self, _case: &Case, _fault: &LabError) {}
    fn measured(&mut self) {}
    fn finished(&mut self, _records: &[Record]) -> Result<(), LabError> {
        Ok(())
    }
}

fn tiny(keys: u64) -> Settings {
    Settings {
        threads: Some(vec![1, 3]),
        keys: Some(keys),
        duration: Duration::from_millis(50),
        runs: 2,
        ..Settings::default()
    }
}

/// The same as [`tiny`], for experiments of many cases.
fn brief(keys: u64) -> Settings {
    Settings {
        duration: Duration::from_millis(8),
        runs: 1,
        ..tiny(keys)
    }
}

fn named(names: &[&str]) -> Vec<ContestantName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn names_of<E: Entrant>(family: &[E]) -> Vec<ContestantName> {
    let names: Vec<_> = family.iter().map(Entrant::name).collect();
    named(&names)
}

fn engines() -> Vec<ContestantName> {
    named(&AnyEngine::ALL.map(AnyEngine::name))
}

fn plan(names: &[ContestantName], experiment: &str, settings: &Settings) -> Plan {
    let experiment = experiments::find(experiment).unwrap();
    Plan::new(experiment, settings.clone(), names).unwrap()
}

/// A comparing engine and one of byte forms, for what does not depend on the engine.
fn two_engines() -> Vec<ContestantName> {
    named(&["ca_tree", "art"])
}

fn run_plan(plan: &Plan) -> Result<Vec<Record>, LabError> {
    tremula_lab::run(plan, &mut plan.start().unwrap(), &mut Quiet)
}

fn run(experiment: &str, settings: &Settings) -> Vec<Record> {
    run_with(&engines(), experiment, settings)
}

fn run_with(names: &[ContestantName], experiment: &str, settings: &Settings) -> Vec<Record> {
    run_plan(&plan(names, experiment, settings)).unwrap()
}

#[test]
fn insert_disjoint_ranges_records_every_engine_and_thread_count() {
    // 1001: not a multiple of the threads. 2: fewer keys than threads.
    for keys in [1001, 2] {
        let records = run("insert_disjoint_ranges", &tiny(keys));
        assert_eq!(records.len(), 2 * AnyEngine::ALL.len());
        for record in records {
            assert_eq!(record.keys, keys);
            assert_eq!(record.key_set, "mono_int");
            assert!(record.mops > 0.0 && record.runs.len() == 2, "{record:?}");
            assert_eq!(record.made_by.configuration.seconds, None);
        }
    }
}

#[test]
fn ordered_mix_records_every_mix_engine_and_thread_count() {
    let records = run("ordered_mix", &brief(5000));
    assert_eq!(records.len(), 6 * 2 * AnyEngine::ALL.len());
    for record in records {
        assert!(record.mops > 0.0 && record.runs.len() == 1, "{record:?}");
        assert_eq!(record.made_by.configuration.seconds, Some(0.008));
        assert_eq!(record.bytes_per_key, None);
    }
}

/// The smallest range has one present key and one absent key; streams rotate through both.
#[test]
fn ordered_mix_runs_on_the_smallest_range() {
    assert!(!run_with(&two_engines(), "ordered_mix", &brief(2)).is_empty());
}

#[test]
fn adaptation_records_a_moment_for_each_slice_of_each_phase() {
    let mut names = named(&FixedGrain::ALL.map(FixedGrain::name));
    names.extend(named(&[
        "ca_tree",
        "lfca_tree",
        "b_tree",
        "aspen",
        "locked",
    ]));
    let settings = Settings {
        threads: Some(vec![3]),
        ..brief(20_000)
    };
    let records = run_with(&names, "adaptation", &settings);
    assert_eq!(records.len(), names.len());
    for record in &records {
        let phases: Vec<_> = record.series.iter().map(|m| m.phase.as_str()).collect();
        let expected = [
            "fill",
            "single",
            "hot_range",
            "hot_key",
            "append",
            "scan",
            "quiet",
        ]
        .map(|phase| [phase; 8]);
        assert_eq!(phases, expected.concat());
        let times = record.series.iter().map(|moment| moment.seconds);
        assert!(times.is_sorted(), "{record:?}");
        let grain = match record.engine.as_str() {
            "aspen" => Some("contention_splits"),
            "b_tree" | "locked" => None,
            _ => Some("base_nodes"),
        };
        for name in ["base_nodes", "contention_splits"] {
            let has_it = grain == Some(name);
            for moment in &record.series {
                assert_eq!(moment.figures.contains_key(name), has_it, "{record:?}");
            }
            let noted = format!("{name}_after_scan");
            assert_eq!(record.figures.contains_key(&noted), has_it, "{record:?}");
        }
        assert!(record.figures.contains_key("hot_key_mops") && record.mops > 0.0);
    }
    for record in &records {
        let most = match record.engine.as_str() {
            "ca_tree_coarse" => 1.0,
            "ca_tree_fine" => 256.0,
            _ => continue,
        };
        let bases = |moment: &Moment| moment.figures["base_nodes"];
        assert!(record.series.iter().all(|m| bases(m) <= most), "{record:?}");
    }
    let joins = |record: &Record| record.series.last().unwrap().figures["joins"];
    for record in records.iter().filter(|r| r.engine.starts_with("ca_tree_")) {
        assert_eq!(joins(record), 0.0, "{record:?}");
    }
}

/// Fewer keys than threads, and a narrow range that is the whole table.
#[test]
fn adaptation_runs_on_the_smallest_range() {
    let names = named(&["ca_tree"]);
    assert!(!run_with(&names, "adaptation", &brief(2)).is_empty());
}

#[test]
fn sequential_overhead_records_every_operation_of_every_engine_and_of_a_plain_map() {
    let mut names = engines();
    names.extend(named(&["btreemap"]));
    let records = run_with(&names, "sequential_overhead", &brief(2000));
    assert_eq!(records.len(), 2 * 5 * names.len());
    for record in records {
        assert!(record.mops > 0.0, "{record:?}");
        // One thread, whatever was asked for.
        assert_eq!((record.threads, record.keys), (1, 2000));
        let timed = ["lookup", "update", "scan_100"].contains(&record.workload.as_str());
        assert_eq!(record.made_by.configuration.seconds.is_some(), timed);
    }
}

#[test]
fn ycsb_records_every_key_set_mix_distribution_engine_and_thread_count() {
    let settings = Settings {
        key_sets: KeySet::ALL.to_vec(),
        ..brief(3000)
    };
    let records = run("ycsb", &settings);
    // Insert-only once; c, a and e with each distribution.
    let rows = 1 + 3 * Distribution::ALL.len();
    assert_eq!(
        records.len(),
        KeySet::ALL.len() * 2 * rows * AnyEngine::ALL.len()
    );
    for record in records {
        assert!(record.mops > 0.0 && record.runs.len() == 1, "{record:?}");
        let insert = record.workload == "insert";
        assert_eq!(record.distribution.is_none(), insert);
        assert_eq!(record.made_by.configuration.seconds.is_none(), insert);
        assert_eq!(record.key_bytes == 8.0, record.key_set != "email");
    }
}

/// Fewer keys than threads, so some threads have no keys of their own.
#[test]
fn ycsb_runs_on_the_smallest_table() {
    assert!(!run_with(&two_engines(), "ycsb", &brief(1)).is_empty());
}

#[test]
fn high_contention_tells_how_often_operations_begin_again() {
    let settings = Settings {
        threads: Some(vec![2]),
        keys: Some(20_000),
        runs: 1,
        ..Settings::default()
    };
    for record in run("high_contention", &settings) {
        assert!(record.mops > 0.0);
        assert_eq!(record.key_set, "append");
        let retries = record.figures.get("retries_per_operation");
        let counts = ["ca_tree", "lfca_tree"].contains(&record.engine.as_str());
        assert_eq!(retries.is_some(), counts, "{record:?}");
        assert!(retries.is_none_or(|retries| (0.0..100.0).contains(retries)));
    }
}

#[test]
fn batched_get_records_both_ways_of_looking_up() {
    let records = run("batched_get", &brief(1000));
    // Two key sets, two numbers of threads.
    assert_eq!(records.len(), 2 * 2 * 2 * AnyEngine::ALL.len());
    assert!(records.iter().all(|record| record.mops > 0.0));
    let batched = records.iter().filter(|r| r.workload == "batches_of_16");
    assert_eq!(batched.count(), records.len() / 2);
}

#[test]
fn remove_records_every_engine_and_thread_count() {
    // 1001: not a multiple of the threads. 2: fewer keys than threads.
    for keys in [1001, 2] {
        let records = run("remove", &tiny(keys));
        assert_eq!(records.len(), 2 * AnyEngine::ALL.len());
        for record in records {
            assert_eq!((record.keys, record.key_set.as_str()), (keys, "rand_int"));
            assert!(record.mops > 0.0 && record.runs.len() == 2, "{record:?}");
            assert_eq!(record.made_by.configuration.seconds, None);
        }
    }
}

#[test]
fn long_scan_records_both_directions_on_every_engine() {
    // More entries than a scan, and fewer.
    for (keys, names) in [(15_000, engines()), (3, two_engines())] {
        let records = run_with(&names, "long_scan", &brief(keys));
        assert_eq!(records.len(), 2 * 2 * names.len());
        assert!(records.iter().all(|record| record.mops > 0.0));
        let down = records.iter().filter(|r| r.workload == "descending");
        assert_eq!(down.count(), records.len() / 2);
    }
}

#[test]
fn snapshot_beside_writers_counts_snapshots_of_the_engines_that_give_any() {
    let exact = |engine: &AnyEngine| engine.facts().scans == Scans::OneMoment;
    let exact = AnyEngine::ALL.iter().filter(|engine| exact(engine)).count();
    // Fewer keys than writers, too.
    for keys in [3000, 2] {
        let plan = plan(&engines(), "snapshot_beside_writers", &brief(keys));
        assert_eq!(plan.contestants.len(), exact);
        let mut why = plan.left_out.iter().map(|left_out| left_out.why.words());
        assert!(why.all(|why| why == "its scans are not as of one moment"));
        let records = run_plan(&plan).unwrap();
        assert_eq!(records.len(), 4 * 2 * exact);
        for record in records {
            assert!(record.mops > 0.0, "{record:?}");
            let beside = match &*record.workload {
                "updates_beside_scans" => Some("scans_per_second"),
                "updates_beside_snapshots" | "updates_beside_snapshots_in_parts" => {
                    Some("snapshots_per_second")
                }
                _ => None,
            };
            let figures: Vec<_> = record.figures.keys().map(|name| &**name).collect();
            assert_eq!(figures, Vec::from_iter(beside));
            assert!(record.figures.values().all(|figure| *figure > 0.0));
            let working = record.threads + usize::from(beside.is_some());
            let cores = record.made_by.machine.cores;
            assert_eq!(record.oversubscribed, working > cores);
        }
    }
}

/// The workloads of `signals` that need no process of their own, but for `phases`.
const SIGNALS: [&str; 4] = ["drain", "live", "ping_pong", "uncontended_send"];

fn signals(mixes: &[&str]) -> Vec<Record> {
    let settings = Settings {
        mixes: mixes.iter().map(ToString::to_string).collect(),
        ..brief(1000)
    };
    let names = names_of(&Mode::ALL.map(ChannelKind::Mailbox));
    run_with(&names, "signals", &settings)
}

#[test]
fn signals_records_every_workload_message_mode_and_number_of_senders() {
    let records = signals(&SIGNALS);
    // Two numbers of senders.
    let throughput = 2 * MessageKind::ALL.len() * 2;
    assert_eq!(records.len(), (throughput + 2) * Mode::ALL.len());
    for record in records {
        assert!(record.mops > 0.0, "{record:?}");
        let sends = record.workload != "ping_pong";
        assert_eq!(record.send_mops.is_some(), sends, "{record:?}");
        let bytes = match &*record.key_set {
            "u64" => 8.0,
            "words8" => 64.0,
            _ => 800.0,
        };
        assert_eq!(record.key_bytes, bytes);
        let drained = record.figures.contains_key("drain_mops");
        assert_eq!(drained, record.workload == "drain");
    }
}

#[test]
fn ping_pong_tells_quantiles_of_the_round_trip() {
    for record in signals(&["ping_pong"]) {
        let quantiles =
            ["p50", "p99", "p99.9"].map(|q| record.figures[&format!("round_trip_ns_{q}")]);
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{quantiles:?}");
    }
}

#[test]
fn phases_count_what_is_adapted_slice_by_slice() {
    let records = signals(&["phases"]);
    assert_eq!(records.len(), 12 * Mode::ALL.len());
    let senders: Vec<_> = records
        .iter()
        .filter(|record| record.engine == "mailbox_auto")
        .map(|record| record.threads)
        .collect();
    assert_eq!(senders, [1, 1, 1, 1, 16, 16, 16, 16, 1, 1, 1, 1]);
    for record in records {
        assert!(record.workload.starts_with("phases"), "{record:?}");
        assert_eq!((record.key_bytes, record.send_mops.is_some()), (8.0, true));
        for counter in ["contended_sends", "installs", "removals", "by_way_of_slots"] {
            assert!(record.figures.contains_key(counter), "{record:?}");
        }
    }
}

#[test]
fn a_table_cannot_do_the_work_of_a_channel_nor_a_channel_that_of_a_table() {
    let settings = brief(1000);
    for (name, experiment) in [
        ("locked", "signals"),
        ("mailbox_auto", "ordered_mix"),
        ("mailbox_auto", "memory"),
    ] {
        let name: ContestantName = name.parse().unwrap();
        let plan = plan(&[name], experiment, &settings);
        assert!(plan.contestants.is_empty() && plan.left_out.len() == 1);
        // The same holds if a contestant is given a job of another kind.
        let (experiment, mut starter) = (plan.experiment, Starter::default());
        assert!(name.start(experiment.contestants(), &mut starter).is_err());
        let mut contestant = name.start(name.kind(), &mut starter).unwrap();
        let job = experiment.job(&plan.groups[0].cases, 0, &settings);
        assert!(contestant.measure(&job).is_err());
    }
}

#[test]
fn memory_and_bursts_need_a_command_to_start() {
    let settings = Settings {
        mixes: vec!["burst".to_owned()],
        ..tiny(10)
    };
    for (name, experiment, settings) in [
        ("locked", "memory", tiny(10)),
        ("mailbox_auto", "signals", settings),
    ] {
        let result = run_plan(&plan(&named(&[name]), experiment, &settings));
        assert!(matches!(result, Err(LabError::NoFillCommand { .. })));
    }
}

#[test]
fn counter_scaling_records_every_mix_counter_and_number_of_threads() {
    let names = names_of(&CounterKind::ALL);
    let records = run_with(&names, "counter_scaling", &brief(100));
    assert_eq!(records.len(), 3 * 2 * names.len());
    for record in records {
        assert!(record.mops > 0.0, "{record:?}");
        assert_eq!((record.key_set.as_str(), record.keys), ("counted", 100));
    }
}

fn shard_cache(names: &[ContestantName], traffic: &[CacheTraffic]) -> Vec<Record> {
    let settings = Settings {
        threads: Some(vec![2]),
        mixes: traffic
            .iter()
            .map(|traffic| traffic.name().to_owned())
            .collect(),
        ..brief(64)
    };
    run_with(names, "shard_cache", &settings)
}

#[test]
fn shard_cache_records_every_workload_and_form() {
    let all = names_of(&ShardForm::ALL);
    // Every form under a workload without much to prepare, and one form under each.
    let records = shard_cache(&all, &[CacheTraffic::Read(ValueSize::Small)]);
    let more = shard_cache(&all[..1], &CacheTraffic::ALL);
    assert_eq!(
        (records.len(), more.len()),
        (all.len(), CacheTraffic::ALL.len())
    );
    for record in records.into_iter().chain(more) {
        let size = if record.workload.ends_with("16k") {
            "bytes_16k"
        } else {
            "bytes_64"
        };
        assert_eq!((record.key_set.as_str(), record.keys), (size, 64));
        let quantile = |name| record.figures[name];
        assert!(
            quantile("request_ns_p50") <= quantile("request_ns_p99"),
            "{record:?}"
        );
        assert!(
            record.mops.is_finite() && record.runs.len() == 1,
            "{record:?}"
        );
    }
}
