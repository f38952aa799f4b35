//! Functions that go through the whole table.

use super::error::{BadArgument, Problem, Result};
use super::gate::Deleted;
use super::note::Notes;
use super::store::{Edge, Entry, Span};
use super::{Kept, Right, Table, no_table};
use crate::term::{Term, Tuple};
use std::ops::ControlFlow;
use tremula_index::{Direction, LAST_BATCH};

impl Table {
    /// All rows, in an `ordered_set` in order: Erlang's `tab2list/1`. Consistency: see
    /// [search](super#consistency). Fails if the caller [may not read](super#errors).
    pub fn tab2list(&self) -> Result<Vec<Tuple>> {
        let mut rows = Vec::new();
        self.each_row("tab2list", Direction::Ascending, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// Folds the rows from the first to the last: Erlang's `foldl/3`. The function may use the
    /// table. Consistency: see [search](super#consistency). Fails if the caller
    /// [may not read](super#errors), or the table is deleted meanwhile.
    ///
    /// ```
    /// use tremula_table::{Options, Tables};
    ///
    /// let table = Tables::new().create("t", Options::new())?;
    /// table.insert("[{a, 1}, {b, 2}]".parse().unwrap())?;
    /// assert_eq!(table.foldl(0, |row, fields| fields + row.len())?, 4);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    pub fn foldl<A>(&self, start: A, fold: impl FnMut(Tuple, A) -> A) -> Result<A> {
        self.fold("foldl", Direction::Ascending, start, fold)
    }

    /// As [`foldl`](Self::foldl), from the last to the first: Erlang's `foldr/3`.
    pub fn foldr<A>(&self, start: A, fold: impl FnMut(Tuple, A) -> A) -> Result<A> {
        self.fold("foldr", Direction::Descending, start, fold)
    }

    fn fold<A>(
        &self,
        function: &'static str,
        direction: Direction,
        start: A,
        mut fold: impl FnMut(Tuple, A) -> A,
    ) -> Result<A> {
        let mut value = Some(start);
        self.each_row(function, direction, &mut |row| {
            value = value.take().map(|value| fold(row, value));
            ControlFlow::Continue(())
        })?;
        Ok(value.expect("the value is put back each time"))
    }

    /// Replaces all rows by those of an iterator whose items are rows or lists of rows: Erlang's
    /// `init_table/2`. Collects the rows first; the replacement is one [step](super#consistency).
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), an item is neither a row nor a list of rows, or a
    /// row is beyond the [bounds](crate::term::Bounds) of the node: then the table stays as it was.
    pub fn init_table(&self, objects: impl IntoIterator<Item = Term>) -> Result<()> {
        self.replace_all(&mut Notes::nobody(), objects)
    }

    pub(super) fn replace_all(
        &self,
        notes: &mut Notes<'_>,
        objects: impl IntoIterator<Item = Term>,
    ) -> Result<()> {
        const FUNCTION: &str = "init_table";
        self.check(Right::Write, FUNCTION)?;
        let mut rows = Vec::new();
        for item in objects {
            if let Some(row) = self.shared.checked_row(&item) {
                self.shared.check_bounds(row, FUNCTION)?;
                rows.push(row.clone());
                continue;
            }
            let wrong = || BadArgument::new(FUNCTION, 2, Problem::NotRows(item.clone()));
            let list = super::options::proper(&item).ok_or_else(wrong)?;
            rows.append(&mut self.shared.rows_in(list, FUNCTION)?);
        }
        let mut step = self.enter_step(notes, FUNCTION)?;
        let garbage = self.shared.clear(step.notes());
        self.shared.put_all(step.notes(), rows);
        drop(step);
        drop(garbage);
        Ok(())
    }

    /// Calls `visit` with each row, with no lock held, until it breaks.
    pub(super) fn each_row(
        &self,
        function: &'static str,
        direction: Direction,
        visit: &mut dyn FnMut(Tuple) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check(Right::Read, function)?;
        let layout = &self.shared.layout;
        let visited = self.each_entry(direction, &mut |key, kept| {
            if !layout.is_bag {
                return visit(layout.row(key, kept));
            }
            layout.rows(key, kept).into_iter().try_for_each(&mut *visit)
        });
        visited.map_err(|_| no_table(function))
    }

    /// Calls `visit` with each entry of the store, holding no lock, until it breaks. Does not check
    /// the caller.
    pub(super) fn each_entry(
        &self,
        direction: Direction,
        visit: &mut dyn FnMut(&Term, &Kept) -> ControlFlow<()>,
    ) -> std::result::Result<(), Deleted> {
        self.entries(Span::ALL, direction, LAST_BATCH, visit)
    }

    /// As [`each_entry`](Self::each_entry), for the entries in a span. The first batch has
    /// `first_batch` entries. A batch is read within one read of the gate.
    pub(super) fn entries(
        &self,
        span: Span<'_>,
        direction: Direction,
        first_batch: usize,
        visit: &mut dyn FnMut(&Term, &Kept) -> ControlFlow<()>,
    ) -> std::result::Result<(), Deleted> {
        let direction = self.way(direction);
        let mut batch: Vec<Entry> = Vec::new();
        let mut size = first_batch;
        let mut resume: Option<Term> = None;
        loop {
            let mut rest = span;
            match (&resume, direction) {
                (None, _) => (),
                (Some(key), Direction::Ascending) => rest.low = Edge::Beyond(key),
                (Some(key), Direction::Descending) => rest.high = Edge::Beyond(key),
            }
            self.shared.gate.read(|| {
                batch.clear();
                self.shared.store.scan(rest, direction, size, &mut batch);
            })?;
            for (key, kept) in &batch {
                if visit(key, kept).is_break() {
                    return Ok(());
                }
            }
            if batch.len() < size {
                return Ok(());
            }
            resume = batch.pop().map(|(key, _)| key);
            size = (size * 2).min(LAST_BATCH);
        }
    }
}
