//! A node's own history becomes that of its group: in a new log, which begins behind a snapshot of
//! what the node has. For a group whose log has lost what its nodes still have.

use super::arguments::{POINT, read, write};
use super::arrival::SCRATCH;
use super::package::{check_package, pack_files, unpack};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tremula_group::{Manifest, Point, Position, Reign, SavedPoint, Settings, publish_snapshot};
use tremula_log::{Config, FileLog, Log};
use tremula_store::{Engine, Folder, LOG_FOLDER, Sequence, Store, StoreConfig, parse_engine};

/// Messages of the new log have numbers behind the next multiple of this. No node has read so far
/// in the old one, so each finds that it needs the snapshot.
const APART: u64 = 1 << 32;

/// Which node's history is published, and where.
#[derive(clap::Args, Debug)]
pub struct PublishArgs {
    /// The directory of the node, which does not run: its --dir
    pub node: PathBuf,
    /// Servers of NATS whose JetStream holds the log of the group, with commas
    #[arg(long, value_name = "URLS", value_delimiter = ',', required = true)]
    pub replicate: Vec<String>,
    /// Remove the log and the snapshots that the group has there
    #[arg(long)]
    pub replace: bool,
    /// Servers of NATS that keep each record, 1, 3 or 5 [default: 3 if three or more are named,
    /// else 1]
    #[arg(long, value_name = "N")]
    pub log_replicas: Option<usize>,
    /// File of credentials for NATS [default: none]
    #[arg(long, value_name = "FILE")]
    pub nats_credentials: Option<PathBuf>,
    /// File of certificates that sign those of NATS, beside the system's [default: none]
    #[arg(long, value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
    /// The engine that loads what the node has
    #[arg(long, value_name = "ENGINE", default_value_t = Engine::Aspen, value_parser = parse_engine)]
    pub engine: Engine,
}

/// Publishes what a node has, and makes its directory one of the new log. Returns the last record.
///
/// # Errors
///
/// The directory is no node's, or a server has it open; there is such a log; NATS does not take it.
pub fn publish(arguments: &PublishArgs) -> Result<Sequence, String> {
    let directory = &arguments.node;
    let saved = read(directory).map_err(|error| error.to_string())?;
    let saved = saved.ok_or_else(|| {
        format!(
            "{} is no directory of a node of a group",
            directory.display()
        )
    })?;
    let replicas = if arguments.replicate.len() >= 3 { 3 } else { 1 };
    let settings = Settings {
        servers: arguments.replicate.clone(),
        group: saved.group.clone(),
        node: "publish".to_owned(),
        replicas: arguments.log_replicas.unwrap_or(replicas),
        credentials: arguments.nats_credentials.clone(),
        authority: arguments.nats_ca.clone(),
    };
    settings.check().map_err(|error| error.to_string())?;
    let log = FileLog::open(directory.join(LOG_FOLDER), &Config::default());
    let log = Arc::new(log.map_err(|error| error.to_string())?);
    let scratch = directory.join(SCRATCH);
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let package = scratch.join("package");
    let manifest = pack(directory, &log, arguments.engine, &saved, &package)?;
    let check = |package: &Path, manifest: &Manifest| {
        let unpacked = scratch.join("check");
        unpack(package, manifest, &unpacked)?;
        check_package(&unpacked, arguments.engine).map(|_| ())
    };
    let published = publish_snapshot(&settings, arguments.replace, &package, manifest, &check);
    // It holds nothing else.
    let _ = fs::remove_dir_all(&scratch);
    let point = published?.saved.point;
    write(&directory.join(POINT), &saved.group, &point).map_err(|error| error.to_string())?;
    log.close().map_err(|stopped| stopped.to_string())?;
    Ok(point.last)
}

/// Writes a package of all that the directory has.
fn pack(
    directory: &Path,
    log: &Arc<FileLog>,
    engine: Engine,
    saved: &SavedPoint,
    package: &Path,
) -> Result<Manifest, String> {
    let folder = Folder::new(directory);
    let config = StoreConfig::new(engine);
    let own = Arc::clone(log) as Arc<dyn Log>;
    let recovered = Store::recover_to_follow(&config, own, &folder, &mut |_| ());
    let (store, _) = recovered.map_err(|error| error.to_string())?;
    let snapshot = store.save(&folder).map_err(|error| error.to_string())?;
    let tail = log.tail();
    let position = (saved.point.position.get() / APART + 1) * APART;
    let saved = SavedPoint {
        group: saved.group.clone(),
        point: Point {
            position: Position::new(position),
            last: tail.next.before(),
            chain: tail.chain,
            // Nobody leads: the first claim has the next epoch.
            reign: Reign {
                epoch: saved.point.reign.epoch.next(),
                ..Reign::default()
            },
        },
    };
    pack_files(&snapshot.path, log, saved, package)
}
