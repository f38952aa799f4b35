//! Common clients with the real `tremula serve`: `redis-cli`, `redis-benchmark`, and those of
//! programs in Python, JavaScript and Go, with users, pipelines, TLS, connections that end, and a
//! server that is started again.

mod support;

use std::process::{Command, Output};
use support::resp::encode;
use support::scripts::{self, go, node, python, script};
use support::tls::Authority;
use support::{Server, run};
use tempfile::TempDir;

fn output(command: &mut Command, input: &[u8]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = run(command, input);
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(
        status.success(),
        "{command:?}: {status}\n{stdout}\n{stderr}"
    );
    stdout.into_owned()
}

fn redis_cli(server: &Server) -> Command {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port()]);
    command
}

/// Commands of a session and what `redis-cli` shows for each.
const SESSION: [(&str, &str); 14] = [
    ("SET fruit:apple 3", "OK"),
    ("MSET fruit:banana 5 fruit:cherry 7 nut:almond 9", "OK"),
    ("GET fruit:banana", "\"5\""),
    ("INCRBY fruit:apple 10", "(integer) 13"),
    ("SET \"a key\" \"a \\\"value\\\"\\n\"", "OK"),
    ("GET 'a key'", "\"a \\\"value\\\"\\n\""),
    (
        "RANGE [fruit: (fruit;",
        "1) \"fruit:apple\"\n2) \"fruit:banana\"\n3) \"fruit:cherry\"",
    ),
    (
        "RANGE + - REV LIMIT 1 WITHVALUES",
        "1) \"nut:almond\"\n2) \"9\"",
    ),
    ("NEXT fruit:cherry", "1) \"nut:almond\"\n2) \"9\""),
    ("PREV 0", "(nil)"),
    ("DELRANGE [fruit: (fruit;", "(integer) 3"),
    ("DBSIZE", "(integer) 2"),
    (
        "LPUSH list x",
        "(error) ERR unknown command 'LPUSH', with args beginning with: 'list' 'x' ",
    ),
    ("PING", "PONG"),
];

#[test]
fn a_session_of_redis_cli_shows_what_it_should() {
    let server = Server::tremula(&[]);
    for (command, shown) in SESSION {
        let got = output(
            redis_cli(&server).arg("--no-raw"),
            format!("{command}\n").as_bytes(),
        );
        assert_eq!(got.trim_end_matches('\n'), shown, "{command}");
    }
}

#[test]
fn a_pasted_session_runs_in_either_version_of_the_protocol() {
    for version in ["-2", "-3"] {
        let server = Server::tremula(&[]);
        let pasted: String = SESSION
            .iter()
            .map(|(command, _)| format!("{command}\n"))
            .collect();
        let got = output(redis_cli(&server).arg(version), pasted.as_bytes());
        assert!(got.starts_with("OK\nOK\n5\n13\n"), "{got}");
        assert!(got.trim_end().ends_with("PONG"), "{got}");
    }
}

#[test]
fn redis_cli_pipes_a_mass_insertion() {
    const KEYS: usize = 20_000;
    let server = Server::tremula(&[]);
    let mut input = Vec::new();
    for number in 0..KEYS {
        let key = format!("key:{number:05}");
        if number % 2 == 0 {
            input.extend(encode(&["SET", &key, "value"]));
        } else {
            input.extend(format!("SET {key} 'value'\r\n").bytes());
        }
    }
    let got = output(redis_cli(&server).arg("--pipe"), &input);
    assert!(
        got.contains(&format!("errors: 0, replies: {KEYS}")),
        "{got}"
    );
    let scanned = output(
        redis_cli(&server).args(["--scan", "--pattern", "key:*"]),
        b"",
    );
    assert_eq!(scanned.lines().count(), KEYS);
    assert!(
        output(redis_cli(&server).args(["INFO", "stats"]), b"")
            .contains("total_commands_processed:")
    );
}

#[test]
fn redis_benchmark_runs_without_an_error() {
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    for protocol in [&[][..], &["-3"]] {
        let mut command = Command::new("redis-benchmark");
        command
            .args(["-p", &server.port(), "-t", "ping,set,get,incr,mset"])
            .args(["-n", "20000", "-r", "1000", "-P", "16", "-c", "20", "--csv"])
            .args(protocol);
        let got = output(&mut command, b"");
        for test in [
            "PING_INLINE",
            "PING_MBULK",
            "SET",
            "GET",
            "INCR",
            "MSET (10 keys)",
        ] {
            assert!(got.contains(&format!("\"{test}\",")), "{got}");
        }
        assert!(!got.to_ascii_lowercase().contains("err"), "{got}");
    }
}

/// A server that the script of a client talks to, with and without TLS, and that can be started
/// again on its ports.
struct Scripted {
    server: Option<Server>,
    ports: [String; 2],
    authority: Authority,
    _folder: TempDir,
}

impl Scripted {
    fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let authority = Authority::new(folder.path(), "one");
        authority.sign("server");
        let server = Self::on(["0", "0"], &authority);
        Self {
            ports: [server.port(), server.tls_address().port().to_string()],
            server: Some(server),
            authority,
            _folder: folder,
        }
    }

    fn on([port, tls_port]: [&str; 2], authority: &Authority) -> Server {
        let [certificate, key] = ["server.pem", "server.key"].map(|name| authority.file(name));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        command
            .args(["serve", "--memory-only", "--port", port])
            .args(["--threads", "2", "--gather", "no"])
            .args(["--tls-port", tls_port, "--tls-auth-clients", "no"])
            .args(["--tls-cert", &certificate, "--tls-key", &key]);
        Server::of(&mut command)
    }

    fn restart(&mut self) {
        // The ports are free only when the old server is gone.
        self.server = None;
        let [port, tls_port] = &self.ports;
        self.server = Some(Self::on([port, tls_port], &self.authority));
    }

    /// Runs a script to its end. It prints "restart" when it wants the server to be started again,
    /// and "passed" at last.
    fn passes(mut self, command: &mut Command) {
        command.args(&self.ports).arg(self.authority.certificate());
        scripts::passes(command, |line| {
            (line == "restart").then(|| {
                self.restart();
                "restarted"
            })
        });
    }
}

#[test]
fn the_python_client_works() {
    Scripted::start().passes(Command::new(python()).arg(script("redis_py.py")));
}

#[test]
fn the_cache_of_django_works() {
    Scripted::start().passes(Command::new(python()).arg(script("django_cache.py")));
}

#[test]
fn ioredis_works() {
    Scripted::start().passes(&mut node("ioredis.js"));
}

#[test]
fn node_redis_works() {
    Scripted::start().passes(&mut node("node_redis.js"));
}

#[test]
fn go_redis_works() {
    Scripted::start().passes(&mut go());
}
