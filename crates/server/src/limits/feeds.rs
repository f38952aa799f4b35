//! What clients may watch, and what may wait for one that does.

use super::{Bytes, parse_bytes};
use clap::ArgAction;
use clap::builder::{BoolishValueParser, RangedU64ValueParser};

/// Ranges that one client watches: a tenth of all.
pub const MAX_CLIENT_WATCHES: usize = 1_000;

/// Ranges that all clients together watch, one for each client that watches it.
pub const MAX_WATCHES: usize = 10_000;

/// Bytes of their bounds, each watch counted with 500 bytes more, and its bounds three times.
pub const MAX_WATCH_BYTES: Bytes = Bytes(64 << 20);

/// Bytes of events that wait for a watcher, before it reads the log instead: some batches of the
/// log, so that one who is a little late need not.
pub const WATCH_BUFFER: Bytes = Bytes(1 << 20);

/// Bytes of changes that a server without a disk keeps for those who watch.
pub const WATCH_RING: Bytes = Bytes(0);

/// The most of anything, so that nonsense is noticed.
const MOST: u64 = 1 << 40;

/// The least buffer: an event of an ordinary key fits.
const LEAST_BUFFER: usize = 1 << 10;

/// The flags of watched ranges.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct FeedLimits {
    /// Ranges that one client watches
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENT_WATCHES, value_parser = number())]
    pub max_client_watches: usize,

    /// Ranges that all clients together watch
    #[arg(long, value_name = "N", default_value_t = MAX_WATCHES, value_parser = number())]
    pub max_watches: usize,

    /// Bytes of their bounds, counted three times, and each watch with 500 more
    #[arg(long, value_name = "BYTES", default_value_t = MAX_WATCH_BYTES)]
    pub max_watch_bytes: Bytes,

    /// Bytes of events that wait in memory for a watcher, from 1kb; with more it reads the log
    #[arg(long, value_name = "BYTES", default_value_t = WATCH_BUFFER, value_parser = |text: &str| parse_bytes(text, LEAST_BUFFER))]
    pub watch_buffer: Bytes,

    /// Bytes of the newest changes that stay in memory for those who watch, with --memory-only; 0
    /// keeps none, and nothing can be watched then
    #[arg(long, value_name = "BYTES", default_value_t = WATCH_RING)]
    pub watch_ring: Bytes,

    /// Note in the log what each key was before its change, for WATCHRANGE with PREV: yes or no
    #[arg(long, value_name = "YES|NO", default_value = "no", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub log_previous: bool,
}

impl Default for FeedLimits {
    fn default() -> Self {
        Self {
            max_client_watches: MAX_CLIENT_WATCHES,
            max_watches: MAX_WATCHES,
            max_watch_bytes: MAX_WATCH_BYTES,
            watch_buffer: WATCH_BUFFER,
            watch_ring: WATCH_RING,
            log_previous: false,
        }
    }
}

/// Reads a number of at least 1.
fn number() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MOST)
}
