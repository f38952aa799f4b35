//! Sends requests to a collector of spans: plain HTTP, a connection for each.
//!
//! The exporter's own clients bring a second implementation of HTTP and TLS, and a runtime. A
//! collector runs on the same machine, and gets a request every few seconds from a thread of the
//! exporter, which may block.

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::fmt::Write as _;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::time::Duration;

/// How long the collector may take to accept, to read, and to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of an answer that are read: its first line says all.
const MOST_ANSWER: u64 = 4096;

/// The port of a collector, if none is named.
const PORT: u16 = 80;

#[derive(Debug)]
pub(super) struct Collector;

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Collector {
    fn send_bytes<'s, 'a>(&'s self, request: Request<Bytes>) -> Sent<'a>
    where
        's: 'a,
        Self: 'a,
    {
        Box::pin(async move { Ok(send(&request)?) })
    }
}

/// Whether something can be sent to this address.
pub(super) fn check(endpoint: &str) -> Result<(), &'static str> {
    let Some(rest) = endpoint.strip_prefix("http://") else {
        return Err("it begins with http://; a collector on this machine needs no TLS");
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
        return Err("it is http://HOST:PORT and a path");
    }
    Ok(())
}

fn send(request: &Request<Bytes>) -> io::Result<Response<Bytes>> {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    let address = (
        host.trim_matches(['[', ']']),
        uri.port_u16().unwrap_or(PORT),
    );
    let refused = || io::Error::other(format!("the collector {host} has no address"));
    let address = address.to_socket_addrs()?.next().ok_or_else(refused)?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or(host, |authority| authority.as_str());
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nHost: {authority}\r\n",
        request.method()
    );
    for (name, value) in request.headers() {
        let value = value.to_str().map_err(io::Error::other)?;
        write!(head, "{name}: {value}\r\n").map_err(io::Error::other)?;
    }
    let length = request.body().len();
    write!(
        head,
        "Connection: close\r\nContent-Length: {length}\r\n\r\n"
    )
    .map_err(io::Error::other)?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(request.body())?;
    let mut answer = Vec::new();
    stream.take(MOST_ANSWER).read_to_end(&mut answer)?;
    let status = status(&answer).ok_or_else(|| {
        let begin = answer[..answer.len().min(40)].escape_ascii();
        io::Error::other(format!("the collector's answer is no HTTP: '{begin}'"))
    })?;
    let response = Response::builder().status(status).body(Bytes::new());
    response.map_err(io::Error::other)
}

/// The status of an answer.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?.strip_prefix("HTTP/1.")?;
    line.split(' ').nth(1)?.parse().ok()
}
