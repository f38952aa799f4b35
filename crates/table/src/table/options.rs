//! The options of a new table.

use super::TableEngine;
use super::error::{BadArgument, Problem, Result};
use crate::term::{Atom, List, Pid, Term};
use std::fmt;
use tremula_index::Engine;

/// The four types of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One row per key; keys are compared by `=:=`; no order.
    #[default]
    Set,
    /// One row per key; keys are compared by `==`, and ordered by `<`.
    OrderedSet,
    /// Many rows per key, no two of them identical; keys as in a set.
    Bag,
    /// Many rows per key; keys as in a set.
    DuplicateBag,
}

/// Which callers may read a table, and which may write to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Every caller may read and write.
    Public,
    /// Every caller may read, only the owner may write.
    #[default]
    Protected,
    /// Only the owner may read and write.
    Private,
}

/// Whether many threads will write to a table at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WriteConcurrency {
    /// For one writer at a time: all writers of a `set` or a bag take one lock, which saves memory.
    #[default]
    Off,
    /// A structure for concurrent writers.
    On,
    /// As [`On`](Self::On), whose structures adapt to their load.
    Auto,
}

/// The owner that gets a table when its owner is gone, and the term that it gets with the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Heir {
    /// The [`Owner`](super::Owner)'s identifier.
    pub pid: Pid,
    /// The term for the heir: [`Transfer::data`](super::Transfer::data).
    pub data: Term,
}

/// The options of a new table: those of Erlang's `ets:new`, with its defaults.
///
/// | Erlang | here |
/// |---|---|
/// | `set`, `ordered_set`, `bag`, `duplicate_bag` | [`kind`](Self::kind) |
/// | `public`, `protected`, `private` | [`access`](Self::access) |
/// | `named_table` | [`named`](Self::named) |
/// | `{keypos, N}` | [`keypos`](Self::keypos), from 1 |
/// | `{heir, Pid, Data}`, `{heir, none}` | [`heir`](Self::heir) |
/// | `{write_concurrency, _}` | [`write_concurrency`](Self::write_concurrency) |
/// | `{read_concurrency, B}`, `{decentralized_counters, B}` | the same: only noted for `info` |
/// | `compressed` | [`compressed`](Self::compressed) |
/// | | [`engine`](Self::engine) of an `ordered_set`, as a term `{engine, Name}` |
///
/// Two options are only noted because reads and counters adapt to their load without them.
///
/// ```
/// use tremula_table::{Kind, Options, Term};
///
/// let term: Term = "[ordered_set, public, {keypos, 2}, {engine, b_tree}]".parse()?;
/// let options = Options::from_term(&term)?;
/// assert_eq!(options.kind, Kind::OrderedSet);
/// assert_eq!(options.keypos, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct Options {
    /// The type.
    pub kind: Kind,
    /// Which callers may read and write.
    pub access: Access,
    /// Whether the table is found by its name.
    pub named: bool,
    /// Which element of a row is the key, counted from 1.
    pub keypos: usize,
    /// The heir.
    pub heir: Option<Heir>,
    /// Whether many threads will write at once.
    pub write_concurrency: WriteConcurrency,
    /// Only noted for `info`.
    pub read_concurrency: bool,
    /// Only noted for `info`; `None` for Erlang's default.
    pub decentralized_counters: Option<bool>,
    /// Whether long rows are kept compressed.
    pub compressed: bool,
    /// The engine of an `ordered_set`. `None`: `aspen`, whose readers take no lock.
    pub engine: Option<TableEngine>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: Kind::default(),
            access: Access::default(),
            named: false,
            keypos: 1,
            heir: None,
            write_concurrency: WriteConcurrency::default(),
            read_concurrency: false,
            decentralized_counters: None,
            compressed: false,
            engine: None,
        }
    }
}

