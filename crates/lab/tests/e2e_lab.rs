//! The command `tremula-lab` with the processes that it starts: those of its own program, and the
//! servers. The server `tremula` lies beside it (`cargo build -p tremula-cli`).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

#[test]
fn the_lab_measures_by_way_of_tremula_lab() {
    let folder = std::env::temp_dir().join(format!("tremula-lab-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("records.jsonl");
    let lab = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula-lab"));
        command.args(arguments.split_whitespace());
        command.arg("--json").arg(&file);
        let output = command.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        fs::read_to_string(&file).unwrap().lines().count()
    };
    // Each table is weighed in a process of its own, once for each key set.
    let all = "all --quick --only memory --engines locked";
    assert_eq!(lab(all), 4);
    assert_eq!(lab(&format!("{all} --resume")), 4);
    let run = "run high_contention --engines locked --threads 1 --keys 1000 --runs 1";
    assert_eq!(lab(run), 5);
    fs::remove_dir_all(folder).unwrap();
}

fn run(arguments: &str) -> (bool, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_tremula-lab"))
        .args(arguments.split_whitespace())
        .output()
        .expect("tremula-lab starts");
    let [out, errors] = [stdout, stderr].map(|text| String::from_utf8(text).expect("text"));
    (status.success(), out, errors)
}

#[test]
fn both_servers_are_measured_by_every_command() {
    let (good, table, errors) = run(
        "run redis --engines tremula_serve,redis_server --threads 5 --keys 1000 \
         --seconds 0.05 --runs 1 --repeats 0",
    );
    assert!(good, "{errors}");
    for name in ["set", "get", "incr", "mset", "getrange"] {
        // The table of throughputs, and three tables of figures.
        let rows = table.lines().filter(|line| line.starts_with(name));
        let rows: Vec<_> = rows
            .filter(|line| line[name.len()..].starts_with(' '))
            .collect();
        assert_eq!(rows.len(), 2 * 4, "{name}: {table}");
        assert!(rows.iter().all(|row| row.contains("pipeline_")), "{table}");
    }
    for figure in ["latency_ms_p50", "latency_ms_p99", "server_us_per_request"] {
        assert!(table.contains(figure), "{table}");
    }
}

#[test]
fn transactions_are_sent_to_the_servers_that_have_them() {
    let (good, table, errors) = run(
        "run transactions --engines tremula_serve,redis_server --threads 3 --keys 1000 \
         --seconds 0.05 --runs 1 --repeats 0",
    );
    assert!(good, "{errors}");
    assert!(errors.contains("it has no command TXN"), "{errors}");
    for name in ["exec_10", "txn_4_4", "plain_8"] {
        let rows = table.lines().filter(|line| line.starts_with(name));
        let rows: Vec<_> = rows.collect();
        // The table of throughputs, and one of figures, with each pipeline.
        assert_eq!(rows.len(), 2 * 2, "{name}: {table}");
        let lacks_one = rows.iter().all(|row| row.ends_with('-'));
        assert_eq!(lacks_one, name == "txn_4_4", "{table}");
    }
    // A server that lacks a command is refused where it is asked for nothing else.
    let (good, _, errors) = run("run transactions --engines redis_server --mixes txn_4_4");
    assert!(
        !good && errors.contains("it has no command TXN"),
        "{errors}"
    );
}

#[test]
fn events_of_writes_reach_those_who_watch() {
    let (good, table, errors) =
        run("run feeds --threads 3 --keys 1000 --seconds 0.05 --runs 1 --repeats 0");
    assert!(good, "{errors}");
    for name in ["watch_1 ", "watch_100 "] {
        // Events and writes a second, and two figures.
        let rows = table.lines().filter(|line| line.starts_with(name));
        assert_eq!(rows.count(), 4, "{name}: {table}");
    }
}

/// What the lab prints when it has to measure the server and this file lies beside it.
fn refusal(folder: &str, tremula: Option<&str>) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    // Remove what an earlier run has left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let lab = folder.join("tremula-lab");
    fs::hard_link(env!("CARGO_BIN_EXE_tremula-lab"), &lab).unwrap();
    if let Some(script) = tremula {
        let program = folder.join("tremula");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = "run redis --engines tremula_serve --threads 1 --keys 1000 --runs 1";
    let output = Command::new(&lab)
        .args(run.split_whitespace())
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_server_that_is_missing_is_asked_for() {
    let said = refusal("without_server", None);
    assert!(
        said.contains("cargo build --release -p tremula-cli"),
        "{said}"
    );
}

#[test]
fn a_server_of_another_version_is_refused() {
    let said = refusal("other_server", Some("#!/bin/sh\necho tremula 0.0.9\n"));
    let ours = format!("'tremula {}'", env!("CARGO_PKG_VERSION"));
    assert!(said.contains("'tremula 0.0.9'"), "{said}");
    assert!(said.contains(&ours), "{said}");
}
