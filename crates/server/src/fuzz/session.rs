//! Commands of one connection, on two servers.

use super::cut::Cuts;
use super::token::{Token, tokens};
use crate::connection::Served;
use crate::limits::{Bytes, ClientLimits, Limits, TermLimits, Time, TurnLimits};
use crate::server::{Shared, shared};
use crate::transport::{Alert, HANDSHAKE_RECORD, Socket, Stream};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tremula_store::{Engine, StoreConfig};

/// Commands whose replies depend on the engine, on the time, or on what else runs, and those that
/// make the connection wait or end others.
const NOT_COMPARED: [&str; 21] = [
    "client|info",
    "client|kill",
    "client|list",
    "client|pause",
    "config",
    "debug",
    "ets.format",
    "ets.info",
    "ets.whereis",
    "getv",
    "info",
    "latency",
    "lolwut",
    "mailbox.info",
    "memory",
    "monitor",
    "shape",
    "shutdown",
    "slowlog",
    "time",
    "wait",
];

/// What another connection asks for at the end.
const AUDIT: &str = "DBSIZE\r\nKEYS *\r\nRANGE - + WITHVALUES\r\nRANGE + - REV SNAPSHOT\r\n";

/// A stream of commands.
///
/// Two servers answer the same: one with the default engine and long turns, which gets the stream
/// in one piece, and one with another engine and turns that are over at once, which gets it in
/// pieces. The answers are whole replies, or an alert to a client that speaks TLS. In the end both
/// hold the same, and all ways to list it agree.
///
/// # Panics
///
/// One of these does not hold.
pub fn session(data: &[u8]) {
    // Identifiers of tables are unique in the process, so the two servers have different ones.
    if data
        .windows(4)
        .any(|part| part.eq_ignore_ascii_case(b"#ref"))
    {
        return;
    }
    let long = server(Engine::Aspen, Duration::from_secs(1));
    let short = server(Engine::CaTree, Duration::ZERO);
    let mut cuts = Cuts::of(data);
    let whole = talk(&long, data, &mut || usize::MAX);
    let cut = talk(&short, data, &mut || cuts.next() * 8);
    if data.first() == Some(&HANDSHAKE_RECORD) {
        // The client speaks TLS, and so does the refusal.
        let refusal = Alert::HandshakeFailure.record();
        assert_eq!((&whole[..], &cut[..]), (&refusal[..], &refusal[..]));
    } else {
        same(&whole, &cut);
    }
    let audits = [&long, &short].map(|server| talk(server, AUDIT.as_bytes(), &mut || usize::MAX));
    same(&audits[0], &audits[1]);
    is_consistent(&audits[0]);
}

fn server(engine: Engine, turn: Duration) -> Arc<Shared> {
    let limits = Limits {
        max_argument: Bytes(2 << 10),
        max_arguments: 32,
        max_output_buffer: Bytes(32 << 10),
        max_snapshot: 1 << 10,
        turn: TurnLimits {
            time: Time(turn),
            ..TurnLimits::default()
        },
        clients: ClientLimits {
            deny_commands: NOT_COMPARED.map(str::to_owned).to_vec(),
            ..ClientLimits::default()
        },
        terms: TermLimits {
            max_term: Bytes(4 << 10),
            max_term_depth: 16,
            ..TermLimits::default()
        },
        ..Limits::default()
    };
    let store = StoreConfig::new(engine).term_bounds(limits.terms.bounds());
    shared(limits, &store, Vec::new())
}

/// Sends a stream on a new connection, of which `piece` more bytes arrive at a time, and returns
/// the replies.
fn talk(server: &Arc<Shared>, stream: &[u8], piece: &mut dyn FnMut() -> usize) -> Vec<u8> {
    let talk = async {
        let (mut ours, theirs) = pair().await?;
        let Some(admission) = server.clients.admit(usize::MAX) else {
            panic!("there is a place for each");
        };
        let mut client = {
            let stream = Stream::plain(Arc::new(Socket::Tcp(theirs)));
            Served::new(server, stream, admission)?
        };
        let serve = async {
            client.serve(0).await;
            drop(client);
        };
        let ask = async {
            let mut left = stream;
            while !left.is_empty() {
                let (arrives, rest) = left.split_at(piece().min(left.len()));
                left = rest;
                // Fails if the server has hung up.
                if ours.write_all(arrives).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            // The same.
            let _ = ours.shutdown().await;
            let mut replies = Vec::new();
            ours.read_to_end(&mut replies).await?;
            // The port is free at once.
            socket2::SockRef::from(&ours).set_linger(Some(Duration::ZERO))?;
            Ok::<_, io::Error>(replies)
        };
        tokio::join!(serve, ask).1
    };
    match runtime().block_on(talk) {
        Ok(replies) => replies,
        Err(error) => panic!("a connection within the process: {error}"),
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built = Builder::new_current_thread().enable_all().build();
        built.unwrap_or_else(|error| panic!("an event loop: {error}"))
    })
}

async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
    Ok((ours?, theirs?.0))
}

fn whole_replies(replies: &[u8]) -> Vec<Token> {
    match tokens(replies) {
        Some((tokens, 0)) => tokens,
        _ => panic!("no whole replies: {}", replies.escape_ascii()),
    }
}

/// Checks that both replies are the same, but for identifiers.
fn same(one: &[u8], two: &[u8]) {
    let (one, two) = (whole_replies(one), whole_replies(two));
    let (one, two) = (without_identifiers(&one), without_identifiers(&two));
    for (index, (one, two)) in one.iter().zip(&two).enumerate() {
        assert_eq!(one, two, "line {index} of the replies");
    }
    assert_eq!(one.len(), two.len(), "{one:?} {two:?}");
}

/// The lines of replies, in which all identifiers of tables are the same, and all cursors.
fn without_identifiers(tokens: &[Token]) -> Vec<(u8, String)> {
    let mut lines = Vec::new();
    let mut begins_page = false;
    for token in tokens {
        let (Token::Line(kind, _) | Token::Text(kind, _)) = token;
        let text = token.text().escape_ascii().to_string();
        let mut parts = text.split("#Ref<");
        let mut masked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            masked += "#Ref<";
            masked += part.split_once('>').map_or(part, |(_, behind)| behind);
        }
        let is_number = masked.bytes().all(|byte| byte.is_ascii_digit());
        if begins_page && is_number && masked != "0" {
            "cursor".clone_into(&mut masked);
        }
        begins_page = *kind == b'*' && masked == "2";
        lines.push((*kind, masked));
    }
    lines
}

/// Checks that the number of keys and the lists of them agree.
fn is_consistent(audit: &[u8]) {
    let replies = whole_replies(audit);
    let mut replies = replies.into_iter();
    let Some(Token::Line(b':', count)) = replies.next() else {
        panic!("no number of keys: {}", audit.escape_ascii());
    };
    let mut list = || {
        let Some(Token::Line(b'*', count)) = replies.next() else {
            panic!("no list: {}", audit.escape_ascii());
        };
        let count = String::from_utf8_lossy(&count).parse();
        let elements: Vec<Token> = replies.by_ref().take(count.unwrap_or(0)).collect();
        elements
    };
    let (keys, entries, mut backwards) = (list(), list(), list());
    assert_eq!(keys.len().to_string().as_bytes(), count);
    let with_values = entries.chunks(2).map(|entry| &entry[0]);
    assert!(with_values.eq(&keys), "{entries:?} {keys:?}");
    backwards.reverse();
    assert_eq!(backwards, keys);
    let texts = keys.iter().map(Token::text);
    assert!(texts.is_sorted_by(|one, two| one < two), "{keys:?}");
}
