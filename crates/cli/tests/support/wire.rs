//! A server as a map whose calls are recorded.

use super::resp::{Connection, bulk, elements, encode};
use std::net::SocketAddr;
use std::ops::Bound;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use tremula_check::map::{Kind, Operation, Response, Span};
use tremula_check::record::Subject;
use tremula_index::Direction;
use tremula_store::ONE_MOMENT;

/// The first database of a server as a map. Each concurrent call has a connection of its own.
pub(crate) struct Wire {
    idle: Mutex<Vec<Connection>>,
    /// Whether calls are transactions: `MULTI` and `EXEC`, with `WATCH`, or `TXN`.
    in_transactions: bool,
}

fn name_of(key: u64) -> String {
    format!("k{key:05}")
}

fn number(text: &[u8]) -> u64 {
    let text = std::str::from_utf8(text).expect("text");
    text.trim_start_matches('k').parse().expect("a number")
}

/// The value in a reply, if any.
fn value(reply: &[u8]) -> Option<u64> {
    (!reply.starts_with(b"$-1")).then(|| number(&bulk(reply)))
}

/// The integer of a reply.
fn count(reply: &[u8]) -> usize {
    assert_eq!(reply[0], b':', "{}", reply.escape_ascii());
    number(reply[1..].trim_ascii_end())
        .try_into()
        .expect("a count")
}

fn entries(reply: &[u8]) -> Vec<(u64, u64)> {
    assert_eq!(reply[0], b'*', "{}", reply.escape_ascii());
    let words: Vec<u64> = elements(reply)
        .iter()
        .map(|word| number(&bulk(word)))
        .collect();
    words
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

/// The bounds of a range as the commands write them.
fn bounds(span: Span) -> [String; 2] {
    let spell = |bound, open: &str| match bound {
        Bound::Included(key) => format!("[{}", name_of(key)),
        Bound::Excluded(key) => format!("({}", name_of(key)),
        Bound::Unbounded => open.to_owned(),
    };
    [spell(span.low, "-"), spell(span.high, "+")]
}

impl Wire {
    /// For as many calls at a time.
    pub(crate) fn new(address: SocketAddr, calls: usize) -> Self {
        let idle = (0..calls).map(|_| Connection::new(address)).collect();
        let idle = Mutex::new(idle);
        Self {
            idle,
            in_transactions: false,
        }
    }

    /// The same, with each call a transaction.
    pub(crate) fn in_transactions(mut self) -> Self {
        self.in_transactions = true;
        self
    }

    /// Sends commands at once on one connection. Returns the last reply.
    fn pipeline(&self, commands: &[Vec<String>]) -> Vec<u8> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut connection = taken.expect("no more calls at a time than were announced");
        let request: Vec<u8> = commands.iter().flat_map(|words| encode(words)).collect();
        connection.send(&request);
        let mut last = Vec::new();
        for _ in commands {
            last = connection.reply().expect("a reply");
        }
        idle().push(connection);
        last
    }

    /// The replies to commands that run as one transaction.
    fn transact(&self, commands: &[&[&str]]) -> Vec<Vec<u8>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut all: Vec<Vec<String>> = vec![words(&["MULTI"])];
        all.extend(commands.iter().map(|command| words(command)));
        all.push(words(&["EXEC"]));
        elements(&self.pipeline(&all))
    }

    /// A call as a transaction; `None` if it is none.
    fn call_in_transaction(&self, operation: &Operation) -> Option<Response> {
        let name = |key: &u64| name_of(*key);
        Some(match operation {
            Operation::Get(key) => {
                Response::Value(value(&self.transact(&[&["GET", &name(key)]])[0]))
            }
            Operation::Insert(key, new) => {
                let (key, new) = (name(key), new.to_string());
                let replies = self.transact(&[&["GET", &key], &["SET", &key, &new]]);
                Response::Value(value(&replies[0]))
            }
            Operation::InsertIfAbsent(key, new) => {
                let (key, new) = (name(key), new.to_string());
                let words = ["TXN", "IF", "ABSENT", &key, "THEN", "3", "SET", &key, &new];
                Response::Flag(count(&elements(&self.command(&words))[0]) == 1)
            }
            Operation::Remove(key) if key % 2 == 0 => {
                let key = name(key);
                let replies = self.transact(&[&["EXISTS", &key], &["DEL", &key]]);
                assert_eq!(replies[0], replies[1], "one step");
                Response::Flag(count(&replies[1]) == 1)
            }
            Operation::Remove(key) => {
                // By what was read and has not changed since.
                let key = name(key);
                loop {
                    let getv = self.command(&["GETV", &key]);
                    let (before, version) = match elements(&getv).as_slice() {
                        [before, version] => (value(before), count(version).to_string()),
                        _ => (None, "0".to_owned()),
                    };
                    let words = [
                        "TXN", "IF", "VERSION", &key, &version, "THEN", "2", "DEL", &key,
                    ];
                    if count(&elements(&self.command(&words))[0]) == 1 {
                        return Some(Response::Value(before));
                    }
                }
            }
            Operation::RemoveRange(span) => {
                let [low, high] = bounds(*span);
                let replies = self.transact(&[
                    &["RANGECOUNT", &low, &high],
                    &["DELRANGE", &low, &high],
                    &["RANGECOUNT", &low, &high],
                ]);
                assert_eq!(
                    (&replies[0], count(&replies[2])),
                    (&replies[1], 0),
                    "one step"
                );
                Response::Count(count(&replies[1]))
            }
            Operation::Range(span, direction, limit) => {
                let [low, high] = bounds(*span);
                let limit = i64::try_from(*limit).unwrap_or(-1).to_string();
                let (first, last) = match direction {
                    Direction::Ascending => (low, high),
                    Direction::Descending => (high, low),
                };
                let mut words = vec!["RANGE", &first, &last, "WITHVALUES", "LIMIT", &limit];
                if *direction == Direction::Descending {
                    words.push("REV");
                }
                let replies = self.transact(&[&words, &words]);
                assert_eq!(replies[0], replies[1], "one step");
                Response::Entries(entries(&replies[0]))
            }
            _ => return None,
        })
    }

    /// The reply to a command. Unwinds, without a word, if the server ends before: such a call has
    /// not returned.
    pub(crate) fn command<T: AsRef<[u8]>>(&self, arguments: &[T]) -> Vec<u8> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut connection = taken.expect("no more calls at a time than were announced");
        connection.send(&encode(arguments));
        let reply = connection.reply_or_end();
        let reply = reply.unwrap_or_else(|| resume_unwind(Box::new("the server has ended")));
        idle().push(connection);
        reply
    }

    /// Makes these the only keys, each with itself as value.
    pub(crate) fn fill(&self, keys: u64) -> Vec<(u64, u64)> {
        assert_eq!(self.command(&["FLUSHDB"]), b"+OK\r\n");
        let mut arguments = vec!["MSET".to_owned()];
        arguments.extend((0..keys).flat_map(|key| [name_of(key), key.to_string()]));
        assert_eq!(self.command(&arguments), b"+OK\r\n");
        (0..keys).map(|key| (key, key)).collect()
    }

    fn range(&self, span: Span, direction: Direction, options: &[&str]) -> Response {
        let [low, high] = bounds(span);
        let mut arguments = match direction {
            Direction::Ascending => vec!["RANGE", &low, &high],
            Direction::Descending => vec!["RANGE", &high, &low, "REV"],
        };
        arguments.push("WITHVALUES");
        arguments.extend(options);
        Response::Entries(entries(&self.command(&arguments)))
    }
}

