//! Clients that are many, that read slowly, or that stay when the server is to end.

use crate::memory::info;
use crate::support::resp::{Connection, encode};
use crate::support::{Server, eventually, raise_open_files};
use std::thread;

/// What an idle client may take, as `limits` and the README say, but for its socket.
const IDLE: u64 = 3 << 10;

/// Fails if idle clients take more than is documented, or if those that have left take anything.
#[test]
fn idle_clients_take_little_and_leave_nothing() {
    const CLIENTS: usize = 1500;
    const TIMES: usize = 3;
    raise_open_files();
    let server = Server::tremula(&["--threads", "2", "--max-clients", "2000"]);
    let mut operator = server.connect();
    let empty = info(&mut operator, "used_memory");
    for _ in 0..TIMES {
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send(&encode(&["PING"]));
        }
        for client in &mut clients {
            assert_eq!(client.reply().as_deref(), Some(&b"+PONG\r\n"[..]));
        }
        eventually("they are as small as they should be", || {
            let grown = info(&mut operator, "used_memory").saturating_sub(empty);
            grown < IDLE * CLIENTS as u64
        });
        drop(clients);
        eventually("they are gone", || {
            info(&mut operator, "connected_clients") == 1
        });
    }
    // What is kept for clients is less than what one of each thousand would take.
    eventually("nothing is left of them", || {
        let left = info(&mut operator, "used_memory").saturating_sub(empty);
        left < IDLE * (TIMES * CLIENTS) as u64 / 20
    });
}

/// Clients send long pipelines for values that are just short enough to be copied, and do not read.
/// Fails if the replies wait in the server, or if any is lost.
#[test]
fn slow_readers_take_little_each() {
    const READERS: usize = 100;
    const TIMES: usize = 400;
    const LENGTH: usize = 60_000;
    let server = Server::tremula(&["--threads", "2"]);
    let mut other = server.connect();
    assert_eq!(
        other.call(&[&b"SET"[..], b"value", &vec![b'v'; LENGTH]]),
        b"+OK\r\n"
    );
    let before = info(&mut other, "used_memory");
    let pipeline = encode(&["GET", "value"]).repeat(TIMES);
    let mut readers: Vec<_> = (0..READERS).map(|_| server.connect()).collect();
    for reader in &mut readers {
        reader.send(&pipeline);
        reader.stream.peek(&mut [0]).expect("a reply");
        assert_eq!(other.text("PING"), "+PONG\r\n");
    }
    let grown = info(&mut other, "used_memory").saturating_sub(before);
    let each = grown / READERS as u64;
    assert!(each < 512 << 10, "{each} bytes for each of them");
    for reader in &mut readers[..3] {
        for _ in 0..TIMES {
            assert_eq!(reader.reply().expect("a reply").len(), LENGTH + 10);
        }
    }
}

/// A request of as many empty arguments as there may be takes memory for what has arrived, and is
/// answered.
#[test]
fn a_request_of_a_million_empty_arguments_is_answered() {
    const ARGUMENTS: usize = 1 << 20;
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    let before = info(&mut client, "used_memory");
    let head = format!("*{ARGUMENTS}\r\n$3\r\nDEL\r\n");
    let rest = b"$0\r\n\r\n".repeat(ARGUMENTS - 1);
    let mut slow = server.connect();
    let (half, last) = rest.split_at(rest.len() / 2);
    slow.send(head.as_bytes());
    slow.send(half);
    eventually("a half has arrived", || {
        info(&mut client, "client_buffers") > half.len() as u64
    });
    let grown = info(&mut client, "used_memory").saturating_sub(before);
    // The bytes, in a buffer that doubles and is copied for that; and where each argument is.
    assert!(grown < 64 << 20, "{grown}");
    slow.send(last);
    assert_eq!(slow.reply().as_deref(), Some(&b":0\r\n"[..]));
}

/// A value of as many bytes as a value may have; a deep run takes the longest one.
#[test]
fn the_longest_values_go_in_and_out() {
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    let length = if is_deep { 512 << 20 } else { 16 << 20 };
    let server = Server::tremula(&["--max-argument", &length.to_string()]);
    let mut client = server.connect();
    let mut other = server.connect();
    let value = vec![b'v'; length];
    assert_eq!(client.call(&[&b"SET"[..], b"long", &value]), b"+OK\r\n");
    client.send(&encode(&["GET", "long"]));
    assert_eq!(other.text("STRLEN long"), format!(":{length}\r\n"));
    let reply = client.reply().expect("the value");
    assert!(reply.ends_with(b"vvv\r\n") && crate::support::resp::bulk(&reply) == value);
    let beyond = client.call(&[&b"SET"[..], b"long", &vec![b'v'; length + 1]]);
    assert_eq!(beyond, b"-ERR Protocol error: invalid bulk length\r\n");
    assert_eq!(other.text("STRLEN long"), format!(":{length}\r\n"));
}

/// Fails if a client that does not read keeps the server from ending, or if those that read lose
/// replies when it ends.
#[test]
fn a_client_that_does_not_read_does_not_keep_the_server_from_ending() {
    let mut server = Server::tremula(&["--threads", "1"]);
    let mut client = server.connect();
    let long = vec![b'v'; 16 << 20];
    assert_eq!(client.call(&[&b"SET"[..], b"long", &long]), b"+OK\r\n");
    let mut stuck = server.connect();
    stuck.send(&encode(&["GET", "long"]));
    stuck.stream.peek(&mut [0]).expect("a reply");
    let mut reading = server.connect();
    reading.send(&encode(&["GET", "long"]));
    reading.stream.peek(&mut [0]).expect("a reply");
    server.signal("TERM");
    let reading = thread::spawn(move || {
        let whole = reading.reply().map(|reply| reply.len());
        (whole, reading.reply())
    });
    assert_eq!(server.wait().code(), Some(0));
    let whole = Some(long.len() + 13);
    assert_eq!(reading.join().expect("no panic"), (whole, None));
    let _: Connection = stuck;
}

/// Whether the system has a keepalive timer for the server's end of a connection, by its table of
/// connections.
fn has_keepalive(client: &Connection) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the system's table");
    let of_port = |port: u16| format!(":{port:04X}");
    let own = of_port(client.stream.peer_addr().expect("an address").port());
    let other = of_port(client.stream.local_addr().expect("an address").port());
    let mut rows = table.lines().map(|line| line.split_whitespace().collect());
    let row = rows.find(|row: &Vec<_>| row[1].ends_with(&own) && row[2].ends_with(&other));
    // The kind of timer is before the colon.
    row.expect("the connection")[5].starts_with("02:")
}

/// Fails if a client that disappeared without a word keeps its place for ever.
#[test]
fn the_system_looks_whether_silent_clients_are_there() {
    for (seconds, has_timer) in [("300", true), ("0", false)] {
        let server = Server::tremula(&["--tcp-keepalive", seconds]);
        let mut client = server.connect();
        assert_eq!(client.text("PING"), "+PONG\r\n");
        eventually("the timer is as asked for", || {
            has_keepalive(&client) == has_timer
        });
    }
}
