//! Where a search in chunks goes on.

use super::error::{BadArgument, Problem, Result};
use super::note::Notes;
use super::search::{Keys, Progress, Search};
use super::select::is_limit;
use super::traversal::Action;
use super::{Table, options};
use crate::match_spec::MatchSpec;
use crate::term::Term;
use std::mem;
use tremula_index::Direction;
use tremula_sync::Arc;

/// A part of the results of a search: as many as the limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Chunk {
    /// The results, at least one.
    pub found: Vec<Term>,
    /// Where to go on; `None` at the end of the table.
    pub rest: Option<Continuation>,
}

/// Where a `select` in chunks goes on: [`Table::select_next`]. It keeps no lock and no reference
/// into the table, which may change meanwhile: the next chunk begins behind the last key of this
/// one. As in Erlang it can become a term without the specification, be sent away, and be repaired.
///
/// ```
/// use tremula_table::{Kind, MatchSpec, Options, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new().kind(Kind::OrderedSet))?;
/// table.insert("[{1}, {2}, {3}]".parse()?)?;
/// let spec = MatchSpec::compile(&"[{{'$1'}, [], ['$1']}]".parse()?)?;
/// let first = table.select_limit(&spec, 2)?.unwrap();
/// let sent: Term = first.rest.unwrap().to_term();
///
/// table.delete_key(&Term::from(2))?;
/// let next = table.select_next(&table.repair_continuation(&sent, &spec)?)?.unwrap();
/// assert_eq!(next.found, [Term::from(3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Continuation {
    /// The table's number.
    table: u64,
    by: Arc<(MatchSpec, Keys)>,
    pub(super) search: Search,
}

impl Continuation {
    pub(super) fn begin(table: &Table, spec: MatchSpec, action: Action) -> Self {
        let keys = Keys::of(table, &spec);
        Self {
            table: table.shared.number,
            by: Arc::new((spec, keys)),
            search: Search::new(table, action),
        }
    }

    /// Visits more keys, as long as it may; see [`Search::go_on`].
    pub(super) fn step(
        &mut self,
        table: &Table,
        notes: &mut Notes<'_>,
        function: &'static str,
        may_go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        if self.table != table.shared.number {
            return Err(BadArgument::new(function, 1, Problem::NotItsContinuation));
        }
        let ((spec, keys), search) = (&*self.by, &mut self.search);
        if search.progress != Progress::Begun {
            search.check_caller(table, function)?;
        } else if search.begin(table, notes, function, spec)? {
            return Ok(true);
        }
        search.go_on(table, notes, function, (spec, keys), may_go_on)
    }

    /// Searches until the chunk is full, or to the end.
    pub(super) fn next_chunk(
        mut self,
        table: &Table,
        function: &'static str,
    ) -> Result<Option<Chunk>> {
        // A search in chunks changes nothing.
        self.step(table, &mut Notes::nobody(), function, &mut || true)?;
        Ok(self.into_chunk())
    }

    /// The results, and where to go on.
    pub(super) fn into_chunk(mut self) -> Option<Chunk> {
        let search = &mut self.search;
        let mut found = mem::take(&mut search.found);
        if found.is_empty() {
            return None;
        }
        search.found = found.split_off(search.limit.min(found.len()));
        let is_over = search.progress == Progress::Done && search.found.is_empty();
        let rest = (!is_over).then_some(self);
        Some(Chunk { found, rest })
    }

    /// The continuation without its specification, as a term for [`Table::repair_continuation`].
    #[must_use]
    pub fn to_term(&self) -> Term {
        let search = &self.search;
        let progress = match &search.progress {
            Progress::Begun => Term::from(0),
            Progress::Behind(key) => Term::tuple([key.clone()]),
            Progress::Done => Term::NIL,
        };
        Term::tuple([
            super::table_reference(self.table).into(),
            Term::from(search.direction == Direction::Descending),
            Term::from(search.limit),
            progress,
            Term::list(search.found.clone()),
        ])
    }
}

impl Table {
    /// A continuation of this table from its [term](Continuation::to_term) and specification:
    /// Erlang's `repair_continuation/2`. Fails if the term is no continuation of this table.
    pub fn repair_continuation(&self, term: &Term, spec: &MatchSpec) -> Result<Continuation> {
        self.continuation(term, spec).ok_or_else(|| {
            let problem = Problem::NotItsContinuation;
            BadArgument::new("repair_continuation", 1, problem)
        })
    }

    fn continuation(&self, term: &Term, spec: &MatchSpec) -> Option<Continuation> {
        let Term::Tuple(parts) = term else {
            return None;
        };
        let [table, backwards, Term::Integer(limit), progress, left] = parts.elements() else {
            return None;
        };
        let progress = match progress {
            Term::Integer(0) => Progress::Begun,
            Term::Tuple(key) => match key.elements() {
                [key] => Progress::Behind(key.clone()),
                _ => return None,
            },
            end if end.is_nil() => Progress::Done,
            _ => return None,
        };
        let reverse = options::boolean(backwards)?;
        let limit = usize::try_from(*limit).ok();
        let limit = Some(limit.filter(|limit| is_limit(*limit))?);
        if !table.is_identical(&self.id().into()) {
            return None;
        }
        let mut at = Continuation::begin(self, spec.clone(), Action::Select { reverse, limit });
        at.search.progress = progress;
        at.search.found = options::proper(left)?.iter().cloned().collect();
        Some(at)
    }
}
