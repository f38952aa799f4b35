//! Entries that have been taken out of a map all at once.

use super::table::Table;
use crate::contract::Storable;
use crate::key::KeyHead;
use crate::kit::Parameters;
use std::ptr;
use tremula_sync::Arc;
use tremula_sync::reclaim::Collector;

/// The entries of a shard that has been emptied. Each item that it gives has freed an entry, or
/// will when no thread can be looking at it any more. Dropping it frees the rest in the same way.
pub struct Taken<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    /// Unlinked, but other threads may still read it. Null when it has been retired.
    table: *mut Table<Parameters<K, V, H>>,
    /// The first place whose entry has not been retired.
    at: usize,
    collector: Arc<Collector>,
}

// SAFETY: it is the only owner of a table of keys and values, all of which are `Send`.
unsafe impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Send for Taken<K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Taken<K, V, H> {
    /// # Safety
    ///
    /// The caller owns the table, a box, and has unlinked it from a map with this collector.
    pub(super) unsafe fn new(
        table: *mut Table<Parameters<K, V, H>>,
        collector: Arc<Collector>,
    ) -> Self {
        Self {
            table,
            at: 0,
            collector,
        }
    }

    /// The next entry, in no order that matters.
    fn next_entry(&mut self) -> Option<super::Entry<Parameters<K, V, H>>> {
        // SAFETY: it is freed only after it has been set to null here.
        let table = unsafe { self.table.as_ref() }?;
        loop {
            let entry = table.places.get(self.at)?.entry();
            self.at += 1;
            if entry.hash != super::EMPTY {
                return Some(entry);
            }
        }
    }

    /// Frees all at once. Only if no other thread uses the map any more.
    pub(super) fn free_now(&mut self) {
        while let Some(entry) = self.next_entry() {
            // SAFETY: it is in no map, and no other thread can be looking at it.
            unsafe { entry.free() };
        }
        let table = std::mem::replace(&mut self.table, ptr::null_mut());
        if !table.is_null() {
            // SAFETY: `self` owns the box, and no other thread can be looking at it.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Iterator for Taken<K, V, H> {
    type Item = ();

    fn next(&mut self) -> Option<()> {
        if self.table.is_null() {
            return None;
        }
        let entry = self.next_entry();
        let guard = self.collector.pin();
        match entry {
            Some(entry) => {
                // SAFETY: it has been unlinked, and is retired once. It is freed when every thread
                // that could have come to it has unpinned.
                unsafe { guard.defer_unchecked(move || entry.free()) };
                Some(())
            }
            None => {
                let table = std::mem::replace(&mut self.table, ptr::null_mut());
                // SAFETY: as for the entries. `self` owns the box.
                unsafe { guard.defer_unchecked(move || drop(Box::from_raw(table))) };
                None
            }
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for Taken<K, V, H> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
