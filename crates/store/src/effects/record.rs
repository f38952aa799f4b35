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
//! | 6 to 9, a mailbox | see [`mail`](super::mail) |
//! | 10, put a key that expires | number of the database, time, length of the key, key, value |
//! | 11, expire | number of the database, time, key |
//! | 12, nothing | |
//! | 13, what a key was before | number of the database, what it was, the record of its change |
//! | 14, the answer of a command with an id | length of the id, id, answer |
//! | 15, a note | length of its name, name, text; an empty text removes it |
//!
//! A time is in milliseconds since 1970 began, and 0 for never.
//!
//! What a key was is 0 for not there; or 1, when it expires, the length of the value, the value.
//!
//! A bound is 0 for none, or 1 (inclusive) or 2 (exclusive), the length of the key, the key.

use super::fields::{BadRecord, Fields, write_number, write_text};
use super::mail::{MADE, Mail, RECEIVED};
use crate::{Expiry, Key, Value};
use bytes::Bytes;
use std::ops::Bound;
use tremula_table::table::effect::Subject;

/// The number of databases that `SELECT` chooses from. Redis's default, which its clients know.
pub const DATABASES: usize = 16;

const PUT: u8 = 1;
const DELETE: u8 = 2;
const DELETE_RANGE: u8 = 3;
const TAIL: u8 = 4;
const TABLE: u8 = 5;
const PUT_EXPIRING: u8 = 10;
const EXPIRE: u8 = 11;
const NOTHING: u8 = 12;
const WITH_BEFORE: u8 = 13;
const ANSWER: u8 = 14;
const NOTE: u8 = 15;

const NONE: u8 = 0;
const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// A change, as it is kept until it is written.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Of the database with this number.
    Database(u8, Edit),
    /// Of a table: the bytes of its effect.
    Table(Vec<u8>),
    /// Of a mailbox.
    Mail(Mail),
    /// What a command with an id was answered.
    Answer(Box<[u8]>, Box<[u8]>),
    /// A note with its name; an empty one is none any more.
    Note(Box<[u8]>, Box<[u8]>),
    /// In the place of a change that a step did not make.
    Nothing,
}

/// A change of a database, and what its key was before.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) what: What,
    pub(crate) before: Before,
}

/// What a key was before a change.
#[derive(Clone, Debug)]
pub(crate) enum Before {
    /// The log is not to have it.
    Unknown,
    Absent,
    Was(Value),
}

/// A change of a database.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Put(Key, Value),
    Delete(Key),
    DeleteRange(Bound<Key>, Bound<Key>),
    /// The value of the key is this from an offset on, and ends with it.
    Tail(Key, u64, Bytes),
    /// The key expires then, or never.
    Expire(Key, Option<Expiry>),
}

impl Change {
    /// Appends the record's bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Database(database, edit) => {
                edit.before.write(*database, out);
                edit.what.write(*database, out);
            }
            Self::Table(effect) => {
                out.push(TABLE);
                out.extend_from_slice(effect);
            }
            Self::Mail(mail) => mail.write(out),
            Self::Answer(id, answer) => {
                out.push(ANSWER);
                write_text(id, out);
                out.extend_from_slice(answer);
            }
            Self::Note(name, text) => {
                out.push(NOTE);
                write_text(name, out);
                out.extend_from_slice(text);
            }
            Self::Nothing => out.push(NOTHING),
        }
    }
}

impl Before {
    /// Appends what comes before the record of the change.
    fn write(&self, database: u8, out: &mut Vec<u8>) {
        match self {
            Self::Unknown => {}
            Self::Absent => out.extend_from_slice(&[WITH_BEFORE, database, ABSENT]),
            Self::Was(value) => {
                out.extend_from_slice(&[WITH_BEFORE, database, PRESENT]);
                write_number(value.expiry().map_or(0, Expiry::millis), out);
                write_text(value, out);
            }
        }
    }
}

