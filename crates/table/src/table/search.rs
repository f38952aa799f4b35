//! The driver of every function with a pattern or a match specification: which keys a search
//! visits, and what it does with their rows.
//!
//! A method of [`Table`] runs a [`Search`] to its end at once. A [`Traversal`](super::Traversal)
//! runs it in steps. A search in chunks keeps it in a
//! [`Continuation`](super::Continuation).

use super::error::{BadArgument, Problem, Result};
use super::gate::Deleted;
use super::note::Notes;
use super::select::{is_limit, is_true, within_bounds};
use super::store::{Edge, Span};
use super::traversal::Action;
use super::{Kept, Kind, Right, Table, no_table};
use crate::match_spec::{KeyInterval, MatchSpec};
use crate::term::Term;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use tremula_index::{Direction, FIRST_BATCH, LAST_BATCH};

/// The keys that a specification can match, in one table.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    All,
    /// Single keys, ascending in the map order.
    Exact(Vec<Term>),
    /// Disjoint intervals, ascending in the term order.
    Intervals(Vec<KeyInterval>),
}

/// How far a search has got.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    Begun,
    /// This key and all keys before it have been visited.
    Behind(Term),
    /// No key is left.
    Done,
}

/// A search under way.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) action: Action,
    pub(super) direction: Direction,
    /// The most results in a chunk; `usize::MAX` without a limit.
    pub(super) limit: usize,
    pub(super) progress: Progress,
    /// Whether it has been interrupted within this chunk.
    pub(super) was_interrupted: bool,
    /// The results of a `select`. Between two chunks: in a bag, the results of the last key's rows
    /// that exceed the limit.
    pub(super) found: Vec<Term>,
    /// The number of rows counted, deleted or replaced.
    pub(super) count: usize,
}

impl Search {
    /// A search that has visited no key yet.
    #[inline]
    pub(super) fn new(table: &Table, action: Action) -> Self {
        let (direction, limit) = match action {
            Action::Select { reverse, limit } if reverse => (Direction::Descending, limit),
            Action::Select { limit, .. } => (Direction::Ascending, limit),
            Action::Count | Action::Delete | Action::Replace => (Direction::Ascending, None),
        };
        Self {
            action,
            direction: table.way(direction),
            limit: limit.unwrap_or(usize::MAX),
            progress: Progress::Begun,
            was_interrupted: false,
            found: Vec::new(),
            count: 0,
        }
    }

    /// Checks the caller and the arguments before the search visits its first key. Returns whether
    /// the search is over already, because it has deleted whole ranges of keys. Errors name
    /// `function`.
    pub(super) fn begin(
        &mut self,
        table: &Table,
        notes: &mut Notes<'_>,
        function: &'static str,
        spec: &MatchSpec,
    ) -> Result<bool> {
        self.check_caller(table, function)?;
        match self.action {
            Action::Select {
                limit: Some(limit), ..
            } if !is_limit(limit) => {
                let problem = Problem::NotALimit(Term::from(limit));
                return Err(BadArgument::new(function, 3, problem));
            }
            Action::Delete => {
                if let Some(deleted) = table.delete_ranges(notes, spec, function)? {
                    self.count = deleted;
                    self.progress = Progress::Done;
                    return Ok(true);
                }
            }
            Action::Replace => table.check_replacement(function, spec)?,
            Action::Select { .. } | Action::Count => {}
        }
        Ok(false)
    }

    /// Visits more of the keys that the specification can match: at least one, and further ones as
    /// long as `may_go_on` returns true after each. Returns whether the search is over or its chunk
    /// full. Errors name `function`.
    pub(super) fn go_on(
        &mut self,
        table: &Table,
        notes: &mut Notes<'_>,
        function: &'static str,
        (spec, keys): (&MatchSpec, &Keys),
        may_go_on: &mut dyn FnMut() -> bool,
    ) -> Result<bool> {
        let (action, direction, limit) = (self.action, self.direction, self.limit);
        if self.found.len() < limit {
            let (found, count, progress) = (&mut self.found, &mut self.count, &self.progress);
            // A search that is interrupted often must not read many more rows than it visits.
            let first_batch = match self.was_interrupted {
                false => limit.clamp(FIRST_BATCH, LAST_BATCH),
                true => FIRST_BATCH,
            };
            let sizes = (first_batch, may_go_on);
            let mut matcher = spec.matcher().bounded(table.shared.bounds);
            let mut result = Ok(());
            let reached = match action {
                Action::Select { .. } => {
                    keys.visit(table, progress, direction, sizes, |key, kept| {
                        // The results of one key stay together, even beyond the limit.
                        table.run_rows(&mut matcher, key, kept, |made| found.push(made));
                        if found.len() < limit && matcher.reached().is_none() {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    })
                }
                Action::Count => keys.visit(table, progress, direction, sizes, |key, kept| {
                    let counts = |made| *count += usize::from(is_true(&made));
                    table.run_rows(&mut matcher, key, kept, counts);
                    match matcher.reached() {
                        None => ControlFlow::Continue(()),
                        Some(_) => ControlFlow::Break(()),
                    }
                }),
                Action::Delete | Action::Replace => {
                    keys.visit(table, progress, direction, sizes, |key, kept| {
                        let changed = if action == Action::Delete {
                            table.delete_rows(notes, &mut matcher, key, kept, function)
                        } else {
                            table.replace_rows(notes, &mut matcher, key, kept, function)
                        };
                        match changed {
                            Ok(rows) => *count += rows,
                            Err(error) => {
                                result = Err(error);
                                return ControlFlow::Break(());
                            }
                        }
                        ControlFlow::Continue(())
                    })
                }
            };
            self.progress = reached.map_err(|_| no_table(function))?;
            result?;
            within_bounds(&matcher, function)?;
        }
        let is_over = self.found.len() >= limit || self.progress == Progress::Done;
        self.was_interrupted = !is_over;
        Ok(is_over)
    }

    /// Fails if the caller may not do this. Every step checks it.
    pub(super) fn check_caller(&self, table: &Table, function: &'static str) -> Result<()> {
        let right = match self.action {
            Action::Select { .. } | Action::Count => Right::Read,
            Action::Delete | Action::Replace => Right::Write,
        };
        table.check(right, function)
    }
}

/// Visits a key and what is kept under it; the flag says that no other key can follow.
type Visit<'v> = &'v mut dyn FnMut(&Term, &Kept, bool) -> ControlFlow<()>;

impl Keys {
    /// The keys that `spec` can match in this table.
    pub(super) fn of(table: &Table, spec: &MatchSpec) -> Self {
        let position = table.shared.layout.key_position;
        match table.shared.options.kind {
            Kind::OrderedSet => Self::Intervals(spec.key_intervals(position)),
            _ => spec.exact_keys(position).map_or(Self::All, Self::Exact),
        }
    }

