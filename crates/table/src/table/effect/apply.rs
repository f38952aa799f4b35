//! What an effect does to the tables of a node that is being restored.

use super::rows::Rows;
use super::{Change, Effect};
use crate::match_spec::KeyInterval;
use crate::table::note::Notes;
use crate::table::registry::{FIRST_IMPOSSIBLE, owner_pid};
use crate::table::restore::known;
use crate::table::store::{Decision, Note};
use crate::table::{BadArgument, Heir, Kept, Kind, Options, Shared, Table, Tables};
use crate::term::{Atom, OutOfBounds, Pid, Term};
use std::ops::ControlFlow;
use thiserror::Error;
use tremula_index::Direction;
use tremula_sync::Arc;
use tremula_sync::atomic::Ordering;

/// An effect that the tables of a node cannot have.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("table {table}: {problem}")]
#[non_exhaustive]
pub struct ApplyError {
    /// The number of the table.
    pub table: u64,
    /// Why not.
    #[source]
    pub problem: ApplyProblem,
}

/// Why the tables of a node cannot have an effect.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ApplyProblem {
    /// A row is beyond the bounds of the node: these must not be less than when it was written.
    #[error("a row was kept that is now beyond the bounds: {0}")]
    OutOfBounds(#[from] OutOfBounds),
    /// The effect is not one of such a table.
    #[error("a table of type {kind} cannot have {what}")]
    Kind {
        /// The type of the table.
        kind: Kind,
        /// What it cannot have.
        what: &'static str,
    },
    /// The number of the table is too great: there would be none left for new tables.
    #[error("the number of the table is too great")]
    Number,
    /// The table cannot be made.
    #[error("{0}")]
    Options(#[from] BadArgument),
}

impl Tables {
    /// Makes an effect true of the tables of this node: for a log that is read again, and for other
    /// nodes that follow it. No other thread uses the tables meanwhile, and no heir gets a
    /// [`Transfer`](crate::Transfer).
    ///
    /// If the effects of a node's tables are applied in the order in which they were reported, the
    /// tables are as they were: with their rows, those of a bag in order, and their numbers, names,
    /// owners, heirs and accesses. Applying some again, beginning anywhere, ends in the same state,
    /// if it goes on to the end; and so does beginning with effects that
    /// [describe](Table::describe) the tables at some later moment, each key at another if need be.
    /// Effects of a table that is not there do nothing: it has been deleted since.
    ///
    /// No key expires by that, whatever its time is. Not kept are which callers have fixed a table,
    /// and what an owner had not received yet. Owners come back by
    /// [`restore_owner`](Self::restore_owner). New tables and new owners get greater numbers than
    /// all that effects have named.
    ///
    /// Several threads may apply effects at once, if those of each key, and those of whole tables
    /// with regard to all others, keep their order. O(1) tables and keys; in a bag O(rows of the
    /// key). [`Tables::noting`] has an example.
    ///
    /// # Errors
    ///
    /// The node cannot have this: then nothing is changed.
    pub fn apply(&self, effect: &Effect<'_>) -> Result<(), ApplyError> {
        let table = effect.table;
        let wrong = |problem| ApplyError { table, problem };
        let shared = self.numbered(table);
        let created = match (&effect.change, shared) {
            (change, Some(shared)) => self.apply_to(&shared, change),
            (
                Change::Created {
                    name,
                    options,
                    owner,
                    heir,
                },
                None,
            ) => self.create_again(table, (*name, owner), options, *heir),
            (_, None) => Ok(()),
        };
        created.map_err(wrong)
    }

    fn create_again(
        &self,
        number: u64,
        (name, owner): (Atom, &Pid),
        options: &Options,
        heir: Option<&Heir>,
    ) -> Result<(), ApplyProblem> {
        if number >= FIRST_IMPOSSIBLE {
            return Err(ApplyProblem::Number);
        }
        let shared = self.restored(number, owner, name, options.clone())?;
        shared.set_heir_again(heir);
        self.relist(&Arc::new(shared), None, None);
        Ok(())
    }

    fn apply_to(&self, shared: &Arc<Shared>, change: &Change<'_>) -> Result<(), ApplyProblem> {
        match change {
            Change::Rows(rows) => shared.put_again(0, rows)?,
            Change::Added { after, rows } => {
                shared.wants(shared.layout.is_bag, "rows behind others of the same key")?;
                shared.put_again(*after, rows)?;
            }
            Change::Removed(key) => shared.remove_again(key),
            Change::Expiry { key, time } => shared.set_expiry_again(key, *time),
            Change::RangeRemoved(interval) => shared.remove_range_again(interval)?,
            Change::Cleared => shared.clear_again(),
            Change::Created {
                name, owner, heir, ..
            } => {
                // As it was when it was new.
                shared.clear_again();
                shared
                    .access
                    .store(shared.options.access as u8, Ordering::Release);
                shared.set_heir_again(*heir);
                self.relist(shared, Some(*name), Some(owner));
            }
            Change::Deleted => {
                if let Some((reported, times)) = shared.mark_deleted(&mut Notes::known()) {
                    self.unlist(shared);
                    drop(times.and(shared.store.clear(reported)));
                }
            }
            Change::Renamed(name) => self.relist(shared, Some(*name), None),
            Change::Owner(owner) => self.relist(shared, None, Some(owner)),
            Change::Heir(heir) => shared.set_heir_again(*heir),
            Change::Access(access) => shared.access.store(*access as u8, Ordering::Release),
        }
        Ok(())
    }
}

impl Shared {
    fn wants(&self, holds: bool, what: &'static str) -> Result<(), ApplyProblem> {
        let kind = self.options.kind;
        holds.then_some(()).ok_or(ApplyProblem::Kind { kind, what })
    }

    fn set_heir_again(&self, heir: Option<&Heir>) {
        if let Some(heir) = heir {
            known(&heir.pid);
        }
        *self.heir.lock() = heir.cloned();
    }

    /// Puts these rows under their key, in a bag behind the first `after` that it has.
    fn put_again(&self, after: usize, rows: &Rows<'_>) -> Result<(), ApplyProblem> {
        let layout = &self.layout;
        let position = layout.key_position;
        self.wants(rows.key_position() == position, "keys at this position")?;
        let mut rows = rows.to_vec();
        self.wants(layout.is_bag || rows.len() == 1, "several rows of a key")?;
        let key = layout.key_of(&rows[0]).clone();
        let have_it = rows
            .iter()
            .all(|row| layout.key_of(row).cmp_exact(&key).is_eq());
        self.wants(have_it, "rows of several keys under one")?;
        for row in &rows {
            self.bounds.check_row(row)?;
            self.row_sizes.note(row.len());
        }
        let Ok(_guard) = self.gate.shared() else {
            return Ok(());
        };
        if !layout.is_bag {
            let kept = rows.pop().map(|row| layout.keep(row));
            let put = kept.map(|kept| {
                self.store
                    .insert(layout.new_key(&key), kept, Note::nobody())
            });
            drop(put);
            return Ok(());
        }
        let (mut before, mut now) = (0, 0);
        let decide = &mut |kept: Option<&Kept>| {
            before = kept.map_or(0, |kept| layout.count_rows(kept));
            now = before;
            // Rows before these are missing: an effect that is still to come removes them all.
            if before < after {
                return Decision::Keep;
            }
            now = after + rows.len();
            let new = std::mem::take(&mut rows);
            let kept = if before == after {
                new.into_iter().fold(kept.cloned(), |older, row| {
                    Some(layout.keep_one_more(older.as_ref(), row, true))
                })
            } else {
                let mut all = kept.map_or_else(Vec::new, |kept| layout.rows(&key, kept));
                all.truncate(after);
                all.extend(new);
                layout.keep_bag(all, true)
            };
            kept.map_or(Decision::Keep, Decision::Put)
        };
        self.store
            .update(layout.new_key(&key), decide, Note::nobody());
        self.count(now as isize - before as isize);
        Ok(())
    }

    fn remove_again(&self, key: &Term) {
        let Ok(_guard) = self.gate.shared() else {
            return;
        };
        let mut notes = Notes::known();
        let mut of_rows = notes.rows_of(self);
        if let Some(kept) = self.store.remove(key, of_rows.note()) {
            self.count(-(self.layout.count_rows(&kept) as isize));
        }
    }

    fn remove_range_again(&self, interval: &KeyInterval) -> Result<(), ApplyProblem> {
        let is_ordered = self.options.kind == Kind::OrderedSet;
        self.wants(is_ordered, "an interval of keys")?;
        if let Ok(_exclusive) = self.gate.exclusive() {
            self.remove_interval(&mut Notes::known(), interval);
        }
        Ok(())
    }

    fn clear_again(&self) {
        if let Ok(exclusive) = self.gate.exclusive() {
            let garbage = self.clear(&mut Notes::known());
            drop(exclusive);
            drop(garbage);
        }
    }
}

impl Table {
    /// Calls `visit` with effects that make the table as it is, until it breaks: for a snapshot
    /// beside a log. Does not check the caller.
    ///
    /// If the table has been deleted, there are no effects.
    ///
    /// Not as of one moment: other threads may write meanwhile. Each key is as it was at some
    /// moment of the call, and a key that comes or goes meanwhile may be there or not. If the
    /// effects of all writes that had not returned when the call began, and of all later ones, are
    /// [applied](Tables::apply) behind these, the table is as it is after those writes. (A write
    /// that has reported its effect but has not returned may not be seen yet: a log has to be read
    /// from a number below which every write has returned.)
    ///
    /// No lock is held while `visit` runs. O(rows).
    pub fn describe(&self, visit: &mut dyn FnMut(&Effect<'_>) -> ControlFlow<()>) {
        let shared = &*self.shared;
        if shared.is_deleted() {
            return;
        }
        let mut visit = |change: Change<'_>| visit(&Effect::new(shared.number, change));
        let (owner, heir) = (owner_pid(shared.owner()), shared.heir());
        let created = Change::Created {
            name: shared.name(),
            options: &shared.options,
            owner,
            heir: heir.as_ref(),
        };
        let access = Change::Access(shared.access());
        if visit(created).is_break() || visit(access).is_break() {
            return;
        }
        // A table that is deleted meanwhile has no more rows.
        let _ = self.each_entry(Direction::Ascending, &mut |key, kept| {
            visit(Change::Rows(Rows::kept(&shared.layout, key, kept)))?;
            // If the key has gone and come since, an effect that comes later says so.
            let time = shared.times.get(key);
            time.map_or(ControlFlow::Continue(()), |_| {
                visit(Change::Expiry { key, time })
            })
        });
    }
}
