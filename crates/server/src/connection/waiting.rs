//! How a connection waits without being asked for more: for the time of a command, and for what a
//! monitor sees.

use super::receive::has_ended_input;
use super::{Connection, READ_SIZE};
use crate::clients::{Client, State, Unblock};
use crate::commands::{Waiting, lookup_full};
use crate::transport::Socket;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

/// How often the server checks whether a client that waits is still there.
const CHECK: Duration = Duration::from_millis(100);

/// The error of a command that another client has unblocked so.
pub(super) const UNBLOCKED: &[u8] = b"UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// Waits until the client has left, or is made to leave.
pub(super) async fn gone(client: &Client, socket: &Socket) {
    while client.ending().is_none() && !has_ended_input(socket).await {
        tokio::time::sleep(CHECK).await;
    }
}

impl Connection {
    /// Answers a command, which counts as run already, with an error.
    pub(super) fn fail_later(&mut self, command: &str, text: &[u8]) {
        let stripe = self.stripe();
        stripe.error(text);
        if let Some(command) = lookup_full(command.as_bytes()) {
            stripe.failed_later(command);
        }
        self.output.fail(text);
    }

    /// Answers a command after its time, or when it is unblocked, or when nobody waits for the
    /// answer any more.
    pub(super) async fn wait_out(&mut self, waiting: Waiting) -> io::Result<()> {
        self.output.begin();
        let time = async {
            match waiting.time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        let mut how = None;
        if waiting.is_blocked {
            self.client.set_state(State::Blocked);
        }
        tokio::select! {
            () = time => (),
            () = gone(&self.client, &self.stream.socket) => (),
            by = self.client.unblocked(), if waiting.is_blocked => how = Some(by),
        }
        self.client.is_active();
        self.client.set_state(State::Working);
        self.turn.again();
        if how == Some(Unblock::Error) {
            self.fail_later("wait", UNBLOCKED);
        } else {
            (waiting.answer)(&mut self.output);
        }
        self.output.finish();
        self.send().await
    }

    /// As [`read`](Self::read) for a monitor: sends what it sees until it sends something itself.
    pub(super) async fn watch(&mut self) -> io::Result<bool> {
        self.release_buffers();
        self.publish();
        loop {
            if self.client.ending().is_some() {
                return Ok(false);
            }
            self.input.reserve(READ_SIZE);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.stripe().read.add(read as u64);
                    self.publish();
                    self.turn.again();
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) => return Err(error),
            }
            let Some(watching) = &self.session.watching else {
                return self.read().await;
            };
            let feed = Arc::clone(&watching.feed);
            let lines = tokio::select! {
                biased;
                ready = self.stream.socket.readable() => {
                    ready?;
                    continue;
                }
                lines = feed.next() => lines,
            };
            self.output.raw(&lines);
            self.send().await?;
            if self.turn.look() {
                self.give_way().await;
            }
        }
    }
}
