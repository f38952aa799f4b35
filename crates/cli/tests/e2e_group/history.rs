//! Clients of a group, and what they are answered: one history, which one order has to explain.
//!
//! A write without an answer, or with `TRYAGAIN`, may have happened at any later time, or never. A
//! write that was refused with `READONLY` has not happened. Every other client gives its writes
//! ids, and sends those without an answer again, to the next leader, until it gets one: they happen
//! once. So a write that was acknowledged and is lost, one that is there twice, and two leaders
//! that answer differently leave no order. What followers show is watched by itself.

use crate::cluster::View;
use crate::support::resp::{Connection, bulk, elements, encode};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tremula_check::{Event, Specification};

/// The longest pause between two calls of a client.
const PAUSE: u64 = 40;

/// How late a disturbed client reads a reply at most, in milliseconds.
const LATE: u64 = 600;

/// Keys of registers, of counters, of members of a set, of accounts.
const REGISTERS: [u8; 2] = [0, 1];
const COUNTER: u8 = 2;
const MEMBERS: [u8; 2] = [3, 4];
const ACCOUNTS: [u8; 2] = [5, 6];

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Put(u8, i64),
    Get(u8),
    Raise(u8),
    Add(u8),
    Remove(u8),
    /// A transaction: one unit goes from one account to the other.
    Move(u8, u8),
    /// Everything, as of one moment.
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Value(Option<i64>),
    Flag(bool),
    Pair(i64, i64),
    Entries(Vec<(u8, i64)>),
}

impl fmt::Display for Op {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

/// The commands one at a time.
pub(crate) struct Model;

impl Specification for Model {
    type State = BTreeMap<u8, i64>;
    type Operation = Op;
    type Response = Answer;

    fn initial(&self) -> Self::State {
        BTreeMap::new()
    }

    fn step(&self, state: &mut Self::State, op: &Op) -> Answer {
        let mut add = |key, more: i64| {
            let value = state.entry(key).or_default();
            *value += more;
            *value
        };
        match *op {
            Op::Move(from, to) => Answer::Pair(add(from, -1), add(to, 1)),
            Op::Raise(key) => Answer::Value(Some(add(key, 1))),
            Op::Put(key, value) => {
                state.insert(key, value);
                Answer::Done
            }
            Op::Get(key) => Answer::Value(state.get(&key).copied()),
            Op::Add(key) => Answer::Flag(state.insert(key, 1).is_none()),
            Op::Remove(key) => Answer::Flag(state.remove(&key).is_some()),
            Op::All => Answer::Entries(state.iter().map(|(key, value)| (*key, *value)).collect()),
        }
    }

    fn only_reads(&self, op: &Op, observed: Option<&Answer>) -> bool {
        matches!(op, Op::Get(_) | Op::All)
            || (matches!(op, Op::Remove(_)) && observed == Some(&Answer::Flag(false)))
    }
}

/// A call that is sent, once or again.
struct Sent {
    op: Op,
    called: u64,
    /// With an id it is sent until it is answered.
    id: Option<String>,
    is_again: bool,
}

/// What is known of a call.
enum Called {
    Answered(Answer),
    /// It has not happened.
    Refused,
    /// It may have happened.
    Unknown,
}

/// One round: its keys are its own.
pub(crate) struct Round<'c> {
    pub(crate) cluster: &'c View,
    pub(crate) number: u64,
    pub(crate) is_over: AtomicBool,
    /// Whether clients go away without a reply now and then, or read it late.
    pub(crate) are_disturbed: AtomicBool,
    clock: AtomicU64,
    /// The numbers of threads: a client whose call has no end goes on as another one.
    threads: AtomicUsize,
}

impl<'c> Round<'c> {
    pub(crate) fn new(cluster: &'c View, number: u64) -> Self {
        Self {
            cluster,
            number,
            is_over: AtomicBool::new(false),
            are_disturbed: AtomicBool::new(false),
            clock: AtomicU64::new(1),
            threads: AtomicUsize::new(0),
        }
    }

    fn key(&self, key: u8) -> String {
        format!("r{}:{key}", self.number)
    }

