//! How bytes get to a client and from it: over TCP, over a unix socket, or over TLS.
//!
//! A [`Stream`] belongs to the connection, which alone reads and writes. It has two parts: the
//! [`Socket`], which other threads may shut down, and with TLS the [`Session`], which decrypts and
//! encrypts. When a client moves to another thread, the socket gets another descriptor there, and
//! the session goes along as it is.
//!
//! ```text
//!   connection --- Stream --+-- Arc<Socket> (Tcp | Unix) --- client, keeper: shutdown
//!                           +-- Option<Box<Session>>
//! ```

mod certificates;
mod session;
mod socket;
mod unix;

pub use certificates::{AuthClients, CertificateError, TlsFiles};
pub(crate) use certificates::{Certificates, authorities, certificates, private_key};
pub(crate) use session::{HandshakeError, Session};
pub(crate) use socket::{Address, Incoming, Socket};
pub use unix::{SocketMode, UnixError, UnixSocket};
pub(crate) use unix::{UnixAcceptor, escaped};

use std::io;
use std::sync::Arc;

/// The first byte of every client that speaks TLS: the type of a record with a handshake. No
/// command begins with it.
pub(crate) const HANDSHAKE_RECORD: u8 = 22;

/// Why a client is sent away before there is a session, in the words of TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Alert {
    /// This port speaks no TLS.
    HandshakeFailure = 40,
    /// There is no room for the client.
    InternalError = 80,
}

impl Alert {
    /// A fatal alert as a record that is not encrypted. Every version of TLS understands it.
    pub(crate) fn record(self) -> [u8; 7] {
        const ALERT_RECORD: u8 = 21;
        const FATAL: u8 = 2;
        [ALERT_RECORD, 3, 3, 0, 2, FATAL, self as u8]
    }
}

/// What a connection reads from and writes to.
pub(crate) struct Stream {
    pub(crate) socket: Arc<Socket>,
    session: Option<Box<Session>>,
}

impl Stream {
    /// A stream without encryption.
    pub(crate) fn plain(socket: Arc<Socket>) -> Self {
        Self {
            socket,
            session: None,
        }
    }

    /// A stream that begins with a handshake.
    pub(crate) fn encrypted(socket: Arc<Socket>, session: Box<Session>) -> Self {
        Self {
            socket,
            session: Some(session),
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.session.is_some()
    }

    /// The error that the client gets instead of being served, once it can be encrypted.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        self.session.as_ref()?.refusal()
    }

    /// Goes on with the handshake, with what has arrived. Returns whether it is done; then `input`
    /// has what the client has sent behind it. A handshake of more than `most` bytes fails.
    ///
    /// # Errors
    ///
    /// [`HandshakeError`]; an alert is sent if the client understands it.
    pub(crate) fn shake_hands(
        &mut self,
        input: &mut Vec<u8>,
        most: usize,
    ) -> Result<bool, HandshakeError> {
        match &mut self.session {
            None => Ok(true),
            Some(session) => session.shake_hands(&self.socket, input, most),
        }
    }

    /// Appends what has arrived. `Ok(0)` is the end of the input.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing yet. What is not TLS, or was
    /// changed on its way, is [`InvalidData`](io::ErrorKind::InvalidData).
    #[inline]
    pub(crate) fn try_read_buf(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.try_read_buf(input),
            Some(session) => session.read(&self.socket, input),
        }
    }

    /// Takes the first of these bytes for sending, and returns how many. With TLS, some of these
    /// may be [unsent](Self::unsent) still.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the client does not take what came before.
    #[inline]
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.try_write(bytes),
            Some(session) => session.write(&self.socket, bytes),
        }
    }

    /// Sends what has been taken for sending.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the client does not take it.
    pub(crate) fn try_flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => session.flush(&self.socket),
        }
    }

    /// Bytes that have been taken for sending, and are not sent.
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.session.as_ref().map_or(0, |session| session.unsent())
    }

    /// Bytes that the session holds besides those that are unsent, at most.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.session.as_ref().map_or(0, |session| session.held())
    }

    /// Says that no more comes from this side, as TLS wants it. If the client does not take it at
    /// once, it goes without.
    pub(crate) fn end(&mut self) {
        if let Some(session) = &mut self.session {
            session.end(&self.socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_a_record_of_two_bytes() {
        assert_eq!(Alert::HandshakeFailure.record(), [21, 3, 3, 0, 2, 2, 40]);
        assert_eq!(Alert::InternalError.record(), [21, 3, 3, 0, 2, 2, 80]);
    }
}
