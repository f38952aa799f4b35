//! The nodes of a group as clients are shown them, and what listeners hear when the leader changes.

use super::{Group, host_and_port};
use crate::channels::{Kind, publish};
use crate::lock::lock;
use crate::server::Shared;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;
use tremula_group::{Presence, Standing};
use tremula_store::Sequence;

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
    /// What it may do, and the last effect that it has, if it has said so.
    pub(crate) state: Option<(Standing, Sequence)>,
}

impl Seen {
    /// Whether it says nothing any more.
    pub(crate) fn is_away(&self) -> bool {
        self.age > AWAY
    }
}

/// Nodes by their names.
#[derive(Default)]
pub(super) struct Nodes(Mutex<BTreeMap<String, Known>>);

struct Known {
    address: String,
    at: Instant,
    state: Option<(Standing, Sequence)>,
}

impl Nodes {
    #[cfg_attr(
        not(feature = "jetstream"),
        allow(dead_code, reason = "nobody is heard")
    )]
    pub(super) fn heard(&self, node: &Presence<'_>) {
        let (name, address) = (node.name, node.address);
        let mut nodes = lock(&self.0);
        nodes.retain(|_, known| known.at.elapsed() < FORGOTTEN);
        // A node that has another name now is at its old address.
        nodes.retain(|other, known| known.address != address || other == name);
        if nodes.len() < MOST || nodes.contains_key(name) {
            let known = Known {
                address: address.to_owned(),
                at: Instant::now(),
                state: node.state,
            };
            nodes.insert(name.to_owned(), known);
        }
    }
}

impl Group {
    /// The nodes that have said that they are there, by their names.
    pub(crate) fn nodes(&self) -> Vec<Seen> {
        let nodes = lock(&self.nodes.0);
        let seen = nodes.iter().map(|(name, known)| Seen {
            name: name.clone(),
            address: known.address.clone(),
            age: known.at.elapsed(),
            state: known.state,
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
        let heard = |name: &str, address: &str| {
            nodes.heard(&Presence {
                name,
                address,
                state: None,
            });
        };
        for (name, address) in [("a", "x:1"), ("b", "x:2"), ("a", "x:3"), ("c", "x:2")] {
            heard(name, address);
        }
        for number in 0..100 {
            heard(&format!("n{number}"), &format!("y:{number}"));
        }
        let known = lock(&nodes.0);
        assert_eq!(known["a"].address, "x:3");
        assert_eq!(known["c"].address, "x:2");
        assert!(!known.contains_key("b"));
        assert_eq!(known.len(), MOST);
    }
}
