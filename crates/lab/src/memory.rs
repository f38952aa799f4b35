//! How much of the machine's memory a filled table or a burst of messages takes.
//!
//! A process that does nothing else makes the keys, weighs itself, fills the table, weighs itself,
//! removes every key, and weighs itself again. It reads two scales. The *resident set* includes
//! everything that the table costs, such as the allocator's slack and nodes not yet reclaimed. The
//! *allocator's count* is what the table has allocated and not freed; it does not depend on the
//! allocator.

use crate::{
    LabError,
    measure::{Places, Sample},
    workload::{FillJob, SignalsJob},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fs, io, os::unix::process::CommandExt, path::PathBuf, process::Command, time::Duration};
use tremula_sync::counting_allocator;

/// How to start the process that weighs itself: the program with the commands `fill` and `burst`.
#[derive(Clone, Debug)]
pub struct FillCommand {
    /// The program.
    pub program: PathBuf,
}

/// What the process that fills a table prints, as one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillReport {
    /// How many keys were inserted.
    pub operations: u64,
    /// How long that took.
    pub seconds: f64,
    /// What the filled table took.
    pub full: Memory,
    /// What it still took after every key was removed.
    pub emptied: Memory,
}

/// What the process that sends a burst prints, as one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BurstReport {
    /// How many messages were sent and received.
    pub messages: u64,
    /// How long that took.
    pub seconds: f64,
    /// The memory of the process before the burst.
    pub before: Memory,
    /// Its memory when everything was sent and nothing received.
    pub peak: Memory,
    /// Its memory when everything was received; the channel was still open.
    pub after: Memory,
}

/// A weight, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The resident set; null where the system does not report it.
    pub resident: Option<u64>,
    /// What was allocated and not freed; null where the allocator does not count.
    pub allocated: Option<u64>,
}

impl Memory {
    /// The memory of this process. The first call starts the count of allocations, so only growth
    /// after it is meaningful.
    #[must_use]
    pub fn now() -> Self {
        let resident = resident_bytes().ok();
        Self {
            resident,
            allocated: counting_allocator::live_bytes(),
        }
    }

    /// The growth since `before`; 0 if it has shrunk.
    #[must_use]
    pub fn growth_since(&self, before: &Self) -> Self {
        let growth = |before: Option<u64>, after: Option<u64>| {
            before
                .zip(after)
                .map(|(before, after)| after.saturating_sub(before))
        };
        Self {
            resident: growth(before.resident, self.resident),
            allocated: growth(before.allocated, self.allocated),
        }
    }
}

/// The names of the figures beside the resident set of the full table, which has its own field in a
/// record.
const ALLOCATED: &str = "allocated_bytes_per_key";
const RESIDENT_AFTER_REMOVAL: &str = "bytes_per_key_after_removal";
const ALLOCATED_AFTER_REMOVAL: &str = "allocated_bytes_per_key_after_removal";

impl From<FillReport> for Sample {
    fn from(report: FillReport) -> Self {
        let per_key = |bytes: u64| bytes as f64 / report.operations as f64;
        let mut sample = Self::new(report.operations, Duration::from_secs_f64(report.seconds));
        sample.bytes_per_key = report.full.resident.map(per_key);
        sample.figures = [
            (ALLOCATED, report.full.allocated),
            (RESIDENT_AFTER_REMOVAL, report.emptied.resident),
            (ALLOCATED_AFTER_REMOVAL, report.emptied.allocated),
        ]
        .into_iter()
        .filter_map(|(name, bytes)| Some((name.to_owned(), per_key(bytes?))))
        .collect();
        sample
    }
}

impl From<BurstReport> for Sample {
    fn from(report: BurstReport) -> Self {
        let growth = |after: Memory| after.growth_since(&report.before);
        let (peak, after) = (growth(report.peak), growth(report.after));
        let mut sample = Self::new(report.messages, Duration::from_secs_f64(report.seconds));
        sample.figures = [
            ("resident_mb_before", report.before.resident),
            ("resident_mb_peak", report.peak.resident),
            ("resident_mb_after", report.after.resident),
            ("allocated_mb_peak", peak.allocated),
            ("allocated_mb_after", after.allocated),
        ]
        .into_iter()
        .filter_map(|(name, bytes)| Some((name.to_owned(), bytes? as f64 / 1e6)))
        .collect();
        sample
    }
}

