//! What every log does, whatever keeps it: in a directory, on a disk in memory, in memory.
#![cfg(not(any(loom, shuttle)))]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tremula_log::{
    Batch, Config, FaultyDisk, FileLog, Log, MemoryLog, OpenError, ReadError, Refused, Sequence,
    Stopped, Tail,
};

fn small() -> Config {
    Config::default().segment_bytes(4096)
}

/// Runs a test on a log of each kind.
fn on_each(test: impl Fn(&dyn Log)) {
    test(&MemoryLog::new());
    let directory = tempfile::tempdir().unwrap();
    for prepared in [0, 1] {
        let config = small().prepared(prepared);
        test(&FileLog::open_on(&FaultyDisk::new(1), &config).unwrap());
        let directory = directory.path().join(prepared.to_string());
        test(&FileLog::open(directory, &config).unwrap());
    }
}

fn batch(records: &[&str]) -> Batch {
    let mut batch = Batch::new();
    records
        .iter()
        .for_each(|record| batch.push(record.as_bytes()));
    batch
}

/// The records of all batches from a sequence on.
fn read(log: &dyn Log, from: u64) -> Vec<Vec<String>> {
    let text = |record: &[u8]| String::from_utf8(record.to_vec()).unwrap();
    log.read(Sequence::new(from))
        .unwrap()
        .map(|entry| entry.unwrap().records().map(text).collect())
        .collect()
}

#[test]
fn what_was_appended_is_read_in_its_order() {
    on_each(|log| {
        assert_eq!(log.tail(), Tail::START);
        assert_eq!(log.durable(), Sequence::NONE);
        let one = log.append(&batch(&["a", "", "c"]), None).unwrap();
        let two = log.append(&batch(&["d"]), None).unwrap();
        assert_eq!((one.first().get(), one.last().get()), (1, 3));
        assert_eq!((two.first().get(), two.last().get()), (4, 4));
        log.wait(two.last()).unwrap();
        assert_eq!(log.durable(), two.last());
        assert_eq!(log.tail().chain, two.chain());
        assert_eq!(read(log, 0), [vec!["a", "", "c"], vec!["d"]]);
        assert_eq!(read(log, 2), [vec!["a", "", "c"], vec!["d"]]);
        assert_eq!(read(log, 4), [vec!["d"]]);
        assert!(read(log, 5).is_empty());
        let beyond = log.read(Sequence::new(6)).err();
        assert!(matches!(beyond, Some(ReadError::Beyond { .. })));
    });
}

#[test]
fn a_writer_that_is_late_is_fenced() {
    on_each(|log| {
        let first = log.append(&batch(&["a"]), Some(Sequence::FIRST)).unwrap();
        let late = log.append(&batch(&["b"]), Some(Sequence::FIRST));
        let Err(Refused::Fenced(fenced)) = late else {
            panic!("{late:?}");
        };
        assert_eq!(
            (fenced.expected, fenced.next),
            (Sequence::FIRST, first.next())
        );
        let early = log.append(&batch(&["b"]), Some(Sequence::new(3)));
        assert!(matches!(early, Err(Refused::Fenced(_))));
        let right = log.append(&batch(&["b"]), Some(first.next())).unwrap();
        log.wait(right.last()).unwrap();
        assert_eq!(read(log, 1), [vec!["a"], vec!["b"]]);
    });
}

#[test]
fn of_writers_that_expect_the_same_one_appends() {
    on_each(|log| {
        for round in 0..20 {
            let expected = log.tail().next;
            let winners = thread::scope(|scope| {
                let threads: Vec<_> = (0..3)
                    .map(|_| scope.spawn(|| log.append(&batch(&["x"]), Some(expected)).is_ok()))
                    .collect();
                let won = threads.into_iter().map(|thread| thread.join().unwrap());
                won.filter(|won| *won).count()
            });
            assert_eq!(winners, 1, "round {round}");
        }
        assert_eq!(log.tail().next, Sequence::new(21));
    });
}

#[test]
fn the_chain_depends_on_the_batches_alone() {
    let mut chains = Vec::new();
    on_each_gathering(&mut chains, |log| {
        let mut last = Sequence::NONE;
        for number in 0..200 {
            let number = number.to_string();
            last = log.append(&batch(&[&number, "x"]), None).unwrap().last();
            if number.ends_with('7') {
                log.wait(last).unwrap();
            }
        }
        log.wait(last).unwrap();
        let mut read = log.read(Sequence::FIRST).unwrap();
        let last = read.by_ref().last().unwrap().unwrap();
        assert_eq!(last.chain(), log.tail().chain);
        assert_eq!(read.next_sequence(), log.tail().next);
        log.tail()
    });
    assert!(
        chains.windows(2).all(|pair| pair[0] == pair[1]),
        "{chains:?}"
    );
    let other = MemoryLog::new();
    other.append(&batch(&["0", "x", "1", "x"]), None).unwrap();
    assert_ne!(other.tail().chain, chains[0].chain);
}

