//! The table of the best engines in the README of `tremula-index` matches its results.

use std::{fs, path::PathBuf, process::Command};
use tremula_lab::{best, record};

/// The lines around the table in the README.
const BEGIN: &str = "<!-- tremula-lab best crates/index/results/*.jsonl -->\n";
const END: &str = "<!-- end of the table -->\n";

fn index() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../index")
}

/// The files of results, in the order of a shell's pattern.
fn results() -> Vec<PathBuf> {
    let folder = fs::read_dir(index().join("results")).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    paths
}

#[test]
fn the_table_in_the_readme_is_that_of_the_results() {
    let records: Vec<_> = results()
        .iter()
        .flat_map(|path| record::read(path).unwrap())
        .collect();
    assert!(!records.is_empty());
    let readme = fs::read_to_string(index().join("README.md")).unwrap();
    let (_, table) = readme.split_once(BEGIN).expect("the table's beginning");
    let (table, _) = table.split_once(END).expect("the table's end");
    assert_eq!(table.trim(), best::table(&records).unwrap().trim());
}

#[test]
fn the_command_prints_the_table_and_names_what_it_cannot_read() {
    let best = |paths: &[PathBuf]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula-lab"));
        command.arg("best").args(paths).output().unwrap()
    };
    let paths = results();
    let done = best(&paths);
    assert!(done.status.success());
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.starts_with("| keys | workload | 1 thread |"), "{text}");

    let twice = best(&[paths[0].clone(), paths[0].clone()]);
    assert!(!twice.status.success());
    let errors = String::from_utf8(twice.stderr).unwrap();
    assert!(errors.contains("is measured twice"), "{errors}");

    for arguments in [&[index().join("no_such_file.jsonl")][..], &[]] {
        let refused = best(arguments);
        assert!(!refused.status.success() && refused.stdout.is_empty());
    }
    let no_records = best(&[index().join("README.md")]);
    let errors = String::from_utf8(no_records.stderr).unwrap();
    assert!(
        errors.contains("README.md', line 1, is no record"),
        "{errors}"
    );
}
