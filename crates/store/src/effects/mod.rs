//! Effects: what writes change, on its way into the log.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | [`Effects`], which every write needs |
//! | `before` | the changes of steps, with what each key was before |
//! | `record`, `fields` | what a change is in the log |
//! | `journal` | the numbers of effects; merging what threads have written |
//! | `mail` | what a change of a mailbox is in the log |
//! | `tables` | effects as the sink of tables |

pub(crate) mod before;
pub(crate) mod fields;
mod journal;
pub(crate) mod mail;
pub(crate) mod record;
mod tables;

use crate::notices::{Cause, Happening, Listener, Notice};
use crate::{Expiry, Key, Value, Version, version};
use bytes::Bytes;
pub use fields::BadRecord;
pub(crate) use journal::Journal;
use mail::Mail;
pub use record::DATABASES;
use record::{Before, Change};
pub(crate) use record::{Edit, What};
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
    /// The version of what is made again: what the log or a snapshot has.
    again: Option<Version>,
    /// The only effect of most writes.
    one: Option<(u64, Change)>,
    /// The effects of a step over several keys.
    step: Option<(u64, Vec<Change>)>,
    /// The effects of a step of a table that has begun; they have no numbers yet.
    begun: Option<Vec<Change>>,
    /// The effects of a step in which any operations run.
    gathered: Option<Gathered>,
    /// The listener that gets the notices.
    listener: Option<&'s dyn Listener>,
    cause: Cause,
    notices: Vec<Notice>,
}

/// Effects that get their numbers one by one and are written together.
struct Gathered {
    /// How many numbers are taken at once.
    expected: usize,
    /// How many of these are for what the step itself adds to its operations' effects.
    own: usize,
    /// Numbers that follow each other, and the effects that have them so far.
    blocks: Vec<(u64, Vec<Change>)>,
}

