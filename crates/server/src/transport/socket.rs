//! The sockets of clients, and their addresses.

use super::escaped;
use socket2::{SockRef, Socket as AnySocket, TcpKeepalive};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{Interest, Ready};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;

/// How many checks of keepalive stay unanswered before a client counts as gone. They come at a
/// third of the time of silence before the first one, as in Redis.
const KEEPALIVE_PROBES: u32 = 3;

/// A socket that an event loop watches.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    /// With the path that the server listens on.
    Unix(UnixStream, Arc<str>),
}

/// Calls the same method of either socket.
macro_rules! of_either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream, _) => $call,
        }
    };
}

impl Socket {
    /// Reads into the room of `input`, which has some.
    #[inline]
    pub(crate) fn try_read_buf(&self, input: &mut Vec<u8>) -> io::Result<usize> {
        let room = input.capacity() - input.len();
        let mut read = None;
        let all = of_either!(self, stream => stream.try_io(Interest::READABLE, || {
            let bytes = stream.try_read_buf(input)?;
            read = Some(bytes);
            if (1..room).contains(&bytes) {
                // That was everything. So the event loop need not be asked by another read, which
                // would find nothing: it says when more has come.
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(bytes)
        }));
        read.map_or(all, Ok)
    }

    #[inline]
    pub(crate) fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_read(bytes))
    }

    #[inline]
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_write(bytes))
    }

    pub(crate) fn try_write_vectored(&self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        of_either!(self, stream => stream.try_write_vectored(parts))
    }

    #[inline]
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_read_ready(context))
    }

    #[inline]
    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_write_ready(context))
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_read_ready(context)).await
    }

    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await,
            Self::Unix(stream, _) => stream.ready(interest).await,
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        SockRef::from(self).shutdown(how)
    }

    /// Where the client comes from, and where it came to.
    pub(crate) fn addresses(&self) -> io::Result<(Address, Address)> {
        Ok(match self {
            Self::Tcp(stream) => (
                Address::Internet(stream.peer_addr()?),
                Address::Internet(stream.local_addr()?),
            ),
            Self::Unix(_, path) => {
                let address = Address::Unix(Arc::clone(path));
                (address.clone(), address)
            }
        })
    }

    /// Another descriptor of the same socket, which another event loop watches. This one stays as
    /// it is.
    pub(crate) fn watched_by(&self, handle: &Handle) -> io::Result<Self> {
        let socket: AnySocket = SockRef::from(self).try_clone()?;
        let _loop = handle.enter();
        Ok(match self {
            Self::Tcp(_) => Self::Tcp(TcpStream::from_std(socket.into())?),
            Self::Unix(_, path) => {
                Self::Unix(UnixStream::from_std(socket.into())?, Arc::clone(path))
            }
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        of_either!(self, stream => stream.as_fd())
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        of_either!(self, stream => stream.as_raw_fd())
    }
}

/// A socket on its way to an event loop.
#[derive(Debug)]
pub(crate) enum Incoming {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream, Arc<str>),
}

impl Incoming {
    /// A socket that this thread's event loop watches. The system looks after this time of silence
    /// whether the client is still there, if the time is not zero.
    pub(crate) fn open(self, silence: Duration) -> io::Result<Socket> {
        let stream = match self {
            Self::Unix(stream, path) => {
                return Ok(Socket::Unix(UnixStream::from_std(stream)?, path));
            }
            Self::Tcp(stream) => TcpStream::from_std(stream)?,
        };
        // Replies are sent whole, so waiting for more data would only delay them.
        stream.set_nodelay(true)?;
        if !silence.is_zero() {
            let keepalive = TcpKeepalive::new()
                .with_time(silence)
                .with_interval((silence / KEEPALIVE_PROBES).max(Duration::from_secs(1)))
                .with_retries(KEEPALIVE_PROBES);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        }
        Ok(Socket::Tcp(stream))
    }

    /// Sends a few bytes and hangs up. They fit into the empty buffer of a new socket, so this does
    /// not wait.
    pub(crate) fn refuse(self, bytes: &[u8]) {
        use std::io::Write;
        // The client may be gone already.
        let _ = match self {
            Self::Tcp(mut stream) => stream.write_all(bytes),
            Self::Unix(mut stream, _) => stream.write_all(bytes),
        };
    }
}

/// Where a client comes from, or where it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Internet(SocketAddr),
    /// The path of a unix socket, for which Redis shows the port 0.
    Unix(Arc<str>),
}

impl Address {
    /// The address of version 4 or 6; that of this machine for a unix socket.
    pub(crate) fn ip(&self) -> IpAddr {
        match self {
            Self::Internet(address) => address.ip(),
            Self::Unix(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// The path of a unix socket as text.
    pub(crate) fn of_path(path: &Path) -> Arc<str> {
        escaped(path).into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "{path}:0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_as_redis_shows_them() {
        let internet = Address::Internet(([127, 0, 0, 1], 7).into());
        assert_eq!(internet.to_string(), "127.0.0.1:7");
        let unix = Address::Unix(Address::of_path(Path::new("/run/a b")));
        assert_eq!(
            unix.to_string(),
            "/run/a\\x20b:0",
            "one word of CLIENT LIST"
        );
        assert!(unix.is_unix() && unix.ip().is_loopback());
    }
}
