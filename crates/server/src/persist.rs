//! What the server keeps on a disk: the log of its keys and tables, and snapshots of them.

use crate::limits::Bytes;
use crate::listen::Port;
use crate::log_keep::LogKeep;
use crate::server::Shared;
use std::ffi::OsString;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tokio::time::MissedTickBehavior;
use tremula_log::{Config, FileLog, Log, OpenError};
use tremula_store::{Folder, LOG_FOLDER, SaveError, Saved, Sequence, Store};

/// Bytes of the log after which a snapshot is made.
pub const SNAPSHOT_EVERY: usize = 1 << 30;

/// How often the keeper looks at the log.
const LOOK: Duration = Duration::from_millis(100);

/// How long after a snapshot that failed the next one begins, if nobody asks for it.
const AGAIN: Duration = Duration::from_secs(60);

/// When a write is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Durability {
    /// Before it is answered, and so is what a reader has seen of it.
    Always,
    /// Within a second.
    #[default]
    EverySecond,
    /// When the system writes it.
    No,
}

impl Durability {
    const ALL: [Self; 3] = [Self::Always, Self::EverySecond, Self::No];

    /// As a setting has it, which is how Redis spells `appendfsync`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::No => "no",
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("'{text}' is not one of always, everysec and no"))
    }
}

/// Where keys and tables are kept, and how surely.
#[derive(clap::Args, Clone, Debug)]
pub struct PersistArgs {
    /// Directory that keeps keys, tables and durable mailboxes over a restart [default:
    /// tremula/PORT in the user's state directory; none with --port 0 or none, nothing is kept]
    #[arg(long, value_name = "DIRECTORY")]
    pub dir: Option<PathBuf>,

    /// Keep nothing over a restart, whatever --dir says
    #[arg(long)]
    pub memory_only: bool,

    /// When a write is on the disk: always (before its reply), everysec (within a second) or no
    /// (when the system writes it)
    #[arg(long, value_name = "WHEN", default_value_t, value_parser = Durability::from_str)]
    pub durability: Durability,

    /// Bytes of the log after which a snapshot is made, so that a restart is quick; 0 makes none
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(SNAPSHOT_EVERY))]
    pub snapshot_every: Bytes,

    /// How much of the log stays when a snapshot has made it superfluous, with the snapshots that
    /// lead to its states: bytes (10gb) or a time (7d, 12h, 30min); 0 keeps nothing
    #[arg(long, value_name = "SIZE|TIME", default_value_t)]
    pub log_keep: LogKeep,
}

/// Why the directory cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The user has no state directory.
    #[error(
        "there is no state directory to keep data in, because neither XDG_STATE_HOME nor HOME is an absolute path; name a directory with --dir, or keep nothing with --memory-only"
    )]
    NoState,
    /// It cannot be made.
    #[error("--dir {}: cannot make the directory: {source}; name another one, or keep nothing with --memory-only", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The log in it cannot be opened.
    #[error("--dir {}: {source}", path.display())]
    Log {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: OpenError,
    },
}

impl PersistArgs {
    /// The directory of a server that listens on this port, if it has one; `None` if nothing is to
    /// be kept. `variable` is what the environment has of this name.
    ///
    /// # Errors
    ///
    /// There is no state directory.
    pub(crate) fn directory(
        &self,
        port: Port,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<PathBuf>, DirectoryError> {
        if self.memory_only {
            return Ok(None);
        }
        if self.dir.is_some() {
            return Ok(self.dir.clone());
        }
        // A free port is another one each time.
        let Port(Some(port @ 1..)) = port else {
            return Ok(None);
        };
        let absolute = |name| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))
            .ok_or(DirectoryError::NoState)?;
        Ok(Some(state.join("tremula").join(port.to_string())))
    }
}

/// The directory of a server, and what is known of its snapshots.
pub struct Persistence {
    directory: PathBuf,
    folder: Folder,
    log: Arc<FileLog>,
    durability: AtomicU8,
    snapshot_every: u64,
    is_saving: AtomicBool,
    /// The bytes that the log had written at the last snapshot.
    written: AtomicU64,
    last: Mutex<LastSave>,
}

