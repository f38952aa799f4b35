//! Searches in slices, so that no one of them holds a thread for long.

use super::continuation::{Chunk, Continuation};
use super::error::{BadArgument, Problem, Result};
use super::search::Progress;
use super::select::{add, is_true};
use super::{Kept, Right, Table, no_table};
use crate::match_spec::MatchSpec;
use crate::term::Term;
use std::ops::ControlFlow;
use tremula_index::{Direction, LAST_BATCH};
use tremula_sync::Arc;

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

/// A search that looks at so many rows at a time: between two steps its thread may do something else.
///
/// It gives what the function of [`Table`] gives that does the same at once, and holds no lock between
/// steps. A `select` is of one moment where that is, if the first step is of as many rows.
///
/// ```
/// use std::ops::ControlFlow;
/// use tremula_table::{Action, Kind, MatchSpec, Options, Outcome, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new().kind(Kind::OrderedSet))?;
/// let rows: Vec<_> = (0..100).map(|key| Term::tuple([Term::from(key)])).collect();
/// table.insert(Term::list(rows))?;
/// let spec = MatchSpec::compile(&"[{{'$1'}, [{'==', {'rem', '$1', 30}, 7}], [true]}]".parse()?)?;
/// let mut traversal = table.traverse(spec, Action::Count)?;
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
    task: Task,
}

/// What is done, and what has come of it so far.
#[derive(Clone, Copy, Debug)]
enum Task {
    Select,
    Chunk,
    Count(usize),
    Delete(usize),
    Replace(usize),
}

impl Task {
    const fn function(self) -> &'static str {
        match self {
            Self::Select | Self::Chunk => "select",
            Self::Count(_) => "select_count",
            Self::Delete(_) => "select_delete",
            Self::Replace(_) => "select_replace",
        }
    }

    const fn right(self) -> Right {
        match self {
            Self::Select | Self::Chunk | Self::Count(_) => Right::Read,
            Self::Delete(_) | Self::Replace(_) => Right::Write,
        }
    }
}

impl Table {
    /// Begins a search that goes on in [steps](Traversal::step). Looks at no row yet.
    ///
    /// # Errors
    ///
    /// Those of the function that does it at once; see [`Action`].
    pub fn traverse(&self, spec: MatchSpec, action: Action) -> Result<Traversal> {
        let (task, limit, reverse) = match action {
            Action::Select {
                reverse,
                limit: None,
            } => (Task::Select, None, reverse),
            Action::Select { reverse, limit } => (Task::Chunk, limit, reverse),
            Action::Count => (Task::Count(0), None, false),
            Action::Delete => (Task::Delete(0), None, false),
            Action::Replace => {
                self.check_replacement(&spec)?;
                (Task::Replace(0), None, false)
            }
        };
        self.check(task.right(), task.function())?;
        let direction = if reverse {
            Direction::Descending
        } else {
            Direction::Ascending
        };
        Ok(Traversal {
            at: self.begin(spec, limit, direction, task.function())?,
            table: self.clone(),
            task,
        })
    }

    /// Begins to look for the next chunk of a search: [`select_next`](Self::select_next) in steps.
    ///
    /// # Errors
    ///
    /// The continuation is another table's.
    pub fn traverse_on(&self, continuation: &Continuation) -> Result<Traversal> {
        let task = Task::Chunk;
        if continuation.table != self.shared.number {
            let problem = Problem::NotItsContinuation;
            return Err(BadArgument::new(task.function(), 1, problem));
        }
        Ok(Traversal {
            at: continuation.clone(),
            table: self.clone(),
            task,
        })
    }
}

impl Traversal {
    /// Looks at up to so many rows more, one at least (in a bag: at the rows of so many keys). Breaks
    /// with the outcome when all that matter have been looked at.
    ///
    /// Deleting a whole range of keys, as [`Table::select_delete`] tells, is one step, however long
    /// the range.
    ///
    /// # Errors
    ///
    /// The caller may no longer do it, or the table has been deleted; what was deleted or replaced by
    /// then stays so.
    pub fn step(mut self, rows: usize) -> Result<ControlFlow<Outcome, Self>> {
        let (table, function) = (self.table.clone(), self.task.function());
        table.check(self.task.right(), function)?;
        let most = rows.max(1);
        let is_over = match &mut self.task {
            Task::Select | Task::Chunk => table.find(&mut self.at, most, function)?,
            Task::Count(count) => {
                let counts = &mut |made: Term| {
                    *count += usize::from(is_true(&made));
                    ControlFlow::Continue(())
                };
                slice(
                    &table,
                    &mut self.at,
                    most,
                    function,
                    &mut |matcher, key, kept| {
                        let _ = table.run_rows(matcher, key, kept, counts);
                        Ok(0)
                    },
                )?;
                self.at.progress == Progress::Done
            }
            Task::Delete(count) => {
                let ranges = match self.at.progress {
                    Progress::Begun => table.delete_ranges(&self.at.search.0, function)?,
                    _ => None,
                };
                if let Some(deleted) = ranges {
                    *count = deleted;
                    true
                } else {
                    *count += slice(
                        &table,
                        &mut self.at,
                        most,
                        function,
                        &mut |matcher, key, kept| table.delete_rows(matcher, key, kept, function),
                    )?;
                    self.at.progress == Progress::Done
                }
            }
            Task::Replace(count) => {
                *count += slice(
                    &table,
                    &mut self.at,
                    most,
                    function,
                    &mut |matcher, key, kept| table.replace_rows(matcher, key, kept),
                )?;
                self.at.progress == Progress::Done
            }
        };
        if !is_over {
            return Ok(ControlFlow::Continue(self));
        }
        Ok(ControlFlow::Break(match self.task {
            Task::Select => Outcome::Found(self.at.left),
            Task::Chunk => Outcome::Chunk(self.at.into_chunk()),
            Task::Count(count) | Task::Delete(count) | Task::Replace(count) => {
                Outcome::Count(count)
            }
        }))
    }
}

type Work<'w> =
    &'w mut dyn FnMut(&mut crate::match_spec::Matcher<'_>, &Term, &Kept) -> Result<usize>;

/// Does the work with up to `most` keys more. Returns the sum of what it returned.
fn slice(
    table: &Table,
    at: &mut Continuation,
    most: usize,
    function: &'static str,
    work: Work<'_>,
) -> Result<usize> {
    let search = Arc::clone(&at.search);
    let (spec, keys) = &*search;
    let mut matcher = spec.matcher();
    let mut sum = Ok(0);
    let visit = &mut |key: &Term, kept: &Kept, _| add(&mut sum, work(&mut matcher, key, kept));
    let sizes = (LAST_BATCH.min(most), most);
    let reached = keys.visit_slice(table, &at.progress, at.direction, sizes, visit);
    at.progress = reached.map_err(|_| no_table(function))?;
    sum
}
