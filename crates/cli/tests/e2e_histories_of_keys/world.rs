//! What the model knows of the keys.

use crate::commands::{Condition, Time};
use crate::model::{Call, KEYS};
use std::fmt;

/// What a key is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Value {
    pub(crate) text: u64,
    /// `None` as long as no reply has shown it.
    pub(crate) version: Option<u64>,
    /// The first and the last of the times one of which is its own.
    pub(crate) expires: Option<(u64, u64)>,
    /// Whether a watcher was shown that the key is gone, since its time had come: then it must not
    /// be there at the end.
    pub(crate) is_hidden: bool,
    /// Whether the call has found it: then it stays until its end, since a step is one moment.
    pub(crate) is_found: bool,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) value: Option<Value>,
    /// The changes of the key so far.
    pub(crate) changes: u32,
    /// The last version that a reply has shown.
    pub(crate) shown: u64,
    /// The events of the key that are behind it.
    pub(crate) events: usize,
    /// Whether it has expired, and the event of its removal may still come.
    pub(crate) expired: bool,
}

impl fmt::Debug for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => out.write_str("-")?,
            Some(value) => {
                write!(out, "{}", value.text)?;
                if let Some(version) = value.version {
                    write!(out, " of version {version}")?;
                }
                if let Some((first, last)) = value.expires {
                    write!(out, " until {first}..={last}")?;
                }
            }
        }
        write!(out, " behind {} changes", self.changes)?;
        if self.events > 0 {
            write!(out, " and {} events", self.events)?;
        }
        Ok(())
    }
}

/// What a client watches: the keys, each with the count of its changes if it was there.
pub(crate) type Watched = Vec<(usize, Option<u32>)>;

/// One explanation of the replies so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct World {
    pub(crate) slots: [Slot; KEYS],
    pub(crate) watched: Vec<Watched>,
}

impl World {
    pub(crate) fn values(&mut self) -> impl Iterator<Item = &mut Value> {
        let slots = self.slots.iter_mut();
        slots.filter_map(|slot| slot.value.as_mut())
    }

    pub(crate) fn stamp(&self, key: usize) -> Option<u32> {
        let slot = &self.slots[key];
        slot.value.as_ref().map(|_| slot.changes)
    }

    /// Whether a condition holds, once it is decided which keys are there.
    pub(crate) fn holds(&self, condition: &Condition) -> bool {
        let value = |key: &usize| self.slots[*key].value.as_ref();
        match condition {
            Condition::Value(key, text) => value(key).is_some_and(|value| value.text == *text),
            Condition::Version(key, 0) => value(key).is_none(),
            // A client asks for a version that it was shown, so the model knows it.
            Condition::Version(key, version) => {
                value(key).is_some_and(|value| value.version == Some(*version))
            }
            Condition::Present(key) => value(key).is_some(),
            Condition::Absent(key) => value(key).is_none(),
            Condition::Empty(keys) => keys.clone().all(|key| value(&key).is_none()),
        }
    }
}

impl Value {
    /// Whether the time may lie there; leaves no others.
    pub(crate) fn within(&mut self, first: u64, last: u64) -> bool {
        let Some(expires) = &mut self.expires else {
            return false;
        };
        *expires = (expires.0.max(first), expires.1.min(last));
        expires.0 <= expires.1
    }

    /// Whether it may expire just then, or never; leaves no others.
    pub(crate) fn narrow(&mut self, expires: Option<u64>) -> bool {
        match expires {
            Some(time) => self.within(time, time),
            None => self.expires.is_none(),
        }
    }
}

/// What a key is that a call sets.
pub(crate) fn new(text: u64, time: Time, before: Option<&Value>, call: &Call) -> Value {
    let expires = match time {
        Time::Never => None,
        Time::In(millis) => Some((call.from + millis, call.to + millis)),
        Time::At(millis) => Some((millis, millis)),
        Time::Kept => before.and_then(|before| before.expires),
    };
    Value {
        text,
        version: None,
        expires,
        is_hidden: false,
        is_found: false,
    }
}
