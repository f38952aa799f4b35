//! The commands of the histories, as words and as the model sees them, and their replies.

use crate::support::resp::{bulk, elements};
use std::fmt;
use std::ops::RangeInclusive;

/// The time that a command gives a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Never,
    /// Milliseconds from now on.
    In(u64),
    /// Milliseconds since 1970 began.
    At(u64),
    /// As it was.
    Kept,
}

/// When a command changes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// `NX`: of `SET`, if there is no such key; of `PEXPIRE`, if it has no time.
    Not,
    /// `XX`: of `SET`, if there is such a key; of `PEXPIRE`, if it has a time.
    Already,
}

/// What a `TXN` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Value(usize, u64),
    /// 0 stands for no key.
    Version(usize, u64),
    Present(usize),
    Absent(usize),
    Empty(RangeInclusive<usize>),
}

/// A command. Keys are numbers; every value is a number that is written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Get(usize),
    Getv(usize),
    Set(usize, u64, Time, When),
    /// `SET … GET`.
    Replace(usize, u64, Time),
    Mset(Vec<(usize, u64)>),
    Del(usize),
    Getdel(usize),
    Range(RangeInclusive<usize>),
    Delrange(RangeInclusive<usize>),
    Expire(usize, Time, When),
    Persist(usize),
    /// `GETEX` with a time, `PERSIST`, or none of them.
    Getex(usize, Time),
    Pttl(usize),
    Pexpiretime(usize),
    Txn(Vec<Condition>, [Vec<Command>; 2]),
    Watch(Vec<usize>),
    Unwatch,
    /// `MULTI`, the commands and `EXEC`, sent at once.
    Exec(Vec<Command>),
    /// What was shown to a watcher ends here.
    End,
}

pub(crate) fn name_of(key: usize) -> String {
    format!("k{key}")
}

fn bounds(keys: &RangeInclusive<usize>) -> [String; 2] {
    [keys.start(), keys.end()].map(|key| format!("[{}", name_of(*key)))
}

impl Time {
    fn options(self) -> Vec<String> {
        match self {
            Self::Never => vec![],
            Self::In(millis) => vec!["PX".to_owned(), millis.to_string()],
            Self::At(millis) => vec!["PXAT".to_owned(), millis.to_string()],
            Self::Kept => vec!["KEEPTTL".to_owned()],
        }
    }
}

impl When {
    fn options(self) -> Vec<String> {
        match self {
            Self::Always => vec![],
            Self::Not => vec!["NX".to_owned()],
            Self::Already => vec!["XX".to_owned()],
        }
    }
}

impl Condition {
    fn words(&self) -> Vec<String> {
        let of = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Value(key, value) => of(&["VALUE", &name_of(*key), &value.to_string()]),
            Self::Version(key, version) => of(&["VERSION", &name_of(*key), &version.to_string()]),
            Self::Present(key) => of(&["PRESENT", &name_of(*key)]),
            Self::Absent(key) => of(&["ABSENT", &name_of(*key)]),
            Self::Empty(keys) => {
                let [low, high] = bounds(keys);
                of(&["EMPTY", &low, &high])
            }
        }
    }
}

