//! A minimal Redis client, which can fill a server and inspect its contents.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The value of a key: as long as those that `redis-benchmark` sets.
pub(super) const VALUE: &str = "abc";

/// How many commands are in flight when this program fills a server or inspects it.
const BATCH: u64 = 1000;

/// What is wrong, if anything. The outer error is that of the connection.
pub(super) type Checked = io::Result<Result<(), String>>;

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

    /// Receives answers that must be these bytes. The inner error is what comes instead.
    pub(super) fn receive_all(&mut self, expected: &[u8]) -> Checked {
        let mut rest = expected;
        while !rest.is_empty() {
            let bytes = self.stream.fill_buf()?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = bytes.len().min(rest.len());
            if bytes[..length] != rest[..length] {
                let [answer, expected] = [bytes, rest].map(String::from_utf8_lossy);
                return Ok(Err(format!("it answers {answer:?}, not {expected:?}")));
            }
            self.stream.consume(length);
            rest = &rest[length..];
        }
        Ok(Ok(()))
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

/// The name of the key with this number, as `redis-benchmark` names keys.
pub(super) fn key(number: u64) -> String {
    format!("key:{number:012}")
}

/// Inserts this many keys.
pub(super) fn fill(client: &mut Client, keys: u64) -> Checked {
    for_each_key(
        client,
        keys,
        |number| encoded(&["SET", &key(number), VALUE]),
        |answer| answer == b"+OK",
    )
}

/// Sends a command for each key number, many at once, and checks each answer.
pub(super) fn for_each_key(
    client: &mut Client,
    keys: u64,
    command: impl Fn(u64) -> Vec<u8>,
    mut is_right: impl FnMut(&[u8]) -> bool,
) -> Checked {
    for first in (0..keys).step_by(BATCH as usize) {
        let batch = first..(first + BATCH).min(keys);
        let commands: Vec<u8> = batch.clone().flat_map(&command).collect();
        client.send_all(&commands)?;
        let mut fault = Ok(());
        // Receive all answers of the batch even after a fault, so that the next command gets its
        // own.
        for number in batch {
            let answer = client.receive()?;
            if !is_right(&answer) && fault.is_ok() {
                let answer = String::from_utf8_lossy(&answer);
                fault = Err(format!("key {number} is answered '{answer}'"));
            }
        }
        if fault.is_err() {
            return Ok(fault);
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::{collections::BTreeMap, net::TcpListener, thread};

    /// A server that knows strings, makes one mistake, and serves one client.
    pub(in super::super) fn served(mistake: &'static str) -> Client {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut strings = BTreeMap::new();
            while let Some(words) = command(&mut stream) {
                let answer = answer(&mut strings, &words, mistake);
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Client::connect(address).unwrap()
    }

    fn command(stream: &mut impl BufRead) -> Option<Vec<String>> {
        let number = |stream: &mut dyn BufRead| -> Option<usize> {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            line.get(1..)?.trim().parse().ok()
        };
        let count = number(stream)?;
        let mut words = Vec::new();
        for _ in 0..count {
            let mut bytes = vec![0; number(stream)? + 2];
            stream.read_exact(&mut bytes).ok()?;
            bytes.truncate(bytes.len() - 2);
            words.push(String::from_utf8(bytes).unwrap());
        }
        Some(words)
    }

    fn answer(strings: &mut BTreeMap<String, String>, words: &[String], mistake: &str) -> String {
        let bulk = |value: Option<&str>| match value {
            Some(value) => format!("${}\r\n{value}\r\n", value.len()),
            None => "$-1\r\n".to_owned(),
        };
        let word = |place: usize| words[place].clone();
        match words[0].as_str() {
            "FLUSHALL" => strings.clear(),
            "DBSIZE" => return format!(":{}\r\n", strings.len()),
            "GET" => {
                let found = strings.get(&words[1]).map(String::as_str);
                return bulk(found.map(|value| if mistake == "GET" { "xyzz" } else { value }));
            }
            "GETRANGE" => {
                let value = strings.get(&words[1]).cloned().unwrap_or_default();
                let whole = words[3] == "-1" || mistake == "GETRANGE";
                return bulk(Some(if whole { &value } else { &value[1..2] }));
            }
            "PUBLISH" => return format!(":{}\r\n", u8::from(mistake == "PUBLISH")),
            "INCR" => {
                let value = strings.entry(word(1)).or_insert_with(|| "0".to_owned());
                let number = value.parse::<u64>().unwrap() + 1;
                *value = number.to_string();
                return format!(":{}\r\n", number + u64::from(mistake == "INCR"));
            }
            "SET" | "MSET" => {
                // The last of several keys is dropped.
                let lost = usize::from(mistake == words[0]) * 2;
                for place in (1..words.len() - lost).step_by(2) {
                    strings.insert(word(place), word(place + 1));
                }
            }
            other => return format!("-ERR unknown command '{other}'\r\n"),
        }
        "+OK\r\n".to_owned()
    }

    #[test]
    fn answers_are_compared_byte_by_byte() {
        let client = &mut served("");
        let mut set = |expected: &str| {
            client.send(&["SET", "a", "1"]).unwrap();
            client.receive_all(expected.as_bytes()).unwrap()
        };
        assert_eq!(set("+OK\r\n"), Ok(()));
        assert_eq!(set("+OK"), Ok(()));
        assert!(set("+OK").unwrap_err().contains("answers"));
    }
}
