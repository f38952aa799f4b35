//! Logs on a disk that loses power, syncs, room and pages, against a model.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::env;
use std::thread;
use std::time::{Duration, Instant};
use tremula_log::{Batch, Chain, Config, FaultyDisk, FileLog, Log, Refused, Sequence, Stopped};

fn config(prepared: usize) -> Config {
    Config::default()
        .segment_bytes(2048)
        .prepared(prepared)
        .sync_every(None)
        .gather(Duration::from_micros(50))
        .retry_after(Duration::from_millis(1))
}

#[derive(Clone, Debug)]
enum Step {
    /// Batches, each of records of these lengths; then nobody waits.
    Append(Vec<Vec<u16>>),
    /// Waits for everything that was appended.
    Wait,
    LosePower,
    Kill,
    Close,
    /// Truncates below a part of the durable records, in 256ths.
    Truncate(u8),
    /// Lets a sync fail soon.
    FailSync(u64),
    /// Leaves the files as much room as they have, and so much more.
    Fill(u16),
    MakeRoom,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let batch = prop::collection::vec(0..300_u16, 1..5);
    let step = prop_oneof![
        8 => prop::collection::vec(batch, 1..12).prop_map(Step::Append),
        5 => Just(Step::Wait),
        3 => Just(Step::LosePower),
        1 => Just(Step::Kill),
        1 => Just(Step::Close),
        2 => any::<u8>().prop_map(Step::Truncate),
        1 => (0..4_u64).prop_map(Step::FailSync),
        1 => (0..5000_u16).prop_map(Step::Fill),
        1 => Just(Step::MakeRoom),
    ];
    prop::collection::vec(step, 1..40)
}

/// A batch that the log has taken.
struct Taken {
    last: Sequence,
    chain: Chain,
    records: Vec<Vec<u8>>,
}

struct Run {
    disk: FaultyDisk,
    config: Config,
    log: Option<FileLog>,
    taken: Vec<Taken>,
    /// The last record that somebody was promised.
    promised: Sequence,
    is_full: bool,
}

impl Run {
    fn new(seed: u64, prepared: usize) -> Self {
        let (disk, config) = (FaultyDisk::new(seed), config(prepared));
        let log = FileLog::open_on(&disk, &config).unwrap();
        Self {
            disk,
            config,
            log: Some(log),
            taken: Vec::new(),
            promised: Sequence::NONE,
            is_full: false,
        }
    }

