//! What is the same on all nodes of a group and is no key: users, and some settings.
//!
//! The leader changes them, and notes each in the log as it is from then on. Followers, and every
//! start, take them from there. What the log says nothing of is as a node's own flags and files
//! have it.

use super::Group;
use crate::commands::{self, Failure};
use crate::server::Shared;
use crate::settings;
use crate::users::DEFAULT;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The settings that are the same on all nodes: they decide what keys there are, or what clients of
/// any node get. The others are about a machine.
const SETTINGS: [&str; 5] = [
    "acl-pubsub-default",
    "maxmemory-policy",
    "maxmemory-samples",
    "notify-keyspace-events",
    "proto-max-bulk-len",
];

/// The setting that is the default user's password.
const PASSWORD: &str = "requirepass";

/// What notes of users and of settings are called, with the name behind it.
const USER: &[u8] = b"user ";
const SETTING: &[u8] = b"setting ";

/// The first byte of the note of a user that is there, and all of that of one who was removed: he
/// may be in a node's file.
const PRESENT: u8 = b'+';
const REMOVED: &[u8] = b"-";

/// Two changes are noted in the order in which they were made.
#[derive(Default)]
pub(super) struct Changes(Mutex<()>);

/// The right to change what is the same on all nodes, while it is held.
pub(crate) struct Change<'s> {
    server: &'s Shared,
    _one: Option<MutexGuard<'s, ()>>,
}

/// Whether a setting is the same on all nodes.
pub(crate) fn is_common(name: &[u8]) -> bool {
    let mut names = SETTINGS.iter().chain([&PASSWORD]);
    names.any(|common| name.eq_ignore_ascii_case(common.as_bytes()))
}

impl<'s> Change<'s> {
    /// Without a group, everybody may.
    ///
    /// # Errors
    ///
    /// The node does not lead.
    pub(crate) fn begin(server: &'s Shared) -> Result<Self, Failure> {
        let one = server.group.as_deref().map(Group::begin_change);
        Ok(Self {
            server,
            _one: one.transpose()?,
        })
    }

    /// Notes what a user is now. Returns whether the log has something new.
    pub(crate) fn user(&self, name: &[u8]) -> Result<bool, Failure> {
        let text = match self.server.users.get(name) {
            Some(user) => [&[PRESENT][..], &user.describe()].concat(),
            None => REMOVED.to_vec(),
        };
        self.note(&[USER, name].concat(), &text)
    }

    /// Notes what a setting is now, if it is common.
    pub(crate) fn setting(&self, name: &[u8]) -> Result<bool, Failure> {
        let name = name.to_ascii_lowercase();
        if name == PASSWORD.as_bytes() {
            return self.user(DEFAULT);
        }
        if !is_common(&name) {
            return Ok(false);
        }
        let parameters = settings::parameters(self.server);
        let found = parameters
            .iter()
            .find(|(known, _)| known.as_bytes() == name);
        let value = found.map_or("", |(_, value)| value);
        // An empty text is no note.
        let text = [&[PRESENT][..], value.as_bytes()].concat();
        self.note(&[SETTING, &name].concat(), &text)
    }

    fn note(&self, name: &[u8], text: &[u8]) -> Result<bool, Failure> {
        if self.server.group.is_some() {
            self.server.store.note(name, text)?;
        }
        Ok(self.server.group.is_some())
    }
}

impl Group {
    fn begin_change(&self) -> Result<MutexGuard<'_, ()>, Failure> {
        self.admit_access(true)?;
        let one = self.changes.0.lock();
        Ok(one.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes true what has come from the log.
pub(crate) fn take(server: &Shared) {
    for (name, text) in server.store.new_notes() {
        let taken = if let Some(user) = name.strip_prefix(USER) {
            commands::take_user(server, user, text.strip_prefix(&[PRESENT]))
        } else if let (Some(name), Some(value)) =
            (name.strip_prefix(SETTING), text.strip_prefix(&[PRESENT]))
        {
            let pair = std::iter::once((name, value));
            settings::set(server, pair).map_err(|refused| format!("{refused:?}"))
        } else {
            Err("this version does not know it".to_owned())
        };
        if let Err(why) = taken {
            let name = name.escape_ascii();
            tracing::error!("this node differs from its group in '{name}': {why}");
        }
    }
}
