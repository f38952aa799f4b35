//! The flags of a node of a group.

use super::{Changes, Forward, Group, Nodes};
use crate::cli::ServeArgs;
use crate::limits::Bytes;
use crate::listen::{Listening, Port};
use crate::persist::Persistence;
use clap::ArgAction;
use clap::builder::BoolishValueParser;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use thiserror::Error;
#[cfg(feature = "jetstream")]
use tremula_group::Config;
use tremula_group::{Host, Point, SavedPoint};
use tremula_log::Sequence;

/// The file of a directory that says to which group it belongs, and from where its node starts.
pub(super) const POINT: &str = "group-point";

/// Bytes that the group's log grows by until a snapshot is made.
const SNAPSHOT_EVERY: usize = 512 << 20;

/// A server's part in a group, and the point from which its node starts, if there is one.
pub(crate) type Opened = (Arc<Group>, Option<Point>);

/// Flags of a server that is one node of a group.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Several machines")]
pub struct GroupArgs {
    /// Servers of NATS whose JetStream holds the log of a group of nodes, with commas:
    /// nats://HOST:PORT, tls://HOST:PORT [default: none, this server is alone]
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    pub replicate: Vec<String>,

    /// Name of the group, in letters, digits, - and _ [default: main]
    #[arg(long, value_name = "NAME", requires = "replicate")]
    pub group: Option<String>,

    /// Name of this node in its group, another one for each, in letters, digits, - and _ [default:
    /// node-PORT]
    #[arg(long, value_name = "NAME", requires = "replicate")]
    pub node: Option<String>,

    /// Where clients and other nodes reach this node, as HOST:PORT [default: where it listens]
    #[arg(long, value_name = "ADDRESS", requires = "replicate")]
    pub announce: Option<String>,

    /// Servers of NATS that keep each record, 1, 3 or 5, when the log is made [default: 3 if three
    /// or more are named, else 1]
    #[arg(long, value_name = "N", requires = "replicate")]
    pub log_replicas: Option<usize>,

    /// Bytes that the group's log grows by until a node puts a snapshot into the object store of
    /// NATS, behind which the log is cut; no less than the last snapshot has. 0 makes none
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(SNAPSHOT_EVERY))]
    pub group_snapshot_every: Bytes,

    /// File of credentials for NATS [default: none]
    #[arg(long, value_name = "FILE", requires = "replicate")]
    pub nats_credentials: Option<PathBuf>,

    /// File of certificates that sign those of NATS, beside the system's [default: none]
    #[arg(long, value_name = "FILE", requires = "replicate")]
    pub nats_ca: Option<PathBuf>,

    /// Send what clients write on to the leader when this node does not lead, and answer with its
    /// reply: yes or no
    #[arg(long, value_name = "YES|NO", default_value = "no", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub forward_writes: bool,

    /// User that this node is at the leader [default: the default user]
    #[arg(long, value_name = "NAME", requires = "replicate")]
    pub forward_user: Option<String>,

    /// File whose first line is that user's password [default: none]
    #[arg(long, value_name = "FILE", requires = "replicate")]
    pub forward_password_file: Option<PathBuf>,
}

