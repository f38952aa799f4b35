//! The table of commands.

use super::reach::{KeyReach, Keys, Reach};
use super::rows::COMMANDS;
use super::{Context, Outcome};
use crate::apart::{LONG, LONG_WORDS, MANY};
use crate::resp::Arguments;

/// One command, or one subcommand of one.
pub(crate) struct Command {
    /// In lower case. A subcommand has only its own name here.
    pub(crate) name: &'static str,
    /// As Redis writes it in errors and listings: `client|id`.
    pub(crate) full_name: &'static str,
    /// The number of arguments including the names; negative if more may follow.
    pub(crate) arity: i64,
    pub(crate) run: fn(&mut Context<'_>, Arguments<'_>) -> Outcome,
    /// Redis's flags, in its order.
    pub(crate) flags: &'static [&'static str],
    /// The categories that do not follow from the flags.
    group_categories: &'static [&'static str],
    /// What of the users' data it touches.
    pub(crate) reach: Reach,
    pub(crate) tips: &'static [&'static str],
    /// The command as a person writes it.
    pub(crate) syntax: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) complexity: &'static str,
    pub(crate) group: &'static str,
    /// The version of Redis, or of Tremula for its own commands, that had it first.
    pub(crate) since: &'static str,
    pub(crate) subcommands: &'static [Command],
}

type Words = &'static [&'static str];

/// The categories: Redis's, in its order, of which those of types that do not exist here are empty,
/// and Tremula's own, which are groups of commands.
pub(crate) const CATEGORIES: [&str; 24] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@bitmap",
    "@hyperloglog",
    "@geo",
    "@stream",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
    "@transaction",
    "@scripting",
    "@ordered",
    "@mailbox",
    "@ets",
];

