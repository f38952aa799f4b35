//! Effects as bytes.
//!
//! An effect is a byte that says which kind it is, the number of its table, and what is new. A kind
//! whose form changes gets another byte, so that old bytes stay readable.
//!
//! ```text
//!  1 rows       position of the key, number of rows, rows
//!  2 added      rows before, position of the key, number of rows, rows
//!  3 removed    key
//!  4 range      {Low, High}
//!  5 cleared
//!  6 created    {Name, Options, Engine, Owner, Heir}
//!  7 deleted
//!  8 renamed    name
//!  9 owner      owner
//! 10 heir       {Owner, Data} or []
//! 11 access     access
//! 12 expiry     time or 0 for never, key
//! ```
//!
//! Numbers are of 1 to 10 bytes with 7 bits each, the lowest first; a byte of 128 or more is not
//! the last. All else is a term in the external format, without its version byte.

use super::owned::{Created, OwnedChange, OwnedEffect, OwnedRows};
use super::{Change, Effect, Rows};
use crate::match_spec::KeyInterval;
use crate::table::options::{Access, Heir, Options};
use crate::term::{Atom, DecodeProblem, Limits, Term, TooLarge, Tuple};
use thiserror::Error;
use tremula_index::Engine;

const ROWS: u8 = 1;
const ADDED: u8 = 2;
const REMOVED: u8 = 3;
const RANGE_REMOVED: u8 = 4;
const CLEARED: u8 = 5;
const CREATED: u8 = 6;
const DELETED: u8 = 7;
const RENAMED: u8 = 8;
const OWNER: u8 = 9;
const HEIR: u8 = 10;
const ACCESS: u8 = 11;
const EXPIRY: u8 = 12;

/// The bits of a number in one byte.
const BITS: u32 = 7;

/// Set in each byte of a number but the last.
const MORE: u8 = 1 << BITS;

/// Bytes that are no effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("byte {offset}: {problem}")]
#[non_exhaustive]
pub struct EffectError {
    /// Where.
    pub offset: usize,
    /// What is wrong there.
    #[source]
    pub problem: EffectProblem,
}

/// What is wrong with bytes that are no effect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EffectProblem {
    /// A kind of effect that does not exist, or of a later version.
    #[error("{0} is no kind of effect that this version knows")]
    Kind(u8),
    /// The bytes end too early.
    #[error("the bytes end here, within an effect")]
    Truncated,
    /// More bytes than the effect has.
    #[error("the effect ends here, but {0} more bytes follow")]
    Trailing(usize),
    /// A number that is too great.
    #[error("the number here is too great")]
    Number,
    /// Something other than what belongs here.
    #[error("this is not {0}")]
    Unexpected(&'static str),
    /// What should be a term is none, or exceeds a limit.
    #[error("{0}")]
    Term(#[from] DecodeProblem),
}

impl Effect<'_> {
    /// Appends the effect as bytes: some 3 bytes, and its terms in the external format. So every
    /// term is the same when it is read again, identifiers and functions too. O(bytes).
    ///
    /// ```
    /// use tremula_table::table::effect::{Change, Effect, OwnedEffect, Rows};
    /// use tremula_table::term::Limits;
    ///
    /// let row = ["{visits, 7}".parse::<tremula_table::Term>()?.as_tuple().unwrap().clone()];
    /// let effect = Effect::new(3, Change::Rows(Rows::given(0, &row).unwrap()));
    /// let mut bytes = Vec::new();
    /// effect.encode(&mut bytes)?;
    /// assert_eq!(bytes.len(), 16);
    /// let read = OwnedEffect::decode(&bytes, &Limits::default())?;
    /// assert_eq!(read.borrow().key().unwrap().to_string(), "visits");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A term has a part that is too long for the external format, which takes more than 4 GiB or
    /// 2^32 elements: then `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let before = out.len();
        let written = self.append(out);
        if written.is_err() {
            out.truncate(before);
        }
        written
    }

    fn append(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let mut begin = |kind| {
            out.push(kind);
            number(self.table, out);
        };
        match &self.change {
            Change::Rows(its) => {
                begin(ROWS);
                rows(its, out)
            }
            Change::Added { after, rows: its } => {
                begin(ADDED);
                number(*after as u64, out);
                rows(its, out)
            }
            Change::Removed(key) => {
                begin(REMOVED);
                key.append_etf(out)
            }
            Change::Expiry { key, time } => {
                begin(EXPIRY);
                number(time.unwrap_or(0), out);
                key.append_etf(out)
            }
            Change::RangeRemoved(interval) => {
                begin(RANGE_REMOVED);
                interval.to_term().append_etf(out)
            }
            Change::Cleared => {
                begin(CLEARED);
                Ok(())
            }
            Change::Created {
                name,
                options,
                owner,
                heir,
            } => {
                begin(CREATED);
                let engine = options.engine.map(|engine| Atom::new(engine.name()));
                let engine = engine.and_then(Result::ok).map_or(Term::NIL, Term::from);
                let created = Term::tuple([
                    (*name).into(),
                    options.to_term(),
                    engine,
                    owner.clone().into(),
                    heir_term(*heir),
                ]);
                created.append_etf(out)
            }
            Change::Deleted => {
                begin(DELETED);
                Ok(())
            }
            Change::Renamed(name) => {
                begin(RENAMED);
                Term::from(*name).append_etf(out)
            }
            Change::Owner(owner) => {
                begin(OWNER);
                Term::from(owner.clone()).append_etf(out)
            }
            Change::Heir(heir) => {
                begin(HEIR);
                heir_term(*heir).append_etf(out)
            }
            Change::Access(access) => {
                begin(ACCESS);
                Term::from(access.atom()).append_etf(out)
            }
        }
    }
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= u64::from(MORE) {
        out.push(value as u8 | MORE);
        value >>= BITS;
    }
    out.push(value as u8);
}

