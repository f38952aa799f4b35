//! Effects: what writes change, on its way into the log.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | [`Effects`], which every write needs |
//! | `record`, `fields` | what a change is in the log |
//! | `journal` | the numbers of effects; merging what threads have written |
//! | `mail` | what a change of a mailbox is in the log |
//! | `tables` | effects as the sink of tables |

pub(crate) mod fields;
mod journal;
pub(crate) mod mail;
pub(crate) mod record;
mod tables;

use crate::{Expiry, Key, Value};
use bytes::Bytes;
pub use fields::BadRecord;
pub(crate) use journal::Journal;
use mail::Mail;
pub use record::DATABASES;
use record::{Change, What};
use std::ops::Bound;
pub(crate) use tables::records;
use thiserror::Error;
use tremula_log::Refused;
use tremula_sync::system::thread;

/// Nothing was changed, because the log could not take it.
#[derive(Clone, Debug, Error)]
#[error("nothing was changed: {0}")]
pub struct Unlogged(#[source] pub Refused);

/// Where a write notes what it changes. Every method that changes what a [`Store`](crate::Store)
/// keeps takes one, and only [`Store::commit`](crate::Store::commit) makes one: so no write can
/// forget the log.
///
/// In a store without a log it notes nothing.
///
/// A thread that holds effects with numbers holds up all that comes behind them in the log: commit
/// what belongs together, do not compute in between.
pub struct Effects<'s> {
    journal: Option<&'s Journal>,
    /// The only effect of most writes.
    one: Option<(u64, Change)>,
    /// The effects of a step over several keys.
    step: Option<(u64, Vec<Change>)>,
    /// The effects of a step of a table that has begun; they have no numbers yet.
    begun: Option<Vec<Change>>,
    /// The effects of a step in which any operations run.
    gathered: Option<Gathered>,
}

/// Effects that get their numbers one by one and are written together.
struct Gathered {
    /// How many numbers are taken at once.
    expected: usize,
    /// Numbers that follow each other, and the effects that have them so far.
    blocks: Vec<(u64, Vec<Change>)>,
}

impl Gathered {
    /// Gives the next effect its number. To be called under the locks of all that the step holds.
    fn push(&mut self, journal: &Journal, change: Change) {
        let expected = self.expected;
        if let Some((_, changes)) = self.blocks.last_mut()
            && changes.len() < expected
        {
            return changes.push(change);
        }
        let first = journal.take_numbers(expected);
        let mut changes = Vec::with_capacity(expected);
        changes.push(change);
        self.blocks.push((first, changes));
    }

    /// Writes all effects, or none of them; and one that changes nothing for each number that is
    /// left, because the log has no gaps.
    fn write(self, journal: &Journal, is_done: bool) {
        for (first, mut changes) in self.blocks {
            if !is_done {
                changes.clear();
            }
            let left = self.expected - changes.len();
            let rest = std::iter::repeat_n(Change::Nothing, left);
            journal.write(first, changes.into_iter().chain(rest));
        }
    }
}

impl<'s> Effects<'s> {
    /// Effects that are written at once when they are numbered.
    pub(crate) const fn new(journal: Option<&'s Journal>) -> Self {
        Self {
            journal,
            one: None,
            step: None,
            begun: None,
            gathered: None,
        }
    }

    /// Effects of a step in which any operations run, with about this many effects, to be written
    /// when it has ended.
    pub(crate) fn of_step(journal: Option<&'s Journal>, expected: usize) -> Self {
        let expected = expected.max(1);
        let blocks = Vec::new();
        let mut effects = Self::new(journal);
        effects.gathered = journal.map(|_| Gathered { expected, blocks });
        effects
    }

    /// Ends a step in which any operations have run, and writes its effects. The locks need not be
    /// held any more.
    pub(crate) fn end_step(&mut self) {
        if let (Some(journal), Some(gathered)) = (self.journal, self.gathered.take()) {
            gathered.write(journal, true);
        }
    }

    /// Whether there is a log.
    #[inline]
    pub(crate) const fn are_logged(&self) -> bool {
        self.journal.is_some()
    }

