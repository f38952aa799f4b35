//! A connection as an owner of tables.

use crate::mailboxes::Mailboxes;
use crate::server::Shared;
use std::sync::Arc;
use tremula_table::Owner;

/// A connection as an owner of tables. When it is dropped, each of its tables goes to the mailbox
/// that is its heir, which is told, or is deleted.
pub(crate) struct TableOwner {
    // Dropped in this order.
    pub(crate) owner: Owner,
    _forward: Forward,
}

/// Tells the heirs when it is dropped.
struct Forward(Arc<Mailboxes>);

impl TableOwner {
    pub(crate) fn new(server: &Shared) -> Self {
        Self {
            owner: server.tables.owner(),
            _forward: Forward(Arc::clone(&server.mailboxes)),
        }
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.0.forward_transfers();
    }
}
