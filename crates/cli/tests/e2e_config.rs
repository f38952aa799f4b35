//! Settings that change while the server runs: `CONFIG SET` and `CONFIG REWRITE`.

mod support;

use std::fs;
use std::process::Command;
use support::Server;
use support::resp::{Connection, bulk, elements};

fn value(client: &mut Connection, name: &str) -> String {
    let reply = client.call(&["config", "get", name]);
    String::from_utf8(bulk(&elements(&reply)[1])).expect("text")
}

/// Settings that change alive do so for connections on every thread, also for those that were there
/// before.
#[test]
fn changed_settings_reach_every_thread() {
    let server = Server::tremula(&["--threads", "4", "--gather", "no", "--max-memory", "1gb"]);
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    clients
        .iter_mut()
        .for_each(|client| drop(client.text("ping")));
    let mut operator = server.connect();
    assert_eq!(
        operator.text("config set max-output-buffer 1kb proto-max-bulk-len 100"),
        "+OK\r\n"
    );
    for client in &mut clients {
        let text = client.call(&["echo", &"x".repeat(101)]);
        assert_eq!(text, b"-ERR Protocol error: invalid bulk length\r\n");
    }
    assert_eq!(
        operator.text("config set proto-max-bulk-len 1mb"),
        "+OK\r\n"
    );
    let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut clients {
        let text = client.call(&["echo", &"x".repeat(2000)]);
        assert!(text.starts_with(b"-ERR reply exceeds the output buffer limit of 1024"));
    }
    assert_eq!(
        operator.text("config set max-output-buffer 1mb maxmemory 1"),
        "+OK\r\n"
    );
    for client in &mut clients {
        assert!(client.text("set a b").starts_with("-OOM "));
    }
    assert_eq!(operator.text("config set maxmemory 0"), "+OK\r\n");
    for client in &mut clients {
        assert_eq!(client.text("set a b"), "+OK\r\n");
    }
    assert_eq!(operator.text("config set requirepass pw"), "+OK\r\n");
    let mut stranger = server.connect();
    assert!(stranger.text("get a").starts_with("-NOAUTH"));
    assert_eq!(stranger.text("auth pw"), "+OK\r\n");
    operator.text("config set maxclients 5");
    let mut refused = server.connect();
    let mut last = server.connect();
    // Places for clients of this machine are left.
    for _ in 0..8 {
        (refused, last) = (last, server.connect());
    }
    drop(refused);
    let reply = last.reply().expect("a refusal");
    assert_eq!(reply, b"-ERR max number of clients reached\r\n");
}

/// Keys that nobody uses go when a policy is chosen alive, and `OBJECT` shows what it knows.
#[test]
fn a_policy_of_evictions_is_chosen_alive() {
    let server = Server::tremula(&["--threads", "2", "--max-memory", "1gb"]);
    let mut client = server.connect();
    client.text("set a 1");
    assert!(
        client
            .text("object idletime a")
            .starts_with("-ERR An LRU maxmemory policy is not selected")
    );
    client.text("config set maxmemory-policy allkeys-lfu");
    (0..300).for_each(|_| drop(client.text("get a")));
    let frequency = client.text("object freq a");
    let number: u64 = frequency
        .trim()
        .trim_start_matches(':')
        .parse()
        .expect("a number");
    assert!(number > 5, "{frequency}");
    assert!(
        client
            .text("object idletime a")
            .starts_with("-ERR An LFU maxmemory policy is selected")
    );
    client.text("config set maxmemory-policy allkeys-lru");
    client.text("get a");
    assert_eq!(client.text("object idletime a"), ":0\r\n");
    let used: u64 = client.info("memory")["used_memory"]
        .parse()
        .expect("a number");
    client.text(&format!("config set maxmemory {}", used + (2 << 20)));
    let value = "v".repeat(10_000);
    for key in 0..400 {
        let reply = client.call(&["set", &format!("k{key}"), &value]);
        assert_eq!(reply, b"+OK\r\n");
    }
    let evicted: u64 = client.info("stats")["evicted_keys"]
        .parse()
        .expect("a number");
    assert!(evicted > 50, "{evicted}");
    client.text("config resetstat");
    assert_eq!(client.info("stats")["evicted_keys"], "0");
}

/// `CONFIG REWRITE` puts what has changed into the file, which the next start reads, and leaves the
/// rest of it alone.
#[test]
fn changed_settings_are_written_into_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tremula.toml");
    let text = "# mine\nport = 0\nthreads = 1 # one\ntimeout = 11\n";
    fs::write(&path, text).expect("written");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        Server::of(command.args(["serve", "--config"]).arg(&path))
    };
    let server = start();
    let mut client = server.connect();
    assert_eq!(client.text("config rewrite"), "+OK\r\n");
    assert_eq!(fs::read_to_string(&path).expect("the file"), text);
    let set = "config set timeout 12 maxmemory 100mb loglevel verbose latency-tracking no";
    assert_eq!(client.text(set), "+OK\r\n");
    assert_eq!(client.text("config rewrite"), "+OK\r\n");
    let expected = "# mine\nport = 0\nthreads = 1 # one\ntimeout = 12\nlatency-tracking = \"no\"\n\
                    log-level = \"info\"\nmax-memory = 104857600\n";
    assert_eq!(fs::read_to_string(&path).expect("the file"), expected);
    // What no start would take is not written.
    assert_eq!(client.text("config set maxmemory 7"), "+OK\r\n");
    let refused = client.text("config rewrite");
    assert!(refused.contains("4mb at least"), "{refused}");
    assert_eq!(fs::read_to_string(&path).expect("the file"), expected);
    assert_eq!(
        client.text("config set timeout 11 maxmemory 100mb"),
        "+OK\r\n"
    );
    assert_eq!(client.text("config rewrite"), "+OK\r\n");
    drop((client, server));
    let server = start();
    let mut client = server.connect();
    for (name, expected) in [
        ("timeout", "11"),
        ("maxmemory", "104857600"),
        ("loglevel", "verbose"),
        ("latency-tracking", "no"),
    ] {
        assert_eq!(value(&mut client, name), expected, "{name}");
    }
}
