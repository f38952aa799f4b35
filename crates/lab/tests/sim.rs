//! The lab that simulates: the same bytes twice, curves that are known, and what it refuses.
//!
//! A test fails when anything real (a clock, an address, an earlier run) reaches a result.

#![cfg(sim)]

use std::{fs, path::Path, process::Command};
use tremula_lab::record::{self, Record};

fn simulate(arguments: &[&str], json: &Path) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tremula-lab"))
        .arg("simulate")
        .args(arguments)
        .arg("--json")
        .arg(json)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    (output.status.success(), out, error)
}

fn records(arguments: &[&str]) -> (Vec<Record>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.jsonl");
    let (success, _, error) = simulate(arguments, &json);
    assert!(success, "{error}");
    (record::read(&json).unwrap(), fs::read(&json).unwrap())
}

#[test]
fn two_simulations_of_a_seed_have_the_same_bytes() {
    let with_seed = |seed| {
        records(&[
            "ordered_mix",
            "--engines=b_tree,ca_tree",
            "--mixes=update50",
            "--keys=2000",
            "--cores=1,3",
            "--microseconds=20",
            seed,
        ])
    };
    let (records, bytes) = with_seed("--seed=1");
    assert_eq!(records.len(), 4);
    for record in &records {
        assert!(record.simulated && record.mops > 0.0, "{record:?}");
        assert_eq!(record.made_by.machine.cpu, "two_sockets_of_16");
    }
    assert_eq!(with_seed("--seed=1").1, bytes);
    assert_ne!(with_seed("--seed=2").1, bytes);
}

#[test]
fn one_word_does_not_scale_and_stripes_do() {
    let (records, _) = records(&[
        "counter_scaling",
        "--engines=central,striped",
        "--mixes=add",
        "--cores=1,16",
        "--microseconds=20",
    ]);
    let mops = |engine: &str, threads: usize| {
        let is_it = |record: &&Record| record.engine == engine && record.threads == threads;
        records.iter().find(is_it).unwrap().mops
    };
    assert!(mops("central", 16) < mops("central", 1));
    assert!(mops("striped", 16) > 8.0 * mops("striped", 1));
}

#[test]
fn senders_and_a_receiver_run_in_virtual_time() {
    let (records, _) = records(&[
        "signals",
        "--engines=mailbox_auto",
        "--mixes=live",
        "--cores=1,8",
        "--microseconds=50",
    ]);
    let word = |record: &&Record| record.key_set == "u64";
    let rates: Vec<f64> = records
        .iter()
        .filter(word)
        .map(|record| record.mops)
        .collect();
    assert!(
        rates.len() == 2 && rates.iter().all(|rate| *rate > 0.1),
        "{rates:?}"
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.jsonl");
    let (_, text) = tremula_lab::simulate::profile::PROFILES[0];
    for (wrong, named) in [
        ("paws", "no price 'pause'"),
        ("pause]\nns = 1\nsource = \"-\"\n[prices.paws", "'paws'"),
    ] {
        let path = folder.path().join("machine.toml");
        fs::write(&path, text.replace("pause]", &format!("{wrong}]"))).unwrap();
        let machine = format!("--machine={}", path.display());
        let (success, _, error) = simulate(&["ordered_mix", &machine], &json);
        assert!(!success && error.contains(named), "{wrong}: {error}");
    }
    for (arguments, named) in [
        (["redis", "--cores=1"], "'redis'"),
        (["shard_cache", "--mixes=paced"], "'paced'"),
        (
            ["signals", "--mixes=burst"],
            "'burst' cannot be simulated; these can: drain, live",
        ),
        (["ordered_mix", "--machine=abacus"], "'abacus'"),
        (["ordered_mix", "--cores=0"], "'0'"),
        (["ordered_mix", "--mixes=update51"], "update51"),
    ] {
        let (success, _, error) = simulate(&arguments, &json);
        assert!(!success && error.contains(named), "{arguments:?}: {error}");
    }
}
