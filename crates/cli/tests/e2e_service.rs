//! As systemd's services of type notify are run: what the server does is said to a socket.

mod support;

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use support::{PATIENCE, Server};

/// The manager of services, as far as it listens.
struct Manager(UnixDatagram);

impl Manager {
    fn new(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time");
        Self(socket)
    }

    /// The next words of the server.
    fn next(&self) -> String {
        let mut bytes = [0; 1024];
        let length = self.0.recv(&mut bytes).expect("a word");
        String::from_utf8(bytes[..length].to_vec()).expect("text")
    }

    /// The next words that are no sign of life.
    fn next_state(&self) -> String {
        loop {
            let words = self.next();
            if words != "WATCHDOG=1" {
                return words;
            }
        }
    }
}

/// A server that is started as systemd starts one.
fn service(socket: &Path, variables: &[(&str, &str)], flags: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command
        .env("NOTIFY_SOCKET", socket)
        .envs(variables.iter().copied());
    Server::of(command.args(["serve", "--port", "0"]).args(flags))
}

#[test]
fn the_manager_of_services_hears_of_a_start_and_an_end() {
    let place = tempfile::tempdir().expect("a directory");
    let live = place.path().join("live");
    let server = Server::kept(&live, &["--durability", "always"]);
    let mut client = server.connect();
    assert_eq!(client.text("set a b"), "+OK\r\n");
    assert_eq!(client.text("save"), "+OK\r\n");
    assert_eq!(client.text("set c d"), "+OK\r\n");
    drop(server);
    let path = place.path().join("notify");
    let manager = Manager::new(&path);
    let live = live.to_str().expect("text");
    let mut server = service(&path, &[], &["--dir", live]);
    assert_eq!(manager.next(), "STATUS=reading the log");
    let longer = manager.next();
    let micros = longer.strip_prefix("EXTEND_TIMEOUT_USEC=");
    let micros = micros.and_then(|micros| micros.parse::<u64>().ok());
    assert!(micros.is_some_and(|micros| micros > 0), "{longer}");
    let loading = manager.next();
    assert!(
        loading.starts_with("STATUS=loading the snapshot: "),
        "{loading}"
    );
    let ready = manager.next();
    let port = server.port();
    assert!(ready.starts_with("READY=1\nSTATUS=serving on "), "{ready}");
    assert!(ready.ends_with(&port), "{ready}");
    server.signal("TERM");
    assert_eq!(
        manager.next(),
        "STOPPING=1\nSTATUS=making everything durable"
    );
    assert!(server.wait().success());
}

#[test]
fn the_manager_hears_regularly_that_every_thread_turns() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("notify");
    let manager = Manager::new(&path);
    let watched = [("WATCHDOG_USEC", "200000")];
    let mut server = service(&path, &watched, &["--memory-only"]);
    let (mut signs, mut is_ready) = (0, false);
    // Whichever comes first: the sign's clock begins with the threads.
    while signs < 5 || !is_ready {
        match manager.next() {
            words if words == "WATCHDOG=1" => signs += 1,
            words if words.starts_with("READY=1\n") => is_ready = true,
            words => panic!("{words}"),
        }
    }
    server.signal("TERM");
    assert!(manager.next_state().starts_with("STOPPING=1\n"));
    assert!(server.wait().success());
}

#[test]
fn a_watchdog_for_another_process_gets_no_sign() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("notify");
    let manager = Manager::new(&path);
    let watched = [("WATCHDOG_USEC", "1000"), ("WATCHDOG_PID", "1")];
    let mut server = service(&path, &watched, &["--memory-only"]);
    assert!(manager.next().starts_with("READY=1\n"));
    let mut client = server.connect();
    for _ in 0..100 {
        assert_eq!(client.text("ping"), "+PONG\r\n");
    }
    server.signal("TERM");
    assert!(manager.next().starts_with("STOPPING=1\n"));
    assert!(server.wait().success());
}

#[test]
fn the_manager_hears_that_settings_are_read_again() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("notify");
    let manager = Manager::new(&path);
    let server = service(&path, &[], &["--memory-only"]);
    let ready = manager.next();
    assert!(ready.starts_with("READY=1\n"), "{ready}");
    server.signal("HUP");
    let reloading = manager.next();
    let lines: Vec<&str> = reloading.lines().collect();
    assert_eq!(lines[0], "RELOADING=1");
    let micros = lines[1].strip_prefix("MONOTONIC_USEC=");
    let micros = micros.and_then(|micros| micros.parse::<u64>().ok());
    assert!(micros.is_some_and(|micros| micros > 0), "{reloading}");
    assert_eq!(lines[2], "STATUS=reading the settings again");
    assert_eq!(manager.next(), ready);
}
