//! A running Erlang.
//!
//! One Erlang is started with the lab's program (`erlang/lab.escript`) and kept for the whole run.
//! Requests and answers are lines on its standard input and output. Streams and keys reach it as
//! files in a folder of its own, in the same bytes that the Rust side reads. Erlang loads and
//! removes them before the time runs.

use crate::LabError;
use std::{
    cell::RefCell,
    fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
};
use tempfile::TempDir;

pub(super) const PROGRAM: &str = include_str!("../../../erlang/lab.escript");
pub(super) const ESCRIPT: &str = "escript";

/// A running Erlang with the lab's program in it. Clones share it; it ends with the last clone.
#[derive(Clone, Debug)]
pub struct ErlangMachine {
    line: Rc<RefCell<Line>>,
    version: String,
}

/// The line to the running Erlang.
#[derive(Debug)]
struct Line {
    child: Child,
    /// `None` only while the machine ends: closing the pipe makes Erlang leave.
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
            // The terminal must send Ctrl-C to this process only, which ends Erlang when it ends.
            .process_group(0)
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
        // Erlang has compiled the program. Removing it now leaves nothing behind if this process is
        // killed.
        fs::remove_file(&program).map_err(failed)?;
        Ok(Self {
            line: Rc::new(RefCell::new(line)),
            version,
        })
    }

    /// The version of the running Erlang.
    pub(super) fn version(&self) -> String {
        self.version.clone()
    }

    /// Sends a request, with its files, and waits for an answer of `NUMBERS` numbers.
    pub(super) fn ask<const NUMBERS: usize>(
        &self,
        request: &str,
        files: &[(&str, Vec<u8>)],
    ) -> Result<[u64; NUMBERS], LabError> {
        self.line.borrow_mut().ask(request, files)
    }
}

impl Line {
    /// Sends a request, with its files, and waits for an answer of `NUMBERS` numbers.
    fn ask<const NUMBERS: usize>(
        &mut self,
        request: &str,
        files: &[(&str, Vec<u8>)],
    ) -> Result<[u64; NUMBERS], LabError> {
        for (name, bytes) in files {
            fs::write(self.folder.path().join(name), bytes).map_err(failed)?;
        }
        let requests = self.requests.as_mut().ok_or_else(|| gone("it has left"))?;
        writeln!(requests, "{request}").map_err(failed)?;
        requests.flush().map_err(failed)?;
        let answer = self.read()?;
        parse(&answer).ok_or_else(|| LabError::Answer {
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
        // Erlang leaves at the end of its input. If it cannot, nothing can be done about it here.
        let _ = self.child.wait();
    }
}

/// The numbers of an answer `ok NUMBER …`; `None` if the answer is another one, or has fewer or
/// more.
fn parse<const NUMBERS: usize>(answer: &str) -> Option<[u64; NUMBERS]> {
    let words = answer.strip_prefix("ok ")?.split(' ');
    let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
    numbers.ok()?.try_into().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_is_an_answer() {
        assert_eq!(parse("ok 1500 3 112"), Some([1500, 3, 112]));
        for wrong in ["", "ok", "ok 1 2", "ok 1 2 3 4", "ok 1 2 x", "error badarg"] {
            assert_eq!(parse::<3>(wrong), None, "{wrong}");
        }
    }
}