impl Command {
    /// Whether the command takes `count` arguments, including the names.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity < 0 {
            count >= -self.arity
        } else {
            count == self.arity
        }
    }

    /// Whether the command takes a few microseconds at most, but for the bytes that it copies and
    /// the steps that it counts itself.
    pub(crate) fn is_short(&self) -> bool {
        self.has_one_key() || self.flags.contains(&"fast")
    }

    /// Its number among all commands and their subcommands, below [`COUNT`].
    pub(crate) fn number(&'static self) -> usize {
        if let Some(at) = place(COMMANDS, self) {
            return at;
        }
        let container = self.full_name.split('|').next().unwrap_or_default();
        let at = lookup(container.as_bytes()).and_then(|command| place(COMMANDS, command));
        let at = at.unwrap_or_default();
        let within = place(COMMANDS[at].subcommands, self).unwrap_or_default();
        FIRST_SUBCOMMANDS[at] + within
    }

    /// Whether it is left out of `SLOWLOG`.
    pub(crate) fn skips_slowlog(&self) -> bool {
        self.flags.contains(&"skip_slowlog")
    }

    /// The positions of its keys; none if it has no keys among its arguments.
    #[inline]
    pub(crate) fn keys(&self) -> &[Keys] {
        match &self.reach.keys {
            KeyReach::At(keys) | KeyReach::LookedAt(keys) => std::slice::from_ref(keys),
            KeyReach::AtBoth(keys) => keys,
            _ => &[],
        }
    }

    /// Whether reading these arguments may take long, so that the command begins on the thread
    /// apart.
    #[inline]
    pub(crate) fn is_long(&self, arguments: Arguments<'_>) -> bool {
        let (size, count) = (arguments.size(), arguments.len());
        if size < LONG_WORDS && count < MANY {
            return false;
        }
        size >= LONG || count >= MANY || matches!(self.group, "ets" | "server")
    }

    /// A number that stands for the command in an atomic variable; never 0.
    pub(crate) fn token(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The command with a [token](Self::token).
    pub(crate) fn of_token(token: usize) -> Option<&'static Self> {
        all().find(|command| command.token() == token)
    }

    /// Whether the command may need memory beyond its reply, Redis's flag `denyoom`.
    pub(crate) fn needs_memory(&self) -> bool {
        self.flags.contains(&"denyoom")
    }

    /// Whether the command changes something, but needs no memory for it.
    pub(crate) fn only_frees(&self) -> bool {
        self.flags.contains(&"write") && !self.needs_memory()
    }

    /// Whether the command keeps no more than the keys that its request names.
    pub(crate) fn only_counts(&self) -> bool {
        matches!(self.full_name, "exists" | "touch")
    }

    /// Whether the command goes through all keys, or may.
    pub(crate) fn visits_all(&self) -> bool {
        const SOME: [&str; 7] = [
            "first",
            "next",
            "range",
            "rangecount",
            "delrange",
            "flushdb",
            "flushall",
        ];
        self.reach.goes_far() && !SOME.contains(&self.full_name)
    }

    /// Whether the command uses a key, and that is its first argument.
    #[inline]
    pub(crate) fn has_one_key(&self) -> bool {
        matches!(&self.reach.keys, KeyReach::At(keys) if keys.last == 1)
    }

    /// Whether the arguments are terms.
    pub(crate) fn takes_terms(&self) -> bool {
        self.full_name.starts_with("ets.")
    }

    /// All categories, including those that follow from the flags.
    pub(crate) fn categories(&self) -> impl Iterator<Item = &'static str> + Clone {
        CATEGORIES
            .into_iter()
            .filter(|category| self.is_in(category))
    }

    /// Whether the command belongs to a category, also one that follows from its flags.
    pub(crate) fn is_in(&self, category: &str) -> bool {
        let flagged = |flag| self.flags.contains(&flag);
        self.group_categories.contains(&category)
            || match category {
                "@read" => flagged("readonly"),
                "@write" => flagged("write"),
                "@admin" | "@dangerous" => flagged("admin"),
                "@fast" => flagged("fast"),
                "@slow" => !flagged("fast"),
                "@ordered" | "@mailbox" | "@ets" => category[1..] == *self.group,
                _ => false,
            }
    }

    pub(super) const fn new(
        name: &'static str,
        arity: i64,
        run: fn(&mut Context<'_>, Arguments<'_>) -> Outcome,
        flags: Words,
        group_categories: Words,
        reach: Reach,
    ) -> Self {
        Self {
            name,
            full_name: name,
            arity,
            run,
            flags,
            group_categories,
            reach,
            tips: &[],
            syntax: "",
            summary: "",
            complexity: "",
            group: "",
            since: "",
            subcommands: &[],
        }
    }

    pub(super) const fn docs(
        mut self,
        group: &'static str,
        since: &'static str,
        complexity: &'static str,
        syntax: &'static str,
        summary: &'static str,
    ) -> Self {
        self.group = group;
        self.since = since;
        self.complexity = complexity;
        self.syntax = syntax;
        self.summary = summary;
        self
    }

    pub(super) const fn tips(mut self, tips: Words) -> Self {
        self.tips = tips;
        self
    }

    pub(super) const fn full_name(mut self, full_name: &'static str) -> Self {
        self.full_name = full_name;
        self
    }

    pub(super) const fn subcommands(mut self, subcommands: &'static [Command]) -> Self {
        self.subcommands = subcommands;
        self
    }
}

/// The size of the hash table of names: large enough that most lookups end at the first slot.
const SLOTS: usize = 512;

/// An empty slot.
const NONE: u8 = u8::MAX;

