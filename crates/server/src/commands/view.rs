//! What a command shows to a user who may not read every key.

use super::{Command, Context};
use crate::users::User;
use std::sync::Arc;
use tremula_store::Key;

/// The keys that a command shows to a user who may not read every key.
pub(super) struct View {
    user: Arc<User>,
    command: &'static Command,
}

impl View {
    /// The view of the running command; `None` if the user sees every key.
    pub(super) fn of(context: &Context<'_>) -> Option<Self> {
        let user = context.session.identity.user()?;
        (!user.sees_all_keys(context.command)).then(|| Self {
            user: Arc::clone(user),
            command: context.command,
        })
    }

    pub(super) fn shows(&self, key: &Key) -> bool {
        self.shows_bytes(key.as_bytes())
    }

    pub(super) fn shows_bytes(&self, key: &[u8]) -> bool {
        self.user.sees_key(self.command, key)
    }
}
