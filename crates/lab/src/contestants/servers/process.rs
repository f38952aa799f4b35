//! Starts servers, and ends them.

use super::client::Client;
use crate::LabError;
use std::{
    env, fs,
    io::{self, BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

pub(super) const REDIS: &str = "redis-server";
pub(super) const VALKEY: &str = "valkey-server";
const TREMULA: &str = "tremula";

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many free ports are tried: another process may take one before the server does.
const PORTS: usize = 20;

/// The program `tremula`, which lies beside this one and has the same version. It is looked for
/// once.
///
/// # Errors
///
/// Why it is missing, and the way out.
pub(super) fn tremula() -> Result<PathBuf, &'static str> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(find_tremula) {
        Ok(program) => Ok(program.clone()),
        Err(problem) => Err(problem),
    }
}

fn find_tremula() -> Result<PathBuf, String> {
    let name = format!("{TREMULA}{}", env::consts::EXE_SUFFIX);
    let program = env::current_exe()
        .map_err(|error| format!("the path of this program is unknown: {error}"))?
        .with_file_name(name);
    let shown = program.display();
    if !program.is_file() {
        return Err(format!(
            "there is no '{shown}'; build it with the flags that this program was built with \
             (cargo build --release -p tremula-cli)"
        ));
    }
    let output = Command::new(&program)
        .arg("--version")
        .output()
        .map_err(|error| format!("'{shown}' does not start: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout);
    let ours = concat!("tremula ", env!("CARGO_PKG_VERSION"));
    if version.trim() == ours {
        return Ok(program);
    }
    Err(format!(
        "'{shown}' is '{}', and this program measures '{ours}'; \
         build both anew (cargo build --release -p tremula-cli -p tremula-lab)",
        version.trim()
    ))
}

/// What a server keeps, and when it syncs its log to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It keeps nothing.
    None,
    EverySecond,
    /// Before it replies.
    Always,
}

impl Durability {
    /// As both servers call it.
    fn word(self) -> &'static str {
        match self {
            Self::None => "no",
            Self::EverySecond => "everysec",
            Self::Always => "always",
        }
    }

    /// A directory for what is to be kept, where other temporary files are.
    fn directory(self) -> io::Result<Option<TempDir>> {
        (self != Self::None).then(tempfile::tempdir).transpose()
    }
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub(super) struct ServerProcess {
    child: Child,
    /// Kept open, so that the server can write there.
    _output: Option<BufReader<ChildStdout>>,
    pub(super) address: SocketAddr,
    /// Its name and version.
    pub(super) version: String,
    /// Where it keeps what it keeps; removed after the process has ended.
    _directory: Option<TempDir>,
}

impl ServerProcess {
    /// Starts `tremula serve` with these flags on a free port, and reads its address from its first
    /// line.
    pub(super) fn tremula(flags: &[&str], durability: Durability) -> Result<Self, LabError> {
        let failed = |error| LabError::Program {
            program: TREMULA.to_owned(),
            error,
        };
        let program = tremula().map_err(|problem| failed(io::Error::other(problem)))?;
        let directory = durability.directory().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["serve", "--port", "0"]).args(flags);
        match &directory {
            Some(directory) => {
                command.arg("--dir").arg(directory.path());
                command.args(["--durability", durability.word()]);
            }
            None => {
                command.arg("--memory-only");
            }
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        let mut output = child.stdout.take().map(BufReader::new);
        let read = output.as_mut().map(|output| output.read_line(&mut line));
        let address = line.split(' ').find_map(|word| word.parse().ok());
        // From here on, dropping `server` ends the process.
        let server = Self {
            child,
            _output: output,
            address: address.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into()),
            version: line.split(" ready").next().unwrap_or_default().to_owned(),
            _directory: directory,
        };
        read.transpose().map_err(failed)?;
        match address {
            Some(_) => Ok(server),
            None => Err(LabError::Answer {
                program: TREMULA.to_owned(),
                answer: line.trim_end().to_owned(),
            }),
        }
    }

    /// Starts a Redis, or a server with the same flags, and waits until it answers. It makes no
    /// snapshots by itself.
    pub(super) fn redis(program: &str, durability: Durability) -> Result<Self, LabError> {
        let failed = |error| LabError::Program {
            program: program.to_owned(),
            error,
        };
        let said = Command::new(program)
            .arg("--version")
            .output()
            .map_err(failed)?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let number = said.split(' ').find_map(|word| word.strip_prefix("v="));
        let version = format!("{program} {}", number.unwrap_or("unknown"));
        for _ in 0..PORTS {
            let address = free_address().map_err(failed)?;
            let directory = durability.directory().map_err(failed)?;
            let mut command = Command::new(program);
            command.args(["--port", &address.port().to_string()]).args([
                "--save",
                "",
                "--bind",
                "127.0.0.1",
            ]);
            match &directory {
                Some(directory) => command.arg("--dir").arg(directory.path()).args([
                    "--appendonly",
                    "yes",
                    "--appendfsync",
                    durability.word(),
                ]),
                None => command.args(["--appendonly", "no"]),
            };
            let child = command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .map_err(failed)?;
            let mut server = Self {
                child,
                _output: None,
                address,
                version: version.clone(),
                _directory: directory,
            };
            if server.answers().map_err(failed)? {
                return Ok(server);
            }
        }
        let error = io::Error::other("it does not answer on any port");
        Err(failed(error))
    }

    /// Waits until the server answers; `false` if it ends before that.
    fn answers(&mut self) -> io::Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            let answer = Client::connect(self.address).and_then(|mut client| {
                client.send(&["PING"])?;
                client.receive()
            });
            if answer.is_ok_and(|answer| answer == b"+PONG") {
                return Ok(true);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The CPU time of all its threads so far, where the system reports it.
    pub(super) fn work(&self) -> Option<Duration> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut nanoseconds = 0_u64;
        for task in tasks {
            let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            nanoseconds += text.split(' ').next()?.parse::<u64>().ok()?;
        }
        Some(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both calls fail if the server has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that no process listens on at the moment.
pub(super) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
