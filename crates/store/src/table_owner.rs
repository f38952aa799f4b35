//! A connection as an owner of tables.

use crate::mailboxes::Mailboxes;
use tremula_sync::system::Arc;
use tremula_table::{Owner, Tables};

/// A connection as an owner of tables. When it is dropped, each of its tables goes to the mailbox
/// that is its heir, which gets a message, or is deleted.
pub struct TableOwner {
    // Dropped in this order.
    /// The owner, which the operations on tables take.
    pub owner: Owner,
    _forward: Forward,
}

/// Sends the heirs their messages when it is dropped.
struct Forward(Arc<Mailboxes>);

impl TableOwner {
    pub(crate) fn new(tables: &Tables, mailboxes: &Arc<Mailboxes>) -> Self {
        Self {
            owner: tables.owner(),
            _forward: Forward(Arc::clone(mailboxes)),
        }
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.0.forward_transfers();
    }
}
