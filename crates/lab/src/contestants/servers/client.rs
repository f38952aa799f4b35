//! A minimal Redis client, which can fill a server and inspect its contents.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a command.
    pub(super) fn send(&mut self, words: &[&str]) -> io::Result<()> {
        self.send_all(&encoded(words))
    }

    /// Sends commands that [`encoded`] has made.
    pub(super) fn send_all(&mut self, commands: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(commands)
    }

    /// Receives an answer that is no array: its first line without the line end; for a string then
    /// a space and its bytes.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        let length = line.strip_prefix(b"$").map(String::from_utf8_lossy);
        // A missing string has the length −1.
        if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
            let mut bytes = vec![0; length + 2];
            self.stream.read_exact(&mut bytes)?;
            line.push(b' ');
            line.extend_from_slice(&bytes[..length]);
        }
        Ok(line)
    }

    /// Receives answers up to these bytes, which end the last of them, and forgets them.
    pub(super) fn skip_to(&mut self, mark: &[u8]) -> io::Result<()> {
        let line_end = b"\r\n";
        let mut tail = Vec::new();
        loop {
            let bytes = self.stream.fill_buf()?;
            let length = bytes.len();
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // Enough of what came before to see a mark that came in parts.
            let kept = mark.len() + line_end.len();
            tail.extend_from_slice(&bytes[length.saturating_sub(kept)..]);
            self.stream.consume(length);
            tail.drain(..tail.len().saturating_sub(kept));
            if tail.strip_suffix(line_end) == Some(mark) {
                return Ok(());
            }
        }
    }

    /// Sends a command, and receives the answer.
    pub(super) fn ask(&mut self, words: &[&str]) -> io::Result<Vec<u8>> {
        self.send(words)?;
        self.receive()
    }
}

/// A command in the protocol's form.
pub(super) fn encoded(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}
