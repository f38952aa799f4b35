//! Which nodes there are: each says its name and its address every second, on a subject that no
//! stream keeps. Nothing depends on it but what clients are shown: followers are not in the log.

use super::Settings;
use crate::host::State;
use async_nats::Client;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often a node says that it is there.
const EVERY: Duration = Duration::from_secs(1);

/// The longest message that is looked at: a name and an address.
const MOST_BYTES: usize = 2048;

/// Says that this node is there, and hears the others, for ever.
pub(super) async fn keep(
    client: Client,
    settings: &Settings,
    (address, state): (String, Arc<dyn State>),
) {
    let subject = settings.presence();
    let own = format!("{} {address}", settings.node);
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
                    // While NATS is away, nobody hears it.
                    let _ = client.publish(subject.clone(), own.clone().into()).await;
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
    if let Some((node, address)) = text.and_then(|text| text.split_once(' ')) {
        state.heard(node, address);
    }
}
