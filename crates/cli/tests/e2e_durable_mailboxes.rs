//! Mailboxes that are kept over restarts and kills.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use support::ets::{ask, check};
use support::resp::{Connection, bulk, elements, encode};
use support::{Server, eventually};

/// Kills of the ordinary run, and of a deep one.
const KILLS: [usize; 2] = [5, 100];

/// Receives all messages that are there.
fn receive_all(client: &mut Connection, name: &str) -> Vec<String> {
    let reply = client.call(&["mailbox.recv", name, "count", "1000000", "block", "1"]);
    if reply == b"*-1\r\n" {
        return Vec::new();
    }
    messages(&reply)
}

fn messages(reply: &[u8]) -> Vec<String> {
    let messages = elements(reply).into_iter();
    let text = |message: Vec<u8>| String::from_utf8(bulk(&message)).expect("text");
    messages.map(text).collect()
}

#[test]
fn messages_are_there_after_orderly_ends_and_kills() {
    let directory = tempfile::tempdir().expect("a directory");
    for end in ["TERM", "KILL", "KILL", "TERM"] {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        check(
            &mut client,
            &[
                ("MAILBOX.LIST", "*0"),
                ("MAILBOX.NEW  jobs  DURABLE  CAPACITY  4", "+OK"),
                ("MAILBOX.NEW  gone", "+OK"),
                ("MAILBOX.NEW  dropped  MODE  off_heap  durable", "+OK"),
                ("MAILBOX.SEND  gone  x", ":1"),
                ("MAILBOX.SEND  dropped  x", ":1"),
                ("MAILBOX.DROP  dropped", ":1"),
                ("MAILBOX.SEND  jobs  one  two", ":2"),
                ("MAILBOX.RECV  jobs", "one"),
                (
                    "MAILBOX.SEND  jobs  three  four  five  six",
                    "-FULL mailbox 'jobs' is full at 4 messages: 3 of 4 were taken",
                ),
                ("MAILBOX.LEN  jobs", ":4"),
                // What was received is in the log before this is answered.
                ("WAITAOF  1  0  0", "*2\r\n:1\r\n:0"),
            ],
        );
        let info = client.text("mailbox.info jobs");
        assert!(info.contains("$7\r\ndurable\r\n:1\r\n"), "{info}");
        if end == "KILL" {
            assert_eq!(client.text("save"), "+OK\r\n");
        }
        server.signal(end);
        server.wait();
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        assert_eq!(client.text("mailbox.list"), "*1\r\n$4\r\njobs\r\n");
        let full = client.text("mailbox.send jobs more");
        assert!(full.starts_with("-FULL"), "{full}");
        let all = receive_all(&mut client, "jobs");
        assert_eq!(all, ["two", "three", "four", "five"], "{end}");
        check(
            &mut client,
            &[
                ("WAITAOF  1  0  0", "*2\r\n:1\r\n:0"),
                ("MAILBOX.LEN  jobs", ":0"),
            ],
        );
        server.signal(end);
        server.wait();
        let mut server = Server::kept(directory.path(), &[]);
        let mut client = server.connect();
        check(
            &mut client,
            &[("MAILBOX.LEN  jobs", ":0"), ("MAILBOX.DROP  jobs", ":0")],
        );
        server.signal("TERM");
        server.wait();
    }
}

/// The tables of a mailbox that is kept stay with it; a connection that has gone leaves it hers.
#[test]
fn a_durable_mailbox_inherits_over_a_kill() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::kept(directory.path(), &["--durability", "always"]);
    let (mut client, mut other) = (server.connect(), server.connect());
    check(
        &mut client,
        &[
            ("MAILBOX.NEW  heir  DURABLE", "+OK"),
            ("ETS.NEW  given  protected", "given"),
            ("ETS.INSERT  given  {1, x}", "true"),
            ("ETS.GIVE_AWAY  given  heir  why", "true"),
            ("ETS.NEW  left  private  {heir, heir, data}", "left"),
            ("ETS.INSERT  left  {2, y}", "true"),
        ],
    );
    assert!(ask(&mut other, "MAILBOX.RECV  heir").starts_with("{'ETS-TRANSFER',given,#Pid<"));
    assert_eq!(ask(&mut other, "WAITAOF  1  0  0"), "*2\r\n:1\r\n:0");
    server.signal("KILL");
    server.wait();
    let server = Server::kept(directory.path(), &[]);
    let mut client = server.connect();
    check(
        &mut client,
        &[
            ("ETS.LOOKUP  given  1", "[{1,x}]"),
            ("ETS.LOOKUP  left  2", "[{2,y}]"),
            ("MAILBOX.LEN  heir", ":1"),
        ],
    );
    let message = ask(&mut client, "MAILBOX.RECV  heir");
    assert!(
        message.starts_with("{'ETS-TRANSFER',left,#Pid<"),
        "{message}"
    );
    assert!(message.ends_with(",data}"), "{message}");
    check(
        &mut client,
        &[("MAILBOX.DROP  heir", ":0"), ("ETS.ALL", "[]")],
    );
}

