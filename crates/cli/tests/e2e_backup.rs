//! Copies of what a server keeps, made while it runs; and states of its past.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use support::resp::{Connection, bulk, elements, encode};
use support::{Server, run};

/// Ends the threads of a test, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn tremula(arguments: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command.arg(arguments[0]).args(paths).args(&arguments[1..]);
    run(&mut command, b"")
}

/// The output of a command that succeeds.
fn done(arguments: &[&str], paths: &[&Path]) -> String {
    let output = tremula(arguments, paths);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{arguments:?}: {errors}");
    assert_eq!(errors, "", "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The error of a command that fails.
fn refused(arguments: &[&str], paths: &[&Path]) -> String {
    let output = tremula(arguments, paths);
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{arguments:?}");
    assert!(errors.starts_with("error: ") && errors.lines().count() == 1);
    errors
}

fn contents(client: &mut Connection) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = elements(&client.call(&["range", "-", "+", "withvalues"]));
    let pairs = entries.chunks(2);
    pairs.map(|pair| (bulk(&pair[0]), bulk(&pair[1]))).collect()
}

fn number_of(contents: &BTreeMap<Vec<u8>, Vec<u8>>, key: &str) -> u64 {
    let text = contents.get(key.as_bytes());
    text.map_or(0, |text| {
        String::from_utf8_lossy(text).parse().expect("a number")
    })
}

fn last_effect(client: &mut Connection) -> u64 {
    let text = String::from_utf8(bulk(&client.call(&["info", "persistence"]))).expect("text");
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix("log_last_effect:"));
    found.expect("the figure").parse().expect("a number")
}

/// Clients write pairs of keys in one step, with rising numbers, and the server is asked for one
/// snapshot after the other. A backup has each pair as it was at one moment, everything
/// that was acknowledged before it began, and is a directory that can be served.
#[test]
fn a_backup_of_a_running_server_has_all_that_was_acknowledged() {
    const CLIENTS: usize = 3;
    const BACKUPS: usize = 3;
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = ["--durability", "always", "--snapshot-every", "0"];
    let server = Server::kept(&directory.path().join("live"), &arguments);
    let ends = AtomicBool::new(false);
    let acknowledged: Vec<_> = (0..CLIENTS)
        .map(|_| std::sync::atomic::AtomicU64::new(0))
        .collect();
    thread::scope(|scope| {
        for (number_of, acknowledged) in acknowledged.iter().enumerate() {
            let (mut client, ends) = (server.connect(), &ends);
            scope.spawn(move || {
                for number in 1..u64::MAX {
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                    let text = number.to_string();
                    let keys = ["a", "b"].map(|name| format!("{name}{number_of}"));
                    let filler = format!("filler{}", number % 500);
                    let mut commands = encode(&["mset", &keys[0], &text, &keys[1], &text]);
                    commands.extend(encode(&["set", &filler, &"x".repeat(300)]));
                    client.send(&commands);
                    assert_eq!(client.reply_or_end().as_deref(), Some(&b"+OK\r\n"[..]));
                    assert_eq!(client.reply_or_end().as_deref(), Some(&b"+OK\r\n"[..]));
                    acknowledged.store(number, Ordering::Relaxed);
                }
            });
        }
        let (mut saver, ends_too) = (server.connect(), &ends);
        scope.spawn(move || {
            while !ends_too.load(Ordering::Relaxed) {
                assert_eq!(saver.text("save"), "+OK\r\n");
                thread::sleep(Duration::from_millis(5));
            }
        });
        let ended = Ends(&ends);
        for backup in 0..BACKUPS {
            let least: Vec<u64> = acknowledged
                .iter()
                .map(|one| one.load(Ordering::Relaxed))
                .collect();
            let target = directory.path().join(format!("backup{backup}"));
            let history: &[&str] = if backup == BACKUPS - 1 {
                &["--history"]
            } else {
                &[]
            };
            let told = done(
                &[&["backup"], history].concat(),
                &[&directory.path().join("live"), &target],
            );
            assert!(
                told.contains(" is a backup of ") && told.contains("checked"),
                "{told}"
            );
            let copy = Server::kept(&target, &[]);
            let there = contents(&mut copy.connect());
            for (client, least) in least.into_iter().enumerate() {
                let halves = ["a", "b"].map(|half| number_of(&there, &format!("{half}{client}")));
                assert_eq!(halves[0], halves[1], "half of a step in backup {backup}");
                assert!(
                    halves[0] >= least,
                    "backup {backup}: {} of {least}",
                    halves[0]
                );
            }
        }
        drop(ended);
    });
    let written: u64 = acknowledged
        .iter()
        .map(|one| one.load(Ordering::Relaxed))
        .sum();
    assert!(written > 100, "{written} writes are too few to tell");
}

