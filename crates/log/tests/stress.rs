//! Real threads on one log in files: writers, a reader that follows, and one that truncates. Run
//! under the sanitizers too.
//!
//! Each record says which writer's it is and its number there, so that a lost, torn, duplicated or
//! overtaken batch shows: the reader requires 0, 1, 2 and so on from each writer.
#![cfg(not(any(loom, shuttle)))]

use tremula_log::{Batch, Config, FileLog, Log, Sequence};
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, thread};

const WRITERS: u64 = 4;

/// Batches of each writer; fewer where a sanitizer slows each down.
const BATCHES: u64 = if cfg!(tremula_tsan) { 300 } else { 5_000 };

/// Batches that a writer appends before it waits.
const UNDER_WAY: u64 = 50;

fn write(log: &FileLog, writer: u64) {
    for number in 0..BATCHES {
        let mut batch = Batch::new();
        for part in 0..1 + number % 3 {
            let mut record = Vec::new();
            [writer, number, part]
                .iter()
                .for_each(|value| record.extend(value.to_le_bytes()));
            record.resize(24 + (number % 100) as usize, 7);
            batch.push(&record);
        }
        let ticket = log.append(&batch, None).unwrap();
        if number % UNDER_WAY == UNDER_WAY - 1 {
            log.wait(ticket.last()).unwrap();
        }
    }
}

fn numbers(record: &[u8]) -> [u64; 3] {
    let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    [number(0), number(8), number(16)]
}

#[test]
fn a_reader_that_follows_sees_each_batch_whole_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::default().segment_bytes(256 << 10);
    let log = Arc::new(FileLog::open(directory.path(), &config).unwrap());
    let truncate_below = Arc::new(AtomicU64::new(0));
    let mut threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let log = Arc::clone(&log);
            thread::spawn(move || write(&log, writer))
        })
        .collect();
    let reading = {
        let (log, truncate_below) = (Arc::clone(&log), Arc::clone(&truncate_below));
        thread::spawn(move || {
            let mut reader = log.read(Sequence::FIRST).unwrap();
            let mut next = [0; WRITERS as usize];
            while next != [BATCHES; WRITERS as usize] {
                log.wait(reader.next_sequence()).unwrap();
                for entry in reader.by_ref() {
                    let entry = entry.unwrap();
                    let [writer, number, _] = numbers(entry.records().next().unwrap());
                    assert_eq!(number, next[writer as usize], "of writer {writer}");
                    next[writer as usize] += 1;
                    let parts = entry.records().map(|record| numbers(record)[2]);
                    assert!(parts.eq(0..1 + number % 3));
                }
                // Release: pairs with the load of the thread that truncates.
                truncate_below.store(reader.next_sequence().get(), Ordering::Release);
            }
            truncate_below.store(u64::MAX, Ordering::Release);
        })
    };
    threads.push({
        let log = Arc::clone(&log);
        thread::spawn(move || {
            loop {
                // Acquire: pairs with the stores of the reader.
                let below = truncate_below.load(Ordering::Acquire);
                if below == u64::MAX {
                    break;
                }
                log.truncate_below(Sequence::new(below)).unwrap();
                assert!(log.first().get() <= below.max(1));
                thread::yield_now();
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    reading.join().unwrap();
    log.close().unwrap();
    let tail = log.tail();
    drop(log);
    let log = FileLog::open(directory.path(), &config).unwrap();
    assert_eq!(log.tail(), tail);
}
