//! What a server says of itself at one moment.

use std::collections::BTreeMap;
use std::time::Instant;
use tremula_server::transfer::{Client, Reply, TransferError};

/// The most entries of the slow log that are asked for.
const MOST_SLOW: &str = "64";

/// The hottest leaves that are asked for.
const MOST_LEAVES: &str = "256";

/// The most clients that are kept of a list, in the order of the server.
const MOST_CLIENTS: usize = 10_000;

/// The most characters that are shown of a text of a client.
const MOST_TEXT: usize = 200;

/// What a server says of itself at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Instant,
    /// The fields of `INFO`, without those of commands.
    pub(super) info: BTreeMap<String, String>,
    pub(super) commands: BTreeMap<String, Counts>,
    /// The fields of `SHAPE` that are numbers, in its order; else why there are none.
    pub(super) shape: Result<Vec<(String, u64)>, String>,
    /// The hottest leaves of database 0 since each was made.
    pub(super) leaves: Result<Vec<Leaf>, String>,
    /// The slow log, newest first.
    pub(super) slow: Result<Vec<Slow>, String>,
    pub(super) clients: Result<Vec<Connected>, String>,
}

/// What a server has counted of one command since its start or since `CONFIG RESETSTAT`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) micros: u64,
    /// Calls that were refused, or that failed.
    pub(super) errors: u64,
    /// Names and microseconds of percentiles.
    pub(super) percentiles: Vec<(String, String)>,
}

/// A leaf of the index, and what was counted there since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Its lowest key, or the beginning of it.
    pub(super) low: String,
    pub(super) entries: Option<u64>,
    pub(super) acquisitions: u64,
    pub(super) waits: u64,
}

/// An entry of the slow log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) micros: u64,
    pub(super) command: String,
    pub(super) client: String,
}

/// A line of `CLIENT LIST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Connected {
    pub(super) address: String,
    pub(super) name: String,
    pub(super) user: String,
    pub(super) age: u64,
    pub(super) idle: u64,
    pub(super) memory: u64,
    pub(super) command: String,
}

impl Sample {
    /// Asks the server. Of what this user may not see, the sample has the server's refusal.
    pub(super) fn take(client: &mut Client) -> Result<Self, TransferError> {
        let info = match client.call(&["INFO", "everything"])? {
            Reply::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            _ => String::new(),
        };
        let (info, commands) = read_info(&info);
        let shape = ask(client, &["SHAPE"])?.map(|reply| read_shape(&reply));
        let leaves = ask(client, &["SHAPE", "LEAVES", MOST_LEAVES])?;
        let leaves = leaves.map(|reply| read_leaves(&reply));
        let slow = ask(client, &["SLOWLOG", "GET", MOST_SLOW])?.map(|reply| read_slow(&reply));
        let clients = ask(client, &["CLIENT", "LIST"])?.map(|reply| match reply {
            Reply::Text(text) => read_clients(&String::from_utf8_lossy(&text)),
            _ => Vec::new(),
        });
        Ok(Self {
            at: Instant::now(),
            info,
            commands,
            shape,
            leaves,
            slow,
            clients,
        })
    }

