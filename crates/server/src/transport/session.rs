//! A session of TLS: decrypts what the client sends, and encrypts what it gets.
//!
//! [`rustls`] does the cryptography, and never touches the socket. This file carries bytes between
//! the two. Everything that has arrived is decrypted at once, so that no plain bytes wait in the
//! session while the socket is silent. What is encrypted is sent at once, as far as the client
//! takes it; the rest is at most [`AHEAD`] bytes.

use super::{HANDSHAKE_RECORD, Socket};
use rustls::{ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::io::{self, BufRead, ErrorKind, IoSlice, Write};
use std::sync::Arc;
use thiserror::Error;

/// Bytes that are read from the socket at once: two records of the largest size, so that a deep
/// pipeline takes few system calls.
const READ_SIZE: usize = 32 << 10;

/// Bytes that are encrypted before the client has taken them. As many as replies are collected for
/// one system call.
const AHEAD: usize = crate::limits::REPLY_BATCH;

/// The largest record: 16 KiB with what encryption adds. It can be decrypted only as a whole.
const LARGEST_RECORD: usize = (16 << 10) + 2048 + 5;

/// Bytes that encryption adds to a record, at most: its header, a number, a tag, a type.
const RECORD_OVERHEAD: usize = 5 + 8 + 16 + 1;

/// Bytes of the plain text of a record.
const RECORD: usize = 16 << 10;

/// Bytes that a session holds at rest: its state, a buffer of the size in which rustls reads, and
/// keys and what belongs to them, which were measured.
const AT_REST: usize = size_of::<ServerConnection>() + (4 << 10) + (2 << 10);

thread_local! {
    /// What is read from a socket, until it is in a session. Each thread needs only one, because
    /// nothing waits in between.
    static RECEIVED: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_SIZE]);
}

/// Why a handshake failed.
#[derive(Debug, Error)]
pub(crate) enum HandshakeError {
    /// The first byte is not of TLS.
    #[error("the client does not speak TLS")]
    Plain,
    /// The client closed, or the server ended its input, and nothing had come: many programs look
    /// so whether a port is open.
    #[error("the client left before it sent anything")]
    LeftAtOnce,
    #[error("the client left before the end of the handshake")]
    Left,
    #[error("the handshake has more than {0} bytes (--max-handshake)")]
    TooLong(usize),
    #[error("the handshake took longer than {0} seconds (--handshake-timeout)")]
    TooSlow(u64),
    /// The client or the network; or what the client sent, in rustls's words.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A session, and what is known of its buffers.
pub(crate) struct Session {
    connection: ServerConnection,
    /// Bytes that have arrived before the end of the handshake.
    shaken: usize,
    /// Bytes of records that are encrypted and not sent.
    unsent: usize,
    /// Bytes of a record that has not arrived as a whole, at most.
    partial: usize,
    /// The error that the client gets instead of being served.
    refusal: Option<&'static str>,
}

impl Session {
    /// A session that begins with the handshake. With a refusal it ends behind it.
    pub(crate) fn new(
        config: Arc<ServerConfig>,
        refusal: Option<&'static str>,
    ) -> Result<Self, rustls::Error> {
        let mut connection = ServerConnection::new(config)?;
        connection.set_buffer_limit(Some(AHEAD));
        Ok(Self {
            connection,
            shaken: 0,
            unsent: 0,
            partial: 0,
            refusal,
        })
    }

    /// The error that the client gets instead of being served.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }

    /// Goes on with the handshake; see [`Stream::shake_hands`](super::Stream::shake_hands).
    pub(super) fn shake_hands(
        &mut self,
        socket: &Socket,
        input: &mut Vec<u8>,
        most: usize,
    ) -> Result<bool, HandshakeError> {
        let before = self.shaken;
        let arrived = self.receive(socket, |session, bytes| {
            if before == 0 && bytes.first().is_some_and(|byte| *byte != HANDSHAKE_RECORD) {
                return Err(HandshakeError::Plain);
            }
            session.shaken += bytes.len();
            session.take(bytes, input)?;
            Ok(())
        });
        // An alert, if the handshake has failed.
        let flushed = self.flush(socket);
        if !arrived? {
            let has_begun = self.shaken > 0;
            return Err(if has_begun {
                HandshakeError::Left
            } else {
                HandshakeError::LeftAtOnce
            });
        }
        // If the handshake is done, the last bytes may be commands.
        if self.shaken > most && self.connection.is_handshaking() {
            return Err(HandshakeError::TooLong(most));
        }
        match flushed {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(!self.connection.is_handshaking()),
        }
    }