impl Options {
    /// Erlang's defaults: a protected `set` with the key first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the type.
    pub const fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets which callers may read and write.
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Lets callers find the table by its name.
    pub const fn named(mut self) -> Self {
        self.named = true;
        self
    }

    /// Sets which element of a row is the key, counted from 1.
    pub const fn keypos(mut self, keypos: usize) -> Self {
        self.keypos = keypos;
        self
    }

    /// Sets the heir, and the term that it gets with the table.
    pub fn heir(mut self, pid: Pid, data: Term) -> Self {
        self.heir = Some(Heir { pid, data });
        self
    }

    /// Sets whether many threads will write at once.
    pub const fn write_concurrency(mut self, write_concurrency: WriteConcurrency) -> Self {
        self.write_concurrency = write_concurrency;
        self
    }

    /// Keeps long rows compressed.
    pub const fn compressed(mut self) -> Self {
        self.compressed = true;
        self
    }

    /// Sets the engine of an `ordered_set`.
    pub fn engine(mut self, engine: impl Into<TableEngine>) -> Self {
        self.engine = Some(engine.into());
        self
    }

    /// Options as Erlang has them: a list of atoms and pairs. A later option overrides an earlier
    /// one, except that `set` does not override another type.
    ///
    /// # Errors
    ///
    /// The term is no proper list, or an element of it no option.
    pub fn from_term(term: &Term) -> Result<Self> {
        let wrong = |term: &Term| BadArgument::new("new", 2, Problem::NotAnOption(term.clone()));
        let mut options = Self::new();
        for option in proper(term).ok_or_else(|| wrong(term))? {
            options.set(option).ok_or_else(|| wrong(option))?;
        }
        Ok(options)
    }

    /// The options as [`from_term`](Self::from_term) reads them, without the heir and the engine.
    pub(super) fn to_term(&self) -> Term {
        let mut list: Vec<Term> = vec![self.kind.atom().into(), self.access.atom().into()];
        list.extend(self.named.then(|| Atom::NAMED_TABLE.into()));
        list.extend(self.compressed.then(|| Atom::COMPRESSED.into()));
        let pair = |name: Atom, value: Term| Term::tuple([name.into(), value]);
        list.push(pair(Atom::KEYPOS, self.keypos.into()));
        let write = self.write_concurrency.atom();
        list.push(pair(Atom::WRITE_CONCURRENCY, write.into()));
        list.push(pair(Atom::READ_CONCURRENCY, self.read_concurrency.into()));
        let counters = self.decentralized_counters;
        list.extend(counters.map(|on| pair(Atom::DECENTRALIZED_COUNTERS, on.into())));
        Term::list(list)
    }

    /// Sets one option; `None` if the term is no option.
    fn set(&mut self, option: &Term) -> Option<()> {
        let pair = match option {
            Term::Atom(atom) => return self.set_flag(*atom),
            Term::Tuple(pair) => pair,
            _ => return None,
        };
        match pair.elements() {
            [Term::Atom(name), value] if *name != Atom::HEIR => self.set_value(*name, value),
            parts => {
                self.heir = Heir::of(parts)?;
                Some(())
            }
        }
    }

