//! What clients may hold together, how long they may be silent, and what they may ask for.

use super::{Bytes, parse_bytes};
use crate::commands::{self, Denied};
use clap::builder::RangedU64ValueParser;

/// Places beyond `--max-clients` for clients of this machine, so that an operator gets in when
/// silent clients hold all others: a shell, a monitor, and one more of each.
pub const RESERVED_CLIENTS: usize = 4;

/// Seconds until a client that completes no command is closed; 0 is never. Redis's `timeout`.
pub const TIMEOUT: u64 = 0;

/// Seconds of silence before the system checks whether a client is still there; 0 is never. Redis's
/// `tcp-keepalive`. It ends the connections of clients that disappeared without a word, or that
/// wait for a message and closed behind more input than the system buffers.
pub const TCP_KEEPALIVE: u64 = 300;

/// Bytes of the buffers of all clients together, for commands that arrive and for replies. Twice
/// the longest command, so that a single client never reaches it.
pub const MAX_CLIENT_BUFFERS: Bytes = Bytes(2 << 30);

/// Bytes of replies that a client may leave unread for [`SOFT_OUTPUT_SECONDS`]. As many as Redis
/// lets a replica leave.
pub const SOFT_OUTPUT_BUFFER: Bytes = Bytes(64 << 20);

/// Seconds for which a client may leave more than [`SOFT_OUTPUT_BUFFER`] unread, as in Redis for a
/// replica.
pub const SOFT_OUTPUT_SECONDS: u64 = 60;

/// Bytes of the name of a client, or of its library: any host name with a process number.
pub const MAX_CLIENT_NAME: usize = 64;

/// Clients that one `CLIENT LIST ID` or `CLIENT KILL` names: their lines take about a millisecond.
pub const MAX_LISTED_CLIENTS: usize = 1000;

/// The longest time in seconds that a flag takes: a year.
const YEAR: u64 = 365 * 24 * 60 * 60;

/// The least total of buffers: less would close clients for what an ordinary pipeline takes.
const LEAST_CLIENT_BUFFERS: usize = 1 << 20;

/// The flags of clients.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Places beyond --max-clients for clients of this machine, 0 to 1000
    #[arg(long, value_name = "N", default_value_t = RESERVED_CLIENTS, value_parser = RangedU64ValueParser::<usize>::new().range(0..=1000))]
    pub reserved_clients: usize,

    /// Seconds until a client that completes no command is closed; 0 is never
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, value_parser = clap::value_parser!(u64).range(0..=YEAR))]
    pub timeout: u64,

    /// Seconds of silence before the system checks that a client is still there, 0 to 32767; 0 is
    /// never
    #[arg(long, value_name = "SECONDS", default_value_t = TCP_KEEPALIVE, value_parser = clap::value_parser!(u64).range(0..=32_767))]
    pub tcp_keepalive: u64,

    /// Bytes of the buffers of all clients together, from 1mb; 0 is without limit
    #[arg(long, value_name = "BYTES", default_value_t = MAX_CLIENT_BUFFERS, value_parser = parse_client_buffers)]
    pub max_client_buffers: Bytes,

    /// Bytes of replies that a client may leave unread for --soft-output-seconds; 0 is any number
    #[arg(long, value_name = "BYTES", default_value_t = SOFT_OUTPUT_BUFFER)]
    pub soft_output_buffer: Bytes,

    /// Seconds for which a client may leave more than --soft-output-buffer unread
    #[arg(long, value_name = "SECONDS", default_value_t = SOFT_OUTPUT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=YEAR))]
    pub soft_output_seconds: u64,

    /// Bytes of a client's name, 1 to 1024
    #[arg(long, value_name = "BYTES", default_value_t = MAX_CLIENT_NAME, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub max_client_name: usize,

    /// Clients that one CLIENT LIST ID names, 1 to 100000
    #[arg(long, value_name = "N", default_value_t = MAX_LISTED_CLIENTS, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub max_listed_clients: usize,

    /// Groups of commands that are refused, with commas: ets, mailbox
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = ["ets", "mailbox"])]
    pub disable: Vec<String>,

    /// Commands and subcommands that are refused, with commas: keys,client|kill
    #[arg(long, value_name = "COMMANDS", value_delimiter = ',', value_parser = parse_command)]
    pub deny_commands: Vec<String>,
}

impl ClientLimits {
    /// The commands that the flags refuse.
    pub(crate) fn denied(&self) -> Denied {
        Denied::new(&self.disable, &self.deny_commands)
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            reserved_clients: RESERVED_CLIENTS,
            timeout: TIMEOUT,
            tcp_keepalive: TCP_KEEPALIVE,
            max_client_buffers: MAX_CLIENT_BUFFERS,
            soft_output_buffer: SOFT_OUTPUT_BUFFER,
            soft_output_seconds: SOFT_OUTPUT_SECONDS,
            max_client_name: MAX_CLIENT_NAME,
            max_listed_clients: MAX_LISTED_CLIENTS,
            disable: Vec::new(),
            deny_commands: Vec::new(),
        }
    }
}

fn parse_client_buffers(text: &str) -> Result<Bytes, String> {
    if text.parse::<Bytes>()?.0 == 0 {
        return Ok(Bytes(0));
    }
    parse_bytes(text, LEAST_CLIENT_BUFFERS)
}

fn parse_command(text: &str) -> Result<String, String> {
    commands::full_name(text)
        .map(str::to_owned)
        .ok_or_else(|| format!("there is no command '{text}'; write keys or client|kill"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parsed(arguments: &[&str]) -> Result<ClientLimits, String> {
        let command = ClientLimits::augment_args(clap::Command::new("serve"));
        let matches = command.try_get_matches_from([&["serve"], arguments].concat());
        let matches = matches.map_err(|error| error.to_string())?;
        ClientLimits::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_has_the_default_and_a_range() {
        assert_eq!(parsed(&[]), Ok(ClientLimits::default()));
        for (flag, wrong, range) in [
            ("--reserved-clients", "1001", "0..=1000"),
            ("--timeout", "-1", "-1"),
            ("--timeout", "31536001", "0..=31536000"),
            ("--tcp-keepalive", "32768", "0..=32767"),
            ("--max-client-buffers", "1kb", "at least 1mb"),
            ("--soft-output-seconds", "0", "1..=31536000"),
            ("--max-client-name", "0", "1..=1024"),
            ("--max-listed-clients", "0", "1..=100000"),
            ("--disable", "strings", "ets, mailbox"),
            ("--deny-commands", "keys,nothing", "no command 'nothing'"),
            ("--deny-commands", "client|nothing", "client|nothing"),
        ] {
            let error = parsed(&[flag, wrong]).unwrap_err();
            assert!(error.contains(range), "{flag} {wrong}: {error}");
        }
    }
}
