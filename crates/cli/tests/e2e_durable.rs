//! Keys that are kept over restarts, kills, and what is wrong with a directory.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use support::resp::{Connection, bulk, elements, encode};
use support::{Server, eventually, failure};

/// Kills of the ordinary run, and of a deep one.
const KILLS: [u64; 2] = [20, 500];

fn get(client: &mut Connection, key: &str) -> Option<Vec<u8>> {
    let reply = client.call(&["get", key]);
    (reply != b"$-1\r\n").then(|| bulk(&reply))
}

fn number(client: &mut Connection, key: &str) -> u64 {
    get(client, key).map_or(0, |text| {
        let text = String::from_utf8(text).expect("digits");
        text.parse().expect("a number")
    })
}

fn figure(client: &mut Connection, name: &str) -> String {
    let text = String::from_utf8(bulk(&client.call(&["info", "persistence"]))).expect("text");
    let found = text.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        (field == name).then(|| value.to_owned())
    });
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

/// Everything in some databases, by `RANGE`, with the versions: replies of `GETV`.
fn contents(client: &mut Connection) -> BTreeMap<(u8, Vec<u8>), Vec<u8>> {
    let mut all = BTreeMap::new();
    for database in 0..3_u8 {
        assert_eq!(client.text(&format!("select {database}")), "+OK\r\n");
        let entries = elements(&client.call(&["range", "-", "+", "withvalues"]));
        for pair in entries.chunks(2) {
            let key = bulk(&pair[0]);
            let reply = client.call(&[b"getv".to_vec(), key.clone()]);
            assert_eq!(elements(&reply)[0], pair[1]);
            all.insert((database, key), reply);
        }
    }
    client.text("select 0");
    all
}

#[test]
fn keys_are_there_after_an_orderly_end_and_after_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut expected = BTreeMap::new();
    for round in 0..4 {
        // The engines and the cache read the same files.
        let engine = ["aspen", "ca_tree", "b_tree", "aspen"][round];
        let cache: &[&str] = if round % 2 == 1 {
            &["--cache", "8mb", "--cache-from", "1kb"]
        } else {
            &[]
        };
        let arguments = [&["--engine", engine, "--durability", "always"], cache].concat();
        let mut server = Server::kept(directory.path(), &arguments);
        let mut client = server.connect();
        assert_eq!(contents(&mut client), expected, "round {round}");
        let long = "x".repeat(3000);
        for command in [
            &["set", "plain", "value"][..],
            &["set", &format!("of round {round}"), "here"],
            &["incr", "counter"],
            &["incrbyfloat", "float", "0.5"],
            &["pexpireat", "float", "99999999999999"],
            &["append", "appended", "piece "],
            &["append", "long", &long],
            &["append", "long", "end"],
            &["setrange", "ranged", "10", "tail"],
            &["mset", "m1", "one", "m2", "two", "m3", &long],
            &["del", "m1", "m3", "none"],
            &["getset", "plain", "newer"],
            &["setnx", "plain", "not this"],
            &["set", "gone", "soon"],
            &["getdel", "gone"],
            &["set", "a1", "x"],
            &["set", "a2", "x"],
            &["delrange", "[a1", "(a2"],
            &["set", "", "under the empty key"],
            &["set", "binary\r\n", "\r\n"],
            &["select", "1"],
            &["set", "other", "database"],
            &["select", "2"],
            &["set", "flushed", "away"],
            &["flushdb"],
            &["set", "kept", "behind the flush"],
        ] {
            let reply = client.call(command);
            assert_ne!(reply[0], b'-', "{command:?}: {}", reply.escape_ascii());
        }
        expected = contents(&mut client);
        assert_eq!(expected.len(), 13 + round, "{:?}", expected.keys());
        if round % 2 == 0 {
            server.signal("TERM");
            assert!(server.wait().success());
            let snapshots = std::fs::read_dir(directory.path()).expect("a list");
            let names = snapshots.map(|entry| entry.expect("an entry").file_name());
            assert!(
                names
                    .into_iter()
                    .any(|name| name.to_string_lossy().starts_with("snapshot-"))
            );
        } else {
            server.signal("KILL");
            server.wait();
        }
    }
}

