//! The return of memory to the system.

use crate::memory::info;
use crate::support::resp::{Connection, encode};
use crate::support::{Server, eventually};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use std::thread;
use std::time::{Duration, Instant};

/// What is freed goes back to the system without any more commands. A deep run looks at all
/// engines.
#[test]
fn memory_goes_back_after_a_flush() {
    let usual = ["aspen", "b_tree", "ca_tree"];
    let others = ["lfca_tree", "art", "masstree", "locked"];
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    thread::scope(|scope| {
        for engine in usual {
            scope.spawn(|| fill_and_flush(engine));
        }
    });
    others
        .iter()
        .filter(|_| is_deep)
        .for_each(|engine| fill_and_flush(engine));
}

fn fill_and_flush(engine: &str) {
    let server = Server::tremula(&["--engine", engine, "--threads", "2"]);
    let empty = server.resident_kib();
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let value = "v".repeat(100);
    for first in (0..100_000).step_by(1000) {
        let mut batch = Vec::new();
        for number in first..first + 1000 {
            batch.extend(encode(&["SET", &format!("key:{number:09}"), &value]));
        }
        let client = &mut clients[first / 1000 % 4];
        client.send(&batch);
        for _ in 0..1000 {
            assert_eq!(client.reply(), Some(b"+OK\r\n".to_vec()));
        }
    }
    let full = server.resident_kib();
    assert!(
        full > empty + (12 << 10),
        "{engine}: {empty}, then {full} KiB"
    );
    let used = info(&mut clients[0], "used_memory");
    assert_eq!(clients[0].text("FLUSHALL"), "+OK\r\n");
    // What makes room needs little itself.
    let peak = info(&mut clients[0], "used_memory_peak");
    assert!(peak < used + used / 4, "{engine}: {used}, then {peak}");
    let most = empty * 6 / 5 + (4 << 10);
    eventually(&format!("the memory of {engine} goes back"), || {
        server.resident_kib() <= most
    });
}

/// What the way to the log has kept for the next records goes back when none come.
#[test]
fn buffers_of_the_log_go_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::kept(directory.path(), &["--threads", "2"]);
    let mut client = server.connect();
    let empty = info(&mut client, "used_memory");
    // Shorter than what the log keeps of a buffer, and longer than what it may hold at rest.
    let value = "v".repeat(3 << 20);
    for _ in 0..4 {
        assert_eq!(client.call(&["SET", "key", &value]), b"+OK\r\n");
    }
    assert_eq!(client.text("DEL key"), ":1\r\n");
    eventually("the memory goes back", || {
        info(&mut client, "used_memory") < empty + (512 << 10)
    });
}

/// Rounds of filling, changing and emptying take no more memory than the first one. A deep run goes
/// on for half an hour, with all engines beside each other.
#[test]
fn memory_stays_flat_over_rounds() {
    let engines = [
        "aspen",
        "b_tree",
        "ca_tree",
        "lfca_tree",
        "art",
        "masstree",
        "locked",
    ];
    if std::env::var_os("TREMULA_DEEP").is_none() {
        return churn("aspen", 1, |round| round < 4);
    }
    let begun = Instant::now();
    thread::scope(|scope| {
        for engine in engines {
            scope.spawn(move || {
                // Some threads of the server come to most sizes of blocks only after dozens of
                // fillings, and the allocator keeps a page for each.
                churn(engine, 64, |_| {
                    begun.elapsed() < Duration::from_secs(30 * 60)
                });
            });
        }
    });
}

fn churn(engine: &str, fillings: usize, goes_on: impl Fn(usize) -> bool) {
    let server = Server::tremula(&["--engine", engine, "--threads", "2"]);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let mut random = SmallRng::seed_from_u64(1);
    let mut first = None;
    let mut round = 0;
    while goes_on(round) {
        for _ in 0..fillings {
            fill_change_and_empty(&mut clients, &mut random);
        }
        round += 1;
        if round.is_power_of_two() {
            let (now, used) = (server.settled_kib(), info(&mut clients[0], "used_memory"));
            println!("{engine}: {now} KiB after round {round}, {used} bytes used");
            first.get_or_insert(now);
        }
    }
    let (first, last) = (first.expect("a round"), server.settled_kib());
    println!("{engine}: {first} KiB after the first round, {last} after {round}");
    assert!(
        last * 10 <= first * 11,
        "{engine}: {first} KiB after the first round, {last} after {round}"
    );
}

fn fill_change_and_empty(clients: &mut [Connection], random: &mut SmallRng) {
    let new = clients[0].call(&["ETS.NEW", "churn", "ordered_set", "[public]"]);
    assert!(!new.starts_with(b"-"), "{}", new.escape_ascii());
    // All at once, so that each thread of the server has come to all sizes of blocks early.
    thread::scope(|scope| {
        for client in &mut *clients {
            let mut random = SmallRng::seed_from_u64(random.random());
            scope.spawn(move || (0..15).for_each(|_| fill_and_change(client, &mut random)));
        }
    });
    let gone = clients[0].call(&["ETS.DELETE", "churn"]);
    assert!(!gone.starts_with(b"-"), "{}", gone.escape_ascii());
    assert_eq!(clients[0].text("FLUSHALL"), "+OK\r\n");
}

fn fill_and_change(client: &mut Connection, random: &mut SmallRng) {
    let mut commands = Vec::new();
    for _ in 0..500 {
        let key = format!("key:{:09}", random.random_range(0..20_000));
        let value = "v".repeat(random.random_range(1..1000));
        commands.extend(match random.random_range(0..10) {
            0..5 => encode(&["SET", &key, &value]),
            5..7 => encode(&["APPEND", &key, &value]),
            7..9 => encode(&["DEL", &key]),
            _ => encode(&[
                "ETS.INSERT",
                "churn",
                &format!("{{<<\"{key}\">>, <<\"{value}\">>}}"),
            ]),
        });
    }
    client.send(&commands);
    for _ in 0..500 {
        let reply = client.reply().expect("a reply");
        assert!(!reply.starts_with(b"-"), "{}", reply.escape_ascii());
    }
}

/// The buffers of clients go back as well.
#[test]
fn buffers_go_back_after_their_clients() {
    let server = Server::tremula(&["--threads", "2"]);
    let mut client = server.connect();
    client.text("PING");
    let empty = server.resident_kib();
    let part = vec![b'x'; 16 << 20];
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let mut sender = server.connect();
            sender.send(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$400000000\r\n");
            sender.send(&part);
            sender
        })
        .collect();
    eventually("the parts arrive", || {
        server.resident_kib() > empty + (48 << 10)
    });
    drop(senders);
    let most = empty * 6 / 5 + (4 << 10);
    eventually("the memory goes back", || server.resident_kib() <= most);
}
