//! `select`, `match` and their kin: rows picked by a match specification or a pattern.

use super::continuation::{Chunk, Continuation};
use super::error::{BadArgument, Problem, Result};
use super::search::{Keys, Progress};
use super::store::Span;
use super::{Kept, Kind, Right, Table, no_table};
use crate::match_spec::{MatchSpec, Matcher, Returns};
use crate::term::{Atom, Term};
use std::mem;
use std::ops::ControlFlow;
use tremula_index::{Direction, FIRST_BATCH, LAST_BATCH, Update};
use tremula_sync::Arc;

impl Table {
    /// What the specification makes of each row that it matches, in an `ordered_set` in order:
    /// Erlang's `select/2`. Of one moment if the keys that it visits are an interval of fewer than 1024
    /// of an `ordered_set`, else not as a whole; see the [module](super).
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
    ///
    /// # Errors
    ///
    /// The caller may not read.
    pub fn select(&self, spec: &MatchSpec) -> Result<Vec<Term>> {
        self.all_found(spec, Direction::Ascending, "select")
    }

    /// As [`select`](Self::select), from the last row to the first: Erlang's `select_reverse/2`.
    ///
    /// # Errors
    ///
    /// The caller may not read.
    pub fn select_reverse(&self, spec: &MatchSpec) -> Result<Vec<Term>> {
        self.all_found(spec, Direction::Descending, "select_reverse")
    }

    /// The first `limit` of what [`select`](Self::select) gives, and where to go on: Erlang's
    /// `select/3`. `None` if the specification picks nothing.
    ///
    /// As in Erlang, a chunk that is full has a continuation even if nothing more is there, and a
    /// shorter one has none.
    ///
    /// # Errors
    ///
    /// The caller may not read, or the limit is 0, or 2^59 or more.
    pub fn select_limit(&self, spec: &MatchSpec, limit: usize) -> Result<Option<Chunk>> {
        self.first_chunk(spec.clone(), limit, Direction::Ascending, "select")
    }

    /// The last `limit` of what [`select`](Self::select) gives, the last first, and where to go on:
    /// Erlang's `select_reverse/3`.
    ///
    /// # Errors
    ///
    /// See [`select_limit`](Self::select_limit).
    pub fn select_reverse_limit(&self, spec: &MatchSpec, limit: usize) -> Result<Option<Chunk>> {
        self.first_chunk(spec.clone(), limit, Direction::Descending, "select_reverse")
    }

    /// The next chunk: Erlang's `select/1`, `select_reverse/1`, `match/1` and `match_object/1`.
    ///
    /// # Errors
    ///
    /// The caller may not read, or the continuation is another table's.
    pub fn select_next(&self, continuation: &Continuation) -> Result<Option<Chunk>> {
        const FUNCTION: &str = "select";
        if continuation.table != self.shared.number {
            return Err(BadArgument::new(FUNCTION, 1, Problem::NotItsContinuation));
        }
        self.check(Right::Read, FUNCTION)?;
        self.next_chunk(continuation.clone(), FUNCTION)
    }

