//! How replies are sent, and how a connection waits for the disk before that.

use super::Connection;
use super::round;
use super::waiting::gone;
use crate::clients::State;
use crate::commands::Awaited;
use crate::persist::Durability;
use crate::resp::Reply;
use crate::transport::Socket;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tremula_store::{Sequence, Stopped};

impl Connection {
    /// Sends what is written, but for the reply of a command that is not done; before that, sees to
    /// it that what the replies tell is in the log, and on the disk if it must be. If it may wait,
    /// the clients that are ready are served first, so that the replies of all leave together.
    pub(super) async fn send(&mut self, may_wait: bool) -> io::Result<()> {
        if may_wait && !self.output.unsent().is_empty() && round::has_others(self.client.id) {
            tokio::task::yield_now().await;
            self.turn.again();
        }
        if std::mem::take(&mut self.session.has_written) {
            self.server.store.forward();
        }
        if self.server.group.is_some() {
            if self.session.shows_keys && !self.output.unsent().is_empty() {
                self.settle_in_group().await?;
            }
        } else if let Some(persistence) = &self.server.persistence {
            let durability = self.session.durability;
            let durability = durability.unwrap_or_else(|| persistence.durability());
            if durability == Durability::Always && !self.output.unsent().is_empty() {
                Box::pin(self.settle()).await?;
            }
        }
        self.send_now().await
    }

    /// Sends what is written, but for the reply of a command that is not done.
    async fn send_now(&mut self) -> io::Result<()> {
        loop {
            let unsent = self.output.unsent();
            let sent = if !unsent.is_empty() {
                self.stream.try_write(unsent)
            } else if self.stream.unsent() > 0 {
                self.stream.try_flush().map(|()| 0)
            } else {
                return Ok(());
            };
            match sent {
                Ok(sent) => {
                    self.output.sent(sent);
                    self.stripe().sent.add(sent as u64);
                    if self.turn.spend_bytes(sent) {
                        self.give_way().await;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.goes_slowly();
                    self.client.is_active();
                    self.client.set_state(State::Waiting);
                    self.publish();
                    self.wait_until(Socket::poll_write_ready).await?;
                    self.client.set_state(State::Working);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until everything is on the disk that this connection has written or can have seen. If
    /// that fails, the replies are not true: the client gets an error in their place, and the
    /// connection ends.
    pub(super) async fn settle(&mut self) -> io::Result<()> {
        let Err(stopped) = self.wait_for_disk().await else {
            return Ok(());
        };
        let text = format!("MISCONF what was written may be lost: {stopped}");
        self.end_with(&text).await?;
        Err(io::Error::other(stopped))
    }

    /// Waits until the group has confirmed everything that this connection has written or can have
    /// seen, and the leader has a lease. If that fails, the client gets an error in the place of
    /// its replies, and the connection ends.
    async fn settle_in_group(&mut self) -> io::Result<()> {
        let server = Arc::clone(&self.server);
        let Some(group) = &server.group else {
            return Ok(());
        };
        if group.is_settled(&server.store) {
            return Ok(());
        }
        let settled = Box::pin(group.settle(&server.store)).await;
        // Others ran meanwhile.
        self.turn.again();
        if let Err(text) = settled {
            self.end_with(text).await?;
            return Err(io::Error::other(text));
        }
        Ok(())
    }

    /// Sends an error in the place of all replies.
    pub(super) async fn end_with(&mut self, text: &str) -> io::Result<()> {
        self.output = Reply::new(self.server.live.max_output_buffer.bytes());
        self.output.begin();
        self.output.fail(text.as_bytes());
        self.output.finish();
        self.send_now().await
    }

    async fn wait_for_disk(&mut self) -> Result<(), Stopped> {
        let store = &self.server.store;
        let (Some(log), last) = (store.log(), store.last_effect()) else {
            return Ok(());
        };
        if log.durable() >= last && log.watermark().stopped().is_none() {
            return Ok(());
        }
        log.until(last).await?;
        // Others ran meanwhile.
        self.turn.again();
        Ok(())
    }

    /// Answers a `WAITAOF`.
    pub(super) async fn await_durable(&mut self, awaited: Awaited) -> io::Result<()> {
        self.slow = None;
        if let Some(sequence) = awaited.sequence {
            return self.await_sequence(sequence, awaited.timeout).await;
        }
        self.output.begin();
        self.client.set_state(State::Blocked);
        self.server.store.forward();
        let wait = async {
            let mut is_here = false;
            if let (Some(log), true) = (self.server.store.log(), awaited.here) {
                is_here = log.until(self.server.store.last_effect()).await.is_ok();
            }
            if awaited.replicas {
                std::future::pending::<()>().await;
            }
            is_here
        };
        let is_here = tokio::select! {
            is_here = wait => is_here,
            () = after(awaited.timeout) => self.is_durable(),
            () = gone(&self.client, &self.stream.socket) => self.is_durable(),
            _ = self.client.unblocked() => self.is_durable(),
        };
        self.client.set_state(State::Working);
        self.turn.again();
        self.output.array(2);
        self.output.integer(is_here.into());
        self.output.integer(0);
        self.output.finish();
        self.send(false).await
    }

    /// Answers a `WAITSEQ`.
    async fn await_sequence(
        &mut self,
        sequence: Sequence,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        self.output.begin();
        self.client.set_state(State::Blocked);
        self.server.store.forward();
        let server = Arc::clone(&self.server);
        let wait = async {
            match server.store.log() {
                Some(log) => log.until(sequence).await.is_ok(),
                None => false,
            }
        };
        let is_there = tokio::select! {
            is_there = wait => is_there,
            () = after(timeout) => false,
            () = gone(&self.client, &self.stream.socket) => false,
            _ = self.client.unblocked() => false,
        };
        self.client.set_state(State::Working);
        self.turn.again();
        let log = server.store.log();
        let reached = log.map_or(Sequence::NONE, |log| log.durable());
        if is_there {
            let reached = i64::try_from(reached.get()).unwrap_or(i64::MAX);
            self.output.integer(reached);
        } else {
            let text = format!(
                "TRYAGAIN effect {sequence} was not there in time; this server has {reached}"
            );
            self.fail_later("waitseq", text.as_bytes());
        }
        self.output.finish();
        self.send(false).await
    }

    fn is_durable(&self) -> bool {
        let store = &self.server.store;
        store
            .log()
            .is_some_and(|log| log.durable() >= store.last_effect())
    }
}

async fn after(timeout: Option<Duration>) {
    match timeout {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
