//! The tables of a node: what has a name, who owns what.

use super::error::{BadArgument, Problem, Result};
use super::owner::{Member, Owner};
use super::{Options, Shared, Table, Transfer};
use crate::term::{Atom, Pid, Reference, Term};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use tremula_mailbox::{Config, mailbox};
use tremula_sync::{LockDomain, StatisticsConfig};

/// Who calls: the number of an [`Owner`], or [`NODE`].
pub(super) type Caller = u64;

/// The caller that is no owner: the registry itself, which is there as long as its tables.
pub(super) const NODE: Caller = 0;

/// The tables of one node, as an Erlang node has them: those with names are found by these, and
/// every one has an owner.
///
/// Clones are handles of the same node. Tables made here belong to the node itself and stay until
/// they are deleted; tables made by an [`Owner`] go with it. When the last handle of the node, of
/// its owners and of its tables is gone, so is the rest.
///
/// ```
/// use tremula_table::{Access, Options, Tables, Term};
///
/// let tables = Tables::new();
/// let ages = tables.create("ages", Options::new().named())?;
/// ages.insert("{ada, 36}".parse().unwrap())?;
///
/// let owner = tables.owner();
/// let ages = owner.whereis("ages").unwrap();
/// assert_eq!(ages.lookup(&Term::atom("ada").unwrap())?.len(), 1);
/// assert!(ages.delete().is_err(), "it is protected, and not this owner's");
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone)]
pub struct Tables(Arc<Registry>);

struct Registry {
    listed: Mutex<Listed>,
    /// Where readers at the gates of all tables make themselves visible.
    domain: tremula_sync::Arc<LockDomain>,
}

