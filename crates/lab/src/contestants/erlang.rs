//! ETS tables of type `ordered_set` in a real Erlang: the store that this project learns from.
//!
//! One Erlang is started, with a program of ours (`erlang/lab.escript`), and kept for the whole
//! run; requests and answers are lines on its standard input and output. Streams and keys
//! reach it as files in a folder of its own, in the same bytes that the Rust side reads. They
//! are loaded, and removed, before the time runs.

use super::{Contestant, ContestantName};
use crate::{
    LabError,
    keys::{KeySet, Keys},
    measure::Sample,
    workload::{self, FillJob, Job, MixJob, SEQUENCE_STEPS},
};
use std::{
    cell::RefCell,
    env, fs,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    time::Duration,
};
use tempfile::TempDir;

const PROGRAM: &str = include_str!("../../erlang/lab.escript");
const ESCRIPT: &str = "escript";
const MISSING: &str = "'escript' is not on the PATH; install Erlang \
                       (Debian and Ubuntu: apt-get install erlang-base)";

/// Random keys are cut to this many bits for Erlang, whose integers take memory of their own
/// from 60 bits on.
const SMALL_INTEGER_BITS: u32 = 59;

/// A kind of ETS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ets {
    /// `{write_concurrency, false}`: one lock a table, over an AVL tree.
    Old,
    /// `{write_concurrency, true}`: the contention-adapting search tree.
    New,
}

impl Ets {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Old, Self::New];

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Old => "erlang_ets_old",
            Self::New => "erlang_ets_new",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Old => "an ETS ordered_set without write_concurrency, in Erlang",
            Self::New => "an ETS ordered_set with write_concurrency, in Erlang",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

/// What this machine lacks to run Erlang, and how to get it.
pub(super) fn missing() -> Option<&'static str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let there = env::split_paths(&path).any(|folder| folder.join(ESCRIPT).is_file());
    (!there).then_some(MISSING)
}

/// Why it cannot take part in an experiment with keys of a set; `None` if it can.
pub(super) fn refuses(experiment: &str, key_set: Option<KeySet>) -> Option<&'static str> {
    match experiment {
        "insert_disjoint_ranges" | "ordered_mix" => None,
        "memory" if key_set.is_none_or(KeySet::is_integers) => None,
        "memory" => Some("the lab gives it integers only"),
        _ => Some("the lab's Erlang program does not have this experiment"),
    }
}

/// A running Erlang with the lab's program in it. Clones share it; it ends with the last.
#[derive(Clone, Debug)]
pub struct ErlangMachine {
    line: Rc<RefCell<Line>>,
    version: String,
}

/// The line to the running Erlang.
#[derive(Debug)]
struct Line {
    child: Child,
    /// `None` only while the machine ends: closing it tells Erlang to leave.
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: TempDir,
}

impl ErlangMachine {
    /// Starts Erlang and waits until it has compiled the program.
    ///
    /// # Errors
    ///
    /// Erlang is missing or does not start.
    pub fn start() -> Result<Self, LabError> {
        let folder = TempDir::with_prefix("tremula-lab-").map_err(failed)?;
        let program = folder.path().join("lab.escript");
        fs::write(&program, PROGRAM).map_err(failed)?;
        let mut child = Command::new(ESCRIPT)
            .arg(&program)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| gone("no output"))?;
        let mut line = Line {
            child,
            requests,
            answers: BufReader::new(answers),
            folder,
        };
        let greeting = line.read()?;
        let version = greeting
            .strip_prefix("ready ")
            .ok_or_else(|| gone(&greeting))?
            .to_owned();
        // It is compiled and in memory; nothing is left behind if this process is killed.
        fs::remove_file(&program).map_err(failed)?;
        Ok(Self {
            line: Rc::new(RefCell::new(line)),
            version,
        })
    }

    /// A contestant of this kind on this machine.
    #[must_use]
    pub fn table(&self, kind: Ets) -> impl Contestant + use<> {
        EtsTable {
            machine: self.clone(),
            kind,
        }
    }
}

impl Line {
    /// Sends a request, with files for it, and waits for the sample.
    fn ask(&mut self, request: &str, files: &[(&str, Vec<u8>)]) -> Result<Answer, LabError> {
        for (name, bytes) in files {
            fs::write(self.folder.path().join(name), bytes).map_err(failed)?;
        }
        let requests = self.requests.as_mut().ok_or_else(|| gone("it has left"))?;
        writeln!(requests, "{request}").map_err(failed)?;
        requests.flush().map_err(failed)?;
        let answer = self.read()?;
        Answer::parse(&answer).ok_or_else(|| LabError::Answer {
            program: ESCRIPT.to_owned(),
            answer: format!("{answer} to '{request}'"),
        })
    }

