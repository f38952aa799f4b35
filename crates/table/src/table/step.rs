//! Steps from key to key: `first`, `next` and the like.

use super::error::{BadArgument, Problem, Result};
use super::store::Kept;
use super::{Kind, Table};
use crate::term::{Term, Tuple};
use tremula_index::Direction::{self, Ascending, Descending};

impl Table {
    /// The first key: Erlang's `first/1`, but `None` for `'$end_of_table'`. Consistency: see
    /// [move](super#consistency). Fails if the caller [may not read](super#errors).
    pub fn first(&self) -> Result<Option<Term>> {
        self.end(Ascending, "first", Self::key)
    }

    /// The last key: Erlang's `last/1`; otherwise as [`first`](Self::first). In a table without
    /// order it is the first key.
    pub fn last(&self) -> Result<Option<Term>> {
        self.end(Descending, "last", Self::key)
    }

    /// The key behind this one: Erlang's `next/2`. An `ordered_set` need not contain the key; a
    /// table of another type must, unless it is [fixed](Self::safe_fixtable). Consistency: see
    /// [move](super#consistency).
    ///
    /// ```
    /// use tremula_table::{Kind, Options, Tables, Term};
    ///
    /// let table = Tables::new().create("t", Options::new().kind(Kind::OrderedSet))?;
    /// table.insert("[{1}, {7}]".parse().unwrap())?;
    /// assert_eq!(table.next(&Term::from(3))?, Some(Term::from(7)));
    /// assert_eq!(table.next(&Term::from(7))?, None);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), or the table has to contain the key and does not.
    pub fn next(&self, key: &Term) -> Result<Option<Term>> {
        self.step(key, Ascending, "next", Self::key)
    }

    /// The key before this one: Erlang's `prev/2`; otherwise as [`next`](Self::next). In a table
    /// without order it is the next key.
    pub fn prev(&self, key: &Term) -> Result<Option<Term>> {
        self.step(key, Descending, "prev", Self::key)
    }

    /// The first key with its rows at one moment: Erlang's `first_lookup/1` (OTP 27). Consistency:
    /// see [move](super#consistency). Fails if the caller [may not read](super#errors).
    pub fn first_lookup(&self) -> Result<Option<(Term, Vec<Tuple>)>> {
        self.end(Ascending, "first_lookup", Self::key_and_rows)
    }

    /// The last key with its rows: Erlang's `last_lookup/1`; see
    /// [`first_lookup`](Self::first_lookup).
    pub fn last_lookup(&self) -> Result<Option<(Term, Vec<Tuple>)>> {
        self.end(Descending, "last_lookup", Self::key_and_rows)
    }

    /// The key behind this one with its rows: Erlang's `next_lookup/2`; see [`next`](Self::next).
    pub fn next_lookup(&self, key: &Term) -> Result<Option<(Term, Vec<Tuple>)>> {
        self.step(key, Ascending, "next_lookup", Self::key_and_rows)
    }

    /// The key before this one with its rows: Erlang's `prev_lookup/2`; see [`prev`](Self::prev).
    pub fn prev_lookup(&self, key: &Term) -> Result<Option<(Term, Vec<Tuple>)>> {
        self.step(key, Descending, "prev_lookup", Self::key_and_rows)
    }

    /// The direction, or `Ascending` if the table has no order.
    pub(super) fn way(&self, direction: Direction) -> Direction {
        match self.shared.options.kind {
            Kind::OrderedSet => direction,
            _ => Ascending,
        }
    }

    fn end<R>(
        &self,
        direction: Direction,
        function: &'static str,
        read: impl Fn(&Self, &Term, &Kept) -> R,
    ) -> Result<Option<R>> {
        let direction = self.way(direction);
        let entry = self.read(function, || self.shared.store.end(direction))?;
        Ok(entry.map(|(key, kept)| read(self, &key, &kept)))
    }

    #[inline]
    fn step<R>(
        &self,
        key: &Term,
        direction: Direction,
        function: &'static str,
        read: impl Fn(&Self, &Term, &Kept) -> R,
    ) -> Result<Option<R>> {
        let direction = self.way(direction);
        let shared = &*self.shared;
        let is_ordered = shared.options.kind == Kind::OrderedSet;
        let needs_key = !is_ordered && (is_end(key) || !shared.fixations.is_fixed());
        // Outside, so that what is found is moved once: a move of a term that was just written in
        // parts waits until the parts are in the cache.
        let mut found = None;
        let is_refused = self.read(function, || {
            found = None;
            let is_refused = if needs_key {
                !shared.store.has(key)
            } else {
                is_ordered && is_end(key)
            };
            if !is_refused {
                let read = &mut |key: &Term, kept: &Kept| found = Some(read(self, key, kept));
                shared.store.step_with(key, direction, read);
            }
            is_refused
        })?;
        if is_refused {
            return Err(BadArgument::new(
                function,
                2,
                Problem::KeyNotFound(key.clone()),
            ));
        }
        Ok(found)
    }

    #[inline]
    fn key(&self, key: &Term, kept: &Kept) -> Term {
        self.shared.layout.row_key(key, kept)
    }

    fn key_and_rows(&self, key: &Term, kept: &Kept) -> (Term, Vec<Tuple>) {
        let layout = &self.shared.layout;
        (layout.row_key(key, kept), layout.rows(key, kept))
    }
}

/// Whether this is `'$end_of_table'`, from which `next` and `prev` do not go on in an
/// `ordered_set`, even if it is a key.
fn is_end(key: &Term) -> bool {
    matches!(key, Term::Atom(atom) if *atom == crate::term::Atom::END_OF_TABLE)
}
