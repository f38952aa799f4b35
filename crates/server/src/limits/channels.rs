//! What clients may listen to, and what may wait for one that listens.

use super::{Bytes, Classes, number, parse_bytes};

/// Channels and patterns that one client listens to: a tenth of all.
pub const MAX_CLIENT_SUBSCRIPTIONS: usize = 100_000;

/// Channels and patterns of all clients together, one for each client that listens to it.
pub const MAX_SUBSCRIPTIONS: usize = 1_000_000;

/// Bytes of their names, each counted with 200 bytes more: a million names of some fifty bytes.
pub const MAX_SUBSCRIPTION_BYTES: Bytes = Bytes(256 << 20);

/// Bytes of the different patterns, each counted with 64 bytes more. A message is compared with all
/// of them: ten thousand of a usual length, some hundred microseconds.
pub const MAX_PATTERN_BYTES: Bytes = Bytes(1 << 20);

/// Bytes of messages that may wait for a subscriber, as in Redis.
pub const MAX_PUBSUB_BUFFER: Bytes = Bytes(32 << 20);

/// Bytes of messages that may wait for a subscriber for longer than [`SOFT_PUBSUB_SECONDS`], as in
/// Redis.
pub const SOFT_PUBSUB_BUFFER: Bytes = Bytes(8 << 20);

/// Seconds for which more than [`SOFT_PUBSUB_BUFFER`] may wait for a subscriber, as in Redis.
pub const SOFT_PUBSUB_SECONDS: u64 = 60;

/// The longest time in seconds that a flag takes: a year.
const YEAR: u64 = 365 * 24 * 60 * 60;

/// The flags of channels.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct ChannelLimits {
    /// Channels and patterns that one client listens to
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENT_SUBSCRIPTIONS, value_parser = number())]
    pub max_client_subscriptions: usize,

    /// Channels and patterns that all clients together listen to
    #[arg(long, value_name = "N", default_value_t = MAX_SUBSCRIPTIONS, value_parser = number())]
    pub max_subscriptions: usize,

    /// Bytes of the names of these, each counted with 200 more
    #[arg(long, value_name = "BYTES", default_value_t = MAX_SUBSCRIPTION_BYTES)]
    pub max_subscription_bytes: Bytes,

    /// Bytes of the different patterns, each counted with 64 more
    #[arg(long, value_name = "BYTES", default_value_t = MAX_PATTERN_BYTES)]
    pub max_pattern_bytes: Bytes,

    /// Bytes of messages that wait for a subscriber, from 1kb; 0 is any number
    #[arg(long, value_name = "BYTES", default_value_t = MAX_PUBSUB_BUFFER, value_parser = parse_buffer)]
    pub max_pubsub_buffer: Bytes,

    /// Bytes of messages that wait for a subscriber for --soft-pubsub-seconds; 0 is any number
    #[arg(long, value_name = "BYTES", default_value_t = SOFT_PUBSUB_BUFFER)]
    pub soft_pubsub_buffer: Bytes,

    /// Seconds for which more than --soft-pubsub-buffer may wait for a subscriber
    #[arg(long, value_name = "SECONDS", default_value_t = SOFT_PUBSUB_SECONDS, value_parser = clap::value_parser!(u64).range(1..=YEAR))]
    pub soft_pubsub_seconds: u64,

    /// Which changes of keys go to channels, in Redis's letters, such as KEA; none by default
    #[arg(long, value_name = "LETTERS", default_value_t = Classes::default(), hide_default_value = true)]
    pub notify_keyspace_events: Classes,
}

impl Default for ChannelLimits {
    fn default() -> Self {
        Self {
            max_client_subscriptions: MAX_CLIENT_SUBSCRIPTIONS,
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_subscription_bytes: MAX_SUBSCRIPTION_BYTES,
            max_pattern_bytes: MAX_PATTERN_BYTES,
            max_pubsub_buffer: MAX_PUBSUB_BUFFER,
            soft_pubsub_buffer: SOFT_PUBSUB_BUFFER,
            soft_pubsub_seconds: SOFT_PUBSUB_SECONDS,
            notify_keyspace_events: Classes::default(),
        }
    }
}

fn parse_buffer(text: &str) -> Result<Bytes, String> {
    if text.parse::<Bytes>()?.0 == 0 {
        return Ok(Bytes(0));
    }
    parse_bytes(text, 1 << 10)
}
