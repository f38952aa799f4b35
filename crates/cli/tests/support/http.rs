//! A client of the page, which keeps what it gets.

use super::{PATIENCE, Server};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// By names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The sentence of a refusal.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().expect("an error").to_owned()
    }
}

/// Sends a request with these headers, and `Host` if it is not among them.
pub(crate) fn request(
    address: SocketAddr,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if headers.iter().all(|(name, _)| *name != "Host") {
        text += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    parse(&String::from_utf8(answer).expect("text"))
}

fn parse(text: &str) -> Answer {
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{text:?}"));
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.unwrap_or_else(|| panic!("{head:?}")),
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    }
}

/// Reads an address.
pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, ("GET", path), &[], "")
}

/// Sends JSON, with a token if it is not empty.
pub(crate) fn post(
    address: SocketAddr,
    path: &str,
    token: &str,
    body: &serde_json::Value,
) -> Answer {
    let headers = [
        ("Content-Type", "application/json"),
        ("Tremula-Token", token),
    ];
    let headers = &headers[..if token.is_empty() { 1 } else { 2 }];
    request(address, ("POST", path), headers, &body.to_string())
}

/// A server whose page is at a free port.
pub(crate) struct WithPage {
    pub(crate) server: Server,
    pub(crate) page: SocketAddr,
    /// What the log says is needed to write.
    pub(crate) token: String,
}

/// Starts a server with a page, and reads in its log where that is.
pub(crate) fn with_page(arguments: &[&str]) -> WithPage {
    with_page_at(["0", "127.0.0.1:0"], arguments)
}

/// The same at a port, with the page at an address.
pub(crate) fn with_page_at([port, page]: [&str; 2], arguments: &[&str]) -> WithPage {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tremula"));
    command
        .args(["serve", "--port", port, "--http", page])
        .args(["--log-format", "json", "--log-level", "info"])
        .args(arguments)
        .stderr(Stdio::piped());
    let mut server = Server::of(&mut command);
    let mut log = BufReader::new(server.log());
    let (page, token) = loop {
        let mut line = String::new();
        assert!(
            log.read_line(&mut line).expect("a log") > 0,
            "the log has no page"
        );
        let Ok(line) = serde_json::from_str::<serde_json::Value>(&line) else {
            continue;
        };
        let text = line.to_string();
        if let Some((_, rest)) = text.split_once("page on http://") {
            let address = rest
                .split('/')
                .next()
                .and_then(|address| address.parse().ok());
            let token = text
                .split("\"token\":\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            let token = token.unwrap_or_else(|| panic!("no token: {text}"));
            break (
                address.unwrap_or_else(|| panic!("{text}")),
                token.to_owned(),
            );
        }
    };
    // So that the server never waits for somebody to read its log.
    thread::spawn(move || {
        let _ = std::io::copy(&mut log, &mut std::io::sink());
    });
    WithPage {
        server,
        page,
        token,
    }
}

/// Reads events until `wanted` returns something.
pub(crate) fn events<T>(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    mut wanted: impl FnMut(u64, &str, serde_json::Value) -> Option<T>,
) -> T {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    stream
        .write_all((text + "\r\n").as_bytes())
        .expect("it is sent");
    let (mut id, mut event) = (0, String::new());
    for line in BufReader::new(stream).lines() {
        let line = line.expect("an event");
        if let Some(value) = line.strip_prefix("id: ") {
            id = value.parse().expect("a number");
        } else if let Some(value) = line.strip_prefix("event: ") {
            event = value.to_owned();
        } else if let Some(value) = line.strip_prefix("data: ") {
            let data = serde_json::from_str(value).expect("JSON");
            if let Some(found) = wanted(id, &event, data) {
                return found;
            }
        }
    }
    panic!("the events ended");
}
