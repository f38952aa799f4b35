//! The engine of the shared log, and the server as it is to the group.

use super::{Group, GroupArgs, GroupError, common};
use crate::server::Shared;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use tremula_group::{JetStream, Point, Presence, Settings, Standing, State};
use tremula_log::Batch;
use tremula_store::Sequence;

/// The server's store and its clients, as the group has them.
struct Served(Arc<Shared>);

impl State for Served {
    fn apply(&self, first: Sequence, batch: &Batch) -> Result<(), String> {
        let applied = self.0.store.apply(first, batch);
        applied.map_err(|error| error.to_string())?;
        common::take(&self.0);
        Ok(())
    }

    fn heard(&self, node: &Presence<'_>) {
        if let Some(group) = &self.0.group {
            group.nodes.heard(node);
        }
    }

    fn lead(&self, next: Sequence) {
        if let Some(group) = &self.0.group {
            group.lead(&self.0.store, next);
        }
    }

    fn ended(&self, standing: Standing, why: &str) {
        if standing == Standing::SteppedDown {
            tracing::warn!("{why}; starting again from what is confirmed");
            self.0.stop.notify_one();
        } else if standing == Standing::Behind {
            tracing::warn!("{why}");
        } else {
            tracing::error!("this node serves nothing any more: {why}");
        }
    }
}

/// Where the shared log is.
pub(super) fn settings(group: &Group, arguments: &GroupArgs) -> Result<Settings, GroupError> {
    let servers = arguments.replicate.clone();
    let replicas = if servers.len() >= 3 { 3 } else { 1 };
    let settings = Settings {
        replicas: arguments.log_replicas.unwrap_or(replicas),
        servers,
        group: group.name.clone(),
        node: group.node.clone(),
        credentials: arguments.nats_credentials.clone(),
        authority: arguments.nats_ca.clone(),
    };
    let checked = settings.check();
    checked.map_err(|error| GroupError::Settings(error.to_string()))?;
    Ok(settings)
}

/// Starts the engine, and with it the node.
pub(super) fn start(
    shared: &Arc<Shared>,
    group: &Group,
    settings: &Settings,
    address: String,
    point: Option<Point>,
) -> Result<JetStream, GroupError> {
    let state = Arc::new(Served(Arc::clone(shared)));
    let config = GroupArgs::config();
    let named = (address, random());
    let engine = JetStream::start(&group.host, settings.clone(), config, named, point, state);
    engine.map_err(|error| GroupError::Settings(error.to_string()))
}

/// The number of this start of the node.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
