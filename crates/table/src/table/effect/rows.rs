//! The rows of an effect.

use crate::table::store::{Kept, Layout};
use crate::term::{Term, Tuple};
use std::fmt;

/// The rows of one key in an effect, the oldest first. There is at least one.
///
/// They are where the table keeps them: a row is read when it is asked for, and one that is kept
/// compressed is expanded then.
#[derive(Clone, Copy)]
pub struct Rows<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    /// The rows of a table, or of the key of a bag only the newest.
    Kept {
        layout: &'a Layout,
        key: &'a Term,
        kept: &'a Kept,
        newest: Option<usize>,
    },
    Given {
        key_position: usize,
        rows: &'a [Tuple],
    },
}

impl<'a> Rows<'a> {
    pub(in super::super) const fn kept(layout: &'a Layout, key: &'a Term, kept: &'a Kept) -> Self {
        Self(Source::Kept {
            layout,
            key,
            kept,
            newest: None,
        })
    }

    /// The newest `count` rows of what a bag keeps.
    pub(in super::super) const fn newest(
        layout: &'a Layout,
        key: &'a Term,
        kept: &'a Kept,
        count: usize,
    ) -> Self {
        Self(Source::Kept {
            layout,
            key,
            kept,
            newest: Some(count),
        })
    }

    /// These rows, each of which has the same key at this position (from 0); `None` if there are no
    /// rows, or one is too short to have a key.
    #[must_use]
    pub fn given(key_position: usize, rows: &'a [Tuple]) -> Option<Self> {
        let are_rows = !rows.is_empty() && rows.iter().all(|row| row.len() > key_position);
        are_rows.then_some(Self(Source::Given { key_position, rows }))
    }

    /// As [`given`](Self::given), for rows that are known to be such.
    pub(super) const fn owned(key_position: usize, rows: &'a [Tuple]) -> Self {
        Self(Source::Given { key_position, rows })
    }

    /// The key of the rows.
    #[must_use]
    pub fn key(&self) -> &'a Term {
        match self.0 {
            Source::Kept { key, .. } => key,
            Source::Given { key_position, rows } => &rows[0][key_position],
        }
    }

    /// Where in a row the key is, counted from 0.
    #[must_use]
    pub const fn key_position(&self) -> usize {
        match self.0 {
            Source::Kept { layout, .. } => layout.key_position,
            Source::Given { key_position, .. } => key_position,
        }
    }

    /// The row, if the table has one row per key.
    pub(super) fn only(&self) -> Option<Tuple> {
        match self.0 {
            Source::Kept {
                layout, key, kept, ..
            } if !layout.is_bag => Some(layout.row(key, kept)),
            _ => None,
        }
    }

    /// The rows. In a bag, O(rows).
    #[must_use]
    pub fn to_vec(&self) -> Vec<Tuple> {
        match self.0 {
            Source::Kept {
                layout,
                key,
                kept,
                newest: None,
            } => layout.rows(key, kept),
            Source::Kept {
                layout,
                key,
                kept,
                newest: Some(count),
            } => layout.newest_rows(key, kept, count),
            Source::Given { rows, .. } => rows.to_vec(),
        }
    }
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.to_vec()).finish()
    }
}
