//! Searches in steps, so that no step occupies its thread for long.

use super::Table;
use super::continuation::{Chunk, Continuation};
use super::effect::Sink;
use super::error::Result;
use super::note::Notes;
use crate::match_spec::MatchSpec;
use crate::term::Term;
use std::mem;
use std::ops::ControlFlow;

/// What a [`Traversal`] does with the rows that its match specification picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Finds what the specification makes of them: [`Table::select`], [`Table::select_reverse`];
    /// with a limit the first chunk: [`Table::select_limit`], [`Table::select_reverse_limit`].
    Select {
        /// Whether to go from the last row to the first.
        reverse: bool,
        /// The most results in a chunk.
        limit: Option<usize>,
    },
    /// Counts those of which it makes `true`: [`Table::select_count`].
    Count,
    /// Deletes those of which it makes `true`: [`Table::select_delete`].
    Delete,
    /// Replaces them: [`Table::select_replace`].
    Replace,
}

/// The result of a [`Traversal`]: each [`Action`] has one of these.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All results.
    Found(Vec<Term>),
    /// A chunk of results; `None` without a result.
    Chunk(Option<Chunk>),
    /// How many rows were counted, deleted or replaced.
    Count(usize),
}

/// A search that visits some rows in each step, so that its thread may do something else between
/// steps.
///
/// Returns the same result as the one-shot method of [`Table`], and holds no lock between steps. A
/// `select` whose first step covers all its rows is a [snapshot](super#consistency) where the
/// one-shot method is one.
///
/// ```
/// use std::ops::ControlFlow;
/// use tremula_table::{Action, Kind, MatchSpec, Options, Outcome, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new().kind(Kind::OrderedSet))?;
/// let rows: Vec<_> = (0..100).map(|key| Term::tuple([Term::from(key)])).collect();
/// table.insert(Term::list(rows))?;
/// let spec = MatchSpec::compile(&"[{{'$1'}, [{'==', {'rem', '$1', 30}, 7}], [true]}]".parse()?)?;
/// let mut traversal = table.traverse(spec, Action::Count);
/// let mut steps = 1;
/// let count = loop {
///     let mut left = 10; // elsewhere, a time
///     let mut may_go_on = || {
///         left -= 1;
///         left > 0
///     };
///     match traversal.step(&mut may_go_on)? {
///         ControlFlow::Continue(rest) => traversal = rest,
///         ControlFlow::Break(Outcome::Count(count)) => break count,
///         ControlFlow::Break(other) => panic!("{other:?} is no count"),
///     }
///     steps += 1; // elsewhere, something else is done meanwhile
/// };
/// assert_eq!(count, 4);
/// assert!(steps >= 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Traversal {
    table: Table,
    at: Continuation,
    function: &'static str,
}

impl Table {
    /// Begins a search in [steps](Traversal::step). Visits no row yet: the first step reports what
    /// is wrong with the arguments.
    #[must_use]
    pub fn traverse(&self, spec: MatchSpec, action: Action) -> Traversal {
        let function = match action {
            Action::Select { .. } => "select",
            Action::Count => "select_count",
            Action::Delete => "select_delete",
            Action::Replace => "select_replace",
        };
        Traversal {
            table: self.clone(),
            at: Continuation::begin(self, spec, action),
            function,
        }
    }

    /// The search for the next chunk: [`select_next`](Self::select_next) in steps.
    #[must_use]
    pub fn traverse_on(&self, continuation: &Continuation) -> Traversal {
        Traversal {
            table: self.clone(),
            at: continuation.clone(),
            function: "select",
        }
    }
}

impl Traversal {
    /// The same search, with errors that name this Erlang function instead of that of the
    /// [`Action`].
    #[must_use]
    pub fn named(self, function: &'static str) -> Self {
        Self { function, ..self }
    }

    /// Visits at least one more row, and further rows as long as `may_go_on` returns true after
    /// each (in a bag: after all rows of a key). Breaks with the outcome when the search is over.
    /// [`Table::select_delete`] of a whole range
    /// of keys is one step, however long the range.
    ///
    /// # Errors
    ///
    /// Those of the one-shot method (see [`Action`]); the continuation is another table's; or the
    /// table has been deleted since. What earlier steps deleted or replaced stays so.
    pub fn step(self, mut may_go_on: impl FnMut() -> bool) -> Result<ControlFlow<Outcome, Self>> {
        self.go_on(&mut Notes::nobody(), &mut may_go_on)
    }

    /// As [`step`](Self::step), and reports to `sink` what it deletes or replaces: each key in a
    /// step of its own, and whole ranges of keys in one step. One search may report to a different
    /// sink in each step.
    ///
    /// # Errors
    ///
    /// Those of [`step`](Self::step).
    pub fn step_noting(
        self,
        sink: &mut dyn Sink,
        mut may_go_on: impl FnMut() -> bool,
    ) -> Result<ControlFlow<Outcome, Self>> {
        self.go_on(&mut Notes::to(sink), &mut may_go_on)
    }

    fn go_on(
        mut self,
        notes: &mut Notes<'_>,
        may_go_on: &mut dyn FnMut() -> bool,
    ) -> Result<ControlFlow<Outcome, Self>> {
        if !self.at.step(&self.table, notes, self.function, may_go_on)? {
            return Ok(ControlFlow::Continue(self));
        }
        let search = &mut self.at.search;
        Ok(ControlFlow::Break(match search.action {
            Action::Select { limit: None, .. } => Outcome::Found(mem::take(&mut search.found)),
            Action::Select { .. } => Outcome::Chunk(self.at.into_chunk()),
            Action::Count | Action::Delete | Action::Replace => Outcome::Count(search.count),
        }))
    }
}
