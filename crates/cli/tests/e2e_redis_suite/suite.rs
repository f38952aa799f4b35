//! Runs a unit of the suite, and reads what it prints.

use super::cases::Unit;
use super::support::root;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What of the suite a run needs, beside a folder for its own files.
const PARTS: [&str; 5] = ["assets", "helpers", "support", "test_helper.tcl", "unit"];

/// How long a unit may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Ports of the servers of one run, and of the run itself below them.
const PORTS: u16 = 300;
const OWN_PORTS: u16 = 40;

/// The suite, unpacked.
pub(crate) struct Suite(PathBuf);

/// What became of the cases of a unit.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) passed: Vec<String>,
    /// With the reasons.
    pub(crate) failed: Vec<String>,
    pub(crate) skipped: Vec<String>,
    /// Left out because of a tag.
    pub(crate) ignored: Vec<String>,
    /// What ended the run before its end.
    pub(crate) trouble: Option<String>,
}

impl Suite {
    /// The suite in the folder that `TREMULA_REDIS_SUITE` names, or in `target/redis-7.0.15`.
    pub(crate) fn find() -> Self {
        let folder = std::env::var_os("TREMULA_REDIS_SUITE")
            .map_or_else(|| root().join("target/redis-7.0.15"), PathBuf::from);
        assert!(
            folder.join("tests/test_helper.tcl").is_file(),
            "{} has no sources of Redis. Run `cargo xtask test`, which takes those of Debian's source \
             package redis 7.0.15, or unpack them there, or name another folder with \
             TREMULA_REDIS_SUITE.",
            folder.display()
        );
        Self(folder.canonicalize().expect("a path"))
    }

    /// Runs a unit. The runs of different workers are beside each other.
    pub(crate) fn run(&self, unit: &Unit, worker: usize) -> Ran {
        let root = self.root(unit);
        let problem = root.path().join("problem");
        let mut child = start(root.path(), &unit.name, ports(worker), &problem);
        let (sender, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        let reader = thread::spawn(move || {
            // Names may have any bytes.
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let deadline = Instant::now() + PATIENCE;
        let mut printed = Vec::new();
        let trouble = loop {
            match lines.recv_timeout(Duration::from_millis(100)) {
                Ok(line) => printed.push(line),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => (),
            }
            if let Ok(text) = fs::read_to_string(&problem) {
                break Some(text);
            }
            if Instant::now() > deadline {
                break Some(format!("it takes more than {} s", PATIENCE.as_secs()));
            }
        };
        // Its servers are in its group.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let status = child.wait().expect("its status");
        reader.join().expect("its output is read");
        printed.extend(lines.try_iter());
        let mut ran = read(&printed);
        let is_at_end = printed.iter().any(|line| line.trim() == "The End");
        ran.trouble = trouble.or_else(|| {
            let last = &printed[printed.len().saturating_sub(20)..];
            (!is_at_end).then(|| format!("{status} before the end:\n{}", last.join("\n")))
        });
        ran
    }

    /// A folder in which the suite finds itself and our server, and which it may fill.
    fn root(&self, unit: &Unit) -> TempDir {
        let root = TempDir::new().expect("a folder");
        let (src, tests) = (root.path().join("src"), root.path().join("tests"));
        fs::create_dir(&src).expect("a folder");
        fs::create_dir_all(tests.join("tmp")).expect("a folder");
        for part in PARTS {
            symlink(self.0.join("tests").join(part), tests.join(part)).expect("a link");
        }
        let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e_redis_suite");
        symlink(wrapper.join("redis-server.py"), src.join("redis-server")).expect("a link");
        let skipped: String = unit.skipped().flat_map(|case| [case, "\n"]).collect();
        fs::write(root.path().join("skipped"), skipped).expect("a file");
        root
    }
}

fn start(root: &Path, unit: &str, ports: u16, problem: &Path) -> Child {
    Command::new("tclsh")
        .arg("tests/test_helper.tcl")
        .args(["--single", unit, "--skipfile", "skipped", "--durable"])
        .args(["--clients", "1", "--baseport", &ports.to_string()])
        .args(["--portcount", &(PORTS - OWN_PORTS).to_string()])
        .current_dir(root)
        .env("TREMULA", env!("CARGO_BIN_EXE_tremula"))
        .env("TREMULA_PROBLEM", problem)
        // Without colours.
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("tclsh is installed: apt-get install tcl")
}

/// The first port of the servers of a worker. Tests that run at the same time have ports of their
/// own, most often; the suite tries the next port if another process has one.
fn ports(worker: usize) -> u16 {
    let worker = u16::try_from(worker).expect("few workers");
    let process = u16::try_from(std::process::id() % 16).expect("below 16");
    11_000 + (4 * process + worker) * PORTS + OWN_PORTS
}

/// Reads what the suite has printed, such as `[ok]: PING (0 ms)`. Other lines belong to the case
/// before them.
fn read(printed: &[String]) -> Ran {
    let mut ran = Ran::default();
    let mut is_failure = false;
    for line in printed {
        // Behind this, failures are repeated.
        if line.trim() == "The End" {
            break;
        }
        let case = |kind: &str| line.strip_prefix(kind).map(str::to_owned);
        if let Some(case) = case("[ok]: ") {
            let name = case.rsplit_once(" (").map_or(&*case, |(name, _)| name);
            ran.passed.push(name.to_owned());
        } else if let Some(case) = case("[skip]: ") {
            ran.skipped.push(case);
        } else if let Some(case) = case("[ignore]: ") {
            ran.ignored.push(case);
        } else if let Some(case) = case("[err]: ").or_else(|| case("[exception]: ")) {
            ran.failed.push(case);
            is_failure = true;
            continue;
        } else if is_failure && !line.starts_with('[') {
            let failure = ran.failed.last_mut().expect("a failure");
            failure.push('\n');
            failure.push_str(line);
            continue;
        }
        is_failure = false;
    }
    ran
}

#[test]
fn each_kind_of_line_is_counted_once() {
    let printed = "[ready]: 7\nTesting unit/x\n[ok]: a (b) (3 ms)\n[err]: c in tests/unit/x.tcl\nwhy\n\
                   [skip]: d\n[ignore]: e: Tag: slow denied\n[exception]: f\n[1/1 done]: unit/x\n\n  \
                   The End\n*** [err]: c in\n[err]: c";
    let printed: Vec<_> = printed.lines().map(str::to_owned).collect();
    let ran = read(&printed);
    assert_eq!(ran.passed, ["a (b)"]);
    assert_eq!(ran.failed, ["c in tests/unit/x.tcl\nwhy", "f"]);
    assert_eq!(ran.skipped, ["d"]);
    assert_eq!(ran.ignored, ["e: Tag: slow denied"]);
}