/// Each write is a batch of its own, so every state between can be restored: by its number and by
/// its time, from a backup, from the directory of a running server, and from one that has ended.
#[test]
fn every_kept_state_is_restored() {
    const STEPS: u64 = 6;
    let place = tempfile::tempdir().expect("a directory");
    let live = place.path().join("live");
    let arguments = ["--durability", "always", "--log-keep", "1h"];
    let mut server = Server::kept(&live, &arguments);
    let mut client = server.connect();
    assert_eq!(
        client.text("config get log-keep"),
        "*2\r\n$8\r\nlog-keep\r\n$2\r\n1h\r\n"
    );
    let mut states = Vec::new();
    for step in 0..STEPS {
        client.call(&["set", "step", &step.to_string()]);
        client.call(&["set", &format!("of {step}"), "here"]);
        client.call(&["del", &format!("of {}", step.saturating_sub(3))]);
        // The oldest of many snapshots still leads to the first states.
        if step % 2 == 1 {
            assert_eq!(client.text("save"), "+OK\r\n");
        }
        let state = contents(&mut client);
        states.push((last_effect(&mut client), SystemTime::now(), state));
    }
    let backup = place.path().join("backup");
    let told = done(&["backup", "--history"], &[&live, &backup]);
    assert!(told.contains("can be restored to sequence"), "{told}");
    let mut tried = 0;
    let mut check = |from: &Path, to: Option<&str>, expected: &BTreeMap<_, _>| {
        tried += 1;
        let target = place.path().join(format!("restored{tried}"));
        let arguments = to.map_or(vec!["restore"], |to| vec!["restore", "--to", to]);
        let told = done(&arguments, &[from, &target]);
        assert!(
            told.contains("serve it with: tremula serve --dir"),
            "{told}"
        );
        let restored = Server::kept(&target, &[]);
        let mut client = restored.connect();
        assert_eq!(&contents(&mut client), expected, "{from:?} {to:?}");
        // It goes on from there.
        assert_eq!(client.text("set another one"), "+OK\r\n");
    };
    for (at, (last, time, state)) in states.iter().enumerate() {
        let from = if at % 2 == 0 { &live } else { &backup };
        let since = time.duration_since(UNIX_EPOCH).expect("after 1970");
        let time = format!("@{}.{:06}", since.as_secs(), since.subsec_micros());
        let last = last.to_string();
        let to = if at % 3 == 0 { &time } else { &last };
        check(from, Some(to), state);
    }
    // Amid two of the writes of a step.
    let (last, _, before) = &states[3];
    let mut amid = before.clone();
    amid.insert(b"step".to_vec(), b"4".to_vec());
    check(&backup, Some(&(last + 1).to_string()), &amid);
    let (last, _, latest) = &states[STEPS as usize - 1];
    check(&backup, None, latest);
    let told = refused(
        &["restore", "--to", &(last + 1).to_string()],
        &[&live, &place.path().join("none")],
    );
    assert!(told.contains(&format!("ends at sequence {last}")), "{told}");
    server.signal("TERM");
    assert!(server.wait().success());
    check(&live, None, latest);
    let (second, _, state) = &states[1];
    check(&live, Some(&second.to_string()), state);
}

#[test]
fn what_cannot_be_copied_is_refused_with_the_reason() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    let server = Server::kept(&at("live"), &["--durability", "always"]);
    let mut client = server.connect();
    for number in 0..3 {
        assert_eq!(client.text(&format!("set key {number}")), "+OK\r\n");
        assert_eq!(client.text("save"), "+OK\r\n");
    }
    drop(server);
    // The target has something in it, which stays.
    std::fs::create_dir(at("full")).expect("a directory");
    std::fs::write(at("full").join("file"), b"mine").expect("a file");
    for command in ["backup", "restore"] {
        let told = refused(&[command], &[&at("live"), &at("full")]);
        assert!(told.contains("full is not empty"), "{told}");
        let told = refused(&[command], &[&at("full"), &at("new")]);
        assert!(told.contains("full keeps no store"), "{told}");
        let told = refused(&[command], &[&at("nowhere"), &at("new")]);
        assert!(told.contains("nowhere keeps no store"), "{told}");
    }
    assert!(std::fs::read(at("full").join("file")).is_ok_and(|bytes| bytes == b"mine"));
    let told = refused(&["restore", "--to", "tomorrow"], &[&at("live"), &at("new")]);
    assert!(told.contains("'tomorrow' is no state"), "{told}");
    // Damage in the newest snapshot: the one before does. In both: no copy.
    let mut snapshots: Vec<_> = std::fs::read_dir(at("live"))
        .expect("a list")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    snapshots.sort();
    assert_eq!(snapshots.len(), 2, "{snapshots:?}");
    let damage = |path: &Path| {
        let mut bytes = std::fs::read(path).expect("its bytes");
        bytes[30] ^= 1;
        std::fs::write(path, bytes).expect("damage");
    };
    damage(&snapshots[1]);
    let output = tremula(&["backup"], &[&at("live"), &at("one")]);
    let warning = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{warning}");
    assert!(
        warning.starts_with("warning: a newer snapshot is not used: ")
            && warning.contains("is damaged at offset"),
        "{warning}"
    );
    let copy = Server::kept(&at("one"), &[]);
    assert_eq!(copy.connect().text("get key"), "$1\r\n2\r\n");
    // A log that has lost a byte.
    let log = at("live").join("log");
    let segment = std::fs::read_dir(&log)
        .expect("a list")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.to_string_lossy().ends_with(".segment"))
        .expect("a segment");
    damage(&segment);
    let told = refused(&["backup"], &[&at("live"), &at("two")]);
    assert!(told.contains("is damaged at offset"), "{told}");
    assert!(!at("two").exists(), "half of a copy");
}
