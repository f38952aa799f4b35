//! Operations on rows by their keys: insert, look up, delete, take.

use super::effect::Change;
use super::error::{BadArgument, Problem, Result};
use super::gate::Deleted;
use super::note::{Notes, RowNotes};
use super::options::{Heir, proper};
use super::store::{Decision, Garbage, Span, let_go};
use super::{Kept, Kind, Right, Shared, Table, no_table};
use crate::match_spec::KeyInterval;
use crate::term::{Exact, IntoTerm, List, OutOfBounds, Term, Tuple};
use std::collections::{HashMap, HashSet};

/// How an insertion treats a key that exists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Present {
    /// The row replaces the other, or in a bag joins it.
    Goes,
    /// Nothing is inserted.
    Stays,
}

impl Table {
    /// Inserts a row, or a list of rows in one [step](super#consistency): Erlang's `insert/2`. A
    /// row replaces one with the same key; in a bag it joins it. Later rows of a list replace
    /// earlier ones.
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), the term is neither a row nor a proper list of
    /// rows, or a row is beyond the [bounds](crate::term::Bounds) of the node: then nothing is
    /// inserted.
    pub fn insert(&self, objects: Term) -> Result<()> {
        self.put_rows(&mut Notes::nobody(), &objects, Present::Goes, "insert")
            .map(drop)
    }

    /// Inserts a row, or a list of rows, if no row has any of their keys: Erlang's `insert_new/2`.
    /// Returns whether it did. One [step](super#consistency).
    ///
    /// # Errors
    ///
    /// See [`insert`](Self::insert).
    pub fn insert_new(&self, objects: Term) -> Result<bool> {
        self.put_rows(&mut Notes::nobody(), &objects, Present::Stays, "insert_new")
    }

    /// Inserts a row of Rust values, such as a tuple: [`insert`](Self::insert) of the term that the
    /// row [becomes](IntoTerm). One [step](super#consistency). Copies text and bytes once.
    ///
    /// ```
    /// use tremula_table::{Kind, Options, Tables};
    ///
    /// let table = Tables::new().create("scores", Options::new().kind(Kind::OrderedSet))?;
    /// table.insert_row((1, "ada", 3.5))?;
    /// assert_eq!(table.get(&1.into())?.unwrap(), (1, "ada", 3.5));
    /// let error = table.insert_row((2, f64::NAN)).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "insert, argument 2: NaN is no float that a term can hold: it is not finite"
    /// );
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), the row becomes no tuple, has no key or is beyond
    /// the [bounds](crate::term::Bounds) of the node, or a float in it is not finite: then nothing
    /// is inserted.
    pub fn insert_row(&self, row: impl IntoTerm) -> Result<()> {
        let row = row_of(row, "insert")?;
        self.put_rows(&mut Notes::nobody(), &row, Present::Goes, "insert")
            .map(drop)
    }

    /// Inserts a row of Rust values if no row has its key: [`insert_new`](Self::insert_new) of the
    /// term that the row [becomes](IntoTerm). Returns whether it did. One
    /// [step](super#consistency).
    ///
    /// ```
    /// use tremula_table::{Options, Tables};
    ///
    /// let table = Tables::new().create("ages", Options::new())?;
    /// assert!(table.insert_new_row(("ada", 36))?);
    /// assert!(!table.insert_new_row(("ada", 37))?);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`insert_row`](Self::insert_row).
    pub fn insert_new_row(&self, row: impl IntoTerm) -> Result<bool> {
        let row = row_of(row, "insert_new")?;
        self.put_rows(&mut Notes::nobody(), &row, Present::Stays, "insert_new")
    }

    /// Inserts rows of Rust values in one [step](super#consistency): [`insert`](Self::insert) of
    /// the list of the terms that they [become](IntoTerm). Collects the rows first.
    ///
    /// ```
    /// use tremula_table::{Kind, Options, Tables};
    ///
    /// let table = Tables::new().create("ages", Options::new().kind(Kind::OrderedSet))?;
    /// table.insert_rows([("grace", 85), ("ada", 36)])?;
    /// assert_eq!(table.tab2list()?, [("ada", 36), ("grace", 85)]);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`insert_row`](Self::insert_row), for any of the rows: then none is inserted.
    pub fn insert_rows<R: IntoTerm>(&self, rows: impl IntoIterator<Item = R>) -> Result<()> {
        let rows = rows.into_iter().map(|row| row_of(row, "insert"));
        let rows = Term::list(rows.collect::<Result<Vec<_>>>()?);
        self.put_rows(&mut Notes::nobody(), &rows, Present::Goes, "insert")
            .map(drop)
    }

    pub(super) fn put_rows(
        &self,
        notes: &mut Notes<'_>,
        objects: &Term,
        present: Present,
        function: &'static str,
    ) -> Result<bool> {
        let shared = &*self.shared;
        let put_one = |notes: &mut Notes<'_>, row: Option<Tuple>| {
            let _guard = self.enter(function)?;
            Ok(row.is_none_or(|row| shared.put(notes, row, present)))
        };
        if let Some(row) = shared.checked_row(objects) {
            shared.check_bounds(row, function)?;
            return put_one(notes, Some(row.clone()));
        }
        let Some(list) = proper(objects) else {
            let (row, keypos) = (objects.clone(), shared.options.keypos);
            let problem = match objects {
                Term::Tuple(_) => Problem::NoKey { row, keypos },
                _ => Problem::NotRows(row),
            };
            return Err(BadArgument::new(function, 2, problem));
        };
        let mut rows = shared.rows_in(list, function)?;
        if rows.len() < 2 {
            return put_one(notes, rows.pop());
        }
        let mut step = self.enter_step(notes, function)?;
        let has_key = |row| shared.store.has(shared.layout.key_of(row));
        if present == Present::Stays && rows.iter().any(has_key) {
            return Ok(false);
        }
        shared.put_all(step.notes(), rows);
        Ok(true)
    }

    /// Whether more than `most` rows have this key. Takes time in proportion to `most`. Fails if
    /// the caller [may not read](super#errors).
    pub fn has_more_rows(&self, key: &Term, most: usize) -> Result<bool> {
        let kept = self.kept(key, "lookup")?;
        Ok(kept.is_some_and(|kept| self.shared.layout.has_more_rows(&kept, most)))
    }

    /// What is kept under a key.
    #[inline]
    pub(super) fn kept(&self, key: &Term, function: &'static str) -> Result<Option<Kept>> {
        self.check(Right::Read, function)?;
        self.shared.kept(key).map_err(|_| no_table(function))
    }

    /// The rows with this key, in a bag the oldest first: Erlang's `lookup/2`. One
    /// [step](super#consistency). Fails if the caller [may not read](super#errors).
    pub fn lookup(&self, key: &Term) -> Result<Vec<Tuple>> {
        let kept = self.kept(key, "lookup")?;
        Ok(kept.map_or_else(Vec::new, |kept| self.shared.layout.rows(key, &kept)))
    }

    /// The row with this key, in a bag the oldest: as [`lookup`](Self::lookup), without a list.
    #[inline]
    pub fn get(&self, key: &Term) -> Result<Option<Tuple>> {
        let layout = &self.shared.layout;
        let Some(kept) = self.kept(key, "lookup")? else {
            return Ok(None);
        };
        if layout.is_bag {
            return Ok(layout.rows(key, &kept).into_iter().next());
        }
        Ok(Some(layout.row(key, &kept)))
    }

    /// The element at this position (from 1) of the row with this key, or in a bag the list of
    /// these elements of all rows with the key: Erlang's `lookup_element/3`. One
    /// [step](super#consistency).
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), no row has the key, or a row with it lacks the
    /// element.
    pub fn lookup_element(&self, key: &Term, position: usize) -> Result<Term> {
        self.element(key, position)?.ok_or_else(|| {
            let problem = Problem::KeyNotFound(key.clone());
            BadArgument::new("lookup_element", 2, problem)
        })
    }

    /// As [`lookup_element`](Self::lookup_element), but returns `default` if no row has the key:
    /// Erlang's `lookup_element/4`.
    pub fn lookup_element_or(&self, key: &Term, position: usize, default: Term) -> Result<Term> {
        Ok(self.element(key, position)?.unwrap_or(default))
    }

    fn element(&self, key: &Term, position: usize) -> Result<Option<Term>> {
        const FUNCTION: &str = "lookup_element";
        let wrong = || {
            let problem = Problem::NotAPosition(Term::from(position));
            BadArgument::new(FUNCTION, 3, problem)
        };
        let Some(kept) = self.kept(key, FUNCTION)? else {
            return if position == 0 {
                Err(wrong())
            } else {
                Ok(None)
            };
        };
        let layout = &self.shared.layout;
        let of = |row: &Tuple| row.get(position.wrapping_sub(1)).cloned().ok_or_else(wrong);
        if !layout.is_bag {
            return of(&layout.row(key, &kept)).map(Some);
        }
        let elements: Result<Vec<_>> = layout.rows(key, &kept).iter().map(of).collect();
        Ok(Some(Term::list(elements?)))
    }

    /// Whether a row has this key: Erlang's `member/2`. One [step](super#consistency). Fails if the
    /// caller [may not read](super#errors).
    pub fn member(&self, key: &Term) -> Result<bool> {
        self.read("member", || self.shared.store.has(key))
    }

    /// Removes the rows with this key and returns them: Erlang's `take/2`. One
    /// [step](super#consistency). Fails if the caller [may not write](super#errors).
    pub fn take(&self, key: &Term) -> Result<Vec<Tuple>> {
        self.take_rows(&mut Notes::nobody(), key)
    }

    pub(super) fn take_rows(&self, notes: &mut Notes<'_>, key: &Term) -> Result<Vec<Tuple>> {
        // The rows are counted under the gate, so an exclusive change finds all rows counted.
        let _guard = self.enter("take")?;
        let mut of_rows = notes.rows_of(&self.shared);
        let Some(kept) = self.shared.store.remove(key, of_rows.note()) else {
            return Ok(Vec::new());
        };
        let rows = self.shared.layout.rows(key, &kept);
        self.shared.count(-(rows.len() as isize));
        Ok(rows)
    }

    /// Removes the rows with this key: Erlang's `delete/2`. One [step](super#consistency). Fails if
    /// the caller [may not write](super#errors).
    pub fn delete_key(&self, key: &Term) -> Result<()> {
        self.remove_rows(&mut Notes::nobody(), key)
    }

    pub(super) fn remove_rows(&self, notes: &mut Notes<'_>, key: &Term) -> Result<()> {
        let _guard = self.enter("delete")?;
        let mut of_rows = notes.rows_of(&self.shared);
        let removed = self.shared.store.remove(key, of_rows.note());
        if let (Some(kept), true) = (&removed, self.shared.layout.is_bag) {
            let rows = self.shared.layout.rows(key, kept);
            self.shared.count(-(rows.len() as isize));
        }
        let_go(removed);
        Ok(())
    }

    /// Removes the rows that are identical (`=:=`) to this one: Erlang's `delete_object/2`. One
    /// [step](super#consistency).
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), or the row has no key.
    pub fn delete_object(&self, object: &Term) -> Result<()> {
        self.remove_object(&mut Notes::nobody(), object)
    }

    pub(super) fn remove_object(&self, notes: &mut Notes<'_>, object: &Term) -> Result<()> {
        let Some(row) = self.shared.checked_row(object) else {
            let problem = Problem::NotATuple(object.clone());
            return Err(BadArgument::new("delete_object", 2, problem));
        };
        let layout = &self.shared.layout;
        let key = layout.store_key(layout.key_of(row));
        let _guard = self.enter("delete_object")?;
        self.retain(notes, &key, &mut |other| !is_same(other, row));
        Ok(())
    }

    /// Removes the rows with this key that `keep` refuses, in one step; returns how many. The
    /// caller holds the gate.
    pub(super) fn retain(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        keep: &mut dyn FnMut(&Tuple) -> bool,
    ) -> usize {
        self.change_rows(notes, key, &mut |rows| {
            let before = rows.len();
            rows.retain(&mut *keep);
            before - rows.len()
        })
    }

    /// Lets `change` change the rows with this key in one step. Returns what `change` returns: how
    /// many rows it has changed or removed. The caller holds the gate.
    pub(super) fn change_rows(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        change: &mut dyn FnMut(&mut Vec<Tuple>) -> usize,
    ) -> usize {
        let layout = &self.shared.layout;
        let mut of_rows = notes.rows_of(&self.shared);
        let counted = of_rows.is_anybody();
        let (mut changed, mut gone) = (0, 0);
        let decide = &mut |kept: Option<&Kept>| {
            let Some(kept) = kept else {
                return Decision::Keep;
            };
            let mut rows = layout.rows(key, kept);
            let before = rows.len();
            changed = change(&mut rows);
            gone = before - rows.len();
            let kept = match changed {
                0 => return Decision::Keep,
                _ if layout.is_bag => layout.keep_bag(rows, counted),
                _ => rows.pop().map(|row| layout.keep(row)),
            };
            kept.map_or(Decision::Remove, Decision::Put)
        };
        let store = &self.shared.store;
        store.update(key.clone(), decide, of_rows.note());
        self.shared.count(-(gone as isize));
        changed
    }

    /// Removes all rows: Erlang's `delete_all_objects/1`. One [step](super#consistency). Fails if
    /// the caller [may not write](super#errors).
    pub fn delete_all_objects(&self) -> Result<()> {
        self.delete_all_objects_in_steps()?.free(|| true);
        Ok(())
    }
}

