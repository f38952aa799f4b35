//! What every client runs, for clients that watch.
//!
//! A thread that has run a command appends a line to the feed of each monitor, if there is one.
//! Without monitors this costs one load. A feed has the limits of replies that are not read: a
//! monitor that is too slow is closed, and what it has not read is freed.

use super::{REDACTED, is_secret, lock, now};
use crate::clients::{Client, Ending};
use crate::resp::Arguments;
use crate::server::Shared;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What waits for one monitor.
pub(crate) struct Feed {
    client: Arc<Client>,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Since when more than the soft limit waits.
    much_since: Option<Instant>,
    is_closed: bool,
}

impl Feed {
    /// What has arrived since the last call; waits for something.
    pub(crate) async fn next(&self) -> Vec<u8> {
        loop {
            // Registered before the look, so that no line is missed in between.
            let arrived = self.arrived.notified();
            let bytes = {
                let mut waiting = lock(&self.waiting);
                waiting.much_since = None;
                self.client.set_feed(0);
                std::mem::take(&mut waiting.bytes)
            };
            if !bytes.is_empty() {
                return bytes;
            }
            arrived.await;
        }
    }

    /// Frees what waits, and takes nothing more: a thread may be about to show a command.
    fn close(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.bytes = Vec::new();
        waiting.is_closed = true;
        self.client.set_feed(0);
    }

    /// Appends a line. Returns `false` if the monitor is to be closed.
    fn push(&self, line: &[u8], hard: usize, soft: usize, patience: Duration) -> bool {
        let mut waiting = lock(&self.waiting);
        if waiting.is_closed {
            return true;
        }
        let length = waiting.bytes.len() + line.len();
        let is_slow = soft > 0 && length > soft && {
            let since = *waiting.much_since.get_or_insert_with(Instant::now);
            since.elapsed() >= patience
        };
        if length > hard || is_slow {
            waiting.bytes = Vec::new();
            waiting.is_closed = true;
            self.client.set_feed(0);
            return false;
        }
        waiting.bytes.extend_from_slice(line);
        self.client.set_feed(length);
        self.arrived.notify_one();
        true
    }
}

/// The clients that watch.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    feeds: Mutex<Vec<Arc<Feed>>>,
}

/// A client's watching, which ends when this is dropped.
pub(crate) struct Watching {
    monitors: Arc<Monitors>,
    pub(crate) feed: Arc<Feed>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut feeds = lock(&self.monitors.feeds);
        feeds.retain(|feed| !Arc::ptr_eq(feed, &self.feed));
        self.monitors.count.store(feeds.len(), Relaxed);
        drop(feeds);
        self.feed.close();
    }
}

impl Monitors {
    /// How many watch. A command that runs just as one begins may not be shown to it.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Lets a client watch from now on.
    pub(crate) fn watch(self: &Arc<Self>, client: &Arc<Client>) -> Watching {
        let feed = Arc::new(Feed {
            client: Arc::clone(client),
            waiting: Mutex::default(),
            arrived: Notify::new(),
        });
        let mut feeds = lock(&self.feeds);
        feeds.push(Arc::clone(&feed));
        self.count.store(feeds.len(), Relaxed);
        Watching {
            monitors: Arc::clone(self),
            feed,
        }
    }

    /// Shows a command that has run, which has this full name.
    #[cold]
    pub(crate) fn show(
        &self,
        server: &Shared,
        client: &Client,
        database: usize,
        command: &str,
        arguments: Arguments<'_>,
    ) {
        let live = &server.live;
        let hard = live.max_output_buffer.bytes();
        let line = line(client, database, command, arguments, hard);
        let soft = server.clients.soft_limit();
        let patience = Duration::from_secs(live.soft_output_seconds.get());
        let feeds = lock(&self.feeds).clone();
        for feed in feeds {
            if !feed.push(&line, hard, soft, patience)
                && server.clients.end(&feed.client, Ending::SlowReader)
            {
                tracing::warn!(
                    "closed {}, a monitor that does not keep up",
                    feed.client.who()
                );
            }
        }
    }
}

/// A command as Redis shows it: `+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`. One that no
/// feed takes, because it has more than `most` bytes, ends behind these.
fn line(
    client: &Client,
    database: usize,
    command: &str,
    arguments: Arguments<'_>,
    most: usize,
) -> Vec<u8> {
    let time = now();
    let mut line = Vec::new();
    // Writing to a vector does not fail.
    let _ = write!(
        line,
        "+{}.{:06} [{database} {}]",
        time.as_secs(),
        time.subsec_micros(),
        client.address_text(),
    );
    for at in 0..arguments.len() {
        let argument = if is_secret(command, arguments, at) {
            REDACTED
        } else {
            arguments.get(at)
        };
        line.extend_from_slice(b" \"");
        quote(argument, &mut line, most);
        line.push(b'"');
        if line.len() > most {
            break;
        }
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Appends bytes so that they are printable, as Redis does. Four times as many bytes may come of
/// it, so it stops when `out` has more than `most`.
fn quote(bytes: &[u8], out: &mut Vec<u8>, most: usize) {
    for &byte in bytes {
        if out.len() > most {
            return;
        }
        let short = match byte {
            b'\\' | b'"' => Some(byte),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x07 => Some(b'a'),
            0x08 => Some(b'b'),
            _ => None,
        };
        match short {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None if (b' '..=b'~').contains(&byte) => out.push(byte),
            // Writing to a vector does not fail.
            None => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::Clients;
    use crate::limits::Limits;
    use crate::transport::Socket;
    use tokio::net::{TcpListener, TcpStream};

    /// A thread may have seen a monitor just before that one ended.
    #[tokio::test]
    async fn a_feed_that_has_ended_holds_nothing_and_takes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let clients = Clients::new(&Limits::default());
        let client = clients.connect(Arc::new(Socket::Tcp(stream)));
        let client = client.expect("a client");
        let monitors = Arc::new(Monitors::default());
        let push = |feed: &Feed| feed.push(b"+one\r\n", 10, 0, Duration::ZERO);
        for is_ended_by_limit in [false, true] {
            let watching = monitors.watch(&client);
            let feed = Arc::clone(&watching.feed);
            assert!(push(&feed));
            assert_eq!((client.feed(), monitors.count()), (6, 1));
            if is_ended_by_limit {
                assert!(!push(&feed), "it does not keep up");
            } else {
                drop(watching);
            }
            assert_eq!(client.feed(), 0);
            assert!(push(&feed), "there is nothing more to do about it");
            assert_eq!(client.feed(), 0);
        }
        assert_eq!(monitors.count(), 0);
    }

    #[test]
    fn every_byte_is_shown_in_print() {
        let mut shown = Vec::new();
        quote(b"a \"b\" \\ \r\n\t\x07\x08\x00\xff", &mut shown, usize::MAX);
        assert_eq!(shown, br#"a \"b\" \\ \r\n\t\a\b\x00\xff"#);
    }

    #[test]
    fn a_line_that_no_feed_takes_is_not_written_to_its_end() {
        let mut shown = Vec::new();
        quote(&[0; 1 << 20], &mut shown, 100);
        assert!((101..105).contains(&shown.len()), "{}", shown.len());
    }
}
