//! Making, checking and loading packages at a node that serves.

use super::arrival::{ARRIVED, ARRIVING, SCRATCH, sync};
use super::package::{pack, unpack};
use super::{Group, GroupError};
use crate::server::Shared;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use tremula_group::{Keeper, Manifest, Packing, Position, Settings};
use tremula_store::Engine;

/// A node's store and its directory, as the keeper of snapshots has them.
pub(super) struct Packer {
    server: Arc<Shared>,
    group: Arc<Group>,
    engine: Engine,
    directory: PathBuf,
}

/// Starts the keeper of snapshots.
pub(super) fn start(packer: Packer, settings: Settings, every: u64) -> Result<Keeper, GroupError> {
    let group = Arc::clone(&packer.group);
    let report = Arc::clone(&group.snapshots);
    let keeper = Keeper::start(&group.host, settings, every, Arc::new(packer), report);
    keeper.map_err(|error| GroupError::Settings(error.to_string()))
}

impl Packer {
    pub(super) fn new(server: &Arc<Shared>, group: &Arc<Group>, engine: Engine) -> Self {
        let directory = group.point.parent().unwrap_or_else(|| Path::new("."));
        Self {
            server: Arc::clone(server),
            group: Arc::clone(group),
            engine,
            directory: directory.to_path_buf(),
        }
    }
}

impl Packing for Packer {
    fn scratch(&self) -> PathBuf {
        self.directory.join(SCRATCH)
    }

    fn pack(&self, package: &Path) -> Result<Manifest, String> {
        let persistence = self.server.persistence.as_ref();
        let persistence = persistence.ok_or("this node has no directory")?;
        pack(&self.server.store, persistence, &self.group, package)
    }

    /// In a process of its own: what the second state takes of memory is not counted as this
    /// server's, so that nothing is evicted for it, and a failure ends that process alone.
    fn check(&self, package: &Path, manifest: &Manifest) -> Result<(), String> {
        let directory = self.scratch().join("check");
        unpack(package, manifest, &directory)?;
        // Not by its name: that may be another program's by now.
        let checked = Command::new("/proc/self/exe")
            .args(["cluster", "check", "--engine", self.engine.name()])
            .arg(&directory)
            .stdin(Stdio::null())
            .output();
        let checked = checked.map_err(|error| error.to_string())?;
        if !checked.status.success() {
            let why = String::from_utf8_lossy(&checked.stderr);
            return Err(format!("it cannot be loaded: {}", why.trim_end()));
        }
        fs::remove_dir_all(&directory).map_err(|error| error.to_string())
    }

    fn install(&self, package: &Path, manifest: &Manifest) -> Result<(), String> {
        let (group, point) = (&self.group, &manifest.saved.point);
        if manifest.saved.group != group.name {
            return Err(format!("it is of the group '{}'", manifest.saved.group));
        }
        let own = self.server.persistence.as_ref().map(|own| own.log().tail());
        let own = own.map_or(0, |tail| tail.next.before().get());
        if own > point.last.get() {
            return Err(format!(
                "it ends at record {}, and this node's own log has record {own}: the group has lost \
                 what this node has. To follow the group as it is, put aside what this node has: \
                 tremula cluster rejoin {}",
                point.last,
                self.directory.display()
            ));
        }
        let arriving = self.directory.join(ARRIVING);
        unpack(package, manifest, &arriving)?;
        let arrived = self.directory.join(ARRIVED);
        fs::rename(&arriving, &arrived)
            .and_then(|()| sync(&self.directory))
            .map_err(|error| format!("{}: {error}", arrived.display()))?;
        tracing::info!(%point, "a snapshot of the group is loaded; starting again from it");
        group.has_arrived.store(true, SeqCst);
        self.server.stop.notify_one();
        Ok(())
    }

    fn kept(&self) -> Position {
        Position::new(self.group.kept.load(SeqCst))
    }
}