    /// Calls `visit` with each of these keys that the table has, behind `progress`, without holding
    /// a lock, until it breaks or `may_go_on` is false after a key. Returns how far it has got.
    fn visit(
        &self,
        table: &Table,
        progress: &Progress,
        direction: Direction,
        (first_batch, may_go_on): (usize, &mut dyn FnMut() -> bool),
        mut visit: impl FnMut(&Term, &Kept) -> ControlFlow<()>,
    ) -> std::result::Result<Progress, Deleted> {
        let mut reached = Progress::Done;
        let visit = &mut |key: &Term, kept: &Kept, is_last: bool| {
            if visit(key, kept).is_continue() && may_go_on() {
                return ControlFlow::Continue(());
            }
            if !is_last {
                reached = Progress::Behind(key.clone());
            }
            ControlFlow::Break(())
        };
        self.visit_all(table, progress, direction, first_batch, visit)?;
        Ok(reached)
    }

    /// As [`visit`](Self::visit), but only until `visit` breaks. Reads neighbouring keys in
    /// batches, the first of `first_batch`.
    fn visit_all(
        &self,
        table: &Table,
        progress: &Progress,
        direction: Direction,
        first_batch: usize,
        visit: Visit<'_>,
    ) -> std::result::Result<(), Deleted> {
        let behind = match progress {
            Progress::Begun => None,
            Progress::Behind(key) => Some(key),
            Progress::Done => return Ok(()),
        };
        match self {
            Self::All => {
                let low = behind.map_or(Edge::Open, Edge::Beyond);
                let span = Span { low, ..Span::ALL };
                let visit = &mut |key: &Term, kept: &Kept| visit(key, kept, false);
                table.entries(span, direction, first_batch, visit)
            }
            Self::Exact(keys) => {
                let first = behind.map_or(0, |behind| {
                    keys.partition_point(|key| key.cmp_exact(behind) != Ordering::Greater)
                });
                for (place, key) in keys.iter().enumerate().skip(first) {
                    let is_last = place + 1 == keys.len();
                    if visit_key(table, key, is_last, visit)?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
            Self::Intervals(all) => {
                let count = all.len();
                let mut going = ControlFlow::Continue(());
                for number in 0..count {
                    let interval = match direction {
                        Direction::Ascending => &all[number],
                        Direction::Descending => &all[count - 1 - number],
                    };
                    let Some(span) = rest(interval, behind, direction) else {
                        continue;
                    };
                    if let Some(key) = interval.key() {
                        going = visit_key(table, key, number + 1 == count, visit)?;
                    } else {
                        table.entries(span, direction, first_batch, &mut |key, kept| {
                            going = visit(key, kept, false);
                            going
                        })?;
                    }
                    if going.is_break() {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Visits one key, if the table has it.
fn visit_key(
    table: &Table,
    key: &Term,
    is_last: bool,
    visit: Visit<'_>,
) -> std::result::Result<ControlFlow<()>, Deleted> {
    let kept = table.shared.kept(key)?;
    Ok(kept.map_or(ControlFlow::Continue(()), |kept| visit(key, &kept, is_last)))
}

/// The part of an interval that is behind a key in this direction; `None` if no key can be in it.
fn rest<'a>(
    interval: &'a KeyInterval,
    behind: Option<&'a Term>,
    direction: Direction,
) -> Option<Span<'a>> {
    let mut span = Span::from(interval);
    let Some(key) = behind else {
        return Some(span);
    };
    // How the ends of the interval compare with the key.
    let low = interval
        .low
        .as_ref()
        .map_or(Ordering::Less, |low| low.cmp_key(key));
    let high = interval
        .high
        .as_ref()
        .map_or(Ordering::Greater, |high| high.cmp_key(key));
    let is_single = interval.key().is_some();
    match direction {
        Direction::Ascending if high == Ordering::Less => return None,
        Direction::Descending if low == Ordering::Greater => return None,
        // The interval consists of this key.
        _ if is_single && low != high => return None,
        Direction::Ascending if low == Ordering::Less => span.low = Edge::Beyond(key),
        Direction::Descending if high == Ordering::Greater => span.high = Edge::Beyond(key),
        _ => (),
    }
    Some(span)
}