/// The tuple that a row of Rust values becomes, for the second argument of `function`.
pub(super) fn row_of(row: impl IntoTerm, function: &'static str) -> Result<Term> {
    let wrong = |problem| BadArgument::new(function, 2, problem);
    match row.into_term() {
        Ok(row @ Term::Tuple(_)) => Ok(row),
        Ok(other) => Err(wrong(Problem::NotATuple(other))),
        Err(not_finite) => Err(wrong(not_finite.into())),
    }
}

impl Shared {
    /// What is kept under a key. Does not check the caller.
    #[inline]
    pub(super) fn kept(&self, key: &Term) -> std::result::Result<Option<Kept>, Deleted> {
        let mut found = None;
        self.gate.read(|| {
            found = None;
            let read = &mut |kept: &Kept| found = Some(kept.clone());
            self.store.get_with(key, read);
        })?;
        Ok(found)
    }

    /// Removes the rows of an interval of keys of an `ordered_set`, and returns how many. The
    /// caller holds the gate exclusively.
    pub(super) fn remove_interval(&self, notes: &mut Notes<'_>, interval: &KeyInterval) -> usize {
        let reported = notes.change(self, Change::RangeRemoved(interval));
        self.times.forget_range(interval);
        self.store.remove_range(Span::from(interval), reported)
    }

