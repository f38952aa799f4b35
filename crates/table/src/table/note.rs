//! The sink that a write reports its effects to, and the steps of several effects.

use super::effect::{Change, Effect, Rows, Sink};
use super::error::Result;
use super::gate::Exclusive;
use super::registry::owner_pid;
use super::store::{Kept, Layout, Note, Observer, Reported};
use super::times::Times;
use super::{Shared, Table};
use crate::term::Term;
use tremula_sync::thread::panicking;

/// The sink of a write, or nobody. All that changes a table takes one of these, down to the methods
/// of the store. Only the public functions make them.
pub(super) struct Notes<'s> {
    sink: Option<&'s mut dyn Sink>,
    /// Whether the changes are effects that a log has already.
    are_known: bool,
}

/// Those who have to know of the changes of one table's rows: the sink, and the times of the keys.
pub(super) struct RowNotes<'n>(Option<OfTable<'n>>);

struct OfTable<'n> {
    sink: Option<&'n mut dyn Sink>,
    /// If a key may have one.
    times: Option<&'n Times>,
    layout: &'n Layout,
    table: u64,
}

/// A change of many keys in one step: the gate, held exclusively. At its end the sink knows of the
/// end of the step before the gate is open, even if the step panics: what it has done by then has
/// been reported.
pub(super) struct Step<'a, 's> {
    notes: &'a mut Notes<'s>,
    /// `None` from the end of the step on.
    exclusive: Option<Exclusive<'a>>,
}

/// A step of which it is not known yet whether it happens. It does not if this is dropped.
pub(super) struct Pending<'a, 's>(Option<&'a mut Notes<'s>>);

impl<'s> Notes<'s> {
    pub(super) const fn to(sink: &'s mut dyn Sink) -> Self {
        Self {
            sink: Some(sink),
            are_known: false,
        }
    }

    /// Nobody: for programs that keep no log.
    #[inline]
    pub(super) const fn nobody() -> Self {
        Self {
            sink: None,
            are_known: false,
        }
    }

    /// Nobody, because the changes are applied effects.
    pub(super) const fn known() -> Self {
        Self {
            sink: None,
            are_known: true,
        }
    }

    /// In a debug build, panics if a change goes unreported that must not.
    #[inline]
    fn check(&self, shared: &Shared) {
        debug_assert!(
            self.sink.is_some() || self.are_known || !shared.must_report || panicking(),
            "a change of {} is not reported to a sink: its node is kept in a log",
            shared.name()
        );
    }

    /// For the changes of a table's rows. The caller holds the gate.
    #[inline]
    pub(super) fn rows_of<'n>(&'n mut self, shared: &'n Shared) -> RowNotes<'n> {
        self.check(shared);
        let times = shared.times.are_used().then_some(&shared.times);
        if self.sink.is_none() && times.is_none() {
            return RowNotes(None);
        }
        RowNotes(Some(OfTable {
            sink: match &mut self.sink {
                Some(sink) => Some(&mut **sink),
                None => None,
            },
            times,
            layout: &shared.layout,
            table: shared.number,
        }))
    }

    /// Reports a change of a table. The caller holds what orders such changes, and makes the change
    /// afterwards.
    pub(super) fn change(&mut self, shared: &Shared, change: Change<'_>) -> Reported {
        self.check(shared);
        if let Some(sink) = &mut self.sink {
            sink.effect(&Effect::new(shared.number, change));
        }
        Reported::done()
    }

    /// Begins a step that may not happen.
    pub(super) fn pending(&mut self) -> Pending<'_, 's> {
        if let Some(sink) = &mut self.sink {
            sink.begin();
        }
        Pending(Some(self))
    }

    /// Runs `step`, which reports the changes of a step and cannot fail.
    pub(super) fn step<R>(&mut self, step: impl FnOnce(&mut Self) -> R) -> R {
        let mut pending = self.pending();
        let result = step(pending.notes());
        pending.happens();
        result
    }
}

impl<'s> Pending<'_, 's> {
    pub(super) fn notes(&mut self) -> &mut Notes<'s> {
        match &mut self.0 {
            Some(notes) => notes,
            None => unreachable!("a step that has happened is no longer pending"),
        }
    }

    /// The step takes effect.
    pub(super) fn happens(mut self) {
        if let Some(sink) = self.0.take().and_then(|notes| notes.sink.as_mut()) {
            sink.end();
        }
    }
}

impl Drop for Pending<'_, '_> {
    fn drop(&mut self) {
        if let Some(sink) = self.0.take().and_then(|notes| notes.sink.as_mut()) {
            sink.abandon();
        }
    }
}

impl RowNotes<'_> {
    /// Whether there is a sink.
    #[inline]
    pub(super) fn is_anybody(&self) -> bool {
        self.0.as_ref().is_some_and(|of| of.sink.is_some())
    }

    #[inline]
    pub(super) fn note(&mut self) -> Note<'_> {
        match &mut self.0 {
            Some(of_table) => Note::to(of_table),
            None => Note::nobody(),
        }
    }
}

impl OfTable<'_> {
    fn report(&mut self, change: Change<'_>) {
        if let Some(sink) = &mut self.sink {
            sink.effect(&Effect::new(self.table, change));
        }
    }
}

impl Observer for OfTable<'_> {
    fn put(&mut self, key: &Term, kept: &Kept) {
        self.report(Change::Rows(Rows::kept(self.layout, key, kept)));
    }

    fn added(&mut self, key: &Term, kept: &Kept, count: usize) {
        if self.sink.is_none() {
            return;
        }
        let after = self.layout.count_rows(kept) - count;
        let rows = Rows::newest(self.layout, key, kept, count);
        let change = match after {
            0 => Change::Rows(rows),
            after => Change::Added { after, rows },
        };
        self.report(change);
    }

    fn removed(&mut self, key: &Term) {
        if let Some(times) = self.times {
            times.set(key, None);
        }
        self.report(Change::Removed(key));
    }

    fn expires(&mut self, key: &Term, time: Option<u64>) {
        if let Some(times) = self.times {
            times.set(key, time);
        }
        self.report(Change::Expiry { key, time });
    }
}

impl<'s> Step<'_, 's> {
    pub(super) fn notes(&mut self) -> &mut Notes<'s> {
        self.notes
    }
}

impl Drop for Step<'_, '_> {
    fn drop(&mut self) {
        if let Some(sink) = &mut self.notes.sink {
            sink.end();
        }
        self.exclusive = None;
    }
}

impl Shared {
    /// Reports that the table is there.
    pub(super) fn report_created(&self, notes: &mut Notes<'_>) {
        let heir = self.heir();
        let created = Change::Created {
            name: self.name(),
            options: &self.options,
            owner: owner_pid(self.owner()),
            heir: heir.as_ref(),
        };
        notes.change(self, created);
    }
}

impl Table {
    /// Takes the gate exclusively, to change many keys in one step.
    pub(super) fn enter_step<'a, 's>(
        &'a self,
        notes: &'a mut Notes<'s>,
        function: &'static str,
    ) -> Result<Step<'a, 's>> {
        let exclusive = self.enter_exclusive(function)?;
        if let Some(sink) = &mut notes.sink {
            sink.begin();
        }
        Ok(Step {
            notes,
            exclusive: Some(exclusive),
        })
    }
}