/// Clients send with `always` until the server is killed, while another one receives and waits
/// until that is on the disk, too. What was sent and acknowledged is there once, in the order of
/// each client, and of each pair that is sent by one command both: either it was received, or it is
/// left. What was received is not there again, except for what was received last, if the wait for
/// the disk was cut off.
#[test]
fn messages_that_are_acknowledged_survive_kills() {
    const CLIENTS: usize = 3;
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    let directory = tempfile::tempdir().expect("a directory");
    let (mut total, mut total_received) = (0, 0);
    for kill in 0..KILLS[usize::from(is_deep)] {
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        ask(&mut client, "MAILBOX.NEW  m  DURABLE");
        assert_eq!(receive_all(&mut client, "m"), [""; 0]);
        let known = AtomicUsize::new(0);
        let (acknowledged, received) = thread::scope(|scope| {
            let receiver = scope.spawn(|| receive_until_killed(&mut client, &known));
            let senders: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let mut client = server.connect();
                    scope.spawn(move || send_until_killed(&mut client, number))
                })
                .collect();
            eventually("some messages are received", || {
                known.load(Ordering::Relaxed) > 20
            });
            thread::sleep(Duration::from_millis(13 * kill as u64 % 40));
            server.signal("KILL");
            server.wait();
            let acknowledged = senders.into_iter().map(|sender| sender.join());
            let acknowledged = acknowledged.map(|sent| sent.expect("a sender"));
            let acknowledged: Vec<usize> = acknowledged.collect();
            (acknowledged, receiver.join().expect("a receiver"))
        });
        let mut server = Server::kept(directory.path(), &["--durability", "always"]);
        let mut client = server.connect();
        let left = receive_all(&mut client, "m");
        for (number, acknowledged) in acknowledged.iter().enumerate() {
            let its = |messages: &[String]| -> Vec<usize> {
                let its = messages.iter().filter_map(|message| {
                    let (sender, message) = message.split_once('/')?;
                    (sender == number.to_string()).then(|| message.parse().expect("a number"))
                });
                its.collect()
            };
            let (surely, last, left) = (its(&received.surely), its(&received.last), its(&left));
            let before = [&surely[..], &last].concat();
            assert!(before.iter().copied().eq(0..before.len()), "kill {kill}");
            let first = left.first().copied().unwrap_or(before.len());
            assert!(
                (surely.len()..=before.len()).contains(&first),
                "kill {kill}: {first} is there, {} were received, the last {} of them perhaps",
                before.len(),
                last.len()
            );
            let there = first + left.len();
            assert!(left.iter().copied().eq(first..there), "kill {kill}");
            assert!(there.is_multiple_of(2), "half of a command, kill {kill}");
            assert!(
                there / 2 == *acknowledged || there / 2 == acknowledged + 1,
                "kill {kill}: {acknowledged} were acknowledged, {} were there",
                there / 2
            );
            total += acknowledged;
            total_received += surely.len();
        }
        assert_eq!(ask(&mut client, "WAITAOF  1  0  0"), "*2\r\n:1\r\n:0");
        server.signal("KILL");
        server.wait();
    }
    assert!(total > 20, "{total} commands are too few to tell");
    assert!(
        total_received > 20,
        "{total_received} messages are too few to tell"
    );
}

/// Sends pairs until the connection ends. Returns how many were acknowledged.
fn send_until_killed(client: &mut Connection, number: usize) -> usize {
    for command in 0.. {
        let [one, other] = [0, 1].map(|half| format!("{number}/{}", 2 * command + half));
        client.send(&encode(&["mailbox.send", "m", &one, &other]));
        match client.reply_or_end() {
            Some(reply) => assert_eq!(reply, b":2\r\n"),
            None => return command,
        }
    }
    unreachable!("the server ends")
}

/// What a client has received.
#[derive(Default)]
struct Received {
    /// What the server will not deliver again.
    surely: Vec<String>,
    /// What was received behind that.
    last: Vec<String>,
}

/// Receives a few messages at a time, until the connection ends. Says in `known` how many the
/// server will not deliver again.
fn receive_until_killed(client: &mut Connection, known: &AtomicUsize) -> Received {
    const FEW: &str = "5";
    let mut received = Received::default();
    loop {
        client.send(&encode(&["mailbox.recv", "m", "count", FEW, "block", "0"]));
        let Some(reply) = client.reply_or_end() else {
            return received;
        };
        received.last = messages(&reply);
        client.send(&encode(&["waitaof", "1", "0", "0"]));
        let Some(reply) = client.reply_or_end() else {
            return received;
        };
        assert_eq!(reply, b"*2\r\n:1\r\n:0\r\n");
        received.surely.append(&mut received.last);
        known.store(received.surely.len(), Ordering::Relaxed);
    }
}

#[test]
fn without_a_directory_no_mailbox_is_durable_and_that_is_said() {
    let server = Server::tremula(&[]);
    let mut client = server.connect();
    let refused = client.text("mailbox.new m durable");
    assert!(
        refused.starts_with("-ERR no mailbox can be durable") && refused.contains("--dir"),
        "{refused}"
    );
    assert_eq!(client.text("mailbox.list"), "*0\r\n");
    assert_eq!(client.text("mailbox.new m"), "+OK\r\n");
    let info = client.text("mailbox.info m");
    assert!(info.contains("$7\r\ndurable\r\n:0\r\n"), "{info}");
}
