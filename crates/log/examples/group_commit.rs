//! How fast the log is beside a plain file: `cargo run --release -p tremula-log --example
//! group_commit -- [DIRECTORY] [ROUNDS] [RECORDS]`.
//!
//! Each round measures, one after the other on the same disk and in changing order, records of 100
//! random bytes:
//!
//! - the log: 4 writers, each with 1000 records under way, each record an append of its own; a
//!   writer waits for the record that it appended 1000 records ago. Its segments were written and
//!   truncated before, as in a log that has run for a while;
//! - a plain file that was filled with zeroes beforehand, written by one thread in as many writes
//!   as the log had syncs, and synced after each.
//!
//! It prints both medians, and the median of the rounds' ratios with the interval that has it with
//! 95 % confidence; and the median of a log that grows, which has to fill its segments meanwhile.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tremula_log::{Batch, Config, FileLog, Log, Sequence};

const RECORD: usize = 100;
const WRITERS: u64 = 4;
const UNDER_WAY: usize = 1000;
const SEGMENT: u64 = 64 << 20;

type Failed = Box<dyn Error + Send + Sync>;

/// Records that do not compress.
struct Random(u64);

impl Random {
    fn fill(&mut self, record: &mut [u8; RECORD]) {
        for word in record.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_le_bytes()[..word.len()]);
        }
    }
}

/// What the log does in a round.
struct Measured {
    /// Records a second in segments that are new, and in segments that were truncated.
    growing: f64,
    recycled: f64,
    /// Syncs of the latter.
    syncs: u64,
}

fn measure_log(directory: &Path, records: u64) -> Result<Measured, Failed> {
    let folder = directory.join("log");
    let needed = records * (RECORD as u64 + 8) / SEGMENT + 2;
    let config = Config::default()
        .segment_bytes(SEGMENT)
        .kept(needed as usize);
    let log = FileLog::open(&folder, &config)?;
    let growing = append(&log, records)?;
    log.truncate_below(log.tail().next)?;
    let before = log.stats().syncs;
    let recycled = append(&log, records)?;
    let syncs = log.stats().syncs - before;
    log.close()?;
    drop(log);
    std::fs::remove_dir_all(folder)?;
    Ok(Measured {
        growing,
        recycled,
        syncs,
    })
}

/// Records a second.
fn append(log: &FileLog, records: u64) -> Result<f64, Failed> {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let write = |writer: u64| {
            move || -> Result<(), Failed> {
                let mut random = Random(writer + 1);
                let mut record = [0; RECORD];
                let mut batch = Batch::new();
                let mut under_way = vec![Sequence::NONE; UNDER_WAY];
                for number in 0..records / WRITERS {
                    random.fill(&mut record);
                    batch.clear();
                    batch.push(&record);
                    let oldest = &mut under_way[number as usize % UNDER_WAY];
                    log.wait(*oldest)?;
                    *oldest = log.append(&batch, None)?.last();
                }
                log.wait(under_way.into_iter().max().unwrap_or_default())?;
                Ok(())
            }
        };
        let threads: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(write(writer)))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a writer has panicked")?)
    })?;
    Ok(records as f64 / begin.elapsed().as_secs_f64())
}

/// Records a second.
fn measure_plain(directory: &Path, records: u64, syncs: u64) -> Result<f64, Failed> {
    let path = directory.join("plain");
    let file = zeroed(&path, records * RECORD as u64)?;
    let each = records.div_ceil(syncs);
    let mut random = Random(1);
    let mut record = [0; RECORD];
    let mut buffer = Vec::new();
    let begin = Instant::now();
    let mut written = 0;
    while written < records {
        buffer.clear();
        let count = each.min(records - written);
        for _ in 0..count {
            random.fill(&mut record);
            buffer.extend_from_slice(&record);
        }
        file.write_all_at(&buffer, written * RECORD as u64)?;
        file.sync_data()?;
        written += count;
    }
    let rate = records as f64 / begin.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(rate)
}

fn zeroed(path: &PathBuf, length: u64) -> Result<File, Failed> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    let zeroes = vec![0; 1 << 20];
    let mut at = 0;
    while at < length {
        let count = zeroes.len().min((length - at) as usize);
        file.write_all_at(&zeroes[..count], at)?;
        at += count as u64;
    }
    file.sync_all()?;
    Ok(file)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

/// The values between which the median lies with 95 % confidence, by the binomial distribution; the
/// least and the greatest, if there are fewer than six.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let (mut rank, mut below, mut term) = (0, 0.0, 0.5_f64.powi(count as i32));
    loop {
        below += term;
        if below > 0.025 || rank >= count / 2 {
            break;
        }
        rank += 1;
        term *= (count - rank + 1) as f64 / rank as f64;
    }
    let outer = rank.saturating_sub(1);
    (sorted[outer], sorted[count - 1 - outer])
}

fn main() -> Result<(), Failed> {
    let mut arguments = env::args().skip(1);
    let directory = arguments.next().map_or_else(env::temp_dir, PathBuf::from);
    let rounds: usize = arguments.next().map_or(Ok(11), |rounds| rounds.parse())?;
    let records: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |records| records.parse())?;
    let directory = tempfile::tempdir_in(directory)?;
    let (mut logs, mut growing) = (Vec::new(), Vec::new());
    let (mut plains, mut ratios) = (Vec::new(), Vec::new());
    let mut syncs = measure_log(directory.path(), records)?.syncs;
    for round in 0..rounds {
        let (log, plain);
        if round % 2 == 0 {
            log = measure_log(directory.path(), records)?;
            plain = measure_plain(directory.path(), records, log.syncs)?;
        } else {
            plain = measure_plain(directory.path(), records, syncs)?;
            log = measure_log(directory.path(), records)?;
        }
        syncs = log.syncs;
        println!(
            "round {round}: log {:.0} k/s, growing {:.0} k/s, plain {:.0} k/s, {} records a sync",
            log.recycled / 1e3,
            log.growing / 1e3,
            plain / 1e3,
            records / syncs
        );
        ratios.push(log.recycled / plain);
        logs.push(log.recycled);
        growing.push(log.growing);
        plains.push(plain);
    }
    let (least, most) = interval(&ratios);
    println!(
        "log {:.0} k records/s, growing {:.0}, plain {:.0}: ratio {:.2} [{least:.2}, {most:.2}] of \
         {rounds} rounds of {records} records",
        median(&logs) / 1e3,
        median(&growing) / 1e3,
        median(&plains) / 1e3,
        median(&ratios)
    );
    Ok(())
}