    fn stamp(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// Calls until the round is over. Returns what happened.
    pub(crate) fn client(&self, client: u64) -> Vec<Event<Op, Answer>> {
        let mut random = StdRng::seed_from_u64(self.number << 8 | client);
        let mut events = Vec::new();
        let mut thread = self.threads.fetch_add(1, SeqCst);
        let mut at = random.random_range(0..self.cluster.addresses.len());
        let mut connection = None;
        let mut next_value = 0;
        let mut unanswered: Option<Sent> = None;
        while !self.is_over.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(random.random_range(0..PAUSE)));
            let Some(open) = &mut connection else {
                at = (at + 1) % self.cluster.addresses.len();
                connection = self.leader(at);
                continue;
            };
            let sent = unanswered.take().unwrap_or_else(|| {
                next_value += 1;
                let value = (client as i64) << 32 | next_value;
                let op = operation(&mut random, value);
                let has_id = client.is_multiple_of(2) && !Model.only_reads(&op, None);
                Sent {
                    op,
                    called: self.stamp(),
                    id: has_id.then(|| format!("{}:{value}", self.number)),
                    is_again: false,
                }
            });
            let (op, called) = (sent.op, sent.called);
            let replies = self.send(open, op, sent.id.as_deref());
            let is_disturbed = self.are_disturbed.load(SeqCst);
            if is_disturbed && random.random_bool(0.2) {
                std::thread::sleep(Duration::from_millis(random.random_range(0..LATE)));
            }
            let called_so = if is_disturbed && random.random_bool(0.2) {
                Called::Unknown
            } else {
                receive(open, op, replies)
            };
            match called_so {
                Called::Answered(answer) => {
                    let until = self.stamp();
                    events.push(Event::returned(thread, called..=until, op, answer));
                }
                // An earlier copy may have happened.
                Called::Refused if !sent.is_again => connection = None,
                Called::Refused | Called::Unknown => {
                    connection = None;
                    if sent.id.is_some() {
                        let is_again = true;
                        unanswered = Some(Sent { is_again, ..sent });
                    } else if !Model.only_reads(&op, None) {
                        events.push(Event::pending(thread, called, op));
                        thread = self.threads.fetch_add(1, SeqCst);
                    }
                }
            }
        }
        events.extend(unanswered.map(|sent| Event::pending(thread, sent.called, sent.op)));
        events
    }

    /// A connection to a node that leads: what a follower shows may be old. A leader that steps
    /// down closes its connections.
    fn leader(&self, at: usize) -> Option<Connection> {
        let mut connection = self.cluster.connect(at)?;
        connection.send(&encode(&["ROLE"]));
        let role = connection.reply_or_end()?;
        (elements(&role).first()?.as_slice() == b"$6\r\nmaster\r\n").then_some(connection)
    }

    /// Everything as a node shows it, as a call of the history.
    pub(crate) fn look(&self, at: usize) -> Option<Event<Op, Answer>> {
        let thread = self.threads.fetch_add(1, SeqCst);
        let called = self.stamp();
        match self.call(&mut self.cluster.connect(at)?, Op::All) {
            Called::Answered(answer) => {
                let until = self.stamp();
                Some(Event::returned(thread, called..=until, Op::All, answer))
            }
            Called::Refused | Called::Unknown => None,
        }
    }

    fn call(&self, connection: &mut Connection, op: Op) -> Called {
        let replies = self.send(connection, op, None);
        receive(connection, op, replies)
    }

    /// Sends a call. Returns how many replies there will be.
    fn send(&self, connection: &mut Connection, op: Op, id: Option<&str>) -> usize {
        let once = id.map(|id| ["ONCE", id]);
        let words = |words: &[&str]| match &once {
            Some(once) => encode(&[once, words].concat()),
            None => encode(words),
        };
        let key = |key| self.key(key);
        let (request, replies) = match op {
            Op::Put(at, value) => (words(&["SET", &key(at), &value.to_string()]), 1),
            Op::Get(at) => (words(&["GET", &key(at)]), 1),
            Op::Raise(at) => (words(&["INCR", &key(at)]), 1),
            Op::Add(at) => (words(&["SET", &key(at), "1", "GET"]), 1),
            Op::Remove(at) => (words(&["DEL", &key(at)]), 1),
            Op::All => {
                let prefix = format!("r{}:", self.number);
                let (low, high) = (format!("[{prefix}"), format!("({prefix}~"));
                (words(&["RANGE", &low, &high, "WITHVALUES"]), 1)
            }
            Op::Move(from, to) if id.is_some() => {
                let (from, to) = (key(from), key(to));
                let all = ["TXN", "THEN", "2", "DECR", &from, "2", "INCR", &to];
                (words(&all), 1)
            }
            Op::Move(from, to) => {
                let all: [&[&str]; 4] = [
                    &["MULTI"],
                    &["DECR", &key(from)],
                    &["INCR", &key(to)],
                    &["EXEC"],
                ];
                (all.iter().flat_map(|command| encode(command)).collect(), 4)
            }
        };
        connection.send(&request);
        replies
    }

    /// Reads the counter at one node until the round is over: it must not fall while the node does
    /// not start again.
    pub(crate) fn watch(&self, at: usize) -> u64 {
        let (mut reads, mut last) = (0, 0);
        let mut connection = None;
        while !self.is_over.load(SeqCst) {
            std::thread::sleep(Duration::from_millis(PAUSE / 2));
            let Some(open) = &mut connection else {
                last = 0;
                connection = self.cluster.connect(at);
                continue;
            };
            let Called::Answered(Answer::Value(value)) = self.call(open, Op::Get(COUNTER)) else {
                connection = None;
                continue;
            };
            let value = value.unwrap_or(0);
            assert!(value >= last, "node {at} shows {value} behind {last}");
            last = value;
            reads += 1;
        }
        reads
    }
}