impl FillCommand {
    /// The program that this process runs.
    ///
    /// # Errors
    ///
    /// The path of this program cannot be found.
    pub fn this_one() -> Result<Self, LabError> {
        let program = this_program()?;
        Ok(Self { program })
    }

    /// Starts the process for the table of this name and waits for its report.
    ///
    /// # Errors
    ///
    /// The process could not be started, failed, or said something else.
    pub fn run(&self, engine: &str, job: &FillJob) -> Result<Sample, LabError> {
        let report: FillReport = self.ask(&[
            "fill",
            engine,
            "--key-set",
            job.key_set.name(),
            "--keys",
            &job.count.to_string(),
            "--threads",
            &job.threads.to_string(),
            "--seed",
            &job.seed.to_string(),
            "--run",
            &job.run.to_string(),
        ])?;
        Ok(report.into())
    }

    /// Starts the process for a burst through the channel of this name and waits for its report.
    ///
    /// # Errors
    ///
    /// The process could not be started, failed, or said something else.
    pub fn run_burst(&self, engine: &str, job: &SignalsJob) -> Result<Sample, LabError> {
        let report: BurstReport = self.ask(&[
            "burst",
            engine,
            "--keys",
            &job.messages.to_string(),
            "--threads",
            &job.senders.to_string(),
        ])?;
        Ok(report.into())
    }

    /// Starts the process and reads its report.
    ///
    /// The allocator of that process returns freed pages at once instead of after a second.
    /// Otherwise the resident set after removing everything would depend on luck.
    fn ask<R: DeserializeOwned>(&self, arguments: &[&str]) -> Result<R, LabError> {
        let program = self.program.display().to_string();
        let pin = Places::of_workers().are_chosen().then_some("--pin");
        let output = Command::new(&self.program)
            .args(arguments)
            .args(pin)
            .env("MIMALLOC_PURGE_DELAY", "0")
            // The terminal must send Ctrl-C to this process only, which ends after the measurement.
            .process_group(0)
            .output()
            .map_err(|error| LabError::Program {
                program: program.clone(),
                error,
            })?;
        let answer = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(answer.trim()).map_err(|_| LabError::Answer {
            program,
            answer: format!("{answer}{}", String::from_utf8_lossy(&output.stderr))
                .trim()
                .to_owned(),
        })
    }
}

/// The program that this process runs.
///
/// # Errors
///
/// The path of this program cannot be found.
pub(crate) fn this_program() -> Result<PathBuf, LabError> {
    std::env::current_exe().map_err(|error| LabError::Program {
        program: "this program".to_owned(),
        error,
    })
}

/// The resident bytes of this process.
///
/// It reads `smaps_rollup`, which walks the page tables: the cheaper figures of `/proc` lag behind
/// by up to 64 pages a thread.
///
/// # Errors
///
/// The system is not Linux 4.14 or later, or hides the file.
pub fn resident_bytes() -> Result<u64, LabError> {
    let refused = |error| LabError::ResidentSet { error };
    let text = fs::read_to_string("/proc/self/smaps_rollup").map_err(refused)?;
    text.lines()
        .find_map(|line| {
            line.strip_prefix("Rss:")?
                .strip_suffix("kB")?
                .trim()
                .parse()
                .ok()
        })
        .map(|kibibytes: u64| kibibytes * 1024)
        .ok_or_else(|| refused(io::Error::other("it has no line 'Rss: … kB'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_set_grows_with_what_is_touched() {
        let before = resident_bytes().unwrap();
        let block = vec![1_u8; 256 << 20];
        let after = resident_bytes().unwrap();
        // Half of the block, because other tests free memory meanwhile.
        assert!(after > before + (128 << 20), "{before} {after}");
        drop(block);
    }
}
