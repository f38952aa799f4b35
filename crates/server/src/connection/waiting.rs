//! How a connection waits without being asked for more: for the time of a command, and for what
//! a monitor or a subscriber gets.

use super::Connection;
use super::receive::has_ended_input;
use crate::apart;
use crate::clients::{Client, State, Unblock};
use crate::commands::{Waiting, lookup_full};
use crate::feeds::Watches;
use crate::limits::REPLY_BATCH;
use crate::outbox::{Outbox, Own};
use crate::server::Shared;
use crate::shelf;
use crate::transport::Socket;
use std::future::poll_fn;
use std::io;
use std::task::{self, Waker};
use std::time::Duration;
use tremula_store::Sequence;

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

/// Waits until a record is durable, or for ever.
async fn durable(server: &Shared, sequence: Option<Sequence>) {
    if let (Some(sequence), Some(log)) = (sequence, server.store.log())
        && log.until(sequence).await.is_ok()
    {
        return;
    }
    std::future::pending().await
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
        self.slow = None;
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
        self.send(false).await
    }

    /// Sends what waits for the client without its asking, until the client sends something itself.
    /// Returns the worker that it should move to.
    pub(super) async fn deliver(&mut self, worker: usize) -> io::Result<Option<usize>> {
        let Some(outbox) = self.session.outbox.as_ref().map(Own::share) else {
            return Ok(None);
        };
        loop {
            if self.send_unasked(&outbox).await? {
                // It may go to another thread.
                self.slow = None;
                if self.client.ending().is_some() {
                    return Ok(None);
                }
                if let Some(to) = self.server.threads.asks_to_leave(worker, &mut self.seen) {
                    // What it has left stays with this thread.
                    if let Some(kept) = self.kept.take() {
                        drop(shelf::take(&kept));
                    }
                    return Ok(Some(to));
                }
                if self.turn.look() {
                    self.give_way().await;
                }
                continue;
            }
            self.slow = None;
            let awaited = match self.session.watches.as_ref().and_then(Watches::to_read) {
                None => None,
                Some(read) => {
                    let awaited = Box::pin(apart::away(move || read.run())).await.flatten();
                    self.turn.again();
                    if let Some(watches) = &self.session.watches {
                        watches.forget_ended();
                    }
                    if awaited.is_none() && self.has_no_input() {
                        continue;
                    }
                    awaited
                }
            };
            let mut has_waited = false;
            let is_readable = tokio::select! {
                biased;
                ready = poll_fn(|context| {
                    let poll = self.stream.socket.poll_read_ready(context);
                    has_waited |= poll.is_pending();
                    poll
                }) => {
                    ready?;
                    true
                }
                () = outbox.arrived() => false,
                () = durable(&self.server, awaited) => false,
            };
            if has_waited {
                self.turn.again();
            }
            if is_readable {
                // What had come before the client sent something comes before its reply.
                let mut left = self.client.feed();
                while left > 0 && self.send_unasked(&outbox).await? {
                    left = left.saturating_sub(REPLY_BATCH);
                }
                return Ok(None);
            }
        }
    }

    /// Whether the client has sent nothing, as far as is known.
    fn has_no_input(&self) -> bool {
        let mut context = task::Context::from_waker(Waker::noop());
        self.stream
            .socket
            .poll_read_ready(&mut context)
            .is_pending()
    }

    /// Sends a part of what waits. Returns whether something did.
    async fn send_unasked(&mut self, outbox: &Outbox) -> io::Result<bool> {
        let pieces = outbox.take(REPLY_BATCH);
        if pieces.is_empty() {
            return Ok(false);
        }
        for piece in pieces {
            self.output.unasked(piece);
        }
        self.send(false).await?;
        self.output.release();
        self.publish();
        self.client.set_state(State::Waiting);
        Ok(true)
    }
}
