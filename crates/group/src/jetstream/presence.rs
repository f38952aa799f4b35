//! Which nodes there are: each says its name, its address, what it may do and how far it is every
//! second, on a subject that no stream keeps. Nothing depends on it but what is shown: followers
//! are not in the log.

use super::Settings;
use crate::host::{Host, Presence, Standing, State};
use async_nats::Client;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tremula_log::Sequence;

/// How often a node says that it is there.
const EVERY: Duration = Duration::from_secs(1);

/// The longest message that is looked at.
const MOST_BYTES: usize = 2048;

/// Says that this node is there, and hears the others, for ever.
pub(super) async fn keep(
    client: Client,
    settings: &Settings,
    host: &Host,
    (address, state): (String, Arc<dyn State>),
) {
    let subject = settings.presence();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut heard = match client.subscribe(subject.clone()).await {
            Ok(heard) => heard,
            Err(error) => {
                tracing::debug!("the nodes of the group are not heard: {error}");
                continue;
            }
        };
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    let own = Presence {
                        name: &settings.node,
                        address: &address,
                        state: Some((host.standing(), host.last())),
                    };
                    // While NATS is away, nobody hears it.
                    let _ = client.publish(subject.clone(), text(&own).into()).await;
                }
                message = heard.next() => match message {
                    Some(message) => hear(&*state, &message.payload),
                    None => break,
                },
            }
        }
    }
}

fn hear(state: &dyn State, message: &[u8]) {
    let text = std::str::from_utf8(message).ok();
    let text = text.filter(|text| text.len() <= MOST_BYTES);
    if let Some(presence) = text.and_then(read) {
        state.heard(&presence);
    }
}

/// A message: words, of which the last two may be missing.
fn text(of: &Presence<'_>) -> String {
    let Presence { name, address, .. } = of;
    match of.state {
        None => format!("{name} {address}"),
        Some((standing, last)) => format!("{name} {address} {} {}", standing.name(), last.get()),
    }
}

fn read(text: &str) -> Option<Presence<'_>> {
    let mut words = text.split(' ');
    let (name, address) = (words.next()?, words.next()?);
    let standing = words.next().and_then(Standing::named);
    let last = words.next().and_then(|last| last.parse().ok());
    Some(Presence {
        name,
        address,
        state: standing.zip(last.map(Sequence::new)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_is_read_with_and_without_its_state() {
        for state in [None, Some((Standing::Follower, Sequence::new(7)))] {
            let presence = Presence {
                name: "a",
                address: "host:1",
                state,
            };
            assert_eq!(read(&text(&presence)), Some(presence));
        }
        assert_eq!(read("a"), None);
        for unknown in ["a host:1 king 7", "a host:1 leader much", "a host:1 leader"] {
            assert_eq!(read(unknown).expect(unknown).state, None);
        }
    }
}
