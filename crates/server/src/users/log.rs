//! What was refused: `ACL LOG`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Refusals of the same within this time are one entry.
const TOGETHER: Duration = Duration::from_secs(60);

/// Bytes of a key or a name that an entry keeps.
const KEPT: usize = 1024;

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A wrong password, or a user who is not known or off.
    Auth,
    Command,
    Key,
    Channel,
    Table,
    Mailbox,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Table => "table",
            Self::Mailbox => "mailbox",
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    /// The key, command or name that was refused.
    pub(crate) object: Vec<u8>,
    pub(crate) user: Vec<u8>,
    /// The client that was refused last, as `CLIENT LIST` shows it.
    pub(crate) client: String,
    pub(crate) last: Instant,
}

/// The latest refusals, newest first.
#[derive(Debug, Default)]
pub(super) struct Log {
    entries: VecDeque<Entry>,
}

impl Log {
    /// Adds a refusal, and keeps `most` entries.
    pub(super) fn add(
        &mut self,
        reason: Reason,
        object: &[u8],
        user: &[u8],
        client: String,
        most: usize,
    ) {
        let now = Instant::now();
        let object = &object[..object.len().min(KEPT)];
        let user = &user[..user.len().min(KEPT)];
        let known = self.entries.iter().position(|entry| {
            entry.reason == reason
                && entry.object == object
                && entry.user == user
                && now.duration_since(entry.last) < TOGETHER
        });
        let count = known
            .and_then(|at| self.entries.remove(at))
            .map_or(0, |entry| entry.count);
        self.entries.push_front(Entry {
            count: count + 1,
            reason,
            object: object.to_vec(),
            user: user.to_vec(),
            client,
            last: now,
        });
        self.entries.truncate(most);
    }

    /// The newest entries.
    pub(super) fn newest(&self, most: usize) -> Vec<Entry> {
        self.entries.iter().take(most).cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_same_are_one_entry_and_the_oldest_leave() {
        let mut log = Log::default();
        let mut add = |reason, object: &str, user: &str| {
            log.add(reason, object.as_bytes(), user.as_bytes(), String::new(), 3);
        };
        for (reason, object, user) in [
            (Reason::Key, "a", "one"),
            (Reason::Key, "a", "two"),
            (Reason::Command, "a", "one"),
            (Reason::Key, "a", "one"),
            (Reason::Auth, "a", "one"),
        ] {
            add(reason, object, user);
        }
        let shown: Vec<_> = log
            .newest(10)
            .into_iter()
            .map(|entry| (entry.reason, entry.count, entry.user))
            .collect();
        assert_eq!(
            shown,
            [
                (Reason::Auth, 1, b"one".to_vec()),
                (Reason::Key, 2, b"one".to_vec()),
                (Reason::Command, 1, b"one".to_vec()),
            ]
        );
        assert_eq!(log.newest(1).len(), 1);
        log.clear();
        assert!(log.newest(10).is_empty());
    }
}
