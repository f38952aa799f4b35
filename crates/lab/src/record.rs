//! The record of a measurement: the one JSON shape of results in this project.

use crate::{
    LabError, Settings,
    experiments::{Case, Experiment},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    thread,
};

/// One measurement: a contestant on a workload with a number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The experiment's name.
    pub experiment: String,
    /// The workload's name.
    pub workload: String,
    /// How the keys of operations were chosen; null where the workload leaves no choice.
    pub distribution: Option<String>,
    /// The contestant's name.
    pub engine: String,
    /// The key set's name, or that of the kind of message.
    pub key_set: String,
    /// How long its keys, or messages, are on average, in bytes.
    pub key_bytes: f64,
    /// How many threads (or Erlang processes) work at the same time; of messages, how many send.
    pub threads: usize,
    /// How many keys: inserted in all, or the size of the key range; or messages of a burst.
    pub keys: u64,
    /// The median of `runs`, in million operations a second.
    pub mops: f64,
    /// Each run's result in million operations a second, in the order of the runs.
    pub runs: Vec<f64>,
    /// For each run the part of the machine's cores, 0 to 1, that the program had before or after it,
    /// whichever is less. Empty in records of labs that did not measure it.
    #[serde(default)]
    pub shares: Vec<f64>,
    /// Million messages a second that were sent (the median), where messages are; else null.
    pub send_mops: Option<f64>,
    /// Bytes of memory for each key of the filled table (the median, where each run measures
    /// it); null where not measured.
    pub bytes_per_key: Option<f64>,
    /// What else was measured, by name: medians of the runs.
    pub figures: BTreeMap<String, f64>,
    /// How the run went whose result is the median, moment by moment, where that is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Moment>,
    /// What produced the record.
    pub made_by: MadeBy,
}

/// A moment of a measurement that shows how it goes over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// When it ended, in seconds from the start of the measurement.
    pub seconds: f64,
    /// What was done then, by name.
    pub phase: String,
    /// Million operations a second in it.
    pub mops: f64,
    /// What else was seen at its end, by name, such as the shape of the table.
    pub figures: BTreeMap<String, f64>,
}

/// What produced a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeBy {
    /// The version of the lab.
    pub version: String,
    /// Where it ran.
    pub machine: Machine,
    /// How it was set.
    pub configuration: Configuration,
    /// The seed that every random choice came from.
    pub seed: u64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's model name; `"unknown"` where the system does not tell.
    pub cpu: String,
    /// How many threads it runs at the same time.
    pub cores: usize,
    /// The release of the operating system's kernel; `"unknown"` where it does not tell.
    pub kernel: String,
}

/// How a measurement was set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// What the contestant is: project and version.
    pub engine_version: String,
    /// The contestants that took turns, in that order.
    pub engines: Vec<String>,
    /// How long each run lasted in seconds; null where it ended by itself.
    pub seconds: Option<f64>,
    /// How long each run was warmed up in seconds before that; null where it ended by itself.
    pub warm_up_seconds: Option<f64>,
    /// The build of the lab: `release`, or `debug` with assertions, whose figures mean little.
    pub build: String,
}

impl Machine {
    /// The machine that this process runs on.
    #[must_use]
    pub fn this_one() -> Self {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let model = cpus.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            (field.trim() == "model name").then(|| value.trim().to_owned())
        });
        Self {
            cpu: known(model.as_deref().unwrap_or_default()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            kernel: known(kernel.trim()),
        }
    }
}

fn known(text: &str) -> String {
    if text.is_empty() { "unknown" } else { text }.to_owned()
}

impl MadeBy {
    /// This lab on this machine, with these settings.
    #[must_use]
    pub fn this_lab(
        experiment: &dyn Experiment,
        case: &Case,
        settings: &Settings,
        engines: Vec<String>,
        engine_version: String,
    ) -> Self {
        let timed = experiment.is_timed(case);
        let span = settings.span();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this_one(),
            configuration: Configuration {
                engine_version,
                engines,
                seconds: timed.then_some(span.counted.as_secs_f64()),
                warm_up_seconds: timed.then_some(span.warm_up.as_secs_f64()),
                build: build().to_owned(),
            },
            seed: settings.seed,
        }
    }
}

/// The build of this program: `release` or `debug`.
#[must_use]
pub const fn build() -> &'static str {
    if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    }
}

