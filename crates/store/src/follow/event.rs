//! What has happened, as watchers see it.

use crate::effects::record::{Previously, Recorded};
use crate::{Expiry, Key, prefix_bounds};
use std::borrow::Cow;
use std::ops::Bound;
use tremula_log::Sequence;

/// The keys from one on, up to another one, which is not among them.
///
/// ```
/// use std::ops::Bound;
/// use tremula_store::Span;
///
/// let span = Span::new(Bound::Included(b"a"), Bound::Excluded(b"c"));
/// assert!(span.contains(b"a") && span.contains(b"bx") && !span.contains(b"c"));
/// assert_eq!(span, Span::new(Bound::Included(b"a"), Bound::Excluded(b"c")));
/// assert!(Span::prefix(b"a").contains(b"apple"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    low: Box<[u8]>,
    high: Option<Box<[u8]>>,
}

impl Span {
    /// The keys between two bounds. O(bytes).
    #[must_use]
    pub fn new(low: Bound<&[u8]>, high: Bound<&[u8]>) -> Self {
        // The smallest key behind another one.
        let behind = |key: &[u8]| [key, &[0]].concat().into_boxed_slice();
        Self {
            low: match low {
                Bound::Unbounded => Box::default(),
                Bound::Included(key) => key.into(),
                Bound::Excluded(key) => behind(key),
            },
            high: match high {
                Bound::Unbounded => None,
                Bound::Included(key) => Some(behind(key)),
                Bound::Excluded(key) => Some(key.into()),
            },
        }
    }

    /// All keys.
    #[must_use]
    pub fn all() -> Self {
        Self::new(Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys that begin with a prefix.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let (low, high) = prefix_bounds(prefix);
        let bytes = |bound: &Bound<Key>| bound.as_ref().map(|key| key.as_bytes().to_vec());
        let (low, high) = (bytes(&low), bytes(&high));
        Self::new(
            low.as_ref().map(Vec::as_slice),
            high.as_ref().map(Vec::as_slice),
        )
    }

    /// The first key that may be in it.
    #[must_use]
    pub const fn low(&self) -> &[u8] {
        &self.low
    }

    /// The first key behind it; `None` if all keys from the first one on are in it.
    #[must_use]
    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// Whether a key is in it.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.low <= *key && self.high().is_none_or(|high| key < high)
    }

    /// Whether no key can be in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.high().is_some_and(|high| high <= &*self.low)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.low.len() + self.high().map_or(0, <[u8]>::len)
    }
}

type Text<'a> = Cow<'a, [u8]>;

/// Something that has happened to a range. It borrows the bytes of the log, or owns its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'a> {
    /// Its place in the log. A row has the sequence of the last change that it has seen.
    pub sequence: Sequence,
    /// What it is.
    pub what: Happened<'a>,
    /// What the key was before.
    pub previous: Previous<'a>,
}

/// What a key was before something happened to it: what all events before have made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Previous<'a> {
    /// The log does not have it: it is a row of a snapshot, or was written
    /// [without](crate::StoreConfig::log_previous) what was before.
    Unknown,
    /// It was not there.
    Absent,
    /// It had this value.
    Was {
        /// The value.
        value: Text<'a>,
        /// When it was to expire, if it was. That time may have come already.
        expiry: Option<Expiry>,
    },
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened<'a> {
    /// Part of a snapshot: the key has this value. Rows come in the order of their keys; between
    /// them come the changes of keys that have been shown already.
    Row {
        /// The key.
        key: Text<'a>,
        /// Its value.
        value: Text<'a>,
        /// When it expires, if it does.
        expiry: Option<Expiry>,
    },
    /// All rows of the snapshot have been shown: this is the state of the whole range.
    Complete,
    /// The key has this value now.
    Set {
        /// The key.
        key: Text<'a>,
        /// Its value.
        value: Text<'a>,
        /// When it expires, if it does. The time may have come by now, if a later event moves it.
        expiry: Option<Expiry>,
    },
    /// The value of the key is what it was up to an offset, and then these bytes. Only values that
    /// a cache of values keeps change so. A key that is not known has gone meanwhile.
    Append {
        /// The key.
        key: Text<'a>,
        /// How many of the value's bytes stay.
        offset: u64,
        /// What comes behind them.
        bytes: Text<'a>,
    },
    /// The key, if it is there, expires at another time, or never.
    Expire {
        /// The key.
        key: Text<'a>,
        /// When it expires, if it does.
        expiry: Option<Expiry>,
    },
    /// The key is gone: it was removed, has expired, or was evicted.
    Remove {
        /// The key.
        key: Text<'a>,
    },
    /// No key is left from one on, up to another one; the part of it that is watched.
    RemoveRange {
        /// The first key that is gone.
        low: Text<'a>,
        /// The first key behind them; `None` if there is no such.
        high: Option<Text<'a>>,
    },
}

