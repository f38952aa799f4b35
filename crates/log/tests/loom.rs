//! Every interleaving of two or three threads on a watermark, and on a log whose disk is in memory.
//!
//! A lost wake-up, or a batch that is never written, shows as a deadlock. Under the checker a frame
//! holds two short batches, and a wait with a deadline ends after one look.
#![cfg(loom)]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tremula_log::{
    Batch, Config, FaultyDisk, FileLog, Log, MemoryLog, Refused, Sequence, Stopped, Watermark,
};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

#[test]
fn no_wake_up_is_lost_between_a_wait_and_the_watermark() {
    check(
        "no_wake_up_is_lost_between_a_wait_and_the_watermark",
        5,
        || {
            let watermark = Arc::new(Watermark::new(Sequence::NONE));
            let log = Arc::clone(&watermark);
            let thread = thread::spawn(move || {
                log.advance(Sequence::new(1));
                log.advance(Sequence::new(2));
            });
            watermark.wait(Sequence::new(2)).unwrap();
            assert_eq!(watermark.get(), Sequence::new(2));
            thread.join().unwrap();
        },
    );
}

#[test]
fn each_of_two_waits_is_ended_by_its_sequence() {
    check("each_of_two_waits_is_ended_by_its_sequence", 2, || {
        let watermark = Arc::new(Watermark::new(Sequence::NONE));
        let threads = [1, 2].map(|number| {
            let watermark = Arc::clone(&watermark);
            thread::spawn(move || watermark.wait(Sequence::new(number)).unwrap())
        });
        watermark.advance(Sequence::new(1));
        watermark.advance(Sequence::new(2));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_wait_calls_the_thread_that_syncs() {
    check("a_wait_calls_the_thread_that_syncs", 3, || {
        let watermark = Arc::new(Watermark::new(Sequence::NONE));
        let log = Arc::clone(&watermark);
        let thread = thread::spawn(move || {
            while log.durable_is_behind() {
                log.wait_for_demand(None);
            }
            log.advance(Sequence::FIRST);
        });
        watermark.wait(Sequence::FIRST).unwrap();
        thread.join().unwrap();
    });
}

trait Behind {
    fn durable_is_behind(&self) -> bool;
}

impl Behind for Watermark {
    fn durable_is_behind(&self) -> bool {
        self.wanted() == Sequence::NONE
    }
}

#[test]
fn a_stop_ends_a_wait_that_begins_meanwhile() {
    check("a_stop_ends_a_wait_that_begins_meanwhile", 3, || {
        let watermark = Arc::new(Watermark::new(Sequence::NONE));
        let log = Arc::clone(&watermark);
        let thread = thread::spawn(move || {
            log.advance(Sequence::FIRST);
            log.stop(Stopped::Closed);
            log.advance(Sequence::new(2));
        });
        let ended = watermark.wait(Sequence::new(2));
        assert!(matches!(ended, Err(Stopped::Closed)));
        assert_eq!(watermark.get(), Sequence::FIRST);
        thread.join().unwrap();
    });
}

#[test]
fn a_future_that_is_polled_beside_the_watermark_is_ready_or_woken() {
    check(
        "a_future_that_is_polled_beside_the_watermark_is_ready_or_woken",
        3,
        || {
            let watermark = Arc::new(Watermark::new(Sequence::NONE));
            let log = Arc::clone(&watermark);
            let thread = thread::spawn(move || log.advance(Sequence::FIRST));
            let waker = Waker::noop();
            let mut cx = Context::from_waker(waker);
            let mut until = pin!(watermark.until(Sequence::FIRST));
            let first = until.as_mut().poll(&mut cx);
            thread.join().unwrap();
            if first.is_pending() {
                let second = until.as_mut().poll(&mut cx);
                assert!(matches!(second, Poll::Ready(Ok(()))));
            }
        },
    );
}

#[test]
fn one_of_two_writers_that_expect_the_same_is_fenced() {
    check(
        "one_of_two_writers_that_expect_the_same_is_fenced",
        3,
        || {
            let log = MemoryLog::new();
            let other = log.clone();
            let append = |log: &MemoryLog| log.append(&Batch::of(b"x"), Some(Sequence::FIRST));
            let thread = thread::spawn(move || append(&other).is_ok());
            let own = append(&log);
            assert!(matches!(own, Ok(_) | Err(Refused::Fenced(_))));
            assert_ne!(own.is_ok(), thread.join().unwrap());
            log.wait(Sequence::FIRST).unwrap();
        },
    );
}

fn open() -> Arc<FileLog> {
    let config = Config::default()
        .segment_bytes(1024)
        .prepared(0)
        .sync_every(None);
    Arc::new(FileLog::open_on(&FaultyDisk::new(1), &config).unwrap())
}

/// A batch that is handed over while the flusher falls asleep, writes, or syncs becomes durable.
#[test]
fn a_batch_that_somebody_waits_for_becomes_durable() {
    check("a_batch_that_somebody_waits_for_becomes_durable", 3, || {
        let log = open();
        let ticket = log.append(&Batch::of(b"a"), None).unwrap();
        log.wait(ticket.last()).unwrap();
        log.close().unwrap();
    });
}

#[test]
fn batches_of_two_writers_become_durable_in_their_order() {
    check(
        "batches_of_two_writers_become_durable_in_their_order",
        2,
        || {
            let log = open();
            let other = Arc::clone(&log);
            let thread = thread::spawn(move || {
                let ticket = other.append(&Batch::of(b"a"), None).unwrap();
                other.wait(ticket.last()).unwrap();
            });
            let ticket = log.append(&Batch::of(b"b"), None).unwrap();
            log.wait(ticket.last()).unwrap();
            thread.join().unwrap();
            assert_eq!(log.durable(), Sequence::new(2));
            log.close().unwrap();
        },
    );
}

/// What was appended before the close is durable after it, though nobody waits.
#[test]
fn closing_beside_an_append_loses_nothing_that_was_taken() {
    check(
        "closing_beside_an_append_loses_nothing_that_was_taken",
        3,
        || {
            let log = open();
            let other = Arc::clone(&log);
            let thread = thread::spawn(move || other.append(&Batch::of(b"a"), None).is_ok());
            log.close().unwrap();
            let was_taken = thread.join().unwrap();
            assert_eq!(log.durable().get(), u64::from(was_taken));
        },
    );
}
