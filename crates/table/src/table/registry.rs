//! The tables of a node: their names and owners.

use super::effect::Change;
use super::error::{BadArgument, Problem, Result};
use super::note::Notes;
use super::owner::{Member, Owner};
use super::times::Agenda;
use super::{Options, Shared, Table, Transfer, no_table};
use crate::term::{Atom, Bounds, Pid, Reference, Term};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound;
use tremula_mailbox::Sender;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, LockDomain, Mutex, MutexGuard, StatisticsConfig};

/// A caller: the number of an [`Owner`], or [`NODE`].
pub(super) type Caller = u64;

/// The caller that is not an owner: the node itself, which exists as long as its tables.
pub(super) const NODE: Caller = 0;

/// The last number of a table. Numbers are unique in the process, not only in a [`Tables`], so that
/// no node takes an identifier or a continuation of another node's table for one of its own.
pub(super) static LAST_TABLE: AtomicU64 = AtomicU64::new(0);

/// The last number of an owner; they begin behind [`NODE`].
pub(super) static LAST_OWNER: AtomicU64 = AtomicU64::new(NODE);

/// No table and no owner has this number or a greater one: counting on from the ones below never
/// reaches the end of the numbers.
pub(super) const FIRST_IMPOSSIBLE: u64 = 1 << 63;

fn next(last: &AtomicU64) -> u64 {
    // Relaxed: only the uniqueness of the numbers matters.
    last.fetch_add(1, Ordering::Relaxed) + 1
}

/// The tables of one node, as an Erlang node has them: callers find named tables by their names,
/// and every table has an owner.
///
/// Clones are handles of the same node. Tables made here belong to the node itself and stay until
/// they are deleted; tables made by an [`Owner`] go with it. The node is freed with the last handle
/// of it, of its owners and of its tables.
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
pub struct Tables(pub(super) Arc<Registry>);

pub(super) struct Registry {
    bounds: Bounds,
    /// Whether each change has to be reported.
    must_report: bool,
    pub(super) listed: Mutex<Listed>,
    /// Where threads that hold the gate of a table shared make themselves visible.
    domain: Arc<LockDomain>,
    agenda: Arc<Agenda>,
}

/// What changes together under one lock. A thread takes this lock before any lock of a table, never
/// while it holds one. It sends no transfer and drops no sender under it: both wake the receiver,
/// and the receiver's waker may use the tables.
///
/// 1. `named` has the name of a table only while `tables` has the table.
/// 2. `tables` of a member has the numbers of exactly the listed tables that it owns.
/// 3. `fixed` of a member has the numbers of exactly the listed tables that it has fixed. Callers
///    that are neither members nor the node have fixed no table.
///
/// A table is deleted when its gate is marked, and unlisted a moment later. In between no thread
/// finds it, and its name is free: see [`Listed::there`].
#[derive(Default)]
pub(super) struct Listed {
    pub(super) tables: BTreeMap<u64, Arc<Shared>>,
    pub(super) named: HashMap<&'static str, u64>,
    pub(super) owners: HashMap<Caller, Member>,
}

/// A transfer to be sent after the lock has been released.
#[must_use]
struct Delivery {
    to: Arc<Sender<Transfer>>,
    transfer: Transfer,
}

