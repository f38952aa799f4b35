//! Every byte of a small log, damaged in every way: the log either has exactly the first of its
//! batches, and only where a crash may have taken the others, or it refuses to open, and names the
//! file and the offset. It never has a wrong record.
#![cfg(not(any(loom, shuttle)))]

use tremula_log::{
    Batch, Chain, Config, Damage, FaultyDisk, FileLog, Log, OpenError, ReadError, Sequence,
};

/// Two of them are in the log. Each byte of both is damaged, and the log opened twice.
const SEGMENT: u64 = 1024;

fn config() -> Config {
    Config::default().segment_bytes(SEGMENT).prepared(0)
}

/// What is expected of each batch: the chain behind it, and its records.
type Batches = Vec<(Chain, Vec<Vec<u8>>)>;

/// A log of two segments. All of it is durable; each batch was when the next was written.
struct Original {
    disk: FaultyDisk,
    batches: Batches,
    was_closed: bool,
    /// The segments, in their order.
    segments: Vec<String>,
}

impl Original {
    fn new(count: usize, was_closed: bool) -> Self {
        let disk = FaultyDisk::new(7);
        let log = FileLog::open_on(&disk, &config()).unwrap();
        let mut batches = Vec::new();
        for number in 0..count {
            let mut batch = Batch::new();
            for index in 0..1 + number % 3 {
                batch.push(
                    format!("record {index} of batch {number}")
                        .repeat(1 + index)
                        .as_bytes(),
                );
            }
            let ticket = log.append(&batch, None).unwrap();
            log.wait(ticket.last()).unwrap();
            batches.push((
                ticket.chain(),
                batch.records().map(<[u8]>::to_vec).collect(),
            ));
        }
        if was_closed {
            log.close().unwrap();
        } else {
            disk.lose_power();
        }
        drop(log);
        let mut segments = disk.names();
        segments.retain(|name| name.ends_with(".segment"));
        Self {
            disk,
            batches,
            was_closed,
            segments,
        }
    }

    fn is_last(&self, name: &str) -> bool {
        self.segments.last().is_some_and(|last| last == name)
    }

    /// Opens a copy in which one file is changed.
    fn open_with(&self, name: &str, contents: Vec<u8>) -> Outcome {
        let disk = self.disk.copy();
        disk.replace(name, contents);
        open(&disk)
    }

    /// The first batches that there are, if nothing else is. Panics if there is anything else.
    fn count(&self, batches: &Batches) -> usize {
        assert!(batches.len() <= self.batches.len(), "batches were invented");
        assert_eq!(
            batches[..],
            self.batches[..batches.len()],
            "a record is wrong"
        );
        batches.len()
    }
}

enum Outcome {
    Opened(Batches),
    Refused(Damage),
}

/// Opens the log, reads it, appends to it, and opens it again.
fn open(disk: &FaultyDisk) -> Outcome {
    let log = match FileLog::open_on(disk, &config()) {
        Ok(log) => log,
        Err(OpenError::Damaged(damage)) => return Outcome::Refused(damage),
        Err(other) => panic!("it is damaged, not: {other}"),
    };
    let batches = read(&log);
    let ticket = log.append(&Batch::of(b"one more"), None).unwrap();
    log.wait(ticket.last()).unwrap();
    disk.lose_power();
    drop(log);
    let log = FileLog::open_on(disk, &config()).unwrap();
    assert_eq!(log.tail().chain, ticket.chain());
    assert_eq!(read(&log).len(), batches.len() + 1);
    Outcome::Opened(batches)
}

fn read(log: &FileLog) -> Batches {
    log.read(Sequence::FIRST)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.chain(), entry.records().map(<[u8]>::to_vec).collect()))
        .collect()
}

/// What may be missing after a damage.
#[derive(Clone, Copy, PartialEq)]
enum MayLose {
    Nothing,
    /// The batch that no later one says was durable.
    TheLast,
    /// What is in the last segment: nothing is left that says what was there.
    TheLastSegment,
}

