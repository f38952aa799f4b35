//! The operations of an ordered map, and their answers as far as they are seen.

use super::number::{Number, entry};
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use tremula_index::{Direction, KeyRange, Update};

/// An operation with its arguments. Each is the method of the same name of
/// [`OrderedIndex`](tremula_index::OrderedIndex), except [`InsertMany`](Self::InsertMany), which is
/// for maps that have more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `get` of a key.
    Get(u64),
    /// `get_with` of a key.
    GetWith(u64),
    /// `contains_key`.
    ContainsKey(u64),
    /// `get_many` of some keys.
    GetMany(Arc<[u64]>),
    /// `insert` of a key and a value.
    Insert(u64, u64),
    /// `insert_if_absent` of a key and a value.
    InsertIfAbsent(u64, u64),
    /// The insertion of all these entries in one step. Of entries with the same key the last
    /// counts.
    InsertMany(Arc<[(u64, u64)]>),
    /// `remove` of a key.
    Remove(u64),
    /// `update` of a key.
    Update(u64, Change),
    /// `first`.
    First,
    /// `last`.
    Last,
    /// `next` of a key.
    Next(u64),
    /// `prev` of a key.
    Prev(u64),
    /// `pop_first`.
    PopFirst,
    /// `pop_last`.
    PopLast,
    /// `scan` with a limit on the number of entries.
    Scan(Span, Direction, usize),
    /// `snapshot`.
    Snapshot(Span),
    /// `range`, stopped after this number of entries.
    Range(Span, Direction, usize),
    /// `remove_range`.
    RemoveRange(Span),
    /// `len`.
    Len,
    /// `is_empty`.
    IsEmpty,
}

/// An [`Operation`] without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "named as the operations are")]
pub enum Kind {
    Get,
    GetWith,
    ContainsKey,
    GetMany,
    Insert,
    InsertIfAbsent,
    InsertMany,
    Remove,
    Update,
    First,
    Last,
    Next,
    Prev,
    PopFirst,
    PopLast,
    Scan,
    Snapshot,
    Range,
    RemoveRange,
    Len,
    IsEmpty,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 21] = [
        Self::Get,
        Self::GetWith,
        Self::ContainsKey,
        Self::GetMany,
        Self::Insert,
        Self::InsertIfAbsent,
        Self::InsertMany,
        Self::Remove,
        Self::Update,
        Self::First,
        Self::Last,
        Self::Next,
        Self::Prev,
        Self::PopFirst,
        Self::PopLast,
        Self::Scan,
        Self::Snapshot,
        Self::Range,
        Self::RemoveRange,
        Self::Len,
        Self::IsEmpty,
    ];

    /// The operations that promise something of single keys only. Histories of these can be split
    /// by key without loss.
    pub const POINT: [Self; 8] = [
        Self::Get,
        Self::GetWith,
        Self::ContainsKey,
        Self::GetMany,
        Self::Insert,
        Self::InsertIfAbsent,
        Self::Remove,
        Self::Update,
    ];

    /// Whether every map promises these operations as of one moment: all but `get_many`, `range`
    /// and the counts, which promise less everywhere.
    #[must_use]
    pub const fn of_one_moment(self) -> bool {
        !matches!(
            self,
            Self::GetMany | Self::Range | Self::Len | Self::IsEmpty
        )
    }

    /// Whether operations of this kind change the map.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Insert
                | Self::InsertIfAbsent
                | Self::InsertMany
                | Self::Remove
                | Self::Update
                | Self::PopFirst
                | Self::PopLast
                | Self::RemoveRange
        )
    }
}