    /// Appends what has arrived; see [`Stream::try_read_buf`](super::Stream::try_read_buf).
    pub(super) fn read(&mut self, socket: &Socket, input: &mut Vec<u8>) -> io::Result<usize> {
        let before = input.len();
        let arrived = self.receive(socket, |session, bytes| session.take(bytes, input));
        // What the session itself says: an alert, or new keys. If the client does not take it now,
        // it goes with the next reply.
        match self.flush(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => (),
        }
        if !arrived? {
            return Ok(0);
        }
        match input.len() - before {
            0 if self.has_ended() => Ok(0),
            0 => Err(ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }

    /// Reads once from the socket, and hands on what it has brought; `false` at the end.
    fn receive<E: From<io::Error>>(
        &mut self,
        socket: &Socket,
        take: impl FnOnce(&mut Self, &[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.has_ended() {
            return Ok(false);
        }
        RECEIVED.with_borrow_mut(|received| match socket.try_read(received)? {
            0 => Ok(false),
            read => {
                take(self, &received[..read])?;
                Ok(true)
            }
        })
    }

    /// Decrypts records.
    pub(crate) fn take(&mut self, mut bytes: &[u8], input: &mut Vec<u8>) -> io::Result<()> {
        let (length, before) = (bytes.len(), input.len());
        // rustls takes them in parts. Behind the end that the client has declared it takes none.
        while !bytes.is_empty() && self.connection.read_tls(&mut bytes)? > 0 {
            let state = self.connection.process_new_packets();
            let state = state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            self.unsent = state.tls_bytes_to_write();
            let mut left = state.plaintext_bytes_to_read();
            input.try_reserve(left)?;
            let mut reader = self.connection.reader();
            while left > 0 {
                let part = reader.fill_buf()?;
                let count = part.len();
                input.extend_from_slice(part);
                reader.consume(count);
                left -= count;
            }
        }
        let held = if input.len() == before {
            self.partial + length
        } else {
            length
        };
        self.partial = held.min(LARGEST_RECORD);
        Ok(())
    }

    /// Whether the client has said that no more comes.
    fn has_ended(&mut self) -> bool {
        // There are no plain bytes in the session, so this is its end or an error.
        matches!(self.connection.reader().fill_buf(), Ok([]))
    }

    /// Takes bytes for sending; see [`Stream::try_write`](super::Stream::try_write).
    pub(super) fn write(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.connection.writer().write(bytes)?;
        self.unsent += taken + taken.div_ceil(RECORD) * RECORD_OVERHEAD;
        match self.flush(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends what is encrypted.
    pub(super) fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        self.flush_to(&mut Sink(socket))
    }

    /// As [`flush`](Self::flush), to anything.
    pub(crate) fn flush_to(&mut self, sink: &mut dyn Write) -> io::Result<()> {
        while self.connection.wants_write() {
            let sent = self.connection.write_tls(sink)?;
            if sent == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            // The overhead is an upper bound, so this is not less than what is there.
            self.unsent = self.unsent.saturating_sub(sent);
        }
        self.unsent = 0;
        Ok(())
    }

    /// Says that no more comes from this side.
    pub(super) fn end(&mut self, socket: &Socket) {
        self.connection.send_close_notify();
        // The client may be gone, or not take it.
        let _ = self.flush(socket);
    }

    /// Bytes that are encrypted and not sent: at least one if there are any.
    pub(crate) fn unsent(&self) -> usize {
        if self.connection.wants_write() {
            self.unsent.max(1)
        } else {
            0
        }
    }

    /// Bytes that the session holds besides those, at most.
    pub(crate) fn held(&self) -> usize {
        AT_REST + self.partial
    }
}

/// A socket as rustls writes to it.
struct Sink<'a>(&'a Socket);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
