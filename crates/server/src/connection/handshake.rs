//! The beginning of a connection with TLS, and what becomes of a client at the wrong port.

use super::Connection;
use crate::transport::{Alert, HandshakeError, Stream};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The answer to commands at the port of TLS.
const SPEAKS_TLS: &[u8] = b"ERR this port speaks TLS; connect with TLS, or to another port";

impl Connection {
    /// Begins TLS. Returns whether the client may go on; then its first commands may have arrived
    /// already.
    pub(super) async fn begin_tls(&mut self) -> io::Result<bool> {
        let server = Arc::clone(&self.server);
        let limits = &server.limits.tls;
        let seconds = limits.handshake_timeout;
        let under_way = server.handshakes.begin();
        let shake = self.shake_hands(limits.max_handshake.0);
        let shaken = tokio::time::timeout(Duration::from_secs(seconds), shake).await;
        drop(under_way);
        if let Err(error) = shaken.unwrap_or(Err(HandshakeError::TooSlow(seconds))) {
            server.handshakes.fail(&self.client, &error);
            match error {
                HandshakeError::Left | HandshakeError::LeftAtOnce => return Ok(false),
                HandshakeError::Plain => {
                    self.stream = Stream::plain(Arc::clone(&self.stream.socket));
                    self.say(SPEAKS_TLS).await?;
                }
                // The session has sent an alert.
                _ => (),
            }
            self.close().await?;
            return Ok(false);
        }
        if let Some(text) = self.stream.refusal() {
            self.say(text.as_bytes()).await?;
            self.close().await?;
            return Ok(false);
        }
        self.publish();
        Ok(true)
    }

    async fn shake_hands(&mut self, most: usize) -> Result<(), HandshakeError> {
        loop {
            self.publish();
            self.wait_until_readable().await?;
            let is_done = match self.stream.shake_hands(&mut self.input, most) {
                Err(HandshakeError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    continue;
                }
                done => done?,
            };
            // The signatures of a handshake take about as long as a turn.
            if self.turn.look() {
                self.give_way().await;
            }
            // The last of it may have to wait for the client.
            self.send(false).await?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Answers a client that begins TLS at a port without TLS.
    pub(super) async fn refuse_tls(&mut self) -> io::Result<()> {
        self.server.handshakes.tls_at_plain(&self.client);
        // If the client does not take it, it is gone.
        self.stream.try_write(&Alert::HandshakeFailure.record())?;
        self.close().await
    }

    /// Sends an error instead of a reply.
    async fn say(&mut self, text: &[u8]) -> io::Result<()> {
        self.output.begin();
        self.output.fail(text);
        self.output.finish();
        self.send(false).await
    }
}