impl Operation {
    /// The kind of the operation.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Get(_) => Kind::Get,
            Self::GetWith(_) => Kind::GetWith,
            Self::ContainsKey(_) => Kind::ContainsKey,
            Self::GetMany(_) => Kind::GetMany,
            Self::Insert(..) => Kind::Insert,
            Self::InsertIfAbsent(..) => Kind::InsertIfAbsent,
            Self::InsertMany(_) => Kind::InsertMany,
            Self::Remove(_) => Kind::Remove,
            Self::Update(..) => Kind::Update,
            Self::First => Kind::First,
            Self::Last => Kind::Last,
            Self::Next(_) => Kind::Next,
            Self::Prev(_) => Kind::Prev,
            Self::PopFirst => Kind::PopFirst,
            Self::PopLast => Kind::PopLast,
            Self::Scan(..) => Kind::Scan,
            Self::Snapshot(_) => Kind::Snapshot,
            Self::Range(..) => Kind::Range,
            Self::RemoveRange(_) => Kind::RemoveRange,
            Self::Len => Kind::Len,
            Self::IsEmpty => Kind::IsEmpty,
        }
    }

    /// The key of an operation on a single key.
    pub(crate) const fn point(&self) -> Option<u64> {
        match *self {
            Self::Get(key)
            | Self::GetWith(key)
            | Self::ContainsKey(key)
            | Self::Insert(key, _)
            | Self::InsertIfAbsent(key, _)
            | Self::Remove(key)
            | Self::Update(key, _) => Some(key),
            _ => None,
        }
    }
}

/// What the closure of an `update` decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// To store a value.
    Put(u64),
    /// To add this to the value, or to store it if the key is absent.
    Add(u64),
    /// To leave the entry.
    Keep,
    /// To remove the entry.
    Remove,
}

impl Change {
    /// The decision about a value.
    #[must_use]
    pub fn decide(self, value: Option<u64>) -> Update<u64> {
        match self {
            Self::Put(new) => Update::Put(new),
            Self::Add(more) => Update::Put(value.unwrap_or(0).wrapping_add(more)),
            Self::Keep => Update::Keep,
            Self::Remove => Update::Remove,
        }
    }
}

/// The bounds of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub low: Bound<u64>,
    /// Where it ends.
    pub high: Bound<u64>,
}

impl Span {
    /// Every key.
    pub const ALL: Self = Self {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    };

    /// The span of a range.
    ///
    /// ```
    /// use tremula_check::map::Span;
    ///
    /// let span = Span::of(3..=9);
    /// assert!(span.contains(9) && !span.contains(2));
    /// assert_eq!(span.to_string(), "3..=9");
    /// ```
    pub fn of(range: impl RangeBounds<u64>) -> Self {
        Self {
            low: range.start_bound().cloned(),
            high: range.end_bound().cloned(),
        }
    }

    /// Whether a key lies inside.
    #[must_use]
    pub fn contains(&self, key: u64) -> bool {
        self.starts_before(key) && self.ends_after(key)
    }

    /// Whether a key lies at or above the lower bound.
    pub(crate) fn starts_before(&self, key: u64) -> bool {
        match self.low {
            Bound::Included(low) => low <= key,
            Bound::Excluded(low) => low < key,
            Bound::Unbounded => true,
        }
    }

    /// Whether a key lies at or below the upper bound.
    pub(crate) fn ends_after(&self, key: u64) -> bool {
        match self.high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        }
    }

    /// The same bounds, for keys made from numbers.
    pub(crate) fn bounds<K: From<u64>>(&self) -> (Bound<K>, Bound<K>) {
        (self.low.map(K::from), self.high.map(K::from))
    }
}

/// The range between two bounds, in the index's form.
pub(crate) fn key_range<K>((low, high): &(Bound<K>, Bound<K>)) -> KeyRange<'_, K> {
    KeyRange::new(low.as_ref(), high.as_ref())
}

