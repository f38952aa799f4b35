//! A snapshot that goes over into the log without a gap.
//!
//! ```text
//!            copied: rows were shown                    not yet
//!   low ├─────────────────────────────────┤ from ├───────────────────────┤ high
//!        events up to `ends` are shown           next part: copied as of `ends`
//! ```
//!
//! # Invariants
//!
//! 1. A part of the snapshot is copied under the locks of its keys, and `ends` is the last number
//!    that was taken then. Numbers are taken under the lock of what they change, so the copy has
//!    every change of its keys up to `ends`, and none behind it.
//! 2. The rows of a part are shown behind all events up to `ends` of the keys before it. So at any
//!    time what was shown is the state of the keys below `from` at one sequence.
//! 3. No row is shown before the log is durable up to `ends`.
//! 4. An event of a key is shown only if its row was, or could have been, shown before: events
//!    behind `ends` of the last part, for the keys below `from`.

use super::{Event, Events, Happened, Since, Span, WatchError};
use crate::database::Database;
use crate::store::Store;
use crate::values::Text;
use crate::{Expiry, Key};
use std::mem;
use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, KeyRange};
use tremula_log::Sequence;

/// Rows that are copied at once, under the locks of their keys.
const ROWS: usize = if cfg!(test) { 4 } else { 512 };

/// The most, if many have come since they were counted.
const MOST_ROWS: usize = 4 * ROWS;

/// Bytes of rows from which no more are copied at once.
const ROW_BYTES: usize = 256 << 10;

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// There may be more.
    More,
    /// There is nothing more before this record is durable.
    Wait(Sequence),
}

/// What follows a range, step by step, for a program that waits by its own means: made by
/// [`Store::follower`]. [`Watch`](super::Watch) waits by itself.
pub struct Follower {
    database: usize,
    span: Span,
    events: Events,
    stage: Stage,
}

enum Stage {
    /// A part of the snapshot is to be copied, which begins here.
    Copy(Box<[u8]>),
    /// It has been copied, and comes behind the events that it has seen.
    Show(Part),
    /// The snapshot has been shown, if one was asked for.
    Follow,
}

/// A part of a snapshot.
struct Part {
    /// Where it begins: the keys of the span before it have been shown.
    before: Span,
    rows: Vec<(Key, Text, Option<Expiry>)>,
    /// The last change that it has seen.
    ends: Sequence,
    /// Where the next part begins, if there is one.
    next: Option<Box<[u8]>>,
}

impl Store {
    /// Follows the keys of a database in a span.
    ///
    /// # Errors
    ///
    /// There is no log, or it does not have the sequence to begin with.
    ///
    /// # Panics
    ///
    /// If the number is not below [`DATABASES`](crate::DATABASES).
    pub fn follower(
        &self,
        database: usize,
        span: Span,
        since: Since,
    ) -> Result<Follower, WatchError> {
        let log = self.log().ok_or(WatchError::NoLog)?;
        assert!(
            database < crate::DATABASES,
            "there is no database {database}"
        );
        let next = self.last_effect().plus(1);
        let (from, stage) = match since {
            Since::Now => (next, Stage::Follow),
            Since::Snapshot => (next, Stage::Copy(span.low().into())),
            Since::Sequence(from) => {
                let (from, oldest) = (from.max(Sequence::FIRST), log.first());
                if from > next {
                    return Err(WatchError::Beyond { from, next });
                }
                if from < oldest {
                    return Err(WatchError::Gone { from, oldest });
                }
                (from, Stage::Follow)
            }
        };
        Ok(Follower {
            database,
            span,
            events: self.events(from)?,
            stage,
        })
    }
}

impl Follower {
    /// The number of the database.
    #[must_use]
    pub const fn database(&self) -> usize {
        self.database
    }

    /// The keys that it follows.
    #[must_use]
    pub const fn span(&self) -> &Span {
        &self.span
    }