    fn read(&mut self) -> Result<String, LabError> {
        let mut answer = String::new();
        match self.answers.read_line(&mut answer).map_err(failed)? {
            0 => Err(gone("it ended; see its message above")),
            _ => Ok(answer.trim_end().to_owned()),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        drop(self.requests.take());
        // It leaves at the end of its input; there is nothing to do about it if it cannot.
        let _ = self.child.wait();
    }
}

/// An answer `ok NANOSECONDS OPERATIONS BYTES`.
#[derive(Debug, PartialEq)]
struct Answer {
    elapsed: Duration,
    operations: u64,
    bytes: u64,
}

impl Answer {
    fn parse(answer: &str) -> Option<Self> {
        let mut words = answer.strip_prefix("ok ")?.split(' ').map(str::parse);
        let parsed = Self {
            elapsed: Duration::from_nanos(words.next()?.ok()?),
            operations: words.next()?.ok()?,
            bytes: words.next()?.ok()?,
        };
        words.next().is_none().then_some(parsed)
    }
}

fn failed(error: io::Error) -> LabError {
    LabError::Program {
        program: ESCRIPT.to_owned(),
        error,
    }
}

fn gone(answer: &str) -> LabError {
    failed(io::Error::other(answer.to_owned()))
}

/// One kind of table on a running machine.
struct EtsTable {
    machine: ErlangMachine,
    kind: Ets,
}

impl Contestant for EtsTable {
    fn name(&self) -> ContestantName {
        ContestantName::Erlang(self.kind)
    }

    fn version(&self) -> String {
        self.machine.version.clone()
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let kind = self.kind.word();
        let (request, files) = match job {
            Job::InsertRanges { keys, threads } => ranges(kind, *keys, *threads),
            Job::Mix(job) => mix(kind, job),
            Job::Fill(job) => fill(kind, job),
            Job::Ycsb(_) | Job::RangeUpdate(_) | Job::Append(_) | Job::Batch(_) => {
                return Err(self.cannot());
            }
        };
        let answer = self.machine.line.borrow_mut().ask(&request, &files)?;
        let mut sample = Sample::new(answer.operations, answer.elapsed);
        if let Job::Fill(job) = job {
            sample.bytes_per_key = Some(answer.bytes as f64 / job.count as f64);
        }
        Ok(vec![Ok(sample)])
    }
}

impl EtsTable {
    /// The answer to a job that [`refuses`] keeps away.
    const fn cannot(&self) -> LabError {
        LabError::Unavailable {
            engine: self.kind.name(),
            missing: "the lab's Erlang program does not have this experiment",
        }
    }
}

type Request = (String, Vec<(&'static str, Vec<u8>)>);

fn ranges(kind: &str, keys: u64, threads: usize) -> Request {
    (format!("ranges {kind} {keys} {threads}"), Vec::new())
}

fn mix(kind: &str, job: &MixJob) -> Request {
    let request = format!(
        "mix {kind} {} {} {} {SEQUENCE_STEPS} {} {}",
        job.range,
        workload::rotation_step(job.range),
        job.streams.len(),
        job.span.warm_up.as_millis(),
        job.span.counted.as_millis().max(1),
    );
    let prefill = job.prefill.iter().flat_map(|key| key.to_le_bytes());
    let operations = job.streams.iter().flatten();
    let streams = operations.flat_map(|operation| operation.to_bytes());
    let files = vec![
        ("prefill", prefill.collect()),
        ("streams", streams.collect()),
    ];
    (request, files)
}

fn fill(kind: &str, job: &FillJob) -> Request {
    if job.key_set == KeySet::MonoInt {
        return ranges(kind, job.count, job.threads);
    }
    let keys = match job.make_keys() {
        Keys::Integers(keys) => keys.loaded,
        Keys::Texts(_) => Vec::new(),
    };
    let cut = match job.key_set {
        KeySet::RandInt => u64::BITS - SMALL_INTEGER_BITS,
        _ => 0,
    };
    let bytes = keys.into_iter().flat_map(|key| (key >> cut).to_le_bytes());
    (
        format!("fill {kind} {}", job.threads),
        vec![("keys", bytes.collect())],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Kind;

    #[test]
    fn both_sides_number_the_kinds_alike() {
        for (name, kind) in [
            ("LOOKUP", Kind::Lookup),
            ("INSERT", Kind::Insert),
            ("REMOVE", Kind::Remove),
            ("SEQUENCE", Kind::Sequence),
        ] {
            let definition = format!("-define({name}, {}).", kind as u32);
            assert!(PROGRAM.contains(&definition), "{definition}");
        }
    }

    #[test]
    fn only_a_whole_answer_is_an_answer() {
        assert_eq!(
            Answer::parse("ok 1500 3 112"),
            Some(Answer {
                elapsed: Duration::from_nanos(1500),
                operations: 3,
                bytes: 112,
            })
        );
        for wrong in ["", "ok", "ok 1 2", "ok 1 2 3 4", "ok 1 2 x", "error badarg"] {
            assert_eq!(Answer::parse(wrong), None, "{wrong}");
        }
    }
}
