//! Attacks on the time of other clients, and on memory by replies that are not read.

use crate::support::Server;
use crate::support::resp::{Connection, encode};

/// One thread, so that attackers and the other client share it.
fn server(arguments: &[&str]) -> Server {
    Server::tremula(&[&["--threads", "1"], arguments].concat())
}

/// A figure of `INFO`.
fn figure(client: &mut Connection, name: &str) -> u64 {
    let info = String::from_utf8_lossy(&client.call(&["INFO", "everything"])).into_owned();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("the figure").parse().expect("a number")
}

/// Stores this many keys with values of this length.
fn fill(client: &mut Connection, keys: usize, length: usize) {
    let value = "v".repeat(length);
    for first in (0..keys).step_by(1000) {
        let pairs = (first..first + 1000).flat_map(|key| [format!("key:{key:08}"), value.clone()]);
        let command: Vec<_> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
        assert_eq!(client.call(&command), b"+OK\r\n");
    }
}

#[test]
fn a_pattern_that_explodes_is_an_error_that_names_the_limit() {
    let server = server(&[]);
    let mut attacker = server.connect();
    attacker.call(&["SET", &"a".repeat(200_000), "v"]);
    let pattern = format!("*{}b", "a".repeat(100_000));
    for command in [vec!["KEYS", &pattern], vec!["SCAN", "0", "MATCH", &pattern]] {
        let error = attacker.call(&command);
        assert!(error.starts_with(b"-ERR the pattern takes more than 64 steps a byte"));
    }
    assert_eq!(attacker.call(&["PING"]), b"+PONG\r\n");
}

/// The turns that ended before their time show that the packet gave way. Old servers have none.
#[test]
fn packets_of_slow_commands_give_way() {
    let server = server(&["--turn", "10us"]);
    let mut attacker = server.connect();
    fill(&mut attacker, 20_000, 10);
    attacker.call(&["SET", "long", &"x".repeat(4 << 20)]);
    let mut other = server.connect();
    for (command, times) in [
        (vec!["KEYS", "*zzz*"], 100),
        (vec!["APPEND", "long", "y"], 60),
        (vec!["CLIENT", "LIST"], 1000),
    ] {
        let before = figure(&mut other, "turns_spent");
        attacker.send(&encode(&command).repeat(times));
        for _ in 0..times {
            assert!(attacker.reply().is_some());
        }
        let spent = figure(&mut other, "turns_spent") - before;
        assert!(spent >= 10, "{command:?} gave way {spent} times");
    }
    let length = format!(":{}\r\n", (4 << 20) + 60);
    assert_eq!(attacker.call(&["STRLEN", "long"]), length.as_bytes());
}

#[test]
fn lists_that_nobody_reads_are_bounded_in_total() {
    let server = server(&["--max-gathered", "4mb"]);
    let mut other = server.connect();
    fill(&mut other, 30_000, 100);
    let before = server.resident_kib();
    let mut attackers: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for attacker in &mut attackers {
        attacker.send(&encode(&["RANGE", "-", "+", "WITHVALUES"]));
        attacker.send(&encode(&["PING"]));
    }
    // Each of these is answered behind the attackers' turns.
    while figure(&mut other, "gathered_bytes") < 2 << 20 {}
    for _ in 0..200 {
        assert_eq!(other.call(&["PING"]), b"+PONG\r\n");
    }
    assert!(figure(&mut other, "gathered_bytes") <= 4 << 20);
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 30 << 10, "grown by {grown} KiB");
    // Some have their list, in whole, and the others an error.
    let (mut whole, mut refused) = (0, 0);
    for attacker in &mut attackers {
        let reply = attacker.reply().expect("a reply");
        if reply.starts_with(b"*60000\r\n") {
            whole += 1;
        } else {
            assert!(reply.starts_with(b"-OOM the long replies"));
            refused += 1;
        }
        assert_eq!(attacker.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");
    assert_eq!(figure(&mut other, "gathered_bytes"), 0);
}

#[test]
fn a_long_value_that_nobody_reads_is_not_copied() {
    let server = server(&[]);
    let mut other = server.connect();
    other.call(&["SET", "long", &"x".repeat(16 << 20)]);
    let before = server.resident_kib();
    let mut attackers: Vec<_> = (0..10).map(|_| server.connect()).collect();
    for attacker in &mut attackers {
        attacker.send(&encode(&["GET", "long"]));
    }
    for _ in 0..200 {
        assert_eq!(other.call(&["PING"]), b"+PONG\r\n");
    }
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 40 << 10, "grown by {grown} KiB");
    let reply = attackers[0].reply().expect("the value");
    assert_eq!(reply.len(), (16 << 20) + 13);
}
