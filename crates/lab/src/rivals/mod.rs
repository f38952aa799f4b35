//! The rivals, one adapter a file; those of the mailboxes are in [`channels`].
//!
//! An adapter does the work of an index of this project: an insert reports whether the key was new,
//! a lookup returns the value, a scan visits keys and values in order. It uses what the crate's own
//! documentation recommends for that, takes no shortcut that a program could not take, and says
//! what the crate cannot do.

mod arctic_map;
mod artmap;
mod bbtree;
pub(crate) mod channels;
mod concurrent_map;
mod congee;
mod crossbeam_skiplist;
mod ferntree;
mod masstree;
mod rwlock_btreemap;
mod scc_tree_index;
#[cfg(test)]
mod tests;

use crate::contestants::{Rival, Task};

/// Does the task with tables of integers.
pub(crate) fn run_integers<T: Task<u64>>(rival: Rival, task: T) -> T::Output {
    match rival {
        Rival::LockedBTreeMap => task.run(rwlock_btreemap::Table::<u64>::default),
        Rival::CrossbeamSkiplist => task.run(crossbeam_skiplist::Table::<u64>::default),
        Rival::SccTreeIndex => task.run(scc_tree_index::Table::<u64>::default),
        Rival::ConcurrentMap => task.run(concurrent_map::Table::<u64>::default),
        Rival::Congee => task.run(congee::Table::default),
        Rival::Masstree => task.run(masstree::Table::default),
        Rival::Ferntree => task.run(ferntree::Table::<u64>::default),
        Rival::Artmap => task.run(artmap::Integers::default),
        Rival::ArcticMap => task.run(arctic_map::Integers::default),
        Rival::ArcticMapHazard => task.run(arctic_map::Integers::with_hazard_keys),
        Rival::Bbtree => task.run(bbtree::Table::<u64>::default),
    }
}

/// Does the task with tables of texts.
///
/// # Panics
///
/// The rival is congee, which [refuses](Rival::refuses) texts.
pub(crate) fn run_texts<T: Task<String>>(rival: Rival, task: T) -> T::Output {
    match rival {
        Rival::LockedBTreeMap => task.run(rwlock_btreemap::Table::<String>::default),
        Rival::CrossbeamSkiplist => task.run(crossbeam_skiplist::Table::<String>::default),
        Rival::SccTreeIndex => task.run(scc_tree_index::Table::<String>::default),
        Rival::ConcurrentMap => task.run(concurrent_map::Table::<String>::default),
        Rival::Congee => unreachable!("congee refuses texts"),
        Rival::Masstree => task.run(masstree::Table::default),
        Rival::Ferntree => task.run(ferntree::Table::<String>::default),
        Rival::Artmap => task.run(artmap::Texts::default),
        Rival::ArcticMap => task.run(arctic_map::Texts::default),
        Rival::ArcticMapHazard => task.run(arctic_map::Texts::with_hazard_keys),
        Rival::Bbtree => task.run(bbtree::Table::<String>::default),
    }
}
