//! Users: who may run which commands, with which keys, tables and mailboxes.
//!
//! The words are Redis's (`ACL SETUSER`), and three kinds are added that Redis refuses: keys by
//! range (`%R:[a,(b`), tables (`tables:pattern`) and mailboxes (`mailboxes:pattern`).
//!
//! | file | holds |
//! |---|---|
//! | `user` | a user, his selectors, and whether he may run a command |
//! | `access` | keys by pattern and by range |
//! | `names` | tables, mailboxes and channels by pattern |
//! | `permitted` | commands, by name and by category |
//! | `password` | hashes of passwords |
//! | `file` | users in a file |
//! | `log` | what was refused |
//! | `failures` | failed tries, which are slowed |
//!
//! A user does not change: a change puts another in his place, and raises the generation. A
//! connection keeps its user, and looks him up again when the generation has changed. So a command
//! reads one shared number that is hardly ever written.

mod access;
mod failures;
mod file;
mod log;
mod names;
mod password;
mod permitted;
mod user;

pub(crate) use access::{Access, Interval};
use failures::Failures;
pub use file::FileError;
pub(crate) use file::name_problem;
use log::Log;
pub(crate) use log::{Entry, Reason};
use password::Password;
pub(crate) use password::generate;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use thiserror::Error;
pub(crate) use user::{Selector, User};

/// The user of a connection that has not said whose it is.
pub(crate) const DEFAULT: &[u8] = b"default";

/// Words that add something to a selector, selectors of a user, and passwords of a user.
const MOST_RULES: usize = 1000;

/// Bytes of a word that is kept, and of a name: more than any pattern that a person writes.
const LONGEST_WORD: usize = 4 << 10;

/// Why a word of `ACL SETUSER` is refused. The texts that Redis has are Redis's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum RuleError {
    #[error("Unknown command or category name in ACL")]
    Unknown,
    #[error("Syntax error")]
    Syntax,
    #[error("Allowing first-arg of a subcommand is not supported")]
    FirstArgument,
    #[error(
        "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
    )]
    KeysAfterAll,
    #[error(
        "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
    )]
    ChannelsAfterAll,
    #[error("all tables are open already; begin anew with 'resettables'")]
    TablesAfterAll,
    #[error("all mailboxes are open already; begin anew with 'resetmailboxes'")]
    MailboxesAfterAll,
    #[error("The password you are trying to remove from the user does not exist")]
    NoSuchPassword,
    #[error(
        "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
    )]
    Hash,
    #[error(
        "a range is two bounds, as in %R:[low,(high with - and + for none, and \\xHH for any byte"
    )]
    Range,
    #[error("there is no key between these bounds")]
    EmptyRange,
    #[error("a word has at most {LONGEST_WORD} bytes")]
    TooLong,
    #[error("a user has at most {MOST_RULES} rules of a kind")]
    TooMany,
}

/// Why `ACL SETUSER` changes nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetError {
    /// A word is refused.
    Rule(Vec<u8>, RuleError),
    /// A bracket is not closed, from this word on.
    Unmatched(Vec<u8>),
    /// There are as many users as there may be.
    TooManyUsers(usize),
}

/// Whether a name or pattern has what separates words, or zero bytes.
pub(crate) fn has_blanks(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| byte.is_ascii_whitespace() || *byte == 0)
}

/// The words of a line.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// Joins the words of each selector in brackets to one.
fn join_selectors<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, SetError> {
    let mut joined: Vec<Vec<u8>> = Vec::new();
    let mut is_open = false;
    for word in words {
        match joined.last_mut() {
            Some(open) if is_open => {
                open.push(b' ');
                open.extend_from_slice(word);
            }
            _ => joined.push(word.to_vec()),
        }
        let starts = is_open || word.first() == Some(&b'(');
        is_open = starts && word.last() != Some(&b')');
    }
    match joined.pop() {
        Some(open) if is_open => Err(SetError::Unmatched(open)),
        last => {
            joined.extend(last);
            Ok(joined)
        }
    }
}

type ByName = BTreeMap<Arc<[u8]>, Arc<User>>;

/// All users of a server.
pub(crate) struct Users {
    by_name: RwLock<ByName>,
    generation: AtomicU64,
    log: Mutex<Log>,
    failures: Mutex<Failures>,
    file: Option<PathBuf>,
    password_file: Option<PathBuf>,
    most_users: usize,
    most_entries: AtomicUsize,
    /// Whether all channels are open to a new user.
    opens_channels: AtomicBool,
}

impl Users {
    /// The default user alone, who may do everything.
    pub(crate) fn new(most_users: usize, most_entries: usize) -> Self {
        let default = Arc::new(User::default_user());
        Self {
            by_name: RwLock::new(BTreeMap::from([(Arc::clone(&default.name), default)])),
            generation: AtomicU64::new(0),
            log: Mutex::default(),
            failures: Mutex::default(),
            file: None,
            password_file: None,
            most_users,
            most_entries: AtomicUsize::new(most_entries),
            opens_channels: AtomicBool::new(false),
        }
    }