impl Delivery {
    /// Sends it. If the new owner is gone by now, `forget_owner` has handed the table on already.
    fn send(self) {
        let _ = self.to.send(self.transfer);
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// A node without tables, which keep terms of any size, as Erlang's do.
    #[must_use]
    pub fn new() -> Self {
        Self::bounded(Bounds::NONE)
    }

    /// A node without tables, which refuse rows beyond these bounds, and match specifications that
    /// make such terms. Nothing is changed by what is refused.
    #[must_use]
    pub fn bounded(bounds: Bounds) -> Self {
        Self::made(bounds, false)
    }

    /// A node whose tables are kept in a log: as [`bounded`](Self::bounded), but in a debug build a
    /// change panics if it is not reported to a [`Sink`](super::effect::Sink), be it that of an
    /// owner that is dropped before its [`end`](Owner::end). So the tests of a program find the
    /// write that it has forgotten.
    ///
    /// ```should_panic
    /// use tremula_table::{Options, Tables, term::Bounds};
    ///
    /// # if !cfg!(debug_assertions) { panic!("only a debug build checks it") }
    /// let tables = Tables::for_log(Bounds::NONE);
    /// let _ = tables.create("t", Options::new()); // not tables.noting(&mut sink).create(…)
    /// ```
    #[must_use]
    pub fn for_log(bounds: Bounds) -> Self {
        Self::made(bounds, true)
    }

    fn made(bounds: Bounds, must_report: bool) -> Self {
        Self(Arc::new(Registry {
            bounds,
            must_report,
            listed: Mutex::default(),
            domain: Arc::new(LockDomain::new(StatisticsConfig::default())),
            agenda: Arc::default(),
        }))
    }

    /// A new table that belongs to the node: Erlang's `new/2`.
    ///
    /// # Errors
    ///
    /// The name is no atom, a named table has it, or an option has an invalid value.
    pub fn create(&self, name: &str, options: Options) -> Result<Table> {
        self.create_for(&mut Notes::nobody(), NODE, name, options)
    }

    /// A new owner.
    #[must_use]
    pub fn owner(&self) -> Owner {
        let number = next(&LAST_OWNER);
        let (member, transfers) = Member::new(BTreeSet::new());
        self.0.listed.lock().owners.insert(number, member);
        Owner {
            tables: self.clone(),
            number,
            pid: owner_pid(number),
            transfers,
        }
    }

    /// The bounds of the terms that the tables keep.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    pub(super) fn must_report(&self) -> bool {
        self.0.must_report
    }

