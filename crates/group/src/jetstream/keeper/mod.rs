//! Snapshots of a group in the object store of NATS: made, checked, and loaded by nodes that need
//! one; and the stream, cut behind them.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | the thread, and when it does what |
//! | `bucket` | packages and manifests in the object store |
//! | `publish` | a new stream behind a snapshot |
//! | `peers` | what nodes say of themselves, in a bucket of keys and values |
//!
//! It has a thread and a connection of its own, so that a snapshot on its way takes no place in
//! front of a leader's appends. What it decides is in `shelf`.
//!
//! 1. A manifest is written when the package was read back from the object store, and loaded.
//! 2. The stream is cut only behind snapshots that have a manifest.
//! 3. What is in the object store is believed only if its checksum fits; an older snapshot replaces
//!    one that is damaged or missing.

mod bucket;
mod peers;
mod publish;

use super::connection::{options, try_connect};
use super::{AGAIN, Settings, described};
use crate::host::{Host, Standing};
use crate::position::Position;
use crate::shelf::{Extent, Manifest, Peer, Shelf, SnapshotReport, maker};
use async_nats::jetstream::Context;
use bucket::Bucket;
use peers::Peers;
pub use publish::publish_snapshot;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tremula_sync::Mutex;

/// How often the thread looks whether there is something to do.
const LOOK: Duration = Duration::from_millis(200);

/// How often it asks for the length of the stream.
const MEASURE: Duration = Duration::from_secs(1);

/// How often it reads the manifests, beside when a snapshot seems to be due.
const LIST: Duration = Duration::from_secs(10);

/// How long a node makes no snapshot after its start: until then it has heard of the others.
const SETTLE: Duration = Duration::from_secs(2);

/// How long a node waits after a snapshot that failed.
const PAUSE: Duration = Duration::from_secs(10);

/// What a [`Keeper`] asks of the state and of the own log of a node. Its methods may block.
pub trait Packing: Send + Sync {
    /// A directory for files that are made on the way.
    fn scratch(&self) -> PathBuf;

    /// Writes a package of what the node has into a new file. `bytes` and `checksum` of the
    /// manifest may be anything.
    ///
    /// # Errors
    ///
    /// Why not.
    fn pack(&self, package: &Path) -> Result<Manifest, String>;

    /// Loads a package, and throws away what it makes.
    ///
    /// # Errors
    ///
    /// It does not make a state, or another one than the manifest says.
    fn check(&self, package: &Path, manifest: &Manifest) -> Result<(), String>;

    /// Makes the node start from a package.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    fn install(&self, package: &Path, manifest: &Manifest) -> Result<(), String>;

    /// The message that the point which the node has kept ends with.
    fn kept(&self) -> Position;
}

