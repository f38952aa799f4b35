//! Writes that report their effects to a sink.

use super::effect::Sink;
use super::error::Result;
use super::file::FileError;
use super::note::Notes;
use super::object::{Present, row_of};
use super::registry::NODE;
use super::{Access, Heir, Options, Owner, Remains, Table, Tables};
use crate::match_spec::MatchSpec;
use crate::term::{IntoTerm, Pid, Term, Tuple};
use std::path::Path;

/// A [`Table`], [`Tables`] or an [`Owner`] whose writes report their [effects](super::effect) to a
/// [`Sink`]: [`Table::noting`], [`Tables::noting`], [`Owner::noting`].
///
/// It has the methods that write. Each does what the method of the same name does without a sink,
/// with the same consistency, results and errors, and reports each change under the lock under
/// which it takes effect. That costs a call of the sink for each change; what the sink makes of it
/// is under that lock, too. A write that fails has reported what it has changed, mostly nothing.
#[must_use]
pub struct Noting<'a, T> {
    of: &'a T,
    notes: Notes<'a>,
}

impl<'a, T> Noting<'a, T> {
    pub(super) const fn parts(&mut self) -> (&'a T, &mut Notes<'a>) {
        (self.of, &mut self.notes)
    }
}

impl Table {
    /// The table with writes that report to `sink` what they change.
    ///
    /// ```
    /// use tremula_table::table::effect::{Change, Effect, Sink};
    /// use tremula_table::{Options, Tables, Term};
    ///
    /// /// Effects as text, with the numbers that they get.
    /// #[derive(Default)]
    /// struct Log(Vec<String>);
    ///
    /// impl Sink for Log {
    ///     fn effect(&mut self, effect: &Effect<'_>) {
    ///         let number = self.0.len();
    ///         self.0.push(match &effect.change {
    ///             Change::Rows(rows) => format!("{number}: {rows:?}"),
    ///             Change::Removed(key) => format!("{number}: no {key}"),
    ///             other => format!("{number}: {other:?}"),
    ///         });
    ///     }
    ///
    ///     fn begin(&mut self) {}
    ///     fn end(&mut self) {}
    ///     fn abandon(&mut self) {}
    /// }
    ///
    /// let table = Tables::new().create("hits", Options::new())?;
    /// let mut log = Log::default();
    /// let mut noting = table.noting(&mut log);
    /// noting.insert_row((1, 41))?;
    /// noting.update_counter(&1.into(), &1.into())?;
    /// noting.delete_key(&1.into())?;
    /// noting.delete_key(&1.into())?;
    /// assert_eq!(log.0, ["0: [{1,41}]", "1: [{1,42}]", "2: no 1"]);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    pub fn noting<'a>(&'a self, sink: &'a mut dyn Sink) -> Noting<'a, Self> {
        let notes = Notes::to(sink);
        Noting { of: self, notes }
    }
}

impl Tables {
    /// The node, with tables that are made in a way that `sink` knows of.
    ///
    /// ```
    /// use tremula_table::table::effect::Recording;
    /// use tremula_table::{Options, Tables};
    ///
    /// let tables = Tables::new();
    /// let mut log = Recording::new();
    /// let ages = tables.noting(&mut log).create("ages", Options::new())?;
    /// ages.noting(&mut log).insert_row(("ada", 36))?;
    ///
    /// let again = Tables::new();
    /// for effect in log.effects() {
    ///     again.apply(&effect.borrow())?;
    /// }
    /// let ages = again.find(&ages.id().into()).unwrap();
    /// assert_eq!(ages.tab2list()?, [("ada", 36)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn noting<'a>(&'a self, sink: &'a mut dyn Sink) -> Noting<'a, Self> {
        let notes = Notes::to(sink);
        Noting { of: self, notes }
    }
}

impl Owner {
    /// The owner, with tables that are made in a way that `sink` knows of. The end of the owner
    /// does not: see [`end`](Self::end).
    pub fn noting<'a>(&'a self, sink: &'a mut dyn Sink) -> Noting<'a, Self> {
        let notes = Notes::to(sink);
        Noting { of: self, notes }
    }
}

impl Noting<'_, Tables> {
    /// See [`Tables::create`].
    pub fn create(&mut self, name: &str, options: Options) -> Result<Table> {
        self.of.create_for(&mut self.notes, NODE, name, options)
    }

    /// After a restart, when all effects have been [applied](Tables::apply) and the owners that
    /// outlive a restart are [restored](Tables::restore_owner): gives each table whose owner is not
    /// there to its heir, or deletes it, as the owner's end does. Returns how many there were.
    pub fn end_absent_owners(&mut self) -> usize {
        self.of.end_absent_owners(&mut self.notes)
    }

    /// See [`Tables::file2tab`]. The table and all its rows are one step, which takes memory in
    /// proportion to them if the sink keeps its effects.
    pub fn file2tab(&mut self, path: impl AsRef<Path>) -> std::result::Result<Table, FileError> {
        let (notes, path) = (&mut self.notes, path.as_ref());
        self.of.file2tab_for(notes, |_| NODE, path)
    }
}

impl Noting<'_, Owner> {
    /// See [`Owner::create`].
    pub fn create(&mut self, name: &str, options: Options) -> Result<Table> {
        let (tables, number) = (&self.of.tables, self.of.number);
        tables.create_for(&mut self.notes, number, name, options)
    }

    /// See [`Owner::file2tab`]. The table and all its rows are one step.
    pub fn file2tab(&mut self, path: impl AsRef<Path>) -> std::result::Result<Table, FileError> {
        let (tables, number) = (&self.of.tables, self.of.number);
        tables.file2tab_for(&mut self.notes, |_| number, path.as_ref())
    }

    /// See [`Owner::file2tab_unless_public`]. The table and all its rows are one step.
    pub fn file2tab_unless_public(
        &mut self,
        path: impl AsRef<Path>,
    ) -> std::result::Result<Table, FileError> {
        self.of.file2tab_by_access(&mut self.notes, path.as_ref())
    }
}

