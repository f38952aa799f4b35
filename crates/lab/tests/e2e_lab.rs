//! The lab as a part of the `tremula` command: it starts processes of that command, too.

use std::{
    fs,
    process::{Command, Output},
};

#[test]
fn the_lab_measures_by_way_of_tremula_lab() {
    let folder = std::env::temp_dir().join(format!("tremula-lab-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("records.jsonl");
    let lab = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command.arg("lab").args(arguments.split_whitespace());
        command.arg("--json").arg(&file);
        let output = command.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{errors}");
        fs::read_to_string(&file).unwrap().lines().count()
    };
    // Each table is weighed in a process of its own: one for each key set.
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
    } = Command::new(env!("CARGO_BIN_EXE_tremula"))
        .arg("lab")
        .args(arguments.split_whitespace())
        .output()
        .expect("tremula starts");
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
        // The table of throughputs, and those of three figures.
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
