//! `select`, `match` and their kin: rows picked by a match specification or a pattern.

use super::continuation::{Chunk, Continuation};
use super::error::{BadArgument, Problem, Result};
use super::search::{Keys, Progress};
use super::{Kept, Kind, Right, Table, no_table};
use crate::match_spec::{MatchSpec, Returns};
use crate::term::{Atom, Term, Tuple};
use std::ops::ControlFlow;
use std::sync::Arc;
use tremula_index::{Direction, Update};

impl Table {
    /// What the specification makes of each row that it matches, in an `ordered_set` in order:
    /// Erlang's `select/2`. Not of one moment; see the [module](super).
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
    /// The caller may not read, or the limit is 0.
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
        self.chunk(continuation.clone(), FUNCTION)
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
    /// The caller may not write, the table is a `bag`, or what is to be put in a row's place is no
    /// row with the same key: rows before it have been replaced then.
    pub fn select_replace(&self, spec: &MatchSpec) -> Result<usize> {
        const FUNCTION: &str = "select_replace";
        self.check(Right::Write, FUNCTION)?;
        let kind = self.shared.options.kind;
        if kind == Kind::Bag {
            return Err(BadArgument::new(FUNCTION, 1, Problem::TableType(kind)));
        }
        let layout = &self.shared.layout;
        let mut matcher = spec.matcher();
        let mut replaced = Ok(0);
        self.visit_keys(FUNCTION, spec, Direction::Ascending, &mut |key, kept| {
            // Most rows stay: they are not locked for it.
            let rows = layout.rows(key, kept);
            if !rows.iter().any(|row| matcher.run(row).is_some()) {
                return ControlFlow::Continue(());
            }
            let made = self
                .enter(FUNCTION)
                .and_then(|_guard| self.replace_rows(key, &mut |row| matcher.run(row)));
            match (&mut replaced, made) {
                (Ok(count), Ok(made)) => {
                    *count += made;
                    ControlFlow::Continue(())
                }
                (replaced, made) => {
                    *replaced = made;
                    ControlFlow::Break(())
                }
            }
        })?;
        replaced
    }

    /// Replaces rows with this key by what `make` makes of them, all or none; the caller is in the
    /// gate. Returns how many.
    fn replace_rows(
        &self,
        key: &Term,
        make: &mut dyn FnMut(&Tuple) -> Option<Term>,
    ) -> Result<usize> {
        let layout = &self.shared.layout;
        let mut result = Ok(0);
        self.shared.store.update(key.clone(), &mut |kept| {
            let Some(kept) = kept else {
                return Update::Keep;
            };
            let mut count = 0;
            let mut rows = layout.rows(key, kept);
            for row in &mut rows {
                let Some(made) = make(row) else { continue };
                match self.shared.checked_row(&made) {
                    Some(new) if layout.key_of(new).is_identical(layout.key_of(row)) => {
                        *row = new.clone();
                        count += 1;
                    }
                    _ => {
                        let row = row.clone().into();
                        let problem = Problem::KeyNotKept { row, made };
                        result = Err(BadArgument::new("select_replace", 2, problem));
                        return Update::Keep;
                    }
                }
            }
            result = Ok(count);
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
        result
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
        let layout = &self.shared.layout;
        let mut matcher = spec.matcher();
        self.visit_keys(function, spec, direction, &mut |key, kept| {
            if !layout.is_bag {
                let found = matcher.run(&layout.row(key, kept));
                return found.map_or(ControlFlow::Continue(()), &mut *visit);
            }
            let rows = layout.rows(key, kept);
            let mut found = rows.iter().filter_map(|row| matcher.run(row));
            found.try_for_each(&mut *visit)
        })
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
        let visited = Keys::of(self, spec).visit(self, &Progress::Begun, direction, visit);
        visited.map_err(|_| no_table(function))
    }

    fn first_chunk(
        &self,
        spec: MatchSpec,
        limit: usize,
        direction: Direction,
        function: &'static str,
    ) -> Result<Option<Chunk>> {
        self.check(Right::Read, function)?;
        if limit == 0 {
            let problem = Problem::NotALimit(Term::from(limit));
            return Err(BadArgument::new(function, 3, problem));
        }
        let keys = Keys::of(self, &spec);
        let start = Continuation {
            table: self.shared.number,
            search: Arc::new((spec, keys)),
            limit,
            direction: self.way(direction),
            progress: Progress::Begun,
            left: Vec::new(),
        };
        self.chunk(start, function)
    }

    /// The next chunk.
    fn chunk(&self, mut at: Continuation, function: &'static str) -> Result<Option<Chunk>> {
        let layout = &self.shared.layout;
        let search = Arc::clone(&at.search);
        let (spec, keys) = &*search;
        let mut found = std::mem::take(&mut at.left);
        let mut progress = at.progress.clone();
        if found.len() < at.limit {
            let mut matcher = spec.matcher();
            let visit = &mut |key: &Term, kept: &Kept, is_last: bool| {
                if layout.is_bag {
                    let rows = layout.rows(key, kept);
                    found.extend(rows.iter().filter_map(|row| matcher.run(row)));
                } else {
                    found.extend(matcher.run(&layout.row(key, kept)));
                }
                if found.len() < at.limit {
                    return ControlFlow::Continue(());
                }
                progress = if is_last {
                    Progress::Done
                } else {
                    Progress::Behind(key.clone())
                };
                ControlFlow::Break(())
            };
            let visited = keys.visit(self, &at.progress, at.direction, visit);
            visited.map_err(|_| no_table(function))?;
            if found.len() < at.limit {
                progress = Progress::Done;
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        at.left = found.split_off(at.limit.min(found.len()));
        at.progress = progress;
        let is_over = at.progress == Progress::Done && at.left.is_empty();
        let rest = (!is_over).then_some(at);
        Ok(Some(Chunk { found, rest }))
    }

    /// Deletes what the specification makes `true` of.
    fn delete_found(&self, spec: &MatchSpec, function: &'static str) -> Result<usize> {
        self.check(Right::Write, function)?;
        let layout = &self.shared.layout;
        let mut matcher = spec.matcher();
        let mut deleted = Ok(0);
        self.visit_keys(function, spec, Direction::Ascending, &mut |key, kept| {
            let mut goes = |row: &Tuple| matcher.run(row).is_some_and(|made| is_true(&made));
            // Most rows stay: they are not locked for it.
            let any = if layout.is_bag {
                layout.rows(key, kept).iter().any(&mut goes)
            } else {
                goes(&layout.row(key, kept))
            };
            if !any {
                return ControlFlow::Continue(());
            }
            let gone = self
                .enter(function)
                .map(|_guard| self.retain(key, &mut |row| !goes(row)));
            match (&mut deleted, gone) {
                (Ok(count), Ok(gone)) => {
                    *count += gone;
                    ControlFlow::Continue(())
                }
                (deleted, gone) => {
                    *deleted = gone;
                    ControlFlow::Break(())
                }
            }
        })?;
        deleted
    }
}

fn pattern_spec(pattern: &Term, returns: Returns, function: &'static str) -> Result<MatchSpec> {
    MatchSpec::from_pattern(pattern, returns)
        .map_err(|error| BadArgument::new(function, 2, Problem::Spec(error)))
}

fn is_true(term: &Term) -> bool {
    matches!(term, Term::Atom(atom) if *atom == Atom::TRUE)
}
