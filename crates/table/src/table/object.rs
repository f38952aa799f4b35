//! Operations on rows by their keys: insert, look up, delete, take.

use super::error::{BadArgument, Problem, Result};
use super::{Kept, Kind, Shared, Table};
use crate::term::{Term, Tuple};
use tremula_index::Update;

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
    /// The caller [may not write](super#errors), or the term is neither a row nor a proper list of
    /// rows: then nothing is inserted.
    pub fn insert(&self, objects: Term) -> Result<()> {
        match self.rows_of(&objects, "insert")? {
            Rows::One(row) => {
                let _guard = self.enter("insert")?;
                self.shared.put(row, Present::Goes);
            }
            Rows::Many(rows) => {
                let _exclusive = self.enter_exclusive("insert")?;
                for row in rows {
                    self.shared.put(row, Present::Goes);
                }
            }
            Rows::None => drop(self.enter("insert")?),
        }
        Ok(())
    }

    /// Inserts a row, or a list of rows, if no row has any of their keys: Erlang's `insert_new/2`.
    /// Returns whether it did. One [step](super#consistency).
    ///
    /// # Errors
    ///
    /// See [`insert`](Self::insert).
    pub fn insert_new(&self, objects: Term) -> Result<bool> {
        match self.rows_of(&objects, "insert_new")? {
            Rows::One(row) => {
                let _guard = self.enter("insert_new")?;
                Ok(self.shared.put(row, Present::Stays))
            }
            Rows::Many(rows) => {
                let _exclusive = self.enter_exclusive("insert_new")?;
                let is_there = |row: &Tuple| {
                    let key = self.shared.layout.key_of(row);
                    self.shared.store.get_with(key, &mut |_| ())
                };
                if rows.iter().any(is_there) {
                    return Ok(false);
                }
                for row in rows {
                    self.shared.put(row, Present::Goes);
                }
                Ok(true)
            }
            Rows::None => {
                drop(self.enter("insert_new")?);
                Ok(true)
            }
        }
    }

    /// The rows in the argument of an insertion.
    fn rows_of(&self, objects: &Term, function: &'static str) -> Result<Rows> {
        if let Some(row) = self.shared.checked_row(objects) {
            return Ok(Rows::One(row.clone()));
        }
        let wrong = |problem| Err(BadArgument::new(function, 2, problem));
        let list = match objects {
            Term::List(list) if list.is_proper() => list,
            Term::Tuple(_) => {
                return wrong(Problem::NoKey {
                    row: objects.clone(),
                    keypos: self.shared.options.keypos,
                });
            }
            _ => return wrong(Problem::NotRows(objects.clone())),
        };
        let mut rows = Vec::new();
        for term in list {
            match self.shared.checked_row(term) {
                Some(row) => rows.push(row.clone()),
                None => return wrong(Problem::NotRows(term.clone())),
            }
        }
        Ok(match (rows.pop(), rows.is_empty()) {
            (None, _) => Rows::None,
            (Some(row), true) => Rows::One(row),
            (Some(row), false) => {
                rows.push(row);
                Rows::Many(rows)
            }
        })
    }

    /// What is kept under a key.
    #[inline]
    pub(super) fn kept(&self, key: &Term, function: &'static str) -> Result<Option<Kept>> {
        self.read(function, || {
            let mut found = None;
            let read = &mut |kept: &Kept| found = Some(kept.clone());
            self.shared.store.get_with(key, read);
            found
        })
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
        let of = |row: &Tuple| {
            let element = row.get(position.wrapping_sub(1));
            element.cloned().ok_or_else(wrong)
        };
        if !layout.is_bag {
            return of(&layout.row(key, &kept)).map(Some);
        }
        let elements: Result<Vec<_>> = layout.rows(key, &kept).iter().map(of).collect();
        Ok(Some(Term::list(elements?)))
    }

    /// Whether a row has this key: Erlang's `member/2`. One [step](super#consistency). Fails if the
    /// caller [may not read](super#errors).
    pub fn member(&self, key: &Term) -> Result<bool> {
        self.read("member", || self.shared.store.get_with(key, &mut |_| ()))
    }

    /// Removes the rows with this key and returns them: Erlang's `take/2`. One
    /// [step](super#consistency). Fails if the caller [may not write](super#errors).
    pub fn take(&self, key: &Term) -> Result<Vec<Tuple>> {
        // The rows are counted under the gate, so an exclusive change finds all rows counted.
        let _guard = self.enter("take")?;
        let Some(kept) = self.shared.store.remove(key) else {
            return Ok(Vec::new());
        };
        let rows = self.shared.layout.rows(key, &kept);
        self.shared.count(-(rows.len() as isize));
        Ok(rows)
    }

    /// Removes the rows with this key: Erlang's `delete/2`. One [step](super#consistency). Fails if
    /// the caller [may not write](super#errors).
    pub fn delete_key(&self, key: &Term) -> Result<()> {
        let _guard = self.enter("delete")?;
        let removed = self.shared.store.remove(key);
        if let (Some(kept), true) = (removed, self.shared.layout.is_bag) {
            let rows = self.shared.layout.rows(key, &kept);
            self.shared.count(-(rows.len() as isize));
        }
        Ok(())
    }

    /// Removes the rows that are identical (`=:=`) to this one: Erlang's `delete_object/2`. One
    /// [step](super#consistency).
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), or the row has no key.
    pub fn delete_object(&self, object: &Term) -> Result<()> {
        let Some(row) = self.shared.checked_row(object) else {
            let problem = Problem::NotATuple(object.clone());
            return Err(BadArgument::new("delete_object", 2, problem));
        };
        let layout = &self.shared.layout;
        let key = layout.store_key(layout.key_of(row));
        let _guard = self.enter("delete_object")?;
        self.retain(&key, &mut |other| !is_same(other, row));
        Ok(())
    }

    /// Removes the rows with this key for which `keep` returns false, and returns how many. The
    /// caller holds the gate.
    pub(super) fn retain(&self, key: &Term, keep: &mut dyn FnMut(&Tuple) -> bool) -> usize {
        let layout = &self.shared.layout;
        let mut gone = 0;
        self.shared.store.update(key.clone(), &mut |kept| {
            let Some(kept) = kept else {
                return Update::Keep;
            };
            let mut rows = layout.rows(key, kept);
            let before = rows.len();
            rows.retain(&mut *keep);
            gone = before - rows.len();
            match gone {
                0 => Update::Keep,
                _ if rows.is_empty() => Update::Remove,
                _ => layout.keep_bag(rows).map_or(Update::Remove, Update::Put),
            }
        });
        self.shared.count(-(gone as isize));
        gone
    }

    /// Removes all rows: Erlang's `delete_all_objects/1`. One [step](super#consistency). Fails if
    /// the caller [may not write](super#errors).
    pub fn delete_all_objects(&self) -> Result<()> {
        let _exclusive = self.enter_exclusive("delete_all_objects")?;
        self.clear();
        Ok(())
    }

    /// Removes all rows. The caller holds the gate exclusively.
    pub(super) fn clear(&self) {
        let shared = &*self.shared;
        shared.store.clear();
        shared.row_sizes.forget();
        if let Some(rows) = &shared.rows {
            rows.add(-rows.sum());
        }
    }
}