    /// Removes all rows, whose memory is still to be freed. The caller holds the gate exclusively.
    pub(super) fn clear(&self, notes: &mut Notes<'_>) -> Garbage {
        let reported = notes.change(self, Change::Cleared);
        let garbage = self.times.take_all().and(self.store.clear(reported));
        self.row_sizes.forget();
        if let Some(rows) = &self.rows {
            rows.add(-rows.sum());
        }
        garbage
    }

    /// The rows in a list, which is the second argument of `function`.
    pub(super) fn rows_in(&self, list: &List, function: &'static str) -> Result<Vec<Tuple>> {
        let wrong = |term: &Term| BadArgument::new(function, 2, Problem::NotRows(term.clone()));
        let row = |term| {
            let row = self.checked_row(term).ok_or_else(|| wrong(term))?;
            self.check_bounds(row, function)?;
            Ok(row.clone())
        };
        list.iter().map(row).collect()
    }

    /// Refuses a row that is too large, or for which the log has no room.
    #[inline]
    pub(super) fn check_kept(&self, row: &Tuple) -> std::result::Result<(), OutOfBounds> {
        self.bounds.check_row(row)?;
        if self.must_report {
            self.bounds.check_written_row(row)?;
        }
        Ok(())
    }

    /// Refuses what is too large to be kept besides rows, such as the term for an heir.
    pub(super) fn check_heir(&self, heir: &Heir) -> std::result::Result<(), OutOfBounds> {
        if self.must_report {
            self.bounds.check(&heir.data)?;
            self.bounds.check_written(&heir.data)?;
        }
        Ok(())
    }

