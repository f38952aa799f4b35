//! Keyspace notifications: the messages about random commands are those of a real `redis-server`
//! 7.0, and what the server does by itself has messages, too.
//!
//! The tests would fail if a message were missing, came twice or too early, or had another name,
//! key or database.

#[path = "support/generator.rs"]
mod generator;
mod support;

use generator::{command, transaction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use support::Server;
use support::resp::{Connection, bulk, elements, encode};

/// Batches of one seed, and the commands of each.
const BATCHES: usize = 300;
const COMMANDS: usize = 30;

/// Lets a server report these classes, and listens.
fn listen(server: &Server, classes: &str) -> Connection {
    let answer = server
        .connect()
        .call(&["CONFIG", "SET", "notify-keyspace-events", classes]);
    assert_eq!(answer, b"+OK\r\n");
    let mut listener = server.connect();
    listener.call(&["PSUBSCRIBE", "__key*"]);
    listener
}

/// What has been reported up to a mark: channels and messages.
fn reported(listener: &mut Connection, mark: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut reported = Vec::new();
    loop {
        let message = listener.reply().expect("a message");
        let parts: Vec<_> = elements(&message).iter().map(|part| bulk(part)).collect();
        assert_eq!(parts[0], b"pmessage");
        if parts[2] == b"__key mark" {
            assert_eq!(parts[3], mark);
            return reported;
        }
        reported.push((parts[2].clone(), parts[3].clone()));
    }
}

/// The messages of each channel. Those of a key are in their order; of the keys of one `MSET`, each
/// server has an order of its own.
fn by_channel(reported: &[(Vec<u8>, Vec<u8>)]) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut channels = BTreeMap::<_, Vec<_>>::new();
    for (channel, message) in reported {
        channels
            .entry(channel.clone())
            .or_default()
            .push(message.clone());
    }
    for (channel, messages) in &mut channels {
        if channel.starts_with(b"__keyevent") {
            messages.sort();
        }
    }
    channels
}

fn compare(classes: &str, seed: u64, least: usize) {
    let servers = [Server::redis(), Server::tremula(&["--threads", "2"])];
    let mut listeners = servers.each_ref().map(|server| listen(server, classes));
    let mut connections = servers.each_ref().map(Server::connect);
    let mut random = StdRng::seed_from_u64(seed);
    let mut count = 0;
    for batch in 0..BATCHES {
        let commands = match random.random_range(0..8) {
            0 => transaction(&mut random),
            _ => (0..COMMANDS).map(|_| command(&mut random)).collect(),
        };
        // What changes the connection, or the settings, is for other tests.
        let is_plain = |command: &&Vec<Vec<u8>>| {
            let name = command[0].to_ascii_lowercase();
            !["config", "hello", "quit", "reset", "client"]
                .iter()
                .any(|other| name == other.as_bytes())
        };
        let commands: Vec<_> = commands.iter().filter(is_plain).collect();
        let mark = batch.to_string();
        for connection in &mut connections {
            for command in &commands {
                connection.call(command);
            }
            connection.call(&["DISCARD"]);
            connection.call(&["PUBLISH", "__key mark", &mark]);
        }
        let [redis, tremula] = listeners
            .each_mut()
            .map(|listener| reported(listener, mark.as_bytes()));
        count += redis.len();
        let (redis, tremula) = (by_channel(&redis), by_channel(&tremula));
        let differ = |channel: &&Vec<u8>| redis.get(*channel) != tremula.get(*channel);
        if let Some(channel) = redis.keys().chain(tremula.keys()).find(differ) {
            let show = |messages: Option<&Vec<Vec<u8>>>| {
                let messages = messages.map_or(&[][..], |messages| messages);
                let text = messages.iter().map(|one| one.escape_ascii().to_string());
                text.collect::<Vec<_>>().join(", ")
            };
            let lines = commands.iter().map(|command| encode(command));
            let lines = lines.map(|line| line.escape_ascii().to_string());
            panic!(
                "seed {seed}, batch {batch}, {}\n redis:   {}\n tremula: {}\n{}",
                channel.escape_ascii(),
                show(redis.get(channel)),
                show(tremula.get(channel)),
                lines.collect::<Vec<_>>().join("\n"),
            );
        }
    }
    println!("seed {seed}: {count} messages compared");
    assert!(count >= least, "{count} messages");
}

