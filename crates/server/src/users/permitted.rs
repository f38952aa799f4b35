//! The commands that a user may run.

use super::RuleError;
use crate::commands::{self, Command};
use crate::resp::Arguments;
use std::collections::{BTreeMap, BTreeSet};

/// The commands that a selector opens: all or none, changed by one word after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Permitted {
    /// Whether the words begin with all commands.
    from_all: bool,
    /// The words behind that, but for those that a later one has made void.
    words: Vec<String>,
    /// The permitted commands and subcommands, by their [tokens](Command::token).
    tokens: BTreeSet<usize>,
    /// Commands that are permitted only with one of these first arguments.
    first_arguments: BTreeMap<usize, Vec<Vec<u8>>>,
}

impl Permitted {
    pub(super) fn set(&mut self, all: bool) {
        *self = Self {
            from_all: all,
            ..Self::default()
        };
        if all {
            self.tokens = commands::all().map(Command::token).collect();
        }
    }

    pub(super) fn are_all(&self) -> bool {
        self.from_all && self.words.is_empty()
    }

    /// Permits or forbids what a word names behind its sign: `@category`, a command, a
    /// `command|subcommand`, or, if it permits, a `command|first-argument`.
    pub(super) fn change(&mut self, permits: bool, word: &[u8]) -> Result<(), RuleError> {
        let word = std::str::from_utf8(word).map_err(|_| RuleError::Unknown)?;
        let word = &*word.to_ascii_lowercase();
        if word == "@all" {
            self.set(permits);
        } else if word.starts_with('@') {
            if !commands::CATEGORIES.contains(&word) {
                return Err(RuleError::Unknown);
            }
            let members = commands::all().filter(|command| command.is_in(word));
            self.mark(permits, members);
            self.note(permits, word);
        } else if let Some(command) = commands::lookup_full(word.as_bytes()) {
            let parts = command.subcommands.iter();
            self.mark(permits, std::iter::once(command).chain(parts));
            self.note(permits, word);
        } else {
            self.permit_first_argument(permits, word)?;
        }
        Ok(())
    }

    fn permit_first_argument(&mut self, permits: bool, word: &str) -> Result<(), RuleError> {
        let (name, argument) = word.rsplit_once('|').ok_or(RuleError::Unknown)?;
        let command = commands::lookup_full(name.as_bytes()).ok_or(RuleError::Unknown)?;
        if !permits || !command.subcommands.is_empty() {
            return Err(RuleError::Unknown);
        }
        if name.contains('|') {
            return Err(RuleError::FirstArgument);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        let arguments = self.first_arguments.entry(command.token()).or_default();
        let argument = argument.as_bytes().to_vec();
        if !arguments.contains(&argument) {
            arguments.push(argument);
            self.note(permits, word);
        }
        Ok(())
    }

    fn mark(&mut self, permits: bool, commands: impl Iterator<Item = &'static Command>) {
        for command in commands {
            let token = command.token();
            self.first_arguments.remove(&token);
            if permits {
                self.tokens.insert(token);
            } else {
                self.tokens.remove(&token);
            }
        }
    }

    /// Keeps a word, and forgets earlier ones about the same, or about parts of it.
    fn note(&mut self, permits: bool, word: &str) {
        self.words.retain(|known| {
            let known = &known[1..];
            let is_part = known
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with('|'));
            known != word && !is_part
        });
        let sign = if permits { '+' } else { '-' };
        self.words.push(format!("{sign}{word}"));
    }

    /// Whether a command may run with these arguments.
    pub(super) fn allow(&self, command: &'static Command, arguments: Arguments<'_>) -> bool {
        let token = command.token();
        self.are_all()
            || self.tokens.contains(&token)
            || self.first_arguments.get(&token).is_some_and(|allowed| {
                let first = arguments.get(1);
                allowed.iter().any(|one| one.eq_ignore_ascii_case(first))
            })
    }

    /// Whether a command may run, whatever its arguments are.
    pub(super) fn contain(&self, command: &'static Command) -> bool {
        self.are_all() || self.tokens.contains(&command.token())
    }

    /// The words that lead from nothing to these commands.
    pub(super) fn describe(&self) -> String {
        let mut text = String::from(if self.from_all { "+@all" } else { "-@all" });
        for word in &self.words {
            text.push(' ');
            text.push_str(word);
        }
        text
    }
}
