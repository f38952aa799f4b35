//! The limits of one client, each a named constant with a flag.

mod channels;
mod clients;
mod feeds;
mod gather;
mod memory;
mod notices;
mod quotas;
mod terms;
mod tls;
mod transactions;
mod turn;
mod users;
mod watch;

pub use channels::{
    ChannelLimits, MAX_CLIENT_SUBSCRIPTIONS, MAX_PATTERN_BYTES, MAX_PUBSUB_BUFFER,
    MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS, SOFT_PUBSUB_BUFFER, SOFT_PUBSUB_SECONDS,
};
use clap::builder::RangedU64ValueParser;
pub use clients::{
    ClientLimits, MAX_CLIENT_BUFFERS, MAX_CLIENT_NAME, MAX_LISTED_CLIENTS, RESERVED_CLIENTS,
    SOFT_OUTPUT_BUFFER, SOFT_OUTPUT_SECONDS, TCP_KEEPALIVE, TIMEOUT,
};
pub use feeds::{
    FeedLimits, MAX_CLIENT_WATCHES, MAX_WATCH_BYTES, MAX_WATCHES, WATCH_BUFFER, WATCH_RING,
};
pub use gather::GatherLimits;
pub(crate) use memory::places;
pub use memory::{LEAST_MEMORY, MEMORY_SAMPLES, MemoryLimits};
pub(crate) use notices::Class;
pub use notices::Classes;
pub use quotas::{
    MAX_CLIENT_MAILBOXES, MAX_CLIENT_TABLES, MAX_MAILBOX_BYTES, MAX_MAILBOX_MESSAGES,
    MAX_MAILBOXES, MAX_TABLES, Quotas,
};
use std::{fmt, str::FromStr};
pub use terms::{MAX_ATOMS, MAX_CLIENT_ATOMS, MAX_TERM, MAX_TERM_DEPTH, TermLimits};
pub use tls::{HANDSHAKE_TIMEOUT, MAX_HANDSHAKE, TlsLimits};
pub use transactions::{MAX_ATOMIC, MAX_QUEUED, MAX_WATCHED_KEYS, TransactionLimits};
pub use turn::{
    LEAST_GATHERED, LONGEST_TURN, MAX_GATHERED, MAX_PAST, SHORTEST_TURN, TURN, Time, TurnLimits,
};
pub use users::{ChannelsOfUsers, MAX_ACL_LOG, MAX_USERS, UserLimits};
pub(crate) use watch::MOST_SLOWLOG;
pub use watch::{
    DebugAccess, LATENCY_MONITOR_THRESHOLD, PERCENTILES, Percentiles, SLOWLOG_LOG_SLOWER_THAN,
    SLOWLOG_MAX_LEN, WatchLimits,
};

/// Clients served at once, as in Redis. An idle client costs a socket and less than
/// three kilobytes.
pub const MAX_CLIENTS: usize = 10_000;

/// Bytes of one argument, and so of one key or value. Redis's `proto-max-bulk-len`, at which
/// clients split large objects.
pub const MAX_ARGUMENT: Bytes = Bytes(512 << 20);

/// Arguments of one command. An `MSET` of half a million pairs fits, in a list of 16 MiB.
pub const MAX_ARGUMENTS: usize = 1 << 20;

/// Bytes of one command as it arrives, all arguments together. Redis's `client-query-buffer-limit`.
pub const MAX_QUERY_BUFFER: Bytes = Bytes(1 << 30);

/// Bytes of one reply: twice the longest value, so that any value can be read back.
pub const MAX_OUTPUT_BUFFER: Bytes = Bytes(1 << 30);

/// Bytes of one inline command, or of the line that declares a length. Redis's
/// `PROTO_INLINE_MAX_SIZE`, which its clients know.
pub const MAX_LINE: usize = 64 << 10;

/// Bytes of replies collected before they are sent, while more commands of the pipeline wait. Large
/// enough that a deep pipeline takes one system call, small enough for the cache.
pub const REPLY_BATCH: usize = 64 << 10;

/// Keys that are copied for one `RANGE … SNAPSHOT` because they were about to change before it came
/// to them; with `REV`, all of its keys. A copy takes 48 bytes (longer keys and values are shared,
/// not copied), so this is 48 MiB.
pub const MAX_SNAPSHOT: usize = 1 << 20;

/// The least limit of an argument: names of commands and of options fit.
const LEAST_ARGUMENT: usize = 64;

/// The least limit of a buffer: an ordinary command and its error fit.
const LEAST_BUFFER: usize = 1 << 10;

/// The largest number of bytes that a flag takes: more than any machine has.
pub(crate) const MOST_BYTES: Bytes = Bytes(1 << 50);

/// The most of anything that is counted, so that nonsense is noticed.
const MOST: u64 = 1 << 40;