#[test]
fn what_commands_change_is_reported_as_redis_reports_it() {
    for seed in [1, 2, 3] {
        compare("KEg$n", seed, 2_000);
    }
}

#[test]
fn lookups_of_keys_that_are_not_there_are_reported_as_redis_reports_them() {
    compare("KEm", 4, 1_000);
}

/// The messages as text, `channel message`.
fn texts(listener: &mut Connection, mark: &str) -> Vec<String> {
    let reported = reported(listener, mark.as_bytes());
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let lines = reported
        .iter()
        .map(|(channel, message)| format!("{} {}", text(channel), text(message)));
    lines.collect()
}

#[test]
fn commands_that_redis_does_not_have_report_of_each_key() {
    let server = Server::tremula(&["--threads", "2", "--notify-keyspace-events", "EAn"]);
    let mut client = server.connect();
    client.text("mset a1 1 a2 2 z 9");
    let mut listener = listen(&server, "EAn");
    for (mark, command, expected) in [
        ("1", "expirerange [a (b 100000", "expire a1, expire a2"),
        ("2", "copyrange [a1 (a2 PREFIX a b", "new b1, copy_to b1"),
        (
            "3",
            "moverange [a (b PREFIX a c",
            "new c1, new c2, rename_from a1, rename_from a2, rename_to c1, rename_to c2",
        ),
        ("4", "delifeq z 8", ""),
        ("5", "delifeq z 9", "del z"),
        ("6", "set b1 2 IFEQ 1", "set b1"),
        ("7", "txn IF VALUE b1 2 THEN 2 SET b1 3 1 DEL", ""),
        (
            "8",
            "txn IF VALUE b1 2 THEN 3 SET b1 3 2 DEL c1",
            "set b1, del c1",
        ),
        // Nothing about single keys, as after FLUSHDB.
        ("9", "delrange [b (d", ""),
        ("10", "flushall", ""),
    ] {
        let reply = client.text(command);
        client.call(&["PUBLISH", "__key mark", mark]);
        let reported = texts(&mut listener, mark);
        let short = reported.iter().map(|line| {
            let line = line.trim_start_matches("__keyevent@0__:");
            line.to_owned()
        });
        assert_eq!(
            short.collect::<Vec<_>>().join(", "),
            expected,
            "{command}: {reply}"
        );
    }
}

