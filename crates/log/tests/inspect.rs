//! What `tremula log` shows and repairs.
#![cfg(not(any(loom, shuttle)))]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tremula_log::{Batch, Config, FileLog, Log, OpenError, ReadError, Sequence, inspect};

fn config() -> Config {
    Config::default().segment_bytes(1024).prepared(0)
}

/// Appends batches of one record, each its own number.
fn write(directory: &Path, count: u64) {
    let log = FileLog::open(directory, &config()).unwrap();
    for _ in 0..count {
        let number = log.tail().next.to_string();
        let ticket = log
            .append(&Batch::of(number.repeat(9).as_bytes()), None)
            .unwrap();
        log.wait(ticket.last()).unwrap();
    }
    log.close().unwrap();
}

/// The names and bytes of all files but the lock.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .filter(|(name, _)| name != "LOCK")
        .collect()
}

fn segments(directory: &Path) -> Vec<String> {
    let names = files(directory).into_keys();
    names.filter(|name| name.ends_with(".segment")).collect()
}

fn flip(directory: &Path, name: &str, offset: usize) {
    let path = directory.join(name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[offset] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_whole_log_is_reported_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 30);
    let before = files(directory.path());
    let report = inspect::check(directory.path()).unwrap();
    assert_eq!(report.damage, None);
    assert!(report.was_closed);
    assert_eq!(
        (report.first(), report.tail().next),
        (Sequence::FIRST, Sequence::new(31))
    );
    assert_eq!(report.segments.len(), segments(directory.path()).len());
    let batches: u64 = report.segments.iter().map(|segment| segment.batches).sum();
    assert_eq!(batches, 30);
    let listed: Vec<_> = inspect::entries(directory.path())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(listed.len(), 30);
    assert_eq!(listed[29].chain(), report.tail().chain);
    assert_eq!(
        files(directory.path()),
        before,
        "looking has changed something"
    );
    assert_eq!(inspect::repair(directory.path()).unwrap(), None);
    assert_eq!(
        files(directory.path()),
        before,
        "there was nothing to repair"
    );
}

#[test]
fn a_directory_in_use_or_missing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = FileLog::open(directory.path(), &config()).unwrap();
    assert!(matches!(
        inspect::check(directory.path()),
        Err(OpenError::InUse { .. })
    ));
    assert!(matches!(
        inspect::entries(directory.path()).err(),
        Some(OpenError::InUse { .. })
    ));
    assert!(matches!(
        inspect::repair(directory.path()),
        Err(OpenError::InUse { .. })
    ));
    drop(log);
    let missing = directory.path().join("missing");
    let error = inspect::check(&missing).unwrap_err().to_string();
    assert!(error.contains(&*missing.to_string_lossy()), "{error}");
    assert!(!missing.exists());
}

/// After any damage repair makes a log that opens, has everything before the damage, and keeps
/// every file that it has changed as it was.
#[test]
fn repair_keeps_what_is_whole_and_a_copy_of_what_is_not() {
    let original = tempfile::tempdir().unwrap();
    write(original.path(), 30);
    let names = segments(original.path());
    assert!(names.len() >= 3, "{names:?}");
    let mut places: Vec<(String, usize)> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let heads = if index == 0 { 128 } else { 0 };
        places.extend(
            (heads..700)
                .step_by(113)
                .map(|offset| (name.clone(), offset)),
        );
    }
    places.push(("CLOSED".to_owned(), 20));
    let (mut cuts, mut least) = (0, u64::MAX);
    for (name, offset) in places {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files(original.path()) {
            fs::write(directory.path().join(name), bytes).unwrap();
        }
        flip(directory.path(), &name, offset);
        let damaged = files(directory.path());
        let report = inspect::check(directory.path()).unwrap();
        let Some(damage) = report.damage.clone() else {
            assert_eq!(inspect::repair(directory.path()).unwrap(), None);
            continue;
        };
        let listed: Vec<_> = inspect::entries(directory.path()).unwrap().collect();
        let (last, whole) = listed.split_last().unwrap();
        assert!(matches!(last, Err(ReadError::Damaged(found)) if *found == damage));
        assert_eq!(
            files(directory.path()),
            damaged,
            "looking has changed something"
        );

        let repaired = inspect::repair(directory.path()).unwrap().unwrap();
        assert_eq!(repaired.damage, damage);
        assert_eq!(repaired.tail, report.tail());
        let kept = files(&repaired.backup);
        assert_eq!(kept.keys().cloned().collect::<Vec<_>>(), repaired.files);
        let after = files(directory.path());
        for (name, bytes) in &damaged {
            let is_same = after.get(name) == Some(bytes);
            assert!(is_same || kept.get(name) == Some(bytes), "{name} is lost");
        }
        let log = FileLog::open(directory.path(), &config()).unwrap();
        assert_eq!(log.tail(), repaired.tail);
        assert_eq!(log.read(Sequence::FIRST).unwrap().count(), whole.len());
        drop(log);
        write(directory.path(), 3);
        cuts += 1;
        least = least.min(repaired.tail.next.get());
    }
    assert!(cuts >= 10, "{cuts}");
    assert_eq!(least, 1);
}

#[test]
fn a_log_without_anything_whole_is_not_repaired() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 5);
    flip(directory.path(), &segments(directory.path())[0], 20);
    let before = files(directory.path());
    let error = inspect::repair(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged(_)), "{error}");
    assert_eq!(files(directory.path()), before);
}

#[test]
fn a_file_that_was_cut_is_repaired_to_its_length() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), 30);
    let last = segments(directory.path()).pop().unwrap();
    let path = directory.path().join(&last);
    fs::write(&path, &fs::read(&path).unwrap()[..300]).unwrap();
    let repaired = inspect::repair(directory.path()).unwrap().unwrap();
    assert_eq!(repaired.files, [last, "CLOSED".to_owned()]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 1024);
    let log = FileLog::open(directory.path(), &config()).unwrap();
    assert_eq!(log.tail(), repaired.tail);
}
