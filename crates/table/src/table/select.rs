//! `select`, `match` and the like: operations on the rows that a match specification or a pattern
//! picks.

use super::continuation::{Chunk, Continuation};
use super::error::{BadArgument, Problem, Result};
use super::note::Notes;
use super::search::{Keys, Search};
use super::traversal::Action;
use super::{Kept, Kind, Table};
use crate::match_spec::{KeyInterval, MatchSpec, Matcher, Returns};
use crate::term::{Atom, Term};

/// A search for all results.
const fn all(reverse: bool) -> Action {
    let limit = None;
    Action::Select { reverse, limit }
}

impl Table {
    /// What the specification makes of each row that it matches, in an `ordered_set` in order:
    /// Erlang's `select/2`. Consistency: see [search](super#consistency); a snapshot if it visits
    /// one interval of fewer than 1024 keys of an `ordered_set`. Fails if the caller
    /// [may not read](super#errors).
    ///
    /// ```
    /// use tremula_table::{Kind, MatchSpec, Options, Tables};
    ///
    /// let table = Tables::new().create("ages", Options::new().kind(Kind::OrderedSet))?;
    /// table.insert("[{ada, 36}, {alan, 41}, {grace, 85}]".parse()?)?;
    /// let spec = MatchSpec::compile(&"[{{'$1', '$2'}, [{'>', '$2', 40}], ['$1']}]".parse()?)?;
    /// let found: Vec<_> = table.select(&spec)?.iter().map(|name| name.to_string()).collect();
    /// assert_eq!(found, ["alan", "grace"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select(&self, spec: &MatchSpec) -> Result<Vec<Term>> {
        Ok(self.search("select", spec, all(false))?.found)
    }

    /// As [`select`](Self::select), from the last row to the first: Erlang's `select_reverse/2`.
    pub fn select_reverse(&self, spec: &MatchSpec) -> Result<Vec<Term>> {
        Ok(self.search("select_reverse", spec, all(true))?.found)
    }

    /// The first `limit` results of [`select`](Self::select), and where to go on: Erlang's
    /// `select/3`. `None` if the specification picks nothing. As in Erlang, a full chunk has a
    /// continuation even if no result follows, and a shorter one has none. Consistency: see
    /// [search](super#consistency).
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), or the limit is 0, or 2^59 or more.
    pub fn select_limit(&self, spec: &MatchSpec, limit: usize) -> Result<Option<Chunk>> {
        self.first_chunk("select", spec.clone(), limit, false)
    }

    /// As [`select_limit`](Self::select_limit), from the last row to the first: Erlang's
    /// `select_reverse/3`.
    pub fn select_reverse_limit(&self, spec: &MatchSpec, limit: usize) -> Result<Option<Chunk>> {
        self.first_chunk("select_reverse", spec.clone(), limit, true)
    }

    /// The next chunk: Erlang's `select/1`, `select_reverse/1`, `match/1` and `match_object/1`.
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), or the continuation is another table's.
    pub fn select_next(&self, continuation: &Continuation) -> Result<Option<Chunk>> {
        continuation.clone().next_chunk(self, "select")
    }

    /// The number of rows of which the specification makes `true`: Erlang's `select_count/2`.
    /// Consistency and errors: see [`select`](Self::select).
    pub fn select_count(&self, spec: &MatchSpec) -> Result<usize> {
        Ok(self.search("select_count", spec, Action::Count)?.count)
    }

    /// Deletes the rows of which the specification makes `true`, and returns how many: Erlang's
    /// `select_delete/2`. Checks and deletes the rows of each key in one [step](super#consistency).
    /// Fails if the caller [may not write](super#errors).
    ///
    /// In an `ordered_set` it removes a whole range of keys in one step, without visiting the rows,
    /// if the specification makes `true` of every row that the range can contain: its guards only
    /// bound the range, the key has no number before the bounded part, and all rows of the table
    /// have as many elements as the head. [`MatchSpec::explain`] says whether this is so.
    ///
    /// ```
    /// use tremula_table::{Kind, MatchSpec, Options, Tables};
    ///
    /// let table = Tables::new().create("visits", Options::new().kind(Kind::OrderedSet))?;
    /// table.insert("[{{ada, 1}, x}, {{ada, 2}, x}, {{alan, 1}, x}]".parse()?)?;
    /// let spec = MatchSpec::compile(&"[{{{ada, '_'}, '_'}, [], [true]}]".parse()?)?;
    /// assert_eq!(table.select_delete(&spec)?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn select_delete(&self, spec: &MatchSpec) -> Result<usize> {
        self.delete_found(&mut Notes::nobody(), spec)
    }

    /// Replaces each row that the specification matches by what it makes of the row, and returns
    /// how many it replaced: Erlang's `select_replace/2`. One [step](super#consistency) per key.
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), the table is a `bag`, or the specification could
    /// make something other than a row with the same key ([`MatchSpec::changes_key`]): then no row
    /// is replaced. Or it makes a row beyond the [bounds](crate::term::Bounds) of the node: then
    /// that row stays, and so do the rows that the search has not visited yet.
    pub fn select_replace(&self, spec: &MatchSpec) -> Result<usize> {
        self.replace_found(&mut Notes::nobody(), spec)
    }

    /// Fails if a specification may not be used to replace rows.
    pub(super) fn check_replacement(&self, function: &'static str, spec: &MatchSpec) -> Result<()> {
        let kind = self.shared.options.kind;
        if kind == Kind::Bag {
            return Err(BadArgument::new(function, 1, Problem::TableType(kind)));
        }
        if let Some((clause, body)) = spec.changes_key(self.shared.layout.key_position) {
            let problem = Problem::KeyNotKept {
                clause,
                body,
                keypos: self.shared.options.keypos,
            };
            return Err(BadArgument::new(function, 2, problem));
        }
        Ok(())
    }

    /// Replaces the rows with this key that the specification matches, in one step; returns how
    /// many.
    pub(super) fn replace_rows(
        &self,
        notes: &mut Notes<'_>,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
        function: &'static str,
    ) -> Result<usize> {
        let layout = &self.shared.layout;
        // Most rows stay. A check without the gate and the store's lock suffices for these.
        let rows = layout.rows(key, kept);
        let any = rows.iter().any(|row| matcher.run(row).is_some());
        within_bounds(matcher, function)?;
        if !any {
            return Ok(0);
        }
        let _guard = self.enter(function)?;
        let mut fits = Ok(());
        let replaced = self.change_rows(notes, key, &mut |rows| {
            let mut made = Vec::with_capacity(rows.len());
            made.extend(rows.iter().map(|row| matcher.run(row)));
            fits = made.iter().try_for_each(|made| match made {
                Some(Term::Tuple(row)) => self.shared.check_kept(row),
                _ => Ok(()),
            });
            if matcher.reached().is_some() || fits.is_err() {
                return 0;
            }
            let mut count = 0;
            for (row, new) in rows.iter_mut().zip(made) {
                // `check_replacement` has accepted the specification, so it makes rows only.
                if let Some(Term::Tuple(new)) = new {
                    debug_assert!(layout.key_of(&new).is_identical(layout.key_of(row)));
                    self.shared.row_sizes.note(new.len());
                    *row = new;
                    count += 1;
                }
            }
            count
        });
        within_bounds(matcher, function)?;
        fits.map_err(|error| BadArgument::new(function, 2, error.into()))?;
        Ok(replaced)
    }

    /// The values of the pattern's variables, in the order of their numbers, for each row that it
    /// matches: Erlang's `match/2`. Consistency: see [`select`](Self::select).
    ///
    /// ```
    /// use tremula_table::{Options, Tables, Term};
    ///
    /// let table = Tables::new().create("t", Options::new())?;
    /// table.insert("[{a, 1, x}, {b, 2, y}]".parse()?)?;
    /// let found = table.match_pattern(&"{'$2', '_', '$1'}".parse()?)?;
    /// assert!(found.contains(&"[x, a]".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not read](super#errors), or the term is no pattern.
    pub fn match_pattern(&self, pattern: &Term) -> Result<Vec<Term>> {
        let spec = pattern_spec(pattern, Returns::Bindings, "match")?;
        Ok(self.search("match", &spec, all(false))?.found)
    }

    /// As [`match_pattern`](Self::match_pattern), in chunks: Erlang's `match/3`. Also fails if the
    /// limit is 0, or 2^59 or more.
    pub fn match_pattern_limit(&self, pattern: &Term, limit: usize) -> Result<Option<Chunk>> {
        let spec = pattern_spec(pattern, Returns::Bindings, "match")?;
        self.first_chunk("match", spec, limit, false)
    }

    /// The rows that the pattern matches: Erlang's `match_object/2`. Consistency and errors: see
    /// [`match_pattern`](Self::match_pattern).
    pub fn match_object(&self, pattern: &Term) -> Result<Vec<Term>> {
        let spec = pattern_spec(pattern, Returns::Row, "match_object")?;
        Ok(self.search("match_object", &spec, all(false))?.found)
    }

    /// As [`match_object`](Self::match_object), in chunks: Erlang's `match_object/3`. Also fails if
    /// the limit is 0, or 2^59 or more.
    pub fn match_object_limit(&self, pattern: &Term, limit: usize) -> Result<Option<Chunk>> {
        let spec = pattern_spec(pattern, Returns::Row, "match_object")?;
        self.first_chunk("match_object", spec, limit, false)
    }

    /// Deletes the rows that the pattern matches, as [`select_delete`](Self::select_delete) does:
    /// Erlang's `match_delete/2`. Also fails if the term is no pattern.
    pub fn match_delete(&self, pattern: &Term) -> Result<()> {
        self.delete_matching(&mut Notes::nobody(), pattern)
    }

    /// Runs a search to its end.
    #[inline]
    fn search(&self, function: &'static str, spec: &MatchSpec, action: Action) -> Result<Search> {
        self.search_noting(&mut Notes::nobody(), function, spec, action)
    }

    #[inline]
    fn search_noting(
        &self,
        notes: &mut Notes<'_>,
        function: &'static str,
        spec: &MatchSpec,
        action: Action,
    ) -> Result<Search> {
        let mut search = Search::new(self, action);
        if !search.begin(self, notes, function, spec)? {
            let by = (spec, &Keys::of(self, spec));
            search.go_on(self, notes, function, by, &mut || true)?;
        }
        Ok(search)
    }

    pub(super) fn delete_found(&self, notes: &mut Notes<'_>, spec: &MatchSpec) -> Result<usize> {
        let search = self.search_noting(notes, "select_delete", spec, Action::Delete)?;
        Ok(search.count)
    }

    pub(super) fn delete_matching(&self, notes: &mut Notes<'_>, pattern: &Term) -> Result<()> {
        let spec = pattern_spec(pattern, Returns::True, "match_delete")?;
        self.search_noting(notes, "match_delete", &spec, Action::Delete)?;
        Ok(())
    }

    pub(super) fn replace_found(&self, notes: &mut Notes<'_>, spec: &MatchSpec) -> Result<usize> {
        let search = self.search_noting(notes, "select_replace", spec, Action::Replace)?;
        Ok(search.count)
    }

    fn first_chunk(
        &self,
        function: &'static str,
        spec: MatchSpec,
        limit: usize,
        reverse: bool,
    ) -> Result<Option<Chunk>> {
        let limit = Some(limit);
        Continuation::begin(self, spec, Action::Select { reverse, limit })
            .next_chunk(self, function)
    }

    /// Calls `visit` with what the specification makes of each row with this key that it matches.
    #[inline]
    pub(super) fn run_rows(
        &self,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
        mut visit: impl FnMut(Term),
    ) {
        let layout = &self.shared.layout;
        if layout.is_bag {
            let rows = layout.rows(key, kept);
            let found = rows.iter().filter_map(|row| matcher.run(row));
            found.for_each(visit);
        } else if let Some(made) = layout.run(matcher, key, kept) {
            visit(made);
        }
    }

    /// Removes the ranges of keys in which every row is to be deleted, in one step, and returns how
    /// many rows there were; `None` if the search has to visit the rows.
    pub(super) fn delete_ranges(
        &self,
        notes: &mut Notes<'_>,
        spec: &MatchSpec,
        function: &'static str,
    ) -> Result<Option<usize>> {
        let shared = &*self.shared;
        if shared.options.kind != Kind::OrderedSet {
            return Ok(None);
        }
        let whole = spec.whole_intervals(shared.layout.key_position);
        // A first check without the gate, so that no thread waits in vain. The second one decides.
        let Some((size, intervals)) = whole.filter(|(size, _)| shared.row_sizes.are(*size)) else {
            return Ok(None);
        };
        let fits =
            |interval: &KeyInterval| shared.bounds.check_written(&interval.to_term()).is_ok();
        if shared.must_report && !intervals.iter().all(fits) {
            return Ok(None);
        }
        let mut step = self.enter_step(notes, function)?;
        if !shared.row_sizes.are(size) {
            return Ok(None);
        }
        let mut remove = |interval| shared.remove_interval(step.notes(), interval);
        Ok(Some(intervals.iter().map(&mut remove).sum()))
    }

    /// Deletes the rows with this key of which the specification makes `true`, in one step; returns
    /// how many.
    pub(super) fn delete_rows(
        &self,
        notes: &mut Notes<'_>,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
        function: &'static str,
    ) -> Result<usize> {
        let layout = &self.shared.layout;
        let goes = |made: Option<Term>| made.is_some_and(|made| is_true(&made));
        // Most rows stay. A check without the gate and the store's lock suffices for these.
        let any = if layout.is_bag {
            let rows = layout.rows(key, kept);
            rows.iter().any(|row| goes(matcher.run(row)))
        } else {
            goes(layout.run(matcher, key, kept))
        };
        within_bounds(matcher, function)?;
        if !any {
            return Ok(0);
        }
        let _guard = self.enter(function)?;
        let deleted = self.retain(notes, key, &mut |row| {
            let goes = goes(matcher.run(row));
            !goes || matcher.reached().is_some()
        });
        within_bounds(matcher, function)?;
        Ok(deleted)
    }
}

/// Fails if the specification has reached a bound.
pub(super) fn within_bounds(matcher: &Matcher<'_>, function: &'static str) -> Result<()> {
    match matcher.reached() {
        None => Ok(()),
        Some(reached) => Err(BadArgument::new(function, 2, reached.clone().into())),
    }
}

fn pattern_spec(pattern: &Term, returns: Returns, function: &'static str) -> Result<MatchSpec> {
    MatchSpec::from_pattern(pattern, returns)
        .map_err(|error| BadArgument::new(function, 2, Problem::Spec(error)))
}

/// The greatest limit: Erlang's greatest integer of one word.
const GREATEST_LIMIT: u64 = (1 << 59) - 1;

pub(super) const fn is_limit(limit: usize) -> bool {
    limit > 0 && limit as u64 <= GREATEST_LIMIT
}

pub(super) fn is_true(term: &Term) -> bool {
    matches!(term, Term::Atom(atom) if *atom == Atom::TRUE)
}
