//! Shared by the end-to-end tests: the real servers as child processes, and a client that keeps the
//! bytes of replies.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod crowd;
pub(crate) mod ets;
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod resp;
pub(crate) mod scripts;
pub(crate) mod tls;
pub(crate) mod wire;

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits before it gives up. These tests also run on slow, busy machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// The first place where it listens; port 0 if that is a unix socket.
    pub(crate) address: SocketAddr,
    /// The line by which the server said that it was ready.
    pub(crate) ready_line: String,
}

impl Server {
    /// Starts `tremula serve` on a free port and waits until it says that it is ready.
    pub(crate) fn tremula(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        Self::of(command.args(["serve", "--port", "0"]).args(arguments))
    }

    /// The same on a directory that keeps what it stores.
    pub(crate) fn kept(directory: &Path, arguments: &[&str]) -> Self {
        let directory = directory.to_str().expect("a path of text");
        Self::tremula(&[&["--dir", directory], arguments].concat())
    }

    /// Starts a server by a command of any kind and waits until it says that it is ready.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("tremula starts");
        let mut ready_line = String::new();
        let stdout = child.stdout.as_mut().expect("its output is piped");
        BufReader::new(stdout)
            .read_line(&mut ready_line)
            .expect("a line on its output");
        let places = ready_line.split_once(" ready on ");
        let (_, places) = places.unwrap_or_else(|| panic!("it is not ready: {ready_line:?}"));
        let address = places.split(' ').next().and_then(|word| word.parse().ok());
        let address = address.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        Self {
            child,
            address,
            ready_line,
        }
    }

    /// Starts a real `redis-server` without persistence and waits until it answers.
    pub(crate) fn redis() -> Self {
        Self::redis_with(&[])
    }

    /// The same with more settings.
    pub(crate) fn redis_with(settings: &[&str]) -> Self {
        // Another process may take the port in between; then this tries another port.
        for _ in 0..20 {
            let address = free_address();
            let mut child = Command::new("redis-server")
                .args(["--port", &address.port().to_string()])
                .args(["--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
                .args(settings)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("redis-server is installed: apt-get install redis-server");
            let deadline = Instant::now() + PATIENCE;
            while Instant::now() < deadline {
                if child.try_wait().expect("its status").is_some() {
                    break;
                }
                // Not another process that took the port first, perhaps for a moment only.
                let is_this = |mut client: resp::Connection| {
                    client.send(&resp::encode(&["info", "server"]));
                    let info = client.reply_or_end().unwrap_or_default();
                    let own = format!("process_id:{}\r\n", child.id());
                    String::from_utf8_lossy(&info).contains(&own)
                };
                if resp::Connection::try_new(address).is_some_and(is_this) {
                    return Self {
                        child,
                        address,
                        ready_line: String::new(),
                    };
                }
                thread::sleep(Duration::from_millis(10));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("redis-server does not start");
    }

    /// What the server writes to its log, if the command that started it has piped that.
    pub(crate) fn log(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("its errors are piped")
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(status.success());
    }

    /// Waits until the server has exited.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not leave");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The kibibytes that the server holds in memory.
    pub(crate) fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("the status of the process");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("VmRSS");
        let number = line.trim().trim_end_matches(" kB");
        number.parse().expect("a number")
    }

    /// The same once it falls no more, however long that takes on a slow machine.
    pub(crate) fn settled_kib(&self) -> u64 {
        const STILL: Duration = Duration::from_secs(6);
        const NOISE: u64 = 64;
        let (mut least, mut since) = (self.resident_kib(), Instant::now());
        let deadline = Instant::now() + PATIENCE;
        while since.elapsed() < STILL {
            assert!(Instant::now() < deadline, "{least} KiB, and still falling");
            thread::sleep(Duration::from_millis(100));
            let now = self.resident_kib();
            if now + NOISE < least {
                (least, since) = (now, Instant::now());
            }
        }
        least
    }

    pub(crate) fn connect(&self) -> resp::Connection {
        resp::Connection::new(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process hold some thousands of connections, beside those of tests that run meanwhile.
pub(crate) fn raise_open_files() {
    let own = std::process::id().to_string();
    let raised = Command::new("prlimit")
        .args(["--pid", &own, "--nofile=8192:"])
        .status();
    assert!(raised.expect("prlimit runs").success());
}

/// Waits for a condition that another process brings about.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether bytes have arrived that have not been read.
pub(crate) fn has_answer(client: &resp::Connection) -> bool {
    client.stream.set_nonblocking(true).expect("a mode");
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).expect("a mode");
    match peeked {
        Ok(read) => read > 0,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

/// The standard error of a server that does not start; fails as soon as it says that it is ready.
pub(crate) fn failure(command: &mut Command) -> String {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tremula starts");
    let stderr = read_all(child.stderr.take().expect("its errors are piped"));
    let mut ready_line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    let read = BufReader::new(stdout).read_line(&mut ready_line);
    if !ready_line.is_empty() {
        let _ = child.kill();
    }
    let status = child.wait().expect("its status");
    assert!(
        read.is_ok() && ready_line.is_empty() && !status.success(),
        "{command:?} starts: {ready_line:?}"
    );
    String::from_utf8(stderr.join().expect("its errors are read")).expect("text")
}

/// An address on which no process listens at the moment, and that this process has not had before.
/// Its port is below those that the system gives to connections, and above those of clusters.
pub(crate) fn free_address() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    const PORTS: std::ops::Range<u32> = 30_000..32_700;
    let count = PORTS.end - PORTS.start;
    (0..count)
        .map(|_| std::process::id().wrapping_mul(37) % count + TAKEN.fetch_add(1, Relaxed))
        .map(|number| (PORTS.start + number % count) as u16)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}

/// Runs a command to its end and returns its output; fails if it does not end in time.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Output {
    use std::io::Write;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("its input is piped");
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        // Fails if the command does not read its input.
        let _ = stdin.write_all(&input);
    });
    let stdout = read_all(child.stdout.take().expect("its output is piped"));
    let stderr = read_all(child.stderr.take().expect("its errors are piped"));
    let deadline = Instant::now() + 4 * PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("its status") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{command:?} does not end");
        }
        thread::sleep(Duration::from_millis(5));
    };
    writer.join().expect("the input is written");
    Output {
        status,
        stdout: stdout.join().expect("its output is read"),
        stderr: stderr.join().expect("its errors are read"),
    }
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("output");
        bytes
    })
}
