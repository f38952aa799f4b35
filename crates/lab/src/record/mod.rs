//! The record of a measurement: the only JSON form of results in this project.

mod file;

pub use crate::measure::Moment;
pub use file::{RecordFile, read};

use crate::{
    Settings,
    gauge::QUIET,
    measure::median,
    simulate::{self, Profile},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, thread};

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
    /// The mean length of its keys, or messages, in bytes.
    pub key_bytes: f64,
    /// How many threads (or Erlang processes) work at the same time; for messages, how many send.
    pub threads: usize,
    /// How many keys: inserted in all, or the size of the key range; or the messages of a burst.
    pub keys: u64,
    /// The median of `runs`, in million operations a second.
    pub mops: f64,
    /// Each run's result in million operations a second, in the order of the runs.
    pub runs: Vec<f64>,
    /// For each run the fraction of the machine's cores, 0 to 1, that the program had before or
    /// after it, whichever is less. Empty in records of labs that did not measure it.
    #[serde(default)]
    pub shares: Vec<f64>,
    /// Whether other work had more than a fifth of the machine in most runs. `false` in records of
    /// labs that did not say; use [`is_disturbed`](Self::is_disturbed).
    #[serde(default)]
    pub disturbed: bool,
    /// Whether more threads worked than the machine has cores. `false` in records of labs that did
    /// not say; use [`is_oversubscribed`](Self::is_oversubscribed).
    #[serde(default)]
    pub oversubscribed: bool,
    /// The median of million messages a second that were sent; null where no messages are sent.
    pub send_mops: Option<f64>,
    /// Bytes of memory for each key of the filled table (the median, if each run measures it); null
    /// where not measured.
    pub bytes_per_key: Option<f64>,
    /// What else was measured, by name: medians of the runs.
    pub figures: BTreeMap<String, f64>,
    /// How the run with the median result went, moment by moment, where that is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Moment>,
    /// What was wrong in the contestant's answers, if anything; such a record has no figures.
    /// `None` in records of labs that left such contestants out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it is of virtual cores, on the machine that `made_by` names.
    #[serde(default, skip_serializing_if = "is_false")]
    pub simulated: bool,
    /// What produced the record.
    pub made_by: MadeBy,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Record {
    /// Whether at least half of the runs were not quiet.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.disturbed || median(&self.shares).is_some_and(|share| share < QUIET)
    }

    /// Whether more threads worked than the machine has cores.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.oversubscribed || self.threads > self.made_by.machine.cores
    }

    /// The machine whose virtual cores it ran on; `None` if it was measured.
    #[must_use]
    pub fn simulated_on(&self) -> Option<&str> {
        self.simulated.then_some(self.made_by.machine.cpu.as_str())
    }

    /// A hash of everything that decides what is measured and how, and of no result: the
    /// experiment, the case (workload, distribution, key set, threads, keys), the engine, the lab's
    /// version, the machine, the configuration (with all engines that take turns, the engine's
    /// version, times, runs, the compiler and the build), and the seed. Two records with the same
    /// hash are two measurements of the same thing.
    ///
    /// It is the 64-bit FNV-1a (Fowler, Noll and Vo) of these fields as JSON, in sixteen
    /// hexadecimal digits: the same on every machine and in every version that has the same fields.
    #[must_use]
    pub fn hash_configuration(&self) -> String {
        let made_by = &self.made_by;
        let case = (
            &self.experiment,
            &self.workload,
            &self.distribution,
            &self.key_set,
            self.threads,
            self.keys,
            &self.engine,
        );
        let made = (
            &made_by.version,
            &made_by.machine,
            &made_by.configuration,
            made_by.seed,
        );
        let bytes = serde_json::to_vec(&(case, made)).expect("a record is plain data");
        format!("{:016x}", fnv_1a(&bytes))
    }
}