impl Gathered {
    /// Gives the next effect its number, and returns its version. To be called under the locks of
    /// all that the step holds.
    fn push(&mut self, journal: &Journal, change: Change) -> Version {
        let expected = self.expected;
        if let Some((first, changes)) = self.blocks.last_mut()
            && changes.len() < expected
        {
            let number = *first + changes.len() as u64;
            changes.push(change);
            return Version::wrapping(number);
        }
        let first = journal.take_numbers(expected);
        let mut changes = Vec::with_capacity(expected);
        changes.push(change);
        self.blocks.push((first, changes));
        Version::wrapping(first)
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
            again: None,
            one: None,
            step: None,
            begun: None,
            gathered: None,
            listener: None,
            cause: Cause::Caller(""),
            notices: Vec::new(),
        }
    }

    /// These effects, whose notices go there when they have happened.
    #[inline]
    pub(crate) const fn reported_to(mut self, listener: Option<&'s dyn Listener>) -> Self {
        self.listener = listener;
        self
    }

    /// Why they are, from now on.
    #[inline]
    pub(crate) const fn caused_by(&mut self, cause: Cause) {
        self.cause = cause;
    }

    /// Whether anything is to be noted: not where there is no log and nobody listens.
    #[inline]
    pub(crate) const fn are_noted(&self) -> bool {
        self.are_logged() || self.listener.is_some()
    }

    /// Whether somebody gets notices of them.
    #[inline]
    pub(crate) const fn are_reported(&self) -> bool {
        self.listener.is_some()
    }

    /// Notes what has become of a key. To be called under its lock.
    #[inline]
    pub(crate) fn notice(&mut self, database: u8, key: &Key, happening: Happening) {
        if self.listener.is_some() {
            self.notices.push(Notice {
                database: database.into(),
                key: key.clone(),
                happening,
                cause: self.cause,
            });
        }
    }

    /// Hands the notices out. The locks must not be held any more.
    #[inline]
    pub(crate) fn report(&mut self) {
        if let Some(listener) = self.listener
            && !self.notices.is_empty()
        {
            listener.changed(std::mem::take(&mut self.notices));
        }
    }

    /// Effects of a step in which any operations run, with about this many effects, to be written
    /// when it has ended.
    pub(crate) fn of_step(journal: Option<&'s Journal>, expected: usize) -> Self {
        let expected = expected.max(1);
        let blocks = Vec::new();
        let mut effects = Self::new(journal);
        effects.gathered = journal.map(|_| Gathered {
            expected,
            own: 0,
            blocks,
        });
        effects
    }

    /// How many effects a step will have, unless it has some already.
    pub(crate) fn expect(&mut self, changes: usize) {
        if let Some(gathered) = &mut self.gathered
            && gathered.blocks.is_empty()
        {
            gathered.expected = changes.max(1) + gathered.own;
        }
    }

    /// The step itself will add this many effects to those of its operations. To be called before
    /// the first of them.
    pub(crate) fn expect_own(&mut self, changes: usize) {
        if let Some(gathered) = &mut self.gathered {
            gathered.own += changes;
            gathered.expected += changes;
        }
    }

    /// Notes what a command with an id is answered, and returns the version of that.
    pub(crate) fn answer(&mut self, id: &[u8], answer: &[u8]) -> Version {
        self.alone(Change::Answer(id.into(), answer.into()))
    }

    /// Notes a note, and returns its version. To be called under the lock of the notes.
    pub(crate) fn note_down(&mut self, name: &[u8], text: &[u8]) -> Version {
        self.alone(Change::Note(name.into(), text.into()))
    }

    /// Ends a step in which any operations have run, and writes its effects. The locks need not be
    /// held any more.
    pub(crate) fn end_step(&mut self) {
        if let (Some(journal), Some(gathered)) = (self.journal, self.gathered.take()) {
            gathered.write(journal, true);
        }
    }

    /// Effects of making again what is on the disk, where it has this version.
    pub(crate) const fn again(version: Version) -> Self {
        let mut effects = Self::new(None);
        effects.again = Some(version);
        effects
    }

    /// Whether they make again what is on the disk.
    pub(crate) const fn are_again(&self) -> bool {
        self.again.is_some()
    }

    /// Whether there is a log.
    #[inline]
    pub(crate) const fn are_logged(&self) -> bool {
        self.journal.is_some()
    }

    /// What the log is to have of what a key was before a change.
    #[inline]
    pub(crate) fn before(&self, value: Option<&Value>) -> Before {
        match value {
            _ if !self.have_before() => Before::Unknown,
            Some(value) => Before::Was(value.clone()),
            None => Before::Absent,
        }
    }

    /// Whether the log is to have what keys were before their changes.
    #[inline]
    pub(crate) fn have_before(&self) -> bool {
        self.journal.is_some_and(Journal::has_before)
    }

    /// The version of a change that no log has.
    #[inline]
    fn unlogged(&self) -> Version {
        self.again.unwrap_or_else(version::fresh)
    }

    /// Gives a value its version where no log numbers the changes.
    #[inline]
    pub(crate) fn stamp_unlogged(&self, value: &mut Value) {
        debug_assert!(!self.are_logged(), "the log numbers this change");
        value.stamp(self.unlogged());
    }

    /// Notes that a key has this value now, and had another one before or none, and gives that its
    /// version. To be called under the lock of the key.
    #[inline]
    pub(crate) fn put(
        &mut self,
        database: u8,
        key: &Key,
        before: Option<&Value>,
        value: &mut Value,
    ) {
        let before = self.before(before);
        let version = self.note(database, before, || What::Put(key.clone(), value.clone()));
        value.stamp(version);
    }

    /// Notes that a key has the value that is in the cache under this stand-in, which gets its
    /// version. To be called under the lock of the key.
    pub(crate) fn put_cached(
        &mut self,
        database: u8,
        key: &Key,
        cached: &mut Value,
        bytes: impl FnOnce() -> Value,
    ) {
        let version = self.note(database, Before::Unknown, || {
            What::Put(key.clone(), bytes())
        });
        cached.stamp(version);
    }

    /// Notes that a key is gone, which had a value. To be called under the lock of the key.
    #[inline]
    pub(crate) fn delete(&mut self, database: u8, key: &Key, before: Option<&Value>) {
        if self.are_logged() {
            let before = self.before(before);
            self.note(database, before, || What::Delete(key.clone()));
        }
    }

    /// Notes that a key with a value expires at another time, or never. Returns the version that
    /// the value has from now on. To be called under the lock of the key.
    pub(crate) fn expire(
        &mut self,
        database: u8,
        key: &Key,
        before: &Value,
        expiry: Option<Expiry>,
    ) -> Version {
        let before = self.before(Some(before));
        self.note(database, before, || What::Expire(key.clone(), expiry))
    }

    /// Notes that no key is left in a range. To be called under the locks of all of it.
    pub(crate) fn delete_range(&mut self, database: u8, low: Bound<&Key>, high: Bound<&Key>) {
        if self.are_logged() {
            self.note(database, Before::Unknown, || {
                What::DeleteRange(low.map(Key::clone), high.map(Key::clone))
            });
        }
    }

    /// Notes that a key's value is this from an offset on. Returns the version that the value has
    /// from now on. To be called under the lock of the key.
    pub(crate) fn tail(&mut self, database: u8, key: &Key, offset: usize, bytes: &[u8]) -> Version {
        self.note(database, Before::Unknown, || {
            What::Tail(key.clone(), offset as u64, Bytes::copy_from_slice(bytes))
        })
    }

    /// Notes a change, and returns its version.
    #[inline]
    fn note(&mut self, database: u8, before: Before, what: impl FnOnce() -> What) -> Version {
        if !self.are_logged() {
            return self.unlogged();
        }
        // Before the number: a panic in a copy must not lose it.
        let what = what();
        self.alone(Change::Database(database, Edit { what, before }))
    }

    /// Numbers a change that is a step of its own.
    fn alone(&mut self, change: Change) -> Version {
        let Some(journal) = self.journal else {
            return self.unlogged();
        };
        if let Some(gathered) = &mut self.gathered {
            return gathered.push(journal, change);
        }
        self.submit();
        let number = journal.take_numbers(1);
        self.one = Some((number, change));
        Version::wrapping(number)
    }

    /// Notes an atomic step: changes that become durable together. Returns their versions, in their
    /// order. To be called once in the step, under the locks of all keys, and before it changes
    /// anything.
    pub(crate) fn step(&mut self, database: u8, changes: Vec<Edit>) -> Versions {
        let changes = changes.into_iter();
        self.together(
            changes
                .map(|edit| Change::Database(database, edit))
                .collect(),
        )
    }

    /// As [`step`](Self::step), over several databases.
    pub(crate) fn steps(&mut self, changes: Vec<(u8, Edit)>) -> Versions {
        let changes = changes.into_iter();
        self.together(
            changes
                .map(|(database, edit)| Change::Database(database, edit))
                .collect(),
        )
    }

    /// Notes an atomic step: changes of one mailbox. To be called under the lock of its messages.
    pub(crate) fn mail(&mut self, changes: Vec<Mail>) {
        self.together(changes.into_iter().map(Change::Mail).collect());
    }

    /// Numbers changes that become durable together.
    fn together(&mut self, changes: Vec<Change>) -> Versions {
        let Some(journal) = self.journal.filter(|_| !changes.is_empty()) else {
            return Versions::Unlogged(self.again);
        };
        if let Some(gathered) = &mut self.gathered {
            let each = changes.into_iter();
            let each = each.map(|change| gathered.push(journal, change));
            return Versions::Each(each.collect::<Vec<_>>().into_iter());
        }
        self.submit();
        let first = journal.take_numbers(changes.len());
        self.step = Some((first, changes));
        Versions::From(first)
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

/// The versions of the changes of an atomic step, in the order of the changes.
pub(crate) enum Versions {
    /// Each is the next number of the log.
    From(u64),
    /// In a step in which any operations run.
    Each(std::vec::IntoIter<Version>),
    /// No log numbers the changes; they may all be made again, from one record.
    Unlogged(Option<Version>),
}

impl Versions {
    /// The version of the next change.
    pub(crate) fn take(&mut self) -> Version {
        match self {
            Self::From(next) => {
                let version = Version::wrapping(*next);
                *next += 1;
                version
            }
            Self::Each(versions) => versions.next().unwrap_or(Version::NONE),
            Self::Unlogged(again) => again.unwrap_or_else(version::fresh),
        }
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
