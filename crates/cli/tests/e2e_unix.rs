//! The real server on a unix socket.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{PATIENCE, Server, run};

fn server(path: &Path, more: &[&str]) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command
        .args(["serve", "--port", "0", "--unix-socket"])
        .arg(path)
        .args(more);
    Server::of(command.stderr(Stdio::null()))
}

/// What `redis-cli` shows for lines of commands.
fn say(path: &Path, lines: &str) -> String {
    let mut command = Command::new("redis-cli");
    let output = run(command.arg("-s").arg(path), lines.as_bytes());
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// The standard error of a failure to start.
fn failure(path: &Path, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let command = command.args(["serve", "--port", "0", "--unix-socket"]);
    support::failure(command.arg(path).args(more))
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::symlink_metadata(path).expect("a file");
    assert!(metadata.file_type().is_socket());
    metadata.permissions().mode() & 0o777
}

#[test]
fn a_unix_socket_serves_clients_and_goes_with_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    // Protected mode lets its clients in, wherever else the server listens.
    let mut server = server(&path, &["--bind", "0.0.0.0", "--threads", "1"]);
    let shown = path.to_str().expect("text");
    assert!(
        server
            .ready_line
            .contains(&format!(" and {shown} (engine "))
    );
    assert_eq!(mode(&path), 0o700);
    let said = say(&path, "SET key value\nGET key\nCLIENT LIST\nINFO server\n");
    for part in [
        "OK\nvalue\n",
        &format!(" addr={shown}:0 laddr={shown}:0 "),
        " flags=U ",
        &format!("listener1:name=unix,bind={shown}\r\n"),
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    // The same keys by another way, and a client of the socket that another kills by its address.
    let mut other = server.connect();
    assert_eq!(other.text("GET key"), "$5\r\nvalue\r\n");
    let mut killed = UnixStream::connect(&path).expect("a connection");
    killed.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut reply = [0; 7];
    killed.write_all(b"PING\r\n").expect("sent");
    killed.read_exact(&mut reply).expect("a reply");
    let kill = format!("CLIENT KILL ADDR {shown}:0");
    assert_eq!(other.text(&kill), ":1\r\n");
    assert_eq!(killed.read(&mut reply).expect("the end"), 0);
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!path.exists());
}

#[test]
fn a_socket_has_the_mode_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let server = server(&path, &["--port", "none", "--unix-socket-mode", "0660"]);
    assert_eq!(server.address.port(), 0, "no such place");
    assert_eq!(mode(&path), 0o660);
    assert_eq!(say(&path, "PING\n"), "PONG\n");
    for wrong in ["rw", "8", "1777", ""] {
        let error = failure(&folder.path().join("other"), &["--unix-socket-mode", wrong]);
        assert!(error.contains(&format!("'{wrong}'")), "{error}");
    }
}

#[test]
fn only_a_socket_on_which_nobody_listens_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let mut first = server(&path, &[]);
    let error = failure(&path, &[]);
    assert!(error.contains("another server listens there"), "{error}");
    assert!(error.contains(path.to_str().expect("text")), "{error}");
    assert_eq!(say(&path, "PING\n"), "PONG\n", "the first goes on");
    first.signal("KILL");
    first.wait();
    assert!(path.exists(), "nobody has removed it");
    let second = server(&path, &[]);
    assert_eq!(say(&path, "PING\n"), "PONG\n");
    drop(second);

    let file = folder.path().join("file");
    fs::write(&file, "precious").expect("written");
    let error = failure(&file, &[]);
    assert!(error.contains("is no socket"), "{error}");
    assert_eq!(fs::read(&file).expect("read"), b"precious");
    for (wrong, expected) in [
        (folder.path().join("no/folder"), "No such file"),
        (folder.path().join("x".repeat(200)), "path"),
    ] {
        let error = failure(&wrong, &[]);
        assert!(
            error.contains(expected) && error.contains("--unix-socket"),
            "{error}"
        );
    }
}