/// The command of each slot, by its index in [`COMMANDS`]. Computed at compile time.
static BY_NAME: [u8; SLOTS] = {
    let mut slots = [NONE; SLOTS];
    let mut index = 0;
    while index < COMMANDS.len() {
        let mut slot = slot_of(COMMANDS[index].name.as_bytes());
        while slots[slot] != NONE {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = index as u8;
        index += 1;
    }
    slots
};

/// The slot at which the search for a name begins, in upper or lower case.
const fn slot_of(name: &[u8]) -> usize {
    let mut hash = name.len();
    let mut index = 0;
    while index < name.len() {
        hash = hash
            .wrapping_mul(31)
            .wrapping_add((name[index] | 0x20) as usize);
        index += 1;
    }
    (hash ^ (hash >> 8)) % SLOTS
}

/// The number of the first subcommand of each command; in the last place that of all rows.
static FIRST_SUBCOMMANDS: [usize; COMMANDS.len() + 1] = {
    let mut firsts = [COMMANDS.len(); COMMANDS.len() + 1];
    let mut index = 0;
    while index < COMMANDS.len() {
        firsts[index + 1] = firsts[index] + COMMANDS[index].subcommands.len();
        index += 1;
    }
    firsts
};

/// The number of commands with their subcommands.
pub(crate) const COUNT: usize = FIRST_SUBCOMMANDS[COMMANDS.len()];

/// The place of a row in a slice of rows.
fn place(rows: &[Command], row: &Command) -> Option<usize> {
    let first = rows.as_ptr().addr();
    let at = std::ptr::from_ref(row).addr().checked_sub(first)? / size_of::<Command>();
    (at < rows.len()).then_some(at)
}

/// The command with this name, in upper or lower case.
pub(crate) fn lookup(name: &[u8]) -> Option<&'static Command> {
    let mut slot = slot_of(name);
    loop {
        // The search ends, because the table has more slots than commands.
        let command = COMMANDS.get(usize::from(BY_NAME[slot]))?;
        if name.eq_ignore_ascii_case(command.name.as_bytes()) {
            return Some(command);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The command or subcommand with this [number](Command::number).
pub(crate) fn numbered(number: usize) -> Option<&'static Command> {
    COMMANDS.get(number).or_else(|| {
        let at = FIRST_SUBCOMMANDS.partition_point(|first| *first <= number);
        let container = COMMANDS.get(at.checked_sub(1)?)?;
        let first = FIRST_SUBCOMMANDS[at - 1];
        container.subcommands.get(number.checked_sub(first)?)
    })
}

/// All commands and their subcommands.
pub(crate) fn all() -> impl Iterator<Item = &'static Command> {
    COMMANDS
        .iter()
        .flat_map(|command| std::iter::once(command).chain(command.subcommands))
}

/// The command or subcommand with this full name.
pub(crate) fn lookup_full(name: &[u8]) -> Option<&'static Command> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let command = lookup(parts.next()?)?;
    match parts.next() {
        None => Some(command),
        Some(sub) => command
            .subcommands
            .iter()
            .find(|command| sub.eq_ignore_ascii_case(command.name.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_and_nothing_else_is() {
        for command in COMMANDS {
            for name in [command.name.to_owned(), command.name.to_ascii_uppercase()] {
                assert!(lookup(name.as_bytes()).is_some_and(|found| std::ptr::eq(found, command)));
            }
            for sub in command.subcommands {
                assert_eq!(sub.full_name, format!("{}|{}", command.name, sub.name));
                assert!(
                    lookup_full(sub.full_name.as_bytes()).is_some_and(|it| std::ptr::eq(it, sub))
                );
            }
        }
        for name in ["", "g", "gets", "get ", "get|x", "client|"] {
            assert!(lookup_full(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn every_command_has_a_number_of_its_own() {
        let mut seen = [false; COUNT];
        for command in all() {
            let number = command.number();
            assert!(
                !std::mem::replace(&mut seen[number], true),
                "{}",
                command.full_name
            );
            assert!(numbered(number).is_some_and(|found| std::ptr::eq(found, command)));
        }
        assert!(seen.iter().all(|seen| *seen) && numbered(COUNT).is_none());
    }

    /// `COMMAND` shows them as one list, as in Redis before version 7.
    #[test]
    fn keys_of_two_kinds_are_beside_each_other() {
        let mut count = 0;
        for command in all() {
            for pair in command.keys().windows(2) {
                assert_eq!(pair[0].last + 1, pair[1].first, "{}", command.full_name);
                assert_eq!((pair[0].step, pair[1].step), (1, 1));
                count += 1;
            }
        }
        assert!(count > 0);
    }

    #[test]
    fn every_command_is_documented() {
        for command in all() {
            for text in [
                command.syntax,
                command.summary,
                command.complexity,
                command.group,
                command.since,
            ] {
                assert!(!text.is_empty(), "{}", command.full_name);
            }
            let name = command.full_name.replace('|', " ").to_ascii_uppercase();
            assert!(command.syntax.starts_with(&name), "{name}");
        }
    }
}