/// The last snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSave {
    /// When it was made; at first, when the server started.
    pub(crate) when: SystemTime,
    /// The last effect that it has.
    pub(crate) sequence: Sequence,
    /// How long it took, if there was one.
    pub(crate) took: Option<Duration>,
    /// When the newest attempt failed, if it did.
    pub(crate) failed: Option<Instant>,
}

impl fmt::Debug for Persistence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Persistence in {}", self.directory.display())
    }
}

impl Persistence {
    /// Opens the directory, which no other process has open.
    ///
    /// # Errors
    ///
    /// [`DirectoryError`]. Nothing was changed.
    pub fn open(directory: &Path, arguments: &PersistArgs) -> Result<Self, DirectoryError> {
        let path = directory.to_path_buf();
        // As the specification of XDG's directories has it: for the user alone.
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|source| DirectoryError::Make { path, source })?;
        let sync = match arguments.durability {
            Durability::No => None,
            Durability::Always | Durability::EverySecond => Some(Duration::from_secs(1)),
        };
        let config = Config::default()
            .sync_every(sync)
            .keep(arguments.log_keep.0);
        let log = FileLog::open(directory.join(LOG_FOLDER), &config).map_err(|source| {
            let path = directory.to_path_buf();
            DirectoryError::Log { path, source }
        })?;
        Ok(Self {
            directory: directory.to_path_buf(),
            folder: Folder::new(directory),
            log: Arc::new(log),
            durability: AtomicU8::new(arguments.durability as u8),
            snapshot_every: arguments.snapshot_every.0 as u64,
            is_saving: AtomicBool::new(false),
            written: AtomicU64::new(0),
            last: Mutex::new(LastSave {
                when: SystemTime::now(),
                sequence: Sequence::NONE,
                took: None,
                failed: None,
            }),
        })
    }

    /// The folder of the snapshots.
    #[must_use]
    pub const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> Arc<dyn Log> {
        Arc::clone(&self.log) as Arc<dyn Log>
    }

    /// The log as what it is.
    #[cfg(feature = "jetstream")]
    pub(crate) const fn files(&self) -> &Arc<FileLog> {
        &self.log
    }

    /// The directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn stats(&self) -> tremula_log::Stats {
        self.log.stats()
    }

    pub(crate) fn durability(&self) -> Durability {
        Durability::ALL[usize::from(self.durability.load(Relaxed)) % Durability::ALL.len()]
    }

    pub(crate) fn set_durability(&self, durability: Durability) {
        self.durability.store(durability as u8, Relaxed);
    }

    pub(crate) fn is_saving(&self) -> bool {
        self.is_saving.load(Relaxed)
    }

    /// How many entries of the snapshot that is being made are written, of how many.
    pub(crate) fn progress(&self) -> Option<(u64, u64)> {
        self.folder.progress()
    }

    pub(crate) fn last_save(&self) -> LastSave {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seconds since 1970 of the last snapshot.
    pub(crate) fn last_save_time(&self) -> u64 {
        let since = self.last_save().when.duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }

    /// Takes the right to make a snapshot, until it is dropped; `None` if one is being made.
    pub(crate) fn begin_save(self: &Arc<Self>) -> Option<Saving> {
        let is_first = !self.is_saving.swap(true, SeqCst);
        is_first.then(|| Saving(Arc::clone(self)))
    }

    /// The same, if the log has grown so much that a snapshot should be made, and the last attempt
    /// has not failed just before `now`.
    fn begin_due_save(self: &Arc<Self>, now: Instant) -> Option<Saving> {
        if !self.is_save_due(now) {
            return None;
        }
        let saving = self.begin_save()?;
        // Another snapshot may have ended, well or not, since the first look.
        self.is_save_due(now).then_some(saving)
    }

    fn is_save_due(&self, now: Instant) -> bool {
        let written = self.log.stats().bytes - self.written.load(Relaxed);
        let is_long = self.snapshot_every > 0 && written >= self.snapshot_every;
        let failed = self.last_save().failed;
        is_long && failed.is_none_or(|at| now.saturating_duration_since(at) >= AGAIN)
    }

    fn note(&self, note: impl FnOnce(&mut LastSave)) {
        note(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn note_failure(&self) {
        self.note(|last| last.failed = Some(Instant::now()));
    }

    /// Makes everything durable, and closes the log, without a snapshot.
    ///
    /// # Errors
    ///
    /// Something did not become durable.
    pub(crate) fn close_log(&self) -> Result<(), SaveError> {
        Ok(self.log.close()?)
    }

    /// Makes everything durable, and closes the log. A snapshot first, if something has changed, so
    /// that the next start is quick.
    ///
    /// # Errors
    ///
    /// Something did not become durable.
    pub(crate) fn close(self: &Arc<Self>, store: &Store) -> Result<(), SaveError> {
        let mut outcome = Ok(());
        if store.last_effect() > self.last_save().sequence
            && let Some(saving) = self.begin_save()
        {
            outcome = saving.run(store).map(|_| ());
        }
        store.forward();
        self.log.close()?;
        outcome
    }
}

/// Hands to the log what nobody has handed over, and makes snapshots when the log is long, for as
/// long as the server runs.
pub(crate) async fn keep(server: &Arc<Shared>) {
    let Some(persistence) = &server.persistence else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        server.store.forward();
        if let Some(saving) = persistence.begin_due_save(Instant::now()) {
            save_apart(&server.store, saving);
        }
    }
}

/// Makes a snapshot on a thread of its own.
pub(crate) fn save_apart(store: &Arc<Store>, saving: Saving) {
    let store = Arc::clone(store);
    // Its outcome is in the log and in `INFO`.
    drop(tokio::task::spawn_blocking(move || {
        let _ = saving.run(&store);
    }));
}

/// The right to make a snapshot. While it is held, no other one begins.
#[must_use]
pub(crate) struct Saving(Arc<Persistence>);

impl Saving {
    /// Makes the snapshot, notes how that went, and truncates the log below what the snapshots
    /// need. Blocks. The next one may begin only after all of that.
    pub(crate) fn run(self, store: &Store) -> Result<Saved, SaveError> {
        let persistence = &*self.0;
        let written = persistence.log.stats().bytes;
        let began = store.last_effect();
        let saved = store.save(&persistence.folder);
        match &saved {
            Ok(saved) => {
                persistence.written.store(written, Relaxed);
                persistence.note(|last| {
                    *last = LastSave {
                        when: SystemTime::now(),
                        took: Some(saved.took),
                        sequence: began,
                        failed: None,
                    };
                });
                tracing::info!(
                    keys = saved.entries,
                    bytes = saved.bytes,
                    milliseconds = saved.took.as_millis(),
                    "snapshot {}",
                    saved.path.display()
                );
                if let Err(failure) = persistence.log.truncate_below(saved.needed) {
                    tracing::warn!("the log keeps what it does not need: {failure}");
                }
            }
            Err(error) => {
                persistence.note_failure();
                tracing::error!("no snapshot: {error}");
            }
        }
        saved
    }
}

impl Drop for Saving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.note_failure();
        }
        self.0.is_saving.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_store::{Engine, Key, StoreConfig, Value};

    fn directory(arguments: &PersistArgs, port: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let port = port.parse().expect("a port");
        match arguments.directory(port, variable) {
            Ok(Some(path)) => path.display().to_string(),
            Ok(None) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn arguments() -> PersistArgs {
        PersistArgs {
            dir: None,
            memory_only: false,
            durability: Durability::default(),
            snapshot_every: Bytes(SNAPSHOT_EVERY),
            log_keep: LogKeep::default(),
        }
    }

    /// A store whose log is so long that a snapshot is due.
    fn due(directory: &Path) -> (Arc<Persistence>, Store) {
        let arguments = PersistArgs {
            snapshot_every: Bytes(1),
            ..arguments()
        };
        let persistence = Persistence::open(directory, &arguments).expect("a directory");
        let config = StoreConfig::new(Engine::Aspen);
        let recovered = Store::recover(
            &config,
            persistence.log(),
            persistence.folder(),
            &mut |_| (),
        );
        let (store, _) = recovered.expect("an empty directory");
        let (key, value) = (Key::from(&b"key"[..]), Value::from(&b"value"[..]));
        let put = store.commit(|effects| store.database(0).insert(effects, key, value));
        assert!(put.expect("an open log").is_none());
        store.forward();
        let last = store.last_effect();
        persistence.log.wait(last).expect("a disk");
        (Arc::new(persistence), store)
    }

    #[test]
    fn only_an_attempt_that_failed_delays_the_next() {
        let directory = tempfile::tempdir().expect("a directory");
        let (persistence, store) = due(directory.path());
        let begins = |after: Duration| persistence.begin_due_save(Instant::now() + after);
        let saving = begins(Duration::ZERO).expect("it is due");
        assert!(begins(AGAIN).is_none() && persistence.begin_save().is_none());
        // Its client has gone before it began.
        drop(saving);
        let saving = begins(Duration::ZERO).expect("it is still due");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _saving = saving;
            panic!("as a snapshot may");
        }));
        assert!(panicked.is_err());
        assert!(begins(Duration::ZERO).is_none());
        let saving = begins(AGAIN).expect("a minute later");
        saving.run(&store).expect("a snapshot");
        assert!(persistence.last_save().failed.is_none());
        assert!(begins(AGAIN).is_none(), "the log has not grown since");
    }

    /// Fails if the right to make a snapshot is free before the outcome of the last one is noted:
    /// this thread keeps that from being noted, and looks meanwhile.
    #[test]
    fn the_right_to_save_is_held_until_the_outcome_is_noted() {
        const LOOKS: usize = 50;
        let directory = tempfile::tempdir().expect("a directory");
        let (persistence, store) = due(directory.path());
        std::fs::remove_dir_all(directory.path()).expect("a directory");
        let saving = persistence.begin_save().expect("the right");
        std::thread::scope(|scope| {
            let last = persistence.last.lock().expect("no panic");
            let saver = scope.spawn(|| saving.run(&store));
            for _ in 0..LOOKS {
                std::thread::sleep(Duration::from_millis(1));
                assert!(persistence.is_saving());
            }
            drop(last);
            let saved = saver.join().expect("no panic");
            assert!(saved.is_err(), "its directory is gone");
        });
        assert!(!persistence.is_saving() && persistence.last_save().failed.is_some());
    }

    /// Fails if somebody who finds the right free trusts what he saw before.
    #[test]
    fn no_attempt_begins_just_after_one_has_failed() {
        const ROUNDS: usize = 100;
        let directory = tempfile::tempdir().expect("a directory");
        let (persistence, store) = due(directory.path());
        std::fs::remove_dir_all(directory.path()).expect("a directory");
        for round in 0..ROUNDS {
            persistence.note(|last| last.failed = None);
            let now = Instant::now();
            let saving = persistence.begin_due_save(now).expect("it is due");
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let keeper = scope.spawn(|| {
                    let mut again = 0;
                    while !is_over.load(SeqCst) {
                        again += usize::from(persistence.begin_due_save(now).is_some());
                    }
                    again
                });
                let saved = saving.run(&store);
                assert!(saved.is_err(), "its directory is gone");
                is_over.store(true, SeqCst);
                assert_eq!(keeper.join().expect("no panic"), 0, "round {round}");
            });
        }
    }

    #[test]
    fn data_is_kept_in_the_state_directory_by_default() {
        let mut arguments = arguments();
        let home = ("HOME", "/home/ada");
        let of = |port, variables: &[_]| directory(&arguments, port, variables);
        assert_eq!(of("6380", &[home]), "/home/ada/.local/state/tremula/6380");
        let state = ("XDG_STATE_HOME", "/var/state");
        assert_eq!(of("1", &[home, state]), "/var/state/tremula/1");
        for not_absolute in ["", "state"] {
            let state = ("XDG_STATE_HOME", not_absolute);
            assert_eq!(of("1", &[home, state]), "/home/ada/.local/state/tremula/1");
            let error = of("1", &[state]);
            assert!(
                error.contains("--dir") && error.contains("--memory-only"),
                "{error}"
            );
        }
        for port in ["0", "none"] {
            assert_eq!(of(port, &[]), "none");
        }
        arguments.dir = Some("here".into());
        for port in ["0", "none", "6380"] {
            assert_eq!(directory(&arguments, port, &[home]), "here");
        }
        arguments.memory_only = true;
        assert_eq!(directory(&arguments, "6380", &[home]), "none");
    }
}