/// Makes and loads the snapshots of a group at one of its nodes.
pub struct Keeper {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Keeper {
    /// Begins. `every` is the bytes of the stream after which a snapshot is made; 0 makes none.
    /// What is known of snapshots goes into `report`.
    ///
    /// # Errors
    ///
    /// The system refuses a thread or an event loop, or a file of the settings cannot be read.
    pub fn start(
        host: &Arc<Host>,
        settings: Settings,
        every: u64,
        packing: Arc<dyn Packing>,
        report: Arc<Mutex<SnapshotReport>>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let options = runtime.block_on(options(&settings))?;
        let (stop, stopped) = oneshot::channel();
        let host = Arc::clone(host);
        let run = move || {
            let work = async {
                let context = loop {
                    match try_connect(&settings, options.clone()).await {
                        Ok(context) => break context,
                        // The node's own connection says why.
                        Err(_) => tokio::time::sleep(AGAIN).await,
                    }
                };
                Work {
                    bucket: Bucket::new(&context, &settings),
                    peers: Peers::new(&context, &settings),
                    context,
                    host,
                    settings,
                    every,
                    packing,
                    report,
                    shelf: Shelf::default(),
                    listed: None,
                    paused_until: Instant::now() + SETTLE,
                }
                .run()
                .await;
                Ok::<(), String>(())
            };
            let done = runtime.block_on(async {
                tokio::select! {
                    done = work => done,
                    _ = stopped => Ok(()),
                }
            });
            if let Err(why) = done {
                tracing::error!("no snapshots of the group are made: {why}");
            }
            // A package that is being written or read is of no use any more.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("tremula-keeper".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported.
            let _ = thread.join();
        }
    }
}

struct Work {
    context: Context,
    bucket: Bucket,
    peers: Peers,
    host: Arc<Host>,
    settings: Settings,
    every: u64,
    packing: Arc<dyn Packing>,
    report: Arc<Mutex<SnapshotReport>>,
    /// The snapshots, as of `listed`.
    shelf: Shelf,
    listed: Option<Instant>,
    paused_until: Instant,
}

impl Work {
    async fn run(mut self) {
        let mut measured = None::<Instant>;
        loop {
            tokio::time::sleep(LOOK).await;
            self.say(self.packing.kept()).await;
            let done = match self.host.standing() {
                Standing::Behind => self.load().await,
                Standing::Follower | Standing::Leader
                    if measured.is_none_or(|at| at.elapsed() >= MEASURE) =>
                {
                    measured = Some(Instant::now());
                    self.keep().await
                }
                _ => Ok(()),
            };
            if let Err(why) = done {
                self.note(why);
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Says what went wrong, once.
    fn note(&self, why: String) {
        let mut report = self.report.lock();
        if report.error.as_ref() != Some(&why) {
            tracing::warn!("snapshots of the group: {why}");
        }
        report.error = Some(why);
    }

    /// Lets the other nodes know of this one.
    async fn say(&mut self, needs: Position) {
        let standing = self.host.standing();
        let peer = Peer {
            name: self.settings.node.clone(),
            leads: standing == Standing::Leader,
            serves: matches!(standing, Standing::Leader | Standing::Follower),
            needs,
        };
        self.peers.say(&peer).await;
    }

    /// What of the stream there is.
    async fn measure(&self) -> Result<Extent, String> {
        let stream = self.context.get_stream(self.settings.stream()).await;
        let stream = stream.map_err(|error| described(&error))?;
        let state = &stream.cached_info().state;
        let first = Position::new(state.first_sequence);
        self.report.lock().first = first;
        Ok(Extent {
            first,
            last: Position::new(state.last_sequence),
            bytes: state.bytes,
        })
    }

    async fn list(&mut self) -> Result<(), String> {
        self.shelf = self.bucket.list().await?;
        self.listed = Some(Instant::now());
        let newest = self.shelf.newest().map(|newest| {
            let point = &newest.saved.point;
            (point.position, point.last, newest.bytes)
        });
        self.report.lock().newest = newest;
        Ok(())
    }

    /// Makes a snapshot if one is due and this node is to make it, and cuts the stream.
    async fn keep(&mut self) -> Result<(), String> {
        let log = self.measure().await?;
        if self.listed.is_none_or(|at| at.elapsed() >= LIST) {
            self.list().await?;
        }
        let is_due = self.shelf.is_due(log, self.every);
        // Each look at the other nodes takes NATS a consumer of its own.
        if !is_due && self.shelf.keep_from(None) <= log.first {
            return Ok(());
        }
        let peers = self.peers.all().await?;
        if maker(&peers) != Some(&self.settings.node) {
            return Ok(());
        }
        if is_due {
            self.list().await?;
        }
        if self.shelf.is_due(log, self.every) && Instant::now() >= self.paused_until {
            match self.make().await {
                Ok(()) => {
                    let mut report = self.report.lock();
                    report.made += 1;
                    report.error = None;
                }
                Err(why) => {
                    self.report.lock().failed += 1;
                    self.paused_until = Instant::now() + PAUSE;
                    return Err(format!("a snapshot is not made: {why}"));
                }
            }
            self.list().await?;
        }
        // A node that has come meanwhile counts too.
        let needs = self.peers.all().await?.into_iter().map(|peer| peer.needs);
        let keep_from = self.shelf.keep_from(needs);
        if keep_from > log.first {
            self.cut(keep_from).await?;
        }
        Ok(())
    }

    /// Removes all messages before this one.
    async fn cut(&self, keep_from: Position) -> Result<(), String> {
        let stream = self.context.get_stream(self.settings.stream()).await;
        let stream = stream.map_err(|error| described(&error))?;
        let purged = stream.purge().sequence(keep_from.get()).await;
        let purged = purged.map_err(|error| described(&error))?;
        tracing::info!(messages = purged.purged, first = %keep_from, "the stream is cut");
        self.report.lock().first = keep_from;
        Ok(())
    }

    /// Makes a snapshot, and checks it.
    async fn make(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let scratch = self.packing.scratch();
        std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
        let package = scratch.join("package");
        let packing = Arc::clone(&self.packing);
        let path = package.clone();
        let mut manifest = self.apart(move || packing.pack(&path)).await?;
        (manifest.bytes, manifest.checksum) = {
            let path = package.clone();
            self.apart(move || bucket::measure(&path)).await?
        };
        let name = format!("{:020}.{:016x}", manifest.position().get(), random());
        self.bucket.put_package(&name, &package).await?;
        // What is checked is what others will get, not what was sent.
        self.bucket.get_package(&name, &manifest, &package).await?;
        let (packing, path, of) = (Arc::clone(&self.packing), package, manifest.clone());
        self.apart(move || packing.check(&path, &of)).await?;
        self.bucket.put_manifest(&name, &manifest).await?;
        // The directory holds nothing else.
        let _ = std::fs::remove_dir_all(&scratch);
        tracing::info!(
            point = %manifest.saved.point,
            bytes = manifest.bytes,
            milliseconds = began.elapsed().as_millis(),
            "a snapshot of the group is made and checked"
        );
        self.list().await?;
        self.bucket.remove_before(&self.shelf).await
    }

    /// Makes this node start from the newest snapshot that is whole.
    async fn load(&mut self) -> Result<(), String> {
        let log = self.measure().await?;
        self.list().await?;
        let mut why = String::new();
        let leading = self.shelf.leading_to(log.first);
        let leading: Vec<(String, Manifest)> = leading
            .map(|(name, manifest)| (name.to_owned(), manifest.clone()))
            .collect();
        let scratch = self.packing.scratch();
        for (name, manifest) in leading {
            // The stream stays from here on.
            self.say(manifest.position()).await;
            tracing::info!(point = %manifest.saved.point, "loading a snapshot of the group");
            std::fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
            let package = scratch.join("package");
            let got = self.bucket.get_package(&name, &manifest, &package).await;
            let installed = match got {
                Ok(()) => {
                    let packing = Arc::clone(&self.packing);
                    let path = package.clone();
                    let of = manifest.clone();
                    self.apart(move || packing.install(&path, &of)).await
                }
                Err(why) => Err(why),
            };
            let _ = std::fs::remove_dir_all(&scratch);
            match installed {
                // The server starts again.
                Ok(()) => std::future::pending().await,
                Err(error) => {
                    tracing::warn!(
                        "the snapshot at message {} is not used: {error}",
                        manifest.position()
                    );
                    why = format!("{why}; that at message {}: {error}", manifest.position());
                }
            }
        }
        let what = format!(
            "the shared log begins at message {}, behind what this node has, and no snapshot leads \
             there{why}",
            log.first
        );
        self.host.explain(&what);
        Err(what)
    }

    /// Does something that blocks, while this node goes on to let others know of it.
    async fn apart<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let mut work = tokio::task::spawn_blocking(work);
        loop {
            tokio::select! {
                done = &mut work => return done.unwrap_or_else(|error| Err(error.to_string())),
                () = tokio::time::sleep(MEASURE) => self.say(self.packing.kept()).await,
            }
        }
    }
}

/// A number that no other snapshot has.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