    /// How many rows the specification makes `true` of: Erlang's `select_count/2`.
    ///
    /// # Errors
    ///
    /// The caller may not read.
    pub fn select_count(&self, spec: &MatchSpec) -> Result<usize> {
        let mut count = 0;
        self.found("select_count", spec, Direction::Ascending, &mut |found| {
            count += usize::from(is_true(&found));
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    /// Deletes the rows that the specification makes `true` of, and tells how many: Erlang's
    /// `select_delete/2`. Each row is looked at and deleted in one step.
    ///
    /// Of an `ordered_set` a whole range of keys is removed in one step, without a look at its rows, if
    /// the specification says `true` of all that can be in it: if there are no guards but those that
    /// bound the range, no number before it in the key, and all rows of the table have as many
    /// elements as the head. [`MatchSpec::explain`] tells.
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
    ///
    /// # Errors
    ///
    /// The caller may not write.
    pub fn select_delete(&self, spec: &MatchSpec) -> Result<usize> {
        self.delete_found(spec, "select_delete")
    }

    /// Puts what the specification makes of each row that it matches in its place, and tells how
    /// many were replaced: Erlang's `select_replace/2`. Each row is looked at and replaced in one
    /// step.
    ///
    /// # Errors
    ///
    /// The caller may not write, the table is a `bag`, or the specification could make something
    /// that is no row with the same key ([`MatchSpec::changes_key`]): no row is replaced then.
    pub fn select_replace(&self, spec: &MatchSpec) -> Result<usize> {
        self.check_replacement(spec)?;
        let mut matcher = spec.matcher();
        self.change_found("select_replace", spec, &mut |key, kept| {
            self.replace_rows(&mut matcher, key, kept)
        })
    }

    /// Whether a specification may be used to replace rows.
    pub(super) fn check_replacement(&self, spec: &MatchSpec) -> Result<()> {
        const FUNCTION: &str = "select_replace";
        self.check(Right::Write, FUNCTION)?;
        let kind = self.shared.options.kind;
        if kind == Kind::Bag {
            return Err(BadArgument::new(FUNCTION, 1, Problem::TableType(kind)));
        }
        match spec.changes_key(self.shared.layout.key_position) {
            None => Ok(()),
            Some((clause, body)) => {
                let keypos = self.shared.options.keypos;
                let problem = Problem::KeyNotKept {
                    clause,
                    body,
                    keypos,
                };
                Err(BadArgument::new(FUNCTION, 2, problem))
            }
        }
    }

    /// Replaces the rows with this key that the specification matches, in one step. Returns how many.
    pub(super) fn replace_rows(
        &self,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
    ) -> Result<usize> {
        let layout = &self.shared.layout;
        // Most rows stay: they are not locked for it.
        let rows = layout.rows(key, kept);
        if !rows.iter().any(|row| matcher.run(row).is_some()) {
            return Ok(0);
        }
        let _guard = self.enter("select_replace")?;
        let mut count = 0;
        self.shared.store.update(key.clone(), &mut |kept| {
            let Some(kept) = kept else {
                return Update::Keep;
            };
            let mut rows = layout.rows(key, kept);
            for row in &mut rows {
                // A specification that keeps the key makes nothing but rows.
                let Some(Term::Tuple(new)) = matcher.run(row) else {
                    continue;
                };
                debug_assert!(layout.key_of(&new).is_identical(layout.key_of(row)));
                self.shared.row_sizes.note(new.len());
                *row = new;
                count += 1;
            }
            let kept = if layout.is_bag {
                layout.keep_bag(rows)
            } else {
                rows.pop().map(|row| layout.keep(row))
            };
            match kept {
                Some(kept) if count > 0 => Update::Put(kept),
                _ => Update::Keep,
            }
        });
        Ok(count)
    }

    /// The values of the pattern's variables, in the order of their numbers, for each row that it
    /// matches: Erlang's `match/2`.
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
    /// The caller may not read, or the term is no pattern.
    pub fn match_pattern(&self, pattern: &Term) -> Result<Vec<Term>> {
        let spec = pattern_spec(pattern, Returns::Bindings, "match")?;
        self.all_found(&spec, Direction::Ascending, "match")
    }

    /// As [`match_pattern`](Self::match_pattern), in chunks: Erlang's `match/3`.
    ///
    /// # Errors
    ///
    /// Those of `match_pattern`, or the limit is 0.
    pub fn match_pattern_limit(&self, pattern: &Term, limit: usize) -> Result<Option<Chunk>> {
        let spec = pattern_spec(pattern, Returns::Bindings, "match")?;
        self.first_chunk(spec, limit, Direction::Ascending, "match")
    }

    /// The rows that the pattern matches: Erlang's `match_object/2`.
    ///
    /// # Errors
    ///
    /// The caller may not read, or the term is no pattern.
    pub fn match_object(&self, pattern: &Term) -> Result<Vec<Term>> {
        let spec = pattern_spec(pattern, Returns::Row, "match_object")?;
        self.all_found(&spec, Direction::Ascending, "match_object")
    }

    /// As [`match_object`](Self::match_object), in chunks: Erlang's `match_object/3`.
    ///
    /// # Errors
    ///
    /// Those of `match_object`, or the limit is 0.
    pub fn match_object_limit(&self, pattern: &Term, limit: usize) -> Result<Option<Chunk>> {
        let spec = pattern_spec(pattern, Returns::Row, "match_object")?;
        self.first_chunk(spec, limit, Direction::Ascending, "match_object")
    }

    /// Deletes the rows that the pattern matches: Erlang's `match_delete/2`.
    ///
    /// # Errors
    ///
    /// The caller may not write, or the term is no pattern.
    pub fn match_delete(&self, pattern: &Term) -> Result<()> {
        let spec = pattern_spec(pattern, Returns::True, "match_delete")?;
        self.delete_found(&spec, "match_delete").map(|_| ())
    }

    fn all_found(
        &self,
        spec: &MatchSpec,
        direction: Direction,
        function: &'static str,
    ) -> Result<Vec<Term>> {
        let mut all = Vec::new();
        self.found(function, spec, direction, &mut |found| {
            all.push(found);
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Calls `visit` with what the specification makes of each row that it matches.
    fn found(
        &self,
        function: &'static str,
        spec: &MatchSpec,
        direction: Direction,
        visit: &mut dyn FnMut(Term) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check(Right::Read, function)?;
        let mut matcher = spec.matcher();
        self.visit_keys(function, spec, direction, &mut |key, kept| {
            self.run_rows(&mut matcher, key, kept, visit)
        })
    }

    /// Calls `visit` with what the specification makes of each row with this key that it matches.
    #[inline]
    pub(super) fn run_rows(
        &self,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
        visit: &mut dyn FnMut(Term) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let layout = &self.shared.layout;
        if !layout.is_bag {
            let found = layout.run(matcher, key, kept);
            return found.map_or(ControlFlow::Continue(()), visit);
        }
        let rows = layout.rows(key, kept);
        let mut found = rows.iter().filter_map(|row| matcher.run(row));
        found.try_for_each(visit)
    }

    /// Calls `visit` with each key that is there and that the specification can match.
    fn visit_keys(
        &self,
        function: &'static str,
        spec: &MatchSpec,
        direction: Direction,
        visit: &mut dyn FnMut(&Term, &Kept) -> ControlFlow<()>,
    ) -> Result<()> {
        let visit = &mut |key: &Term, kept: &Kept, _| visit(key, kept);
        let keys = Keys::of(self, spec);
        let visited = keys.visit(self, &Progress::Begun, direction, LAST_BATCH, visit);
        visited.map_err(|_| no_table(function))
    }

    /// Calls `change` with each key that is there and that the specification can match, until it
    /// fails. Returns how many rows it says that it has changed.
    fn change_found(
        &self,
        function: &'static str,
        spec: &MatchSpec,
        change: &mut dyn FnMut(&Term, &Kept) -> Result<usize>,
    ) -> Result<usize> {
        let mut changed = Ok(0);
        self.visit_keys(function, spec, Direction::Ascending, &mut |key, kept| {
            add(&mut changed, change(key, kept))
        })?;
        changed
    }

    fn first_chunk(
        &self,
        spec: MatchSpec,
        limit: usize,
        direction: Direction,
        function: &'static str,
    ) -> Result<Option<Chunk>> {
        self.check(Right::Read, function)?;
        let start = self.begin(spec, Some(limit), direction, function)?;
        self.next_chunk(start, function)
    }

    /// Where a search begins.
    pub(super) fn begin(
        &self,
        spec: MatchSpec,
        limit: Option<usize>,
        direction: Direction,
        function: &'static str,
    ) -> Result<Continuation> {
        if let Some(limit) = limit
            && !is_limit(limit)
        {
            let problem = Problem::NotALimit(Term::from(limit));
            return Err(BadArgument::new(function, 3, problem));
        }
        let keys = Keys::of(self, &spec);
        Ok(Continuation {
            table: self.shared.number,
            search: Arc::new((spec, keys)),
            limit: limit.unwrap_or(usize::MAX),
            direction: self.way(direction),
            progress: Progress::Begun,
            left: Vec::new(),
        })
    }

    fn next_chunk(&self, mut at: Continuation, function: &'static str) -> Result<Option<Chunk>> {
        while !self.find(&mut at, usize::MAX, function)? {}
        Ok(at.into_chunk())
    }

    /// Looks at up to `most` more keys for what is to be found, and keeps that in the continuation.
    /// Returns whether that is as much as it shall be, or all.
    pub(super) fn find(
        &self,
        at: &mut Continuation,
        most: usize,
        function: &'static str,
    ) -> Result<bool> {
        let limit = at.limit;
        if at.left.len() < limit {
            let search = Arc::clone(&at.search);
            let (spec, keys) = &*search;
            let mut found = mem::take(&mut at.left);
            let mut matcher = spec.matcher();
            let visit = &mut |key: &Term, kept: &Kept, _| {
                // Those of one key stay together.
                let _ = self.run_rows(&mut matcher, key, kept, &mut |made| {
                    found.push(made);
                    ControlFlow::Continue(())
                });
                if found.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            };
            let sizes = (limit.clamp(FIRST_BATCH, LAST_BATCH).min(most), most);
            let reached = keys.visit_slice(self, &at.progress, at.direction, sizes, visit);
            at.progress = reached.map_err(|_| no_table(function))?;
            at.left = found;
        }
        Ok(at.left.len() >= limit || at.progress == Progress::Done)
    }

    /// Deletes what the specification makes `true` of.
    fn delete_found(&self, spec: &MatchSpec, function: &'static str) -> Result<usize> {
        self.check(Right::Write, function)?;
        if let Some(deleted) = self.delete_ranges(spec, function)? {
            return Ok(deleted);
        }
        let mut matcher = spec.matcher();
        self.change_found(function, spec, &mut |key, kept| {
            self.delete_rows(&mut matcher, key, kept, function)
        })
    }

    /// Removes the ranges of keys in which every row is to be deleted, in one step, and tells how many
    /// rows there were; `None` if rows have to be looked at.
    pub(super) fn delete_ranges(
        &self,
        spec: &MatchSpec,
        function: &'static str,
    ) -> Result<Option<usize>> {
        let shared = &*self.shared;
        if shared.options.kind != Kind::OrderedSet {
            return Ok(None);
        }
        let Some((size, intervals)) = spec.whole_intervals(shared.layout.key_position) else {
            return Ok(None);
        };
        // For nothing nobody is kept waiting; what counts is what is seen alone.
        if !shared.row_sizes.are(size) {
            return Ok(None);
        }
        let _alone = self.enter_alone(function)?;
        if !shared.row_sizes.are(size) {
            return Ok(None);
        }
        let removed = intervals
            .iter()
            .map(|interval| shared.store.remove_range(Span::from(interval)));
        Ok(Some(removed.sum()))
    }

    /// Deletes the rows with this key that the specification makes `true` of, in one step. Returns how
    /// many.
    pub(super) fn delete_rows(
        &self,
        matcher: &mut Matcher<'_>,
        key: &Term,
        kept: &Kept,
        function: &'static str,
    ) -> Result<usize> {
        let layout = &self.shared.layout;
        let goes = |made: Option<Term>| made.is_some_and(|made| is_true(&made));
        // Most rows stay: they are not locked for it.
        let any = if layout.is_bag {
            let rows = layout.rows(key, kept);
            rows.iter().any(|row| goes(matcher.run(row)))
        } else {
            goes(layout.run(matcher, key, kept))
        };
        if !any {
            return Ok(0);
        }
        let _guard = self.enter(function)?;
        Ok(self.retain(key, &mut |row| !goes(matcher.run(row))))
    }
}

/// Adds what one more key came to; whether to go on.
pub(super) fn add(all: &mut Result<usize>, one: Result<usize>) -> ControlFlow<()> {
    match (&mut *all, one) {
        (Ok(count), Ok(more)) => {
            *count += more;
            ControlFlow::Continue(())
        }
        (_, one) => {
            *all = one;
            ControlFlow::Break(())
        }
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
