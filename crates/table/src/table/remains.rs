//! Rows that no thread finds any more, and whose memory is still to be freed.

use super::error::Result;
use super::note::Notes;
use super::store::{Garbage, Note, Span};
use super::{Shared, Table};
use std::fmt;
use tremula_index::Direction;
use tremula_sync::Arc;

/// How many keys of a deleted table are read at once, to be removed one by one.
const BATCH: usize = 256;

/// What a table had before it was [deleted](Table::delete_in_steps) or
/// [cleared](Table::delete_all_objects_in_steps). The rows are gone for every thread already; only
/// their memory is still to be freed. If this is dropped before, all the rest is freed at once.
///
/// ```
/// use tremula_table::{Options, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new())?;
/// table.insert_rows((0..100).map(|key| (key, "a value")))?;
/// let mut remains = table.delete_all_objects_in_steps()?;
/// assert_eq!(table.size()?, 0);
/// let mut left = 10; // elsewhere, a time
/// assert!(!remains.free(|| { left -= 1; left > 0 }), "something is left");
/// // Elsewhere, something else is done meanwhile.
/// assert!(remains.free(|| true));
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[must_use]
pub struct Remains {
    garbage: Garbage,
    /// A deleted table whose rows are still in its store.
    deleted: Option<Arc<Shared>>,
}

impl Remains {
    pub(super) const fn of_rows(garbage: Garbage) -> Self {
        let deleted = None;
        Self { garbage, deleted }
    }

    pub(super) const fn of_table(garbage: Garbage, table: Arc<Shared>) -> Self {
        let deleted = Some(table);
        Self { garbage, deleted }
    }

    /// Frees at least one row, and further ones as long as `may_go_on` returns true after each.
    /// Returns whether all are freed.
    pub fn free(&mut self, mut may_go_on: impl FnMut() -> bool) -> bool {
        if !self.garbage.free(&mut may_go_on) {
            return false;
        }
        if let Some(table) = &self.deleted {
            let mut batch = Vec::new();
            loop {
                table
                    .store
                    .scan(Span::ALL, Direction::Ascending, BATCH, &mut batch);
                if batch.is_empty() {
                    break;
                }
                for (key, _) in batch.drain(..) {
                    // The deletion of the table has been reported.
                    table.store.remove(&key, Note::nobody());
                    if !may_go_on() {
                        return false;
                    }
                }
            }
            self.deleted = None;
        }
        true
    }
}

impl Table {
    /// Deletes the table, as [`delete`](Self::delete), but leaves it to the caller to free the
    /// memory of its rows. Takes constant time in the number of rows.
    ///
    /// # Errors
    ///
    /// Those of [`delete`](Self::delete).
    pub fn delete_in_steps(&self) -> Result<Remains> {
        self.remove_table(&mut Notes::nobody())
    }

    pub(super) fn remove_table(&self, notes: &mut Notes<'_>) -> Result<Remains> {
        self.check(super::Right::Write, "delete")?;
        let Some((reported, times)) = self.shared.mark_deleted(notes) else {
            return Err(super::no_table("delete"));
        };
        self.tables.unlist(&self.shared);
        let garbage = self.shared.store.take_all(reported);
        Ok(Remains::of_table(
            times.and(garbage.unwrap_or_default()),
            Arc::clone(&self.shared),
        ))
    }

    /// Removes all rows, as [`delete_all_objects`](Self::delete_all_objects), but leaves it to the
    /// caller to free their memory, as far as the structure can leave it: the ordered engines free
    /// it themselves.
    ///
    /// # Errors
    ///
    /// Those of [`delete_all_objects`](Self::delete_all_objects).
    pub fn delete_all_objects_in_steps(&self) -> Result<Remains> {
        self.remove_all(&mut Notes::nobody())
    }

    pub(super) fn remove_all(&self, notes: &mut Notes<'_>) -> Result<Remains> {
        let _exclusive = self.enter_exclusive("delete_all_objects")?;
        Ok(Remains::of_rows(self.shared.clear(notes)))
    }
}

impl fmt::Debug for Remains {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Remains").finish_non_exhaustive()
    }
}
