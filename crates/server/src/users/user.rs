//! One user: how he proves who he is, and what he may do.

use super::access::{Access, Interval, KeyRules};
use super::names::Names;
use super::password::Password;
use super::permitted::Permitted;
use super::{LONGEST_WORD, MOST_RULES, Reason, RuleError};
use crate::commands::{ChannelReach, Command, KeyReach, interval_of};
use crate::resp::Arguments;
use std::sync::Arc;
use subtle::Choice;

/// What a part of a user opens: commands, and with these keys, tables, mailboxes and channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    permitted: Permitted,
    keys: KeyRules,
    channels: Names,
    tables: Names,
    mailboxes: Names,
    /// Words that have added something.
    rules: usize,
}

/// Why a user may not run a command. The greater one lacks less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    Command,
    /// Every key would have to be open.
    AllKeys,
    /// The key at this place among the arguments; of a range that is not open as a whole, its first
    /// bound.
    Key(usize),
    /// The mailbox that the first argument names.
    Mailbox,
    /// The channel, or the pattern, at this place among the arguments.
    Channel(usize),
}

impl Denial {
    /// What kind of thing is refused, and which.
    pub(crate) fn about(self, command: &Command, arguments: Arguments<'_>) -> (Reason, Vec<u8>) {
        let (reason, object) = match self {
            Self::Command => (Reason::Command, command.full_name.as_bytes()),
            Self::AllKeys => (Reason::Key, &b"*"[..]),
            Self::Key(at) => (Reason::Key, arguments.get(at)),
            Self::Mailbox => (Reason::Mailbox, arguments.get(1)),
            Self::Channel(at) => (Reason::Channel, arguments.get(at)),
        };
        (reason, object.to_vec())
    }
}

impl Selector {
    /// Does what one word says.
    fn apply(&mut self, word: &[u8]) -> Result<(), RuleError> {
        match &*word.to_ascii_lowercase() {
            b"allkeys" | b"~*" => self.keys.set(true),
            b"resetkeys" => self.keys.set(false),
            b"allchannels" | b"&*" => self.channels.set(true),
            b"resetchannels" => self.channels.set(false),
            b"alltables" => self.tables.set(true),
            b"resettables" => self.tables.set(false),
            b"allmailboxes" => self.mailboxes.set(true),
            b"resetmailboxes" => self.mailboxes.set(false),
            b"allcommands" => self.permitted.set(true),
            b"nocommands" => self.permitted.set(false),
            _ => return self.add(word),
        }
        Ok(())
    }

    fn add(&mut self, word: &[u8]) -> Result<(), RuleError> {
        if self.rules >= MOST_RULES {
            return Err(RuleError::TooMany);
        }
        if word.len() > LONGEST_WORD {
            return Err(RuleError::TooLong);
        }
        self.rules += 1;
        match word {
            [b'~' | b'%', ..] => self.keys.add(word),
            [b'&', pattern @ ..] => self.channels.add(pattern, RuleError::ChannelsAfterAll),
            [b'+', name @ ..] => self.permitted.change(true, name),
            [b'-', name @ ..] => self.permitted.change(false, name),
            _ => {
                if let Some(pattern) = behind(word, b"tables:") {
                    self.tables.add(pattern, RuleError::TablesAfterAll)
                } else if let Some(pattern) = behind(word, b"mailboxes:") {
                    self.mailboxes.add(pattern, RuleError::MailboxesAfterAll)
                } else {
                    Err(RuleError::Syntax)
                }
            }
        }
    }

    /// The words that lead from nothing to this selector, each with a space before it.
    fn describe(&self, out: &mut Vec<u8>) {
        self.keys.describe(out);
        if !self.channels.are_all() {
            out.extend_from_slice(b" resetchannels");
        }
        self.channels.describe("&", out);
        self.tables.describe("tables:", out);
        self.mailboxes.describe("mailboxes:", out);
        out.push(b' ');
        out.extend_from_slice(self.permitted.describe().as_bytes());
    }

    /// The name and the words of each kind of rule, for `ACL GETUSER`.
    pub(crate) fn parts(&self) -> [(&'static str, Vec<u8>); 5] {
        let of = |describe: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            describe(&mut out);
            if !out.is_empty() {
                out.remove(0);
            }
            out
        };
        [
            ("commands", self.permitted.describe().into_bytes()),
            ("keys", of(&|out| self.keys.describe(out))),
            ("channels", of(&|out| self.channels.describe("&", out))),
            ("tables", of(&|out| self.tables.describe("tables:", out))),
            (
                "mailboxes",
                of(&|out| self.mailboxes.describe("mailboxes:", out)),
            ),
        ]
    }

    fn is_everything(&self) -> bool {
        self.permitted.are_all()
            && self.keys.are_all()
            && self.channels.are_all()
            && self.tables.are_all()
            && self.mailboxes.are_all()
    }