    fn set_flag(&mut self, flag: Atom) -> Option<()> {
        if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.atom() == flag) {
            if kind != Kind::Set {
                self.kind = kind;
            }
        } else if let Some(access) = Access::of_atom(flag) {
            self.access = access;
        } else if flag == Atom::NAMED_TABLE {
            self.named = true;
        } else if flag == Atom::COMPRESSED {
            self.compressed = true;
        } else {
            return None;
        }
        Some(())
    }

    /// Sets an option that is a pair; `None` if it is no option.
    pub(super) fn set_value(&mut self, name: Atom, value: &Term) -> Option<()> {
        match name.text() {
            "keypos" => {
                let Term::Integer(keypos) = value else {
                    return None;
                };
                self.keypos = usize::try_from(*keypos).ok().filter(|keypos| *keypos > 0)?;
            }
            "write_concurrency" => {
                let is_it = |one: &WriteConcurrency| *value == one.atom();
                self.write_concurrency = WriteConcurrency::ALL.into_iter().find(is_it)?;
            }
            "read_concurrency" => self.read_concurrency = boolean(value)?,
            "decentralized_counters" => self.decentralized_counters = Some(boolean(value)?),
            "engine" => {
                let Term::Atom(name) = value else { return None };
                self.engine = Some(name.text().parse::<Engine>().ok()?.into());
            }
            _ => return None,
        }
        Some(())
    }

    /// What `info` shows: off in a table that is made private, because only its owner writes to it.
    pub(super) fn has_write_concurrency(&self) -> WriteConcurrency {
        match self.access {
            Access::Private => WriteConcurrency::Off,
            _ => self.write_concurrency,
        }
    }

    /// What `info` shows: only counters that many threads write to are decentralized.
    pub(super) fn has_decentralized_counters(&self) -> bool {
        let by_default = match self.has_write_concurrency() {
            WriteConcurrency::Off => return false,
            WriteConcurrency::On => self.kind == Kind::OrderedSet,
            WriteConcurrency::Auto => true,
        };
        self.decentralized_counters.unwrap_or(by_default)
    }
}

impl Heir {
    /// What an option with these parts says about the heir; `None` if it is no such option.
    pub(super) fn of(option: &[Term]) -> Option<Option<Self>> {
        match option {
            [Term::Atom(name), Term::Atom(none)] if [*name, *none] == [Atom::HEIR, Atom::NONE] => {
                Some(None)
            }
            [Term::Atom(name), Term::Pid(pid), data] if *name == Atom::HEIR => Some(Some(Self {
                pid: pid.clone(),
                data: data.clone(),
            })),
            _ => None,
        }
    }
}

pub(super) fn boolean(term: &Term) -> Option<bool> {
    match term {
        Term::Atom(atom) if *atom == Atom::TRUE => Some(true),
        Term::Atom(atom) if *atom == Atom::FALSE => Some(false),
        _ => None,
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Set, Self::OrderedSet, Self::Bag, Self::DuplicateBag];

    /// Its name in Erlang.
    #[must_use]
    pub const fn atom(self) -> Atom {
        match self {
            Self::Set => Atom::SET,
            Self::OrderedSet => Atom::ORDERED_SET,
            Self::Bag => Atom::BAG,
            Self::DuplicateBag => Atom::DUPLICATE_BAG,
        }
    }

    /// Whether there may be more than one row with a key.
    #[must_use]
    pub const fn is_bag(self) -> bool {
        matches!(self, Self::Bag | Self::DuplicateBag)
    }
}

impl Access {
    /// Every access, at the index that is its number.
    pub(super) const ALL: [Self; 3] = [Self::Public, Self::Protected, Self::Private];

    /// Its name in Erlang.
    #[must_use]
    pub const fn atom(self) -> Atom {
        match self {
            Self::Public => Atom::PUBLIC,
            Self::Protected => Atom::PROTECTED,
            Self::Private => Atom::PRIVATE,
        }
    }

    pub(super) fn of_atom(atom: Atom) -> Option<Self> {
        Self::ALL.into_iter().find(|access| access.atom() == atom)
    }
}

impl WriteConcurrency {
    const ALL: [Self; 3] = [Self::Off, Self::On, Self::Auto];

    /// The value of the option in Erlang.
    #[must_use]
    pub const fn atom(self) -> Atom {
        match self {
            Self::Off => Atom::FALSE,
            Self::On => Atom::TRUE,
            Self::Auto => Atom::AUTO,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.atom().text())
    }
}

impl fmt::Display for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.atom().text())
    }
}

/// The elements of a proper list.
pub(super) fn proper(term: &Term) -> Option<&List> {
    match term {
        Term::List(list) if list.is_proper() => Some(list),
        _ => None,
    }
}
