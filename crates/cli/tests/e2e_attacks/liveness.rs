//! Commands that take long beside another client of the only thread, which is answered meanwhile.
//!
//! No time is asserted. What is counted is how often the other client is answered after the last
//! byte of the command has been sent and before the first byte of its reply is there. If the
//! thread runs the command to its end at once, that is at most one answer: the other client's
//! first request may come before the command.

use crate::support::Server;
use crate::support::resp::{Connection, bulk, elements, encode};
use crate::support::{eventually, has_answer, raise_open_files};
use std::thread;

/// How often a command is tried. Where the machine is busy, the other client may not get two
/// answers while a command of some milliseconds runs elsewhere.
const TRIES: usize = 50;

/// One thread, with turns so short that commands of a millisecond take several.
fn server(arguments: &[&str]) -> Server {
    let common = ["--threads", "1", "--turn", "100us"];
    Server::tremula(&[&common[..], arguments].concat())
}

/// How often the other client is answered from now on until the first byte of an answer to `busy`
/// is there.
fn answers_until_reply(busy: &Connection, other: &mut Connection) -> usize {
    let mut answers = 0;
    while !has_answer(busy) {
        assert_eq!(other.text("PING"), "+PONG\r\n");
        answers += usize::from(!has_answer(busy));
    }
    answers
}

/// Repeats an attempt until the other client has been answered during the command.
fn lets_others_in(what: &str, mut attempt: impl FnMut() -> usize) {
    assert!(
        (0..TRIES).any(|_| attempt() >= 2),
        "{what} holds the thread"
    );
}

/// Fails if a long argument is copied into the reply, or a long value read, on the thread itself.
#[test]
fn long_echoes_let_others_in() {
    let server = server(&[]);
    let (mut busy, mut other) = (server.connect(), server.connect());
    busy.text("CLIENT SETNAME busy");
    for length in [1 << 20, 32 << 20] {
        let request = encode(&[&b"ECHO"[..], &vec![b'e'; length]]);
        lets_others_in(&format!("ECHO of {length} bytes"), || {
            let (most, last) = request.split_at(request.len() - 1);
            busy.send(most);
            let arrived = format!(" qbuf={} ", most.len());
            eventually("all but the last byte has arrived", || {
                let list = other.text("CLIENT LIST");
                let mut lines = list.lines();
                lines.any(|line| line.contains("name=busy") && line.contains(&arrived))
            });
            busy.send(last);
            let answers = answers_until_reply(&busy, &mut other);
            let reply = busy.reply().expect("a reply");
            assert!(bulk(&reply).len() == length && reply.ends_with(b"ee\r\n"));
            answers
        });
    }
}

/// A client takes long values as fast as it can, and another is answered meanwhile. Fails if the
/// server sends them all before it turns to the other.
#[test]
fn long_values_that_are_read_at_once_let_others_in() {
    const TIMES: usize = 64;
    let server = server(&[]);
    let mut other = server.connect();
    let length = 4 << 20;
    assert_eq!(
        other.call(&[&b"SET"[..], b"long", &vec![b'v'; length]]),
        b"+OK\r\n"
    );
    let mut busy = server.connect();
    let spent = |client: &mut Connection| crate::memory::info(client, "turns_spent");
    let before = spent(&mut other);
    busy.send(&encode(&["GET", "long"]).repeat(TIMES));
    let reading = thread::spawn(move || {
        for _ in 0..TIMES {
            assert_eq!(busy.reply().expect("a reply").len(), length + 12);
        }
    });
    let mut answers = 0;
    while !reading.is_finished() {
        assert_eq!(other.text("PING"), "+PONG\r\n");
        answers += 1;
    }
    reading.join().expect("all replies are whole");
    assert!(answers >= TIMES, "{answers} answers beside {TIMES} values");
    let spent = spent(&mut other) - before;
    assert!(spent >= TIMES as u64, "{spent} turns for {TIMES} values");
}

/// Fails if looking at more than a thousand clients, to close some, holds the thread.
#[test]
fn choosing_among_many_clients_lets_others_in() {
    const CLIENTS: usize = 1500;
    raise_open_files();
    let server = server(&["--max-clients", "2000"]);
    let (mut busy, mut other) = (server.connect(), server.connect());
    let mut victims: Vec<_> = (0..CLIENTS).map(|_| server.connect()).collect();
    eventually("all are connected", || {
        crate::memory::info(&mut other, "connected_clients") == CLIENTS as u64 + 2
    });
    lets_others_in("CLIENT KILL", || {
        busy.send(&encode(&[
            "CLIENT",
            "KILL",
            "ADDR",
            "1.2.3.4:5",
            "TYPE",
            "normal",
        ]));
        let answers = answers_until_reply(&busy, &mut other);
        assert_eq!(busy.reply().as_deref(), Some(&b":0\r\n"[..]));
        answers
    });
    let killed = format!(":{}\r\n", CLIENTS + 1);
    assert_eq!(busy.text("CLIENT KILL TYPE normal"), killed);
    for victim in &mut victims {
        assert_eq!(victim.reply(), None);
    }
}

/// Fails if the receiver of very many messages holds the thread.
#[test]
fn receiving_many_messages_lets_others_in() {
    const MESSAGES: usize = 100_000;
    let server = server(&[]);
    let (mut busy, mut other) = (server.connect(), server.connect());
    busy.text("MAILBOX.NEW letters");
    lets_others_in("MAILBOX.RECV", || {
        let mut send = vec!["MAILBOX.SEND", "letters"];
        send.resize(2 + MESSAGES / 10, "letter");
        for _ in 0..10 {
            let taken = format!(":{}\r\n", MESSAGES / 10);
            assert_eq!(busy.call(&send), taken.as_bytes());
        }
        let count = MESSAGES.to_string();
        busy.send(&encode(&["MAILBOX.RECV", "letters", "COUNT", &count]));
        let answers = answers_until_reply(&busy, &mut other);
        assert_eq!(elements(&busy.reply().expect("a reply")).len(), MESSAGES);
        answers
    });
}

/// Fails if the list of all tables, or of all mailboxes, is made in one step, or lacks one.
#[test]
fn lists_of_tables_and_mailboxes_let_others_in() {
    const MANY: usize = 10_000;
    let many = MANY.to_string();
    let server = server(&[
        "--max-client-tables",
        &many,
        "--max-client-mailboxes",
        &many,
    ]);
    let (mut busy, mut other) = (server.connect(), server.connect());
    for (make, list) in [("ETS.NEW", "ETS.ALL"), ("MAILBOX.NEW", "MAILBOX.LIST")] {
        let mut batch = Vec::new();
        for number in 0..MANY {
            batch.extend(encode(&[make, &format!("n{number:05}")]));
        }
        busy.send(&batch);
        for _ in 0..MANY {
            let reply = busy.reply().expect("a reply");
            assert!(!reply.starts_with(b"-"), "{}", reply.escape_ascii());
        }
        lets_others_in(list, || {
            busy.send(&encode(&[list]));
            let answers = answers_until_reply(&busy, &mut other);
            let reply = busy.reply().expect("a reply");
            let names: Vec<_> = (0..MANY).map(|number| format!("n{number:05}")).collect();
            if list == "ETS.ALL" {
                let listed = String::from_utf8(bulk(&reply)).expect("text");
                assert_eq!(listed, format!("[{}]", names.join(",")));
            } else {
                let listed = elements(&reply);
                assert!(
                    listed.len() == MANY
                        && listed
                            .iter()
                            .zip(&names)
                            .all(|(listed, name)| bulk(listed) == name.as_bytes())
                );
            }
            answers
        });
    }
}
