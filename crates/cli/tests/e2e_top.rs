//! `tremula top` on a real server: as text, and on a terminal.

mod support;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use support::resp::{bulk, elements, encode};
use support::tls::Authority;
use support::{Server, free_address, run};

fn top(server: &Server, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let port = server.address.port().to_string();
    command.args(["top", "--port", &port, "--interval", "0.2"]);
    run(command.args(flags), b"")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

#[test]
fn one_frame_shows_what_the_server_does() {
    let server = Server::tremula(&["--threads", "2", "--memory-only"]);
    let mut client = server.connect();
    assert_eq!(
        client.text("config set slowlog-log-slower-than 0"),
        "+OK\r\n"
    );
    assert_eq!(client.text("client setname loader"), "+OK\r\n");
    for _ in 0..20 {
        assert_eq!(client.text("set a b"), "+OK\r\n");
    }
    let output = top(&server, &["--once"]);
    assert!(output.status.success(), "{output:?}");
    let shown = text(&output.stdout);
    for wanted in [
        &format!("tremula {}", env!("CARGO_PKG_VERSION")),
        &server.address.to_string(),
        "== Overview",
        "keys 1",
        "log none: memory only",
        "== Commands",
        "p99 us",
        "== Clients",
        "loader",
        "== Slow log",
        "set a b",
        "== Index",
        "leaves",
        "== Hot leaves",
        "(the first)",
    ] {
        assert!(shown.contains(wanted), "{wanted:?} is not in\n{shown}");
    }
    let set = shown.lines().find(|line| line.starts_with("set "));
    let words: Vec<&str> = set.expect("a line of set").split_whitespace().collect();
    assert!(words.contains(&"20"), "{words:?}");
}

#[test]
fn what_a_user_may_not_see_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    let users = place.path().join("users.acl");
    let password = place.path().join("password");
    fs::write(
        &users,
        "user default off\nuser eye on >secret -@all +info +shape +client|list\n",
    )
    .expect("a file");
    fs::write(&password, "secret\n").expect("a file");
    let users = users.to_str().expect("text");
    let server = Server::tremula(&["--memory-only", "--acl-file", users]);
    let password = password.to_str().expect("text");
    let login = ["--once", "--user", "eye", "--password-file", password];
    let output = top(&server, &login);
    assert!(output.status.success(), "{output:?}");
    let shown = text(&output.stdout);
    assert!(shown.contains("NOPERM"), "{shown}");
    assert!(shown.contains("== Clients"), "{shown}");
    let output = top(&server, &["--once"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("INFO: NOAUTH"), "{error}");
    fs::write(place.path().join("password"), "wrong\n").expect("a file");
    let output = top(&server, &login);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("WRONGPASS") && !error.contains("wrong\n"),
        "{error}"
    );
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    let port = free_address().port().to_string();
    let output = run(command.args(["top", "--once", "--port", &port]), b"");
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains(&port) && error.contains("cannot connect"),
        "{error}"
    );
}

#[test]
fn a_server_with_tls_is_watched_if_it_is_who_it_should_be() {
    let place = tempfile::tempdir().expect("a directory");
    let [ours, theirs] = ["ours", "theirs"].map(|name| Authority::new(place.path(), name));
    let [certificate, key] = ours.sign("server");
    let [own, own_key] = ours.sign("client");
    let authority = ours.certificate();
    let server = Server::tremula(&[
        "--memory-only",
        "--tls-port",
        "0",
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
        "--tls-ca",
        &authority,
    ]);
    let tls = server.tls_address();
    let top = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        let port = tls.port().to_string();
        command.args(["top", "--once", "--interval", "0.2", "--port", &port]);
        run(command.args(flags), b"")
    };
    let mine = ["--tls-cert", &own, "--tls-key", &own_key];
    let output = top(&[&["--tls-ca", &authority][..], &mine].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("== Overview"), "{output:?}");
    for flags in [
        // Nobody that is trusted says that it is this server.
        &[&["--tls-ca", &theirs.certificate()][..], &mine].concat()[..],
        // The server does not know the client.
        &["--tls-ca", &authority],
        // There is nobody to trust.
        &["--tls-ca", "no such file"],
    ] {
        let output = top(flags);
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{output:?}");
    }
}

/// Ctrl-C leaves, and the terminal is as it was.
#[test]
fn the_terminal_is_as_it_was_afterwards() {
    const ENTER: &str = "\x1b[?1049h";
    const LEAVE: &str = "\x1b[?1049l";
    let server = Server::tremula(&["--memory-only"]);
    let port = server.address.port();
    let program = env!("CARGO_BIN_EXE_tremula");
    // `script` makes the terminal; afterwards `stty` says whether it shows what is typed.
    let line =
        format!("stty rows 30 cols 100; '{program}' top --port {port}; echo left $?; stty -a");
    let mut child = Command::new("script")
        .args(["--quiet", "--command", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts");
    let mut keys = child.stdin.take().expect("its input is piped");
    let mut screen = child.stdout.take().expect("its output is piped");
    let mut shown = Vec::new();
    let mut wait_for = |wanted: &str| {
        let mut bytes = [0; 4096];
        while !String::from_utf8_lossy(&shown).contains(wanted) {
            let read = screen.read(&mut bytes).expect("the screen");
            let so_far = String::from_utf8_lossy(&shown).into_owned();
            assert!(read > 0, "it ends without {wanted:?}: {so_far}");
            shown.extend_from_slice(&bytes[..read]);
        }
    };
    wait_for(ENTER);
    wait_for("commands/s");
    keys.write_all(b"5").expect("a key");
    wait_for("change/s");
    keys.write_all(b"\x03").expect("Ctrl-C");
    wait_for(LEAVE);
    wait_for("left 0");
    wait_for(" echo ");
    drop(keys);
    assert!(child.wait().expect("its status").success());
}

#[test]
fn the_hottest_leaves_come_first() {
    let server = Server::tremula(&["--threads", "1", "--memory-only"]);
    let mut client = server.connect();
    for (count, refusal) in [
        ("0", "count is '0'"),
        ("many", "count is 'many'"),
        ("1001", "1 to 1000"),
    ] {
        let answer = client.text(&format!("SHAPE LEAVES {count}"));
        assert!(
            answer.starts_with("-ERR") && answer.contains(refusal),
            "{answer}"
        );
    }
    assert!(client.text("SHAPE TREE").starts_with("-ERR syntax"));
    let first = client.text("SHAPE LEAVES 9");
    assert!(first.starts_with("*1\r\n*4\r\n$0\r\n\r\n:0\r\n"), "{first}");
    let mut write = |keys: &mut dyn Iterator<Item = u32>| {
        let sets = keys.map(|number| encode(&["SET", &format!("k{number:05}"), "v"]));
        let sets: Vec<_> = sets.collect();
        client.send(&sets.concat());
        sets.iter()
            .for_each(|_| assert!(client.reply().is_some_and(|reply| reply == b"+OK\r\n")));
    };
    write(&mut (0..10_000));
    write(&mut std::iter::repeat_n(7007, 20_000));
    let leaves = elements(&client.call(&["SHAPE", "LEAVES", "2"]));
    assert_eq!(leaves.len(), 2);
    let hottest = bulk(&elements(&leaves[0])[0]);
    let hottest = text(&hottest);
    assert!(("k06500".."k07008").contains(&hottest), "{hottest}");
}