/// All that changes together. Its lock is taken before any lock of a table, never while one is
/// held.
#[derive(Default)]
struct Listed {
    tables: BTreeMap<u64, Arc<Shared>>,
    named: HashMap<&'static str, u64>,
    owners: HashMap<Caller, Member>,
    last_table: u64,
    last_owner: Caller,
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// A node without tables.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Registry {
            listed: Mutex::default(),
            domain: tremula_sync::Arc::new(LockDomain::new(StatisticsConfig::default())),
        }))
    }

    /// A new table that belongs to the node: Erlang's `new/2`.
    ///
    /// # Errors
    ///
    /// The name is no atom or taken, or an option has a value that it cannot have.
    pub fn create(&self, name: &str, options: Options) -> Result<Table> {
        self.create_for(NODE, name, options)
    }

    /// A new owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        let (sender, mailbox) = mailbox(Config::default());
        let mut listed = self.0.listed.lock();
        listed.last_owner += 1;
        let number = listed.last_owner;
        // The identifier has the number in its two words, as Erlang's has.
        let pid = Pid::new(Atom::NO_NODE, number as u32, (number >> 32) as u32, 0);
        let member = Member {
            pid: pid.clone(),
            sender,
        };
        listed.owners.insert(number, member);
        Owner::new(self.clone(), number, pid, mailbox)
    }

    /// The table of this name, as the node has it.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Table> {
        self.whereis_for(NODE, name)
    }

    /// The table with this name or identifier, as the node has it.
    #[must_use]
    pub fn find(&self, name_or_id: &Term) -> Option<Table> {
        self.find_for(NODE, name_or_id)
    }

    /// All tables, the oldest first, as the node has them.
    #[must_use]
    pub fn all(&self) -> Vec<Table> {
        let listed = self.0.listed.lock();
        let tables = listed.tables.values();
        tables.map(|shared| self.handle(NODE, shared)).collect()
    }

    pub(super) fn create_for(&self, caller: Caller, name: &str, options: Options) -> Result<Table> {
        let name = Atom::new(name).map_err(|_| {
            let name = Term::binary(name.as_bytes());
            BadArgument::new("new", 1, Problem::NotAName(name))
        })?;
        let shared = self.unlisted(caller, name, options)?;
        self.list(shared, "new", 1)
    }

    /// A new table that nobody can find yet.
    pub(super) fn unlisted(&self, caller: Caller, name: Atom, options: Options) -> Result<Shared> {
        let number = {
            let mut listed = self.0.listed.lock();
            listed.last_table += 1;
            listed.last_table
        };
        Shared::new(self, number, caller, name, options)
    }

    /// Makes a table known; the name is the argument of this number.
    pub(super) fn list(
        &self,
        shared: Shared,
        function: &'static str,
        argument: u8,
    ) -> Result<Table> {
        let name = shared.name();
        let mut listed = self.0.listed.lock();
        if shared.options.named {
            if listed.named.contains_key(name.text()) {
                let problem = Problem::NameTaken(name.into());
                return Err(BadArgument::new(function, argument, problem));
            }
            listed.named.insert(name.text(), shared.number);
        }
        let shared = Arc::new(shared);
        let old = listed.tables.insert(shared.number, Arc::clone(&shared));
        debug_assert!(old.is_none(), "numbers are given out once");
        Ok(self.handle(shared.owner(), &shared))
    }

    fn handle(&self, caller: Caller, shared: &Arc<Shared>) -> Table {
        Table {
            shared: Arc::clone(shared),
            tables: self.clone(),
            caller,
        }
    }

    pub(super) fn whereis_for(&self, caller: Caller, name: &str) -> Option<Table> {
        let listed = self.0.listed.lock();
        let number = listed.named.get(name)?;
        Some(self.handle(caller, listed.tables.get(number)?))
    }

    pub(super) fn find_for(&self, caller: Caller, name_or_id: &Term) -> Option<Table> {
        match name_or_id {
            Term::Atom(name) => self.whereis_for(caller, name.text()),
            Term::Reference(reference) => {
                let listed = self.0.listed.lock();
                let shared = listed.tables.get(&table_number(reference)?)?;
                Some(self.handle(caller, shared))
            }
            _ => None,
        }
    }

    /// Whether there is an owner of this identifier.
    pub(super) fn has_owner(&self, pid: &Pid) -> bool {
        self.0.listed.lock().member(pid).is_some()
    }

    /// The identifier of an owner; the node's for the node, and for one that is gone.
    pub(super) fn pid(&self, number: Caller) -> Pid {
        let listed = self.0.listed.lock();
        let known = listed.owners.get(&number);
        known.map_or_else(
            || Pid::new(Atom::NO_NODE, number as u32, (number >> 32) as u32, 0),
            |member| member.pid.clone(),
        )
    }

    pub(super) fn rename(&self, shared: &Shared, name: &str) -> Result<()> {
        let wrong = |problem| BadArgument::new("rename", 2, problem);
        let name =
            Atom::new(name).map_err(|_| wrong(Problem::NotAName(Term::binary(name.as_bytes()))))?;
        let mut listed = self.0.listed.lock();
        if shared.options.named && shared.name() != name {
            if listed.named.contains_key(name.text()) {
                return Err(wrong(Problem::NameTaken(name.into())));
            }
            listed.named.remove(shared.name().text());
            listed.named.insert(name.text(), shared.number);
        }
        shared.set_name(name);
        Ok(())
    }

    /// Forgets a table that is being deleted.
    pub(super) fn unlist(&self, shared: &Shared) {
        self.0.listed.lock().unlist(shared);
    }

    /// Hands a table of `from`'s to another owner.
    pub(super) fn give_away(&self, table: &Table, to: &Pid, data: Term) -> Result<()> {
        let wrong = |argument, problem| BadArgument::new("give_away", argument, problem);
        let listed = self.0.listed.lock();
        let (number, member) = listed
            .member(to)
            .ok_or_else(|| wrong(2, Problem::NoOwner(to.clone().into())))?;
        if table.shared.owner() != table.caller {
            return Err(wrong(1, Problem::NotOwner));
        }
        if number == table.caller {
            return Err(wrong(2, Problem::IsOwner(to.clone().into())));
        }
        let from = listed.pid_of(table.caller);
        self.hand_over(&table.shared, (number, member), from, data);
        Ok(())
    }

    fn hand_over(
        &self,
        shared: &Arc<Shared>,
        (to, member): (Caller, &Member),
        from: Pid,
        data: Term,
    ) {
        shared.set_owner(to);
        let transfer = Transfer {
            table: self.handle(to, shared),
            from,
            data,
        };
        // The mailbox is there as long as its owner is listed, so the message arrives; an owner that
        // goes before it has looked passes the table on.
        let _ = member.sender.send(transfer);
    }

    /// What happens when an owner is gone: each of its tables goes to its heir or is deleted.
    pub(super) fn forget_owner(&self, number: Caller) {
        let mut orphans = Vec::new();
        {
            let mut listed = self.0.listed.lock();
            let from = listed.pid_of(number);
            listed.owners.remove(&number);
            let tables: Vec<_> = listed.tables.values().cloned().collect();
            for shared in tables {
                shared.release_fixations(number);
                if shared.owner() != number {
                    continue;
                }
                let heir = shared.heir();
                let member = heir.as_ref().and_then(|heir| listed.member(&heir.pid));
                if let (Some(heir), Some(member)) = (&heir, member) {
                    self.hand_over(&shared, member, from.clone(), heir.data.clone());
                } else {
                    listed.unlist(&shared);
                    orphans.push(shared);
                }
            }
        }
        for shared in orphans {
            shared.delete_rows_for_ever();
        }
    }

    pub(super) fn domain(&self) -> &tremula_sync::Arc<LockDomain> {
        &self.0.domain
    }
}

impl Listed {
    fn member(&self, pid: &Pid) -> Option<(Caller, &Member)> {
        let number = u64::from(pid.serial()) << 32 | u64::from(pid.id());
        let member = self.owners.get(&number)?;
        (member.pid == *pid).then_some((number, member))
    }

    fn pid_of(&self, number: Caller) -> Pid {
        match self.owners.get(&number) {
            Some(member) => member.pid.clone(),
            None => Pid::new(Atom::NO_NODE, number as u32, (number >> 32) as u32, 0),
        }
    }

    fn unlist(&mut self, shared: &Shared) {
        self.tables.remove(&shared.number);
        let name = shared.name().text();
        if shared.options.named && self.named.get(name) == Some(&shared.number) {
            self.named.remove(name);
        }
    }
}

/// The reference that stands for a table of this number.
pub(super) fn table_reference(number: u64) -> Reference {
    let words = [number as u32, (number >> 32) as u32, 0];
    match Reference::new(Atom::NO_NODE, 0, &words) {
        Some(reference) => reference,
        None => unreachable!("a reference has room for {} words", words.len()),
    }
}

fn table_number(reference: &Reference) -> Option<u64> {
    match reference.words() {
        [low, high, 0] if reference.node() == Atom::NO_NODE && reference.creation() == 0 => {
            Some(u64::from(*high) << 32 | u64::from(*low))
        }
        _ => None,
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.all()).finish()
    }
}
