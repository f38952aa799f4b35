//! Where the shared log is.

use std::path::PathBuf;
use thiserror::Error;

/// Letters that the name of a group or of a node may have.
const MOST_NAME: usize = 64;

/// Servers that may be named.
const MOST_SERVERS: usize = 16;

/// Where the shared log of a group is, and how this node names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The servers of NATS, as addresses: `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// The name of the group: its stream is `TREMULA_NAME`.
    pub group: String,
    /// The name of this node, for the logs of NATS.
    pub node: String,
    /// Servers of NATS that keep each message, if this node makes the stream.
    pub replicas: usize,
    /// A file of credentials of NATS.
    pub credentials: Option<PathBuf>,
    /// A file of certificates that sign those of the servers, beside the system's.
    pub authority: Option<PathBuf>,
}

/// What is wrong with [`Settings`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A name of a group or of a node cannot be one.
    #[error("'{0}' is no name: it has 1 to 64 letters, digits, - and _")]
    Name(String),
    /// An address of a server is none.
    #[error("'{0}' is no server of NATS: write nats://HOST:PORT or tls://HOST:PORT")]
    Server(String),
    /// There are too few or too many servers.
    #[error("{0} servers of NATS are named; name 1 to 16")]
    Count(usize),
    /// NATS keeps a message on an odd number of servers.
    #[error("NATS cannot keep a message on {0} servers; name 1, 3 or 5")]
    Replicas(usize),
}

impl Settings {
    /// Whether the settings can be used.
    ///
    /// # Errors
    ///
    /// [`SettingsError`].
    pub fn check(&self) -> Result<(), SettingsError> {
        for name in [&self.group, &self.node] {
            let is_of_letters = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            if !is_of_letters || name.is_empty() || name.len() > MOST_NAME {
                return Err(SettingsError::Name(name.clone()));
            }
        }
        if !(1..=MOST_SERVERS).contains(&self.servers.len()) {
            return Err(SettingsError::Count(self.servers.len()));
        }
        for server in &self.servers {
            let place = ["nats://", "tls://"]
                .iter()
                .find_map(|scheme| server.strip_prefix(scheme));
            let is_named = place.is_some_and(|place| !place.is_empty());
            if !is_named || server.parse::<async_nats::ServerAddr>().is_err() {
                return Err(SettingsError::Server(server.clone()));
            }
        }
        if ![1, 3, 5].contains(&self.replicas) {
            return Err(SettingsError::Replicas(self.replicas));
        }
        Ok(())
    }

    /// The stream that holds the log.
    pub(super) fn stream(&self) -> String {
        format!("TREMULA_{}", self.group)
    }

    /// The bucket of the object store that holds the snapshots.
    pub(super) fn snapshots(&self) -> String {
        format!("TREMULA_{}_snapshots", self.group)
    }

    /// The bucket of keys and values in which nodes say what they need.
    pub(super) fn nodes(&self) -> String {
        format!("TREMULA_{}_nodes", self.group)
    }

    /// The subject of the log's messages.
    pub(super) fn subject(&self) -> String {
        format!("tremula.{}.log", self.group)
    }

    /// The subject on which nodes say that they are there. No stream has it.
    pub(super) fn presence(&self) -> String {
        format!("tremula.{}.nodes", self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_settings_are_named() {
        let right = Settings {
            servers: vec!["nats://127.0.0.1:4222".to_owned(), "tls://a:1".to_owned()],
            group: "main".to_owned(),
            node: "a-1".to_owned(),
            replicas: 3,
            credentials: None,
            authority: None,
        };
        assert_eq!(right.check(), Ok(()));
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = right.clone();
            change(&mut settings);
            settings.check().expect_err("wrong settings").to_string()
        };
        for name in ["", "a b", "ä", &"x".repeat(65)] {
            let text = with(&|settings| settings.group = name.to_owned());
            assert!(text.starts_with(&format!("'{name}' is no name")), "{text}");
        }
        for server in ["", "127.0.0.1:4222", "http://a", "nats://"] {
            let text = with(&|settings| settings.servers.push(server.to_owned()));
            assert!(
                text.starts_with(&format!("'{server}' is no server")),
                "{text}"
            );
        }
        let text = with(&|settings| settings.servers.clear());
        assert!(text.starts_with("0 servers"), "{text}");
        let text = with(&|settings| settings.replicas = 2);
        assert!(text.contains("on 2 servers"), "{text}");
    }
}
