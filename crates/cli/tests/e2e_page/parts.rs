//! Mailboxes and threads as the page shows them.

use crate::support::crowd::{SENDERS, grow_and_fold, mailbox};
use crate::support::http::{WithPage, get, with_page};
use crate::support::resp::encode;
use crate::support::{PATIENCE, eventually};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

#[test]
fn a_mailbox_has_its_senders_and_its_buffers_grow_and_fold() {
    let WithPage { server, page, .. } = with_page(&["--threads", "4", "--gather", "no"]);
    let mut client = server.connect();
    assert_eq!(client.text("MAILBOX.NEW mail"), "+OK\r\n");
    let senders = || mailbox(page, "", "mail").expect("a mailbox")["senders"].clone();
    assert_eq!(senders(), json!(0), "nobody has sent anything");
    assert_eq!(client.text("MAILBOX.SEND mail a b"), ":2\r\n");
    assert_eq!(client.text("MAILBOX.SEND mail c"), ":1\r\n");
    assert_eq!(senders(), json!(1), "a connection counts once");
    let shown = mailbox(page, "", "mail").expect("a mailbox");
    assert_eq!(
        (&shown["length"], &shown["buffers"]),
        (&json!(3), &json!(1))
    );
    grow_and_fold(&server, page, "mail", || {
        assert_eq!(senders(), json!(1 + SENDERS), "each sender, and the first");
    });
    eventually("those who have left do not count", || senders() == json!(1));
}

#[test]
fn events_end_when_the_right_to_see_them_does() {
    let WithPage { server, page, .. } = with_page(&[]);
    let mut stream = TcpStream::connect(page).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET /api/events?map=db0 HTTP/1.1\r\nHost: {page}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut seen = String::new();
    while !seen.contains("event: second") {
        let mut part = [0; 1024];
        let read = stream.read(&mut part).expect("events");
        assert!(read > 0, "{seen}");
        seen += &String::from_utf8_lossy(&part[..read]);
    }
    assert_eq!(
        server.connect().text("CONFIG SET requirepass secret"),
        "+OK\r\n"
    );
    let deadline = Instant::now() + PATIENCE;
    let mut rest = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = stream.read(&mut part).expect("events, or their end");
        rest.extend(&part[..read]);
        if read == 0 || rest.ends_with(b"\r\n0\r\n\r\n") {
            break;
        }
        assert!(Instant::now() < deadline, "the events go on");
    }
}

#[test]
fn threads_have_their_load_and_the_clients_that_moved() {
    let WithPage { server, page, .. } = with_page(&["--threads", "2"]);
    let shards = || {
        get(page, "/api/shards").json()["shards"]
            .as_array()
            .expect("threads")
            .clone()
    };
    let sum = |field: &str| -> u64 {
        shards()
            .iter()
            .filter_map(|shard| shard[field].as_u64())
            .sum()
    };
    let load = |shard: &Value| shard["load"].as_f64().expect("a load");
    assert_eq!(shards().len(), 2);
    let stops = AtomicBool::new(false);
    thread::scope(|threads| {
        for _ in 0..8 {
            let (mut client, stops) = (server.connect(), &stops);
            threads.spawn(move || {
                let gets = encode(&["GET", "k"]).repeat(64);
                while !stops.load(Relaxed) {
                    client.send(&gets);
                    (0..64).for_each(|_| assert!(client.reply().is_some()));
                }
            });
        }
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("a thread is busy", || {
                shards().iter().any(|shard| load(shard) > 0.2)
            });
            eventually("each client is at a thread", || sum("states") == 8);
        }));
        stops.store(true, Relaxed);
        assert!(seen.is_ok(), "{:?}", shards());
    });
    eventually("the clients are gone", || sum("states") == 0);
    let all = shards();
    assert!(
        all.iter().all(|shard| (0.0..=1.0).contains(&load(shard))),
        "{all:?}"
    );
    assert_eq!(sum("moved_in"), sum("moved_out"), "{all:?}");
}