    /// The table of this name, as a handle of the node.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Table> {
        self.whereis_for(NODE, name)
    }

    /// The table with this name or identifier, as a handle of the node.
    #[must_use]
    pub fn find(&self, name_or_id: &Term) -> Option<Table> {
        self.find_for(NODE, name_or_id)
    }

    /// The number of tables. O(1).
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a count for quotas and statistics"
    )]
    pub fn len(&self) -> usize {
        self.0.listed.lock().tables.len()
    }

    /// All tables, the oldest first, as handles of the node.
    #[must_use]
    pub fn all(&self) -> Vec<Table> {
        self.made_after(None, usize::MAX)
    }

    /// Up to `most` of the tables that were made after this one, or of all tables, the oldest
    /// first, as handles of the node. O(log tables + `most`), under the lock that finding a table
    /// takes.
    ///
    /// The last table of one part leads to the next part, even if it has been deleted meanwhile. A
    /// table that exists all the while is in exactly one part; others are in at most one.
    ///
    /// ```
    /// use tremula_table::{Options, Tables};
    ///
    /// let tables = Tables::new();
    /// for name in ["one", "two", "three"] {
    ///     tables.create(name, Options::new())?;
    /// }
    /// let part = tables.made_after(None, 2);
    /// assert_eq!(part.len(), 2);
    /// let rest = tables.made_after(part.last(), 2);
    /// assert_eq!(rest.len(), 1);
    /// assert_eq!(rest[0].name().text(), "three");
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    #[must_use]
    pub fn made_after(&self, table: Option<&Table>, most: usize) -> Vec<Table> {
        let from = table.map_or(Bound::Unbounded, |table| {
            Bound::Excluded(table.shared.number)
        });
        let listed = self.0.listed.lock();
        let tables = listed.tables.range((from, Bound::Unbounded));
        let there = tables.filter(|(_, shared)| !shared.is_deleted());
        let part = there.take(most);
        part.map(|(_, shared)| self.handle(NODE, shared)).collect()
    }

    pub(super) fn create_for(
        &self,
        notes: &mut Notes<'_>,
        caller: Caller,
        name: &str,
        options: Options,
    ) -> Result<Table> {
        let name = atom(name).map_err(|problem| BadArgument::new("new", 1, problem))?;
        let shared = self.unlisted(caller, name, options)?;
        self.list(shared, "new", |shared| shared.report_created(notes))
    }

    /// A new table that no caller can find yet.
    pub(super) fn unlisted(&self, caller: Caller, name: Atom, options: Options) -> Result<Shared> {
        let number = next(&LAST_TABLE);
        Shared::new(self, number, caller, name, options)
    }

    /// Lists a table, so that callers can find it. Its name is the first argument of `function`.
    /// Calls `report` before, if it does: there the table's creation takes effect.
    pub(super) fn list(
        &self,
        shared: Shared,
        function: &'static str,
        report: impl FnOnce(&Shared),
    ) -> Result<Table> {
        let (name, owner) = (shared.name(), shared.owner());
        let mut listed = self.0.listed.lock();
        if owner != NODE && !listed.owners.contains_key(&owner) {
            let problem = Problem::NoOwner(owner_pid(owner).into());
            return Err(BadArgument::new(function, 1, problem));
        }
        if shared.options.named {
            if listed.named(name.text()).is_some() {
                let problem = Problem::NameTaken(name.into());
                return Err(BadArgument::new(function, 1, problem));
            }
            listed.named.insert(name.text(), shared.number);
        }
        report(&shared);
        let shared = Arc::new(shared);
        let old = listed.tables.insert(shared.number, Arc::clone(&shared));
        debug_assert!(old.is_none(), "numbers are given out once");
        if let Some(member) = listed.owners.get_mut(&owner) {
            member.tables.insert(shared.number);
        }
        Ok(self.handle(owner, &shared))
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
        Some(self.handle(caller, listed.named(name)?))
    }

    pub(super) fn find_for(&self, caller: Caller, name_or_id: &Term) -> Option<Table> {
        match name_or_id {
            Term::Atom(name) => self.whereis_for(caller, name.text()),
            Term::Reference(reference) => {
                let listed = self.0.listed.lock();
                let shared = listed.there(table_number(reference)?)?;
                Some(self.handle(caller, shared))
            }
            _ => None,
        }
    }

    pub(super) fn has_owner(&self, pid: &Pid) -> bool {
        self.0.listed.lock().member(pid).is_some()
    }

    pub(super) fn rename(&self, notes: &mut Notes<'_>, shared: &Shared, name: &str) -> Result<()> {
        let wrong = |problem| BadArgument::new("rename", 2, problem);
        let name = atom(name).map_err(wrong)?;
        let mut listed = self.0.listed.lock();
        // A table that is no longer listed would keep its new name for ever.
        if listed.there(shared.number).is_none() {
            return Err(no_table("rename"));
        }
        if shared.options.named && listed.named(name.text()).is_some() {
            return Err(wrong(Problem::NameTaken(name.into())));
        }
        notes.change(shared, Change::Renamed(name));
        if shared.options.named {
            listed.named.remove(shared.name().text());
            listed.named.insert(name.text(), shared.number);
        }
        *shared.name.write() = name;
        Ok(())
    }

    pub(super) fn unlist(&self, shared: &Shared) {
        self.0.listed.lock().unlist(shared);
    }

    /// Fixes a table for the handle's caller, or releases it.
    pub(super) fn fix(&self, table: &Table, fix: bool) -> Result<()> {
        const FUNCTION: &str = "safe_fixtable";
        let Table { shared, caller, .. } = table;
        let mut listed = self.0.listed.lock();
        if listed.there(shared.number).is_none() {
            return Err(no_table(FUNCTION));
        }
        if *caller == NODE {
            shared.fixations.set(NODE, fix);
            return Ok(());
        }
        // An owner that is gone would never release the table.
        let Some(member) = listed.owners.get_mut(caller) else {
            let problem = Problem::NoOwner(owner_pid(*caller).into());
            return Err(BadArgument::new(FUNCTION, 1, problem));
        };
        if shared.fixations.set(*caller, fix) {
            member.fixed.insert(shared.number);
        } else {
            member.fixed.remove(&shared.number);
        }
        Ok(())
    }

    /// Gives a table of the handle's caller to another owner.
    pub(super) fn give_away(
        &self,
        notes: &mut Notes<'_>,
        table: &Table,
        to: &Pid,
        data: Term,
    ) -> Result<()> {
        let wrong = |argument, problem| BadArgument::new("give_away", argument, problem);
        let mut listed = self.0.listed.lock();
        let number = listed
            .member(to)
            .ok_or_else(|| wrong(2, Problem::NoOwner(to.clone().into())))?;
        if listed.there(table.shared.number).is_none() {
            return Err(no_table("give_away"));
        }
        // An owner that is gone has handed its tables on, or is about to delete them.
        let is_there = table.caller == NODE || listed.owners.contains_key(&table.caller);
        if !is_there || table.shared.owner() != table.caller {
            return Err(wrong(1, Problem::NotOwner));
        }
        if number == table.caller {
            return Err(wrong(2, Problem::IsOwner(to.clone().into())));
        }
        let handle = self.handle(number, &table.shared);
        let delivery = listed.hand_over(notes, handle, owner_pid(table.caller), data);
        drop(listed);
        delivery.into_iter().for_each(Delivery::send);
        Ok(())
    }

    /// Removes an owner: each of its tables goes to its heir or is deleted. Takes time in
    /// proportion to the tables of this owner, not of all owners.
    pub(super) fn forget_owner(&self, notes: &mut Notes<'_>, number: Caller) {
        let mut listed = self.0.listed.lock();
        if let Some(member) = listed.remove_owner(number) {
            self.hand_on(notes, listed, number, &member.tables);
        }
    }

    /// Removes an owner, and leaves its tables as they are.
    pub(super) fn remove_owner(&self, number: Caller) {
        let member = self.0.listed.lock().remove_owner(number);
        drop(member);
    }

    /// Gives the tables of an owner that is gone to their heirs, or deletes them.
    pub(super) fn hand_on(
        &self,
        notes: &mut Notes<'_>,
        mut listed: MutexGuard<'_, Listed>,
        number: Caller,
        tables: &BTreeSet<u64>,
    ) {
        let (mut orphans, mut deliveries) = (Vec::new(), Vec::new());
        for table in tables {
            let Some(shared) = listed.there(*table).cloned() else {
                continue;
            };
            let heir = shared.heir();
            let heir = heir.and_then(|heir| Some((listed.member(&heir.pid)?, heir.data)));
            if let Some((to, data)) = heir {
                let handle = self.handle(to, &shared);
                deliveries.extend(listed.hand_over(notes, handle, owner_pid(number), data));
            } else {
                orphans.push(shared);
            }
        }
        drop(listed);
        // All are deleted, and all heirs informed, before time is spent on rows. Waiting for a gate
        // under the lock of the lists would hold up all other tables. A table keeps its name until
        // it is marked, so nobody reports a new table of the name before.
        let mark = |shared: Arc<Shared>| Some((shared.mark_deleted(notes)?, shared));
        let deleted: Vec<_> = orphans.into_iter().filter_map(mark).collect();
        let mut listed = self.0.listed.lock();
        for (_, shared) in &deleted {
            listed.unlist(shared);
        }
        drop(listed);
        deliveries.into_iter().for_each(Delivery::send);
        for ((reported, times), shared) in deleted {
            drop(times.and(shared.store.clear(reported)));
        }
    }

    pub(super) fn domain(&self) -> &Arc<LockDomain> {
        &self.0.domain
    }

    pub(super) fn agenda(&self) -> &Arc<Agenda> {
        &self.0.agenda
    }
}