/// An answer, or the part of it that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The value found, replaced or removed: of `get`, `get_with`, `insert` and `remove`.
    Value(Option<u64>),
    /// The values found, in the order of the keys: of `get_many`.
    Values(Vec<Option<u64>>),
    /// Of `contains_key` and `is_empty`; of `insert_if_absent`, whether it inserted. From a subject
    /// that reports no more, also whether `get`, `insert` and `remove` found a value.
    Flag(bool),
    /// Of `update`: each value that the closure was shown, and the value returned.
    Updated {
        /// One element in a correct answer.
        shown: Vec<Option<u64>>,
        /// The value replaced or removed.
        returned: Option<u64>,
    },
    /// Of `first`, `last`, `next`, `prev`, `pop_first` and `pop_last`.
    Entry(Option<(u64, u64)>),
    /// Of `scan`, `snapshot` and `range`.
    Entries(Vec<(u64, u64)>),
    /// Of `remove_range` and `len`.
    Count(usize),
    /// Only that it returned: of `InsertMany`, and of any operation of a subject that reports no
    /// more.
    Done,
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(key) => write!(out, "get({})", Number(*key)),
            Self::GetWith(key) => write!(out, "get_with({})", Number(*key)),
            Self::ContainsKey(key) => write!(out, "contains_key({})", Number(*key)),
            Self::GetMany(keys) => {
                out.write_str("get_many(")?;
                let keys = keys.iter().map(|&key| Number(key));
                out.debug_list().entries(keys).finish()?;
                out.write_str(")")
            }
            Self::Insert(key, value) => write!(out, "insert({}, {})", Number(*key), Number(*value)),
            Self::InsertIfAbsent(key, value) => write!(
                out,
                "insert_if_absent({}, {})",
                Number(*key),
                Number(*value)
            ),
            Self::InsertMany(entries) => {
                out.write_str("insert_many(")?;
                let entries = entries.iter().copied().map(entry);
                out.debug_list().entries(entries).finish()?;
                out.write_str(")")
            }
            Self::Remove(key) => write!(out, "remove({})", Number(*key)),
            Self::Update(key, change) => write!(out, "update({}, {change})", Number(*key)),
            Self::First => out.write_str("first()"),
            Self::Last => out.write_str("last()"),
            Self::Next(key) => write!(out, "next({})", Number(*key)),
            Self::Prev(key) => write!(out, "prev({})", Number(*key)),
            Self::PopFirst => out.write_str("pop_first()"),
            Self::PopLast => out.write_str("pop_last()"),
            Self::Scan(span, way, limit) => {
                write!(out, "scan({span}{}{})", arrow(*way), Limit(*limit))
            }
            Self::Snapshot(span) => write!(out, "snapshot({span})"),
            Self::Range(span, way, limit) => {
                write!(out, "range({span}{}{})", arrow(*way), Limit(*limit))
            }
            Self::RemoveRange(span) => write!(out, "remove_range({span})"),
            Self::Len => out.write_str("len()"),
            Self::IsEmpty => out.write_str("is_empty()"),
        }
    }
}

const fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => ", up",
        Direction::Descending => ", down",
    }
}

/// A limit as an argument; empty for no limit.
struct Limit(usize);

impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            usize::MAX => Ok(()),
            limit => write!(out, ", {limit}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put(value) => write!(out, "put {}", Number(*value)),
            Self::Add(more) => write!(out, "add {}", Number(*more)),
            Self::Keep => out.write_str("keep"),
            Self::Remove => out.write_str("remove"),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low {
            Bound::Included(low) => write!(out, "{}..", Number(low))?,
            Bound::Excluded(low) => write!(out, "after {}..", Number(low))?,
            Bound::Unbounded => out.write_str("..")?,
        }
        match self.high {
            Bound::Included(high) => write!(out, "={}", Number(high)),
            Bound::Excluded(high) => write!(out, "{}", Number(high)),
            Bound::Unbounded => Ok(()),
        }
    }
}

impl fmt::Display for Response {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(out, "{:?}", value.map(Number)),
            Self::Values(values) => {
                let values = values.iter().map(|value| value.map(Number));
                out.debug_list().entries(values).finish()
            }
            Self::Flag(flag) => write!(out, "{flag}"),
            Self::Updated { shown, returned } => {
                let shown: Vec<_> = shown.iter().map(|value| value.map(Number)).collect();
                write!(out, "{:?}, shown {shown:?}", returned.map(Number))
            }
            Self::Entry(found) => write!(out, "{:?}", found.map(entry)),
            Self::Entries(entries) => out
                .debug_list()
                .entries(entries.iter().copied().map(entry))
                .finish(),
            Self::Count(count) => write!(out, "{count}"),
            Self::Done => out.write_str("done"),
        }
    }
}