fn owned(text: Text<'_>) -> Text<'static> {
    Cow::Owned(text.into_owned())
}

impl<'a> Event<'a> {
    /// An event; for those who show some to others.
    #[must_use]
    pub const fn new(sequence: Sequence, what: Happened<'a>) -> Self {
        let previous = Previous::Unknown;
        Self {
            sequence,
            what,
            previous,
        }
    }

    /// The same, with what the key was before.
    #[must_use]
    pub fn after(self, previous: Previous<'a>) -> Self {
        Self { previous, ..self }
    }

    /// The same with bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        let what = match self.what {
            Happened::Row { key, value, expiry } => Happened::Row {
                key: owned(key),
                value: owned(value),
                expiry,
            },
            Happened::Complete => Happened::Complete,
            Happened::Set { key, value, expiry } => Happened::Set {
                key: owned(key),
                value: owned(value),
                expiry,
            },
            Happened::Append { key, offset, bytes } => Happened::Append {
                key: owned(key),
                offset,
                bytes: owned(bytes),
            },
            Happened::Expire { key, expiry } => Happened::Expire {
                key: owned(key),
                expiry,
            },
            Happened::Remove { key } => Happened::Remove { key: owned(key) },
            Happened::RemoveRange { low, high } => Happened::RemoveRange {
                low: owned(low),
                high: high.map(owned),
            },
        };
        let previous = match self.previous {
            Previous::Unknown => Previous::Unknown,
            Previous::Absent => Previous::Absent,
            Previous::Was { value, expiry } => Previous::Was {
                value: owned(value),
                expiry,
            },
        };
        Event::new(self.sequence, what).after(previous)
    }

    /// The key that it is about; `None` if it is about a range.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        match &self.what {
            Happened::Row { key, .. }
            | Happened::Set { key, .. }
            | Happened::Append { key, .. }
            | Happened::Expire { key, .. }
            | Happened::Remove { key } => Some(key),
            Happened::Complete | Happened::RemoveRange { .. } => None,
        }
    }

    /// The part of it that lies in a span, if any does. No bytes of values are copied.
    #[must_use]
    pub fn within<'e>(&'e self, span: &'e Span) -> Option<Event<'e>> {
        let Happened::RemoveRange { low, high } = &self.what else {
            let is_there = self.key().is_none_or(|key| span.contains(key));
            return is_there.then(|| self.borrow());
        };
        let low: &[u8] = (&**low).max(span.low());
        let high = match (high.as_deref(), span.high()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let what = Happened::RemoveRange {
            low: Cow::Borrowed(low),
            high: high.map(Cow::Borrowed),
        };
        let is_there = high.is_none_or(|high| low < high);
        is_there.then_some(Event::new(self.sequence, what))
    }

    fn borrow(&self) -> Event<'_> {
        const fn text<'t>(text: &'t Text<'_>) -> Text<'t> {
            match text {
                Cow::Borrowed(bytes) => Cow::Borrowed(bytes),
                Cow::Owned(bytes) => Cow::Borrowed(bytes.as_slice()),
            }
        }
        let what = match &self.what {
            Happened::Row { key, value, expiry } => Happened::Row {
                key: text(key),
                value: text(value),
                expiry: *expiry,
            },
            Happened::Complete => Happened::Complete,
            Happened::Set { key, value, expiry } => Happened::Set {
                key: text(key),
                value: text(value),
                expiry: *expiry,
            },
            Happened::Append { key, offset, bytes } => Happened::Append {
                key: text(key),
                offset: *offset,
                bytes: text(bytes),
            },
            Happened::Expire { key, expiry } => Happened::Expire {
                key: text(key),
                expiry: *expiry,
            },
            Happened::Remove { key } => Happened::Remove { key: text(key) },
            Happened::RemoveRange { low, high } => Happened::RemoveRange {
                low: text(low),
                high: high.as_ref().map(text),
            },
        };
        let previous = match &self.previous {
            Previous::Unknown => Previous::Unknown,
            Previous::Absent => Previous::Absent,
            Previous::Was { value, expiry } => Previous::Was {
                value: text(value),
                expiry: *expiry,
            },
        };
        Event::new(self.sequence, what).after(previous)
    }
}

impl<'a> From<Previously<'a>> for Previous<'a> {
    fn from(before: Previously<'a>) -> Self {
        match before {
            Previously::Unknown => Self::Unknown,
            Previously::Absent => Self::Absent,
            Previously::Was(value, expiry) => Self::Was {
                value: value.into(),
                expiry,
            },
        }
    }
}

impl<'a> From<Recorded<'a>> for Happened<'a> {
    fn from(recorded: Recorded<'a>) -> Self {
        match recorded {
            Recorded::Put(key, value, expiry) => Self::Set {
                key: key.into(),
                value: value.into(),
                expiry,
            },
            Recorded::Delete(key) => Self::Remove { key: key.into() },
            Recorded::Tail(key, offset, bytes) => Self::Append {
                key: key.into(),
                offset,
                bytes: bytes.into(),
            },
            Recorded::Expire(key, expiry) => Self::Expire {
                key: key.into(),
                expiry,
            },
            Recorded::DeleteRange(low, high) => {
                let span = Span::new(low, high);
                Self::RemoveRange {
                    low: span.low.into_vec().into(),
                    high: span.high.map(|high| high.into_vec().into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(&[0, 1, 2, 255][..]), 0..3)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            Just(Bound::Unbounded),
            bytes().prop_map(Bound::Included),
            bytes().prop_map(Bound::Excluded),
        ]
    }

    proptest! {
        /// A range that is removed concerns a key of a span exactly if both have the key.
        #[test]
        fn a_removed_range_is_cut_to_what_is_watched(
            low in bound(), high in bound(), from in bound(), to in bound(), key in bytes(),
        ) {
            let span = Span::new(
                low.as_ref().map(Vec::as_slice),
                high.as_ref().map(Vec::as_slice),
            );
            let removed = Recorded::DeleteRange(
                from.as_ref().map(Vec::as_slice),
                to.as_ref().map(Vec::as_slice),
            );
            let gone = Span::new(
                from.as_ref().map(Vec::as_slice),
                to.as_ref().map(Vec::as_slice),
            );
            let event = Event::new(Sequence::FIRST, removed.into());
            let within = event.within(&span);
            let has_key = within.is_some_and(|event| match event.what {
                Happened::RemoveRange { low, high } => {
                    *low <= *key && high.is_none_or(|high| *key < *high)
                }
                _ => false,
            });
            prop_assert_eq!(has_key, span.contains(&key) && gone.contains(&key));
        }
    }
}
