//! Effects: what a write has made of a table, for a log.
//!
//! A write that is given a [`Sink`] reports each change to it as an [`Effect`]: what is there
//! *now*, not what was done. So a counter's effect is the row with its new value, and applying an
//! effect twice does no more than applying it once.
//!
//! ```text
//!  write                    under the lock of the key, the gate or the registry
//!  decide what changes
//!  sink.effect(...)         the sink draws the effect's number
//!  make the change          now other threads can see it
//! ```
//!
//! # Invariants
//!
//! 1. The effects of one key, and those of one property of a table, are reported in the order in
//!    which they take effect: under the lock that orders the changes, before the change can be
//!    seen. So a thread that sees a change knows that its effect has been reported.
//! 2. A change of several keys in one step is reported between [`Sink::begin`] and [`Sink::end`],
//!    while no other thread can see or change the table.
//! 3. A write that changes nothing reports nothing.
//! 4. No effect of a table comes before the one that makes it. Those that come behind its deletion
//!    mean nothing.
//! 5. A table's name is free before another table is reported with it.
//!
//! | file | holds |
//! |---|---|
//! | `rows` | the rows of an effect, without copies |
//! | `owned` | effects that have been copied |
//! | `code` | effects as bytes |
//! | `apply` | what an effect does to the tables of a node that is being restored |

mod apply;
mod code;
mod owned;
mod rows;

pub use apply::{ApplyError, ApplyProblem};
pub use code::{EffectError, EffectProblem, Subject};
pub use owned::{OwnedEffect, Recording};
pub use rows::Rows;

use super::options::{Access, Heir, Options};
use crate::match_spec::KeyInterval;
use crate::term::{Atom, Pid, Term};

/// What a write has made of one table.
///
/// It borrows from the write that reports it, and copies nothing. [`Table::noting`] has an example.
///
/// [`Table::noting`]: super::Table::noting
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Effect<'a> {
    /// The number of the table: [`Table::number`](super::Table::number). No other table of the
    /// process has had it.
    pub table: u64,
    /// What is new.
    pub change: Change<'a>,
}

/// What is new in a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change<'a> {
    /// These are the rows of their key now, and there are no others with it. One row, except in
    /// bags.
    Rows(Rows<'a>),
    /// A key of a bag has these rows, behind the `after` rows that it had.
    Added {
        /// How many rows of the key come before these.
        after: usize,
        /// The new rows.
        rows: Rows<'a>,
    },
    /// This key has no rows now, and no time.
    Removed(&'a Term),
    /// The rows of this key expire at this time, in milliseconds since 1970 began, or never: if it
    /// has rows.
    Expiry {
        /// The key.
        key: &'a Term,
        /// Its time, which is not 0.
        time: Option<u64>,
    },
    /// No key in this interval has rows now: what
    /// [`select_delete`](super::Table::select_delete) of a whole range does.
    RangeRemoved(&'a KeyInterval),
    /// The table has no rows now.
    Cleared,
    /// The table is there now, and has no rows.
    Created {
        /// Its name.
        name: Atom,
        /// Its options, without the heir.
        options: &'a Options,
        /// Its owner; the node itself has an identifier, too.
        owner: Pid,
        /// Its heir.
        heir: Option<&'a Heir>,
    },
    /// The table is no longer there.
    Deleted,
    /// The table has this name now.
    Renamed(Atom),
    /// The table belongs to this owner now.
    Owner(Pid),
    /// The table has this heir now.
    Heir(Option<&'a Heir>),
    /// These callers may use the table now.
    Access(Access),
}

impl<'a> Effect<'a> {
    /// The effect that this is what is new in the table with this number.
    #[must_use]
    pub const fn new(table: u64, change: Change<'a>) -> Self {
        Self { table, change }
    }

    /// The key, if the effect is of one key.
    #[must_use]
    pub fn key(&self) -> Option<&Term> {
        match &self.change {
            Change::Rows(rows) | Change::Added { rows, .. } => Some(rows.key()),
            Change::Removed(key) | Change::Expiry { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// Where writes report their effects: a log, or a buffer of one.
///
/// Its methods run while the write holds the locks under which the change takes effect. They must
/// be brief and must not use the tables. A sink that draws a number for each effect, from a counter
/// that all sinks share, gets the numbers of a key's effects in the order in which these take
/// effect.
///
/// If a method panics, the write that calls it has happened or not, or partly if it is a step.
///
/// What is reported between [`begin`](Self::begin) and [`end`](Self::end) is one step, and takes
/// effect at `end`: there a sink draws one run of numbers for all of it. A step may have no
/// effects. Steps are not nested.
pub trait Sink {
    /// Gets to know of an effect. Within a step it has not taken effect yet.
    fn effect(&mut self, effect: &Effect<'_>);

    /// A step of several effects begins.
    fn begin(&mut self);

    /// The step takes effect.
    fn end(&mut self);

    /// The step does not happen: its effects never were.
    fn abandon(&mut self);
}

/// Effects are reported to nobody.
impl Sink for () {
    fn effect(&mut self, _: &Effect<'_>) {}

    fn begin(&mut self) {}

    fn end(&mut self) {}

    fn abandon(&mut self) {}
}
