//! Running one command quietly: its output is kept, its time is limited, and nothing that it
//! started outlives it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, PipeReader, pipe};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a command may take when nothing else is said: no step comes near it.
const USUAL_LIMIT: Duration = Duration::from_secs(50 * 60);
/// How often a command that runs long says where it is.
const HEARTBEAT: Duration = Duration::from_secs(60);
/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(50);
/// How long a finished command's own children may keep its output open before they are ended.
const GRACE: Duration = Duration::from_secs(2);

/// The process groups of the commands that run now. Ended when a signal ends us.
static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A command to run.
#[derive(Clone)]
pub(crate) struct Job {
    program: String,
    arguments: Vec<String>,
    set: Vec<(String, String)>,
    unset: Vec<&'static str>,
    folder: PathBuf,
    limit: Duration,
}

/// How a command ended.
pub(crate) struct Ended {
    /// What it printed on both streams, in order.
    pub(crate) output: String,
    pub(crate) ending: Ending,
}

/// Success, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(ExitStatus),
    TimedOut(Duration),
}

impl Job {
    pub(crate) fn new(program: &str, folder: impl Into<PathBuf>) -> Self {
        Self {
            program: program.to_owned(),
            arguments: Vec::new(),
            set: Vec::new(),
            unset: Vec::new(),
            folder: folder.into(),
            limit: USUAL_LIMIT,
        }
    }

    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.set.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn without_env(mut self, name: &'static str) -> Self {
        self.unset.push(name);
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The command as one would type it.
    pub(crate) fn told(&self) -> String {
        let set = self
            .set
            .iter()
            .map(|(name, value)| match value.contains(' ') {
                true => format!("{name}='{value}' "),
                false => format!("{name}={value} "),
            });
        format!(
            "{}{} {}",
            set.collect::<String>(),
            self.program,
            self.arguments.join(" ")
        )
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self) -> Result<Ended, String> {
        self.run_for("")
    }

    /// Runs the command to its end. If that takes long, says in which step of this name it is.
    pub(crate) fn run_for(&self, step: &str) -> Result<Ended, String> {
        let failed = |error| format!("`{}` could not run: {error}", self.told());
        let begun = Instant::now();
        let (reader, mut child) = self.spawn().map_err(failed)?;
        let group = child.id();
        running().insert(group);
        let ended = watch(&mut child, &lines_of(reader), begun, self.limit, step).map_err(failed);
        // Whatever the command left running ends with it.
        end(group);
        running().remove(&group);
        ended
    }

    fn spawn(&self) -> std::io::Result<(PipeReader, Child)> {
        let (reader, writer) = pipe()?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .envs(self.set.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0);
        for name in &self.unset {
            command.env_remove(name);
        }
        // `command` holds the writing ends; dropping it here lets the reader see the end.
        Ok((reader, command.spawn()?))
    }
}

fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
            line.clear();
        }
    });
    receiver
}

fn watch(
    child: &mut Child,
    lines: &Receiver<String>,
    begun: Instant,
    limit: Duration,
    step: &str,
) -> std::io::Result<Ended> {
    let mut output = String::new();
    let mut exited: Option<(ExitStatus, Instant)> = None;
    let mut next_beat = HEARTBEAT;
    loop {
        let closed = match lines.recv_timeout(POLL) {
            Ok(line) => {
                output.push_str(&line);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(POLL);
                true
            }
        };
        if exited.is_none() {
            exited = child.try_wait()?.map(|status| (status, Instant::now()));
        }
        if let Some((status, when)) = exited
            && (closed || when.elapsed() > GRACE)
        {
            return Ok(Ended {
                output,
                ending: Ending::Exited(status),
            });
        }
        if begun.elapsed() > limit {
            end(child.id());
            child.wait()?;
            output.extend(lines.try_iter());
            return Ok(Ended {
                output,
                ending: Ending::TimedOut(limit),
            });
        }
        if begun.elapsed() > next_beat {
            next_beat += HEARTBEAT;
            let last = output.lines().next_back().unwrap_or_default().trim();
            let last: String = last.chars().take(100).collect();
            println!("    {step} {:4} s: {last}", begun.elapsed().as_secs());
        }
    }
}

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every process of a group, if there is one.
fn end(group: u32) {
    let _ = Command::new("sh")
        .args(["-c", &format!("kill -9 -{group}")])
        .stderr(Stdio::null())
        .status();
}

/// Has Ctrl-C and SIGTERM end the running command too, which is in a process group of its own.
pub(crate) fn stop_jobs_on_signals() -> Result<(), String> {
    use signal_hook::{consts, iterator::Signals};
    let mut signals = Signals::new([consts::SIGINT, consts::SIGTERM, consts::SIGHUP])
        .map_err(|error| format!("signals cannot be handled: {error}"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            running().iter().copied().for_each(end);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

impl Ending {
    pub(crate) fn success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(out, "{status}"),
            Self::TimedOut(limit) => write!(out, "still running after {} s", limit.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        Job::new("sh", "/").args(["-c", script])
    }

    #[test]
    fn both_streams_are_kept_in_order() {
        let ended = shell("echo one; echo two >&2; echo three; exit 3")
            .run()
            .unwrap();
        assert_eq!(ended.output, "one\ntwo\nthree\n");
        assert!(!ended.ending.success());
        assert_eq!(ended.ending.to_string(), "exit status: 3");
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let begun = Instant::now();
        let ended = shell("echo before; sleep 20 & wait")
            .limit(Duration::from_millis(300))
            .run()
            .unwrap();
        assert_eq!(ended.ending, Ending::TimedOut(Duration::from_millis(300)));
        assert_eq!(ended.output, "before\n");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn what_a_command_leaves_running_is_ended() {
        let begun = Instant::now();
        let ended = shell("sleep 20 & echo $!").run().unwrap();
        assert!(ended.ending.success());
        assert!(begun.elapsed() < Duration::from_secs(10));
        let stat = format!("/proc/{}/stat", ended.output.trim());
        let is_there = || {
            let state = std::fs::read_to_string(&stat).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        while is_there() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it lives on");
            thread::sleep(POLL);
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Job::new("no-such-program", "/").run().err().unwrap();
        assert!(error.contains("no-such-program"), "{error}");
    }
}
