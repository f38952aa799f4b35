//! Copies of logs, also of those that are written and cut meanwhile; and what a log keeps.
#![cfg(not(any(loom, shuttle)))]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use tremula_log::{
    Batch, Chain, Config, CopyError, Entry, FileLog, Keep, Log, Point, Sequence, copy, inspect,
    last_at,
};

fn config() -> Config {
    Config::default().segment_bytes(1024).prepared(0)
}

/// Ends the threads of a test, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn sequence(number: u64) -> Sequence {
    Sequence::new(number)
}

/// Appends a batch of this many records, each its own number.
fn append(log: &FileLog, count: u64) -> Sequence {
    let mut batch = Batch::new();
    let first = log.tail().next.get();
    for number in first..first + count {
        batch.push(number.to_string().repeat(5).as_bytes());
    }
    log.append(&batch, Some(sequence(first))).unwrap().last()
}

/// A closed log with batches of one to three records, some of them in one frame.
fn write(directory: &Path, batches: u64) {
    let log = FileLog::open(directory, &config()).unwrap();
    for number in 0..batches {
        let last = append(&log, 1 + number % 3);
        if number % 4 == 3 {
            log.wait(last).unwrap();
        }
    }
    log.close().unwrap();
}

fn entries(directory: &Path) -> Vec<Entry> {
    let entries = inspect::entries(directory).unwrap();
    entries.map(Result::unwrap).collect()
}

/// What can be compared of batches.
fn content(entries: &[Entry]) -> Vec<(Sequence, Chain, Vec<Vec<u8>>)> {
    entries
        .iter()
        .map(|entry| {
            let records = entry.records().map(<[u8]>::to_vec).collect();
            (entry.first(), entry.chain(), records)
        })
        .collect()
}

#[test]
fn a_copy_has_the_batches_from_one_record_to_another() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 60);
    let all = entries(directory.path());
    let last = all.last().unwrap().last().get();
    let segments = inspect::check(directory.path()).unwrap().segments.len();
    assert!(segments > 3, "{segments} segments are too few to tell");
    for to in 0..=last + 2 {
        let from = [1, to / 2 + 1, last][to as usize % 3];
        let target = tempfile::tempdir().unwrap();
        let copied = copy(
            directory.path(),
            target.path(),
            sequence(from),
            Some(sequence(to)),
        );
        let expected: Vec<Entry> = all
            .iter()
            .filter(|entry| entry.last().get() <= to)
            .cloned()
            .collect();
        let copied = match copied {
            Ok(copied) => copied,
            // The segment that has `from` begins behind `to`.
            Err(CopyError::Missing { from: named, .. }) if from > to => {
                assert_eq!(named, sequence(from));
                continue;
            }
            Err(error) => panic!("from {from} to {to}: {error}"),
        };
        assert!(copied.first <= sequence(from));
        let expected: Vec<Entry> = expected
            .into_iter()
            .filter(|entry| entry.first() >= copied.first)
            .collect();
        let there = entries(target.path());
        assert_eq!(content(&there), content(&expected), "from {from} to {to}");
        let written = expected.last().and_then(Entry::written);
        assert_eq!(copied.written, written);
        // It goes on as the log would have.
        let log = FileLog::open(target.path(), &config()).unwrap();
        assert!(log.opened().was_closed);
        assert_eq!(log.tail(), copied.tail);
        append(&log, 2);
        drop(log);
        assert_eq!(entries(target.path()).len(), expected.len() + 1);
    }
    let target = tempfile::tempdir().unwrap();
    let beyond = copy(directory.path(), target.path(), sequence(last + 2), None);
    let told = beyond.unwrap_err().to_string();
    assert!(
        told.contains(&format!("up to {last}, and not {}", last + 2)),
        "{told}"
    );
}

/// A writer appends and truncates, so that segments are used again, while copies are made. Each
/// copy has all that was durable when it was begun, in one piece. A copy that read a segment which
/// was used again, or a frame that was half written, would have a hole or be refused.
#[test]
fn copies_of_a_log_that_is_written_and_cut_are_whole() {
    const COPIES: usize = 15;
    let directory = tempfile::tempdir().unwrap();
    let config = Config::default().segment_bytes(16 << 10).kept(2);
    let log = FileLog::open(directory.path(), &config).unwrap();
    let ends = AtomicBool::new(false);
    let mut cut = 0;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut turn = 0;
            while !ends.load(Ordering::Relaxed) {
                turn += 1;
                let last = append(&log, 1 + turn % 40);
                if turn % 16 == 0 {
                    log.wait(last).unwrap();
                }
                // Two segments or three stay.
                let kept = last.get().saturating_sub(1500);
                log.truncate_below(sequence(kept)).unwrap();
            }
        });
        let ended = Ends(&ends);
        for _ in 0..COPIES {
            let target = tempfile::tempdir().unwrap();
            let durable = log.durable();
            let from = log.first();
            match copy(directory.path(), target.path(), from, None) {
                Ok(copied) => {
                    assert!(copied.first <= from && copied.tail.next > durable);
                    let mut next = copied.first;
                    for entry in entries(target.path()) {
                        assert_eq!(entry.first(), next);
                        for (number, record) in (next.get()..).zip(entry.records()) {
                            assert_eq!(record, number.to_string().repeat(5).as_bytes());
                        }
                        next = entry.last().plus(1);
                    }
                    assert_eq!(next, copied.tail.next);
                    assert!(FileLog::open(target.path(), &config).is_ok());
                }
                // Its caller begins from a newer snapshot then.
                Err(CopyError::Missing { first, .. }) => {
                    assert!(first > from);
                    cut += 1;
                }
                Err(CopyError::TooSlow { .. }) => cut += 1,
                Err(error) => panic!("{error}"),
            }
        }
        drop(ended);
        writer.join().unwrap();
    });
    assert!(cut < COPIES, "no copy was made");
}