/// Reads a number of at least 1.
fn number() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MOST)
}

/// The limits of one server.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Clients served at once, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENTS, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000_000))]
    pub max_clients: usize,

    /// Bytes of one argument (key or value), from 64
    #[arg(long, value_name = "BYTES", default_value_t = MAX_ARGUMENT, value_parser = |text: &str| parse_bytes(text, LEAST_ARGUMENT))]
    pub max_argument: Bytes,

    /// Arguments of one command, 8 to 2147483647
    #[arg(long, value_name = "N", default_value_t = MAX_ARGUMENTS, value_parser = RangedU64ValueParser::<usize>::new().range(8..=i32::MAX as u64))]
    pub max_arguments: usize,

    /// Bytes of one command, all its arguments together, from 1kb
    #[arg(long, value_name = "BYTES", default_value_t = MAX_QUERY_BUFFER, value_parser = |text: &str| parse_bytes(text, LEAST_BUFFER))]
    pub max_query_buffer: Bytes,

    /// Bytes of one reply, from 1kb
    #[arg(long, value_name = "BYTES", default_value_t = MAX_OUTPUT_BUFFER, value_parser = |text: &str| parse_bytes(text, LEAST_BUFFER))]
    pub max_output_buffer: Bytes,

    /// Keys that are copied for one RANGE with SNAPSHOT because they change before it comes to
    /// them; with REV, all of its keys
    #[arg(long, value_name = "KEYS", default_value_t = MAX_SNAPSHOT)]
    pub max_snapshot: usize,

    /// How long a client has its thread.
    #[command(flatten)]
    pub turn: TurnLimits,
    /// On how many threads clients are.
    #[command(flatten)]
    pub gather: GatherLimits,
    /// What clients may hold together and ask for.
    #[command(flatten)]
    pub clients: ClientLimits,

    /// What clients listen to.
    #[command(flatten)]
    pub channels: ChannelLimits,
    /// What clients watch.
    #[command(flatten)]
    pub feeds: FeedLimits,

    /// What transactions hold.
    #[command(flatten)]
    pub transactions: TransactionLimits,

    /// The limits of terms.
    #[command(flatten)]
    pub terms: TermLimits,

    /// The limit of all memory.
    #[command(flatten)]
    pub memory: MemoryLimits,

    /// How many there may be of what clients make.
    #[command(flatten)]
    pub quotas: Quotas,
    /// The limits of users.
    #[command(flatten)]
    pub users: UserLimits,
    /// The limits of TLS.
    #[command(flatten)]
    pub tls: TlsLimits,
    /// What is kept of commands that take long, and who may debug.
    #[command(flatten)]
    pub watch: WatchLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_clients: MAX_CLIENTS,
            max_argument: MAX_ARGUMENT,
            max_arguments: MAX_ARGUMENTS,
            max_query_buffer: MAX_QUERY_BUFFER,
            max_output_buffer: MAX_OUTPUT_BUFFER,
            max_snapshot: MAX_SNAPSHOT,
            turn: TurnLimits::default(),
            gather: GatherLimits::default(),
            clients: ClientLimits::default(),
            channels: ChannelLimits::default(),
            transactions: TransactionLimits::default(),
            feeds: FeedLimits::default(),
            terms: TermLimits::default(),
            memory: MemoryLimits::default(),
            quotas: Quotas::default(),
            users: UserLimits::default(),
            tls: TlsLimits::default(),
            watch: WatchLimits::default(),
        }
    }
}

/// A number of bytes, read and printed as people write it: `64kb`, `512mb`, `1gb`, or plain digits.
/// Units are powers of 1024, as in Redis's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

/// The units, largest first.
const UNITS: [(&str, usize); 3] = [("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10)];

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in UNITS {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(out, "{}{name}", self.0 / unit);
            }
        }
        write!(out, "{}", self.0)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let (digits, unit) = UNITS
            .iter()
            .find_map(|(name, unit)| Some((lower.strip_suffix(name)?, *unit)))
            .unwrap_or((&lower, 1));
        digits
            .parse::<usize>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .map(Self)
            .ok_or_else(|| {
                format!("'{text}' is not a number of bytes; write 1048576, 1024kb, 1mb or 1gb")
            })
    }
}

/// A number of bytes that is at least `least`.
fn parse_bytes(text: &str, least: usize) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if (least..=MOST_BYTES.0).contains(&bytes.0) {
        Ok(bytes)
    } else {
        let least = Bytes(least);
        Err(format!("it is at least {least} and at most {MOST_BYTES}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_as_they_read() {
        for text in ["0", "1023", "1kb", "1025", "64kb", "512mb", "1gb"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        assert_eq!("2GB".parse(), Ok(Bytes(2 << 30)));
        for text in ["", "kb", "-1", "1tb", "99999999999999gb"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
