//! The nodes of a group as clients are shown them, and what listeners hear when the leader changes.

use super::{Group, host_and_port};
use crate::channels::{Kind, publish};
use crate::server::Shared;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// How often the leader's address is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A node that has said nothing for so long counts as away.
const AWAY: Duration = Duration::from_secs(5);

/// A node that has said nothing for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The most nodes that are kept: messages on a subject of NATS are what anybody there has sent.
const MOST: usize = 64;

/// The channel on which listeners hear of a new leader, as Redis Sentinel has it.
const SWITCH: &[u8] = b"+switch-master";

/// A node that has said that it is there.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    /// Where it takes clients.
    pub(crate) address: String,
    /// How long ago it said so.
    pub(crate) age: Duration,
}

impl Seen {
    /// Whether it says nothing any more.
    pub(crate) fn is_away(&self) -> bool {
        self.age > AWAY
    }
}

/// Nodes by their names.
#[derive(Default)]
pub(super) struct Nodes(Mutex<BTreeMap<String, (String, Instant)>>);

impl Nodes {
    #[cfg_attr(
        not(feature = "jetstream"),
        allow(dead_code, reason = "nobody is heard")
    )]
    pub(super) fn heard(&self, name: &str, address: &str) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|_, (_, at)| at.elapsed() < FORGOTTEN);
        // A node that has another name now is at its old address.
        nodes.retain(|other, (known, _)| known != address || other == name);
        if nodes.len() < MOST || nodes.contains_key(name) {
            nodes.insert(name.to_owned(), (address.to_owned(), Instant::now()));
        }
    }
}

impl Group {
    /// The nodes that have said that they are there, by their names.
    pub(crate) fn nodes(&self) -> Vec<Seen> {
        let nodes = self.nodes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = nodes.iter().map(|(name, (address, at))| Seen {
            name: name.clone(),
            address: address.clone(),
            age: at.elapsed(),
        });
        seen.collect()
    }
}

/// Sends the address of each new leader to listeners, for as long as the server runs.
pub(crate) async fn announce(server: &Shared) {
    let Some(group) = &server.group else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Option<String> = None;
    loop {
        ticks.tick().await;
        let Some(leader) = group.host.leader() else {
            continue;
        };
        if last.as_ref() == Some(&leader) {
            continue;
        }
        if let Some(old) = last.replace(leader.clone()) {
            let ((old_host, old_port), (host, port)) =
                (host_and_port(&old), host_and_port(&leader));
            let text = format!("{} {old_host} {old_port} {host} {port}", group.name);
            publish(server, Kind::Channel, SWITCH, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_its_last_name_and_address() {
        let nodes = Nodes::default();
        for (name, address) in [("a", "x:1"), ("b", "x:2"), ("a", "x:3"), ("c", "x:2")] {
            nodes.heard(name, address);
        }
        for number in 0..100 {
            nodes.heard(&format!("n{number}"), &format!("y:{number}"));
        }
        let known = nodes.0.lock().unwrap();
        assert_eq!(known["a"].0, "x:3");
        assert_eq!(known["c"].0, "x:2");
        assert!(!known.contains_key("b"));
        assert_eq!(known.len(), MOST);
    }
}