/// A copy is made exactly if a check finds nothing, of a log that was closed and of one that was
/// not, and has what the check has found to be whole.
#[test]
fn no_damage_is_copied_unnoticed() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 24);
    let files = || -> Vec<_> {
        fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some() || path.ends_with("CLOSED"))
            .collect()
    };
    for step in [13, 17] {
        assert!(files().len() > 1, "{:?}", files());
        let (mut refused, mut whole) = (0, 0);
        for path in files() {
            let bytes = fs::read(&path).unwrap();
            for at in (0..bytes.len()).step_by(step) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                fs::write(&path, damaged).unwrap();
                let target = tempfile::tempdir().unwrap();
                let copied = copy(directory.path(), target.path(), Sequence::FIRST, None);
                let report = inspect::check(directory.path()).unwrap();
                match (copied, &report.damage) {
                    (Ok(copied), None) => {
                        whole += 1;
                        assert_eq!(copied.tail, report.tail());
                        let expected = content(&entries(directory.path()));
                        assert_eq!(content(&entries(target.path())), expected, "{at}");
                    }
                    (Err(error), Some(_)) => {
                        refused += 1;
                        let told = error.to_string();
                        assert!(told.contains("is damaged at offset"), "{told}");
                    }
                    (copied, damage) => panic!("{path:?} at {at}: {copied:?}, {damage:?}"),
                }
            }
            fs::write(&path, bytes).unwrap();
        }
        assert!(refused > 20 && whole > 20, "{refused}, {whole}");
        // The second time as if the process had been killed.
        let _ = fs::remove_file(directory.path().join("CLOSED"));
    }
}

#[test]
fn batches_have_the_time_at_which_they_were_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut moments = vec![SystemTime::now()];
    for _ in 0..3 {
        let log = FileLog::open(directory.path(), &config()).unwrap();
        for _ in 0..6 {
            let last = append(&log, 3);
            log.wait(last).unwrap();
            moments.push(SystemTime::now());
            // The times have microseconds.
            thread::sleep(Duration::from_micros(2));
        }
    }
    let all = entries(directory.path());
    for (at, entry) in all.iter().enumerate() {
        let written = entry.written().unwrap() + Duration::from_micros(1);
        assert!(written >= moments[at]);
        assert!(entry.written().unwrap() <= moments[at + 1]);
    }
    for (at, moment) in moments.iter().enumerate() {
        let reached = last_at(directory.path(), Point::Time(*moment)).unwrap();
        assert_eq!(reached.last, sequence(3 * at as u64));
        assert_eq!(reached.is_end, at == all.len());
    }
    let later = SystemTime::now() + Duration::from_secs(3600);
    for point in [
        Point::Time(later),
        Point::End,
        Point::Sequence(sequence(99)),
    ] {
        let reached = last_at(directory.path(), point).unwrap();
        assert_eq!((reached.last, reached.is_end), (sequence(54), true));
    }
    // Batches have three records.
    for (to, last) in [(0, 0), (2, 0), (3, 3), (4, 3), (53, 51)] {
        let reached = last_at(directory.path(), Point::Sequence(sequence(to))).unwrap();
        assert_eq!((reached.last, reached.is_end), (sequence(last), false));
    }
}

#[test]
fn what_is_to_be_kept_is_not_cut() {
    let filled = |keep| {
        let directory = tempfile::tempdir().unwrap();
        let log = FileLog::open(directory.path(), &config().keep(keep)).unwrap();
        for _ in 0..40 {
            let last = append(&log, 6);
            log.wait(last).unwrap();
        }
        (directory, log)
    };
    let cut = |keep| {
        let (_directory, log) = filled(keep);
        let before = log.stats().segments;
        let keeps = log.keeps_from();
        log.truncate_below(log.tail().next).unwrap();
        assert!(log.first() <= keeps);
        // The last one is being written.
        (before - 1, log.stats().segments - 1)
    };
    let (before, left) = cut(Keep::Nothing);
    assert!(before > 6, "{before} segments are too few to tell");
    assert_eq!(left, 0);
    // Segments of 1024 bytes.
    assert_eq!(cut(Keep::Bytes(1)).1, 1);
    assert_eq!(cut(Keep::Bytes(3072)).1, 3);
    assert_eq!(cut(Keep::Bytes(3073)).1, 4);
    assert_eq!(cut(Keep::Bytes(u64::MAX)), (before, before));
    assert_eq!(cut(Keep::Time(Duration::from_secs(3600))), (before, before));
    assert_eq!(cut(Keep::Time(Duration::MAX)), (before, before));
    assert_eq!(cut(Keep::Time(Duration::ZERO)).1, 0);
    // What the caller needs is not cut either.
    let (_directory, log) = filled(Keep::Nothing);
    log.truncate_below(sequence(30)).unwrap();
    assert!(log.first() <= sequence(30));
    assert!(log.read(sequence(30)).is_ok());
}
