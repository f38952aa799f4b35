//! Which keys a match specification needs to see, and going through them.

use super::gate::Deleted;
use super::store::{Edge, Span};
use super::{Kept, Kind, Table};
use crate::match_spec::{KeyInterval, MatchSpec};
use crate::term::Term;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use tremula_index::Direction;

/// The keys that a specification can match.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    All,
    /// One by one, ascending in the map order.
    Exact(Vec<Term>),
    /// In the term order, apart from each other.
    Intervals(Vec<KeyInterval>),
}

/// How far a search has come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    Begun,
    /// This key has been visited, and those before it.
    Behind(Term),
    /// No key is left.
    Done,
}

/// What a visit is shown: a key, what is kept under it, and whether no other key can follow.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&Term, &Kept, bool) -> ControlFlow<()>;

impl Keys {
    /// Those of `spec` in this table.
    pub(super) fn of(table: &Table, spec: &MatchSpec) -> Self {
        let position = table.shared.layout.key_position;
        match table.shared.options.kind {
            Kind::OrderedSet => Self::Intervals(spec.key_intervals(position)),
            _ => spec.exact_keys(position).map_or(Self::All, Self::Exact),
        }
    }

    /// As [`visit`](Self::visit), but stops behind `most` keys, too. Returns how far it has come.
    pub(super) fn visit_slice(
        &self,
        table: &Table,
        progress: &Progress,
        direction: Direction,
        (first_batch, most): (usize, usize),
        visit: Visit<'_>,
    ) -> Result<Progress, Deleted> {
        let mut reached = Progress::Done;
        let mut left = most;
        let visit = &mut |key: &Term, kept: &Kept, is_last: bool| {
            left = left.saturating_sub(1);
            if visit(key, kept, is_last).is_continue() && left > 0 {
                return ControlFlow::Continue(());
            }
            if !is_last {
                reached = Progress::Behind(key.clone());
            }
            ControlFlow::Break(())
        };
        self.visit(table, progress, direction, first_batch, visit)?;
        Ok(reached)
    }

    /// Calls `visit` with each of the keys that is there, from where `progress` is, with no lock
    /// held, until it breaks. Keys side by side are read in batches of which the first has so many.
    pub(super) fn visit(
        &self,
        table: &Table,
        progress: &Progress,
        direction: Direction,
        first_batch: usize,
        visit: Visit<'_>,
    ) -> Result<(), Deleted> {
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

/// Visits one key, if it is there.
fn visit_key(
    table: &Table,
    key: &Term,
    is_last: bool,
    visit: Visit<'_>,
) -> Result<ControlFlow<()>, Deleted> {
    let kept = table.shared.gate.read(|| {
        let mut found = None;
        let read = &mut |kept: &Kept| found = Some(kept.clone());
        table.shared.store.get_with(key, read);
        found
    })?;
    Ok(kept.map_or(ControlFlow::Continue(()), |kept| visit(key, &kept, is_last)))
}

/// What of an interval is behind a key, in this direction; `None` if nothing is.
fn rest<'a>(
    interval: &'a KeyInterval,
    behind: Option<&'a Term>,
    direction: Direction,
) -> Option<Span<'a>> {
    let mut span = Span::from(interval);
    let Some(key) = behind else {
        return Some(span);
    };
    // Where the ends of the interval are as seen from the key.
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
        // It has the key, and no other.
        _ if is_single && low != high => return None,
        Direction::Ascending if low == Ordering::Less => span.low = Edge::Beyond(key),
        Direction::Descending if high == Ordering::Greater => span.high = Edge::Beyond(key),
        _ => (),
    }
    Some(span)
}
