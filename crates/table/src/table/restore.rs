//! The tables and owners of a node after a restart.

use super::error::Result;
use super::note::Notes;
use super::owner::{Member, Owner};
use super::registry::{
    Caller, FIRST_IMPOSSIBLE, LAST_OWNER, LAST_TABLE, NODE, Tables, owner_number, owner_pid,
};
use super::{Options, Shared};
use crate::term::{Atom, Pid};
use std::collections::{BTreeMap, BTreeSet};
use tremula_sync::Arc;
use tremula_sync::atomic::Ordering;

impl Tables {
    /// The table of this number, unless it is deleted.
    pub(super) fn numbered(&self, number: u64) -> Option<Arc<Shared>> {
        self.0.listed.lock().there(number).cloned()
    }

    /// A table with a number that it had before, whose owner and heir may not be there. New tables
    /// get greater numbers, new owners too. It is not listed yet.
    pub(super) fn restored(
        &self,
        number: u64,
        owner: &Pid,
        name: Atom,
        options: Options,
    ) -> Result<Shared> {
        // Relaxed: only the uniqueness of the numbers matters.
        LAST_TABLE.fetch_max(number, Ordering::Relaxed);
        Shared::new(self, number, known(owner), name, options)
    }

    /// Lists a restored table, or one whose name or owner has been restored. If another table has
    /// its name, that table loses it: the effect that will say so is still to come.
    pub(super) fn relist(&self, shared: &Arc<Shared>, name: Option<Atom>, owner: Option<&Pid>) {
        let mut listed = self.0.listed.lock();
        listed.unlist(shared);
        if let Some(name) = name {
            *shared.name.write() = name;
        }
        if let Some(owner) = owner {
            shared.owner.store(known(owner), Ordering::Release);
        }
        if shared.options.named {
            listed.named.insert(shared.name().text(), shared.number);
        }
        listed.tables.insert(shared.number, Arc::clone(shared));
        if let Some(member) = listed.owners.get_mut(&shared.owner()) {
            member.tables.insert(shared.number);
        }
    }

    /// The owner with an identifier that it had before: after a restart, when the effects of the
    /// tables have been [applied](Self::apply), it owns the tables that it owned. `None` if it is
    /// there already, or the identifier is not one of this node's owners.
    #[must_use]
    pub fn restore_owner(&self, pid: &Pid) -> Option<Owner> {
        let number = owner_number(pid).filter(|number| *number != NODE)?;
        known(pid);
        let mut listed = self.0.listed.lock();
        if listed.owners.contains_key(&number) {
            return None;
        }
        let owned = listed.tables.values();
        let owned = owned.filter(|table| !table.is_deleted() && table.owner() == number);
        let tables = owned.map(|table| table.number).collect();
        let (member, transfers) = Member::new(tables);
        listed.owners.insert(number, member);
        drop(listed);
        Some(Owner {
            tables: self.clone(),
            number,
            pid: owner_pid(number),
            transfers,
        })
    }

    /// Ends the owners that own tables but are not there. Returns how many tables went to their
    /// heirs or were deleted.
    pub(super) fn end_absent_owners(&self, notes: &mut Notes<'_>) -> usize {
        let mut absent: BTreeMap<Caller, BTreeSet<u64>> = BTreeMap::new();
        let listed = self.0.listed.lock();
        for (number, table) in &listed.tables {
            let owner = table.owner();
            if owner != NODE && !listed.owners.contains_key(&owner) {
                absent.entry(owner).or_default().insert(*number);
            }
        }
        drop(listed);
        let count = absent.values().map(BTreeSet::len).sum();
        for (owner, tables) in absent {
            self.hand_on(notes, self.0.listed.lock(), owner, &tables);
        }
        count
    }
}

/// The number of an owner that there was, from which on new owners get greater ones. An identifier
/// that is none of ours stands for an owner that is never there.
pub(super) fn known(owner: &Pid) -> Caller {
    let Some(number) = owner_number(owner) else {
        return FIRST_IMPOSSIBLE;
    };
    // Relaxed: only the uniqueness of the numbers matters.
    LAST_OWNER.fetch_max(number, Ordering::Relaxed);
    number
}