/// Damages each byte of each segment, and of the note, in one way.
fn damage_each_byte(original: &Original, way: impl Fn(&[u8], usize) -> Vec<u8>, may: MayLose) {
    let (mut whole, mut shorter, mut refused) = (0, 0, 0);
    let mut names = original.segments.clone();
    names.extend(original.was_closed.then(|| "CLOSED".to_owned()));
    for name in &names {
        let contents = original.disk.contents(name);
        assert!(contents.len() <= 4096);
        let may = match original.is_last(name) && !original.was_closed {
            true => may,
            false => MayLose::Nothing,
        };
        for byte in 0..contents.len() {
            let damaged = way(&contents, byte);
            let same = damaged
                .iter()
                .zip(&contents)
                .take_while(|(one, other)| one == other);
            let changed = same.count();
            let is_changed = damaged != contents;
            match original.open_with(name, damaged) {
                Outcome::Opened(batches) => {
                    let missing = original.batches.len() - original.count(&batches);
                    let most = match may {
                        MayLose::Nothing => 0,
                        MayLose::TheLast => 1,
                        MayLose::TheLastSegment => usize::MAX,
                    };
                    assert!(
                        missing <= most,
                        "{name}, byte {byte}: {missing} batches are missing"
                    );
                    if missing == 0 {
                        whole += 1;
                    } else {
                        shorter += 1;
                    }
                }
                Outcome::Refused(damage) => {
                    assert!(
                        is_changed,
                        "{name}, byte {byte}: nothing is wrong, but: {damage}"
                    );
                    let file = damage.path.to_string_lossy();
                    assert_eq!(file, *name, "byte {byte}: {damage}");
                    assert!(damage.offset <= changed as u64, "byte {byte}: {damage}");
                    let text = damage.to_string();
                    let place = format!("{name} is damaged at offset {}", damage.offset);
                    assert!(text.contains(&place), "{text}");
                    assert!(text.contains("tremula log check"), "{text}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0, "nothing was refused");
    assert_eq!(shorter > 0, may != MayLose::Nothing && !original.was_closed);
    println!("{whole} whole, {shorter} shorter, {refused} refused");
}

fn on_each_original(test: impl Fn(&Original)) {
    for was_closed in [false, true] {
        let original = Original::new(8, was_closed);
        assert_eq!(original.segments.len(), 2, "{:?}", original.segments);
        test(&original);
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    on_each_original(|original| {
        let cut = |contents: &[u8], byte: usize| contents[..byte].to_vec();
        damage_each_byte(original, cut, MayLose::Nothing);
    });
}

#[test]
fn a_bit_flipped_in_any_byte_is_noticed() {
    on_each_original(|original| {
        let flip = |contents: &[u8], byte: usize| {
            let mut contents = contents.to_vec();
            contents[byte] ^= 1 << (byte % 8);
            contents
        };
        damage_each_byte(original, flip, MayLose::TheLast);
    });
}

#[test]
fn any_byte_that_is_zeroed_is_noticed() {
    on_each_original(|original| {
        let zero = |contents: &[u8], byte: usize| {
            let mut contents = contents.to_vec();
            contents[byte] = 0;
            contents
        };
        damage_each_byte(original, zero, MayLose::TheLast);
    });
}

/// The end of the last segment may be missing if the log was not closed: nothing is left then that
/// says that it was ever there.
#[test]
fn zeroes_from_any_byte_on_are_noticed() {
    on_each_original(|original| {
        let zero = |contents: &[u8], byte: usize| {
            let mut contents = contents.to_vec();
            contents[byte..].fill(0);
            contents
        };
        damage_each_byte(original, zero, MayLose::TheLastSegment);
    });
}

/// A sector that was lost, or has come from elsewhere.
#[test]
fn any_sector_that_is_replaced_is_noticed() {
    on_each_original(|original| {
        let replace = |contents: &[u8], byte: usize| {
            let mut contents = contents.to_vec();
            let begin = byte / 64 * 64;
            let other = (byte * 7919 % contents.len()) / 64 * 64;
            let end = (begin + 64).min(contents.len());
            let length = (end - begin).min(contents.len() - other);
            contents.copy_within(other..other + length, begin);
            contents
        };
        for name in &original.segments {
            let contents = original.disk.contents(name);
            for byte in (0..contents.len()).step_by(8) {
                let missing = match original.open_with(name, replace(&contents, byte)) {
                    Outcome::Opened(batches) => original.batches.len() - original.count(&batches),
                    Outcome::Refused(_) => 0,
                };
                let may = original.is_last(name) && !original.was_closed;
                assert!(missing == 0 || may, "{name}: {missing} batches are missing");
            }
        }
    });
}

#[test]
fn a_file_that_is_missing_is_noticed() {
    let original = Original::new(40, true);
    assert!(original.segments.len() > 3);
    // The first is missing as if it was truncated: see below.
    for name in &original.segments[1..] {
        let disk = original.disk.copy();
        disk.remove(name);
        assert!(
            matches!(open(&disk), Outcome::Refused(_)),
            "{name} is not missed"
        );
    }
}

#[test]
fn a_log_without_its_first_segment_says_where_it_begins() {
    let original = Original::new(40, true);
    let disk = original.disk.copy();
    disk.remove(&original.segments[0]);
    let log = FileLog::open_on(&disk, &config()).unwrap();
    assert!(log.first() > Sequence::FIRST);
    let error = log.read(Sequence::FIRST).err();
    assert!(matches!(error, Some(ReadError::Truncated { .. })));
}

/// Without a clean close the note does not help: the segment before says that there is another.
#[test]
fn the_last_segment_is_missed_after_a_crash_too() {
    let disk = FaultyDisk::new(3);
    let log = FileLog::open_on(&disk, &config()).unwrap();
    for _ in 0..40 {
        let ticket = log.append(&Batch::of(&[7; 100]), None).unwrap();
        log.wait(ticket.last()).unwrap();
    }
    disk.kill();
    drop(log);
    let mut names = disk.names();
    names.retain(|name| name.ends_with(".segment"));
    let last = names.pop().unwrap();
    disk.remove(&last);
    let error = FileLog::open_on(&disk, &config())
        .err()
        .unwrap()
        .to_string();
    let missing = format!("it is continued in {last}, which is missing");
    assert!(error.contains(&missing), "{error}");
    assert!(error.contains(names.last().unwrap()), "{error}");
}

/// Two logs in one directory, or one with a file of another: refused by name.
#[test]
fn a_segment_of_another_log_is_refused() {
    let (one, other) = (Original::new(8, false), Original::new(8, false));
    let name = &one.segments[1];
    let outcome = one.open_with(name, other.disk.contents(name));
    let Outcome::Refused(damage) = outcome else {
        panic!("it was not noticed");
    };
    assert!(damage.what.contains("it is of another log"), "{damage}");
    assert_eq!(damage.path.to_string_lossy(), *name);
}

/// A user's record that looks like a frame, byte for byte, is none: not where a write is torn, nor
/// where damage is searched.
#[test]
fn a_record_that_looks_like_a_frame_is_none() {
    let original = Original::new(8, false);
    let frames = original.disk.contents(&original.segments[1])[128..640].to_vec();
    let disk = FaultyDisk::new(9);
    let log = FileLog::open_on(&disk, &config()).unwrap();
    let first = log.append(&Batch::of(b"first"), None).unwrap();
    log.wait(first.last()).unwrap();
    // Whatever its alignment, one of eight records is aligned as frames are.
    let last = (0..8).map(|shift| {
        let record = [&vec![0; shift][..], &frames].concat();
        log.append(&Batch::of(&record), None).unwrap()
    });
    let last = last.last().unwrap();
    log.wait(last.last()).unwrap();
    disk.lose_power();
    drop(log);
    let name = disk
        .names()
        .into_iter()
        .rfind(|name| name.ends_with(".segment"))
        .unwrap();
    let mut contents = disk.contents(&name);
    // The head of its only frame: the bytes of the record are behind it.
    contents[128..192].fill(0);
    disk.replace(&name, contents);
    assert!(FileLog::open_on(&disk, &config()).is_ok());
}

/// Two histories of one log, by a copy of its directory: a frame of the other one is noticed,
/// though all its checksums fit.
#[test]
fn a_frame_of_another_history_is_refused() {
    let disk = FaultyDisk::new(3);
    let append = |disk: &FaultyDisk, records: &[&[u8]]| {
        let log = FileLog::open_on(disk, &config()).unwrap();
        for record in records {
            let ticket = log.append(&Batch::of(record), None).unwrap();
            log.wait(ticket.last()).unwrap();
        }
        disk.lose_power();
    };
    append(&disk, &[b"both"]);
    let other = disk.copy();
    append(&disk, &[b"one", b"last"]);
    append(&other, &[b"two", b"last"]);
    let name = disk.names().remove(0);
    let mut contents = disk.contents(&name);
    // Each frame has 64 bytes before its body of 8.
    let last = 128 + 2 * (64 + 8);
    contents[last..].copy_from_slice(&other.contents(&name)[last..]);
    disk.replace(&name, contents);
    let error = FileLog::open_on(&disk, &config())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("the frame continues other frames"),
        "{error}"
    );
    assert!(error.contains(&format!("at offset {last}")), "{error}");
}
