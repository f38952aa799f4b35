//! The server as one node of a group: what its clients may do, and when their replies go out.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | what the commands and the connections ask |
//! | `arguments` | the flags |
//! | `node` | starting, keeping and ending the node |
//! | `nodes` | which nodes there are, and a new leader |
//! | `common` | users and settings that are the same on all nodes |
//! | `forward` | writes that a follower sends on to the leader |
//! | `engine` | the shared log, and the server as it is to the group |
//! | `package` | a snapshot of the group as a file |
//! | `packing` | making, checking and loading such files |
//! | `publish` | a node's own history becomes that of its group, in a new log |
//! | `arrival` | what was loaded takes its place at the next start; what a node has is put aside |
//!
//! A server that is the leader answers as one with `--durability always` does, with the group's
//! log in the place of the disk: all that a connection has written or can have seen is confirmed
//! before its replies go out. Behind that it looks whether its lease still lasts. Either both hold,
//! and no other node can have changed what the reply shows; or the client gets an error in its
//! place.

mod arguments;
mod arrival;
mod common;
#[cfg(feature = "jetstream")]
mod engine;
mod forward;
mod node;
mod nodes;
#[cfg(feature = "jetstream")]
mod package;
#[cfg(feature = "jetstream")]
mod packing;
#[cfg(feature = "jetstream")]
mod publish;

use crate::commands::{Command, Failure};
pub use arguments::{GroupArgs, GroupError};
pub(crate) use arrival::arrive;
pub use arrival::rejoin;
use common::Changes;
pub(crate) use common::{Change, is_common};
use forward::Forward;
pub(crate) use forward::{MOST_BYTES as MOST_FORWARDED, Unanswered, Write, request as forwarded};
pub(crate) use node::{Running, keep, start_again};
use nodes::Nodes;
pub(crate) use nodes::{Seen, announce};
#[cfg(feature = "jetstream")]
pub use package::check_package;
#[cfg(feature = "jetstream")]
pub use publish::{PublishArgs, publish};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tremula_group::{Host, Report, SnapshotReport, Standing};
use tremula_log::Log;
#[cfg(feature = "jetstream")]
use tremula_store::Sequence;
use tremula_store::Store;
use tremula_sync::Mutex;

/// How long a reply waits for the group.
const CONFIRMATION: Duration = Duration::from_secs(10);

/// How often a reply that waits for a lease looks again.
const LOOK: Duration = Duration::from_millis(2);

const NOT_CONFIRMED: &str = "TRYAGAIN the group has not confirmed it within 10 seconds, and may do \
                             so later: a write may or may not have happened";
const STEPPED_DOWN: &str =
    "TRYAGAIN this node leads no longer: a write may or may not have happened";

/// This server's part in a group.
pub struct Group {
    pub(crate) host: Arc<Host>,
    pub(crate) name: String,
    pub(crate) node: String,
    /// The file that keeps the point from which the node starts.
    point: PathBuf,
    has_led: AtomicBool,
    /// The message that the point in that file ends with.
    kept: AtomicU64,
    /// Whether a snapshot is there from which the node starts next.
    has_arrived: AtomicBool,
    /// What is known of the snapshots of the group.
    pub(crate) snapshots: Arc<Mutex<SnapshotReport>>,
    nodes: Nodes,
    changes: Changes,
    /// The way of writes to the leader, if this node sends them there.
    forward: Option<Forward>,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "node {} of the group {}", self.node, self.name)
    }
}

impl Group {
    /// Whether a command may run on this node at present.
    pub(crate) fn admit(&self, command: &Command) -> Result<(), Failure> {
        let writes = command.flags.contains(&"write");
        if !writes && !command.flags.contains(&"readonly") {
            return Ok(());
        }
        match self.admit_access(writes) {
            Err(Failure::Owned(text))
                if text.starts_with(b"READONLY") && self.forwards(command) =>
            {
                Err(Failure::Elsewhere(text))
            }
            admitted => admitted,
        }
    }

    /// Whether keys may be read at present, or changed.
    fn admit_access(&self, writes: bool) -> Result<(), Failure> {
        match self.host.standing() {
            Standing::Leader => Ok(()),
            Standing::Follower if !writes => Ok(()),
            Standing::Follower => Err(self.read_only()),
            Standing::CatchingUp => Err(Failure::Text(
                "TRYAGAIN this node reads the log of its group, and has not come to its end",
            )),
            Standing::Behind => Err(Failure::Text(
                "TRYAGAIN this node needs a snapshot of its group, and loads it",
            )),
            Standing::SteppedDown => Err(Failure::Text(STEPPED_DOWN)),
            Standing::Refusing => {
                let why = self.host.report().refusal.unwrap_or_default();
                Err(Failure::Owned(format!("MISCONF {why}").into_bytes()))
            }
        }
    }

    /// As a replica of Redis refuses a write.
    fn read_only(&self) -> Failure {
        let who = match self.host.leader() {
            Some(leader) => format!("the leader is {leader}"),
            None => "no node leads the group at the moment".to_owned(),
        };
        let text = format!("READONLY You can't write against a read only replica; {who}");
        Failure::Owned(text.into_bytes())
    }

    /// Whether the replies of a command show keys.
    pub(crate) fn shows(command: &Command) -> bool {
        command.flags.contains(&"write")
            || command.flags.contains(&"readonly")
            || ["watch", "exec"].contains(&command.name)
    }

    /// Whether replies of this node may go out at once.
    pub(crate) fn is_settled(&self, store: &Store) -> bool {
        // Confirmed first, the lease behind it: the state was read before both.
        !self.has_led.load(SeqCst)
            || (self.host.durable() >= store.last_effect() && self.may_answer())
    }

    fn may_answer(&self) -> bool {
        self.host.has_lease() && self.host.standing() == Standing::Leader
    }

    /// Waits until replies of this node may go out.
    ///
    /// # Errors
    ///
    /// They are not true, or nobody knows. The text of an error.
    pub(crate) async fn settle(&self, store: &Store) -> Result<(), &'static str> {
        if self.is_settled(store) {
            return Ok(());
        }
        let wait = async {
            let confirmed = self.host.until(store.last_effect()).await;
            confirmed.map_err(|_| STEPPED_DOWN)?;
            while !self.may_answer() {
                if self.host.has_ended() {
                    return Err(STEPPED_DOWN);
                }
                sleep(LOOK).await;
            }
            Ok(())
        };
        timeout(CONFIRMATION, wait)
            .await
            .unwrap_or(Err(NOT_CONFIRMED))
    }

    /// What is known of the group.
    pub(crate) fn report(&self) -> Report {
        self.host.report()
    }

    /// Whether this server is the leader, for `ROLE` and `INFO`.
    pub(crate) fn leads(&self) -> bool {
        self.host.standing() == Standing::Leader
    }

    /// Makes a store lead.
    #[cfg(feature = "jetstream")]
    fn lead(&self, store: &Store, next: Sequence) {
        // Before the first command that the leader runs.
        self.has_led.store(true, SeqCst);
        store.lead(next);
        tracing::info!(group = self.name, node = self.node, %next, "this node leads");
    }
}

/// A host and a port out of an address.
pub(crate) fn host_and_port(address: &str) -> (&str, &str) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (host.trim_matches(['[', ']']), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        assert_eq!(host_and_port("127.0.0.1:6380"), ("127.0.0.1", "6380"));
        assert_eq!(host_and_port("[::1]:7"), ("::1", "7"));
        assert_eq!(host_and_port("name"), ("name", "0"));
    }
}
