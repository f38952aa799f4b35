//! What the nodes of a group say of themselves, in a bucket of keys and values of NATS: which of
//! them are there, and from where on each needs the stream.

use super::super::{Settings, described};
use crate::shelf::Peer;
use async_nats::jetstream::Context;
use async_nats::jetstream::kv::{Config, Store};
use async_nats::jetstream::stream::StorageType;
use futures_util::StreamExt;
use std::time::{Duration, Instant};

/// How often a node says so again, if nothing has changed but what it needs.
const SAY: Duration = Duration::from_secs(2);

/// For how long it counts. A node may take so long from its end to its next start.
const COUNTS: Duration = Duration::from_secs(30);

pub(super) struct Peers {
    context: Context,
    name: String,
    replicas: usize,
    store: Option<Store>,
    /// What this node has said last, and when.
    said: Option<(Peer, Instant)>,
}

impl Peers {
    pub(super) fn new(context: &Context, settings: &Settings) -> Self {
        Self {
            context: context.clone(),
            name: settings.nodes(),
            replicas: settings.replicas,
            store: None,
            said: None,
        }
    }

    async fn open(&mut self) -> Result<Store, String> {
        if let Some(store) = &self.store {
            return Ok(store.clone());
        }
        let store = match self.context.get_key_value(&self.name).await {
            Ok(store) => store,
            Err(_) => {
                let config = Config {
                    bucket: self.name.clone(),
                    history: 1,
                    max_age: COUNTS,
                    storage: StorageType::File,
                    num_replicas: self.replicas,
                    ..Config::default()
                };
                let made = self.context.create_key_value(config).await;
                made.map_err(|error| described(&error))?
            }
        };
        self.store = Some(store.clone());
        Ok(store)
    }

    /// Says it, if it is news or was said some time ago. If NATS does not take it, it is said again
    /// later.
    pub(super) async fn say(&mut self, peer: &Peer) {
        let is_known = self.said.as_ref().is_some_and(|(said, at)| {
            let is_same = (said.leads, said.serves) == (peer.leads, peer.serves);
            is_same && at.elapsed() < SAY
        });
        if is_known {
            return;
        }
        let said = match self.open().await {
            Ok(store) => store
                .put(&peer.name, peer.encode().into())
                .await
                .map_err(|error| described(&error)),
            Err(why) => Err(why),
        };
        match said {
            Ok(_) => self.said = Some((peer.clone(), Instant::now())),
            Err(why) => {
                self.store = None;
                tracing::debug!("other nodes do not hear of this one: {why}");
            }
        }
    }

    /// The nodes that were heard of lately.
    pub(super) async fn all(&mut self) -> Result<Vec<Peer>, String> {
        let all = self.read().await;
        if all.is_err() {
            self.store = None;
        }
        all
    }

    async fn read(&mut self) -> Result<Vec<Peer>, String> {
        let store = self.open().await?;
        let keys = store.keys().await.map_err(|error| described(&error))?;
        let names: Vec<_> = keys.collect().await;
        let mut peers = Vec::new();
        for name in names {
            let name = name.map_err(|error| described(&error))?;
            let value = store.get(&name).await.map_err(|error| described(&error))?;
            let text = value.and_then(|value| String::from_utf8(value.to_vec()).ok());
            peers.extend(text.and_then(|text| Peer::decode(&name, &text)));
        }
        Ok(peers)
    }
}