fn rows(rows: &Rows<'_>, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    number(rows.key_position() as u64, out);
    if let Some(row) = rows.only() {
        number(1, out);
        return Term::from(row).append_etf(out);
    }
    let all = rows.to_vec();
    number(all.len() as u64, out);
    all.into_iter()
        .try_for_each(|row| Term::from(row).append_etf(out))
}

fn heir_term(heir: Option<&Heir>) -> Term {
    heir.map_or(Term::NIL, |Heir { pid, data }| {
        Term::tuple([pid.clone().into(), data.clone()])
    })
}

/// What the bytes of an effect are about: [`Subject::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One key of the table with this number.
    Key(u64),
    /// The whole table with this number, or an interval of its keys.
    Table(u64),
}

impl Subject {
    /// What an effect is about that [`Effect::encode`] has written: several threads that apply
    /// effects learn from it which of them one belongs to. O(1): reads no term.
    ///
    /// # Errors
    ///
    /// The bytes do not begin as an effect does.
    pub fn of(bytes: &[u8]) -> Result<Self, EffectError> {
        let limits = Limits::NONE;
        let mut reader = Reader::new(bytes, &limits);
        let kind = reader.kind()?;
        let table = reader.number()?;
        Ok(match kind {
            ROWS | ADDED | REMOVED | EXPIRY => Self::Key(table),
            _ => Self::Table(table),
        })
    }
}

impl OwnedEffect {
    /// Reads what [`Effect::encode`] has written. Never panics, whatever the bytes are, and takes
    /// time and memory in proportion to them. The terms keep to the limits; whether rows keep to
    /// the bounds of a node is seen when the effect is [applied](crate::Tables::apply).
    ///
    /// An engine that this program lacks becomes the default engine.
    ///
    /// # Errors
    ///
    /// The bytes are no effect, continue behind it, or a term exceeds a limit. The error names the
    /// byte.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, EffectError> {
        let mut reader = Reader::new(bytes, limits);
        let kind = reader.kind()?;
        let table = reader.number()?;
        let change = reader.change(kind)?;
        match bytes.len() - reader.at {
            0 => Ok(Self { table, change }),
            left => Err(error(reader.at, EffectProblem::Trailing(left))),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a Limits,
}

const fn error(offset: usize, problem: EffectProblem) -> EffectError {
    EffectError { offset, problem }
}

impl<'a> Reader<'a> {
    const fn new(bytes: &'a [u8], limits: &'a Limits) -> Self {
        Self {
            bytes,
            at: 0,
            limits,
        }
    }

    fn kind(&mut self) -> Result<u8, EffectError> {
        let kind = self.byte()?;
        if !(ROWS..=EXPIRY).contains(&kind) {
            return Err(error(0, EffectProblem::Kind(kind)));
        }
        Ok(kind)
    }