fn on_each_gathering<R>(results: &mut Vec<R>, test: impl Fn(&dyn Log) -> R) {
    let gathered = std::sync::Mutex::new(results);
    on_each(|log| {
        let result = test(log);
        gathered.lock().unwrap().push(result);
    });
}

#[test]
fn a_reader_goes_on_when_more_is_durable() {
    on_each(|log| {
        let mut reader = log.read(Sequence::FIRST).unwrap();
        assert!(reader.next().is_none());
        for number in 0..300_u32 {
            let record = number.to_string().repeat(10);
            let ticket = log.append(&batch(&[&record]), None).unwrap();
            log.wait(ticket.last()).unwrap();
            let entry = reader.next().unwrap().unwrap();
            assert_eq!(entry.last(), ticket.last());
            assert_eq!(entry.records().next(), Some(record.as_bytes()));
            assert!(reader.next().is_none());
            assert_eq!(reader.next_sequence(), ticket.next());
        }
    });
}

#[test]
fn truncation_keeps_what_it_must() {
    on_each(|log| {
        let mut last = Sequence::NONE;
        for number in 0..400_u32 {
            let record = format!("{number:0100}");
            last = log.append(&batch(&[&record]), None).unwrap().last();
            if number % 10 == 9 {
                // So that the segments have several frames, and not one long one.
                log.wait(last).unwrap();
            }
        }
        for below in (1..=400).chain([1000]) {
            log.truncate_below(Sequence::new(below)).unwrap();
            let first = log.first();
            assert!(first.get() <= below.min(401), "{first} was kept of {below}");
            if below <= last.get() {
                let expected = format!("{:0100}", below - 1);
                assert_eq!(read(log, below)[0], [expected]);
            }
            let before = first.before();
            if before > Sequence::NONE {
                let gone = log.read(before).err();
                assert!(
                    matches!(gone, Some(ReadError::Truncated { .. })),
                    "{gone:?}"
                );
            }
        }
    });
}

#[test]
fn a_closed_log_keeps_everything_and_takes_nothing() {
    on_each(|log| {
        let ticket = log.append(&batch(&["a"]), None).unwrap();
        log.close().unwrap();
        assert_eq!(log.durable(), ticket.last());
        let late = log.append(&batch(&["b"]), None);
        assert!(matches!(late, Err(Refused::Stopped(Stopped::Closed))));
        assert!(matches!(log.admits(1), Err(Refused::Stopped(_))));
        assert!(matches!(log.wait(ticket.next()), Err(Stopped::Closed)));
        assert_eq!(read(log, 1), [vec!["a"]]);
        log.close().unwrap();
    });
}

#[test]
fn a_log_goes_on_where_it_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut tail = Tail::START;
    for round in 0..5_u64 {
        let log = FileLog::open(directory.path(), &small()).unwrap();
        let opened = log.opened();
        assert_eq!(opened.tail, tail);
        assert_eq!(opened.was_closed, round > 0);
        assert_eq!(read(&log, 1).len() as u64, round * 50);
        for _ in 0..50 {
            let batch = batch(&["x"; 10]);
            log.append(&batch, Some(log.tail().next)).unwrap();
        }
        log.close().unwrap();
        tail = log.tail();
    }
}

#[test]
fn a_batch_longer_than_a_segment_gets_one_by_itself() {
    let long = "y".repeat(50_000);
    for prepared in [0, 1] {
        let directory = tempfile::tempdir().unwrap();
        let config = small().prepared(prepared);
        let records = [&long[..], "a", &long, &long, "b"];
        {
            let log = FileLog::open(directory.path(), &config).unwrap();
            for record in records {
                let ticket = log.append(&batch(&[record]), None).unwrap();
                log.wait(ticket.last()).unwrap();
            }
        }
        let log = FileLog::open(directory.path(), &config).unwrap();
        assert_eq!(read(&log, 1), records.map(|record| vec![record]));
    }
}

#[test]
fn segments_that_were_truncated_are_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let log = FileLog::open(directory.path(), &small()).unwrap();
    let mut last = Sequence::NONE;
    for _ in 0..200 {
        for _ in 0..50 {
            last = log
                .append(&batch(&["some record or other"]), None)
                .unwrap()
                .last();
        }
        log.wait(last).unwrap();
        log.truncate_below(last).unwrap();
    }
    let files = || fs::read_dir(directory.path()).unwrap().count();
    let count = files();
    assert!(count <= 6, "{count} files are left of 10,000 records");
    log.close().unwrap();
    drop(log);
    let log = FileLog::open(directory.path(), &small()).unwrap();
    assert_eq!(log.tail().next, last.plus(1));
    assert!(!read(&log, last.get()).is_empty());
}

