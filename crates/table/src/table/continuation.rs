//! Where a search in chunks goes on.

use super::error::{BadArgument, Problem, Result};
use super::search::{Keys, Progress};
use super::select::is_limit;
use super::{Table, options};
use crate::match_spec::MatchSpec;
use crate::term::Term;
use std::mem;
use tremula_index::Direction;
use tremula_sync::Arc;

/// A part of what a specification picks, as much as was asked for at once.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// What was found, one at least.
    pub found: Vec<Term>,
    /// Where to go on; `None` at the end of the table.
    pub rest: Option<Continuation>,
}

/// Where a `select` in chunks goes on: [`Table::select_next`]. It holds on to nothing in the table,
/// which may change meanwhile: the next chunk begins behind the last key of this one.
///
/// As a term it can be sent away and come back, without the specification, as in Erlang.
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
    pub(super) table: u64,
    pub(super) search: Arc<(MatchSpec, Keys)>,
    pub(super) limit: usize,
    pub(super) direction: Direction,
    pub(super) progress: Progress,
    /// What the rows of the last key gave beyond the limit: in bags only.
    pub(super) left: Vec<Term>,
}

impl Continuation {
    /// What was found, and where to go on.
    pub(super) fn into_chunk(mut self) -> Option<Chunk> {
        let mut found = mem::take(&mut self.left);
        if found.is_empty() {
            return None;
        }
        self.left = found.split_off(self.limit.min(found.len()));
        let is_over = self.progress == Progress::Done && self.left.is_empty();
        let rest = (!is_over).then_some(self);
        Some(Chunk { found, rest })
    }

    /// The continuation without its specification, as a term of no meaning but to
    /// [`Table::repair_continuation`].
    #[must_use]
    pub fn to_term(&self) -> Term {
        let progress = match &self.progress {
            Progress::Begun => Term::from(0),
            Progress::Behind(key) => Term::tuple([key.clone()]),
            Progress::Done => Term::NIL,
        };
        Term::tuple([
            super::table_reference(self.table).into(),
            Term::from(self.direction == Direction::Descending),
            Term::from(self.limit),
            progress,
            Term::list(self.left.clone()),
        ])
    }
}

impl Table {
    /// A continuation of this table from its [term](Continuation::to_term), with its specification:
    /// Erlang's `repair_continuation/2`.
    ///
    /// # Errors
    ///
    /// The term is no continuation of this table.
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
        let direction = if options::boolean(backwards)? {
            Direction::Descending
        } else {
            Direction::Ascending
        };
        if !table.is_identical(&self.id().into()) {
            return None;
        }
        Some(Continuation {
            table: self.shared.number,
            search: Arc::new((spec.clone(), Keys::of(self, spec))),
            limit: usize::try_from(*limit)
                .ok()
                .filter(|limit| is_limit(*limit))?,
            direction: self.way(direction),
            progress,
            left: options::proper(left)?.iter().cloned().collect(),
        })
    }
}
