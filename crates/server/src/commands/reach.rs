//! What of the users' data a command touches. The check of users reads it.

use crate::resp::Arguments;
use crate::users::Access;
use std::ops::Range;

type Words = &'static [&'static str];

/// What of the data a command touches. A user may run it if all of that is open to him.
pub(crate) struct Reach {
    pub(crate) keys: KeyReach,
    /// Whether the first argument names a mailbox.
    pub(crate) mailbox: bool,
    pub(crate) channels: ChannelReach,
    pub(crate) terms: TermReach,
}

/// The channels that a command sends to or listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelReach {
    None,
    /// The first argument.
    First,
    /// All arguments.
    Every,
    /// All arguments, which are patterns.
    Patterns,
}

impl ChannelReach {
    /// The places of channels or patterns among the arguments.
    pub(crate) fn places(self, arguments: Arguments<'_>) -> Range<usize> {
        match self {
            Self::None => 1..1,
            Self::First => 1..2,
            Self::Every | Self::Patterns => 1..arguments.len(),
        }
    }
}

/// The tables and mailboxes that are named by terms among a command's arguments. The command
/// checks them itself, when it has read the terms; `ACL DRYRUN` reads this.
pub(crate) enum TermReach {
    None,
    /// The first argument names a table.
    Table,
    /// The first argument names a table; if it is the only one, it is a continuation of a search.
    Search,
    /// The first argument is a continuation of a search in a table.
    Continuation,
    /// The first two arguments name tables.
    TwoTables,
    /// The first argument names a table, and the second a mailbox.
    TableAndMailbox,
    /// The first argument names a table, and options behind it may name mailboxes.
    TableAndHeirs,
    /// Files, which may hold any table.
    Files,
}

/// The keys that a command touches.
pub(crate) enum KeyReach {
    None,
    /// Those among its arguments.
    At(Keys),
    /// As [`At`](Self::At), where the command does one thing with the first ones, and another with
    /// those behind them.
    AtBoth([Keys; 2]),
    /// As [`At`](Self::At), by a command that is no use of the keys.
    LookedAt(Keys),
    /// Those between the bounds that are its first two arguments.
    Range(Access),
    /// Those that are open to the user, which the command sees to by itself: the others are as if
    /// they were not there.
    Seen,
    /// All.
    Every(Access),
}

impl Reach {
    /// Whether the command may touch any key, not only those that its arguments name.
    pub(crate) const fn goes_far(&self) -> bool {
        matches!(self.keys, KeyReach::Seen | KeyReach::Every(_))
    }
}

/// Nothing that is open to some users and not to others.
pub(super) const NOTHING_OF_USERS: Reach = keys_only(KeyReach::None);
/// Tables that are open to the user, which the command sees to by itself.
pub(super) const TABLES_SEEN: Reach = keys_only(KeyReach::None);
pub(super) const TABLE: Reach = terms(TermReach::Table);
pub(super) const SEARCH: Reach = terms(TermReach::Search);
pub(super) const CONTINUATION: Reach = terms(TermReach::Continuation);
pub(super) const TWO_TABLES: Reach = terms(TermReach::TwoTables);
pub(super) const TABLE_AND_MAILBOX: Reach = terms(TermReach::TableAndMailbox);
pub(super) const TABLE_AND_HEIRS: Reach = terms(TermReach::TableAndHeirs);
pub(super) const TABLE_FILES: Reach = terms(TermReach::Files);
/// Mailboxes that are open to the user, which the command sees to by itself.
pub(super) const MAILBOXES_SEEN: Reach = keys_only(KeyReach::None);
pub(super) const MAILBOX: Reach = Reach {
    keys: KeyReach::None,
    mailbox: true,
    channels: ChannelReach::None,
    terms: TermReach::None,
};
pub(super) const CHANNEL: Reach = channels(ChannelReach::First);
pub(super) const CHANNELS: Reach = channels(ChannelReach::Every);
pub(super) const PATTERNS: Reach = channels(ChannelReach::Patterns);
pub(super) const SEEN: Reach = keys_only(KeyReach::Seen);
pub(super) const RANGE: Reach = keys_only(KeyReach::Range(Access::WRITE));
pub(super) const READ_RANGE: Reach = keys_only(KeyReach::Range(Access::READ));
/// Figures of all keys together.
pub(super) const ALL_SEEN: Reach = keys_only(KeyReach::Every(Access::READ));
pub(super) const EVERY_KEY: Reach = keys_only(KeyReach::Every(Access::WRITE));

