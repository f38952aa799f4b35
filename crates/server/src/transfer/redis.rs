//! A client of a Redis server: calls, and a full copy as a replica gets it.

use super::reply::{Reply, Unread, read_line};
use super::{TransferError, Trust};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How long the server may be silent. It says something every second while it writes a copy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a server is: `redis://[[user]:password@]host[:port]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown())
    }
}

impl Address {
    /// The address of a server, with what it needs to log in.
    #[must_use]
    pub const fn new(
        host: String,
        port: u16,
        user: Option<String>,
        password: Option<String>,
    ) -> Self {
        Self {
            host,
            port,
            user,
            password,
        }
    }

    /// The address without the password.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("redis://{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A password is not repeated in the error.
        let wrong = || "it is not redis://[[user]:password@]host[:port]".to_owned();
        let rest = text.strip_prefix("redis://").ok_or_else(wrong)?;
        let (access, place) = match rest.rsplit_once('@') {
            Some((access, place)) => (Some(access), place),
            None => (None, rest),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = match place
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => match place.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = port.map_or(Ok(6379), |port| port.parse().map_err(|_| wrong()))?;
        if host.is_empty() || host.contains(['/', ':', ' ']) && !place.starts_with('[') {
            return Err(wrong());
        }
        let access = access.map(|access| access.split_once(':').unwrap_or(("", access)));
        let (user, password) = access.unzip();
        Ok(Self {
            host: host.to_owned(),
            port,
            user: user.filter(|user| !user.is_empty()).map(str::to_owned),
            password: password.map(str::to_owned),
        })
    }
}

/// What a connection reads and writes.
trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A connection to a server, over TCP or TLS.
pub struct Client {
    from: String,
    stream: BufReader<Box<dyn Stream>>,
}

impl Client {
    /// Connects, and logs in if the address has a password.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses the password.
    pub fn connect(address: &Address) -> Result<Self, TransferError> {
        let stream = open(address).map_err(|error| unreachable(address, &error))?;
        Self::over(Box::new(stream), address)
    }

    /// The same over TLS.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, does not prove who it is, or refuses the client.
    pub fn connect_over_tls(address: &Address, trust: &Trust) -> Result<Self, TransferError> {
        let connect = || -> io::Result<_> {
            let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
            let session = ClientConnection::new(Arc::clone(&trust.0), name);
            let session = session.map_err(io::Error::other)?;
            let mut stream = StreamOwned::new(session, open(address)?);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
            Ok(stream)
        };
        let stream = connect().map_err(|error| unreachable(address, &error))?;
        Self::over(Box::new(stream), address)
    }

    fn over(stream: Box<dyn Stream>, address: &Address) -> Result<Self, TransferError> {
        let mut client = Self {
            stream: BufReader::with_capacity(256 << 10, stream),
            from: address.shown(),
        };
        if let Some(password) = &address.password {
            let mut login = vec!["AUTH"];
            login.extend(address.user.as_deref());
            login.push(password);
            client.call(&login)?;
        }
        Ok(client)
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> TransferError {
        TransferError::Server {
            from: self.from.clone(),
            what: what.into(),
        }
    }

    fn broken(&self, error: &std::io::Error) -> TransferError {
        let silent = [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut];
        if silent.contains(&error.kind()) {
            return self.wrong(format!("it is silent for {} seconds", PATIENCE.as_secs()));
        }
        self.wrong(format!("the connection broke: {error}"))
    }

    /// Sends a command. Several may be under way.
    ///
    /// # Errors
    ///
    /// The connection breaks.
    pub fn send<T: AsRef<[u8]>>(&mut self, arguments: &[T]) -> Result<(), TransferError> {
        let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            let argument = argument.as_ref();
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        let stream = self.stream.get_mut();
        let sent = stream.write_all(&bytes).and_then(|()| stream.flush());
        sent.map_err(|error| self.broken(&error))
    }

    /// A command's reply, which is no error.
    ///
    /// # Errors
    ///
    /// The server replies with an error, or the connection breaks.
    pub fn call<T: AsRef<[u8]>>(&mut self, arguments: &[T]) -> Result<Reply, TransferError> {
        self.send(arguments)?;
        match self.reply()? {
            Reply::Error(text) => {
                let name = arguments.first().map_or(&b""[..], AsRef::as_ref);
                Err(self.wrong(format!("{}: {text}", name.escape_ascii())))
            }
            reply => Ok(reply),
        }
    }

    /// The next reply.
    ///
    /// # Errors
    ///
    /// The connection breaks, or the reply is none.
    pub fn reply(&mut self) -> Result<Reply, TransferError> {
        Reply::read(&mut self.stream).map_err(|unread| self.unread(unread))
    }

    fn unread(&self, unread: Unread) -> TransferError {
        match unread {
            Unread::Broken(error) => self.broken(&error),
            Unread::Wrong(what) => self.wrong(what),
        }
    }

    fn line(&mut self) -> Result<String, TransferError> {
        read_line(&mut self.stream).map_err(|unread| self.unread(unread))
    }

    /// Asks for a full copy, as a replica does. Returns what the copy can be read from, and its
    /// length.
    pub(super) fn full_copy(mut self) -> Result<(impl Read, u64), TransferError> {
        self.call(&["PING"])?;
        // Without the capability of a copy whose length is not known before.
        self.call(&["REPLCONF", "listening-port", "0"])?;
        match self.call(&["PSYNC", "?", "-1"])? {
            Reply::Line(line) if line.starts_with("FULLRESYNC ") => {}
            other => return Err(self.wrong(format!("no full copy but {other:?}"))),
        }
        // Empty lines say that the server is still at it.
        let line = loop {
            let line = self.line()?;
            if !line.is_empty() {
                break line;
            }
        };
        let length = line
            .strip_prefix('$')
            .and_then(|length| length.parse().ok());
        match length {
            Some(length) => Ok((self.stream, length)),
            None => Err(self.wrong(format!("no copy but {line:?}"))),
        }
    }
}

fn open(address: &Address) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((&*address.host, address.port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn unreachable(address: &Address, error: &io::Error) -> TransferError {
    TransferError::Server {
        from: address.shown(),
        what: format!("cannot connect: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_perhaps_more() {
        let address = |text: &str| text.parse::<Address>();
        let made = |host: &str, port, user: Option<&str>, password: Option<&str>| {
            Ok(Address {
                host: host.to_owned(),
                port,
                user: user.map(str::to_owned),
                password: password.map(str::to_owned),
            })
        };
        assert_eq!(address("redis://a"), made("a", 6379, None, None));
        assert_eq!(address("redis://a.b:7/"), made("a.b", 7, None, None));
        assert_eq!(
            address("redis://:p@[::1]:7"),
            made("::1", 7, None, Some("p"))
        );
        assert_eq!(
            address("redis://u:p@x@a"),
            made("a", 6379, Some("u"), Some("p@x"))
        );
        for text in [
            "",
            "a",
            "http://a",
            "redis://",
            "redis://a:b",
            "redis://a/1",
            "redis://:s@a:x",
        ] {
            let refused = address(text).unwrap_err();
            assert!(!refused.contains(":s@"), "{refused}");
        }
        assert!(!format!("{:?}", address("redis://:secret@a")).contains("secret"));
    }
}
