//! Settings from flags, the environment and a file.

mod support;

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use support::{PATIENCE, Server, run};

fn tremula() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tremula"))
}

/// The value that `CONFIG GET` shows.
fn value(server: &Server, name: &str) -> String {
    let reply = server.connect().text(&format!("config get {name}"));
    let value = reply.lines().nth(4);
    value.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// A flag goes before the environment, the environment before the file, the file before the
/// default.
#[test]
fn a_running_server_has_its_settings_from_where_they_are_set_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tremula.toml");
    fs::write(
        &path,
        "port = 0\ntimeout = 11\ntcp-keepalive = 12\nmax-clients = 13\nthreads = 1\n",
    )
    .expect("written");
    let mut command = tremula();
    command
        .args(["serve", "--timeout", "31", "--config"])
        .arg(&path)
        .env("TREMULA_TCP_KEEPALIVE", "22")
        .env("TREMULA_TIMEOUT", "21");
    let server = Server::of(&mut command);
    for (name, expected) in [
        ("timeout", "31"),
        ("tcp-keepalive", "22"),
        ("maxclients", "13"),
        ("proto-max-bulk-len", "536870912"),
    ] {
        assert_eq!(value(&server, name), expected, "{name}");
    }
    assert!(
        server.ready_line.contains("1 thread, memory only)"),
        "{}",
        server.ready_line
    );
}

#[test]
fn a_file_is_checked_and_shown_without_serving() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tremula.toml");
    let text = |path: &std::path::Path, words: &[&str]| {
        let mut command = tremula();
        let output = run(command.args(words).arg(path), b"");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        (output.status.success(), text)
    };
    fs::write(&path, "timeout = 11\n").expect("written");
    let (is_right, said) = text(&path, &["config", "check"]);
    assert!(
        is_right && said.ends_with(": 1 setting, all right\n"),
        "{said}"
    );
    let (is_right, said) = text(&path, &["config", "show", "--port", "7", "--config"]);
    assert!(
        is_right
            && said.contains("\ntimeout = 11  # given\n")
            && said.contains("\nport = 7  # given\n")
            && said.contains("\n# max-clients = 10000  # default\n"),
        "{said}"
    );
    for (wrong, expected) in [
        (
            "timeouts = 1\n",
            "there is no setting 'timeouts'; did you mean 'timeout'?",
        ),
        ("timeout = -1\n", "'-1' for '--timeout"),
        ("timeout\n", ":1: "),
    ] {
        fs::write(&path, wrong).expect("written");
        for words in [
            &["config", "check"][..],
            &["config", "show", "--config"],
            &["serve", "--port", "0", "--config"],
        ] {
            let (is_right, said) = text(&path, words);
            let is_one_line = said.trim_end().lines().count() == 1;
            assert!(
                !is_right && is_one_line && said.contains(expected),
                "{said}"
            );
        }
    }
}

/// A wrong variable of the environment is named.
#[test]
fn a_wrong_variable_is_refused() {
    let mut command = tremula();
    command
        .args(["serve", "--port", "0"])
        .env("TREMULA_THREADS", "none");
    let output = run(&mut command, b"");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains("'none' for '--threads"),
        "{error}"
    );
}

/// Waits until a file has a text, and returns the line with it.
fn line_with(path: &std::path::Path, part: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if let Some(line) = text.lines().find(|line| line.contains(part)) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "no {part} in {text}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The log has the time, the level and the part of the program; its level changes with the file of
/// settings on SIGHUP, and a wrong file changes nothing.
#[test]
fn the_log_goes_where_and_how_it_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (settings, log) = (
        folder.path().join("tremula.toml"),
        folder.path().join("log"),
    );
    let write = |level: &str| {
        let text = format!("log-level = \"{level}\"\nlog-format = \"json\"\nlog-file = {log:?}\n");
        fs::write(&settings, text).expect("written");
    };
    write("warn");
    let mut command = tremula();
    let server = Server::of(
        command
            .args(["serve", "--port", "0", "--config"])
            .arg(&settings),
    );
    server.signal("USR1");
    let line = line_with(&log, "SIGUSR1");
    for part in [
        "\"timestamp\":\"20",
        "\"level\":\"WARN\"",
        "\"target\":\"tremula_server::server\"",
    ] {
        assert!(line.starts_with('{') && line.contains(part), "{line}");
    }
    write("nonsense");
    server.signal("HUP");
    line_with(&log, "the settings stay as they are");
    write("error");
    server.signal("HUP");
    line_with(&log, "SIGHUP");
    // The next signals are logged no more, once the level has changed.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = fs::read_to_string(&log)
            .expect("read")
            .matches("SIGUSR1")
            .count();
        server.signal("USR1");
        // Answered behind the signal, or soon after it.
        for _ in 0..100 {
            server.connect().text("ping");
        }
        let after = fs::read_to_string(&log)
            .expect("read")
            .matches("SIGUSR1")
            .count();
        if before == after {
            break;
        }
        assert!(Instant::now() < deadline, "the level does not change");
    }
}