    fn log(&self) -> &FileLog {
        self.log.as_ref().unwrap()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Append(batches) => batches.iter().for_each(|lengths| self.append(lengths)),
            Step::Wait => self.wait(),
            Step::LosePower => {
                // What was promised up to the moment of the loss.
                self.promised = self.promised.max(self.log().durable());
                self.disk.lose_power();
                self.open_again();
            }
            Step::Kill => {
                self.promised = self.promised.max(self.log().durable());
                self.disk.kill();
                self.open_again();
            }
            Step::Close => {
                self.disk.set_room(None);
                if self.log().close().is_ok() {
                    self.promised = self.log().tail().next.before();
                }
                self.open_again();
            }
            Step::Truncate(part) => {
                let below = self.log().durable().get() * u64::from(*part) / 256;
                let before = self.log().first();
                self.log().truncate_below(Sequence::new(below)).unwrap();
                let first = self.log().first();
                assert!(first >= before && first <= before.max(Sequence::new(below)));
            }
            Step::FailSync(after) => self.disk.fail_sync_after(*after),
            Step::Fill(more) => {
                let used = |name: &String| self.disk.contents(name).len() as u64;
                let used: u64 = self.disk.names().iter().map(used).sum();
                self.disk.set_room(Some(used + u64::from(*more)));
                self.is_full = true;
            }
            Step::MakeRoom => {
                self.disk.set_room(None);
                self.is_full = false;
            }
        }
    }

    fn append(&mut self, lengths: &[u16]) {
        let mut batch = Batch::new();
        for (index, length) in lengths.iter().enumerate() {
            let byte = (self.taken.len() + index) as u8;
            batch.push(&vec![byte; usize::from(*length)]);
        }
        let expected = self
            .taken
            .last()
            .map_or(Sequence::NONE, |taken| taken.last)
            .plus(1);
        let first = self.log().tail().next;
        assert_eq!(first, expected);
        match self.log().append(&batch, Some(first)) {
            Ok(ticket) => self.taken.push(Taken {
                last: ticket.last(),
                chain: ticket.chain(),
                records: batch.records().map(<[u8]>::to_vec).collect(),
            }),
            Err(Refused::Full(_)) => {}
            Err(Refused::Stopped(Stopped::Failed(failure))) => {
                assert!(failure.to_string().starts_with("cannot"), "{failure}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn wait(&mut self) {
        if self.is_full {
            // It would wait until there is room.
            self.disk.set_room(None);
            self.is_full = false;
        }
        let last = self.log().tail().next.before();
        match self.log().wait(last) {
            Ok(()) => self.promised = self.promised.max(last),
            Err(Stopped::Failed(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }

    /// Opens the log after a crash or a close, and compares it with what is known.
    fn open_again(&mut self) {
        self.log = None;
        self.is_full = false;
        self.disk.end_faults();
        let log = FileLog::open_on(&self.disk, &self.config).unwrap();
        let next = log.tail().next;
        assert!(
            next > self.promised,
            "{next} is next, {} was promised",
            self.promised
        );
        let count = self.taken.partition_point(|taken| taken.last < next);
        self.taken.truncate(count);
        let last = self.taken.last();
        assert_eq!(
            last.map_or(Sequence::FIRST, |taken| taken.last.plus(1)),
            next
        );
        assert_eq!(
            last.map_or(Chain::START, |taken| taken.chain),
            log.tail().chain
        );
        self.promised = log.durable();
        self.log = Some(log);
        self.check();
    }

    /// Reads everything that is durable.
    fn check(&self) {
        let log = self.log();
        let first = log.first();
        let mut reader = log.read(first).unwrap();
        let durable = log.durable();
        let expected = self.taken.iter().filter(|taken| taken.last >= first);
        for taken in expected.take_while(|taken| taken.last <= durable) {
            let entry = reader.next().unwrap().unwrap();
            assert_eq!((entry.last(), entry.chain()), (taken.last, taken.chain));
            assert!(entry.records().eq(taken.records.iter().map(Vec::as_slice)));
        }
    }
}

fn cases() -> u32 {
    if env::var_os("TREMULA_DEEP").is_some() {
        20_000
    } else {
        200
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() })]

    /// After each crash the log opens, has everything that was promised, and nothing that was not
    /// appended; of each batch all or nothing.
    #[test]
    fn what_was_promised_survives(seed: u64, prepared in 0..2_usize, steps in steps()) {
        let mut run = Run::new(seed, prepared);
        for step in &steps {
            run.step(step);
        }
        run.step(&Step::LosePower);
        run.step(&Step::Kill);
        run.step(&Step::Close);
    }
}

#[test]
fn a_failed_sync_ends_writing_and_is_never_tried_again() {
    let disk = FaultyDisk::new(5);
    let log = FileLog::open_on(&disk, &config(0)).unwrap();
    let kept = log.append(&Batch::of(b"kept"), None).unwrap();
    log.wait(kept.last()).unwrap();
    disk.fail_sync_after(0);
    let lost = log.append(&Batch::of(b"lost"), None).unwrap();
    let error = log.wait(lost.last()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("cannot sync 00000000000000000001.segment"),
        "{text}"
    );
    assert!(text.contains("then open the log again"), "{text}");
    let syncs = disk.syncs();
    assert!(matches!(
        log.append(&Batch::of(b"more"), None),
        Err(Refused::Stopped(Stopped::Failed(_)))
    ));
    assert!(matches!(log.close(), Err(Stopped::Failed(_))));
    assert_eq!(disk.syncs(), syncs, "it was tried again");
    assert_eq!(log.durable(), kept.last());
    // Reading goes on, of what is durable.
    assert_eq!(log.read(Sequence::FIRST).unwrap().count(), 1);
}

/// The system takes pages for written that it could not write, so only what is written again after
/// the restart is durable.
#[test]
fn what_a_failed_sync_has_left_is_written_again_after_a_restart() {
    for seed in 0..50 {
        let disk = FaultyDisk::new(seed);
        let log = FileLog::open_on(&disk, &config(0)).unwrap();
        disk.fail_sync_after(0);
        let ticket = log.append(&Batch::of(&[7; 1500]), None).unwrap();
        log.wait(ticket.last()).unwrap_err();
        drop(log);
        // The process ends, the machine goes on: the pages are there to be read.
        let log = FileLog::open_on(&disk, &config(0)).unwrap();
        assert_eq!(log.durable(), ticket.last());
        disk.lose_power();
        drop(log);
        let log = FileLog::open_on(&disk, &config(0)).unwrap();
        assert_eq!(log.durable(), ticket.last(), "it was promised, and is lost");
    }
}

#[test]
fn a_write_that_fails_ends_writing() {
    let disk = FaultyDisk::new(5);
    let log = FileLog::open_on(&disk, &config(0)).unwrap();
    disk.fail_writes();
    let lost = log.append(&Batch::of(b"lost"), None).unwrap();
    let text = log.wait(lost.last()).unwrap_err().to_string();
    assert!(
        text.contains("cannot write 00000000000000000001.segment"),
        "{text}"
    );
}

/// Hangs if writing does not go on when there is room.
#[test]
fn a_full_disk_refuses_writes_serves_reads_and_goes_on_by_itself() {
    for prepared in [0, 1] {
        let disk = FaultyDisk::new(5);
        let log = FileLog::open_on(&disk, &config(prepared)).unwrap();
        let record = [7; 200];
        disk.set_room(Some(3 * 2048));
        let (mut taken, mut reason) = (0_u64, None);
        // More than there is room for; what was taken and has no place waits.
        while reason.is_none() {
            match log.append(&Batch::of(&record), None) {
                Ok(_) => taken += 1,
                Err(refused) => reason = Some(refused),
            }
            thread::sleep(Duration::from_micros(200));
        }
        let text = reason.unwrap().to_string();
        assert!(
            text.contains("the log has no room for more: cannot fill spare."),
            "{text}"
        );
        assert!(text.contains("free some space"), "{text}");
        assert!(matches!(log.admits(200), Err(Refused::Full(_))));
        let read = log.read(Sequence::FIRST).unwrap().count();
        assert_eq!(read as u64, log.durable().get());

        disk.set_room(None);
        while let Err(refused) = log.append(&Batch::of(&record), None) {
            assert!(matches!(refused, Refused::Full(_)), "{refused}");
            thread::sleep(Duration::from_millis(1));
        }
        log.wait(Sequence::new(taken + 1)).unwrap();
        assert_eq!(log.read(Sequence::FIRST).unwrap().count() as u64, taken + 1);
        assert!(matches!(log.admits(200), Ok(())));
    }
}

/// Hangs if the log does not use what truncation has freed.
#[test]
fn truncation_makes_room_on_a_full_disk() {
    for prepared in [0, 1] {
        let disk = FaultyDisk::new(5);
        let log = FileLog::open_on(&disk, &config(prepared)).unwrap();
        disk.set_room(Some(4 * 2048));
        let mut taken = 0;
        // What was taken and has no place waits until truncation has made room for it.
        while log.durable() < Sequence::new(200) {
            if taken < 200 {
                match log.append(&Batch::of(&[7; 200]), None) {
                    Ok(_) => taken += 1,
                    Err(Refused::Full(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
            let soon = Instant::now() + Duration::from_millis(1);
            log.watermark()
                .wait_until(Sequence::new(taken), Some(soon))
                .unwrap();
            log.truncate_below(log.durable()).unwrap();
        }
        assert!(log.first() > Sequence::new(150));
    }
}

#[test]
fn closing_a_log_on_a_full_disk_says_what_is_lost() {
    for prepared in [0, 1] {
        let disk = FaultyDisk::new(5);
        let log = FileLog::open_on(&disk, &config(prepared)).unwrap();
        disk.set_room(Some(2048));
        // Longer than the segment, so that it needs another one.
        let ticket = log.append(&Batch::of(&[7; 5000]), None).unwrap();
        let error = log.close().unwrap_err().to_string();
        assert!(error.contains("cannot fill spare."), "{error}");
        assert!(log.durable() < ticket.last());
    }
}

/// With slow syncs, what waits meanwhile becomes durable by one more sync.
#[test]
fn writers_that_wait_share_a_sync() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 25;
    let disk = FaultyDisk::new(5);
    let log = FileLog::open_on(&disk, &Config::default().prepared(0)).unwrap();
    disk.slow_syncs(Duration::from_millis(1));
    let before = disk.syncs();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let ticket = log.append(&Batch::of(b"record"), None).unwrap();
                    log.wait(ticket.last()).unwrap();
                }
            });
        }
    });
    assert_eq!(log.durable(), Sequence::new(WRITERS * EACH));
    let syncs = disk.syncs() - before;
    assert!(syncs >= EACH, "a record was durable without a sync");
    assert!(
        syncs <= WRITERS * EACH / 2,
        "{syncs} syncs for {} records",
        WRITERS * EACH
    );
}

