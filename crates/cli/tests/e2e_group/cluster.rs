//! Servers of NATS and nodes of a group on the loopback.

use crate::proxy::{Mode, Proxy};
use crate::support::resp::{Connection, bulk, encode};
use crate::support::{Server, eventually, free_address, root, run};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program: `TREMULA_NATS`, or the one that `cargo xtask test` provides.
fn nats_server() -> PathBuf {
    let program = std::env::var_os("TREMULA_NATS")
        .map_or_else(|| root().join("target/nats/nats-server"), PathBuf::from);
    assert!(
        program.exists(),
        "{} is missing: run `cargo xtask test --only tools`, or name a nats-server of version 2.12 \
         or later with TREMULA_NATS",
        program.display()
    );
    program
}

/// A cluster that `tremula cluster` has, ended when dropped.
pub(crate) struct Tried {
    folder: tempfile::TempDir,
    port: String,
}

impl Tried {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            port: free_ports().to_string(),
        }
    }

    fn command(&self, command: &str) -> Command {
        let mut words = Command::new(env!("CARGO_BIN_EXE_tremula"));
        words
            .args(["cluster", command, "--port", &self.port, "--directory"])
            .arg(self.folder.path());
        if command == "up" {
            words.arg("--nats-server").arg(nats_server());
        }
        words
    }

    /// Runs one of its commands, and returns what that prints.
    pub(crate) fn run(&self, command: &str) -> String {
        let output = run(&mut self.command(command), b"");
        let text = String::from_utf8(output.stdout).expect("text");
        let errors = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{command}: {text}{errors}");
        text
    }
}

impl Drop for Tried {
    fn drop(&mut self) {
        // Also when a test fails: nothing else ends these processes.
        let _ = self.command("down").stdout(Stdio::null()).status();
    }
}

/// A port behind which those that `tremula cluster` uses are free at the moment. It is below those
/// that the system gives to connections.
fn free_ports() -> u16 {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let parts = [1, 2, 3, 101, 102, 103, 201, 202, 203];
    let first = std::process::id() % 20;
    (0..20)
        .map(|number| 10_000 + 1_000 * ((first + number) % 20) as u16)
        .find(|port| parts.iter().all(|part| is_free(port + part)))
        .expect("free ports")
}

fn spawn(arguments: &[String]) -> Child {
    Command::new(nats_server())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server starts")
}

/// A server of NATS, killed when dropped.
pub(crate) struct Nats {
    child: Child,
    command: Vec<String>,
}

/// A server of NATS with these flags.
pub(crate) fn spawn_nats(command: Vec<String>) -> Nats {
    Nats::start(command)
}

impl Nats {
    fn start(command: Vec<String>) -> Self {
        let child = spawn(&command);
        Self { child, command }
    }

    /// Starts again, where it was.
    pub(crate) fn again(&mut self) {
        self.kill();
        self.child = spawn(&self.command);
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Stops a process, and waits until each of its threads stands: what comes from now on finds it so.
pub(crate) fn stop(server: &Server) {
    server.signal("STOP");
    eventually("the process stands", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", server.process()));
        tasks.expect("the process is there").all(|task| {
            let status = task.expect("a thread").path().join("status");
            fs::read_to_string(status).is_ok_and(|text| text.contains("State:\tT"))
        })
    });
}

/// Servers of NATS, and nodes whose log they have.
pub(crate) struct Cluster {
    pub(crate) nats: Vec<Nats>,
    pub(crate) nodes: Vec<Option<Server>>,
    pub(crate) addresses: Vec<SocketAddr>,
    /// What each node takes for the servers of NATS.
    urls: Vec<String>,
    /// Those between each node and the servers.
    proxies: Vec<Vec<Proxy>>,
    /// Further flags of the nodes that are started.
    pub(crate) flags: Vec<String>,
    folder: tempfile::TempDir,
}

/// Where the nodes of a cluster are.
pub(crate) struct View {
    pub(crate) addresses: Vec<SocketAddr>,
}

impl View {
    /// A connection to a node; `None` if it does not listen.
    pub(crate) fn connect(&self, at: usize) -> Option<Connection> {
        Connection::try_new(self.addresses[at])
    }
}

impl Cluster {
    /// This many of each.
    pub(crate) fn new(servers: usize, nodes: usize) -> Self {
        Self::made(servers, nodes, false).started(nodes)
    }

    /// The same, of which this many nodes are started with these flags.
    pub(crate) fn with(servers: usize, nodes: usize, started: usize, flags: &[&str]) -> Self {
        Self::made(servers, nodes, false)
            .flagged(flags)
            .started(started)
    }

    fn flagged(mut self, flags: &[&str]) -> Self {
        self.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        self
    }

    /// All with these flags, and with a proxy between each node and each server.
    pub(crate) fn between_proxies(servers: usize, nodes: usize, flags: &[&str]) -> Self {
        Self::made(servers, nodes, true)
            .flagged(flags)
            .started(nodes)
    }

