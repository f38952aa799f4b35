//! A client that splits its input into replies and keeps their bytes.

use super::PATIENCE;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// A command as an array of bulk strings.
pub(crate) fn encode<T: AsRef<[u8]>>(arguments: &[T]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// A connection to either server.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::on(TcpStream::connect(address).expect("a connection"))
    }

    /// The same; `None` if nobody listens there.
    pub(crate) fn try_new(address: SocketAddr) -> Option<Self> {
        TcpStream::connect(address).ok().map(Self::on)
    }

    fn on(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The server may have closed after an error; its last reply can still be read.
        if let Err(error) = self.stream.write_all(bytes) {
            assert!(is_hangup(error.kind()), "{error}");
        }
    }

    /// Ends the output of this connection.
    pub(crate) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The bytes of the next reply; `None` once the server has closed.
    pub(crate) fn reply(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = reply_end(&self.buffer, 0) {
                return Some(self.buffer.drain(..end).collect());
            }
            if !self.fill() {
                assert!(
                    self.buffer.is_empty(),
                    "half a reply: {:?}",
                    self.buffer.escape_ascii()
                );
                return None;
            }
        }
    }

    /// As [`reply`](Self::reply), but half a reply is none: for a server that is killed.
    pub(crate) fn reply_or_end(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = reply_end(&self.buffer, 0) {
                return Some(self.buffer.drain(..end).collect());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Reads more bytes; `false` at the end.
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 64 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(read) => {
                self.buffer.extend(&chunk[..read]);
                true
            }
            Err(error) if is_hangup(error.kind()) => false,
            Err(error) => panic!("no reply: {error}"),
        }
    }

    /// Sends a command and returns the bytes of its reply.
    pub(crate) fn call<T: AsRef<[u8]>>(&mut self, arguments: &[T]) -> Vec<u8> {
        self.send(&encode(arguments));
        self.reply().expect("a reply")
    }

    /// Like [`call`](Self::call), for replies that are text.
    pub(crate) fn text(&mut self, command: &str) -> String {
        let arguments: Vec<_> = command.split(' ').collect();
        String::from_utf8(self.call(&arguments)).expect("text")
    }

    /// The lines of a section of `INFO`, by their fields.
    pub(crate) fn info(&mut self, section: &str) -> BTreeMap<String, String> {
        let text = String::from_utf8(bulk(&self.call(&["info", section]))).expect("text");
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .collect()
    }
}

fn is_hangup(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}

/// The end of the reply that begins at `start`, if the reply is complete.
fn reply_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (kind, length, mut position) = header(bytes, start)?;
    match kind {
        b'$' | b'=' if length >= 0 => {
            let end = position + usize::try_from(length).ok()? + 2;
            (bytes.len() >= end).then_some(end)
        }
        b'*' | b'~' | b'>' | b'%' if length >= 0 => {
            let elements = if kind == b'%' { 2 * length } else { length };
            for _ in 0..elements {
                position = reply_end(bytes, position)?;
            }
            Some(position)
        }
        _ => Some(position),
    }
}

/// Kind and number of the line at `start`, and the beginning of the next one.
fn header(bytes: &[u8], start: usize) -> Option<(u8, i64, usize)> {
    let line = bytes.get(start..)?;
    let end = line.windows(2).position(|pair| pair == b"\r\n")?;
    let number = line
        .get(1..end)
        .and_then(|text| std::str::from_utf8(text).ok());
    let number = number.and_then(|text| text.parse().ok()).unwrap_or(-1);
    Some((line[0], number, start + end + 2))
}

/// The elements of an array, a set or a map, each as its bytes.
pub(crate) fn elements(reply: &[u8]) -> Vec<Vec<u8>> {
    let Some((_, _, mut position)) = header(reply, 0) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    while position < reply.len() {
        let end = reply_end(reply, position).expect("a whole reply");
        all.push(reply[position..end].to_vec());
        position = end;
    }
    all
}

/// The bytes of a bulk string.
pub(crate) fn bulk(reply: &[u8]) -> Vec<u8> {
    let (kind, length, start) = header(reply, 0).expect("a reply");
    assert!(
        kind == b'$' && length >= 0,
        "no string: {:?}",
        reply.escape_ascii().to_string()
    );
    reply[start..reply.len() - 2].to_vec()
}
