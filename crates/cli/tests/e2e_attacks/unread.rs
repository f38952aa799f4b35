//! Replies that nobody reads, of many clients, under a limit of memory.

use crate::memory::{OOM, info};
use crate::support::resp::{Connection, encode};
use crate::support::{Server, eventually};
use std::io::Write;
use std::thread;

/// The limit of memory.
const LIMIT: u64 = 48 << 20;

/// What buffers may have beyond the limit, which is a thirty-second part of it, and what one turn
/// of each thread may take before it looks.
const MARGIN: u64 = 4 << 20;

/// Clients that read nothing for a second are closed when commands are refused.
fn server() -> Server {
    Server::tremula(&[
        "--max-memory",
        "48mb",
        "--threads",
        "2",
        "--soft-output-seconds",
        "1",
    ])
}

/// While others leave their replies unread, commands that need no memory run, those that need some
/// run or are refused, and what is used stays within the limit.
fn is_served(client: &mut Connection) {
    assert_eq!(client.text("PING"), "+PONG\r\n");
    assert_eq!(client.text("GET small"), "$1\r\n1\r\n");
    let used = info(client, "used_memory");
    assert!(used <= LIMIT + MARGIN, "{used}");
}

/// Waits until there is room for this number of bytes, though the greedy clients do not leave.
fn has_room_again(server: &Server, client: &mut Connection, length: usize) {
    let value = vec![b'z'; length];
    eventually("there is room again", || {
        server.connect().call(&[&b"SET"[..], b"again", &value]) == b"+OK\r\n"
    });
    assert!(info(client, "clients_closed_by_server") > 0);
    is_served(client);
}

/// Each client asks for the value of one key, does not read, and keeps an old value alive, because
/// the key gets a new one. Fails if the old ones may fill more than the limit, if reading stops, or
/// if nothing can be stored for as long as these clients stay.
#[test]
fn values_that_nobody_reads_stay_within_the_limit() {
    const LENGTH: usize = 6 << 20;
    let server = server();
    let mut client = server.connect();
    assert_eq!(client.text("SET small 1"), "+OK\r\n");
    let mut greedy = Vec::new();
    let mut refused = 0;
    for round in 0..12 {
        let value = vec![b'a' + round; LENGTH];
        match &server.connect().call(&[&b"SET"[..], b"large", &value])[..] {
            b"+OK\r\n" => (),
            other => {
                assert_eq!(other, OOM.as_bytes());
                refused += 1;
            }
        }
        for _ in 0..3 {
            let mut reader = server.connect();
            reader.send(&encode(&["GET", "large"]));
            greedy.push(reader);
        }
        is_served(&mut client);
    }
    assert!(refused > 0, "the unread values take memory");
    has_room_again(&server, &mut client, LENGTH);
}

/// Each client asks for all keys and values, and does not read. Then the keys are deleted and
/// others are stored, so that the lists keep more and more values alive. Fails if these may fill
/// more than the limit, or if nothing can be stored for as long as these clients stay.
#[test]
fn lists_that_nobody_reads_stay_within_the_limit() {
    const KEYS: usize = 2000;
    const LENGTH: usize = 4000;
    let server = server();
    let mut client = server.connect();
    let value = "v".repeat(LENGTH);
    let mut greedy = Vec::new();
    let mut refused = 0;
    for round in 0..14 {
        let sets = (0..KEYS).map(|key| encode(&["SET", &format!("{round}:{key}"), &value]));
        let batch: Vec<u8> = sets.flatten().collect();
        let mut writer = server.connect();
        let mut sending = writer.stream.try_clone().expect("a handle");
        let sending = thread::spawn(move || sending.write_all(&batch));
        for _ in 0..KEYS {
            match &writer.reply().expect("a reply")[..] {
                b"+OK\r\n" => (),
                other => {
                    assert_eq!(other, OOM.as_bytes());
                    refused += 1;
                }
            }
        }
        sending.join().expect("no panic").expect("it is sent");
        client.text("SET small 1");
        for _ in 0..3 {
            let mut reader = server.connect();
            reader.send(&encode(&["RANGE", "-", "+", "WITHVALUES"]));
            // The first byte of the reply is here, so everything has been gathered.
            reader.stream.peek(&mut [0]).expect("a reply");
            greedy.push(reader);
        }
        let used = info(&mut client, "used_memory");
        assert!(used <= LIMIT + MARGIN, "{used}");
        assert_eq!(client.text("FLUSHALL"), "+OK\r\n");
    }
    assert!(refused > 0, "the unread values take memory");
    eventually("a short value is stored", || {
        client.text("SET small 1") == "+OK\r\n"
    });
    has_room_again(&server, &mut client, KEYS * LENGTH);
}