impl Listed {
    /// The table of this number, unless it is deleted.
    pub(super) fn there(&self, number: u64) -> Option<&Arc<Shared>> {
        let shared = self.tables.get(&number)?;
        (!shared.is_deleted()).then_some(shared)
    }

    fn named(&self, name: &str) -> Option<&Arc<Shared>> {
        self.there(*self.named.get(name)?)
    }

    /// Removes an owner, who then has fixed no table.
    fn remove_owner(&mut self, number: Caller) -> Option<Member> {
        let member = self.owners.remove(&number)?;
        for shared in member.fixed.iter().filter_map(|fixed| self.there(*fixed)) {
            shared.fixations.forget(number);
        }
        Some(member)
    }

    /// The number of the owner with this identifier.
    fn member(&self, pid: &Pid) -> Option<Caller> {
        owner_number(pid).filter(|number| self.owners.contains_key(number))
    }

    /// Makes the caller of a handle the owner of its table. Returns the message to the new owner.
    fn hand_over(
        &mut self,
        notes: &mut Notes<'_>,
        handle: Table,
        from: Pid,
        data: Term,
    ) -> Option<Delivery> {
        let number = handle.shared.number;
        notes.change(&handle.shared, Change::Owner(owner_pid(handle.caller)));
        if let Some(before) = self.owners.get_mut(&handle.shared.owner()) {
            before.tables.remove(&number);
        }
        handle.shared.owner.store(handle.caller, Ordering::Release);
        let member = self.owners.get_mut(&handle.caller)?;
        member.tables.insert(number);
        let to = Arc::clone(&member.sender);
        let transfer = Transfer {
            table: handle,
            from,
            data,
        };
        Some(Delivery { to, transfer })
    }

