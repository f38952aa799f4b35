//! Senders that get into each other's way at one mailbox, until its buffers grow.

use super::Server;
use super::eventually;
use super::http::request;
use super::resp::{Connection, encode};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Connections that send.
pub(crate) const SENDERS: u64 = 6;

/// Messages that are sent, and taken, at once.
const AT_ONCE: usize = 200;

/// The mailbox as the page has it.
pub(crate) fn mailbox(page: SocketAddr, token: &str, name: &str) -> Option<Value> {
    let headers = [("Tremula-Token", token)];
    let headers = if token.is_empty() { &[][..] } else { &headers };
    let all = request(page, ("GET", "/api/mailboxes"), headers, "").json();
    let all = all["mailboxes"].as_array()?.clone();
    all.into_iter().find(|mailbox| mailbox["name"] == name)
}

/// Sends from several connections at once until the buffers have grown, and takes all messages
/// until they are folded again. The senders stay connected until `look` returns.
pub(crate) fn grow_and_fold(server: &Server, page: SocketAddr, name: &str, look: impl FnOnce()) {
    let figure = |field: &str| {
        let found = mailbox(page, "", name);
        found
            .and_then(|mailbox| mailbox[field].as_u64())
            .unwrap_or(0)
    };
    let stops = AtomicBool::new(false);
    let mut receiver = server.connect();
    let mut take = || {
        receiver.call(&["MAILBOX.RECV", name, "COUNT", "100000"]);
    };
    thread::scope(|threads| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| {
                let (mut client, stops): (Connection, _) = (server.connect(), &stops);
                threads.spawn(move || {
                    let one = encode(&["MAILBOX.SEND", name, "message"]);
                    while !stops.load(Relaxed) {
                        client.send(&one.repeat(AT_ONCE));
                        (0..AT_ONCE).for_each(|_| assert!(client.reply().is_some()));
                    }
                    client
                })
            })
            .collect();
        let grown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("the buffers grow", || {
                take();
                figure("grown") > 0
            });
        }));
        stops.store(true, Relaxed);
        let connected: Vec<_> = senders.into_iter().map(|sender| sender.join()).collect();
        assert!(grown.is_ok(), "{:?}", mailbox(page, "", name));
        eventually("the buffers fold", || {
            take();
            figure("folded") > 0
        });
        look();
        drop(connected);
    });
}