    fn check(&self, command: &'static Command, arguments: Arguments<'_>) -> Result<(), Denial> {
        // Anybody may say who he is, and leave.
        if !command.flags.contains(&"no_auth") && !self.permitted.allow(command, arguments) {
            return Err(Denial::Command);
        }
        match &command.reach.keys {
            KeyReach::None | KeyReach::Seen => (),
            KeyReach::At(_) | KeyReach::AtBoth(_) | KeyReach::LookedAt(_) => {
                for keys in command.keys() {
                    let access = keys.access(arguments);
                    for at in keys.places(arguments) {
                        if !self.keys.allow(access, arguments.get(at)) {
                            return Err(Denial::Key(at));
                        }
                    }
                }
            }
            KeyReach::Range(access) => {
                // Wrong bounds are the command's to refuse.
                if let Some(interval) = interval_of(arguments)
                    && !self.keys.allow_all_in(*access, &interval)
                {
                    return Err(Denial::Key(1));
                }
            }
            KeyReach::Every(access) => {
                if !self.keys.allow_all_in(*access, &Interval::all()) {
                    return Err(Denial::AllKeys);
                }
            }
        }
        if command.reach.mailbox && !self.mailboxes.allow(arguments.get(1)) {
            return Err(Denial::Mailbox);
        }
        let closed = |at: &usize| !self.hears(command.reach.channels, arguments.get(*at));
        match command.reach.channels.places(arguments).find(closed) {
            Some(at) => Err(Denial::Channel(at)),
            None => Ok(()),
        }
    }

    /// Whether a channel, or all that match a pattern, are open.
    fn hears(&self, channels: ChannelReach, name: &[u8]) -> bool {
        match channels {
            ChannelReach::None => true,
            ChannelReach::First | ChannelReach::Every => self.channels.allow(name),
            ChannelReach::Patterns => self.channels.allow_pattern(name),
        }
    }

    fn begin(opens_channels: bool) -> Self {
        let mut selector = Self::default();
        selector.channels.set(opens_channels);
        selector
    }
}

/// What comes behind a word of ASCII letters, in upper or lower case.
fn behind<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// A user, as of a moment: a change makes another.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) name: Arc<[u8]>,
    is_on: bool,
    /// Whether any password is right.
    no_password: bool,
    passwords: Vec<Password>,
    /// The user's own rules, and then those in brackets. One of them has to allow a command with
    /// all that it touches.
    selectors: Vec<Selector>,
    /// Whether a new selector opens all channels.
    opens_channels: bool,
}

impl User {
    /// A user who may do nothing, and who cannot prove who he is.
    ///
    /// All channels are open to him if `opens_channels`.
    pub(super) fn new(name: &[u8], opens_channels: bool) -> Self {
        Self {
            name: name.into(),
            is_on: false,
            no_password: false,
            passwords: Vec::new(),
            selectors: vec![Selector::begin(opens_channels)],
            opens_channels,
        }
    }

    /// The user of a connection that has not said whose it is: he may do everything, until an
    /// operator says otherwise.
    pub(super) fn default_user() -> Self {
        let mut user = Self::new(super::DEFAULT, false);
        user.is_on = true;
        user.no_password = true;
        let own = &mut user.selectors[0];
        own.permitted.set(true);
        own.keys.set(true);
        own.channels.set(true);
        own.tables.set(true);
        own.mailboxes.set(true);
        user
    }