    /// Refuses a row that is too large; it is the second argument of `function`.
    #[inline]
    pub(super) fn check_bounds(&self, row: &Tuple, function: &'static str) -> Result<()> {
        let checked = self.check_kept(row);
        checked.map_err(|error| BadArgument::new(function, 2, error.into()))
    }

    /// Puts one row into the store and returns whether it did. The caller holds the gate.
    pub(super) fn put(&self, notes: &mut Notes<'_>, row: Tuple, present: Present) -> bool {
        let layout = &self.layout;
        let key = layout.new_key(layout.key_of(&row));
        self.row_sizes.note(row.len());
        let mut of_rows = notes.rows_of(self);
        match (self.options.kind, present) {
            (Kind::Set | Kind::OrderedSet, Present::Goes) => {
                let_go(self.store.insert(key, layout.keep(row), of_rows.note()));
                true
            }
            (Kind::Set | Kind::OrderedSet, Present::Stays) => {
                let kept = layout.keep(row);
                self.store.insert_if_absent(key, kept, of_rows.note())
            }
            (Kind::Bag | Kind::DuplicateBag, _) => {
                let only_new = present == Present::Stays;
                let put = self.put_in_bag(of_rows, key, &row, only_new);
                self.count(put.into());
                put
            }
        }
    }

