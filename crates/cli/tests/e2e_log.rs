//! `tremula log` on logs that are whole, torn, damaged, in use and missing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tremula_log::{Batch, Config, FileLog, Log};

fn config() -> Config {
    Config::default().segment_bytes(1024).prepared(0)
}

fn tremula(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tremula"))
        .args(arguments)
        .output()
        .unwrap()
}

/// What `tremula log` prints, and its exit code; no error.
fn log(command: &str, directory: &Path, more: &[&str]) -> (i32, String) {
    let directory = directory.to_str().unwrap();
    let output = tremula(&[&["log", command, directory], more].concat());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code().unwrap(),
        text.replace(directory, "DIR"),
    )
}

fn error(command: &str, directory: &Path) -> (i32, String) {
    let output = tremula(&["log", command, directory.to_str().unwrap()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (output.status.code().unwrap(), text)
}

/// A log of two batches, and then as many of 200 bytes as make a second segment.
fn write(directory: &Path) -> FileLog {
    let log = FileLog::open(directory, &config()).unwrap();
    let mut batch = Batch::of(b"one");
    batch.push(b"t\0wo\xff");
    let first = log.append(&batch, None).unwrap();
    // A frame for each batch, so that it is known which are in the first segment.
    log.wait(first.last()).unwrap();
    for _ in 0..5 {
        let last = log.append(&Batch::of(&[b'x'; 200]), None).unwrap().last();
        log.wait(last).unwrap();
    }
    log
}

#[test]
fn a_whole_log_is_checked_and_printed() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(
        log("check", directory.path(), &[]),
        (0, "there is no log yet\n".to_owned())
    );
    let chain = {
        let log = write(directory.path());
        log.tail().chain
    };
    let (code, text) = log("check", directory.path(), &[]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with(
            "DIR/00000000000000000001.segment: from sequence 1 up to 4, 3 batches in "
        ),
        "{text}"
    );
    assert!(
        lines[1].starts_with("DIR/00000000000000000005.segment: from sequence 5 up to 7, "),
        "{text}"
    );
    assert_eq!(
        lines[2],
        format!("whole, and closed: goes on at 8 (chain {chain})")
    );

    let (code, text) = log("dump", directory.path(), &["--limit", "2", "--bytes", "7"]);
    assert_eq!(code, 0);
    let without_chain = |line: &str| line.split(" chain ").next().unwrap().to_owned();
    let lines: Vec<String> = text.lines().map(without_chain).collect();
    assert_eq!(
        lines,
        [
            "batch 1..=2",
            "  1 3 bytes \"one\"",
            "  2 5 bytes \"t\\x00wo\\xff\"",
            "batch 3..=3",
            "  3 200 bytes \"xxxxxxx\"...",
        ]
    );
    let (_, text) = log("dump", directory.path(), &["--from", "7"]);
    assert!(text.starts_with("batch 7..=7"), "{text}");
    assert!(text.contains(&chain.to_string()), "{text}");
    let (code, text) = log("repair", directory.path(), &[]);
    assert_eq!((code, &*text), (0, "nothing to repair: the log is whole\n"));
}

#[test]
fn a_damaged_log_is_named_and_repaired_with_a_copy() {
    let directory = tempfile::tempdir().unwrap();
    drop(write(directory.path()));
    let path = directory.path().join("00000000000000000001.segment");
    let mut bytes = fs::read(&path).unwrap();
    bytes[300] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let (code, text) = log("check", directory.path(), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("damaged: DIR/00000000000000000001.segment is damaged at offset "),
        "{text}"
    );
    let output = tremula(&["log", "dump", directory.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "));
    assert!(output.stdout.starts_with(b"batch 1..=2"));

    let (code, text) = log("repair", directory.path(), &[]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("the log was cut, and goes on at 3 (chain "),
        "{text}"
    );
    let kept = "as they were, in DIR/damaged.1: 00000000000000000001.segment, \
                00000000000000000005.segment, CLOSED";
    assert!(text.contains(kept), "{text}");
    let copy = directory
        .path()
        .join("damaged.1/00000000000000000001.segment");
    assert_eq!(fs::read(copy).unwrap(), bytes);
    assert_eq!(log("check", directory.path(), &[]).0, 0);
}

#[test]
fn a_directory_that_cannot_be_looked_into_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let open = write(directory.path());
    for command in ["check", "dump", "repair"] {
        let (code, text) = error(command, directory.path());
        assert_eq!(code, 2);
        assert!(text.contains("is in use by process "), "{text}");
    }
    drop(open);
    let missing = directory.path().join("missing");
    for command in ["check", "dump", "repair"] {
        let (code, text) = error(command, &missing);
        assert_eq!(code, 2);
        assert!(
            text.contains("missing: No such file or directory"),
            "{text}"
        );
    }
    assert!(!missing.exists());
}
