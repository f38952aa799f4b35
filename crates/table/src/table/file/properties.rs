//! What a file says about its table.

use crate::table::options::boolean;
use crate::table::{Access, Kind, Options, Table};
use crate::term::{Atom, Term};
use tremula_index::Engine;

/// Extended information in a file, as in Erlang. Here it is only noted, because every file has a
/// checksum per record and the number of rows anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExtendedInfo {
    /// The number of rows written.
    ObjectCount,
    /// A checksum of the whole file.
    Md5sum,
}

impl ExtendedInfo {
    const ALL: [Self; 2] = [Self::ObjectCount, Self::Md5sum];

    /// Its name in Erlang.
    #[must_use]
    pub const fn atom(self) -> Atom {
        match self {
            Self::ObjectCount => Atom::OBJECT_COUNT,
            Self::Md5sum => Atom::MD5SUM,
        }
    }
}

/// What a file says about its table: Erlang's `tabfile_info/1`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TabfileInfo {
    /// The name.
    pub name: Atom,
    /// The options of the table, for making it again.
    pub options: Options,
    /// The number of rows when writing began.
    pub size: u64,
    /// The extended information that was requested.
    pub extended_info: Vec<ExtendedInfo>,
    /// The version of the format.
    pub version: (u64, u64),
}

impl TabfileInfo {
    pub(super) fn of(table: &Table, size: usize, extended_info: &[ExtendedInfo]) -> Self {
        let mut options = table.shared.options.clone();
        options.access = table.shared.access();
        Self {
            name: table.name(),
            options,
            size: size as u64,
            extended_info: extended_info.to_vec(),
            version: (1, 0),
        }
    }

    /// The properties as Erlang's `tabfile_info/1` returns them, a list of pairs.
    #[must_use]
    pub fn to_term(&self) -> Term {
        Term::list(self.erlang_pairs())
    }

    fn erlang_pairs(&self) -> Vec<Term> {
        let extended = self.extended_info.iter().map(|info| info.atom().into());
        let version = [Term::from(self.version.0), Term::from(self.version.1)];
        vec![
            pair(Atom::NAME, self.name),
            pair(Atom::TYPE, self.options.kind.atom()),
            pair(Atom::PROTECTION, self.options.access.atom()),
            pair(Atom::NAMED_TABLE, self.options.named),
            pair(Atom::KEYPOS, self.options.keypos),
            pair(Atom::SIZE, self.size),
            pair(
                Atom::EXTENDED_INFO,
                Term::list(extended.collect::<Vec<_>>()),
            ),
            pair(Atom::VERSION, Term::tuple(version)),
        ]
    }

    /// All properties that `file2tab` needs to make the table again.
    pub(super) fn to_record(&self) -> Term {
        let options = &self.options;
        let mut pairs = self.erlang_pairs();
        pairs.extend([
            pair(Atom::COMPRESSED, options.compressed),
            pair(Atom::WRITE_CONCURRENCY, options.write_concurrency.atom()),
            pair(Atom::READ_CONCURRENCY, options.read_concurrency),
        ]);
        let counters = options.decentralized_counters;
        pairs.extend(counters.map(|counters| pair(Atom::DECENTRALIZED_COUNTERS, counters)));
        let engine = options
            .engine
            .and_then(|engine| Term::atom(engine.name()).ok());
        pairs.extend(engine.map(|name| pair(Atom::ENGINE, name)));
        Term::list(pairs)
    }

    /// Reads the properties from pairs; `None` if one is missing or invalid.
    pub(super) fn from_pairs<'a>(pairs: impl Iterator<Item = &'a Term>) -> Option<Self> {
        let (mut name, mut size, mut keypos) = (None, None, None);
        let (mut major, mut minor) = (1, 0);
        let mut options = Options::new();
        let mut extended_info = Vec::new();
        for pair in pairs {
            let Term::Tuple(pair) = pair else { return None };
            let [Term::Atom(item), value] = pair.elements() else {
                return None;
            };
            match (item.text(), value) {
                ("name", Term::Atom(value)) => name = Some(*value),
                ("size", value) => size = Some(number(value)?),
                ("keypos", value) => {
                    keypos = usize::try_from(number(value)?)
                        .ok()
                        .filter(|keypos| *keypos > 0);
                }
                ("type", Term::Atom(value)) => {
                    options.kind = Kind::ALL.into_iter().find(|kind| kind.atom() == *value)?;
                }
                ("protection", Term::Atom(value)) => options.access = Access::of_atom(*value)?,
                ("named_table", value) => options.named = boolean(value)?,
                ("compressed", value) => options.compressed = boolean(value)?,
                ("write_concurrency", Term::Atom(_))
                | ("read_concurrency" | "decentralized_counters", _) => {
                    options.set_value(*item, value)?;
                }
                // A table on an engine that this program lacks is read onto the default engine.
                ("engine", Term::Atom(value)) => {
                    options.engine = value.text().parse::<Engine>().ok().map(Into::into);
                }
                ("extended_info", Term::List(list)) => {
                    for item in list {
                        let known = |info: &ExtendedInfo| *item == info.atom();
                        extended_info.push(ExtendedInfo::ALL.into_iter().find(known)?);
                    }
                }
                ("version", Term::Tuple(version)) => {
                    let [first, second] = version.elements() else {
                        return None;
                    };
                    (major, minor) = (number(first)?, number(second)?);
                }
                ("major_version", value) => major = number(value)?,
                ("minor_version", value) => minor = number(value)?,
                // Erlang notes more about the original table.
                _ => (),
            }
        }
        options.keypos = keypos?;
        Some(Self {
            name: name?,
            options,
            size: size?,
            extended_info,
            version: (major, minor),
        })
    }
}

fn pair(item: Atom, value: impl Into<Term>) -> Term {
    Term::tuple([item.into(), value.into()])
}

fn number(term: &Term) -> Option<u64> {
    match term {
        Term::Integer(value) => u64::try_from(*value).ok(),
        _ => None,
    }
}
