//! Clients that keep a server busy.

use super::Server;
use super::resp::{Connection, encode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Keys that a pattern without a match is compared with.
const KEYS: usize = 5_000;

/// Stores the keys by which [`busy_beside`] keeps the server busy.
pub(crate) fn fill(client: &mut Connection) {
    let pairs = (0..KEYS).flat_map(|key| [format!("key:{key:08}"), "v".to_owned()]);
    let command: Vec<_> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
    assert_eq!(client.call(&command), b"+OK\r\n");
}

/// Runs `work` while two clients keep a [filled](fill) server busy.
pub(crate) fn busy_beside(server: &Server, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.connect();
                while !done.load(Relaxed) {
                    client.send(&encode(&["KEYS", "*z*z*"]).repeat(8));
                    for _ in 0..8 {
                        assert_eq!(client.reply().as_deref(), Some(&b"*0\r\n"[..]));
                    }
                }
            });
        }
        let _ends = Ends(&done);
        work();
    });
}

/// Ends the load, also if a check fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
