//! What a change is in the log: a record.
//!
//! A record says what a key *is* now, not what was asked, so it may be applied again, and records
//! of different keys in any order. It begins with a byte that says which kind it is. Lengths are
//! LEB128; the last field has no length.
//!
//! | kind | then |
//! |---|---|
//! | 1, put | number of the database, length of the key, key, value |
//! | 2, delete | number of the database, key |
//! | 3, delete a range | number of the database, lower bound, upper bound |
//! | 4, write from an offset on | number of the database, length of the key, key, offset, bytes |
//! | 5, a table | the effect, as `tremula-table` writes it |
//!
//! A bound is 0 for none, or 1 (inclusive) or 2 (exclusive), the length of the key, the key.

use crate::{Key, Value};
use bytes::Bytes;
use std::ops::Bound;
use thiserror::Error;
use tremula_table::table::effect::{EffectError, Subject};

/// The number of databases that `SELECT` chooses from. Redis's default, which its clients know.
pub const DATABASES: usize = 16;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const TAIL: u8 = 4;
const TABLE: u8 = 5;

const NONE: u8 = 0;
const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;

/// A change, as it is kept until it is written.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Of the database with this number.
    Database(u8, What),
    /// Of a table: the bytes of its effect.
    Table(Vec<u8>),
}

/// A change of a database.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Put(Key, Value),
    Delete(Key),
    DeleteRange(Bound<Key>, Bound<Key>),
    /// The value of the key is this from an offset on, and ends with it.
    Tail(Key, u64, Bytes),
}

impl Change {
    /// Appends the record's bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Database(database, what) => what.write(*database, out),
            Self::Table(effect) => {
                out.push(TABLE);
                out.extend_from_slice(effect);
            }
        }
    }
}

impl What {
    fn write(&self, database: u8, out: &mut Vec<u8>) {
        match self {
            Self::Put(key, value) => {
                out.extend_from_slice(&[PUT, database]);
                write_text(key.as_bytes(), out);
                out.extend_from_slice(value);
            }
            Self::Delete(key) => {
                out.extend_from_slice(&[DELETE, database]);
                out.extend_from_slice(key.as_bytes());
            }
            Self::DeleteRange(low, high) => {
                out.extend_from_slice(&[DELETE_RANGE, database]);
                write_bound(low, out);
                write_bound(high, out);
            }
            Self::Tail(key, offset, bytes) => {
                out.extend_from_slice(&[TAIL, database]);
                write_text(key.as_bytes(), out);
                write_number(*offset, out);
                out.extend_from_slice(bytes);
            }
        }
    }
}

pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_number(text.len() as u64, out);
    out.extend_from_slice(text);
}

fn write_bound(bound: &Bound<Key>, out: &mut Vec<u8>) {
    match bound {
        Bound::Unbounded => out.push(NONE),
        Bound::Included(key) => {
            out.push(INCLUDED);
            write_text(key.as_bytes(), out);
        }
        Bound::Excluded(key) => {
            out.push(EXCLUDED);
            write_text(key.as_bytes(), out);
        }
    }
}

/// Bytes that are no record of this version.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no record of a change: {what}; was it written by a newer version?")]
pub struct BadRecord {
    what: String,
}

impl BadRecord {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl From<EffectError> for BadRecord {
    fn from(error: EffectError) -> Self {
        Self::new(format!("an effect of a table with {error}"))
    }
}

/// A change as it lies in the log: it borrows the record's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Of the database with this number.
    Database(usize, Recorded<'a>),
    /// Of a table: what it is about, and its effect.
    Table(Subject, &'a [u8]),
}

/// A change of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    DeleteRange(Bound<&'a [u8]>, Bound<&'a [u8]>),
    Tail(&'a [u8], u64, &'a [u8]),
}

impl<'a> Record<'a> {
    /// Reads a record. O(1): nothing is copied.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        if let [TABLE, effect @ ..] = bytes {
            return Ok(Self::Table(Subject::of(effect)?, effect));
        }
        let Some(([kind, database], rest)) = bytes.split_first_chunk::<2>() else {
            return Err(BadRecord::new(format!("{} bytes", bytes.len())));
        };
        let database = usize::from(*database);
        if database >= DATABASES {
            return Err(BadRecord::new(format!("database {database}")));
        }
        let mut fields = Fields(rest);
        let what = match *kind {
            PUT => Recorded::Put(fields.text()?, fields.rest()),
            DELETE => Recorded::Delete(fields.rest()),
            DELETE_RANGE => {
                let range = Recorded::DeleteRange(fields.bound()?, fields.bound()?);
                let behind = fields.rest().len();
                if behind > 0 {
                    return Err(BadRecord::new(format!("{behind} bytes behind a range")));
                }
                range
            }
            TAIL => Recorded::Tail(fields.text()?, fields.number()?, fields.rest()),
            other => return Err(BadRecord::new(format!("kind {other}"))),
        };
        Ok(Self::Database(database, what))
    }
}

