//! Commands of the page.
//!
//! A command comes to the workers over a pair of sockets, as that of any client, and its connection
//! is that of the visitor's user. So it has that user's rights, and the limits, the quotas and the
//! slow log of every client; and the page has no other way to the data.

use crate::commands::{Command, lookup_full};
use crate::group::forwarded;
use crate::resp::end_of;
use crate::server::{Arrival, Shared, Socket};
use crate::transfer::Reply;
use crate::transport::Incoming;
use crate::users::User;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tremula_observe::{self as page, Refusal};

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a reply.
const MOST_REPLY: usize = 1 << 20;

/// What the connections of the console are called among the clients.
const NAME: &str = "page";

/// Commands that are about the connection, of which each command of the console has a new one.
const OF_CONNECTIONS: [&str; 14] = [
    "auth",
    "asking",
    "client|caching",
    "client|reply",
    "client|tracking",
    "discard",
    "exec",
    "hello",
    "multi",
    "quit",
    "reset",
    "select",
    "unwatch",
    "watch",
];

/// Commands whose replies never end.
const ENDLESS: [&str; 9] = [
    "monitor",
    "psubscribe",
    "psync",
    "punsubscribe",
    "ssubscribe",
    "subscribe",
    "sync",
    "unwatchrange",
    "watchrange",
];

/// Commands without the flag `readonly` that change nothing and show no secret.
const HARMLESS: [&str; 11] = [
    "command", "dbsize", "echo", "info", "lastsave", "lolwut", "memory", "object", "ping", "role",
    "time",
];

/// Whether a command needs no more than reading.
pub(super) fn only_reads(command: &Command) -> bool {
    let first = command.full_name.split('|').next().unwrap_or_default();
    let refused = ["write", "admin", "blocking", "pubsub"];
    command.flags.contains(&"readonly") && !command.flags.iter().any(|flag| refused.contains(flag))
        || HARMLESS.contains(&first)
}

/// Why the console does not take a command, if it does not.
pub(super) fn why_not(command: &Command) -> Option<&'static str> {
    if OF_CONNECTIONS.contains(&command.full_name) {
        return Some("it is about its connection, and each command here has a new one");
    }
    if ENDLESS.contains(&command.full_name) || command.full_name.contains("unsubscribe") {
        return Some("its reply never ends; use a client");
    }
    if command.flags.contains(&"blocking") {
        return Some("it may wait for ever; use a client");
    }
    None
}

/// The command that these words name.
pub(super) fn named(words: &[String]) -> Option<&'static Command> {
    let command = lookup_full(words.first()?.as_bytes())?;
    let Some(second) = words.get(1).filter(|_| !command.subcommands.is_empty()) else {
        return Some(command);
    };
    let mut subcommands = command.subcommands.iter();
    let sub = subcommands.find(|sub| sub.name.eq_ignore_ascii_case(second));
    // What is no subcommand is the command's to refuse.
    Some(sub.unwrap_or(command))
}

/// Runs a command as a user.
pub(super) async fn run(
    server: &Arc<Shared>,
    user: Arc<User>,
    words: &[String],
) -> Result<page::Reply, Refusal> {
    let lost = |error: io::Error| Refusal::Unavailable(format!("the command is lost: {error}"));
    let mut stream = connect(server, user)?;
    let hello: [&[u8]; 2] = [b"HELLO", b"3"];
    let mut request = forwarded(hello.into_iter());
    request.extend(forwarded(words.iter().map(|word| word.as_bytes())));
    let talk = async {
        stream.write_all(&request).await.map_err(lost)?;
        let mut input = Vec::new();
        let greeting = read(&mut stream, &mut input).await?;
        if let Reply::Error(_) = greeting {
            return Ok(greeting);
        }
        read(&mut stream, &mut input).await
    };
    let late = || {
        let seconds = PATIENCE.as_secs();
        Refusal::Unavailable(format!("there is no reply within {seconds} seconds"))
    };
    let reply = timeout(PATIENCE, talk).await;
    reply.unwrap_or_else(|_| Err(late())).map(shown)
}

/// A connection to a worker.
fn connect(server: &Arc<Shared>, user: Arc<User>) -> Result<UnixStream, Refusal> {
    let unavailable = |error: io::Error| Refusal::Unavailable(format!("no connection: {error}"));
    let most = server.live.max_clients.bytes();
    let most = most.saturating_add(server.limits.clients.reserved_clients);
    let full = || Refusal::Unavailable("the server has as many clients as it takes".to_owned());
    let admission = server.clients.admit(most).ok_or_else(full)?;
    let (ours, theirs) = UnixStream::pair().map_err(unavailable)?;
    let theirs = theirs.into_std().map_err(unavailable)?;
    let incoming = Incoming::Unix(theirs, NAME.into());
    let client = Arrival::New(Socket::of_user(incoming, user, admission));
    if !server.threads.let_in(client) {
        return Err(Refusal::Unavailable("the server ends".to_owned()));
    }
    Ok(ours)
}

