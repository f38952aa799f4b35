//! `tremula lab` where it starts servers: the experiment `redis`, with the real programs.

use std::process::{Command, Output};

fn lab(arguments: &str) -> (bool, String, String) {
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
    let (good, table, errors) = lab(
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