/// Clients write with `always` and note what was acknowledged; the server is killed at a random
/// moment. What was acknowledged is there, and of each pair that is written in one step both.
#[test]
fn what_is_acknowledged_survives_kills() {
    const CLIENTS: usize = 4;
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    let directory = tempfile::tempdir().expect("a directory");
    let acknowledged: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut total = 0;
    for kill in 0..KILLS[usize::from(is_deep)] {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        for (number_of, acknowledged) in acknowledged.iter().enumerate() {
            let [one, other] =
                ["a", "b"].map(|half| number(&mut client, &format!("{half}{number_of}")));
            assert_eq!(one, other, "half of a step, after kill {kill}");
            let least = acknowledged.load(Ordering::Relaxed);
            assert!(
                one >= least,
                "kill {kill}: {least} was acknowledged, {one} is there"
            );
            let appended = get(&mut client, &format!("text{number_of}")).unwrap_or_default();
            // A kill between the two commands leaves one without the other.
            let appended = appended.len() as u64;
            assert!(
                appended + kill >= least,
                "kill {kill}: {appended} of {least}"
            );
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let time = Duration::from_millis(10 + state % 60);
        thread::scope(|scope| {
            for (number_of, acknowledged) in acknowledged.iter().enumerate() {
                let mut client = server.connect();
                let begin = number(&mut client, &format!("a{number_of}"));
                scope
                    .spawn(move || write_until_killed(&mut client, number_of, begin, acknowledged));
            }
            if kill % 3 == 1 {
                assert!(client.text("bgsave").starts_with("+Background"));
            }
            thread::sleep(time);
            server.signal("KILL");
            server.wait();
        });
        total = acknowledged
            .iter()
            .map(|one| one.load(Ordering::Relaxed))
            .sum();
    }
    assert!(total > 100, "{total} writes are too few to tell");
}

/// Writes rising numbers, several commands at once, until the connection ends.
fn write_until_killed(
    client: &mut Connection,
    number_of: usize,
    begin: u64,
    acknowledged: &AtomicU64,
) {
    for number in begin + 1.. {
        let number = number.to_string();
        let keys = ["a", "b", "text"].map(|name| format!("{name}{number_of}"));
        let mut commands = encode(&["mset", &keys[0], &number, &keys[1], &number]);
        commands.extend(encode(&["append", &keys[2], "."]));
        client.send(&commands);
        let replies = [(); 2].map(|()| client.reply_or_end());
        let (Some(set), Some(appended)) = (&replies[0], &replies[1]) else {
            return;
        };
        assert_eq!((&set[..], appended[0]), (&b"+OK\r\n"[..], b':'));
        acknowledged.store(number.parse().expect("a number"), Ordering::Relaxed);
    }
}

#[test]
fn snapshots_and_durability_are_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::kept(directory.path(), &[]);
    let mut client = server.connect();
    let began = client.text("lastsave");
    assert_eq!(figure(&mut client, "aof_enabled"), "1");
    assert_eq!(figure(&mut client, "log_durability"), "everysec");
    assert_eq!(
        client.text("config get appendonly"),
        "*2\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n"
    );
    assert_eq!(client.text("set a b"), "+OK\r\n");
    assert_eq!(figure(&mut client, "rdb_changes_since_last_save"), "1");
    assert_eq!(client.text("save"), "+OK\r\n");
    assert_eq!(figure(&mut client, "rdb_changes_since_last_save"), "0");
    assert_eq!(figure(&mut client, "rdb_last_bgsave_status"), "ok");
    assert!(client.text("lastsave") >= began);
    assert_eq!(client.text("bgsave now"), "-ERR syntax error\r\n");
    assert_eq!(
        client.text("bgsave schedule"),
        "+Background saving started\r\n"
    );
    eventually("the snapshot ends", || {
        figure(&mut client, "rdb_bgsave_in_progress") == "0"
    });
    // What a WAITAOF has answered is on the disk.
    assert_eq!(client.text("incr n"), ":1\r\n");
    assert_eq!(client.text("waitaof 1 0 0"), "*2\r\n:1\r\n:0\r\n");
    let last = figure(&mut client, "log_last_effect");
    assert_eq!(figure(&mut client, "log_durable_effect"), last);
    // These numbers go on, whatever is counted anew.
    assert_eq!(client.text("config resetstat"), "+OK\r\n");
    assert_eq!(figure(&mut client, "log_last_effect"), last);
    assert_eq!(figure(&mut client, "log_durable_effect"), last);
    // There are no replicas.
    assert_eq!(client.text("waitaof 1 1 20"), "*2\r\n:1\r\n:0\r\n");
    assert_eq!(client.text("waitaof 0 0 0"), "*2\r\n:0\r\n:0\r\n");
    for (command, told) in [
        (
            "waitaof 2 0 0",
            "-ERR value is out of range, must be between 0 and 1\r\n",
        ),
        (
            "waitaof 1 -1 0",
            "-ERR value is out of range, must be positive\r\n",
        ),
        (
            "waitaof x 0 0",
            "-ERR value is not an integer or out of range\r\n",
        ),
        ("waitaof 1 0 -1", "-ERR timeout is negative\r\n"),
        (
            "client durability often",
            "-ERR 'often' is not one of always, everysec and no and default\r\n",
        ),
    ] {
        assert_eq!(client.text(command), told, "{command}");
    }
    // For one connection, and for all.
    assert_eq!(client.text("client durability always"), "+OK\r\n");
    assert_eq!(client.text("incr n"), ":2\r\n");
    let last = figure(&mut client, "log_last_effect");
    assert_eq!(figure(&mut client, "log_durable_effect"), last);
    assert_eq!(client.text("client durability default"), "+OK\r\n");
    // What somebody has written who does not wait is on the disk before a reader sees it who does.
    let mut reader = server.connect();
    assert_eq!(reader.text("client durability always"), "+OK\r\n");
    assert_eq!(client.text("incr n"), ":3\r\n");
    let last = figure(&mut client, "log_last_effect");
    assert_eq!(reader.text("get n"), "$1\r\n3\r\n");
    assert_eq!(figure(&mut client, "log_durable_effect"), last);
    assert_eq!(client.text("config set appendfsync always"), "+OK\r\n");
    assert_eq!(figure(&mut client, "log_durability"), "always");
    assert_eq!(client.text("incr n"), ":4\r\n");
    server.signal("KILL");
    server.wait();
    let server = Server::kept(directory.path(), &[]);
    assert_eq!(number(&mut server.connect(), "n"), 4);
}