impl Shared {
    /// Puts one row into the store and returns whether it did. The caller holds the gate.
    pub(super) fn put(&self, row: Tuple, present: Present) -> bool {
        let layout = &self.layout;
        let key = layout.new_key(layout.key_of(&row));
        self.row_sizes.note(row.len());
        match (self.options.kind, present) {
            (Kind::Set | Kind::OrderedSet, Present::Goes) => {
                self.store.insert(key, layout.keep(row));
                true
            }
            (Kind::Set | Kind::OrderedSet, Present::Stays) => {
                self.store.insert_if_absent(key, layout.keep(row))
            }
            (Kind::Bag | Kind::DuplicateBag, _) => {
                let only_new = present == Present::Stays;
                let put = self.put_in_bag(key, &row, only_new);
                self.count(put.into());
                put
            }
        }
    }

    fn put_in_bag(&self, key: Term, row: &Tuple, only_new: bool) -> bool {
        let (layout, kind) = (&self.layout, self.options.kind);
        let mut put = false;
        let its_key = key.clone();
        self.store.update(key, &mut |older| {
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
                Update::Put(layout.keep_one_more(older, row.clone()))
            } else {
                Update::Keep
            }
        });
        put
    }

    /// Puts a row into a table that no other thread has yet.
    pub(super) fn put_read(&self, row: Tuple) {
        self.put(row, Present::Goes);
    }
}

/// The rows in an argument.
enum Rows {
    None,
    One(Tuple),
    /// More than one.
    Many(Vec<Tuple>),
}

/// Whether two rows are identical.
pub(super) fn is_same(one: &Tuple, two: &Tuple) -> bool {
    std::ptr::eq(one.elements(), two.elements())
        || one.len() == two.len() && one.iter().zip(two.iter()).all(|(a, b)| a.is_identical(b))
}
