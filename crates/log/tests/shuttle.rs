//! More writers and more batches than every interleaving allows, under random schedules, with a
//! disk that loses power meanwhile.
//!
//! The tests fail on: a record that a writer was promised and that is not there after the loss; a
//! batch of which only a part is there; a writer or the flusher that is never woken (shuttle
//! reports the deadlock).
#![cfg(shuttle)]

use tremula_log::{Batch, Config, FaultyDisk, FileLog, Log, Sequence, Stopped};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

const WRITERS: u64 = 3;
const BATCHES: u64 = 4;

fn config(prepared: usize) -> Config {
    Config::default()
        .segment_bytes(1024)
        .prepared(prepared)
        .sync_every(None)
}

/// Two records that say whose they are.
fn batch(writer: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.push(&[writer as u8, number as u8, 0]);
    batch.push(&[writer as u8, number as u8, 1].repeat(40));
    batch
}

/// Starts the writers; each returns the last sequence that it was promised.
fn write(log: &Arc<FileLog>) -> Vec<thread::JoinHandle<Sequence>> {
    (0..WRITERS)
        .map(|writer| {
            let log = Arc::clone(log);
            thread::spawn(move || {
                let mut promised = Sequence::NONE;
                for number in 0..BATCHES {
                    let Ok(ticket) = log.append(&batch(writer, number), None) else {
                        break;
                    };
                    match log.wait(ticket.last()) {
                        Ok(()) => promised = ticket.last(),
                        Err(Stopped::Failed(_)) => break,
                        Err(other) => panic!("{other}"),
                    }
                }
                promised
            })
        })
        .collect()
}

/// Checks that the log has whole batches, each writer's in their order.
fn check_batches(log: &FileLog) -> u64 {
    let mut next = [0; WRITERS as usize];
    let mut count = 0;
    for entry in log.read(Sequence::FIRST).unwrap() {
        let read = entry.unwrap().to_batch();
        let record = read.records().next().unwrap().to_vec();
        let (writer, number) = (u64::from(record[0]), u64::from(record[1]));
        assert_eq!(read, batch(writer, number));
        assert_eq!(
            number, next[writer as usize],
            "a batch of writer {writer} is missing"
        );
        next[writer as usize] += 1;
        count += 1;
    }
    count
}

#[test]
fn all_batches_of_all_writers_become_durable() {
    for prepared in [0, 1] {
        let name = format!("all_batches_of_all_writers_become_durable_{prepared}");
        check(&name, 200, move || {
            let log = Arc::new(FileLog::open_on(&FaultyDisk::new(1), &config(prepared)).unwrap());
            for thread in write(&log) {
                thread.join().unwrap();
            }
            assert_eq!(log.durable(), Sequence::new(2 * WRITERS * BATCHES));
            assert_eq!(check_batches(&log), WRITERS * BATCHES);
            log.close().unwrap();
        });
    }
}

#[test]
fn what_a_writer_was_promised_survives_a_loss_of_power() {
    check(
        "what_a_writer_was_promised_survives_a_loss_of_power",
        300,
        || {
            let disk = FaultyDisk::new(1);
            let log = Arc::new(FileLog::open_on(&disk, &config(0)).unwrap());
            let writers = write(&log);
            let power = disk.clone();
            let cut = thread::spawn(move || {
                for _ in 0..30 {
                    thread::yield_now();
                }
                power.lose_power();
            });
            let promised = writers
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .max();
            cut.join().unwrap();
            drop(log);
            let log = FileLog::open_on(&disk, &config(0)).unwrap();
            assert!(Some(log.durable()) >= promised);
            check_batches(&log);
        },
    );
}
