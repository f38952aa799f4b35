//! Settings from flags, the environment and a file.

mod support;

use std::fs;
use std::process::Command;
use support::{Server, run};

fn tremula() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tremula"))
}

/// The value that `CONFIG GET` shows.
fn value(server: &Server, name: &str) -> String {
    let reply = server.connect().text(&format!("config get {name}"));
    let value = reply.lines().nth(4);
    value.unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// A flag goes before the environment, the environment before the file, the file before the default.
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
        server.ready_line.contains("1 thread)"),
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
