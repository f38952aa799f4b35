//! What a filled table takes of the machine's memory.
//!
//! Measured as the growth of the resident set of a process that does nothing else: it makes
//! the keys, reads its resident set, fills the table, and reads it again. So the figure has
//! everything in it that the table costs (the allocator's slack, nodes not yet reclaimed),
//! and no earlier table whose freed pages could be used again.

use crate::{
    LabError,
    measure::Sample,
    workload::{FillJob, FillKeys},
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::{ffi::OsString, fs, io, path::PathBuf, process::Command, time::Duration};

/// How to start the process that fills a table: this program, up to the word `fill`.
#[derive(Clone, Debug)]
pub struct FillCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before `fill`.
    pub arguments: Vec<OsString>,
}

/// What the process prints, as one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillReport {
    /// How many keys were inserted.
    pub operations: u64,
    /// How long that took.
    pub seconds: f64,
    /// Growth of the resident set, in bytes; null where the system does not tell.
    pub resident_bytes: Option<u64>,
}

impl FillCommand {
    /// The command that this process was started as: its program, and what stands before the
    /// word `run`.
    ///
    /// # Errors
    ///
    /// The path of this program cannot be found.
    pub fn this_one() -> Result<Self, LabError> {
        Ok(Self {
            program: std::env::current_exe().map_err(|error| LabError::Program {
                program: "this program".to_owned(),
                error,
            })?,
            arguments: std::env::args_os()
                .skip(1)
                .take_while(|argument| argument != "run")
                .collect(),
        })
    }

    /// Starts the process for the in-process engine of this name and waits for its report.
    ///
    /// # Errors
    ///
    /// The process could not be started, failed, or said something else.
    pub fn run(&self, engine: &str, job: &FillJob) -> Result<Sample, LabError> {
        let program = self.program.display().to_string();
        let keys = job.keys.to_possible_value();
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .args(["fill", engine])
            .args(["--order", keys.as_ref().map_or("", |keys| keys.get_name())])
            .args(["--keys", &job.count.to_string()])
            .args(["--threads", &job.threads.to_string()])
            .args(["--seed", &job.seed.to_string()])
            .args(["--run", &job.run.to_string()])
            .output()
            .map_err(|error| LabError::Program {
                program: program.clone(),
                error,
            })?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let report: FillReport =
            serde_json::from_str(answer.trim()).map_err(|_| LabError::Answer {
                program,
                answer: format!("{answer}{}", String::from_utf8_lossy(&output.stderr))
                    .trim()
                    .to_owned(),
            })?;
        Ok(Sample {
            operations: report.operations,
            elapsed: Duration::from_secs_f64(report.seconds),
            bytes_per_key: report
                .resident_bytes
                .map(|bytes| bytes as f64 / report.operations as f64),
        })
    }
}

/// The bytes of this process that are in memory.
///
/// From `smaps_rollup`, which walks the page tables: the cheaper figures of `/proc` lag behind
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

impl FillKeys {
    /// The name of the key set in a record.
    #[must_use]
    pub const fn key_set(self) -> &'static str {
        match self {
            Self::Ranges => "disjoint_ranges",
            Self::Random => "random_u64",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_set_grows_with_what_is_touched() {
        let before = resident_bytes().unwrap();
        let block = vec![1_u8; 256 << 20];
        let after = resident_bytes().unwrap();
        // Half of it, since other tests free memory meanwhile.
        assert!(after > before + (128 << 20), "{before} {after}");
        drop(block);
    }
}