    fn byte(&mut self) -> Result<u8, EffectError> {
        let byte = self.bytes.get(self.at).copied();
        let byte = byte.ok_or_else(|| error(self.at, EffectProblem::Truncated))?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, EffectError> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(BITS as usize) {
            let byte = self.byte()?;
            let part = u64::from(byte & !MORE);
            // The last byte has room for one bit only.
            if part << shift >> shift != part {
                break;
            }
            value |= part << shift;
            if byte & MORE == 0 {
                return Ok(value);
            }
        }
        Err(error(start, EffectProblem::Number))
    }

    fn size(&mut self) -> Result<usize, EffectError> {
        let start = self.at;
        let value = usize::try_from(self.number()?);
        value.map_err(|_| error(start, EffectProblem::Number))
    }

    fn term(&mut self) -> Result<Term, EffectError> {
        match Term::from_etf_body(&self.bytes[self.at..], self.limits) {
            Ok((term, used)) => {
                self.at += used;
                Ok(term)
            }
            Err(wrong) => Err(error(self.at + wrong.offset, wrong.problem.into())),
        }
    }

    /// What `read` makes of the next term.
    fn read<R>(
        &mut self,
        wanted: &'static str,
        read: impl FnOnce(&Term) -> Option<R>,
    ) -> Result<R, EffectError> {
        let start = self.at;
        let unexpected = || error(start, EffectProblem::Unexpected(wanted));
        read(&self.term()?).ok_or_else(unexpected)
    }

    fn rows(&mut self) -> Result<OwnedRows, EffectError> {
        let key_position = self.size()?;
        let start = self.at;
        let count = self.size()?;
        let wrong = |wanted| error(start, EffectProblem::Unexpected(wanted));
        // A row takes at least one byte.
        if count == 0 || count > self.bytes.len() - self.at {
            return Err(wrong("a number of rows that follow"));
        }
        let row = |term: &Term| match term {
            Term::Tuple(row) if row.len() > key_position => Some(row.clone()),
            _ => None,
        };
        let rows = (0..count).map(|_| self.read("a row with a key", row));
        let rows: Vec<Tuple> = rows.collect::<Result<_, _>>()?;
        Ok(OwnedRows { key_position, rows })
    }

    fn change(&mut self, kind: u8) -> Result<OwnedChange, EffectError> {
        Ok(match kind {
            ROWS => OwnedChange::Rows(self.rows()?),
            ADDED => OwnedChange::Added {
                after: self.size()?,
                rows: self.rows()?,
            },
            REMOVED => OwnedChange::Removed(self.term()?),
            RANGE_REMOVED => {
                OwnedChange::RangeRemoved(self.read("an interval of keys", KeyInterval::from_term)?)
            }
            CLEARED => OwnedChange::Cleared,
            CREATED => {
                let created = self.read("a new table", created)?;
                OwnedChange::Created(Box::new(created))
            }
            DELETED => OwnedChange::Deleted,
            RENAMED => OwnedChange::Renamed(self.read("a name", |term| match term {
                Term::Atom(name) => Some(*name),
                _ => None,
            })?),
            OWNER => OwnedChange::Owner(self.read("an owner", |term| match term {
                Term::Pid(pid) => Some(pid.clone()),
                _ => None,
            })?),
            HEIR => OwnedChange::Heir(self.read("an heir", heir)?),
            EXPIRY => OwnedChange::Expiry {
                time: Some(self.number()?).filter(|time| *time > 0),
                key: self.term()?,
            },
            _ => OwnedChange::Access(self.read("an access", |term| match term {
                Term::Atom(atom) => Access::of_atom(*atom),
                _ => None,
            })?),
        })
    }
}

fn heir(term: &Term) -> Option<Option<Heir>> {
    let Term::Tuple(parts) = term else {
        return term.is_nil().then_some(None);
    };
    let [Term::Pid(pid), data] = parts.elements() else {
        return None;
    };
    Some(Some(Heir {
        pid: pid.clone(),
        data: data.clone(),
    }))
}

fn created(term: &Term) -> Option<Created> {
    let Term::Tuple(parts) = term else {
        return None;
    };
    let [
        Term::Atom(name),
        options,
        engine,
        Term::Pid(owner),
        its_heir,
    ] = parts.elements()
    else {
        return None;
    };
    let mut options = Options::from_term(options).ok()?;
    options.engine = match engine {
        Term::Atom(name) => name.text().parse::<Engine>().ok().map(Into::into),
        nothing if nothing.is_nil() => None,
        _ => return None,
    };
    // A list of options could name these, too, but not as `encode` writes them.
    options.heir = None;
    Some(Created {
        name: *name,
        options,
        owner: owner.clone(),
        heir: heir(its_heir)?,
    })
}
