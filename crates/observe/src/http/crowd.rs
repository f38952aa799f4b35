//! What a connection gets that comes when all places are taken.

use super::{MOST_CONNECTIONS, MOST_HEAD, guard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connections that are being refused at the same time. Further ones are closed without an answer.
pub(super) const MOST_REFUSALS: usize = 64;

/// How long a client may take to send its request and to read the answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers with a `503`, whatever the request is, and closes the connection.
pub(super) async fn refuse(mut socket: TcpStream) {
    let talk = async {
        socket.write_all(answer().as_bytes()).await?;
        socket.shutdown().await?;
        // The system cuts a connection whose input was not read, and the answer may get lost.
        let mut input = (&mut socket).take(MOST_HEAD as u64);
        tokio::io::copy(&mut input, &mut tokio::io::sink()).await
    };
    // A client that is slow, or gone, has had its chance.
    let _ = timeout(PATIENCE, talk).await;
}

fn answer() -> String {
    let text = format!(
        "the page has {MOST_CONNECTIONS} connections, which is its limit; close some, and try again"
    );
    let body = serde_json::json!({ "error": text }).to_string();
    let mut head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\nretry-after: 1\r\ncache-control: no-store\r\n",
        body.len()
    );
    for (name, value) in guard::HEADERS {
        head.extend([name, ": ", value, "\r\n"]);
    }
    format!("{head}\r\n{body}")
}
