//! The command as a user meets it: its output, its file, its errors.

use serde_json::Value;
use std::{
    collections::HashSet,
    fs,
    process::{Command, Output},
    thread,
};

fn lab(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula-lab"));
    command.args(arguments.split_whitespace());
    command
}

fn output(mut command: Command) -> (bool, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command starts");
    (
        status.success(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

/// Runs the experiment with `--json` and returns the table and the records.
fn measured(arguments: &str) -> (String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let mut command = lab(arguments);
    command.arg("--json").arg(&file);
    let (good, table, errors) = output(command);
    assert!(good, "{errors}");
    let text = fs::read_to_string(&file).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    (table, records.collect())
}

#[test]
fn list_names_every_experiment_engine_and_mix() {
    let (good, text, _) = output(lab("list"));
    assert!(good);
    for name in [
        "insert_disjoint_ranges",
        "ordered_mix",
        "memory",
        "ycsb",
        "high_contention",
        "batched_get",
        "remove",
        "long_scan",
        "snapshot_beside_writers",
        "cannot do snapshot_beside_writers: its scans are not as of one moment",
        "email",
        "zipfian",
        "ca_tree",
        "locked",
        "erlang_ets_old",
        "erlang_ets_new",
        "erlang_ets_set",
        "table_set",
        "table_ca_tree",
        "ets_throughput",
        "ets_bench",
        "select_range_1_in_100",
        "update100",
        "nextseq",
        "congee",
        "signals",
        "uncontended_send",
        "boxed100",
        "mailbox_off_heap",
        "spillway",
        "erlang_on_heap",
        "cannot do burst: the lab's Erlang program does not have this workload",
        "cannot do messages boxed100: Erlang copies what it sends",
        "cannot do key set email: its keys are eight bytes long",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
}

#[test]
fn a_run_prints_a_table_and_appends_a_record_a_measurement() {
    let (table, records) = measured(
        "run ordered_mix --engines locked,ca_tree --mixes lookup,update1 --threads 1,2 \
         --keys 1000 --seconds 0.05 --runs 3 --seed 7",
    );
    assert!(
        table.contains("lookup") && table.contains("update1"),
        "{table}"
    );
    assert_eq!(records.len(), 8);
    let order: Vec<_> = records
        .iter()
        .map(|r| r["engine"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["locked", "ca_tree"].repeat(4));
    for record in &records {
        let runs = record["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 3);
        let mut sorted: Vec<_> = runs.iter().map(|run| run.as_f64().unwrap()).collect();
        sorted.sort_by(f64::total_cmp);
        assert_eq!(record["mops"].as_f64(), Some(sorted[1]));
        assert_eq!(record["made_by"]["seed"], 7);
        assert_eq!(record["keys"], 1000);
    }
}

#[test]
fn a_record_says_what_produced_it() {
    let many = thread::available_parallelism().map_or(1, usize::from) + 1;
    let (table, records) = measured(&format!(
        "run ordered_mix --engines locked,ca_tree --mixes lookup --threads 1,{many} --keys 100 \
         --seconds 0.01 --runs 1 --repeats 0 --pin"
    ));
    assert_eq!(records.len(), 4);
    let mut hashes = HashSet::new();
    for record in &records {
        let made_by = &record["made_by"];
        assert!(record["disturbed"].is_boolean());
        assert_eq!(record["oversubscribed"], record["threads"] == many);
        assert!(hashes.insert(made_by["configuration_hash"].to_string()));
        assert_eq!(made_by["group_records"], 2);
        assert!(made_by["started"].as_u64() > Some(1_700_000_000));
        assert!(made_by["load_average"].is_array());
        let configuration = &made_by["configuration"];
        assert_eq!(configuration["pinned"], true);
        assert_eq!(configuration["runs"], 1);
        let compiler = configuration["rustc"].as_str().unwrap();
        assert!(compiler.starts_with("rustc 1."), "{compiler}");
    }
    assert!(
        table.contains(&format!("{many}*")) && table.contains("*  oversubscribed"),
        "{table}"
    );
}

#[test]
fn insert_disjoint_ranges_weighs_its_tables() {
    let (table, records) =
        measured("run insert_disjoint_ranges --engines ca_tree --threads 2 --keys 200000 --runs 1");
    assert!(table.contains("bytes_per_key"), "{table}");
    assert_is_a_weight(&records[0]["bytes_per_key"]);
}

#[test]
fn memory_weighs_tables_of_every_key_set_full_and_emptied() {
    let (table, records) =
        measured("run memory --engines ca_tree,locked --keys 100000 --runs 1 --pin");
    assert!(
        table.contains("allocated_bytes_per_key_after_removal"),
        "{table}"
    );
    assert_eq!(records.len(), 4 * 2);
    for record in &records {
        assert!(record["mops"].as_f64().unwrap() > 0.0);
        assert_is_a_weight(&record["bytes_per_key"]);
        let figures = &record["figures"];
        assert_is_a_weight(&figures["allocated_bytes_per_key"]);
        let left = figures["allocated_bytes_per_key_after_removal"]
            .as_f64()
            .unwrap();
        assert!(
            left < figures["allocated_bytes_per_key"].as_f64().unwrap(),
            "{record}"
        );
        assert!(figures["bytes_per_key_after_removal"].is_number());
    }
}

/// Checks that a weight is plausible: a key and its value take at least 16 bytes, and less than ten
/// times that.
fn assert_is_a_weight(bytes_per_key: &Value) {
    let bytes = bytes_per_key.as_f64().expect("it was measured");
    assert!((16.0..160.0).contains(&bytes), "{bytes}");
}

#[test]
fn ycsb_measures_what_the_flags_choose() {
    let (table, records) = measured(
        "run ycsb --engines locked,ca_tree --key-set email,mono_int --mixes e,insert \
         --distribution uniform --threads 2 --keys 2000 --seconds 0.05 --runs 1",
    );
    assert!(table.contains("2000 keys email of 2"), "{table}");
    let rows: Vec<_> = records
        .iter()
        .map(|r| ["key_set", "workload", "engine"].map(|field| r[field].as_str().unwrap()))
        .collect();
    let mut expected = Vec::new();
    for key_set in ["email", "mono_int"] {
        for workload in ["insert", "e"] {
            for engine in ["locked", "ca_tree"] {
                expected.push([key_set, workload, engine]);
            }
        }
    }
    assert_eq!(rows, expected);
    for record in &records {
        let chosen = record["workload"] == "e";
        assert_eq!(record["distribution"] == "uniform", chosen);
        assert_eq!(record["distribution"].is_null(), !chosen);
        assert!(record["key_bytes"].is_number());
    }
}

#[test]
fn signals_records_what_was_sent_and_what_was_received() {
    let (table, records) = measured(
        "run signals --engines mailbox_auto,mailbox_on_heap --mixes drain,live --threads 2 \
         --messages words8 --seconds 0.05 --runs 1",
    );
    assert!(
        table.contains("send_mops") && table.contains("drain_mops"),
        "{table}"
    );
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(record["threads"], 2);
        assert_eq!(record["key_set"], "words8");
        assert!(record["mops"].as_f64().unwrap() > 0.0);
        // The time from the first send to the last receive is at least the time to the last send.
        assert!(record["send_mops"].as_f64() >= record["mops"].as_f64());
    }
}

#[test]
fn a_burst_is_weighed_before_at_its_peak_and_after() {
    let (_, records) = measured(
        "run signals --engines mailbox_auto --mixes burst --threads 1,3 --keys 1000000 --runs 1",
    );
    assert_eq!(records.len(), 2);
    for record in &records {
        let figure = |name: &str| record["figures"][name].as_f64().unwrap();
        // A million messages of eight bytes.
        let peak = figure("resident_mb_peak") - figure("resident_mb_before");
        assert!((7.9..80.0).contains(&peak), "{peak} MB");
        assert!((7.9..16.0).contains(&figure("allocated_mb_peak")));
        assert!(figure("allocated_mb_after") < 6.0);
    }
}

#[test]
fn a_file_is_appended_to_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    for lines in 1..=2 {
        let mut command = lab("run insert_disjoint_ranges --engines locked --threads 1 --keys 10");
        command.arg("--json").arg(&file);
        assert!(output(command).0);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), lines);
    }
}

#[test]
fn bad_input_is_refused_by_name_before_anything_is_measured() {
    let mixes = "run ordered_mix --engines locked --runs 1";
    for (arguments, named) in [
        ("run ordered_mox".to_owned(), "ordered_mox"),
        (format!("{mixes} --engines ca_trea"), "ca_trea"),
        (format!("{mixes} --mixes update99"), "--mixes update99"),
        (
            format!("{mixes} --mixes lookup,lookup"),
            "'lookup' is given twice",
        ),
        (format!("{mixes} --threads 0"), "'0'"),
        (format!("{mixes} --threads 1,many"), "'many'"),
        (format!("{mixes} --threads 2,2"), "'2' is given twice"),
        (format!("{mixes} --threads 1000000"), "1000000"),
        ("run ordered_mix --runs 0".to_owned(), "'0'"),
        (format!("{mixes} --seconds 0"), "'0'"),
        (format!("{mixes} --seconds nan"), "'nan'"),
        (format!("{mixes} --seconds -1"), "-1"),
        (format!("{mixes} --keys 1"), "--keys 1"),
        (format!("{mixes} --keys 2000000000"), "--keys 2000000000"),
        (
            format!("{mixes} --json /no/such/folder/file"),
            "/no/such/folder/file",
        ),
        ("run memory --mixes lookup".to_owned(), "--mixes lookup"),
        ("run memory --key-set emails".to_owned(), "'emails'"),
        (
            "run memory --key-set email,email".to_owned(),
            "'email' is given twice",
        ),
        (
            "run ordered_mix --key-set email".to_owned(),
            "--key-set email",
        ),
        (
            "run high_contention --key-set email".to_owned(),
            "--key-set email",
        ),
        ("run ycsb --mixes b".to_owned(), "--mixes b"),
        ("run ycsb --distribution zipf".to_owned(), "'zipf'"),
        (
            "run memory --distribution uniform".to_owned(),
            "--distribution uniform",
        ),
        ("run ycsb --keys 0".to_owned(), "--keys 0"),
        (
            "run ycsb --engines erlang_ets_new".to_owned(),
            "'erlang_ets_new' cannot do 'ycsb'",
        ),
        (
            "run batched_get --engines congee".to_owned(),
            "'congee' cannot do 'batched_get'",
        ),
        (
            "run ycsb --key-set email --engines congee".to_owned(),
            "eight bytes",
        ),
        ("run memory --keys 0".to_owned(), "--keys 0"),
        ("run memory --messages u64".to_owned(), "--messages u64"),
        ("run signals --messages words9".to_owned(), "'words9'"),
        (
            "run signals --messages u64,u64".to_owned(),
            "'u64' is given twice",
        ),
        (
            "run signals --engines ca_tree".to_owned(),
            "it is a table and no channel",
        ),
        (
            "run ycsb --engines mailbox_auto".to_owned(),
            "it is a channel and no table",
        ),
        ("run memory --resume".to_owned(), "--json <FILE>"),
        ("all --quick --full".to_owned(), "--full"),
        ("all --full --huge".to_owned(), "--huge"),
        ("all --part 4/3".to_owned(), "a part is K/N"),
        ("all --only ordered_mox".to_owned(), "ordered_mox"),
        (
            "all --only ycsb,ycsb --json /no/such/folder/file".to_owned(),
            "'ycsb' is given twice",
        ),
        (
            "all --json /no/such/folder/file".to_owned(),
            "/no/such/folder/file",
        ),
        (
            "run signals --mixes burst --engines erlang_on_heap".to_owned(),
            "does not have this workload",
        ),
        (String::new(), "Usage"),
    ] {
        let (good, table, errors) = output(lab(&arguments));
        assert!(!good, "{arguments}");
        assert!(errors.contains(named), "{arguments}: {errors}");
        assert_eq!(table, "", "{arguments}");
    }
}

#[test]
fn without_escript_erlang_is_left_out_and_the_user_is_told_how_to_get_it() {
    let without = |arguments| {
        let mut command = lab(arguments);
        command.env("PATH", "");
        output(command)
    };
    let (good, text, _) = without("list");
    assert!(
        good && text.contains("apt-get install erlang-base"),
        "{text}"
    );
    let (_, missing) = text.split_once("missing on this machine").unwrap();
    assert!(
        missing.contains("without it: erlang_ets_old, erlang_ets_new"),
        "{missing}"
    );

    let (good, _, errors) = without("run insert_disjoint_ranges --engines erlang_ets_new");
    assert!(!good);
    assert!(
        errors.contains("'erlang_ets_new'") && errors.contains("erlang-base"),
        "{errors}"
    );

    let (good, table, errors) =
        without("run insert_disjoint_ranges --threads 1 --keys 10 --runs 1");
    assert!(good, "{errors}");
    assert!(
        errors.contains("note: without erlang_ets_old, erlang_ets_new"),
        "{errors}"
    );
    assert!(
        table.contains("ca_tree") && !table.contains("erlang"),
        "{table}"
    );
}

#[test]
fn top_needs_a_terminal() {
    let (good, text, errors) = output(lab("top ordered_mix --engines locked --runs 1"));
    assert!(!good && text.is_empty(), "{text}");
    assert!(
        errors.contains("standard output is no terminal"),
        "{errors}"
    );
}

/// Runs it in a terminal of its own, which `script` makes and whose output it passes on.
#[test]
fn top_shows_speeds_meanwhile_and_the_table_at_the_end() {
    let top = format!(
        "{} top ordered_mix --engines ca_tree,locked --mixes update100 --threads 2 --keys 1000 \
         --seconds 0.6 --runs 2 --repeats 0",
        env!("CARGO_BIN_EXE_tremula-lab")
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &top, "/dev/null"])
        .env("TERM", "xterm");
    let (good, text, errors) = output(command);
    assert!(good, "{text}{errors}");
    assert!(
        text.contains("update100 dense_half_filled, 2 threads"),
        "{text}"
    );
    assert!(text.contains("M/s"), "{text}");
    assert!(text.contains("4 0s left") || text.contains("/4"), "{text}");
    let (_, table) = text.rsplit_once("ordered_mix: million operations").unwrap();
    assert!(
        table.contains("update100") && table.contains("locked"),
        "{table}"
    );
}

#[test]
fn check_tells_of_each_campaign_and_of_the_table() {
    let (good, text, errors) = output(lab("check --engines locked,art --histories 100"));
    assert!(good, "{errors}");
    for engine in ["locked", "art"] {
        let lines = text.lines().filter(|line| line.starts_with(engine));
        assert_eq!(lines.count(), 5, "{text}");
    }
    assert_eq!(text.matches("right: ").count(), 8, "{text}");
    assert!(!text.contains("WRONG"), "{text}");
}

#[test]
fn check_refuses_what_it_cannot_check() {
    for (arguments, said) in [
        ("check --engines locked,locked", "'locked' is given twice"),
        ("check --engines erlang_ets_new", "erlang_ets_new"),
        ("check --engines loked", "loked"),
        ("check --histories 0", "a number of histories is 1 to"),
        ("check --patience 0", "it is a number of seconds"),
    ] {
        let (good, text, errors) = output(lab(arguments));
        assert!(!good, "{arguments}: {text}");
        assert!(errors.contains(said), "{arguments}: {errors}");
    }
    let late = output(lab(
        "check --engines locked --histories 100000 --patience 0.05",
    ));
    assert!(!late.0, "{}", late.1);
    assert!(late.1.contains("not done after 50ms"), "{}", late.1);
}