    /// The sequence of the next event that may be shown, if the snapshot [is
    /// complete](Self::is_complete).
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        self.events.next_sequence()
    }

    /// Whether there is no snapshot, or all of it has been shown.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Follow)
    }

    /// Goes on at a sequence: somebody else has shown what was before.
    pub fn go_to(&mut self, next: Sequence) {
        self.events.go_to(next);
    }

    /// Shows the next events: those in about `most` bytes of the log, or a part of the snapshot.
    /// Blocks no longer than reading that takes.
    ///
    /// # Errors
    ///
    /// The log does not have the next record any more, or cannot be read.
    pub fn step(
        &mut self,
        store: &Store,
        most: usize,
        show: &mut dyn FnMut(Event<'_>),
    ) -> Result<Following, WatchError> {
        match mem::replace(&mut self.stage, Stage::Follow) {
            Stage::Copy(from) => {
                let part = self.copy(store, &from);
                if part.before.is_empty() {
                    // No key has been shown, so none of the changes before is of interest.
                    self.events.go_to(part.ends.plus(1));
                }
                self.stage = Stage::Show(part);
                // Others may rest without having handed over what the copy has seen.
                store.forward();
                Ok(Following::More)
            }
            Stage::Show(part) => self.show_part(store, most, part, show),
            Stage::Follow => {
                let bounds = (most, Sequence::new(u64::MAX));
                read(
                    &mut self.events,
                    store,
                    bounds,
                    (self.database, &self.span),
                    show,
                )
            }
        }
    }

    fn show_part(
        &mut self,
        store: &Store,
        most: usize,
        part: Part,
        show: &mut dyn FnMut(Event<'_>),
    ) -> Result<Following, WatchError> {
        let ends = part.ends;
        if self.next_sequence() <= ends {
            let of = (self.database, &part.before);
            let progress = read(&mut self.events, store, (most, ends), of, show);
            self.stage = Stage::Show(part);
            return progress;
        }
        if store.log().is_some_and(|log| log.durable() < ends) {
            self.stage = Stage::Show(part);
            return Ok(Following::Wait(ends));
        }
        for (key, text, expiry) in &part.rows {
            let (key, value) = (key.as_bytes().into(), text[..].into());
            let expiry = *expiry;
            show(Event::new(ends, Happened::Row { key, value, expiry }));
        }
        self.stage = match part.next {
            Some(next) => Stage::Copy(next),
            None => {
                show(Event::new(ends, Happened::Complete));
                Stage::Follow
            }
        };
        Ok(Following::More)
    }

    /// Copies the part of the snapshot that begins with a key.
    fn copy(&self, store: &Store, from: &[u8]) -> Part {
        let (low, database) = (Key::from(from), store.database(self.database));
        let before = Span::new(Bound::Included(self.span.low()), Bound::Excluded(from));
        let mut part = Part {
            before,
            rows: Vec::new(),
            ends: store.last_effect(),
            next: None,
        };
        let rest = Span::new(
            Bound::Included(from),
            self.span.high().map_or(Bound::Unbounded, Bound::Excluded),
        );
        let Some(steps) = database.steps().filter(|_| !rest.is_empty()) else {
            return part;
        };
        let high = rest
            .high()
            .map_or(Bound::Unbounded, |high| Bound::Excluded(Key::from(high)));
        // Only the keys of this part are locked.
        let high = match end_of_part(database, &low, &high) {
            Some(end) => {
                part.next = Some(end.as_bytes().into());
                Bound::Excluded(end)
            }
            None => high,
        };
        let range = KeyRange::new(Bound::Included(&low), high.as_ref());
        let values = store.values(self.database);
        let (mut bytes, mut evicted) = (0, Vec::new());
        steps.atomically(&[range], &mut |step| {
            // All who change these keys have numbers up to this one, or wait for the locks.
            part.ends = store.last_effect();
            step.range(range, &mut |key, value| {
                if part.rows.len() >= MOST_ROWS || bytes >= ROW_BYTES {
                    part.next = Some(key.as_bytes().into());
                    return ControlFlow::Break(());
                }
                if database.is_alive(value)
                    && let Some(text) = values.text_within(value, &mut evicted)
                {
                    bytes += key.as_bytes().len() + text.len();
                    part.rows.push((key.clone(), text, value.expiry()));
                }
                ControlFlow::Continue(())
            });
        });
        values.forget(evicted);
        part
    }
}

/// Shows the events of a span of a database: about as many bytes of the log as `most`, up to a last
/// record.
fn read(
    events: &mut Events,
    store: &Store,
    (most, last): (usize, Sequence),
    (number, span): (usize, &Span),
    show: &mut dyn FnMut(Event<'_>),
) -> Result<Following, WatchError> {
    let read = events.read(store, most, last, &mut |database, event| {
        if database == number
            && let Some(event) = event.within(span)
        {
            show(event);
        }
    })?;
    Ok(match read {
        0 => Following::Wait(events.awaited()),
        _ => Following::More,
    })
}

/// The key behind the next part of the range, if there is more than one part.
fn end_of_part(database: Database<'_>, low: &Key, high: &Bound<Key>) -> Option<Key> {
    let range = KeyRange::new(Bound::Included(low), high.as_ref());
    let mut keys = Vec::new();
    database.scan_all(range, Direction::Ascending, ROWS + 1, &mut keys);
    keys.into_iter().nth(ROWS).map(|(key, _)| key)
}