/// A file that records are appended to, a line each.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
}

impl RecordFile {
    /// Opens the file for appending, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// It cannot be opened for writing.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self {
            path: path.to_owned(),
            file: file.map_err(|error| LabError::Write {
                path: path.to_owned(),
                error,
            })?,
        })
    }

    /// Appends the records in one write, so that a line is there as a whole or not at all.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LabError> {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record).expect("a record is plain data");
            lines.push(b'\n');
        }
        self.file
            .write_all(&lines)
            .map_err(|error| LabError::Write {
                path: self.path.clone(),
                error,
            })
    }
}

/// The records of a file, in their order.
///
/// # Errors
///
/// The file cannot be read, or has a line that is no record.
pub fn read(path: &Path) -> Result<Vec<Record>, LabError> {
    let text = fs::read_to_string(path).map_err(|error| LabError::Read {
        path: path.to_owned(),
        error,
    })?;
    let read = |(number, line)| {
        serde_json::from_str(line).map_err(|error| LabError::NoRecord {
            path: path.to_owned(),
            line: number + 1,
            error,
        })
    };
    text.lines().enumerate().map(read).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiments;
    use serde_json::Value;

    pub(crate) fn some_record(workload: &str, threads: usize, engine: &str, mops: f64) -> Record {
        let experiment = experiments::find("ordered_mix").unwrap();
        let case = Case {
            workload: "lookup",
            distribution: None,
            key_set: "dense_half_filled",
            threads,
            keys: 1 << 20,
        };
        Record {
            experiment: experiment.name().to_owned(),
            workload: workload.to_owned(),
            distribution: None,
            engine: engine.to_owned(),
            key_set: case.key_set.to_owned(),
            key_bytes: 8.0,
            threads,
            keys: 1 << 20,
            mops,
            runs: vec![mops * 0.9, mops, mops * 1.1],
            shares: vec![0.9, 1.0, 0.7],
            send_mops: None,
            bytes_per_key: None,
            figures: BTreeMap::new(),
            series: Vec::new(),
            made_by: MadeBy::this_lab(
                experiment,
                &case,
                &Settings::default(),
                vec![engine.to_owned()],
                "tremula".to_owned(),
            ),
        }
    }

    fn fields(value: &Value) -> Vec<&str> {
        let mut fields: Vec<_> = value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        fields.sort_unstable();
        fields
    }

    #[test]
    fn a_record_has_exactly_the_promised_fields() {
        let value = serde_json::to_value(some_record("lookup", 2, "locked", 1.5)).unwrap();
        assert_eq!(
            fields(&value),
            [
                "bytes_per_key",
                "distribution",
                "engine",
                "experiment",
                "figures",
                "key_bytes",
                "key_set",
                "keys",
                "made_by",
                "mops",
                "runs",
                "send_mops",
                "shares",
                "threads",
                "workload"
            ]
        );
        assert!(value["bytes_per_key"].is_null() && value["send_mops"].is_null());
        let made_by = &value["made_by"];
        assert_eq!(
            fields(made_by),
            ["configuration", "machine", "seed", "version"]
        );
        assert_eq!(fields(&made_by["machine"]), ["cores", "cpu", "kernel"]);
    }

    #[test]
    fn a_file_is_appended_to_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let records = ["a", "b", "c"].map(|engine| some_record("lookup", 1, engine, 0.1 + 0.2));
        RecordFile::open(&path)
            .unwrap()
            .append(&records[..1])
            .unwrap();
        RecordFile::open(&path)
            .unwrap()
            .append(&records[1..])
            .unwrap();
        assert_eq!(read(&path).unwrap(), records);
    }

    #[test]
    fn a_line_that_is_no_record_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.jsonl");
        let record = some_record("lookup", 1, "locked", 1.0);
        RecordFile::open(&path).unwrap().append(&[record]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text + "{\"engine\":3}\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.contains("records.jsonl', line 2, is no record"),
            "{error}"
        );
        let error = read(Path::new("/no/such/file")).unwrap_err();
        assert!(
            error.to_string().contains("cannot read '/no/such/file'"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = RecordFile::open(Path::new("/no/such/folder/x")).unwrap_err();
        assert!(error.to_string().contains("/no/such/folder/x"), "{error}");
    }
}
