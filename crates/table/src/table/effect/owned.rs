//! Effects that have been copied.

use super::rows::Rows;
use super::{Change, Effect, Sink};
use crate::match_spec::KeyInterval;
use crate::table::options::{Access, Heir, Options};
use crate::term::{Atom, Pid, Term, Tuple};

/// An [`Effect`] of its own: one that was copied or [decoded](Self::decode). It shares terms with
/// what it was copied from, so copying takes time in proportion to its rows, not to their size.
#[derive(Clone, Debug)]
pub struct OwnedEffect {
    pub(super) table: u64,
    pub(super) change: OwnedChange,
}

#[derive(Clone, Debug)]
pub(super) enum OwnedChange {
    Rows(OwnedRows),
    Added { after: usize, rows: OwnedRows },
    Removed(Term),
    Expiry { key: Term, time: Option<u64> },
    RangeRemoved(KeyInterval),
    Cleared,
    Created(Box<Created>),
    Deleted,
    Renamed(Atom),
    Owner(Pid),
    Heir(Option<Heir>),
    Access(Access),
}

/// At least one row, each of which has a key at this position.
#[derive(Clone, Debug)]
pub(super) struct OwnedRows {
    pub(super) key_position: usize,
    pub(super) rows: Vec<Tuple>,
}

#[derive(Clone, Debug)]
pub(super) struct Created {
    pub(super) name: Atom,
    pub(super) options: Options,
    pub(super) owner: Pid,
    pub(super) heir: Option<Heir>,
}

impl OwnedRows {
    fn of(rows: &Rows<'_>) -> Self {
        Self {
            key_position: rows.key_position(),
            rows: rows.to_vec(),
        }
    }

    const fn borrow(&self) -> Rows<'_> {
        Rows::owned(self.key_position, self.rows.as_slice())
    }
}

impl OwnedEffect {
    /// The effect, borrowed. O(1).
    #[must_use]
    pub fn borrow(&self) -> Effect<'_> {
        let change = match &self.change {
            OwnedChange::Rows(rows) => Change::Rows(rows.borrow()),
            OwnedChange::Added { after, rows } => Change::Added {
                after: *after,
                rows: rows.borrow(),
            },
            OwnedChange::Removed(key) => Change::Removed(key),
            OwnedChange::Expiry { key, time } => Change::Expiry { key, time: *time },
            OwnedChange::RangeRemoved(interval) => Change::RangeRemoved(interval),
            OwnedChange::Cleared => Change::Cleared,
            OwnedChange::Created(created) => Change::Created {
                name: created.name,
                options: &created.options,
                owner: created.owner.clone(),
                heir: created.heir.as_ref(),
            },
            OwnedChange::Deleted => Change::Deleted,
            OwnedChange::Renamed(name) => Change::Renamed(*name),
            OwnedChange::Owner(owner) => Change::Owner(owner.clone()),
            OwnedChange::Heir(heir) => Change::Heir(heir.as_ref()),
            OwnedChange::Access(access) => Change::Access(*access),
        };
        Effect::new(self.table, change)
    }
}

impl From<&Effect<'_>> for OwnedEffect {
    fn from(effect: &Effect<'_>) -> Self {
        let change = match &effect.change {
            Change::Rows(rows) => OwnedChange::Rows(OwnedRows::of(rows)),
            Change::Added { after, rows } => OwnedChange::Added {
                after: *after,
                rows: OwnedRows::of(rows),
            },
            Change::Removed(key) => OwnedChange::Removed((*key).clone()),
            Change::Expiry { key, time } => OwnedChange::Expiry {
                key: (*key).clone(),
                time: *time,
            },
            Change::RangeRemoved(interval) => OwnedChange::RangeRemoved((*interval).clone()),
            Change::Cleared => OwnedChange::Cleared,
            Change::Created {
                name,
                options,
                owner,
                heir,
            } => OwnedChange::Created(Box::new(Created {
                name: *name,
                options: (*options).clone(),
                owner: owner.clone(),
                heir: heir.cloned(),
            })),
            Change::Deleted => OwnedChange::Deleted,
            Change::Renamed(name) => OwnedChange::Renamed(*name),
            Change::Owner(owner) => OwnedChange::Owner(owner.clone()),
            Change::Heir(heir) => OwnedChange::Heir(heir.cloned()),
            Change::Access(access) => OwnedChange::Access(*access),
        };
        Self {
            table: effect.table,
            change,
        }
    }
}

/// A sink that keeps every effect that it gets, in order.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    effects: Vec<OwnedEffect>,
    /// How many effects there were when the step began that is under way.
    begun: Option<usize>,
}

impl Recording {
    /// A recording without effects.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            effects: Vec::new(),
            begun: None,
        }
    }

    /// The effects, the oldest first.
    #[must_use]
    pub fn effects(&self) -> &[OwnedEffect] {
        &self.effects
    }
}

impl Sink for Recording {
    fn effect(&mut self, effect: &Effect<'_>) {
        self.effects.push(effect.into());
    }

    fn begin(&mut self) {
        self.begun = Some(self.effects.len());
    }

    fn end(&mut self) {
        self.begun = None;
    }

    fn abandon(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.effects.truncate(begun);
        }
    }
}
