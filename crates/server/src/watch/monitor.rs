//! What every client runs, for clients that watch.
//!
//! A thread that has run a command appends a line to the outbox of each monitor, if there is one.
//! Without monitors this costs one load. What waits for a monitor has the limits of replies that
//! are not read: one that is too slow is closed, and what it has not read is freed.

use super::{REDACTED, is_secret, now};
use crate::clients::{Client, Ending};
use crate::lock::lock;
use crate::outbox::{Bounds, Outbox, Piece};
use crate::resp::Arguments;
use crate::server::Shared;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tremula_store::Value;

/// The clients that watch.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    outboxes: Mutex<Vec<Arc<Outbox>>>,
}

/// A client's watching, which ends when this is dropped.
pub(crate) struct Watching {
    monitors: Arc<Monitors>,
    outbox: Arc<Outbox>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut outboxes = lock(&self.monitors.outboxes);
        outboxes.retain(|outbox| !Arc::ptr_eq(outbox, &self.outbox));
        self.monitors.count.store(outboxes.len(), Relaxed);
    }
}

impl Monitors {
    /// How many watch. A command that runs just as one begins may not be shown to it.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Lets the client of an outbox watch from now on.
    pub(crate) fn watch(self: &Arc<Self>, outbox: Arc<Outbox>) -> Watching {
        let mut outboxes = lock(&self.outboxes);
        outboxes.push(Arc::clone(&outbox));
        self.count.store(outboxes.len(), Relaxed);
        Watching {
            monitors: Arc::clone(self),
            outbox,
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
        let line = Value::from(line(client, database, command, arguments, hard));
        let bounds = Bounds {
            hard,
            soft: server.clients.soft_limit(),
            patience: Duration::from_secs(live.soft_output_seconds.get()),
        };
        let outboxes = lock(&self.outboxes).clone();
        for outbox in outboxes {
            let monitor = outbox.client();
            if !outbox.push(Piece::Line(line.clone()), bounds)
                && server.clients.end(monitor, Ending::SlowReader)
            {
                let monitor = monitor.who();
                tracing::warn!("closed {monitor}, a monitor that does not keep up");
            }
        }
    }
}

/// A command as Redis shows it: `+1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`. One that no
/// outbox takes, because it has more than `most` bytes, ends behind these.
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
    use crate::outbox::tests::outboxes;

    #[tokio::test]
    async fn who_has_ended_to_watch_is_not_counted() {
        let [own] = outboxes().await;
        let monitors = Arc::new(Monitors::default());
        let watching = monitors.watch(own.share());
        assert_eq!(monitors.count(), 1);
        drop(watching);
        assert_eq!(monitors.count(), 0);
    }

    #[test]
    fn every_byte_is_shown_in_print() {
        let mut shown = Vec::new();
        quote(b"a \"b\" \\ \r\n\t\x07\x08\x00\xff", &mut shown, usize::MAX);
        assert_eq!(shown, br#"a \"b\" \\ \r\n\t\a\b\x00\xff"#);
    }

    #[test]
    fn a_line_that_no_outbox_takes_is_not_written_to_its_end() {
        let mut shown = Vec::new();
        quote(&[0; 1 << 20], &mut shown, 100);
        assert!((101..105).contains(&shown.len()), "{}", shown.len());
    }
}