    /// Notes that a key has this value now. To be called under the lock of the key.
    #[inline]
    pub(crate) fn put(&mut self, database: u8, key: &Key, value: &Value) {
        let what = || What::Put(key.clone(), value.clone());
        self.note(database, what);
    }

    /// Notes that a key is gone. To be called under the lock of the key.
    #[inline]
    pub(crate) fn delete(&mut self, database: u8, key: &Key) {
        self.note(database, || What::Delete(key.clone()));
    }

    /// Notes that a key expires at another time, or never. To be called under the lock of the key.
    pub(crate) fn expire(&mut self, database: u8, key: &Key, expiry: Option<Expiry>) {
        self.note(database, || What::Expire(key.clone(), expiry));
    }

    /// Notes that no key is left in a range. To be called under the locks of all of it.
    pub(crate) fn delete_range(&mut self, database: u8, low: Bound<&Key>, high: Bound<&Key>) {
        self.note(database, || {
            What::DeleteRange(low.map(Key::clone), high.map(Key::clone))
        });
    }

    /// Notes that a key's value is this from an offset on. To be called under the lock of the key.
    pub(crate) fn tail(&mut self, database: u8, key: &Key, offset: usize, bytes: &[u8]) {
        self.note(database, || {
            What::Tail(key.clone(), offset as u64, Bytes::copy_from_slice(bytes))
        });
    }

    #[inline]
    fn note(&mut self, database: u8, what: impl FnOnce() -> What) {
        if self.are_logged() {
            // Before the number: a panic in a copy must not lose it.
            self.alone(Change::Database(database, what()));
        }
    }

    /// Numbers a change that is a step of its own.
    fn alone(&mut self, change: Change) {
        let Some(journal) = self.journal else { return };
        if let Some(gathered) = &mut self.gathered {
            return gathered.push(journal, change);
        }
        self.submit();
        self.one = Some((journal.take_numbers(1), change));
    }

    /// Notes an atomic step: changes that become durable together. To be called once in the step,
    /// under the locks of all keys.
    pub(crate) fn step(&mut self, database: u8, changes: Vec<What>) {
        let changes = changes.into_iter();
        self.together(
            changes
                .map(|what| Change::Database(database, what))
                .collect(),
        );
    }

    /// Notes an atomic step over several databases. To be called once in the step, under the locks
    /// of all keys.
    pub(crate) fn steps(&mut self, changes: Vec<(u8, What)>) {
        let changes = changes.into_iter();
        self.together(
            changes
                .map(|(database, what)| Change::Database(database, what))
                .collect(),
        );
    }

    /// Notes an atomic step: changes of one mailbox. To be called under the lock of its messages.
    pub(crate) fn mail(&mut self, changes: Vec<Mail>) {
        self.together(changes.into_iter().map(Change::Mail).collect());
    }

    /// Numbers changes that become durable together.
    fn together(&mut self, changes: Vec<Change>) {
        let Some(journal) = self.journal else { return };
        if changes.is_empty() {
            return;
        }
        if let Some(gathered) = &mut self.gathered {
            let each = changes.into_iter();
            return each.for_each(|change| gathered.push(journal, change));
        }
        self.submit();
        self.step = Some((journal.take_numbers(changes.len()), changes));
    }

    /// Writes what has been numbered. The locks need not be held any more.
    #[inline]
    pub(crate) fn submit(&mut self) {
        let Some(journal) = self.journal else { return };
        if let Some((number, change)) = self.one.take() {
            journal.write(number, std::iter::once(change));
        }
        if let Some((first, changes)) = self.step.take() {
            journal.write(first, changes.into_iter());
        }
    }

    const fn is_pending(&self) -> bool {
        self.one.is_some() || self.step.is_some()
    }
}

/// What was numbered is written even if the write panics: the log would wait for the number for
/// ever.
impl Drop for Effects<'_> {
    fn drop(&mut self) {
        if let (Some(journal), Some(gathered)) = (self.journal, self.gathered.take()) {
            // The step was undone.
            gathered.write(journal, false);
        }
        let is_forgotten = self.is_pending() && !thread::panicking();
        self.submit();
        debug_assert!(
            !is_forgotten,
            "effects were dropped without being submitted"
        );
    }
}