impl Command {
    /// The words of a command that is sent as one.
    fn words(&self) -> Vec<String> {
        let with = |first: &[&str], more: Vec<String>| {
            let first = first.iter().map(|word| (*word).to_owned());
            first.chain(more).collect::<Vec<String>>()
        };
        let name = |key: &usize| name_of(*key);
        match self {
            Self::Get(key) => with(&["GET", &name(key)], vec![]),
            Self::Getv(key) => with(&["GETV", &name(key)], vec![]),
            Self::Set(key, value, time, when) => {
                let options = [time.options(), when.options()].concat();
                with(&["SET", &name(key), &value.to_string()], options)
            }
            Self::Replace(key, value, time) => {
                let options = [time.options(), vec!["GET".to_owned()]].concat();
                with(&["SET", &name(key), &value.to_string()], options)
            }
            Self::Mset(entries) => {
                let words = entries
                    .iter()
                    .map(|(key, value)| [name(key), value.to_string()]);
                with(&["MSET"], words.flatten().collect())
            }
            Self::Del(key) => with(&["DEL", &name(key)], vec![]),
            Self::Getdel(key) => with(&["GETDEL", &name(key)], vec![]),
            Self::Range(keys) => {
                let [low, high] = bounds(keys);
                with(&["RANGE", &low, &high, "WITHVALUES"], vec![])
            }
            Self::Delrange(keys) => with(&["DELRANGE"], bounds(keys).to_vec()),
            Self::Expire(key, time, when) => {
                let (verb, millis) = match time {
                    Time::In(millis) => ("PEXPIRE", millis),
                    Time::At(millis) => ("PEXPIREAT", millis),
                    Time::Never | Time::Kept => unreachable!("that is no time"),
                };
                with(&[verb, &name(key), &millis.to_string()], when.options())
            }
            Self::Persist(key) => with(&["PERSIST", &name(key)], vec![]),
            Self::Getex(key, Time::Never) => with(&["GETEX", &name(key), "PERSIST"], vec![]),
            Self::Getex(key, Time::Kept) => with(&["GETEX", &name(key)], vec![]),
            Self::Getex(key, time) => with(&["GETEX", &name(key)], time.options()),
            Self::Pttl(key) => with(&["PTTL", &name(key)], vec![]),
            Self::Pexpiretime(key) => with(&["PEXPIRETIME", &name(key)], vec![]),
            Self::Txn(conditions, [then, otherwise]) => {
                let mut words = vec!["TXN".to_owned(), "IF".to_owned()];
                words.extend(conditions.iter().flat_map(Condition::words));
                for (word, commands) in [("THEN", then), ("ELSE", otherwise)] {
                    words.push(word.to_owned());
                    for command in commands {
                        let command = command.words();
                        words.push(command.len().to_string());
                        words.extend(command);
                    }
                }
                words
            }
            Self::Watch(keys) => with(&["WATCH"], keys.iter().map(name).collect()),
            Self::Unwatch => with(&["UNWATCH"], vec![]),
            Self::Exec(_) => with(&["EXEC"], vec![]),
            Self::End => unreachable!("it is not sent"),
        }
    }

    /// What is sent for it: several requests if it is `MULTI` to `EXEC`. The last reply counts.
    pub(crate) fn requests(&self) -> Vec<Vec<String>> {
        let Self::Exec(commands) = self else {
            return vec![self.words()];
        };
        let mut requests = vec![vec!["MULTI".to_owned()]];
        requests.extend(commands.iter().map(Self::words));
        requests.push(self.words());
        requests
    }

    /// The values that it may write.
    pub(crate) fn values(&self) -> Vec<u64> {
        match self {
            Self::Set(_, value, ..) | Self::Replace(_, value, _) => vec![*value],
            Self::Mset(entries) => entries.iter().map(|(_, value)| *value).collect(),
            Self::Txn(_, [then, otherwise]) => {
                let both = then.iter().chain(otherwise);
                both.flat_map(Self::values).collect()
            }
            Self::Exec(commands) => commands.iter().flat_map(Self::values).collect(),
            _ => vec![],
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self, Self::End) {
            return out.write_str("the end of the feed");
        }
        let requests = self.requests();
        let lines: Vec<String> = requests.iter().map(|words| words.join(" ")).collect();
        out.write_str(&lines.join("; "))
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Ok,
    Integer(i64),
    /// A value, or the number of a key.
    Text(u64),
    List(Vec<Reply>),
    Error(String),
}

impl Reply {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let line = || {
            let line = bytes[1..].split(|byte| *byte == b'\r').next();
            String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
        };
        match bytes[0] {
            b'+' => Self::Ok,
            b':' => Self::Integer(line().parse().expect("an integer")),
            b'-' => Self::Error(line()),
            b'$' | b'*' if bytes[1] == b'-' => Self::Nil,
            b'$' => {
                let text = String::from_utf8(bulk(bytes)).expect("text");
                Self::Text(text.trim_start_matches('k').parse().expect("a number"))
            }
            b'*' => Self::List(
                elements(bytes)
                    .iter()
                    .map(|part| Self::read(part))
                    .collect(),
            ),
            _ => panic!("no reply: {}", bytes.escape_ascii()),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => out.write_str("nil"),
            Self::Ok => out.write_str("OK"),
            Self::Integer(number) => write!(out, "({number})"),
            Self::Text(text) => write!(out, "{text}"),
            Self::List(replies) => {
                let replies: Vec<String> = replies.iter().map(ToString::to_string).collect();
                write!(out, "[{}]", replies.join(", "))
            }
            Self::Error(text) => write!(out, "error: {text}"),
        }
    }
}