    fn read<T>(&self, read: impl FnOnce(&ByName) -> T) -> T {
        read(&self.by_name.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut ByName) -> T) -> T {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        let result = write(&mut by_name);
        // A connection that reads the new number looks its user up under the lock.
        self.generation.fetch_add(1, Ordering::Release);
        result
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.read(|by_name| by_name.get(name).cloned())
    }

    /// All users, by their names.
    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.read(|by_name| by_name.values().cloned().collect())
    }

    /// Makes or changes a user as the words say, all at once or not at all.
    pub(crate) fn set<'a>(
        &self,
        name: &[u8],
        words: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), SetError> {
        let words = join_selectors(words)?;
        self.write(|by_name| {
            let known = by_name.get(name);
            if known.is_none() && by_name.len() >= self.most_users {
                return Err(SetError::TooManyUsers(self.most_users));
            }
            let opens_channels = self.opens_channels();
            let new = || User::new(name, opens_channels);
            let mut user = known.map_or_else(new, |user| User::clone(user));
            user.set_opens_channels(opens_channels);
            for word in words {
                let done = user.apply(&word);
                done.map_err(|why| SetError::Rule(word, why))?;
            }
            by_name.insert(Arc::clone(&user.name), Arc::new(user));
            Ok(())
        })
    }

    /// Removes a user; `false` if no user has this name.
    pub(crate) fn remove(&self, name: &[u8]) -> bool {
        self.write(|by_name| by_name.remove(name).is_some())
    }

    /// Whether somebody has to prove who he is: there is a password, or the default user is off.
    pub(crate) fn has_passwords(&self) -> bool {
        self.read(|by_name| {
            by_name.values().any(|user| user.has_password())
                || by_name
                    .get(DEFAULT)
                    .is_none_or(|user| !user.needs_no_password())
        })
    }

    /// Whether a connection needs no password to do something.
    pub(crate) fn lets_anybody_in(&self) -> bool {
        self.get(DEFAULT)
            .is_some_and(|user| user.needs_no_password())
    }

    /// The user with this name, if the password is his.
    pub(crate) fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        // Computed also for names that are not known, so that the time does not tell them.
        let password = Password::of(password);
        self.get(name).filter(|user| user.admits(&password))
    }

    /// Notes that something was refused.
    pub(crate) fn refused(&self, reason: Reason, object: &[u8], user: &[u8], client: String) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.add(reason, object, user, client, self.most_entries());
    }

    /// How many entries of what was refused are kept.
    pub(crate) fn most_entries(&self) -> usize {
        self.most_entries.load(Ordering::Relaxed)
    }

    /// Keeps more or fewer entries, from the next one on.
    pub(crate) fn set_most_entries(&self, most: usize) {
        self.most_entries.store(most, Ordering::Relaxed);
    }

    /// Whether all channels are open to a new user.
    pub(crate) fn opens_channels(&self) -> bool {
        self.opens_channels.load(Ordering::Relaxed)
    }

    /// Lets all channels be open to users from now on that are new or reset, or not.
    pub(crate) fn set_opens_channels(&self, opens: bool) {
        self.opens_channels.store(opens, Ordering::Relaxed);
    }

    /// The newest entries of what was refused.
    pub(crate) fn log(&self, most: usize) -> Vec<Entry> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.newest(most)
    }

    pub(crate) fn clear_log(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.clear();
    }

    /// Counts a failed try. Returns how long its answer waits.
    pub(crate) fn failed(&self, address: IpAddr) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.add(address, Instant::now())
    }
}

/// Whose a connection is.
pub(crate) struct Identity {
    /// `None` before a connection has proved whose it is.
    user: Option<Arc<User>>,
    generation: u64,
    /// Whether nothing is closed to the user, which is what most commands ask.
    is_free: bool,
}

impl Identity {
    /// A new connection: the default user's, if he needs no password.
    pub(crate) fn new(users: &Users) -> Self {
        let generation = users.generation.load(Ordering::Acquire);
        let user = users.get(DEFAULT).filter(|user| user.needs_no_password());
        let mut identity = Self {
            user: None,
            generation,
            is_free: false,
        };
        identity.set(user);
        identity
    }

    fn set(&mut self, user: Option<Arc<User>>) {
        self.is_free = user.as_ref().is_some_and(|user| user.may_do_everything());
        self.user = user;
    }

    /// Becomes a user's, who has proved it.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.set(Some(user));
        // The next command looks whether the user has changed since.
        self.generation = self.generation.wrapping_sub(1);
    }

    /// Whether the user, as he is now, may do everything.
    #[inline]
    pub(crate) fn may_do_everything(&mut self, users: &Users) -> bool {
        let generation = users.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            let user = self.user.take().and_then(|user| users.get(&user.name));
            self.set(user);
        }
        self.is_free
    }

    /// The user of the command that runs; `None` if the connection has not proved whose it is, or
    /// if the user has been removed.
    pub(crate) fn user(&self) -> Option<&Arc<User>> {
        self.user.as_ref()
    }
}

#[cfg(test)]
mod tests;