/// FNV-1a with its offset and prime for 64 bits.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// What produced a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeBy {
    /// The version of the lab.
    pub version: String,
    /// The commit that the lab was built from, with a `+` appended if files differed from it.
    /// `None` in debug builds, outside a repository, and in records of earlier labs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The machine that it ran on.
    pub machine: Machine,
    /// Its configuration.
    pub configuration: Configuration,
    /// The seed that every random choice came from.
    pub seed: u64,
    /// The hash that [`Record::hash_configuration`] computes.
    #[serde(default)]
    pub configuration_hash: Option<String>,
    /// How many records this record's group of cases has, including this one. They are written
    /// together, and measured again if some are missing.
    #[serde(default)]
    pub group_records: Option<usize>,
    /// When the first run of the group began: seconds since 1970, UTC.
    #[serde(default)]
    pub started: Option<u64>,
    /// The system's load average over a minute (how many threads wanted to run), when the first run
    /// of the group began and when the last one ended; null where the system does not report it.
    #[serde(default)]
    pub load_average: Option<[f64; 2]>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's model name; `"unknown"` where the system does not report it.
    pub cpu: String,
    /// How many threads it runs at the same time.
    pub cores: usize,
    /// The release of the operating system's kernel; `"unknown"` where it is not reported.
    pub kernel: String,
}

/// The configuration of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The project and version of the contestant.
    pub engine_version: String,
    /// The contestants that took turns. Each run has its own order, which comes from the seed. (In
    /// records of earlier labs always this order.)
    pub engines: Vec<String>,
    /// How long each run lasted in seconds; null where it ended by itself.
    pub seconds: Option<f64>,
    /// How long the warm-up of each run took in seconds; null where it ended by itself.
    pub warm_up_seconds: Option<f64>,
    /// The build of the lab: the profile `measure` or `release`; or `debug` for a build with
    /// assertions, whose figures mean little.
    pub build: String,
    /// The allocator of the lab's process, if it is not mimalloc: `system`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<String>,
    /// The compiler that built the lab.
    #[serde(default)]
    pub rustc: Option<String>,
    /// How many runs there are.
    #[serde(default)]
    pub runs: Option<usize>,
    /// How many times a disturbed run may be repeated.
    #[serde(default)]
    pub repeats: Option<usize>,
    /// Whether each working thread was pinned to a processor.
    #[serde(default)]
    pub pinned: bool,
    /// The workloads measured one after the other on one table, in order; empty if there is only
    /// one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_table: Vec<String>,
}

/// What a virtual machine has in the place of a kernel's release.
const SIMULATED: &str = "simulated";

impl Machine {
    /// The machine that this profile describes.
    #[must_use]
    pub fn simulated(profile: &Profile) -> Self {
        Self {
            cpu: profile.name.clone(),
            cores: profile.all_threads(),
            kernel: SIMULATED.to_owned(),
        }
    }

    /// The system, in words: that it is Linux, and its release, or that the machine is a virtual
    /// one.
    #[must_use]
    pub fn system(&self) -> String {
        match self.kernel.as_str() {
            SIMULATED => "simulated".to_owned(),
            release => format!("Linux {release}"),
        }
    }

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
    /// This lab on this machine, with these settings. `timed` says whether a run ends when its time
    /// is up.
    #[must_use]
    pub fn this_lab(
        timed: bool,
        settings: &Settings,
        engines: Vec<String>,
        engine_version: String,
    ) -> Self {
        let span = settings.span();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("TREMULA_LAB_COMMIT").map(str::to_owned),
            machine: simulate::profile().map_or_else(Machine::this_one, Machine::simulated),
            configuration: Configuration {
                engine_version,
                engines,
                seconds: timed.then_some(span.counted.as_secs_f64()),
                warm_up_seconds: timed.then_some(span.warm_up.as_secs_f64()),
                build: build().to_owned(),
                allocator: allocator().map(str::to_owned),
                rustc: Some(RUSTC.to_owned()),
                runs: Some(settings.runs),
                repeats: Some(settings.repeats),
                pinned: settings.pin,
                one_table: Vec::new(),
            },
            seed: settings.seed,
            configuration_hash: None,
            group_records: None,
            started: None,
            load_average: None,
        }
    }
}

