//! `tremula cluster`: a group of nodes and its servers of NATS on this machine, for trying out.
//!
//! Everything lies in one directory: what each process keeps, what it says (`*.out`), and its
//! number (`*.pid`). A number counts only if the process has the directory among its arguments.

use clap::{Args, Subcommand};
use rustix::process::{Pid, Signal, kill_process, nice};
use std::env;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use tremula_server::{GroupError, PublishArgs, check_package, publish};
use tremula_store::{Engine, parse_engine};

/// Servers of NATS, and nodes.
const COUNT: u16 = 3;

/// How far the ports of NATS lie behind those of the nodes: for clients, and among themselves.
const NATS: u16 = 100;
const ROUTES: u16 = 200;

/// How long a group may take to have a leader, and a process to end.
const START: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(10);

/// How long a node may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(50);

/// By how much a process steps back behind others.
const NICE: i32 = 10;

/// Three nodes and three servers of NATS on this machine, to try a group out.
#[derive(Subcommand)]
pub(crate) enum Cluster {
    /// Start what does not run, and wait until a node leads.
    Up {
        #[command(flatten)]
        place: Place,
        /// The program of NATS, version 2.12 or later [default: nats-server on the path]
        #[arg(long, value_name = "PROGRAM", default_value = "nats-server")]
        nats_server: PathBuf,
    },
    /// Show which processes run, and what each node is.
    Status {
        #[command(flatten)]
        place: Place,
    },
    /// End all processes. What they keep stays in the directory.
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Put aside what a node of a group has in its directory, so that it joins its group anew at
    /// its next start. For a node that refuses to serve, and does not have what the group has.
    Rejoin {
        /// The directory of the node, which does not run: its --dir
        node: PathBuf,
    },
    /// Make what a node has the history of its group, in a new log: for a group whose log has lost
    /// what its nodes still have. The node with the longest own log is the right one.
    Publish(Box<PublishArgs>),
    /// Load a snapshot of a group, and say how many keys it has. A node does that before it cuts
    /// the log of its group.
    #[command(hide = true)]
    Check {
        #[arg(long, value_parser = parse_engine)]
        engine: Engine,
        unpacked: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct Place {
    /// The directory of the cluster
    #[arg(long, value_name = "DIRECTORY", default_value = "tremula-cluster")]
    directory: PathBuf,
    /// The port below those of the nodes; NATS has those that are greater by 100 and 200
    #[arg(long, value_name = "PORT", default_value_t = 7000, value_parser = clap::value_parser!(u16).range(1..=65000))]
    port: u16,
}

#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} cannot be started: {source}; {help}", program.display())]
    Start {
        program: PathBuf,
        source: io::Error,
        help: &'static str,
    },
    #[error("{name} has ended; see {}", out.display())]
    Ended { name: String, out: PathBuf },
    #[error("no node leads within {} seconds; see {}", START.as_secs(), directory.display())]
    NoLeader { directory: PathBuf },
    #[error("the process {0} of {1} does not end")]
    Stays(i32, String),
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error("{0}")]
    Text(String),
}

/// Runs a command, and says why it failed, if it did.
pub(crate) fn run(command: &Cluster) -> ExitCode {
    let done = match command {
        Cluster::Up { place, nats_server } => up(place, nats_server),
        Cluster::Status { place } => status(place),
        Cluster::Down { place } => down(place),
        Cluster::Rejoin { node } => rejoin(node),
        Cluster::Publish(arguments) => publish_own(arguments),
        Cluster::Check { engine, unpacked } => check(unpacked, *engine),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// One of the processes.
struct Part {
    name: String,
    directory: PathBuf,
    /// Where a node takes clients.
    address: Option<SocketAddr>,
}

impl Place {
    fn parts(&self) -> Result<Vec<Part>, Failure> {
        let directory = std::path::absolute(&self.directory).map_err(file(&self.directory))?;
        let numbers = 1..=COUNT;
        let nats = numbers
            .clone()
            .map(|number| (format!("nats{number}"), None));
        let nodes = numbers.map(|number| (format!("node{number}"), Some(self.node(number))));
        let part = |(name, address): (String, Option<SocketAddr>)| Part {
            directory: directory.clone(),
            name,
            address,
        };
        Ok(nats.chain(nodes).map(part).collect())
    }

    fn node(&self, number: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port + number))
    }

    fn url(&self, distance: u16, number: u16) -> String {
        format!("nats://127.0.0.1:{}", self.port + distance + number)
    }

    fn urls(&self, distance: u16) -> String {
        let all: Vec<_> = (1..=COUNT)
            .map(|number| self.url(distance, number))
            .collect();
        all.join(",")
    }

    /// The command that starts a part.
    fn command(&self, part: &Part, number: u16, nats_server: &Path) -> Command {
        let keeps = part.file("");
        if part.address.is_none() {
            let mut command = Command::new(nats_server);
            command
                .args([
                    "--addr",
                    "127.0.0.1",
                    "--jetstream",
                    "--cluster_name",
                    "tremula",
                ])
                .args(["--name", &part.name])
                .args(["--port", &(self.port + NATS + number).to_string()])
                .args(["--cluster", &self.url(ROUTES, number)])
                .args(["--routes", &self.urls(ROUTES)])
                .arg("--store_dir")
                .arg(keeps);
            return command;
        }
        // This program, whatever its name has become.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("tremula")
            .args(["serve", "--port", &(self.port + number).to_string()])
            .args(["--replicate", &self.urls(NATS), "--node", &part.name])
            .arg("--dir")
            .arg(keeps);
        command
    }
}

