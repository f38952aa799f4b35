//! How many mailboxes, messages, tables and cursors there may be.

use super::Bytes;
use clap::builder::RangedU64ValueParser;
use tremula_store::{CursorQuotas, MAX_CURSOR_BYTES, MAX_CURSORS, MailboxQuotas};

/// Mailboxes in all: enough for many actors; a mailbox without a message takes about two kilobytes.
pub const MAX_MAILBOXES: usize = MailboxQuotas::DEFAULT.mailboxes;

/// Mailboxes that one connection may have made: a sixteenth of all.
pub const MAX_CLIENT_MAILBOXES: usize = 4096;

/// Messages in one mailbox, and the capacity of one that is made without. A receiver that is behind
/// by this many will hardly catch up.
pub const MAX_MAILBOX_MESSAGES: usize = 1 << 20;

/// Bytes of the messages in one mailbox, each counted with 48 bytes for what holds it.
pub const MAX_MAILBOX_BYTES: Bytes = Bytes(MailboxQuotas::DEFAULT.bytes);

/// Tables in all. An Erlang node had 1400 for a long time; an empty table takes some kilobytes.
pub const MAX_TABLES: usize = 16_384;

/// Tables that one connection may have made: a sixteenth of all.
pub const MAX_CLIENT_TABLES: usize = 1024;

/// The most of anything, so that nonsense is noticed.
const MOST: u64 = 1 << 40;

/// How many there may be of what clients make.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Mailboxes in all
    #[arg(long, value_name = "N", default_value_t = MAX_MAILBOXES, value_parser = number())]
    pub max_mailboxes: usize,

    /// Mailboxes that one client has made
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENT_MAILBOXES, value_parser = number())]
    pub max_client_mailboxes: usize,

    /// Messages in one mailbox, and the capacity of a mailbox that is made without
    #[arg(long, value_name = "N", default_value_t = MAX_MAILBOX_MESSAGES, value_parser = number())]
    pub max_mailbox_messages: usize,

    /// Bytes of the messages in one mailbox
    #[arg(long, value_name = "BYTES", default_value_t = MAX_MAILBOX_BYTES)]
    pub max_mailbox_bytes: Bytes,

    /// Tables in all
    #[arg(long, value_name = "N", default_value_t = MAX_TABLES, value_parser = number())]
    pub max_tables: usize,

    /// Tables that one client has made
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENT_TABLES, value_parser = number())]
    pub max_client_tables: usize,

    /// Cursors of SCAN, of which the oldest is forgotten
    #[arg(long, value_name = "N", default_value_t = MAX_CURSORS, value_parser = number())]
    pub max_cursors: usize,

    /// Bytes of the keys that cursors of SCAN stand for
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(MAX_CURSOR_BYTES))]
    pub max_cursor_bytes: Bytes,
}

/// Reads a number of at least 1.
fn number() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MOST)
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            max_mailboxes: MAX_MAILBOXES,
            max_client_mailboxes: MAX_CLIENT_MAILBOXES,
            max_mailbox_messages: MAX_MAILBOX_MESSAGES,
            max_mailbox_bytes: MAX_MAILBOX_BYTES,
            max_tables: MAX_TABLES,
            max_client_tables: MAX_CLIENT_TABLES,
            max_cursors: MAX_CURSORS,
            max_cursor_bytes: Bytes(MAX_CURSOR_BYTES),
        }
    }
}

impl Quotas {
    pub(crate) const fn mailboxes(&self) -> MailboxQuotas {
        MailboxQuotas {
            mailboxes: self.max_mailboxes,
            bytes: self.max_mailbox_bytes.0,
        }
    }

    pub(crate) const fn cursors(&self) -> CursorQuotas {
        CursorQuotas {
            cursors: self.max_cursors,
            bytes: self.max_cursor_bytes.0,
        }
    }
}
