//! What a watcher of the keys is shown, and whether it is one order of the changes.

use crate::commands::name_of;
use crate::model::KEYS;
use crate::recorder::Recorded;
use crate::support::Server;
use crate::support::resp::{Connection, bulk, elements};
use std::collections::BTreeMap;
use std::fmt;

/// Behind the keys, but watched too: when it comes, all that was written before it has come.
pub(crate) const LAST: &str = "k9";

/// A change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A value, and when it expires.
    Set(u64, Option<u64>),
    /// Another time, or none.
    Expire(Option<u64>),
    Del,
    /// As a part of a range that is gone, whether the key was there or not.
    Delrange,
}

/// What a watcher was shown, by the key, each with its sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Feed([Vec<(u64, Change)>; KEYS]);

impl Feed {
    pub(crate) fn push(&mut self, key: usize, sequence: u64, change: Change) {
        self.0[key].push((sequence, change));
    }

    /// The event of a key behind as many others.
    pub(crate) fn event(&self, key: usize, at: usize) -> Option<(u64, Change)> {
        self.0[key].get(at).copied()
    }

    /// How many events of a key come behind as many others.
    pub(crate) fn left(&self, key: usize, at: usize) -> usize {
        self.0[key].len() - at
    }

    pub(crate) fn ends_with_del(&self, key: usize) -> bool {
        let last = self.0[key].last();
        last.is_some_and(|(_, change)| *change == Change::Del)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The events of some keys only.
    pub(crate) fn of_keys(&self, keys: impl Fn(usize) -> bool) -> Self {
        let mut part = self.clone();
        for (key, events) in part.0.iter_mut().enumerate() {
            events.retain(|_| keys(key));
        }
        part
    }

    /// Checks what the model of single keys cannot see. A change whose call ended before the call
    /// of another began has the smaller sequence; and between the changes of one step there are no
    /// others.
    pub(crate) fn check_order(&self, history: &[Recorded]) -> Result<(), String> {
        let mut writers: BTreeMap<u64, &Recorded> = BTreeMap::new();
        for recorded in history {
            let values = recorded.call.command.values().into_iter();
            writers.extend(values.map(|value| (value, recorded)));
        }
        let mut sets: Vec<(u64, u64)> = Vec::new();
        for (sequence, change) in self.0.iter().flatten() {
            if let Change::Set(value, _) = change {
                sets.push((*sequence, *value));
            }
        }
        sets.sort_unstable();
        // The write that was called last of those so far, and the last set of each call.
        let mut latest: Option<&Recorded> = None;
        let mut ended: BTreeMap<(usize, u64), usize> = BTreeMap::new();
        for (at, (sequence, value)) in sets.iter().enumerate() {
            let Some(&writer) = writers.get(value) else {
                return Err(format!("{value} is shown, and nobody has written it"));
            };
            if let Some(latest) = latest.filter(|latest| latest.called > writer.returned) {
                return Err(format!(
                    "`{}` has the sequence {sequence}, behind `{}`, which was called later",
                    writer.call, latest.call
                ));
            }
            if latest.is_none_or(|latest| latest.called < writer.called) {
                latest = Some(writer);
            }
            let before = ended.insert((writer.call.client, writer.called), at);
            if before.is_some_and(|before| before + 1 < at) {
                let call = &writer.call;
                return Err(format!(
                    "{value} of `{call}` is shown behind values of others"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Feed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("A watcher was shown:\n")?;
        for (key, events) in self.0.iter().enumerate() {
            writeln!(out, "    {}: {events:?}", name_of(key))?;
        }
        Ok(())
    }
}

/// A connection that watches some of the keys, and [`LAST`].
pub(crate) struct Watcher {
    connection: Connection,
    last: u64,
}

impl Watcher {
    /// Watches from a key on.
    pub(crate) fn new(server: &Server, from: usize) -> Self {
        let mut connection = server.connect();
        assert!(!connection.call(&["hello", "3"]).starts_with(b"-"));
        let low = format!("[{}", name_of(from));
        let reply = connection.call(&["watchrange", &low, &format!("[{LAST}")]);
        assert!(reply.starts_with(b":"), "{}", reply.escape_ascii());
        Self {
            connection,
            last: 0,
        }
    }

    /// All that is shown up to the value of [`LAST`], which somebody has just written.
    pub(crate) fn until(&mut self, value: u64) -> Result<Feed, String> {
        let mut feed = Feed::default();
        loop {
            let mut message = self.connection.reply().expect("what a watcher is shown");
            assert_eq!(message[0], b'>', "{}", message.escape_ascii());
            message[0] = b'*';
            let parts = elements(&message);
            let text = |at: usize| String::from_utf8(bulk(&parts[at])).expect("text");
            let integer = |at: usize| {
                let text = String::from_utf8_lossy(&parts[at][1..]).into_owned();
                text.trim_end().parse::<i64>().expect("an integer")
            };
            let number = |text: &str| text.trim_start_matches('k').parse::<u64>().ok();
            let expires = |at: usize| u64::try_from(integer(at)).ok();
            let sequence = integer(4) as u64;
            if sequence <= self.last {
                return Err(format!("{sequence} is shown behind {}", self.last));
            }
            self.last = sequence;
            let kind = text(3);
            if kind != "delrange" && text(5) == LAST {
                if kind == "set" && number(&text(6)) == Some(value) {
                    return Ok(feed);
                }
                continue;
            }
            if kind == "delrange" {
                let [low, high] = [text(5), text(6)];
                for key in (0..KEYS).filter(|key| lies_between(&name_of(*key), &low, &high)) {
                    feed.push(key, sequence, Change::Delrange);
                }
                continue;
            }
            let key = number(&text(5)).unwrap_or(0) as usize;
            let change = match &*kind {
                "set" => Change::Set(number(&text(6)).unwrap_or(0), expires(7)),
                "expire" => Change::Expire(expires(6)),
                "del" => Change::Del,
                other => panic!("a watcher is shown '{other}'"),
            };
            feed.push(key, sequence, change);
        }
    }
}

/// Whether a key lies between two bounds, as `RANGE` has them.
fn lies_between(name: &str, low: &str, high: &str) -> bool {
    let is_above = match low.split_at(1) {
        ("[", low) => name >= low,
        ("(", low) => name > low,
        _ => true,
    };
    let is_below = match high.split_at(1) {
        ("[", high) => name <= high,
        ("(", high) => name < high,
        _ => true,
    };
    is_above && is_below
}

/// Writes [`LAST`].
pub(crate) fn finish(connection: &mut Connection, value: u64) {
    let reply = connection.call(&["set", LAST, &value.to_string()]);
    assert_eq!(reply, b"+OK\r\n");
}
