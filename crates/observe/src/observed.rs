//! What a program gives: the trait [`Observed`], and the shapes of its answers.

use crate::open_metrics::Metrics;
use serde::Serialize;
use std::borrow::Cow;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

/// The person or program that uses the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visitor {
    /// Anybody: may only read.
    Reader,
    /// Somebody with the token that was printed at the start: may do what the page's user may.
    Owner,
    /// A user that has logged in.
    User(String),
}

/// Whether a visitor without a token may read, and how one gets a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Anybody reads; what writes needs the token that was printed at the start, or a login.
    Token,
    /// Everything needs a login or the token, because the page's user has a password.
    Login,
    /// Anybody reads, and there is nothing that writes.
    None,
}

/// What the head of the page shows.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The engine of its maps, or none.
    pub engine: String,
    /// Seconds from its start.
    pub uptime_s: u64,
    /// Its role in a group.
    pub role: String,
    /// Its name in a group.
    pub node: String,
    /// Whether it is a program with maps of its own, and no server.
    pub embedded: bool,
    /// What a visitor needs to write.
    pub writes: Access,
    /// The parts of the page that the program has something for.
    pub sections: Vec<&'static str>,
}

/// What ran of one command in a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommandSecond {
    /// Its name.
    pub name: Cow<'static, str>,
    /// How often it ran.
    pub calls: u64,
    /// The time in microseconds that half of the calls did not exceed.
    pub p50_us: f64,
    /// The same of 99 %.
    pub p99_us: f64,
    /// The same of 99.9 %.
    pub p999_us: f64,
}

/// Memory at the end of a second, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemorySecond {
    /// What is held.
    pub used: u64,
    /// The limit; 0 is none.
    pub limit: u64,
    /// What holds it.
    #[serde(serialize_with = "as_map")]
    pub kinds: Vec<(&'static str, u64)>,
}

fn as_map<S: serde::Serializer>(kinds: &[(&'static str, u64)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(kinds.iter().copied())
}

/// The log at the end of a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogSecond {
    /// Records that are not on the disk.
    pub lag_records: u64,
    /// Bytes that are not on the disk, if that is known.
    pub lag_bytes: Option<u64>,
    /// Microseconds that the last sync took, if that is known.
    pub sync_us: Option<u64>,
}

/// Snapshots at the end of a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotSecond {
    /// Whether one is being written.
    pub running: bool,
    /// How much of it is done, from 0 to 1, if that is known.
    pub progress: Option<f64>,
    /// When the last one was done, in milliseconds since 1970; 0 if there was none.
    pub last_at: u64,
}

/// A node of the group at the end of a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaSecond {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Records that it lacks, if it has said how far it is.
    pub lag_records: Option<u64>,
}

/// What a second had. Counts are those of the second; levels are those at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Second {
    /// Its number; the page sets it.
    pub seq: u64,
    /// When it ended, in milliseconds since 1970; the page sets it.
    pub at: u64,
    /// The commands that ran.
    pub commands: Vec<CommandSecond>,
    /// Connected clients.
    pub clients: u64,
    /// Bytes that clients have sent.
    pub net_in: u64,
    /// Bytes that were sent to clients.
    pub net_out: u64,
    /// Keys in all maps.
    pub keys: u64,
    /// Memory.
    pub memory: MemorySecond,
    /// The log, if there is one.
    pub log: Option<LogSecond>,
    /// Snapshots, if there are any.
    pub snapshots: Option<SnapshotSecond>,
    /// The nodes of its group: this one, and the others that it has heard of.
    pub replicas: Vec<ReplicaSecond>,
    /// Keys that went because memory was short.
    pub evicted: u64,
    /// Keys whose time was over.
    pub expired: u64,
}

/// A map as the list of maps has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapInfo {
    /// Its name in addresses: letters, digits, `-` and `_`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// `database`, `table` or `map`.
    pub kind: &'static str,
    /// The engine.
    pub engine: String,
    /// How many keys it has.
    pub keys: u64,
    /// Whether its leaves can be walked.
    pub walked: bool,
    /// Why they cannot.
    pub reason: Option<String>,
}

