//! What of the users' data a command touches. The check of users reads it.

use crate::resp::Arguments;
use crate::users::Access;

type Words = &'static [&'static str];

/// What of the data a command touches. A user may run it if all of that is open to him.
pub(crate) struct Reach {
    pub(crate) keys: KeyReach,
    /// Whether the first argument names a mailbox.
    pub(crate) mailbox: bool,
}

/// The keys that a command touches.
pub(crate) enum KeyReach {
    None,
    /// Those among its arguments.
    At(Keys),
    /// Those between the bounds that are its first two arguments.
    Range(Access),
    /// Those that are open to the user, which the command sees to by itself: the others are as if
    /// they were not there.
    Seen,
    /// All.
    Every(Access),
}

/// Nothing that is open to some users and not to others.
pub(super) const NOTHING_OF_USERS: Reach = keys_only(KeyReach::None);
/// Tables, whose names are terms: a command finds one only through a call of `ets`, which checks
/// it.
pub(super) const TABLES: Reach = keys_only(KeyReach::None);
/// Mailboxes that are open to the user, which the command sees to by itself.
pub(super) const MAILBOXES_SEEN: Reach = keys_only(KeyReach::None);
pub(super) const MAILBOX: Reach = Reach {
    keys: KeyReach::None,
    mailbox: true,
};
pub(super) const SEEN: Reach = keys_only(KeyReach::Seen);
pub(super) const RANGE: Reach = keys_only(KeyReach::Range(Access::WRITE));
/// Figures of all keys together.
pub(super) const ALL_SEEN: Reach = keys_only(KeyReach::Every(Access::READ));
pub(super) const EVERY_KEY: Reach = keys_only(KeyReach::Every(Access::WRITE));

pub(super) const fn at(keys: Keys) -> Reach {
    keys_only(KeyReach::At(keys))
}

const fn keys_only(keys: KeyReach) -> Reach {
    Reach {
        keys,
        mailbox: false,
    }
}

/// The positions of the keys among the arguments; all zero if the command has no keys.
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
    /// The keys among the arguments.
    pub(crate) fn of<'a>(&self, arguments: Arguments<'a>) -> impl Iterator<Item = &'a [u8]> {
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
            .map(move |at| arguments.get(at))
    }

    /// What the command does with the keys. As in Redis, a command that only shows whether a key
    /// is there, or how long its value is, needs no more than a rule for the key.
    pub(crate) fn access(&self, arguments: Arguments<'_>) -> Access {
        let has = |flag| self.flags.contains(&flag);
        // Only `SET` has these: it reads if it is asked for the value before.
        let reads = has("access")
            && (!has("variable_flags")
                || arguments
                    .skip(3)
                    .any(|option| option.eq_ignore_ascii_case(b"get")));
        Access {
            read: reads,
            write: has("insert") || has("update") || has("delete"),
        }
    }
}

pub(super) static NO_KEYS: Keys = Keys {
    first: 0,
    last: 0,
    step: 0,
    flags: &[],
    notes: "",
};

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