impl Part {
    /// A file of this part; its directory for no extension.
    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(&self.name).with_extension(extension)
    }

    /// The number of its process, if that runs.
    fn process(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.file("pid")).ok()?;
        let process = Pid::from_raw(text.trim().parse().ok()?)?;
        let about = PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()));
        let arguments = fs::read(about.join("cmdline")).ok()?;
        if arguments.is_empty() {
            // It begins just now, or it has ended and nobody has noticed.
            let status = fs::read_to_string(about.join("status")).ok()?;
            return (!status.contains("State:\tZ")).then_some(process);
        }
        let own = self.file("").into_os_string().into_encoded_bytes();
        let is_own = arguments.split(|byte| *byte == 0).any(|word| word == own);
        is_own.then_some(process)
    }

    fn start(&self, command: &mut Command) -> Result<(), Failure> {
        let out = self.file("out");
        let opened = File::options().create(true).append(true).open(&out);
        let opened = opened.map_err(file(&out))?;
        let errors = opened.try_clone().map_err(file(&out))?;
        // Not the terminal's: Ctrl-C is for what runs in front.
        let started = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(opened)
            .stderr(errors)
            .spawn();
        let child = started.map_err(|source| Failure::Start {
            program: command.get_program().into(),
            source,
            help: "install nats-server 2.12 or later, or name it with --nats-server",
        })?;
        let path = self.file("pid");
        fs::write(&path, child.id().to_string()).map_err(file(&path))
    }

    /// What a node says about the group.
    fn figures(&self) -> Option<Vec<(String, String)>> {
        let address = self.address?;
        let stream = TcpStream::connect_timeout(&address, ANSWER).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        (&stream).write_all(b"INFO replication\r\n").ok()?;
        let mut reader = BufReader::new(&stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length: u64 = line.strip_prefix('$')?.trim_end().parse().ok()?;
        let mut text = String::new();
        reader.take(length).read_to_string(&mut text).ok()?;
        let figures = text.lines().filter_map(|line| line.split_once(':'));
        Some(
            figures
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    fn figure(&self, name: &str) -> Option<String> {
        let found = self.figures()?.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    fn leads(&self) -> bool {
        self.figure("group_standing").as_deref() == Some("leader")
    }
}

fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    let path = path.to_path_buf();
    move |source| Failure::File { path, source }
}

fn up(place: &Place, nats_server: &Path) -> Result<(), Failure> {
    let parts = place.parts()?;
    let directory = parts[0].directory.clone();
    fs::create_dir_all(&directory).map_err(file(&directory))?;
    let numbers = (1..=COUNT).cycle();
    for (part, number) in parts.iter().zip(numbers) {
        if part.process().is_none() {
            part.start(&mut place.command(part, number, nats_server))?;
            println!("{} is started", part.name);
        }
    }
    let deadline = Instant::now() + START;
    loop {
        if let Some(ended) = parts.iter().find(|part| part.process().is_none()) {
            return Err(Failure::Ended {
                name: ended.name.clone(),
                out: ended.file("out"),
            });
        }
        if let Some(leader) = parts.iter().find(|part| part.leads())
            && let Some(address) = leader.address
        {
            println!("{} leads; try:", leader.name);
            println!("  redis-cli -p {} SET tree aspen", address.port());
            println!("  {} cluster status", program());
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(Failure::NoLeader { directory });
        }
        thread::sleep(LOOK);
    }
}

/// How this program was called.
fn program() -> String {
    let name = env::args_os().next().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn status(place: &Place) -> Result<(), Failure> {
    println!("name   process  address          is            effect  term");
    for part in place.parts()? {
        let Some(process) = part.process() else {
            println!("{:6} -        does not run", part.name);
            continue;
        };
        let process = process.as_raw_nonzero();
        let Some(address) = part.address else {
            println!("{:6} {process:<8} runs", part.name);
            continue;
        };
        let figure = |name| part.figure(name).unwrap_or_else(|| "-".to_owned());
        println!(
            "{:6} {process:<8} {address:16} {:13} {:7} {}",
            part.name,
            figure("group_standing"),
            figure("group_last_effect"),
            figure("group_epoch"),
        );
    }
    Ok(())
}

fn down(place: &Place) -> Result<(), Failure> {
    // The nodes first: they confirm their last writes.
    for part in place.parts()?.iter().rev() {
        let Some(process) = part.process() else {
            continue;
        };
        end(part, process)?;
        println!("{} has ended", part.name);
    }
    Ok(())
}

fn rejoin(node: &Path) -> Result<(), Failure> {
    let aside = tremula_server::rejoin(node)?;
    println!(
        "what the node had is in {} now; start the node as always, and remove that when the node \
         serves",
        aside.display()
    );
    Ok(())
}

fn publish_own(arguments: &PublishArgs) -> Result<(), Failure> {
    let last = publish(arguments).map_err(Failure::Text)?;
    println!(
        "the group goes on behind record {last}; start this node, and then the others. One that \
         says that it has more, or another history, has to join anew: {} cluster rejoin DIRECTORY",
        program()
    );
    Ok(())
}

fn check(unpacked: &Path, engine: Engine) -> Result<(), Failure> {
    // The clients of the node that has asked for it come first.
    let _ = nice(NICE);
    let keys = check_package(unpacked, engine).map_err(Failure::Text)?;
    println!("{keys} keys");
    Ok(())
}

/// Ends a process: asks it to, and makes it if it does not.
fn end(part: &Part, process: Pid) -> Result<(), Failure> {
    for signal in [Signal::TERM, Signal::KILL] {
        // It may have ended by itself.
        let _ = kill_process(process, signal);
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if part.process().is_none() {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
    }
    let number = process.as_raw_nonzero().get();
    Err(Failure::Stays(number, part.name.clone()))
}