/// One snapshot follows the other if the log grows so quickly.
#[test]
fn snapshots_follow_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(directory.path(), &["--snapshot-every", "4kb"]);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(
            client.text(&format!("set k {}", "v".repeat(8192))),
            "+OK\r\n"
        );
        eventually("a snapshot has it", || {
            figure(&mut client, "rdb_changes_since_last_save") == "0"
        });
    }
}

/// A client that waits for replicas, of which there are none, and leaves is not kept.
#[test]
fn who_leaves_while_he_waits_for_the_disk_is_let_go() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    let mut leaving = server.connect();
    leaving.send(&encode(&["waitaof", "0", "1", "0"]));
    let mut waits = || client.text("client list").contains(" cmd=waitaof ");
    eventually("it waits", &mut waits);
    drop(leaving);
    eventually("it is let go", || !waits());
}

#[test]
fn without_a_directory_nothing_is_saved_and_that_is_said() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    for command in [
        "save",
        "bgsave",
        "lastsave",
        "client durability always",
        "waitaof 1 0 0",
    ] {
        let reply = client.text(command);
        assert!(
            reply.starts_with("-ERR ") && reply.contains("--dir"),
            "{command}: {reply}"
        );
    }
    assert_eq!(client.text("waitaof 0 0 0"), "*2\r\n:0\r\n:0\r\n");
    assert_eq!(figure(&mut client, "aof_enabled"), "0");
    assert!(
        client
            .text("config set appendfsync always")
            .contains("--dir")
    );
}

/// How `tremula serve` refuses to start in a directory.
fn refusal(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command
        .args(["serve", "--port", "0", "--dir"])
        .arg(directory);
    failure(command.args(arguments))
}

#[test]
fn a_directory_that_cannot_be_used_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(directory.path(), &["--durability", "always"]);
    let mut client = server.connect();
    assert_eq!(client.text("set a b"), "+OK\r\n");
    let text = refusal(directory.path(), &[]);
    assert!(text.contains("is in use by"), "{text}");
    assert!(text.contains(&server.process().to_string()), "{text}");
    drop((client, server));
    let file = directory.path().join("file");
    std::fs::write(&file, b"no directory").expect("a file");
    let text = refusal(&file, &[]);
    assert!(
        text.starts_with("error: --dir") && text.contains("File exists"),
        "{text}"
    );
    let text = refusal(directory.path(), &["--engine", "art"]);
    assert!(text.contains("art") && text.contains("aspen"), "{text}");
    let log = std::fs::read_dir(directory.path().join("log")).expect("a list");
    let segment = log
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some())
        .min()
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("its bytes");
    bytes[20] ^= 1;
    std::fs::write(&segment, &bytes).expect("damage");
    let text = refusal(directory.path(), &[]);
    let name = segment.file_name().expect("a name").to_string_lossy();
    assert!(
        text.contains("is damaged at offset") && text.contains(&*name),
        "{text}"
    );
    assert!(text.contains("tremula log check"), "{text}");
    bytes[20] ^= 1;
    std::fs::write(&segment, &bytes).expect("as it was");
    let server = Server::kept(directory.path(), &[]);
    assert_eq!(get(&mut server.connect(), "a"), Some(b"b".to_vec()));
}