/// Reads the replies to a call; the last one counts.
fn receive(connection: &mut Connection, op: Op, replies: usize) -> Called {
    let mut last = Vec::new();
    for _ in 0..replies {
        match connection.reply_or_end() {
            Some(reply) if reply.starts_with(b"-READONLY") => return Called::Refused,
            Some(reply) if reply.starts_with(b"-") => return Called::Unknown,
            Some(reply) => last = reply,
            None => return Called::Unknown,
        }
    }
    Called::Answered(answer(op, &last))
}

fn operation(random: &mut StdRng, value: i64) -> Op {
    let which = random.random_range(0..2);
    match random.random_range(0..10) {
        0 | 1 => Op::Put(REGISTERS[which], value),
        2 | 3 => Op::Get(REGISTERS[which]),
        4 | 5 => Op::Raise(COUNTER),
        6 => Op::Add(MEMBERS[which]),
        7 => Op::Remove(MEMBERS[which]),
        8 => Op::Move(ACCOUNTS[which], ACCOUNTS[1 - which]),
        _ => Op::All,
    }
}

fn answer(op: Op, reply: &[u8]) -> Answer {
    let number = |bytes: &[u8]| -> i64 {
        let text = std::str::from_utf8(bytes).expect("text");
        text.trim_end().parse().expect("a number")
    };
    match op {
        Op::Put(..) => Answer::Done,
        Op::Get(_) if reply.starts_with(b"$-1") => Answer::Value(None),
        Op::Get(_) => Answer::Value(Some(number(&bulk(reply)))),
        Op::Raise(_) => Answer::Value(Some(number(&reply[1..]))),
        Op::Add(_) => Answer::Flag(reply.starts_with(b"$-1")),
        Op::Remove(_) => Answer::Flag(number(&reply[1..]) == 1),
        Op::Move(..) => {
            let mut both = elements(reply);
            if both[1].starts_with(b"*") {
                // Of a `TXN`: whether its conditions hold, and the replies.
                both = elements(&both[1]);
            }
            Answer::Pair(number(&both[0][1..]), number(&both[1][1..]))
        }
        Op::All => {
            let words = elements(reply);
            let entries = words.chunks_exact(2).map(|entry| {
                let name = bulk(&entry[0]);
                let key = name.last().expect("a name") - b'0';
                (key, number(&bulk(&entry[1])))
            });
            Answer::Entries(entries.collect())
        }
    }
}