/// Nobody waits, and the records are durable after the period all the same. Fails by hanging.
#[test]
fn what_nobody_waits_for_is_synced_after_a_while() {
    let config = small().sync_every(Some(Duration::from_millis(5)));
    let log = FileLog::open_on(&FaultyDisk::new(1), &config).unwrap();
    let ticket = log.append(&batch(&["a"]), None).unwrap();
    while log.durable() < ticket.last() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Without a period nothing is synced by itself; but a wait gets its sync.
#[test]
fn who_waits_decides_when_the_log_syncs() {
    let disk = FaultyDisk::new(1);
    let log = FileLog::open_on(&disk, &small().sync_every(None)).unwrap();
    let before = disk.syncs();
    let mut last = Sequence::NONE;
    for _ in 0..10 {
        last = log.append(&batch(&["a"]), None).unwrap().last();
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(log.durable(), Sequence::NONE);
    log.wait(last).unwrap();
    assert_eq!(log.durable(), last);
    // One of the log; spares may have been filled meanwhile.
    assert!(disk.syncs() > before);
}

#[test]
fn a_task_of_any_runtime_waits() {
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    on_each(|log| {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        let ticket = log.append(&batch(&["a"]), None).unwrap();
        let mut until = Box::pin(log.until(ticket.last()));
        while until.as_mut().poll(&mut cx).is_pending() {
            thread::park();
        }
        assert_eq!(log.durable(), ticket.last());
        let mut until = Box::pin(log.until(ticket.next()));
        assert!(until.as_mut().poll(&mut cx).is_pending());
        log.close().unwrap();
        let ended = until.as_mut().poll(&mut cx);
        assert!(matches!(ended, Poll::Ready(Err(Stopped::Closed))));
    });
}

fn error_of(directory: &Path) -> String {
    FileLog::open(directory, &small())
        .err()
        .map_or_else(String::new, |error| error.to_string())
}

#[test]
fn a_directory_in_use_is_refused_by_the_name_of_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let log = FileLog::open(directory.path(), &small()).unwrap();
    let error = error_of(directory.path());
    let own = format!("is in use by process {}", std::process::id());
    assert!(error.contains(&own), "{error}");
    assert!(
        error.contains("stop it first, or name another directory"),
        "{error}"
    );
    drop(log);
    assert_eq!(error_of(directory.path()), "");
}

#[test]
fn a_directory_that_cannot_be_made_or_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("log");
    let error = error_of(&below);
    assert!(error.contains(&*below.to_string_lossy()), "{error}");
    assert!(
        error.contains("let this user write there, or name another directory"),
        "{error}"
    );
    // Where the lock's file cannot be opened for writing, by any user.
    fs::create_dir_all(directory.path().join("log/LOCK")).unwrap();
    let error = error_of(&directory.path().join("log"));
    assert!(error.contains("log/LOCK"), "{error}");
}

#[test]
fn a_segment_of_a_newer_version_is_refused_by_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    drop(FileLog::open(directory.path(), &small()).unwrap());
    let path = directory.path().join("00000000000000000001.segment");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 9;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..128]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let error = FileLog::open(directory.path(), &small()).err();
    let Some(OpenError::Newer { found, known, .. }) = &error else {
        panic!("{error:?}");
    };
    assert_eq!((*found, *known), (9, 1));
    let text = error_of(directory.path());
    assert!(
        text.contains("00000000000000000001.segment has format 9"),
        "{text}"
    );
    assert!(
        text.contains("use the version that wrote it, or a newer one"),
        "{text}"
    );
}

#[test]
fn settings_that_make_no_sense_are_refused_with_their_value() {
    for (config, value) in [
        (Config::default().segment_bytes(1000), "1000"),
        (Config::default().max_batch(3 << 30), "3221225472"),
    ] {
        let error = FileLog::open_on(&FaultyDisk::new(1), &config).err();
        let text = error.map_or_else(String::new, |error| error.to_string());
        assert!(text.contains(value), "{text}");
    }
}

#[test]
fn other_files_in_the_directory_stay() {
    let directory = tempfile::tempdir().unwrap();
    let notes = ["notes.txt", "spare.parts", "1.segment"];
    for name in notes {
        fs::write(directory.path().join(name), name).unwrap();
    }
    drop(FileLog::open(directory.path(), &small()).unwrap());
    drop(FileLog::open(directory.path(), &small()).unwrap());
    for name in notes {
        assert_eq!(
            fs::read_to_string(directory.path().join(name)).unwrap(),
            name
        );
    }
}

#[test]
fn what_is_appended_and_not_on_the_disk_is_counted() {
    let disk = FaultyDisk::new(1);
    // Nothing is synced that nobody waits for.
    let log = FileLog::open_on(&disk, &small().sync_every(None)).unwrap();
    assert_eq!((log.stats().unsynced, log.stats().syncs), (0, 0));
    let batch = batch(&["a", "bcd"]);
    log.append(&batch, None).unwrap();
    let ticket = log.append(&batch, None).unwrap();
    assert_eq!(log.stats().unsynced, 2 * batch.bytes() as u64);
    log.wait(ticket.last()).unwrap();
    let stats = log.stats();
    assert_eq!(stats.unsynced, 0);
    assert!(stats.syncs > 0 && stats.last_sync <= stats.syncing);
}