/// Reads the next reply, and leaves in `input` what comes behind it.
async fn read(stream: &mut UnixStream, input: &mut Vec<u8>) -> Result<Reply, Refusal> {
    let wrong = || Refusal::Unavailable("the reply cannot be read".to_owned());
    loop {
        if let Some(end) = end_of(input).map_err(|_| wrong())? {
            let rest = input.split_off(end);
            let reply = Reply::read(&mut &input[..]).map_err(|_| wrong());
            *input = rest;
            return reply;
        }
        if input.len() > MOST_REPLY {
            return Err(Refusal::TooLarge(format!(
                "the reply has more than {MOST_REPLY} bytes; ask for less, or use a client"
            )));
        }
        let read = stream.read_buf(input).await;
        match read {
            Ok(0) => return Err(Refusal::Unavailable("the connection was closed".to_owned())),
            Ok(_) => (),
            Err(error) => return Err(Refusal::Unavailable(format!("the reply is lost: {error}"))),
        }
    }
}

/// A reply as the page shows it.
fn shown(reply: Reply) -> page::Reply {
    match reply {
        Reply::Line(status) => page::Reply::Status { status },
        Reply::Integer(number) => page::Reply::Integer(number),
        Reply::Double(number) => page::Reply::Double(number),
        Reply::Flag(flag) => page::Reply::Bool(flag),
        Reply::Error(error) => page::Reply::Error { error },
        Reply::Text(text) => page::Reply::Bulk {
            bulk: String::from_utf8_lossy(&text).into_owned(),
        },
        Reply::Nothing => page::Reply::Null,
        Reply::Many(elements) => page::Reply::Array {
            array: elements.into_iter().map(shown).collect(),
        },
        Reply::Pairs(pairs) => {
            let pairs = pairs.into_iter();
            page::Reply::Map {
                map: pairs
                    .map(|(key, value)| (shown(key), shown(value)))
                    .collect(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::all;

    #[test]
    fn every_kind_of_reply_has_a_form() {
        for (reply, expected) in [
            ("+OK\r\n", r#"{"status":"OK"}"#),
            ("-ERR no\r\n", r#"{"error":"ERR no"}"#),
            (":-7\r\n", "-7"),
            (",1.5\r\n", "1.5"),
            (",inf\r\n", r#"{"bulk":"inf"}"#),
            ("#t\r\n", "true"),
            ("_\r\n", "null"),
            ("$2\r\nhi\r\n", r#"{"bulk":"hi"}"#),
            ("*2\r\n:1\r\n$0\r\n\r\n", r#"{"array":[1,{"bulk":""}]}"#),
            (
                "%1\r\n+a\r\n*0\r\n",
                r#"{"map":[[{"status":"a"},{"array":[]}]]}"#,
            ),
        ] {
            let read = Reply::read(&mut reply.as_bytes()).expect(reply);
            let text = serde_json::to_string(&shown(read)).expect("JSON");
            assert_eq!(text, expected, "{reply:?}");
        }
    }

    #[test]
    fn a_reader_runs_nothing_that_writes_and_the_console_nothing_that_never_ends() {
        for command in all() {
            let flagged = |flag: &str| command.flags.contains(&flag);
            if only_reads(command) {
                assert!(
                    !flagged("write") && !flagged("admin"),
                    "{}",
                    command.full_name
                );
            }
            if flagged("blocking") {
                assert!(why_not(command).is_some(), "{}", command.full_name);
            }
        }
        let of = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            named(&words)
        };
        let reads = |text: &str| only_reads(of(text).expect("a command"));
        assert!(reads("get k") && reads("RANGE a b") && reads("info") && reads("memory usage k"));
        assert!(!reads("set k v") && !reads("config set a b") && !reads("debug sleep 1"));
        assert!(!reads("acl setuser a") && !reads("shutdown") && !reads("flushall"));
        let refused = |text: &str| why_not(of(text).expect("a command")).is_some();
        assert!(refused("subscribe a") && refused("monitor") && refused("mailbox.recv a"));
        assert!(refused("multi") && refused("watchrange a b") && !refused("set k v"));
        assert!(of("no such").is_none());
    }

    #[test]
    fn the_lists_name_commands() {
        for name in OF_CONNECTIONS.iter().chain(&ENDLESS).chain(&HARMLESS) {
            // Some are Redis's alone, so far.
            let known = lookup_full(name.as_bytes()).is_some();
            let of_redis = [
                "asking",
                "client|caching",
                "client|tracking",
                "psync",
                "sync",
            ];
            assert!(known || of_redis.contains(name), "{name}");
        }
    }
}