    pub(super) fn unlist(&mut self, shared: &Shared) {
        let number = shared.number;
        self.tables.remove(&number);
        let name = shared.name().text();
        // Another table may have the name already.
        if shared.options.named && self.named.get(name) == Some(&number) {
            self.named.remove(name);
        }
        if let Some(member) = self.owners.get_mut(&shared.owner()) {
            member.tables.remove(&number);
        }
        for caller in shared.fixations.callers() {
            if let Some(member) = self.owners.get_mut(&caller) {
                member.fixed.remove(&number);
            }
        }
    }
}

fn atom(name: &str) -> std::result::Result<Atom, Problem> {
    Atom::new(name).map_err(|_| Problem::NotAName(Term::binary(name.as_bytes())))
}

/// The identifier of an owner, even of one that is gone, or of the node. As in Erlang, its two
/// words are the number.
pub(super) fn owner_pid(number: Caller) -> Pid {
    Pid::new(Atom::NO_NODE, number as u32, (number >> 32) as u32, 0)
}

/// The number of an owner, or of the node; `None` if it is no identifier of ours.
pub(super) fn owner_number(pid: &Pid) -> Option<Caller> {
    let number = u64::from(pid.serial()) << 32 | u64::from(pid.id());
    (number < FIRST_IMPOSSIBLE && owner_pid(number) == *pid).then_some(number)
}