    fn made(servers: usize, nodes: usize, has_proxies: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ports: Vec<u16> = (0..2 * servers + nodes)
            .map(|_| free_address().port())
            .collect();
        let (clients, rest) = ports.split_at(servers);
        let (routes, nodes_at) = rest.split_at(servers);
        let url = |port: &u16| format!("nats://127.0.0.1:{port}");
        let all_routes: Vec<String> = routes.iter().map(url).collect();
        let command = |at: usize| {
            let mut words = vec![
                "--addr=127.0.0.1".to_owned(),
                format!("--port={}", clients[at]),
                format!("--name=n{at}"),
                "--jetstream".to_owned(),
                format!(
                    "--store_dir={}",
                    folder.path().join(format!("nats{at}")).display()
                ),
            ];
            if servers > 1 {
                words.push("--cluster_name=test".to_owned());
                // Nodes know no other way than that through their proxies.
                words.push("--no_advertise".to_owned());
                words.push(format!("--cluster={}", all_routes[at]));
                words.push(format!("--routes={}", all_routes.join(",")));
            }
            words
        };
        let proxies: Vec<Vec<Proxy>> = (0..if has_proxies { nodes } else { 0 })
            .map(|_| {
                let to = clients
                    .iter()
                    .map(|port| SocketAddr::from(([127, 0, 0, 1], *port)));
                to.map(Proxy::new).collect()
            })
            .collect();
        let urls = (0..nodes).map(|at| {
            let ports = match proxies.get(at) {
                None => clients.to_vec(),
                Some(proxies) => proxies.iter().map(|proxy| proxy.address.port()).collect(),
            };
            ports.iter().map(url).collect::<Vec<_>>().join(",")
        });
        let urls = urls.collect();
        let nats = (0..servers).map(|at| Nats::start(command(at))).collect();
        Self {
            nats,
            nodes: (0..nodes).map(|_| None).collect(),
            addresses: nodes_at
                .iter()
                .map(|port| SocketAddr::from(([127, 0, 0, 1], *port)))
                .collect(),
            urls,
            proxies,
            flags: Vec::new(),
            folder,
        }
    }

    fn started(mut self, count: usize) -> Self {
        for at in 0..count {
            self.start_again(at);
        }
        self
    }

    /// The address of a server of NATS.
    pub(crate) fn url(&self) -> &str {
        self.urls[0].split(',').next().expect("an address")
    }

    /// The directory of a node.
    pub(crate) fn directory(&self, at: usize) -> PathBuf {
        self.folder.path().join(format!("node{at}"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the nodes are.
    pub(crate) fn view(&self) -> View {
        View {
            addresses: self.addresses.clone(),
        }
    }

    /// What the proxies of a node do from now on.
    pub(crate) fn set(&self, at: usize, mode: Mode) {
        for proxy in &self.proxies[at] {
            proxy.set(mode);
        }
    }

    /// Starts a node on its directory.
    fn start(&self, at: usize) -> Server {
        let directory = self.directory(at);
        let port = self.addresses[at].port().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command
            .args(["serve", "--port", &port, "--threads", "1"])
            .args([
                "--replicate",
                &self.urls[at],
                "--node",
                &format!("node{at}"),
            ])
            .args(&self.flags)
            .arg("--dir")
            .arg(directory);
        Server::of(&mut command)
    }

    /// Starts a node again that was killed, or for the first time.
    pub(crate) fn start_again(&mut self, at: usize) {
        self.nodes[at] = None;
        self.nodes[at] = Some(self.start(at));
    }

    /// A connection to a node; `None` if it does not listen.
    pub(crate) fn connect(&self, at: usize) -> Option<Connection> {
        Connection::try_new(self.addresses[at])
    }

    /// The reply of a node to one command; `None` if it does not answer.
    pub(crate) fn ask<T: AsRef<[u8]>>(&self, at: usize, command: &[T]) -> Option<Vec<u8>> {
        let mut connection = self.connect(at)?;
        connection.send(&encode(command));
        connection.reply_or_end()
    }

    /// A reply as text; empty if the node does not answer.
    pub(crate) fn text(&self, at: usize, line: &str) -> String {
        let words: Vec<_> = line.split(' ').collect();
        let reply = self.ask(at, &words).unwrap_or_default();
        String::from_utf8(reply).expect("text")
    }

    /// A figure of replication of a node; `None` if it is not there, or starts again meanwhile.
    pub(crate) fn figure(&self, at: usize, name: &str) -> Option<String> {
        let text = String::from_utf8(bulk(&self.ask(at, &["info", "replication"])?));
        let text = text.expect("text");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::to_owned)
    }

    /// The node that leads and takes writes.
    pub(crate) fn leader(&self) -> usize {
        let mut leader = None;
        eventually("a leader", || {
            leader = (0..self.nodes.len()).find(|at| {
                let is_there = self.nodes[*at].is_some();
                is_there && self.ask(*at, &["set", "~probe", "x"]).as_deref() == Some(b"+OK\r\n")
            });
            leader.is_some()
        });
        leader.expect("a leader")
    }
}
