//! Follows experiments for the user: shows the progress, keeps the records, and stops when asked
//! to.

use super::interrupt::Interrupt;
use crate::{
    LabError, Watch,
    case::Case,
    estimate::TimeLeft,
    plan::Plan,
    record::{self, Record, RecordFile},
};
use indicatif::{ProgressBar, ProgressStyle};
use std::{collections::HashMap, path::Path};

/// The unit of the progress bar, in estimated seconds.
const TICK: f64 = 1e-3;

/// Shows the progress on standard error, if that is a terminal, and keeps the records of each
/// finished group.
pub(super) struct Follow {
    bar: ProgressBar,
    file: Option<RecordFile>,
    /// Records of an earlier run that need not be measured again, by the hash of their
    /// configuration.
    kept: HashMap<String, Record>,
    /// The records of the current experiment, including those from an earlier run.
    records: Vec<Record>,
    interrupt: Interrupt,
    time_left: TimeLeft,
}

impl Follow {
    /// Appends records to the file, if there is one. When resuming, does not measure again what the
    /// file already has.
    pub(super) fn new(path: Option<&Path>, resume: bool) -> Result<Self, LabError> {
        let file = path.map(RecordFile::open).transpose()?;
        let mut kept = HashMap::new();
        if let Some(file) = &file {
            if file.cut_off() > 0 {
                eprintln!(
                    "note: cut off {} bytes at the end of '{}': a record that was not written to \
                     its end",
                    file.cut_off(),
                    file.path().display()
                );
            }
            if resume {
                let hashed = |record: Record| (record.hash_configuration(), record);
                kept = record::read(file.path())?.into_iter().map(hashed).collect();
            }
        }
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
        let bar = ProgressBar::no_length();
        bar.set_style(style.expect("the template is right"));
        Ok(Self {
            bar,
            file,
            kept,
            records: Vec::new(),
            interrupt: Interrupt::listen()?,
            time_left: TimeLeft::of(&[]),
        })
    }

    /// Announces the plans that will be measured, one after the other.
    pub(super) fn expect(&mut self, plans: &[Plan]) {
        self.time_left = TimeLeft::of(plans);
    }

    /// Announces that the experiment with this index is measured now.
    pub(super) fn begin(&mut self, part: usize) {
        self.time_left.begin(part);
    }

    /// Returns the records of the experiment that has just ended.
    pub(super) fn end(&mut self) -> Vec<Record> {
        self.bar.set_message("");
        std::mem::take(&mut self.records)
    }

    /// Announces that all experiments are over.
    pub(super) fn close(&self) {
        self.bar.finish_and_clear();
    }

    /// Hides the progress bar, because something else shows the progress.
    pub(super) fn hide(&mut self) {
        self.bar = ProgressBar::hidden();
    }

    /// Runs `write` with the progress bar taken off the terminal meanwhile.
    pub(super) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }

    /// Says how to resume, if the user interrupted the run.
    pub(super) fn tell_resume<T>(&self, done: &Result<T, LabError>) {
        if let (Err(LabError::Interrupted), Some(file)) = (done, &self.file) {
            eprintln!(
                "note: what was finished is in '{}'; the same command with --resume goes on",
                file.path().display()
            );
        }
    }

    fn show(&self) {
        let ticks = |seconds: f64| (seconds / TICK) as u64;
        let (done, total) = self.time_left.progress();
        self.bar.set_length(ticks(total));
        self.bar.set_position(ticks(done));
    }
}

impl Watch for Follow {
    fn begins(&mut self, _measurements: u64) {
        self.show();
    }

    fn measures(&mut self, case: &Case, engine: &str) {
        self.time_left.measures(case);
        let Case {
            workload,
            key_set,
            threads,
            ..
        } = case;
        let left = about(self.time_left.seconds());
        self.bar.set_message(format!(
            "{left} left  {workload}, {key_set}, {threads} threads: {engine}"
        ));
    }

    fn wrong(&mut self, case: &Case, fault: &LabError) {
        let Case {
            workload, key_set, ..
        } = case;
        self.bar
            .suspend(|| eprintln!("note: no figure for {workload}, {key_set}: {fault}"));
    }

    fn keeps(&mut self, group: &[Record]) -> bool {
        let there = |record: &Record| self.kept.get(&record.hash_configuration()).cloned();
        let there: Vec<_> = group.iter().filter_map(there).collect();
        // The records of a group are written together, but the program may be killed while it
        // writes.
        let whole = there.iter().filter_map(|r| r.made_by.group_records).max();
        let is_whole = whole.is_some_and(|whole| there.len() >= whole);
        if is_whole {
            let record = &there[0];
            self.time_left.skip(|first| {
                let distribution = first
                    .distribution
                    .map(|distribution| distribution.to_string());
                (first.workload, first.key_set) == (&*record.workload, &*record.key_set)
                    && (first.threads, first.keys) == (record.threads, record.keys)
                    && distribution == record.distribution
            });
            self.records.extend(there);
        }
        is_whole
    }

    fn interrupted(&self) -> bool {
        self.interrupt.is_there()
    }

    fn measured(&mut self) {
        self.time_left.measured();
        self.show();
    }

    fn finished(&mut self, records: &[Record]) -> Result<(), LabError> {
        self.records.extend_from_slice(records);
        let is_new = |record: &&Record| !self.kept.contains_key(&record.hash_configuration());
        let new: Vec<_> = records.iter().filter(is_new).cloned().collect();
        match &mut self.file {
            Some(file) => file.append(&new),
            None => Ok(()),
        }
    }
}

/// A duration in a word or two.
pub(super) fn about(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    if seconds < 1.5 * MINUTE {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / MINUTE)
    }
}