impl<'a> Recorded<'a> {
    /// The key that the record is about; `None` if it is about a range.
    pub(crate) const fn key(&self) -> Option<&'a [u8]> {
        match self {
            Self::Put(key, _) | Self::Delete(key) | Self::Tail(key, _, _) => Some(key),
            Self::DeleteRange(..) => None,
        }
    }
}

/// The fields of a record that have not been read yet.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn number(&mut self) -> Result<u64, BadRecord> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let Some((byte, rest)) = self.0.split_first() else {
                break;
            };
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadRecord::new("a number without its end"))
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], BadRecord> {
        let length = self.number()?;
        let split = usize::try_from(length).ok();
        let split = split.and_then(|length| self.0.split_at_checked(length));
        let Some((text, rest)) = split else {
            let there = self.0.len();
            let what = format!("a length of {length} with {there} bytes behind it");
            return Err(BadRecord::new(what));
        };
        self.0 = rest;
        Ok(text)
    }

    fn bound(&mut self) -> Result<Bound<&'a [u8]>, BadRecord> {
        let Some((kind, rest)) = self.0.split_first() else {
            return Err(BadRecord::new("a range without its bound"));
        };
        self.0 = rest;
        match *kind {
            NONE => Ok(Bound::Unbounded),
            INCLUDED => Ok(Bound::Included(self.text()?)),
            EXCLUDED => Ok(Bound::Excluded(self.text()?)),
            other => Err(BadRecord::new(format!("a bound of kind {other}"))),
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..200)
    }

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        prop_oneof![
            Just(Bound::Unbounded),
            bytes().prop_map(Bound::Included),
            bytes().prop_map(Bound::Excluded),
        ]
    }

    fn key(bytes: &[u8]) -> Key {
        Key::from(bytes)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            database in 0..DATABASES,
            one in bytes(),
            other in bytes(),
            offset: u64,
            low in bound(),
            high in bound(),
        ) {
            let keys = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| key(bytes));
            let shown = |bound: &Bound<Vec<u8>>| bound.clone();
            let changes = [
                What::Put(key(&one), Value::from(&other[..])),
                What::Delete(key(&one)),
                What::DeleteRange(keys(&low), keys(&high)),
                What::Tail(key(&one), offset, Bytes::from(other.clone())),
            ];
            let (low, high) = (shown(&low), shown(&high));
            let expected = [
                Recorded::Put(&one, &other),
                Recorded::Delete(&one),
                Recorded::DeleteRange(
                    low.as_ref().map(Vec::as_slice),
                    high.as_ref().map(Vec::as_slice),
                ),
                Recorded::Tail(&one, offset, &other),
            ];
            for (what, expected) in changes.into_iter().zip(expected) {
                let change = Change::Database(database as u8, what);
                let mut record = Vec::new();
                change.write(&mut record);
                let read = Record::read(&record);
                prop_assert_eq!(read, Ok(Record::Database(database, expected)));
            }
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in bytes()) {
            let _ = Record::read(&bytes);
        }
    }

    #[test]
    fn what_is_no_record_is_named() {
        for (bytes, told) in [
            (&b""[..], "0 bytes"),
            (&[9, 0][..], "kind 9"),
            (&[PUT, 16][..], "database 16"),
            (&[PUT, 0, 5, 1][..], "a length of 5 with 1 bytes behind it"),
            (&[PUT, 0, 0x80][..], "a number without its end"),
            (&[DELETE_RANGE, 0, 7][..], "a bound of kind 7"),
            (&[DELETE_RANGE, 0, 0, 0, 1][..], "1 bytes behind a range"),
            (&[TABLE][..], "byte 0: the bytes end here"),
            (&[TABLE, 99, 1][..], "byte 0: 99 is no kind of effect"),
        ] {
            let error = Record::read(bytes).unwrap_err().to_string();
            assert!(error.contains(told), "{bytes:?}: {error}");
        }
    }
}
