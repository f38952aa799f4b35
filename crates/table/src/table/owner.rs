//! Owners of tables: what processes are to Erlang's tables.

use super::effect::Sink;
use super::error::Result;
use super::note::Notes;
use super::registry::{Caller, Tables};
use super::{Options, Table};
use crate::term::{Pid, Term};
use std::collections::BTreeSet;
use std::fmt;
use tremula_mailbox::{Config, Mailbox, Sender, mailbox};
use tremula_sync::Arc;

/// The message to the new owner of a table: Erlang's `{'ETS-TRANSFER', Table, FromPid, Data}`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Transfer {
    /// The table, as a handle of the new owner.
    pub table: Table,
    /// The previous owner.
    pub from: Pid,
    /// The data that the previous owner gave with the table, or set for the heir.
    pub data: Term,
}

/// The registry's entry for an owner.
pub(super) struct Member {
    /// A single sender, so that transfers arrive in the order in which they are sent.
    pub(super) sender: Arc<Sender<Transfer>>,
    /// The numbers of the tables that it owns, and of those that it has fixed.
    pub(super) tables: BTreeSet<u64>,
    pub(super) fixed: BTreeSet<u64>,
}

impl Member {
    /// An owner of these tables, and its mailbox.
    pub(super) fn new(tables: BTreeSet<u64>) -> (Self, Mailbox<Transfer>) {
        let (sender, transfers) = mailbox(Config::default());
        let member = Self {
            sender: Arc::new(sender),
            tables,
            fixed: BTreeSet::new(),
        };
        (member, transfers)
    }
}

/// An owner of tables. When it is dropped, each of its tables goes to its heir or is deleted.
///
/// ```
/// use tremula_table::{Options, Tables, Term};
///
/// let tables = Tables::new();
/// let mut heir = tables.owner();
/// let owner = tables.owner();
/// let options = Options::new().heir(heir.pid().clone(), Term::from(7));
/// let table = owner.create("t", options)?;
/// table.insert("{1, one}".parse().unwrap())?;
/// drop(owner);
///
/// let transfer = heir.transfers().try_recv().unwrap();
/// assert_eq!(transfer.data, Term::from(7));
/// assert_eq!(transfer.table.lookup(&Term::from(1))?.len(), 1);
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
pub struct Owner {
    pub(super) tables: Tables,
    /// The number by which tables know it.
    pub(super) number: Caller,
    pub(super) pid: Pid,
    pub(super) transfers: Mailbox<Transfer>,
}

impl Owner {
    /// The identifier, for [`Options::heir`] and [`Table::give_away`].
    #[must_use]
    pub const fn pid(&self) -> &Pid {
        &self.pid
    }

    /// The node.
    #[must_use]
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// A new table that belongs to this owner: Erlang's `new/2`. Errors: see [`Tables::create`].
    pub fn create(&self, name: &str, options: Options) -> Result<Table> {
        let notes = &mut Notes::nobody();
        self.tables.create_for(notes, self.number, name, options)
    }

    /// The table of this name, as a handle of this owner.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Table> {
        self.tables.whereis_for(self.number, name)
    }

    /// The table with this name or identifier, as a handle of this owner.
    #[must_use]
    pub fn find(&self, name_or_id: &Term) -> Option<Table> {
        self.tables.find_for(self.number, name_or_id)
    }

    /// The same table, as a handle of this owner.
    #[must_use]
    pub fn adopt_handle(&self, table: &Table) -> Table {
        Table {
            caller: self.number,
            ..table.clone()
        }
    }

    /// Ends the owner, as dropping it does, and reports to `sink` what becomes of its tables: each
    /// gets another owner or is deleted, in a step of its own. Afterwards it can make no table and
    /// gets none. O(tables of the owner and their rows).
    pub fn end(&mut self, sink: &mut dyn Sink) {
        self.tables.forget_owner(&mut Notes::to(sink), self.number);
    }

    /// Drops the owner, and leaves its tables as they are: for a node that ends and is made again
    /// from a log. They belong to an owner that is not there, until it is
    /// [restored](Tables::restore_owner) or
    /// [ended](super::Noting::end_absent_owners). O(tables that it has fixed).
    ///
    /// ```
    /// use tremula_table::{Options, Tables};
    ///
    /// let tables = Tables::new();
    /// let owner = tables.owner();
    /// let pid = owner.pid().clone();
    /// owner.create("t", Options::new())?;
    /// owner.leave();
    /// assert_eq!(tables.len(), 1);
    /// drop(tables.restore_owner(&pid));
    /// assert_eq!(tables.len(), 0);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    pub fn leave(self) {
        self.tables.remove_owner(self.number);
    }

    /// The mailbox for tables that this owner is given or inherits.
    pub const fn transfers(&mut self) -> &mut Mailbox<Transfer> {
        &mut self.transfers
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.tables.forget_owner(&mut Notes::nobody(), self.number);
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Owner")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}
