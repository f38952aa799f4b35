//! A connection as an owner of tables.

use crate::effects::{Effects, Journal};
use crate::mailboxes::Mailboxes;
use crate::tables::{Table, Tables};
use std::path::Path;
use tremula_sync::system::Arc;
use tremula_table::term::{Pid, Term};
use tremula_table::{BadArgument, FileError, Options, Owner};

/// A connection as an owner of tables. When it is dropped, each of its tables goes to the mailbox
/// that is its heir, which gets a message, or is deleted. The log has this, too, unless it takes
/// nothing more: then the next start ends the owner.
pub struct TableOwner {
    owner: Owner,
    mailboxes: Arc<Mailboxes>,
    journal: Option<Arc<Journal>>,
}

impl TableOwner {
    pub(crate) fn new(
        tables: &Tables,
        mailboxes: &Arc<Mailboxes>,
        journal: Option<&Arc<Journal>>,
    ) -> Self {
        Self {
            owner: tables.0.owner(),
            mailboxes: Arc::clone(mailboxes),
            journal: journal.cloned(),
        }
    }

    /// The identifier, by which tables know their owner.
    #[must_use]
    pub const fn pid(&self) -> &Pid {
        self.owner.pid()
    }

    /// The table with this name or identifier, as a handle of this owner.
    #[must_use]
    pub fn find(&self, name_or_id: &Term) -> Option<Table> {
        self.owner.find(name_or_id).map(Table)
    }

    /// The table of this name, as a handle of this owner.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Table> {
        self.owner.whereis(name).map(Table)
    }

    /// A new table that belongs to this owner. Errors: see [`Owner::create`].
    pub fn create(
        &self,
        effects: &mut Effects<'_>,
        name: &str,
        options: Options,
    ) -> Result<Table, BadArgument> {
        self.owner.noting(effects).create(name, options).map(Table)
    }

    /// The table in a file, which belongs to the store if it is public and otherwise to this owner.
    /// The table and all its rows are one atomic step, which takes memory in proportion to them if
    /// there is a log. Errors: see [`Owner::file2tab_unless_public`].
    pub fn file2tab_unless_public(
        &self,
        effects: &mut Effects<'_>,
        path: impl AsRef<Path>,
    ) -> Result<Table, FileError> {
        let mut noting = self.owner.noting(effects);
        noting.file2tab_unless_public(path).map(Table)
    }
}

impl Drop for TableOwner {
    fn drop(&mut self) {
        let mut effects = Effects::new(self.journal.as_deref());
        self.owner.end(&mut effects);
        self.mailboxes.forward_transfers(&mut effects);
        effects.submit();
    }
}