impl What {
    fn write(&self, database: u8, out: &mut Vec<u8>) {
        match self {
            Self::Put(key, value) => {
                match value.expiry() {
                    None => out.extend_from_slice(&[PUT, database]),
                    Some(expiry) => {
                        out.extend_from_slice(&[PUT_EXPIRING, database]);
                        write_number(expiry.millis(), out);
                    }
                }
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
            Self::Expire(key, expiry) => {
                out.extend_from_slice(&[EXPIRE, database]);
                write_number(expiry.map_or(0, Expiry::millis), out);
                out.extend_from_slice(key.as_bytes());
            }
        }
    }
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

/// A change as it lies in the log: it borrows the record's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Of the database with this number; and what its key was before.
    Database(usize, Recorded<'a>, Previously<'a>),
    /// Of a table: what it is about, and its effect.
    Table(Subject, &'a [u8]),
    /// Of the mailbox with this number: the whole record.
    Mail(u64, &'a [u8]),
    /// What the command with an id was answered.
    Answer(&'a [u8], &'a [u8]),
    /// A note: its name and its text.
    Note(&'a [u8], &'a [u8]),
    /// In the place of a change that a step did not make.
    Nothing,
}

/// What a key was before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previously<'a> {
    /// The log does not have it.
    Unknown,
    Absent,
    Was(&'a [u8], Option<Expiry>),
}

/// A change of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded<'a> {
    Put(&'a [u8], &'a [u8], Option<Expiry>),
    Delete(&'a [u8]),
    DeleteRange(Bound<&'a [u8]>, Bound<&'a [u8]>),
    Tail(&'a [u8], u64, &'a [u8]),
    Expire(&'a [u8], Option<Expiry>),
}

impl<'a> Record<'a> {
    /// Reads a record. O(1): nothing is copied.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        if let [TABLE, effect @ ..] = bytes {
            return Ok(Self::Table(Subject::of(effect)?, effect));
        }
        if let [MADE..=RECEIVED, ..] = bytes {
            return Ok(Self::Mail(Mail::mailbox_of(bytes)?, bytes));
        }
        if bytes == [NOTHING] {
            return Ok(Self::Nothing);
        }
        if let [kind @ (ANSWER | NOTE), rest @ ..] = bytes {
            let mut fields = Fields(rest);
            let (name, text) = (fields.text()?, fields.rest());
            return Ok(match *kind {
                ANSWER => Self::Answer(name, text),
                _ => Self::Note(name, text),
            });
        }
        let Some(([kind, database], rest)) = bytes.split_first_chunk::<2>() else {
            return Err(BadRecord::new(format!("{} bytes", bytes.len())));
        };
        let database = usize::from(*database);
        if database >= DATABASES {
            return Err(BadRecord::new(format!("database {database}")));
        }
        let mut fields = Fields(rest);
        if *kind == WITH_BEFORE {
            let before = match fields.byte()? {
                ABSENT => Previously::Absent,
                PRESENT => {
                    let expiry = read_expiry(&mut fields)?;
                    Previously::Was(fields.text()?, expiry)
                }
                other => {
                    let found = format!("{other} in the place of what a key was before");
                    return Err(BadRecord::new(found));
                }
            };
            let change = fields.rest();
            // One alone: bytes that nest them are no reason to go as deep.
            return match (change.first(), change.get(1)) {
                (Some(&WITH_BEFORE), _) => Err(BadRecord::new("what a key was before, twice")),
                (_, Some(other)) if usize::from(*other) != database => Err(BadRecord::new(
                    format!("databases {database} and {other} in one change"),
                )),
                _ => match Self::read(change)? {
                    Self::Database(_, what, _) => Ok(Self::Database(database, what, before)),
                    _ => Err(BadRecord::new(
                        "what a key was before, and no change of a key",
                    )),
                },
            };
        }
        let what = match *kind {
            PUT => Recorded::Put(fields.text()?, fields.rest(), None),
            PUT_EXPIRING => {
                let expiry = read_expiry(&mut fields)?;
                Recorded::Put(fields.text()?, fields.rest(), expiry)
            }
            EXPIRE => {
                let expiry = read_expiry(&mut fields)?;
                Recorded::Expire(fields.rest(), expiry)
            }
            DELETE => Recorded::Delete(fields.rest()),
            DELETE_RANGE => {
                let range =
                    Recorded::DeleteRange(read_bound(&mut fields)?, read_bound(&mut fields)?);
                let behind = fields.rest().len();
                if behind > 0 {
                    return Err(BadRecord::new(format!("{behind} bytes behind a range")));
                }
                range
            }
            TAIL => Recorded::Tail(fields.text()?, fields.number()?, fields.rest()),
            other => return Err(BadRecord::new(format!("kind {other}"))),
        };
        Ok(Self::Database(database, what, Previously::Unknown))
    }
}

impl<'a> Recorded<'a> {
    /// The key that the record is about; `None` if it is about a range.
    pub(crate) const fn key(&self) -> Option<&'a [u8]> {
        match self {
            Self::Put(key, ..) | Self::Delete(key) | Self::Tail(key, ..) | Self::Expire(key, _) => {
                Some(key)
            }
            Self::DeleteRange(..) => None,
        }
    }
}

fn read_expiry(fields: &mut Fields<'_>) -> Result<Option<Expiry>, BadRecord> {
    Expiry::read(fields.number()?).map_err(BadRecord::new)
}

fn read_bound<'a>(fields: &mut Fields<'a>) -> Result<Bound<&'a [u8]>, BadRecord> {
    match fields.byte()? {
        NONE => Ok(Bound::Unbounded),
        INCLUDED => Ok(Bound::Included(fields.text()?)),
        EXCLUDED => Ok(Bound::Excluded(fields.text()?)),
        other => Err(BadRecord::new(format!("a bound of kind {other}"))),
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
            millis in 1..=Expiry::LAST_MILLIS,
            low in bound(),
            high in bound(),
        ) {
            let keys = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| key(bytes));
            let shown = |bound: &Bound<Vec<u8>>| bound.clone();
            let expiry = Expiry::from_millis(millis);
            let changes = [
                What::Put(key(&one), Value::from(&other[..])),
                What::Put(key(&one), Value::from(&other[..]).expiring(expiry)),
                What::Expire(key(&one), expiry),
                What::Expire(key(&one), None),
                What::Delete(key(&one)),
                What::DeleteRange(keys(&low), keys(&high)),
                What::Tail(key(&one), offset, Bytes::from(other.clone())),
            ];
            let (low, high) = (shown(&low), shown(&high));
            let expected = [
                Recorded::Put(&one, &other, None),
                Recorded::Put(&one, &other, expiry),
                Recorded::Expire(&one, expiry),
                Recorded::Expire(&one, None),
                Recorded::Delete(&one),
                Recorded::DeleteRange(
                    low.as_ref().map(Vec::as_slice),
                    high.as_ref().map(Vec::as_slice),
                ),
                Recorded::Tail(&one, offset, &other),
            ];
            let befores = [
                (Before::Unknown, Previously::Unknown),
                (Before::Absent, Previously::Absent),
                (Before::Was(Value::from(&other[..])), Previously::Was(&other, None)),
                (
                    Before::Was(Value::from(&one[..]).expiring(expiry)),
                    Previously::Was(&one, expiry),
                ),
            ];
            for (what, expected) in changes.into_iter().zip(expected) {
                for (before, previously) in befores.clone() {
                    let what = what.clone();
                    let change = Change::Database(database as u8, Edit { what, before });
                    let mut record = Vec::new();
                    change.write(&mut record);
                    let read = Record::read(&record);
                    let expected = Record::Database(database, expected.clone(), previously);
                    prop_assert_eq!(read, Ok(expected));
                }
            }
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in bytes()) {
            let _ = Record::read(&bytes);
        }
    }

    #[test]
    fn answers_and_notes_are_read_back() {
        let (name, text) = (&b"a name"[..], &b"+OK\r\n"[..]);
        let written = |change: Change| {
            let mut record = Vec::new();
            change.write(&mut record);
            record
        };
        let answer = written(Change::Answer(name.into(), text.into()));
        assert_eq!(Record::read(&answer), Ok(Record::Answer(name, text)));
        let note = written(Change::Note(name.into(), (*b"").into()));
        assert_eq!(Record::read(&note), Ok(Record::Note(name, b"")));
        assert!(Record::read(&[NOTE, 9, 1]).is_err());
    }

    #[test]
    fn what_is_no_record_is_named() {
        for (bytes, told) in [
            (&b""[..], "0 bytes"),
            (&[99, 0][..], "kind 99"),
            (&[PUT, 16][..], "database 16"),
            (&[PUT, 0, 5, 1][..], "a length of 5 with 1 bytes behind it"),
            (&[PUT, 0, 0x80][..], "a number without its end"),
            (&[DELETE_RANGE, 0, 7][..], "a bound of kind 7"),
            (&[DELETE_RANGE, 0, 0, 0, 1][..], "1 bytes behind a range"),
            (
                &[EXPIRE, 0, 255, 255, 255, 255, 255, 255, 127][..],
                "a time of 562949953421311",
            ),
            (
                &[WITH_BEFORE, 0, 7][..],
                "7 in the place of what a key was before",
            ),
            (
                &[WITH_BEFORE, 0, ABSENT, WITH_BEFORE, 0, ABSENT][..],
                "what a key was before, twice",
            ),
            (
                &[WITH_BEFORE, 0, ABSENT, DELETE, 1][..],
                "databases 0 and 1 in one change",
            ),
            (&[WITH_BEFORE, 0, ABSENT][..], "0 bytes"),
            (
                &[WITH_BEFORE, 0, ABSENT, NOTHING][..],
                "what a key was before, and no change of a key",
            ),
            (&[TABLE][..], "byte 0: the bytes end here"),
            (&[TABLE, 99, 1][..], "byte 0: 99 is no kind of effect"),
        ] {
            let error = Record::read(bytes).unwrap_err().to_string();
            assert!(error.contains(told), "{bytes:?}: {error}");
        }
    }
}