/// What compiled this program.
const RUSTC: &str = env!("TREMULA_LAB_RUSTC");

/// The name of a build whose figures mean little.
pub const DEBUG: &str = "debug";

/// The build of this program: `debug`, `measure` or `release`.
#[must_use]
pub const fn build() -> &'static str {
    if cfg!(debug_assertions) {
        DEBUG
    } else if cfg!(measure) {
        "measure"
    } else {
        "release"
    }
}

/// The allocator of this program, if it is not mimalloc.
#[must_use]
pub const fn allocator() -> Option<&'static str> {
    if cfg!(feature = "system-allocator") {
        Some("system")
    } else {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiments;
    use serde_json::Value;

    pub(crate) fn some_record(workload: &str, threads: usize, engine: &str, mops: f64) -> Record {
        let experiment = experiments::find("ordered_mix").unwrap();
        Record {
            experiment: experiment.name().to_owned(),
            workload: workload.to_owned(),
            distribution: None,
            engine: engine.to_owned(),
            key_set: "dense_half_filled".to_owned(),
            key_bytes: 8.0,
            threads,
            keys: 1 << 20,
            mops,
            runs: vec![mops * 0.9, mops, mops * 1.1],
            shares: vec![0.9, 1.0, 0.7],
            disturbed: false,
            oversubscribed: false,
            send_mops: None,
            bytes_per_key: None,
            figures: BTreeMap::new(),
            series: Vec::new(),
            error: None,
            simulated: false,
            made_by: MadeBy::this_lab(
                true,
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
        let mut record = some_record("lookup", 2, "locked", 1.5);
        record.made_by.commit = Some("1234567".to_owned());
        let value = serde_json::to_value(&record).unwrap();
        assert_eq!(
            fields(&value),
            [
                "bytes_per_key",
                "distribution",
                "disturbed",
                "engine",
                "experiment",
                "figures",
                "key_bytes",
                "key_set",
                "keys",
                "made_by",
                "mops",
                "oversubscribed",
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
            [
                "commit",
                "configuration",
                "configuration_hash",
                "group_records",
                "load_average",
                "machine",
                "seed",
                "started",
                "version"
            ]
        );
        assert_eq!(fields(&made_by["machine"]), ["cores", "cpu", "kernel"]);
    }

    #[test]
    fn the_hash_is_of_what_was_asked_for_and_not_of_what_came_out() {
        let record = some_record("lookup", 2, "locked", 1.5);
        let hash = record.hash_configuration();
        assert!(hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let mut again = some_record("lookup", 2, "locked", 9.0);
        again.made_by.started = Some(1);
        again.made_by.commit = Some("1234567".to_owned());
        again.error = Some("wrong".to_owned());
        again.disturbed = true;
        assert_eq!(again.hash_configuration(), hash);
        let changes: [fn(&mut Record); 11] = [
            |record| record.workload.push('x'),
            |record| record.distribution = Some("zipfian".to_owned()),
            |record| record.engine.push('x'),
            |record| record.threads += 1,
            |record| record.keys += 1,
            |record| record.made_by.seed += 1,
            |record| record.made_by.version.push('x'),
            |record| record.made_by.machine.cores += 1,
            |record| record.made_by.configuration.pinned = true,
            |record| record.made_by.configuration.allocator = Some("another".to_owned()),
            |record| record.made_by.configuration.engine_version.push('x'),
        ];
        for change in changes {
            let mut other = record.clone();
            change(&mut other);
            assert_ne!(other.hash_configuration(), hash, "{other:?}");
        }
    }

    #[test]
    fn the_hash_function_is_that_of_its_authors() {
        // Some of their list of test vectors.
        assert_eq!(fnv_1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_F739_67E8);
    }
}