/// A leaf of a map, as a walk shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// The byte form of a key at or below all of its keys and above those of the leaf before;
    /// `None` in the first leaf, or if it is not known.
    pub low: Option<&'a [u8]>,
    /// How many entries it has; `None` if a writer has it.
    pub entries: Option<usize>,
    /// How often its lock was waited for, since it was made; modulo 2^32.
    pub waits: u64,
    /// How often its lock was taken to write, since it was made; modulo 2^32.
    pub acquisitions: u64,
    /// What it looks like inside.
    pub format: &'static str,
}

/// A key that was used, one of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The byte form of the key.
    pub key: Vec<u8>,
    /// Whether it was written.
    pub is_write: bool,
    /// How many uses it stands for.
    pub stands_for: u64,
}

/// A key in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// The key for people.
    pub text: String,
    /// Its byte form in hexadecimal digits.
    pub raw: String,
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind: String,
    /// The bytes of its value.
    pub size: u64,
}

/// A slow command of a range of keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowKey {
    /// When it was done, in milliseconds since 1970.
    pub at: u64,
    /// The microseconds that it took.
    pub us: u64,
    /// The command.
    pub command: String,
    /// The key.
    pub key: String,
}

/// The keys of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Keys {
    /// The first ones, ascending.
    pub keys: Vec<KeyInfo>,
    /// Whether there are more.
    pub more: bool,
    /// Commands on keys of the range that took long.
    pub slow: Vec<SlowKey>,
}

/// A map that the page shows.
pub trait ObservedMap: Send + Sync {
    /// What the list of maps says of it.
    fn info(&self) -> MapInfo;

    /// Shows each leaf, ascending, until `visit` breaks. Returns how many splits and joins there
    /// were so far; `None` if the map cannot be walked.
    fn walk(&self, visit: &mut dyn FnMut(&Leaf<'_>) -> ControlFlow<()>) -> Option<(u64, u64)>;

    /// How many bytes an entry at or behind this key holds, as an example of its neighbours.
    fn bytes_at(&self, low: &[u8]) -> Option<u64> {
        let _ = low;
        None
    }

    /// A key by its byte form, for people.
    fn text(&self, key: &[u8]) -> String;

    /// The first `limit` keys from one on and below another.
    ///
    /// # Errors
    ///
    /// A sentence.
    fn keys(&self, from: &[u8], to: Option<&[u8]>, limit: usize) -> Result<Keys, String>;

    /// Moves the keys that were sampled since the last call to `into`.
    fn take_samples(&self, into: &mut Vec<Sampled>) {
        let _ = into;
    }
}

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowCommand {
    /// Its number.
    pub id: u64,
    /// When it was done, in milliseconds since 1970.
    pub at: u64,
    /// The microseconds that it took.
    pub us: u64,
    /// Its words, shortened.
    pub command: Vec<String>,
    /// Where its client is.
    pub client: String,
}

/// A client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientInfo {
    /// Its number.
    pub id: u64,
    /// Where it is.
    pub address: String,
    /// What it calls itself.
    pub name: String,
    /// Seconds since it came.
    pub age_s: u64,
    /// Seconds since its last command.
    pub idle_s: u64,
    /// Its last command.
    pub command: String,
    /// Bytes that its connection holds.
    pub memory: u64,
    /// Its user.
    pub user: String,
}

/// A mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MailboxInfo {
    /// Its name.
    pub name: String,
    /// Messages that wait.
    pub length: u64,
    /// How many may wait; 0 is no limit.
    pub capacity: u64,
    /// The queues that it has now.
    pub buffers: u64,
    /// How often it took more queues.
    pub grown: u64,
    /// How often it went back to fewer.
    pub folded: u64,
    /// Senders, if they are counted.
    pub senders: Option<u64>,
    /// Whether a receiver waits.
    pub waiting: u64,
}

/// A core's share of the shards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShardInfo {
    /// The number of the core or thread.
    pub core: u64,
    /// How busy it is, from 0 to 1.
    pub load: f64,
    /// States that it has.
    pub states: u64,
    /// How many came from others.
    pub moved_in: u64,
    /// How many went to others.
    pub moved_out: u64,
}