pub(super) const fn at(keys: Keys) -> Reach {
    keys_only(KeyReach::At(keys))
}

pub(super) const fn looked_at(keys: Keys) -> Reach {
    keys_only(KeyReach::LookedAt(keys))
}

pub(super) const fn at_both(first: Keys, second: Keys) -> Reach {
    keys_only(KeyReach::AtBoth([first, second]))
}

const fn keys_only(keys: KeyReach) -> Reach {
    Reach {
        keys,
        mailbox: false,
        channels: ChannelReach::None,
        terms: TermReach::None,
    }
}

const fn channels(channels: ChannelReach) -> Reach {
    Reach {
        keys: KeyReach::None,
        mailbox: false,
        channels,
        terms: TermReach::None,
    }
}

const fn terms(terms: TermReach) -> Reach {
    Reach {
        keys: KeyReach::None,
        mailbox: false,
        channels: ChannelReach::None,
        terms,
    }
}

/// The positions of keys among the arguments, of which there is at least one.
pub(crate) struct Keys {
    pub(crate) first: i64,
    /// Counted from the end if negative.
    pub(crate) last: i64,
    pub(crate) step: i64,
    /// What the command does with the keys, in Redis's words.
    pub(crate) flags: &'static [&'static str],
    pub(crate) notes: &'static str,
}

impl Keys {
    /// What the command does with the keys, for these arguments, in Redis's words.
    pub(super) fn flags_for(&self, arguments: Arguments<'_>) -> Words {
        if !self.flags.contains(&"variable_flags") {
            return self.flags;
        }
        // Only `SET` has these.
        if wants_old(arguments) {
            &["RW", "access", "update"]
        } else {
            &["OW", "update"]
        }
    }

    /// The places of the keys among the arguments.
    pub(crate) fn places(&self, arguments: Arguments<'_>) -> impl Iterator<Item = usize> {
        let count = i64::try_from(arguments.len()).unwrap_or(i64::MAX);
        let last = if self.last < 0 {
            count + self.last
        } else {
            self.last
        };
        let step = usize::try_from(self.step).unwrap_or(1).max(1);
        (self.first..=last)
            .step_by(step)
            .filter_map(|at| usize::try_from(at).ok())
    }

    /// The keys among the arguments.
    pub(super) fn of<'a>(&self, arguments: Arguments<'a>) -> impl Iterator<Item = &'a [u8]> {
        self.places(arguments).map(move |at| arguments.get(at))
    }

    /// What the command does with the keys. As in Redis, a command that only shows whether a key
    /// is there, or how long its value is, needs no more than a rule for the key.
    pub(crate) fn access(&self, arguments: Arguments<'_>) -> Access {
        let flags = self.flags_for(arguments);
        let has = |flag| flags.contains(&flag);
        Access {
            read: has("access"),
            write: has("insert") || has("update") || has("delete"),
        }
    }
}

/// Whether `SET` is asked for the value before.
fn wants_old(arguments: Arguments<'_>) -> bool {
    let mut options = arguments.skip(3);
    options.any(|option| option.eq_ignore_ascii_case(b"get"))
}

pub(super) const fn one_key(flags: Words) -> Keys {
    Keys {
        first: 1,
        last: 1,
        step: 1,
        flags,
        notes: "",
    }
}

/// One key at another place, of which a command shows no bytes.
pub(super) const fn key_at(place: i64) -> Keys {
    Keys {
        first: place,
        last: place,
        step: 1,
        flags: &["RO"],
        notes: "",
    }
}

pub(super) const fn many_keys(step: i64, flags: Words) -> Keys {
    Keys {
        first: 1,
        last: -1,
        step,
        flags,
        notes: "",
    }
}