    /// Puts rows into the store, later ones behind earlier ones. The caller holds the gate
    /// exclusively.
    pub(super) fn put_all(&self, notes: &mut Notes<'_>, rows: Vec<Tuple>) {
        if self.options.kind != Kind::Bag {
            for row in rows {
                self.put(notes, row, Present::Goes);
            }
            return;
        }
        // To look for each row among all others with its key would take the square of their number.
        let mut by_key: HashMap<Exact, Vec<Tuple>> = HashMap::new();
        for row in rows {
            self.row_sizes.note(row.len());
            let key = Exact(self.layout.key_of(&row).clone());
            by_key.entry(key).or_default().push(row);
        }
        for (Exact(key), rows) in by_key {
            let of_rows = notes.rows_of(self);
            self.put_all_under(of_rows, self.layout.new_key(&key), &rows);
        }
    }

    /// Puts rows with one key into a bag.
    fn put_all_under(&self, mut notes: RowNotes<'_>, key: Term, rows: &[Tuple]) {
        let layout = &self.layout;
        let (its_key, counted) = (key.clone(), notes.is_anybody());
        let mut count = 0;
        let decide = &mut |older: Option<&Kept>| {
            let there = older.map_or_else(Vec::new, |older| layout.rows(&its_key, older));
            let exact = |row: &Tuple| Exact(Term::Tuple(row.clone()));
            let mut seen: HashSet<_> = there.iter().map(exact).collect();
            let mut kept = None;
            for row in rows.iter().filter(|row| seen.insert(exact(row))) {
                let before = kept.as_ref().or(older);
                kept = Some(layout.keep_one_more(before, row.clone(), counted));
                count += 1;
            }
            kept.map_or(Decision::Keep, |kept| Decision::Add(kept, count))
        };
        self.store.update(key, decide, notes.note());
        self.count(count as isize);
    }

    fn put_in_bag(&self, mut notes: RowNotes<'_>, key: Term, row: &Tuple, only_new: bool) -> bool {
        let (layout, kind) = (&self.layout, self.options.kind);
        let mut put = false;
        let (its_key, counted) = (key.clone(), notes.is_anybody());
        let decide = &mut |older: Option<&Kept>| {
            put = match older {
                None => true,
                Some(_) if only_new => false,
                Some(older) if kind == Kind::Bag => {
                    let rows = layout.rows(&its_key, older);
                    !rows.iter().any(|other| is_same(other, row))
                }
                Some(_) => true,
            };
            if put {
                Decision::Add(layout.keep_one_more(older, row.clone(), counted), 1)
            } else {
                Decision::Keep
            }
        };
        self.store.update(key, decide, notes.note());
        put
    }
}

pub(super) fn is_same(one: &Tuple, two: &Tuple) -> bool {
    std::ptr::eq(one.elements(), two.elements())
        || one.len() == two.len() && one.iter().zip(two.iter()).all(|(a, b)| a.is_identical(b))
}