    /// A figure of `INFO`; 0 if it has no such field.
    pub(super) fn number(&self, field: &str) -> u64 {
        self.info
            .get(field)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// A text of `INFO`; `-` if it has no such field.
    pub(super) fn text(&self, field: &str) -> &str {
        self.info.get(field).map_or("-", String::as_str)
    }
}

/// A reply, or the server's refusal. An error if the connection broke.
fn ask(client: &mut Client, command: &[&str]) -> Result<Result<Reply, String>, TransferError> {
    client.send(command)?;
    Ok(match client.reply()? {
        Reply::Error(text) => Err(printable(text.as_bytes())),
        reply => Ok(reply),
    })
}

fn read_info(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, Counts>) {
    let (mut info, mut commands) = (BTreeMap::new(), BTreeMap::<String, Counts>::new());
    for line in text.lines() {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        if let Some(name) = field.strip_prefix("cmdstat_") {
            let counts = commands.entry(printable(name.as_bytes())).or_default();
            let parts = parts(value);
            let number = |part: &str| parts.get(part).and_then(|text| text.parse().ok());
            counts.calls = number("calls").unwrap_or(0);
            counts.micros = number("usec").unwrap_or(0);
            let refused: u64 = number("rejected_calls").unwrap_or(0);
            counts.errors = refused.saturating_add(number("failed_calls").unwrap_or(0));
        } else if let Some(name) = field.strip_prefix("latency_percentiles_usec_") {
            let counts = commands.entry(printable(name.as_bytes())).or_default();
            let named = value.split(',').filter_map(|part| part.split_once('='));
            counts.percentiles = named
                .map(|(percent, micros)| (percent.to_owned(), micros.to_owned()))
                .collect();
        } else {
            info.insert(field.to_owned(), printable(value.as_bytes()));
        }
    }
    (info, commands)
}

/// `a=1,b=2`.
pub(super) fn parts(text: &str) -> BTreeMap<&str, &str> {
    let named = text.split(',').filter_map(|part| part.split_once('='));
    named.collect()
}

fn read_shape(reply: &Reply) -> Vec<(String, u64)> {
    let Reply::Many(elements) = reply else {
        return Vec::new();
    };
    let pairs = elements.chunks_exact(2);
    pairs
        .filter_map(|pair| Some((text_of(&pair[0]), text_of(&pair[1]).parse().ok()?)))
        .collect()
}

fn read_leaves(reply: &Reply) -> Vec<Leaf> {
    let Reply::Many(leaves) = reply else {
        return Vec::new();
    };
    let leaf = |leaf: &Reply| {
        let Reply::Many(parts) = leaf else {
            return None;
        };
        let number = |at: usize| text_of(parts.get(at)?).parse::<u64>().ok();
        Some(Leaf {
            low: text_of(parts.first()?),
            entries: number(1),
            acquisitions: number(2)?,
            waits: number(3)?,
        })
    };
    leaves.iter().filter_map(leaf).collect()
}

fn read_slow(reply: &Reply) -> Vec<Slow> {
    let Reply::Many(entries) = reply else {
        return Vec::new();
    };
    let slow = |entry: &Reply| {
        let Reply::Many(parts) = entry else {
            return None;
        };
        let words = match parts.get(3)? {
            Reply::Many(words) => words.iter().map(text_of).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        Some(Slow {
            micros: text_of(parts.get(2)?).parse().ok()?,
            command: words.join(" ").chars().take(MOST_TEXT).collect(),
            client: parts.get(4).map(text_of).unwrap_or_default(),
        })
    };
    entries.iter().filter_map(slow).collect()
}

fn read_clients(text: &str) -> Vec<Connected> {
    let client = |line: &str| {
        let named = line.split(' ').filter_map(|part| part.split_once('='));
        let parts: BTreeMap<&str, &str> = named.collect();
        let text = |part: &str| printable(parts.get(part).copied().unwrap_or("").as_bytes());
        let number = |part: &str| parts.get(part).and_then(|text| text.parse().ok());
        Connected {
            address: text("addr"),
            name: text("name"),
            user: text("user"),
            age: number("age").unwrap_or(0),
            idle: number("idle").unwrap_or(0),
            memory: number("tot-mem").unwrap_or(0),
            command: text("cmd"),
        }
    };
    text.lines().take(MOST_CLIENTS).map(client).collect()
}

fn text_of(reply: &Reply) -> String {
    match reply {
        Reply::Line(text) | Reply::Error(text) => printable(text.as_bytes()),
        Reply::Text(text) => printable(text),
        Reply::Integer(number) => number.to_string(),
        Reply::Double(number) => number.to_string(),
        Reply::Flag(flag) => flag.to_string(),
        Reply::Nothing | Reply::Many(_) | Reply::Pairs(_) => String::new(),
    }
}

/// The text as it may be shown on a terminal: without control characters, and not too long.
fn printable(bytes: &[u8]) -> String {
    // A character has four bytes at most.
    let bytes = &bytes[..bytes.len().min(4 * MOST_TEXT)];
    String::from_utf8_lossy(bytes)
        .chars()
        .take(MOST_TEXT)
        .map(|letter| if letter.is_control() { '.' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read() {
        let text = "# Server\r\nengine:aspen\r\nthread0:clients=1,open=1,busy=7\r\n\
                    cmdstat_get:calls=3,usec=9,usec_per_call=3.00,rejected_calls=1,failed_calls=2\r\n\
                    latency_percentiles_usec_get:p50=1.500,p99=2.000\r\nnonsense\r\n";
        let (info, commands) = read_info(text);
        assert_eq!(info["engine"], "aspen");
        assert_eq!(parts(&info["thread0"])["busy"], "7");
        let get = &commands["get"];
        assert_eq!((get.calls, get.micros, get.errors), (3, 9, 3));
        assert_eq!(get.percentiles[1], ("p99".to_owned(), "2.000".to_owned()));
    }

    #[test]
    fn what_clients_have_sent_cannot_steer_the_terminal() {
        assert_eq!(printable(b"a\x1b[2Jb\r\n"), "a.[2Jb..");
        assert_eq!(printable(&[b'x'; 1000]).len(), MOST_TEXT);
        let word = |text: &str| Reply::Text(text.as_bytes().to_vec());
        let entry = Reply::Many(vec![
            Reply::Integer(1),
            Reply::Integer(1_700_000_000),
            Reply::Integer(15_000),
            Reply::Many(vec![word("SET"), word("\x1b]0;title\x07")]),
            word("127.0.0.1:5"),
            word(""),
        ]);
        let slow = read_slow(&Reply::Many(vec![entry, Reply::Nothing]));
        assert_eq!(slow.len(), 1);
        assert_eq!(slow[0].command, "SET .]0;title.");
        assert_eq!(slow[0].micros, 15_000);
    }

    #[test]
    fn clients_and_shapes_are_read() {
        let clients = read_clients(
            "id=7 addr=127.0.0.1:5 name=a age=3 idle=1 tot-mem=99 cmd=get user=default\n",
        );
        assert_eq!(
            (clients[0].age, clients[0].memory, &*clients[0].user),
            (3, 99, "default")
        );
        let line = |text: &str| Reply::Line(text.to_owned());
        let shape = Reply::Many(vec![
            line("engine"),
            line("aspen"),
            line("leaves"),
            Reply::Integer(4),
        ]);
        assert_eq!(read_shape(&shape), [("leaves".to_owned(), 4)]);
        let leaf = Reply::Many(vec![
            Reply::Text(b"k\x1b7".to_vec()),
            Reply::Nothing,
            Reply::Integer(12),
            Reply::Integer(3),
        ]);
        let expected = Leaf {
            low: "k.7".to_owned(),
            entries: None,
            acquisitions: 12,
            waits: 3,
        };
        assert_eq!(
            read_leaves(&Reply::Many(vec![leaf, Reply::Nothing])),
            [expected]
        );
    }
}
