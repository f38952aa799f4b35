//! Starting, keeping and ending the node of a group.

use super::{Group, GroupArgs, GroupError};
use crate::server::{Server, Shared};
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
#[cfg(feature = "jetstream")]
use tremula_group::JetStream;
use tremula_group::{Point, Standing, State};
use tremula_log::{Batch, Log};
use tremula_store::Sequence;

/// How often the point from which the node starts is kept.
const KEEP: Duration = Duration::from_secs(1);

/// How long a server that ends waits for the group to confirm what it has written.
const LAST: Duration = Duration::from_secs(2);

/// The server's store and its clients, as the group has them.
struct Served(Arc<Shared>);

impl Served {
    fn group(&self) -> Option<&Arc<Group>> {
        self.0.group.as_ref()
    }
}

impl State for Served {
    fn apply(&self, first: Sequence, batch: &Batch) -> Result<(), String> {
        let applied = self.0.store.apply(first, batch);
        applied.map_err(|error| error.to_string())
    }

    fn lead(&self, next: Sequence) {
        if let Some(group) = self.group() {
            group.lead(&self.0.store, next);
        }
    }

    fn ended(&self, standing: Standing, why: &str) {
        if standing == Standing::SteppedDown {
            tracing::warn!("{why}; starting again from what is confirmed");
            self.0.stop.notify_one();
        } else {
            tracing::error!("this node serves nothing any more: {why}");
        }
    }
}

/// The node at work.
pub(crate) struct Running {
    group: Arc<Group>,
    #[cfg(feature = "jetstream")]
    engine: JetStream,
}

impl Running {
    /// Starts the node of a server, if it is in a group.
    pub(crate) fn begin(
        server: &Server,
        arguments: &GroupArgs,
        point: Option<Point>,
    ) -> Result<Option<Self>, GroupError> {
        let shared = server.shared();
        let Some(group) = shared.group.clone() else {
            return Ok(None);
        };
        let address = arguments.address(server.listening())?;
        #[cfg(feature = "jetstream")]
        {
            use tremula_group::Settings;
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
            settings
                .check()
                .map_err(|error| GroupError::Settings(error.to_string()))?;
            let named = (address, random());
            let state = Arc::new(Served(Arc::clone(shared)));
            let config = GroupArgs::config();
            let engine = JetStream::start(&group.host, settings, config, named, point, state);
            let engine = engine.map_err(|error| GroupError::Settings(error.to_string()))?;
            Ok(Some(Self { group, engine }))
        }
        #[cfg(not(feature = "jetstream"))]
        {
            drop((address, point));
            Err(GroupError::NoEngine)
        }
    }

    /// Ends the node behind the server. Returns whether what the store has is confirmed.
    pub(crate) fn end(self, server: &Shared) -> bool {
        server.store.forward();
        let last = server.store.last_effect();
        let deadline = std::time::Instant::now() + LAST;
        let watermark = self.group.host.watermark();
        let confirmed = watermark.wait_until(last, Some(deadline));
        let is_whole = confirmed.unwrap_or(false) && !self.group.host.has_ended();
        #[cfg(feature = "jetstream")]
        self.engine.stop();
        if !is_whole {
            self.group.host.stop();
        }
        is_whole
    }

    /// Whether the server is to start again: it has led, and its store has effects that are not
    /// confirmed.
    pub(crate) fn starts_again(&self) -> bool {
        self.group.host.standing() == Standing::SteppedDown
    }
}

/// Becomes this program anew, with the same arguments: the store is made again from what is on the
/// disk. Returns only if that fails.
pub(crate) fn start_again() -> io::Error {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    // Not by its name: that may be another program's by now.
    let mut program = Command::new("/proc/self/exe");
    program.arg0(name).args(arguments).exec()
}

/// Keeps the point from which the node starts, for as long as the server runs.
pub(crate) async fn keep(server: &Arc<Shared>) {
    let Some(group) = &server.group else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval(KEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut kept = Point::default();
    loop {
        ticks.tick().await;
        let group = Arc::clone(group);
        let last = kept.clone();
        let keeping = tokio::task::spawn_blocking(move || {
            let point = group.host.kept_point().filter(|point| *point != last)?;
            match group.write(&point) {
                Ok(()) => Some(point),
                Err(error) => {
                    tracing::warn!("{error}");
                    None
                }
            }
        });
        if let Ok(Some(point)) = keeping.await {
            kept = point;
        }
    }
}

/// The number of this start of the node.
#[cfg(feature = "jetstream")]
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
