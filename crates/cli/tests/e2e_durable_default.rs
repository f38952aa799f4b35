//! Where a server keeps its data by default.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use support::{Server, failure, free_address};

/// `tremula serve` of a user with this state directory.
fn serve(state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command
        .arg("serve")
        .args(arguments)
        .env("XDG_STATE_HOME", state);
    command
}

#[test]
fn data_is_kept_in_the_state_directory_unless_it_is_switched_off() {
    let state = tempfile::tempdir().expect("a directory");
    let port = free_address().port().to_string();
    let kept = state.path().join("tremula").join(&port);
    let at_port = ["--port", &port, "--threads", "1"];
    for round in 0..2 {
        let mut server = Server::of(&mut serve(state.path(), &at_port));
        let named = format!(", data in {})\n", kept.display());
        assert!(server.ready_line.ends_with(&named), "{}", server.ready_line);
        let mut client = server.connect();
        assert_eq!(client.text("incr n"), format!(":{}\r\n", round + 1));
        let shown = format!("{}\r\n", kept.display());
        assert!(client.text("config get dir").ends_with(&shown));
        assert!(client.text("waitaof 1 0 0").starts_with("*2\r\n:1"));
        let mode = kept.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "others can read it");
        server.signal("KILL");
        server.wait();
    }
    let flags = [&at_port[..], &["--memory-only", "--dir", "/nowhere"]].concat();
    let mut server = Server::of(&mut serve(state.path(), &flags));
    assert!(
        server.ready_line.ends_with(", memory only)\n"),
        "{}",
        server.ready_line
    );
    let mut client = server.connect();
    assert_eq!(client.text("get n"), "$-1\r\n");
    assert!(client.text("save").contains("--dir"));
    server.signal("TERM");
    assert!(server.wait().success());
    // A free port is another one each time.
    let server = Server::of(&mut serve(state.path(), &["--port", "0"]));
    assert!(
        server.ready_line.ends_with(", memory only)\n"),
        "{}",
        server.ready_line
    );
    let ports = std::fs::read_dir(state.path().join("tremula")).expect("a list");
    assert_eq!(ports.count(), 1);
}

#[test]
fn what_cannot_be_kept_is_refused_and_the_way_out_is_named() {
    let state = tempfile::tempdir().expect("a directory");
    let port = free_address().port().to_string();
    let flags = ["--port", &port, "--engine", "art"];
    let error = failure(&mut serve(state.path(), &flags));
    for part in ["error: engine 'art' cannot keep", "aspen", "--memory-only"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!state.path().join("tremula").exists());
    let error = failure(serve(Path::new("relative"), &["--port", &port]).env_remove("HOME"));
    for part in ["XDG_STATE_HOME", "HOME", "--dir", "--memory-only"] {
        assert!(error.contains(part), "{error}");
    }
    let file = state.path().join("file");
    std::fs::write(&file, b"no directory").expect("a file");
    let error = failure(&mut serve(&file, &["--port", &port]));
    for part in [
        "cannot make the directory",
        "Not a directory",
        "--memory-only",
    ] {
        assert!(error.contains(part), "{error}");
    }
    // Every engine serves without a log.
    let flags = ["--port", "0", "--engine", "art"];
    let server = Server::of(&mut serve(state.path(), &flags));
    assert_eq!(server.connect().text("ping"), "+PONG\r\n");
}
