//! A run that ends early: what was finished is in the file, and another run adds what is missing.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long any wait may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Cases of two engines each.
const CASES: usize = 12;

fn lab(arguments: &str, file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula-lab"));
    command.args(arguments.split_whitespace());
    command.arg("--json").arg(file);
    command.env("PATH", "");
    command
}

fn mixes(seconds: &str) -> String {
    format!(
        "run ordered_mix --engines locked,ca_tree --mixes update100,lookup,nextseq \
         --threads 1,2,3,4 --keys 100 --seconds {seconds} --runs 1 --repeats 0"
    )
}

fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // A line that is being written has no end yet.
    let lines = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// How often each engine was measured in each case.
fn counts(file: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for record in records(file) {
        let name = ["experiment", "workload", "key_set", "threads", "engine"]
            .map(|field| record[field].to_string());
        *counts.entry(name.join(" ")).or_default() += 1;
    }
    counts
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Runs the command, which must succeed. Returns what it wrote.
fn finish(mut command: Command) -> (String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let [out, errors] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(status.success(), "{errors}");
    (out, errors)
}

fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits for the process to end. Returns its status and what it wrote to standard error.
fn ended(mut child: Child) -> (Option<i32>, String) {
    wait_until("the process has not ended", || {
        child.try_wait().unwrap().is_some()
    });
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_killed_run_goes_on_and_every_case_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let mut child = lab(&mixes("0.03"), &file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("two groups are not measured", || records(&file).len() >= 4);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = records(&file);
    // As after a kill during the write of the next group: a whole record, and half of another.
    let mut text = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    text.truncate(text.len() - lines.last().unwrap().len() - 1);
    text += &lines[0][..lines[0].len() / 2];
    fs::write(&file, text).unwrap();

    let resumed = || {
        let mut command = lab(&mixes("0.03"), &file);
        command.arg("--resume");
        finish(command)
    };
    let (table, errors) = resumed();
    assert!(errors.contains("note: cut off"), "{errors}");
    let counts = counts(&file);
    assert_eq!(counts.len(), 2 * CASES);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let after = records(&file);
    let kept = before.len() - 1;
    assert_eq!(after[..kept], before[..kept]);
    // The table also has the records that were there before.
    for mix in ["update100", "lookup", "nextseq"] {
        let rows = table.lines().filter(|line| line.trim().starts_with(mix));
        assert_eq!(rows.count(), 4, "{table}");
    }

    // Nothing is left to do.
    resumed();
    assert_eq!(records(&file), after);
    // Another configuration makes another measurement.
    let mut command = lab(&mixes("0.03"), &file);
    finish({
        command.args(["--resume", "--seed", "43"]);
        command
    });
    assert_eq!(records(&file).len(), 4 * CASES);
}

#[test]
fn ctrl_c_ends_after_the_measurement_with_whole_groups_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let threads: Vec<_> = (1..=64).map(|threads| threads.to_string()).collect();
    // This would take minutes.
    let child = lab(
        &format!(
            "run ordered_mix --engines locked,ca_tree --keys 100 --seconds 0.3 --runs 1 \
             --repeats 0 --threads {}",
            threads.join(",")
        ),
        &file,
    )
    .stdout(Stdio::null())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    wait_until("no group is measured", || records(&file).len() >= 2);
    interrupt(&child);
    let (status, errors) = ended(child);
    assert_eq!(status, Some(130), "{errors}");
    assert!(errors.contains("with --resume goes on"), "{errors}");
    let counts = counts(&file);
    assert!(counts.len() >= 2 && counts.len().is_multiple_of(2));
    assert!(counts.len() < 2 * 6 * 64);
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let child = lab(&mixes("3600"), &file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let signals = |of: &str| {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix(of));
        u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
    };
    // The first signal would end a process that does not listen yet.
    const INTERRUPT: u64 = 1 << 1;
    wait_until("it does not listen", || signals("SigCgt:") & INTERRUPT != 0);
    // Two signals sent at once may count as one.
    let begun = Instant::now();
    let mut child = child;
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        interrupt(&child);
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ended(child).0, Some(130));
    assert!(records(&file).is_empty());
}

#[test]
fn all_measures_what_is_planned_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let arguments = "all --quick --engines locked,ca_tree \
                     --only insert_disjoint_ranges,high_contention,bw_tree_ablation";
    let (tables, errors) = finish(lab(arguments, &file));
    assert!(
        tables.contains("insert_ascending") && tables.contains("append"),
        "{tables}"
    );
    assert!(errors.contains("measuring for about"), "{errors}");
    assert!(
        errors.contains("nobody takes part in bw_tree_ablation"),
        "{errors}"
    );
    let first = counts(&file);
    // Two experiments, two engines, two numbers of threads.
    assert_eq!(first.len(), 2 * 2 * 2);
    let mut command = lab(arguments, &file);
    command.arg("--resume");
    finish(command);
    assert_eq!(counts(&file), first);
}

/// Fails if a case is in no part, or in two, or if the whole does not find what its parts measured.
#[test]
fn parts_make_up_the_whole_which_then_has_nothing_left_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.jsonl");
    let whole = "all --quick --engines locked,ca_tree --only insert_disjoint_ranges,remove";
    for part in ["2/3", "3/3", "1/3"] {
        let (_, errors) = finish(lab(&format!("{whole} --part {part}"), &file));
        assert!(errors.contains("measuring for about"), "{errors}");
    }
    let parts = counts(&file);
    // Two experiments, two engines, two numbers of threads.
    assert_eq!(parts.len(), 2 * 2 * 2);
    assert!(parts.values().all(|count| *count == 1), "{parts:?}");
    finish(lab(&format!("{whole} --resume"), &file));
    assert_eq!(counts(&file), parts);
}

#[test]
fn a_file_of_something_else_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter.txt");
    fs::write(&file, "Dear Sir,\nyours").unwrap();
    let output = lab(&mixes("0.01"), &file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("letter.txt', line 2"), "{errors}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "Dear Sir,\nyours");
}
