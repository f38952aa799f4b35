//! Searches in slices, so that no one of them holds a thread for long.

use super::Table;
use super::continuation::{Chunk, Continuation};
use super::error::Result;
use crate::match_spec::MatchSpec;
use crate::term::Term;
use std::mem;
use std::ops::ControlFlow;

/// What a [`Traversal`] does with the rows that its match specification picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Finds what the specification makes of them: [`Table::select`] and [`Table::select_reverse`], or
    /// with a limit the first chunk of it: [`Table::select_limit`] and
    /// [`Table::select_reverse_limit`].
    Select {
        /// From the last row to the first.
        reverse: bool,
        /// How much makes a chunk.
        limit: Option<usize>,
    },
    /// Counts those of which it says `true`: [`Table::select_count`].
    Count,
    /// Deletes those of which it says `true`: [`Table::select_delete`].
    Delete,
    /// Replaces them: [`Table::select_replace`].
    Replace,
}

/// What came of a [`Traversal`].
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Everything that was found.
    Found(Vec<Term>),
    /// What was found, as much as a chunk has; `None` if nothing.
    Chunk(Option<Chunk>),
    /// How many rows were counted, deleted or replaced.
    Count(usize),
}

/// A search that looks at some rows at a time: between two steps its thread may do something else.
///
/// It returns the same result as the one-shot function of [`Table`], and holds no lock between steps.
/// A `select` is of one moment where the one-shot function is, if the first step covers all its rows.
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
///     match traversal.step(10)? {
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
    /// A search that goes on in [steps](Traversal::step). Looks at nothing yet: what is wrong with it
    /// is the error of its first step.
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
    /// The same search, whose errors name this function of Erlang's. Without it they name the one that
    /// the [`Action`] is of.
    #[must_use]
    pub fn named(self, function: &'static str) -> Self {
        Self { function, ..self }
    }

    /// Looks at up to `rows` more rows, one at least (in a bag: at the rows of `rows` keys). Breaks
    /// with the outcome when all that matter have been looked at.
    ///
    /// Deleting a whole range of keys, as [`Table::select_delete`] tells, is one step, however long
    /// the range.
    ///
    /// # Errors
    ///
    /// Those of the function that does the same at once (see [`Action`]); the continuation is another
    /// table's; or the table has been deleted since. What was deleted or replaced by then stays so.
    pub fn step(mut self, rows: usize) -> Result<ControlFlow<Outcome, Self>> {
        if !self.at.step(&self.table, self.function, rows.max(1))? {
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