/// A torn write leaves a frame behind a hole. New frames fill the hole exactly; what is left behind
/// them continues other frames, and must not be found.
#[test]
fn what_a_torn_write_has_left_is_never_found_again() {
    let disk = FaultyDisk::new(5);
    let log = FileLog::open_on(&disk, &config(0)).unwrap();
    for (written, record) in [b"one.", b"two.", b"thr."].into_iter().enumerate() {
        let ticket = log.append(&Batch::of(record), None).unwrap();
        if written == 0 {
            log.wait(ticket.last()).unwrap();
        }
        while log.stats().frames <= written as u64 {
            thread::yield_now();
        }
    }
    disk.kill();
    drop(log);
    let name = disk.names().remove(0);
    let mut contents = disk.contents(&name);
    // Each frame has 64 bytes before its body of 8, behind the segment's 128.
    contents[200..272].fill(0);
    disk.replace(&name, contents);

    let log = FileLog::open_on(&disk, &config(0)).unwrap();
    assert_eq!(log.durable(), Sequence::FIRST);
    assert!(log.opened().cleared > 0);
    let ticket = log.append(&Batch::of(b"new."), None).unwrap();
    log.wait(ticket.last()).unwrap();
    disk.kill();
    drop(log);
    let log = FileLog::open_on(&disk, &config(0)).unwrap();
    assert_eq!(log.tail().chain, ticket.chain());
}
