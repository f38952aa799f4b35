//! `WATCHRANGE … PREV` on the real server: each change comes with what its key was before.

mod support;

use std::process::Command;
use support::Server;
use support::resp::Connection;

const PREVIOUS: [&str; 2] = ["--log-previous", "yes"];
const ALWAYS: [&str; 2] = ["--durability", "always"];

/// The next message in words, from its kind on: the kind, the sequence, and what follows, with the
/// lengths of arrays.
fn shown(client: &mut Connection) -> String {
    let message = client.reply().expect("a message");
    let text = String::from_utf8(message).expect("text");
    let lines = text.lines().skip(1);
    let lines = lines.filter(|line| !line.starts_with('$'));
    let words: Vec<&str> = lines.map(|line| line.trim_start_matches(':')).collect();
    assert_eq!(words[0], "watchrange", "{text}");
    words[3..].join(" ")
}

/// Every kind of write, in both protocols, and beside a watch that does not ask for it.
#[test]
fn each_change_comes_with_what_was_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(directory.path(), &PREVIOUS);
    let [mut three, mut two, mut plain, mut other] = [(); 4].map(|()| server.connect());
    three.call(&["hello", "3"]);
    assert_eq!(three.text("watchrange [a (z prev"), ":1\r\n");
    assert_eq!(two.text("watchrange [a (z PREV SNAPSHOT"), ":1\r\n");
    assert_eq!(shown(&mut two), "snapshot 0");
    plain.call(&["hello", "3"]);
    assert_eq!(plain.text("watchrange [a (z"), ":1\r\n");
    let writes: [(&str, &[&str]); 13] = [
        ("set a 1", &["set 1 a 1 -1 *0"]),
        ("set a 2", &["set 2 a 2 -1 *2 1 -1"]),
        ("mset b 1 b 2", &["set 3 b 1 -1 *0", "set 4 b 2 -1 *2 1 -1"]),
        ("append b x", &["set 5 b 2x -1 *2 2 -1"]),
        (
            "pexpireat b 4000000000000",
            &["expire 6 b 4000000000000 *2 2x -1"],
        ),
        ("persist b", &["expire 7 b -1 *2 2x 4000000000000"]),
        ("del a nothing b", &["del 8 a *2 2 -1", "del 9 b *2 2x -1"]),
        (
            "msetnx d 1 d 2",
            &["set 10 d 1 -1 *0", "set 11 d 2 -1 *2 1 -1"],
        ),
        ("set e 1", &["set 12 e 1 -1 *0"]),
        ("rename d e", &["set 13 e 2 -1 *2 1 -1", "del 14 d *2 2 -1"]),
        ("copy e f", &["set 15 f 2 -1 *0"]),
        ("delrange [e (g", &["del 16 e *2 2 -1", "del 17 f *2 2 -1"]),
        ("getset g 1", &["set 18 g 1 -1 *0"]),
    ];
    for (write, expected) in writes {
        let reply = other.text(write);
        assert!(!reply.starts_with('-'), "{write}: {reply}");
        for expected in expected {
            assert_eq!(shown(&mut three), *expected, "{write}");
            assert_eq!(shown(&mut two), *expected, "{write}");
            let (without, _) = expected.rsplit_once(" *").expect("what was before");
            assert_eq!(shown(&mut plain), without, "{write}");
        }
    }
    // The changes of a transaction see each other.
    for command in ["multi", "set g 2", "del g", "set g 3", "exec"] {
        let reply = other.text(command);
        assert!(!reply.starts_with('-'), "{command}: {reply}");
    }
    for expected in [
        "set 19 g 2 -1 *2 1 -1",
        "del 20 g *2 2 -1",
        "set 21 g 3 -1 *0",
    ] {
        assert_eq!(shown(&mut three), expected);
    }
    assert_eq!(other.text("flushall"), "+OK\r\n");
    // The transaction may have had more sequences than it used.
    let last = shown(&mut three);
    assert!(
        last.starts_with("del 2") && last.ends_with(" g *2 3 -1"),
        "{last}"
    );
}

/// A watch goes on behind a restart; what was logged without what was before ends it, and nothing
/// that it shows is made up.
#[test]
fn a_watch_is_shown_what_was_logged_or_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    // What is answered stays, however the server ends.
    let options = [&PREVIOUS[..], &ALWAYS].concat();
    let server = Server::kept(directory.path(), &ALWAYS);
    let refused = server.connect().text("watchrange - + prev");
    let needs = "-ERR PREV needs what keys were before their changes";
    assert!(refused.starts_with(needs), "{refused}");
    server.connect().text("set a 1");
    drop(server);
    let server = Server::kept(directory.path(), &options);
    server.connect().text("set a 2");
    drop(server);
    let server = Server::kept(directory.path(), &options);
    let mut client = server.connect();
    client.call(&["hello", "3"]);
    let reply = client.text("watchrange - + from 2 prev");
    assert_eq!(reply, ":2\r\n");
    assert_eq!(shown(&mut client), "set 2 a 2 -1 *2 1 -1");
    server.connect().text("set a 3");
    assert_eq!(shown(&mut client), "set 3 a 3 -1 *2 2 -1");
    assert_eq!(client.text("unwatchrange"), ":1\r\n");
    assert_eq!(client.text("watchrange - + from 1 prev"), ":1\r\n");
    let end = shown(&mut client);
    assert_eq!(
        end,
        "end 1 ERR the log does not have what was before the change 1, which was written without \
         --log-previous"
    );
    assert_eq!(client.text("watches"), "*0\r\n");
    assert_eq!(client.text("watchrange - + from 1"), ":1\r\n");
    assert_eq!(shown(&mut client), "set 1 a 1 -1");
}

/// Also without a disk; and what does not go together is refused at the start.
#[test]
fn what_was_before_needs_a_log_and_no_cache() {
    let ring = ["--memory-only", "--watch-ring", "1mb"];
    let server = Server::tremula(&[&ring[..], &PREVIOUS].concat());
    let (mut client, mut other) = (server.connect(), server.connect());
    client.call(&["hello", "3"]);
    assert_eq!(client.text("watchrange - + prev"), ":1\r\n");
    assert_eq!(other.text("setrange a 1 x"), ":2\r\n");
    assert_eq!(other.text("incr b"), ":1\r\n");
    assert_eq!(other.text("incr b"), ":2\r\n");
    let first = client.reply().expect("a message");
    assert!(first.ends_with(b":-1\r\n*0\r\n"), "{first:?}");
    assert_eq!(shown(&mut client), "set 2 b 1 -1 *0");
    assert_eq!(shown(&mut client), "set 3 b 2 -1 *2 1 -1");
    for (options, why) in [
        (&["--memory-only"][..], "--log-previous needs a log"),
        (
            &["--memory-only", "--watch-ring", "1mb", "--cache", "1mb"],
            "--cache excludes --log-previous",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
        let command = command.args(["serve", "--port", "0"]).args(options);
        let error = support::failure(command.args(PREVIOUS));
        assert!(error.contains(why), "{error}");
    }
}
