//! Real processes on one directory: one at a time, and killed.
//!
//! Each test starts this program again, as the process that appends: the variable says where.
#![cfg(not(any(loom, shuttle)))]

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use tremula_log::{Batch, Config, FileLog, Log, OpenError, Sequence};

/// The directory in which a child appends.
const DIRECTORY: &str = "TREMULA_LOG_CHILD";

/// Begins a line of a child that says up to where its log is durable.
const DURABLE: &str = "durable ";

fn config() -> Config {
    Config::default().segment_bytes(16 << 10)
}

/// The batch that begins with this sequence: its records say where each belongs.
fn batch_at(first: u64) -> Batch {
    let mut batch = Batch::new();
    let count = 1 + first % 4;
    for index in 0..count {
        let length = ((first * 31 + index * 7) % 300) as usize;
        let record = format!("{first} {index} {}", "x".repeat(length));
        batch.push(record.as_bytes());
    }
    batch
}

/// Appends and waits until it is killed, and says after each wait what is durable.
fn append_until_killed(directory: &Path) -> ! {
    let log = FileLog::open(directory, &config()).unwrap();
    let mut out = std::io::stdout();
    loop {
        let mut last = Sequence::NONE;
        for _ in 0..3 {
            let batch = batch_at(log.tail().next.get());
            last = log.append(&batch, None).unwrap().last();
        }
        log.wait(last).unwrap();
        // One write of a short line: the reader has all of it or nothing.
        out.write_all(format!("{DURABLE}{last}\n").as_bytes())
            .unwrap();
        out.flush().unwrap();
    }
}

/// Starts this test as a child that appends, unless this is that child.
fn start_child(test: &str, directory: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// The next sequence that the child says to be durable; `None` at the end of its output.
fn next_durable(out: &mut impl BufRead) -> Option<u64> {
    let mut line = String::new();
    loop {
        line.clear();
        if out.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let number = line.split(DURABLE).nth(1);
        if let Some(number) = number.and_then(|number| number.trim().parse().ok()) {
            return Some(number);
        }
    }
}

/// Reads the whole log: each batch as it was appended, or not at all. Returns the last record.
fn check(directory: &Path) -> u64 {
    let log = FileLog::open(directory, &config()).unwrap();
    for entry in log.read(Sequence::FIRST).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.to_batch(), batch_at(entry.first().get()));
    }
    log.durable().get()
}

#[test]
fn what_was_durable_survives_a_kill() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        append_until_killed(Path::new(&directory));
    }
    let rounds = match env::var_os("TREMULA_DEEP") {
        Some(_) => 500,
        None => 20,
    };
    let directory = tempfile::tempdir().unwrap();
    let mut before = 0;
    for round in 0..rounds {
        let (mut child, mut out) =
            start_child("what_was_durable_survives_a_kill", directory.path());
        let mut durable = next_durable(&mut out).unwrap();
        for _ in 0..round % 7 {
            durable = next_durable(&mut out).unwrap();
        }
        std::thread::sleep(Duration::from_micros(round * 397 % 3000));
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it was killed, and we had not read yet.
        while let Some(later) = next_durable(&mut out) {
            durable = later;
        }
        let last = check(directory.path());
        assert!(durable > before, "round {round}: the child has not gone on");
        assert!(
            last >= durable,
            "round {round}: {durable} was durable, the log ends at {last}"
        );
        before = last;
    }
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        append_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let test = "a_second_process_is_refused_until_the_first_is_gone";
    let (mut child, mut out) = start_child(test, directory.path());
    next_durable(&mut out).unwrap();
    for _ in 0..3 {
        match FileLog::open(directory.path(), &config()) {
            Err(OpenError::InUse { owner, path }) => {
                assert_eq!(owner, format!("process {}", child.id()));
                assert_eq!(path, directory.path());
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("two processes have the log open"),
        }
        // The refused one has done no harm.
        next_durable(&mut out).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    check(directory.path());
}
