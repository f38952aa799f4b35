//! Starting, keeping and ending the node of a group.

use super::{Group, GroupArgs, GroupError, common};
use crate::server::{Server, Shared};
use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
#[cfg(feature = "jetstream")]
use tremula_group::{JetStream, Keeper};
use tremula_group::{Point, Standing};
use tremula_log::Log;
use tremula_store::Engine;

/// How often the point from which the node starts is kept.
const KEEP: Duration = Duration::from_secs(1);

/// How long a server that ends waits for the group to confirm what it has written.
const LAST: Duration = Duration::from_secs(2);

/// The node at work.
pub(crate) struct Running {
    group: Arc<Group>,
    #[cfg(feature = "jetstream")]
    engine: JetStream,
    #[cfg(feature = "jetstream")]
    keeper: Keeper,
}

impl Running {
    /// Starts the node of a server, if it is in a group.
    pub(crate) fn begin(
        server: &Server,
        arguments: &GroupArgs,
        engine: Engine,
        point: Option<Point>,
    ) -> Result<Option<Self>, GroupError> {
        let shared = server.shared();
        let Some(group) = shared.group.clone() else {
            return Ok(None);
        };
        let address = arguments.address(server.listening())?;
        // What the disk has.
        common::take(shared);
        #[cfg(feature = "jetstream")]
        {
            let settings = super::engine::settings(&group, arguments)?;
            let packing = super::packing::Packer::new(shared, &group, engine);
            let every = arguments.group_snapshot_every.0 as u64;
            let engine = super::engine::start(shared, &group, &settings, address, point)?;
            let keeper = super::packing::start(packing, settings, every)?;
            Ok(Some(Self {
                group,
                engine,
                keeper,
            }))
        }
        #[cfg(not(feature = "jetstream"))]
        {
            drop((group, engine, address, point));
            Err(GroupError::NoEngine)
        }
    }

    /// Ends the node behind the server. Returns whether what the store has is confirmed.
    pub(crate) fn end(self, server: &Shared) -> bool {
        #[cfg(feature = "jetstream")]
        drop(self.keeper);
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
    /// confirmed; or it has loaded a snapshot.
    pub(crate) fn starts_again(&self) -> bool {
        let group = &self.group;
        group.host.standing() == Standing::SteppedDown || group.has_arrived.load(SeqCst)
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
