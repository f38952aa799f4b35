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
        Self { idle }
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
