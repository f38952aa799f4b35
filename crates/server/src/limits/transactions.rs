//! What a transaction may hold.

use super::number;

/// Keys that one command of a transaction goes through, while others who want these keys wait:
/// some milliseconds.
pub const MAX_ATOMIC: usize = 10_000;

/// Commands of one transaction.
pub const MAX_QUEUED: usize = 1 << 20;

/// Keys that one client watches.
pub const MAX_WATCHED_KEYS: usize = 100_000;

/// The flags of transactions.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct TransactionLimits {
    /// Keys that one command of a transaction goes through while it holds them
    #[arg(long, value_name = "KEYS", default_value_t = MAX_ATOMIC, value_parser = number())]
    pub max_atomic: usize,

    /// Commands of one transaction; their bytes are limited by --max-query-buffer
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUED, value_parser = number())]
    pub max_queued: usize,

    /// Keys that one client watches
    #[arg(long, value_name = "KEYS", default_value_t = MAX_WATCHED_KEYS, value_parser = number())]
    pub max_watched_keys: usize,
}

impl Default for TransactionLimits {
    fn default() -> Self {
        Self {
            max_atomic: MAX_ATOMIC,
            max_queued: MAX_QUEUED,
            max_watched_keys: MAX_WATCHED_KEYS,
        }
    }
}