/// The identifier of the table with this number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Access;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    /// Checks the invariants of [`Listed`].
    fn check(tables: &Tables) {
        let listed = tables.0.listed.lock();
        for (name, number) in &listed.named {
            let table = listed.tables.get(number);
            assert_eq!(table.map(|table| table.name().text()), Some(*name));
        }
        let numbers = |is_one: &dyn Fn(&Shared) -> bool| -> BTreeSet<u64> {
            let ones = listed.tables.iter().filter(|(_, table)| is_one(table));
            ones.map(|(number, _)| *number).collect()
        };
        for (owner, member) in &listed.owners {
            assert_eq!(member.tables, numbers(&|table| table.owner() == *owner));
            let fixed = numbers(&|table| table.fixations.callers().contains(owner));
            assert_eq!(member.fixed, fixed);
        }
        let is_member = |caller: &Caller| *caller == NODE || listed.owners.contains_key(caller);
        for table in listed.tables.values() {
            assert!(table.fixations.callers().iter().all(is_member));
        }
    }

    /// Fails if the lists and the tables disagree after any operation of an owner or a handle, even
    /// of one that is gone.
    #[test]
    fn the_lists_agree_with_the_tables() {
        let mut random = StdRng::seed_from_u64(7);
        let tables = Tables::new();
        let mut owners: Vec<_> = (0..4).map(|_| tables.owner()).collect();
        let mut handles: Vec<Table> = Vec::new();
        for step in 0..20_000 {
            let one = random.random_range(0..owners.len());
            let name = format!("t{}", random.random_range(0..6));
            let action = random.random_range(0..40);
            if action < 8 || handles.is_empty() {
                let options = Options::new().access(Access::Public);
                let options = match action % 3 {
                    0 => options.named(),
                    1 => options.heir(owners[(one + 1) % owners.len()].pid().clone(), Term::NIL),
                    _ => options,
                };
                handles.extend(owners[one].create(&name, options));
            } else if action == 39 {
                owners[one] = tables.owner();
            } else {
                let handle = random.random_range(0..handles.len());
                let table = owners[one].adopt_handle(&handles[handle]);
                let as_it_was = handles[handle].clone();
                let to = owners[random.random_range(0..owners.len())].pid().clone();
                match action {
                    8..=15 => drop(as_it_was.rename(&name)),
                    16..=22 => drop(table.safe_fixtable(true)),
                    23..=28 => drop(as_it_was.safe_fixtable(action % 2 == 0)),
                    29..=34 => drop(table.give_away(&to, Term::NIL)),
                    35 | 36 => drop(table.delete()),
                    _ => drop(handles.swap_remove(handle)),
                }
            }
            if step % 10 == 0 {
                check(&tables);
            }
        }
        drop(owners);
        check(&tables);
        for name in tables.all().iter().map(Table::name) {
            tables.whereis(name.text()).unwrap().delete().unwrap();
        }
        assert!(tables.0.listed.lock().named.is_empty());
    }

    /// Fails if a part ends early, repeats a table, or cannot be gone on from a deleted table.
    #[test]
    fn parts_of_the_list_make_up_the_whole() {
        let tables = Tables::new();
        let make = |name: usize| tables.create(&format!("t{name}"), Options::new());
        let all: Vec<_> = (0..25).map(|name| make(name).unwrap().id()).collect();
        let mut seen = Vec::new();
        let mut part = tables.made_after(None, 10);
        while let Some(last) = part.last() {
            assert_eq!(part.len(), 10.min(25 - seen.len()));
            seen.extend(part.iter().map(Table::id));
            last.delete().unwrap();
            part = tables.made_after(Some(last), 10);
        }
        assert_eq!(seen, all);
        assert_eq!(tables.all().len(), 22);
        assert!(tables.made_after(None, 0).is_empty());
    }

    /// Fails if a table keeps its name, or is found, after it is deleted and before it is unlisted;
    /// or if unlisting it removes its name from another table that has the name by then.
    #[test]
    fn a_deleted_table_is_not_found_before_it_is_unlisted() {
        let tables = Tables::new();
        let options = Options::new().access(Access::Public).named();
        let old = tables.create("t", options.clone()).unwrap();
        assert!(old.shared.mark_deleted(&mut Notes::nobody()).is_some());
        assert!(tables.whereis("t").is_none());
        assert!(tables.find(&old.id().into()).is_none());
        assert!(tables.all().is_empty());
        assert!(old.rename("u").is_err());
        let new = tables.create("t", options).unwrap();
        tables.unlist(&old.shared);
        assert_eq!(tables.whereis("t").unwrap().id(), new.id());
        check(&tables);
    }
}