impl Noting<'_, Table> {
    fn put(&mut self, rows: &Term, present: Present) -> Result<bool> {
        let function = match present {
            Present::Goes => "insert",
            Present::Stays => "insert_new",
        };
        self.of.put_rows(&mut self.notes, rows, present, function)
    }

    /// See [`Table::insert`].
    pub fn insert(&mut self, objects: Term) -> Result<()> {
        self.put(&objects, Present::Goes).map(drop)
    }

    /// See [`Table::insert_new`].
    pub fn insert_new(&mut self, objects: Term) -> Result<bool> {
        self.put(&objects, Present::Stays)
    }

    /// See [`Table::insert_row`].
    pub fn insert_row(&mut self, row: impl IntoTerm) -> Result<()> {
        let row = row_of(row, "insert")?;
        self.put(&row, Present::Goes).map(drop)
    }

    /// See [`Table::insert_new_row`].
    pub fn insert_new_row(&mut self, row: impl IntoTerm) -> Result<bool> {
        let row = row_of(row, "insert_new")?;
        self.put(&row, Present::Stays)
    }

    /// See [`Table::insert_rows`].
    pub fn insert_rows<R: IntoTerm>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<()> {
        let rows = rows.into_iter().map(|row| row_of(row, "insert"));
        let rows = Term::list(rows.collect::<Result<Vec<_>>>()?);
        self.put(&rows, Present::Goes).map(drop)
    }

    /// See [`Table::take`].
    pub fn take(&mut self, key: &Term) -> Result<Vec<Tuple>> {
        self.of.take_rows(&mut self.notes, key)
    }

    /// See [`Table::delete_key`].
    pub fn delete_key(&mut self, key: &Term) -> Result<()> {
        self.of.remove_rows(&mut self.notes, key)
    }

    /// See [`Table::delete_object`].
    pub fn delete_object(&mut self, object: &Term) -> Result<()> {
        self.of.remove_object(&mut self.notes, object)
    }

    /// See [`Table::delete_all_objects`].
    pub fn delete_all_objects(&mut self) -> Result<()> {
        self.delete_all_objects_in_steps()?.free(|| true);
        Ok(())
    }

    /// See [`Table::delete_all_objects_in_steps`].
    pub fn delete_all_objects_in_steps(&mut self) -> Result<Remains> {
        self.of.remove_all(&mut self.notes)
    }

    /// See [`Table::update_counter`].
    pub fn update_counter(&mut self, key: &Term, update: &Term) -> Result<Term> {
        self.of.count_up(&mut self.notes, key, update, None)
    }

    /// See [`Table::update_counter_or`].
    pub fn update_counter_or(&mut self, key: &Term, update: &Term, default: Term) -> Result<Term> {
        let default = Some(default);
        self.of.count_up(&mut self.notes, key, update, default)
    }

    /// See [`Table::update_element`].
    pub fn update_element(&mut self, key: &Term, update: &Term) -> Result<bool> {
        self.of.change_elements(&mut self.notes, key, update, None)
    }

    /// See [`Table::update_element_or`].
    pub fn update_element_or(&mut self, key: &Term, update: &Term, default: Term) -> Result<bool> {
        let (notes, default) = (&mut self.notes, Some(default));
        self.of.change_elements(notes, key, update, default)
    }

    /// See [`Table::select_delete`]. A search in steps reports by
    /// [`Traversal::step_noting`](super::Traversal::step_noting).
    pub fn select_delete(&mut self, spec: &MatchSpec) -> Result<usize> {
        self.of.delete_found(&mut self.notes, spec)
    }

    /// See [`Table::match_delete`].
    pub fn match_delete(&mut self, pattern: &Term) -> Result<()> {
        self.of.delete_matching(&mut self.notes, pattern)
    }

    /// See [`Table::select_replace`].
    pub fn select_replace(&mut self, spec: &MatchSpec) -> Result<usize> {
        self.of.replace_found(&mut self.notes, spec)
    }

    /// See [`Table::init_table`].
    pub fn init_table(&mut self, objects: impl IntoIterator<Item = Term>) -> Result<()> {
        self.of.replace_all(&mut self.notes, objects)
    }

    /// See [`Table::rename`].
    pub fn rename(&mut self, name: &str) -> Result<()> {
        self.of.change_name(&mut self.notes, name)
    }

    /// See [`Table::delete`].
    pub fn delete(&mut self) -> Result<()> {
        self.delete_in_steps()?.free(|| true);
        Ok(())
    }

    /// See [`Table::delete_in_steps`].
    pub fn delete_in_steps(&mut self) -> Result<Remains> {
        self.of.remove_table(&mut self.notes)
    }

    /// See [`Table::give_away`].
    pub fn give_away(&mut self, to: &Pid, data: Term) -> Result<()> {
        self.of.change_owner(&mut self.notes, to, data)
    }

    /// See [`Table::set_heir`].
    pub fn set_heir(&mut self, heir: Option<Heir>) -> Result<()> {
        self.of.change_properties(&mut self.notes, Some(heir), None)
    }

    /// See [`Table::set_access`].
    pub fn set_access(&mut self, access: Access) -> Result<()> {
        let (notes, access) = (&mut self.notes, Some(access));
        self.of.change_properties(notes, None, access)
    }

    /// See [`Table::setopts`].
    pub fn setopts(&mut self, options: &Term) -> Result<()> {
        self.of.change_options(&mut self.notes, options)
    }
}
