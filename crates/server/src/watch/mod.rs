//! What an operator can watch: commands that took long, events that did, and every command.
//!
//! | file | holds |
//! |---|---|
//! | `slowlog` | the last commands that took long, for `SLOWLOG` |
//! | `latency` | when something took long, for `LATENCY` |
//! | `monitor` | what every client runs, for `MONITOR` |
//! | `secret` | which arguments nobody may see |

mod latency;
mod monitor;
mod secret;
mod slowlog;

use crate::clients::Client;
use crate::commands::Command;
use crate::resp::Arguments;
use crate::server::Shared;
pub(crate) use latency::{Event, Latencies, Sample};
pub(crate) use monitor::{Monitors, Watching};
use secret::is_secret;
pub(crate) use slowlog::Slowlog;
use std::time::{Duration, SystemTime};

/// What is shown in the place of an argument that nobody may see, as Redis shows it.
const REDACTED: &[u8] = b"(redacted)";

/// The time since 1970.
pub(crate) fn now() -> Duration {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.unwrap_or_default()
}

/// Keeps that a command took long, for those who ask what did.
pub(crate) fn note_slow(
    server: &Shared,
    client: &Client,
    command: &'static Command,
    arguments: Arguments<'_>,
    took: Duration,
) {
    let is_slow = server.live.slow().is_some_and(|slow| took >= slow);
    if is_slow && !command.skips_slowlog() && server.slowlog.most() > 0 {
        server
            .slowlog
            .add(client, command.full_name, arguments, took);
    }
    if server.live.long_event().is_some_and(|long| took >= long) {
        let event = match command.flags.contains(&"fast") {
            true => Event::FastCommand,
            false => Event::Command,
        };
        server.latencies.add(event, took);
    }
}