impl Subject for Wire {
    fn offers(&self, kind: Kind) -> bool {
        kind == Kind::Snapshot
    }

    fn ranges_of_one_moment(&self) -> Option<usize> {
        Some(ONE_MOMENT)
    }

    fn call(&self, operation: &Operation) -> Response {
        if self.in_transactions
            && let Some(response) = self.call_in_transaction(operation)
        {
            return response;
        }
        let entry = |reply: Vec<u8>| {
            let found = (!reply.starts_with(b"*-1")).then(|| entries(&reply));
            Response::Entry(found.and_then(|found| found.first().copied()))
        };
        match *operation {
            Operation::Get(key) => Response::Value(value(&self.command(&["GET", &name_of(key)]))),
            Operation::ContainsKey(key) => {
                Response::Flag(count(&self.command(&["EXISTS", &name_of(key)])) == 1)
            }
            Operation::Insert(key, new) => {
                let set = ["SET", &name_of(key), &new.to_string(), "GET"];
                Response::Value(value(&self.command(&set)))
            }
            Operation::InsertMany(ref entries) => {
                let mut arguments = vec!["MSET".to_owned()];
                let words = entries
                    .iter()
                    .map(|(key, new)| [name_of(*key), new.to_string()]);
                arguments.extend(words.flatten());
                assert_eq!(self.command(&arguments), b"+OK\r\n");
                Response::Done
            }
            Operation::InsertIfAbsent(key, new) => {
                let set = ["SETNX", &name_of(key), &new.to_string()];
                Response::Flag(count(&self.command(&set)) == 1)
            }
            Operation::Remove(key) if key % 2 == 0 => {
                Response::Flag(count(&self.command(&["DEL", &name_of(key)])) == 1)
            }
            Operation::Remove(key) => {
                Response::Value(value(&self.command(&["GETDEL", &name_of(key)])))
            }
            Operation::First => entry(self.command(&["FIRST"])),
            Operation::Last => entry(self.command(&["LAST"])),
            Operation::Next(key) => entry(self.command(&["NEXT", &name_of(key)])),
            Operation::Prev(key) => entry(self.command(&["PREV", &name_of(key)])),
            Operation::Range(span, direction, usize::MAX) => self.range(span, direction, &[]),
            Operation::Range(span, direction, limit) => {
                self.range(span, direction, &["LIMIT", &limit.to_string()])
            }
            Operation::Snapshot(span) => self.range(span, Direction::Ascending, &["SNAPSHOT"]),
            Operation::RemoveRange(span) => {
                let [low, high] = bounds(span);
                Response::Count(count(&self.command(&["DELRANGE", &low, &high])))
            }
            ref other => unreachable!("{other} is not in the scripts"),
        }
    }
}
