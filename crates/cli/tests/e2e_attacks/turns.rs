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

/// One of them copies the value at a time, and the others wait; one of them is gone meanwhile.
#[test]
fn clients_that_append_to_one_long_value_lose_nothing() {
    let server = Server::tremula(&["--threads", "2", "--gather", "no"]);
    let mut other = server.connect();
    other.call(&["SET", "long", &"x".repeat(4 << 20)]);
    let mut attackers: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for attacker in &mut attackers {
        attacker.send(&encode(&["APPEND", "long", "y"]).repeat(20));
    }
    let mut gone = server.connect();
    gone.send(&encode(&["SETRANGE", "long", "0", "z"]));
    drop(gone);
    let mut lengths = Vec::new();
    for attacker in &mut attackers {
        lengths.extend((0..20).map(|_| attacker.reply().expect("a reply")));
    }
    lengths.sort_unstable();
    let expected = (1..=80).map(|added| format!(":{}\r\n", (4 << 20) + added).into_bytes());
    assert!(lengths.into_iter().eq(expected));
    assert_eq!(other.call(&["APPEND", "long", "y"]), b":4194385\r\n");
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

/// To look for each row among those before it would take minutes.
#[test]
fn many_rows_with_one_key_go_into_a_bag_in_linear_time() {
    const ROWS: usize = 60_000;
    let server = server(&[]);
    let mut attacker = server.connect();
    let rows: Vec<_> = (0..ROWS)
        .map(|row| format!("{{k,{}}}", row % (ROWS / 2)))
        .collect();
    let rows = format!("[{}]", rows.join(","));
    attacker.call(&["ETS.NEW", "b", "bag"]);
    for _ in 0..2 {
        let reply = attacker.call(&["ETS.INSERT", "b", &rows]);
        assert_eq!(reply, b"$4\r\ntrue\r\n");
        let size = attacker.call(&["ETS.INFO", "b", "size"]);
        assert_eq!(size, b"$5\r\n30000\r\n", "no row is there twice");
    }
    let last = attacker.call(&["ETS.LOOKUP_ELEMENT", "b", "k", "2"]);
    let last = String::from_utf8_lossy(&last);
    assert!(last.contains("[0,1,2,") && last.ends_with(",29999]\r\n"));
}

#[test]
fn a_reply_that_is_sent_while_it_is_written_may_be_longer_than_the_output_buffer() {
    let server = server(&["--max-output-buffer", "100kb"]);
    let mut client = server.connect();
    let keys: Vec<_> = (0..30).map(|key| format!("key:{key}")).collect();
    for key in &keys {
        client.call(&["SET", key, &"v".repeat(20_000)]);
    }
    let command: Vec<_> = std::iter::once("MGET")
        .chain(keys.iter().map(String::as_str))
        .collect();
    let reply = client.call(&command);
    assert!(reply.starts_with(b"*30\r\n$20000\r\nvvv"));
    assert_eq!(reply.len(), 5 + 30 * 20_010);
    // It is not sent while it is written.
    client.call(&["SET", "long", &"v".repeat(200_000)]);
    let refused = client.call(&["GET", "long"]);
    assert!(refused.starts_with(b"-ERR reply exceeds the output buffer limit"));
    assert_eq!(client.call(&["PING"]), b"+PONG\r\n");
}