/// A command of the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandInfo {
    /// Its name.
    pub name: String,
    /// Its number of words, negative if that is the least; as in Redis.
    pub arity: i64,
    /// Its group.
    pub group: String,
    /// What it does.
    pub summary: String,
    /// Its arguments.
    pub syntax: String,
    /// Whether it needs more than reading.
    pub writes: bool,
}

/// A reply of the console.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Double(f64),
    /// A state in a word.
    Status {
        /// The word.
        status: String,
    },
    /// An error.
    Error {
        /// Its text.
        error: String,
    },
    /// A text.
    Bulk {
        /// The text.
        bulk: String,
    },
    /// Several replies.
    Array {
        /// The replies.
        array: Vec<Self>,
    },
    /// Pairs.
    Map {
        /// The pairs.
        map: Vec<(Self, Self)>,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is wrong, 400.
    Wrong(String),
    /// A token or a login is missing, 401.
    Unproved(String),
    /// The visitor may not do this, 403.
    Forbidden(String),
    /// There is no such thing, 404.
    Missing(String),
    /// It is too large, 413.
    TooLarge(String),
    /// Too often, 429.
    TooOften(String),
    /// It cannot be done now, 503.
    Unavailable(String),
}

/// The answer of a command, later.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// What a visitor may see or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Figures that have no keys.
    Figures,
    /// Keys, and the contention map, whose bounds are keys.
    Keys,
    /// The same of tables.
    Tables,
    /// The slow log.
    SlowLog,
    /// The clients.
    Clients,
    /// The mailboxes.
    Mailboxes,
}

/// A program that can be observed. Everything but the first method has an answer already, for a
/// program that has no such thing.
///
/// The methods are called on threads of the page, never on those of the program.
pub trait Observed: Send + Sync + 'static {
    /// What the head of the page shows.
    fn overview(&self) -> Overview;

    /// What happened since the last call, which was a second ago.
    fn second(&self) -> Second {
        Second::default()
    }

    /// The maps.
    fn maps(&self) -> Vec<Arc<dyn ObservedMap>> {
        Vec::new()
    }

    /// Whether a visitor may see something.
    ///
    /// # Errors
    ///
    /// [`Refusal`].
    fn allows(&self, visitor: &Visitor, section: Section) -> Result<(), Refusal> {
        let _ = (visitor, section);
        Ok(())
    }

    /// What a visitor has to be allowed to see for the map with this id.
    fn section_of(&self, map: &str) -> Section {
        let _ = map;
        Section::Keys
    }

    /// The last commands that took long, the newest first.
    fn slow_log(&self) -> Vec<SlowCommand> {
        Vec::new()
    }

    /// The clients.
    fn clients(&self) -> Vec<ClientInfo> {
        Vec::new()
    }

    /// The mailboxes.
    fn mailboxes(&self) -> Vec<MailboxInfo> {
        Vec::new()
    }

    /// The shards.
    fn shards(&self) -> Vec<ShardInfo> {
        Vec::new()
    }

    /// The commands of the console.
    fn commands(&self) -> Vec<CommandInfo> {
        Vec::new()
    }

    /// Writes the metrics.
    fn metrics(&self, metrics: &mut Metrics) {
        let _ = metrics;
    }

    /// Whether the program works.
    ///
    /// # Errors
    ///
    /// What is wrong, in a sentence.
    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether the program does its work for others: what it does.
    ///
    /// # Errors
    ///
    /// Why it does not, in a sentence.
    fn ready(&self) -> Result<String, String> {
        Ok("ready".to_owned())
    }

    /// Checks a user's password. Returns the user's name.
    ///
    /// # Errors
    ///
    /// [`Refusal`], after a time if many have failed.
    fn log_in<'a>(&'a self, user: &'a str, password: &'a str) -> Answer<'a, String> {
        let _ = (user, password);
        Box::pin(async { Err(Refusal::Missing("there are no users here".to_owned())) })
    }

    /// Runs a command for a visitor.
    ///
    /// # Errors
    ///
    /// [`Refusal`]. An error of the command itself is a [`Reply`].
    fn run<'a>(&'a self, visitor: &'a Visitor, words: Vec<String>) -> Answer<'a, Reply> {
        let _ = (visitor, words);
        Box::pin(async { Err(Refusal::Missing("there is no console here".to_owned())) })
    }
}