/// Why a server cannot be a node of a group.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A flag excludes another one.
    #[error("--replicate excludes {0}")]
    Excludes(&'static str),
    /// The node has no directory.
    #[error("--replicate needs a directory for the node's own log; name one with --dir")]
    NoDirectory,
    /// The node has another port at each start.
    #[error("--replicate needs a port that stays the same; set --port, and not to 0")]
    NoPort,
    /// Others do not reach the node where it listens.
    #[error(
        "other machines do not reach {0}; say with --announce HOST:PORT where they reach this node"
    )]
    NoAddress(String),
    /// The directory belongs to another group, or to none.
    #[error("{} {what}; name an empty directory with --dir", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// The directory belongs to a group, and the server to none.
    #[error(
        "{} belongs to a node of the group '{group}'; start it with --replicate, or remove {POINT} from it to go on without the group", path.display()
    )]
    InGroup {
        /// The directory.
        path: PathBuf,
        /// The group.
        group: String,
    },
    /// The file of the point cannot be read or written.
    #[error("{}: {source}", path.display())]
    Point {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// What a node has loaded cannot be put in its place, or what it has cannot be put aside.
    #[error("{}: {why}", path.display())]
    Arrival {
        /// The directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file of the password for the leader cannot be read, or has none.
    #[error("--forward-password-file {}: {source}", path.display())]
    Password {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The settings of the group are wrong.
    #[error("{0}")]
    Settings(String),
    /// The program has no engine for it.
    #[error("this program was built without the feature jetstream, so it has no --replicate")]
    NoEngine,
}

impl GroupArgs {
    /// Whether the server is a node of a group.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !self.replicate.is_empty()
    }

    /// The name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        self.group.as_deref().unwrap_or("main")
    }

    /// What the server's other flags must not be.
    pub(crate) fn check(arguments: &ServeArgs) -> Result<(), GroupError> {
        if !arguments.group.is_on() {
            return Ok(());
        }
        if !cfg!(feature = "jetstream") {
            return Err(GroupError::NoEngine);
        }
        if arguments.cache.is_some() {
            return Err(GroupError::Excludes(
                "--cache: each node would evict values by itself",
            ));
        }
        if arguments.load.file.is_some() {
            return Err(GroupError::Excludes(
                "--load: a client loads keys through the leader",
            ));
        }
        if arguments.group.forward_writes && matches!(arguments.listen.port, Port(None)) {
            return Err(GroupError::Excludes(
                "--forward-writes without --port: nodes reach each other without TLS",
            ));
        }
        if matches!(arguments.listen.port, Port(Some(0))) {
            return Err(GroupError::NoPort);
        }
        Ok(())
    }

    /// Where others reach the node.
    pub(crate) fn address(&self, listening: &Listening) -> Result<String, GroupError> {
        if let Some(address) = &self.announce {
            return Ok(address.clone());
        }
        match listening.plain.or(listening.tls) {
            Some(address) if !address.ip().is_unspecified() => Ok(address.to_string()),
            _ => Err(GroupError::NoAddress(listening.to_string())),
        }
    }

    /// The node's part in the group, and the point from which it starts.
    ///
    /// # Errors
    ///
    /// The directory belongs to another group, or to a server without one.
    pub(crate) fn open(
        &self,
        persistence: Option<&Arc<Persistence>>,
        Port(port): Port,
    ) -> Result<Option<Opened>, GroupError> {
        let Some(persistence) = persistence else {
            return if self.is_on() {
                Err(GroupError::NoDirectory)
            } else {
                Ok(None)
            };
        };
        let directory = persistence.directory();
        let saved = read(directory)?;
        if !self.is_on() {
            return match saved {
                Some(saved) => Err(GroupError::InGroup {
                    path: directory.to_path_buf(),
                    group: saved.group,
                }),
                None => Ok(None),
            };
        }
        let refused = |what| GroupError::Directory {
            path: directory.to_path_buf(),
            what,
        };
        match &saved {
            Some(saved) if saved.group != self.name() => {
                let group = &saved.group;
                return Err(refused(format!("belongs to a node of the group '{group}'")));
            }
            Some(_) => {}
            None if persistence.log().tail().next > Sequence::new(1) => {
                let what = "has what a server without a group has kept";
                return Err(refused(what.to_owned()));
            }
            None => {}
        }
        let group = Group {
            host: Host::new(persistence.log()),
            name: self.name().to_owned(),
            node: self.node.clone().unwrap_or_else(|| {
                let port = port.map_or_else(|| "none".to_owned(), |port| port.to_string());
                format!("node-{port}")
            }),
            point: directory.join(POINT),
            has_led: AtomicBool::new(false),
            kept: AtomicU64::new(0),
            has_arrived: AtomicBool::new(false),
            snapshots: Arc::default(),
            nodes: Nodes::default(),
            changes: Changes::default(),
            forward: self.forward()?,
        };
        let point = saved.map(|saved| saved.point);
        if let Some(point) = &point {
            group.kept.store(point.position.get(), SeqCst);
        }
        if point.is_none() {
            // Before the first record: the directory belongs to the group from now on.
            group.write(&Point::default())?;
        }
        Ok(Some((Arc::new(group), point)))
    }

    /// The way of writes to the leader, if there is to be one.
    fn forward(&self) -> Result<Option<Forward>, GroupError> {
        if !self.forward_writes {
            return Ok(None);
        }
        let user = self.forward_user.clone();
        let user = user.unwrap_or_else(|| "default".to_owned());
        let password = self.forward_password_file.as_ref().map(|path| {
            let failed = |source| GroupError::Password {
                path: path.clone(),
                source,
            };
            let text = std::fs::read(path).map_err(failed)?;
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                let what = "the first line is no password";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
            Ok(line.to_vec())
        });
        let login = password.transpose()?.map(|password| (user, password));
        Ok(Some(Forward::new(login)))
    }

    /// The durations and limits of the node.
    #[cfg(feature = "jetstream")]
    pub(super) fn config() -> Config {
        Config::default()
    }
}

/// What a directory says of its group.
pub(super) fn read(directory: &Path) -> Result<Option<SavedPoint>, GroupError> {
    let path = directory.join(POINT);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(GroupError::Point { path, source }),
    };
    match SavedPoint::decode(&bytes) {
        Some(saved) => Ok(Some(saved)),
        None => {
            let source = io::Error::new(io::ErrorKind::InvalidData, "the file is damaged");
            Err(GroupError::Point { path, source })
        }
    }
}

impl Group {
    /// Keeps a point.
    pub(super) fn write(&self, point: &Point) -> Result<(), GroupError> {
        write(&self.point, &self.name, point)?;
        self.kept.store(point.position.get(), SeqCst);
        Ok(())
    }
}

/// Puts the point of a group into a file.
pub(super) fn write(path: &Path, group: &str, point: &Point) -> Result<(), GroupError> {
    let saved = SavedPoint {
        group: group.to_owned(),
        point: point.clone(),
    };
    let new = path.with_extension("new");
    let written = std::fs::write(&new, saved.encode())
        .and_then(|()| std::fs::File::open(&new)?.sync_all())
        .and_then(|()| std::fs::rename(&new, path));
    written.map_err(|source| GroupError::Point {
        path: path.to_path_buf(),
        source,
    })
}