/// A thousand keys and more are changed on the thread apart.
#[test]
fn what_takes_long_is_reported_too() {
    const KEYS: usize = 5_000;
    let server = Server::tremula(&["--threads", "2"]);
    let (mut client, mut listener) = (server.connect(), listen(&server, "KA"));
    let names: Vec<_> = (0..KEYS).map(|number| format!("k{number}")).collect();
    let pairs = names.iter().flat_map(|name| [name.as_str(), "v"]);
    let mset: Vec<_> = ["MSET"].into_iter().chain(pairs).collect();
    assert_eq!(client.call(&mset), b"+OK\r\n");
    let del: Vec<_> = ["DEL"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    assert_eq!(client.call(&del), format!(":{KEYS}\r\n").as_bytes());
    client.call(&["PUBLISH", "__key mark", "end"]);
    let reported = texts(&mut listener, "end");
    let count = |event: &str| reported.iter().filter(|line| line.ends_with(event)).count();
    assert_eq!((count(" set"), count(" del")), (KEYS, KEYS));
}

/// A key whose time has come is reported as expired before it is reported as new, also if it is
/// written before it was removed.
#[test]
fn a_key_that_expires_is_reported_once() {
    let server = Server::tremula(&["--threads", "2", "--enable-debug-command", "yes"]);
    let (mut client, mut listener) = (server.connect(), listen(&server, "KAn"));
    client.text("set gone v px 1");
    let message = listener.reply();
    let message = message.expect("a message").escape_ascii().to_string();
    assert!(message.contains("new"), "{message}");
    client.text("debug set-active-expire 0");
    client.text("set over v px 1");
    support::eventually("it expires", || client.text("exists over") == ":0\r\n");
    client.text("set over w");
    client.text("debug set-active-expire 1");
    support::eventually("it is removed", || client.text("dbsize") == ":1\r\n");
    client.call(&["PUBLISH", "__key mark", "end"]);
    let reported = texts(&mut listener, "end");
    let of = |key: &str| {
        let lines = reported.iter().filter_map(|line| {
            let (channel, event) = line.split_once(' ')?;
            channel.ends_with(key).then_some(event)
        });
        lines.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of("gone"), "set expire expired");
    assert_eq!(of("over"), "new set expire expired new set");
}

/// Messages about a subscriber's own command come before its reply; those about a transaction, when
/// all of it has taken effect.
#[test]
fn own_changes_are_reported_before_the_reply_as_by_redis() {
    let servers = [Server::redis(), Server::tremula(&["--threads", "2"])];
    let [theirs, ours] = servers.each_ref().map(|server| {
        drop(listen(server, "KEA"));
        let mut client = server.connect();
        client.call(&["HELLO", "3"]);
        client.call(&["SUBSCRIBE", "__keyevent@0__:set"]);
        client.send(&encode(&["SET", "k", "v"]));
        client.send(&encode(&["PING"]));
        let replies = [(); 3].map(|()| client.reply().expect("a reply"));
        replies.map(|reply| reply.escape_ascii().to_string())
    });
    assert_eq!(ours, theirs);
    let mut listener = listen(&servers[1], "EA");
    let (mut client, mut other) = (servers[1].connect(), servers[1].connect());
    for command in ["multi", "set t 1", "get t", "del t", "set u 1"] {
        client.text(command);
    }
    client.text("exec");
    // The first message comes when the last command's effect is seen.
    listener.reply();
    assert_eq!(other.text("exists u"), ":1\r\n");
    client.call(&["PUBLISH", "__key mark", "end"]);
    assert_eq!(
        texts(&mut listener, "end"),
        ["__keyevent@0__:del t", "__keyevent@0__:set u"]
    );
}

#[test]
fn letters_that_are_no_classes_are_refused() {
    let servers = [Server::redis(), Server::tremula(&["--threads", "1"])];
    for letters in ["KEAz", "q", "KE A", "\u{e9}", "AnKEm", ""] {
        let [theirs, ours] = servers.each_ref().map(|server| {
            let mut client = server.connect();
            let set = client.call(&["CONFIG", "SET", "notify-keyspace-events", letters]);
            set.escape_ascii().to_string()
        });
        assert_eq!(ours, theirs, "{letters}");
    }
    let mut client = servers[1].connect();
    client.call(&["CONFIG", "SET", "notify-keyspace-events", "EKg"]);
    let shown = elements(&client.call(&["CONFIG", "GET", "notify-keyspace-events"]));
    assert_eq!(bulk(&shown[1]), b"gKE");
    let mut refused = std::process::Command::new(env!("CARGO_BIN_EXE_tremula"));
    let refused = support::failure(refused.args(["serve", "--notify-keyspace-events", "KEq"]));
    assert!(refused.contains("KEq"), "{refused}");
}

/// A lower limit is kept without a further command.
#[test]
fn keys_go_when_the_limit_of_memory_is_lowered() {
    let server = Server::tremula(&["--threads", "2"]);
    let (mut client, mut listener) = (server.connect(), listen(&server, "Ee"));
    for number in 0..300 {
        client.text(&format!("set k{number} v"));
    }
    client.text("config set maxmemory-policy allkeys-lru");
    client.text("config set maxmemory 1");
    let mut gone: Vec<_> = (0..300)
        .map(|_| {
            let message = elements(&listener.reply().expect("a message"));
            assert_eq!(bulk(&message[2]), b"__keyevent@0__:evicted");
            bulk(&message[3])
        })
        .collect();
    gone.sort();
    gone.dedup();
    assert_eq!(gone.len(), 300);
    assert_eq!(client.text("dbsize"), ":0\r\n");
}