    /// Does what one word of `ACL SETUSER` says.
    pub(super) fn apply(&mut self, word: &[u8]) -> Result<(), RuleError> {
        match &*word.to_ascii_lowercase() {
            b"" => (),
            b"on" => self.is_on = true,
            b"off" => self.is_on = false,
            // No command restores what another server has written, so there is nothing to check.
            b"sanitize-payload" | b"skip-sanitize-payload" => (),
            b"nopass" => {
                self.no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"clearselectors" => self.selectors.truncate(1),
            b"reset" => *self = Self::new(&self.name, self.opens_channels),
            _ => return self.add(word),
        }
        Ok(())
    }

    fn add(&mut self, word: &[u8]) -> Result<(), RuleError> {
        match word {
            [b'>', plain @ ..] => self.add_password(Password::of(plain)),
            [b'#', hash @ ..] => self.add_password(Password::from_hex(hash)?),
            [b'<', plain @ ..] => self.remove_password(&Password::of(plain)),
            [b'!', hash @ ..] => self.remove_password(&Password::from_hex(hash)?),
            [b'(', inner @ .., b')'] => {
                let mut selector = Selector::begin(self.opens_channels);
                for word in super::words(inner) {
                    selector.apply(word)?;
                }
                if self.selectors.len() > MOST_RULES {
                    return Err(RuleError::TooMany);
                }
                self.selectors.push(selector);
                Ok(())
            }
            _ => self.selectors[0].apply(word),
        }
    }

    /// Whether later selectors open all channels.
    pub(super) fn set_opens_channels(&mut self, opens_channels: bool) {
        self.opens_channels = opens_channels;
    }

    /// Makes this the only password.
    pub(super) fn set_password(&mut self, password: Password) {
        self.no_password = false;
        self.passwords = vec![password];
    }

    fn add_password(&mut self, password: Password) -> Result<(), RuleError> {
        self.no_password = false;
        if !self.passwords.contains(&password) {
            if self.passwords.len() >= MOST_RULES {
                return Err(RuleError::TooMany);
            }
            self.passwords.push(password);
        }
        Ok(())
    }

    fn remove_password(&mut self, password: &Password) -> Result<(), RuleError> {
        let known = self.passwords.iter().position(|one| one == password);
        self.passwords
            .remove(known.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Whether a connection that has not said whose it is may be this user's.
    pub(crate) fn needs_no_password(&self) -> bool {
        self.is_on && self.no_password
    }

    /// Whether every password is right.
    pub(crate) fn takes_any_password(&self) -> bool {
        self.no_password
    }

    /// Whether there is a password for this user.
    pub(super) fn has_password(&self) -> bool {
        !self.passwords.is_empty()
    }

    /// Whether the user may come in with a password. Every password is compared, each in a time
    /// that does not depend on the result.
    pub(super) fn admits(&self, password: &Password) -> bool {
        let is_one = self
            .passwords
            .iter()
            .fold(Choice::from(0), |found, one| found | one.is(password));
        self.is_on && (self.no_password || bool::from(is_one))
    }

    /// The user in a line, as `ACL LIST` and the file have it, without the word `user`.
    pub(crate) fn describe(&self) -> Vec<u8> {
        let mut out = self.name.to_vec();
        for flag in self.flags() {
            out.push(b' ');
            out.extend_from_slice(flag.as_bytes());
        }
        for password in self.passwords() {
            out.extend_from_slice(b" #");
            out.extend_from_slice(password.as_bytes());
        }
        let (own, others) = self.selectors();
        own.describe(&mut out);
        for selector in others {
            let mut inner = Vec::new();
            selector.describe(&mut inner);
            out.extend_from_slice(b" (");
            out.extend_from_slice(&inner[1..]);
            out.push(b')');
        }
        out
    }

    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        flags.extend(self.no_password.then_some("nopass"));
        flags
    }

    /// The SHA-256 of each password, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> Vec<String> {
        self.passwords.iter().map(Password::to_hex).collect()
    }

    /// The user's own rules, and those in brackets.
    pub(crate) fn selectors(&self) -> (&Selector, &[Selector]) {
        (&self.selectors[0], &self.selectors[1..])
    }

    /// Whether the user may do everything.
    pub(crate) fn may_do_everything(&self) -> bool {
        self.selectors[0].is_everything()
    }

    /// Whether the user may run a command with these arguments. Tables, whose names are terms, are
    /// checked where they are looked up, with [`may_use_table`](Self::may_use_table).
    ///
    /// # Errors
    ///
    /// What the selector lacks that lacks the least.
    pub(crate) fn check(
        &self,
        command: &'static Command,
        arguments: Arguments<'_>,
    ) -> Result<(), Denial> {
        let mut denial = Denial::Command;
        for selector in &self.selectors {
            match selector.check(command, arguments) {
                Ok(()) => return Ok(()),
                Err(other) => denial = denial.max(other),
            }
        }
        Err(denial)
    }

    /// Whether the user may run a command with some arguments.
    pub(crate) fn has(&self, command: &'static Command) -> bool {
        self.any(command, |_| true)
    }

    /// Whether a command shows the user every key.
    pub(crate) fn sees_all_keys(&self, command: &'static Command) -> bool {
        self.any(command, |selector| {
            selector.keys.allow_all_in(Access::READ, &Interval::all())
        })
    }

    /// Whether a command shows the user every key of an interval.
    pub(crate) fn sees_all_in(&self, command: &'static Command, interval: &Interval) -> bool {
        self.any(command, |selector| {
            selector.keys.allow_all_in(Access::READ, interval)
        })
    }

    /// Whether a command shows the user a key.
    pub(crate) fn sees_key(&self, command: &'static Command, key: &[u8]) -> bool {
        self.any(command, |selector| selector.keys.allow(Access::READ, key))
    }

    /// Whether the user may run a command with a table.
    pub(crate) fn may_use_table(&self, command: &'static Command, name: &[u8]) -> bool {
        self.any(command, |selector| selector.tables.allow(name))
    }

    /// Whether the user may run a command with every table.
    pub(crate) fn may_use_all_tables(&self, command: &'static Command) -> bool {
        self.any(command, |selector| selector.tables.are_all())
    }

    /// Whether the user may run a command with a mailbox.
    pub(crate) fn may_use_mailbox(&self, command: &'static Command, name: &[u8]) -> bool {
        self.any(command, |selector| selector.mailboxes.allow(name))
    }

    /// Whether a channel, or a pattern of channels, is open to the user, by any selector.
    pub(crate) fn hears(&self, name: &[u8], is_pattern: bool) -> bool {
        let channels = match is_pattern {
            true => ChannelReach::Patterns,
            false => ChannelReach::Every,
        };
        let mut selectors = self.selectors.iter();
        selectors.any(|selector| selector.hears(channels, name))
    }

    /// Whether a selector that has the command has something more.
    fn any(&self, command: &'static Command, has: impl Fn(&Selector) -> bool) -> bool {
        self.selectors
            .iter()
            .any(|selector| selector.permitted.contain(command) && has(selector))
    }
}
