//! A store with a log: how it is opened, saved, and waited for.

use crate::disk::{
    Folder, RecoverError, SaveError, Saved, SnapshotError, apply_batch, load, replay,
};
use crate::effects::{Effects, Journal};
use crate::engines;
use crate::store::{OpenError, Store, StoreConfig};
use std::path::PathBuf;
use tremula_log::{Batch, Log, Sequence, Stopped};
use tremula_sync::system::{Arc, OnceLock, thread};

/// Bytes of a term in a store with a log: its external form has to fit into one record.
const MOST_TERM: usize = 256 << 20;

/// The threads that work on what is read back.
fn cores() -> usize {
    // The system reads files to answer.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| match thread::available_parallelism() {
        // The model checkers know no thread of the system.
        Ok(threads) if !cfg!(any(loom, shuttle)) => threads.get(),
        _ => 1,
    })
}

/// What was found on the disk.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recovered {
    /// The snapshot that was loaded, if there was one, and how many keys it had, those of tables
    /// included.
    pub snapshot: Option<(PathBuf, u64)>,
    /// Newer snapshots, which are damaged.
    pub damaged: Vec<SnapshotError>,
    /// How many records of the log were applied.
    pub records: u64,
}

/// How far a recovery has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// Bytes of the snapshot that have been read.
    Snapshot(u64),
    /// The sequence of the log that has been read.
    Log(u64),
}

/// Stores with a log.
impl Store {
    /// A store as it was when the log ended: the newest whole snapshot of the folder, and what the
    /// log has behind it. From now on it writes to the log.
    ///
    /// The connections that owned tables are gone: each of these tables goes to its heir or is
    /// deleted. Terms in tables have at most 256 MiB, in memory and in the external term format,
    /// whatever their bounds.
    ///
    /// Reads on all cores. O(n), and O(records behind the snapshot).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`RecoverError`] if what is on the disk does not make a whole.
    /// Nothing there is changed.
    pub fn recover(
        config: &StoreConfig,
        log: Arc<dyn Log>,
        folder: &Folder,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Recovered), OpenError> {
        let (mut store, recovered) = Self::made_again(config, &log, folder, progress)?;
        store.let_expire(true);
        store.journal = Some(Arc::new(Journal::new(log, config.log_previous)));
        store.begin_alone();
        Ok((store, recovered))
    }

    /// A store as it was when the log ended, which only [applies](Self::apply) what others write
    /// to the log, until it [leads](Self::lead). Until then it takes no writes, removes no key
    /// whose time has come, and has no mailboxes; tables that were owned stay.
    ///
    /// # Errors
    ///
    /// As [`recover`](Self::recover).
    pub fn recover_to_follow(
        config: &StoreConfig,
        log: Arc<dyn Log>,
        folder: &Folder,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Recovered), OpenError> {
        let (mut store, recovered) = Self::made_again(config, &log, folder, progress)?;
        store.journal = Some(Arc::new(Journal::following(log, config.log_previous)));
        Ok((store, recovered))
    }

    /// Makes what the disk has, without a journal. No key expires.
    fn made_again(
        config: &StoreConfig,
        log: &Arc<dyn Log>,
        folder: &Folder,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Self, Recovered), OpenError> {
        engines::check_logged(config.engine)?;
        let threads = cores();
        let mut damaged = Vec::new();
        let mut snapshot = None;
        let config = &bounded(config);
        let mut store = Self::made(config, true)?;
        store.let_expire(false);
        let mut from = Sequence::FIRST;
        let snapshots = folder.snapshots().map_err(SnapshotError::from);
        for path in snapshots.map_err(RecoverError::from)? {
            let loaded = load(&store, &path, threads, &mut |bytes| {
                progress(Progress::Snapshot(bytes));
            });
            match loaded {
                Ok(loaded) => {
                    check_reach(&**log, &loaded)?;
                    from = loaded.begins;
                    snapshot = Some((path, loaded.entries));
                    break;
                }
                Err(error @ SnapshotError::Damaged { .. }) => damaged.push(error),
                Err(error) => return Err(RecoverError::from(error).into()),
            }
            // A part of the damaged one is in there.
            store = Self::made(config, true)?;
            store.let_expire(false);
        }
        let first = log.first();
        if first > from {
            return Err(match (snapshot, damaged.into_iter().next()) {
                (None, Some(newest)) => RecoverError::NoSnapshot {
                    newest: Box::new(newest),
                    first: first.get(),
                },
                _ => RecoverError::Gap {
                    snapshot: from.get(),
                    first: first.get(),
                },
            }
            .into());
        }
        let records = replay(&store, &**log, from, threads, &mut |sequence| {
            progress(Progress::Log(sequence));
        })?;
        let recovered = Recovered {
            snapshot,
            damaged,
            records,
        };
        Ok((store, recovered))
    }

    /// An empty store that notes its changes in a log from now on, so that they can be
    /// [followed](Self::watch). Nothing is read back from the log: what is in it already is of no
    /// interest to this store. For a store that is in memory only, with a
    /// [`MemoryLog`](tremula_log::MemoryLog) that is [bounded](tremula_log::MemoryLog::bounded).
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if the engine cannot keep a log.
    pub fn logging(config: &StoreConfig, log: Arc<dyn Log>) -> Result<Self, OpenError> {
        engines::check_logged(config.engine)?;
        let mut store = Self::made(&bounded(config), true)?;
        store.origin = log.tail().next;
        store.journal = Some(Arc::new(Journal::new(log, config.log_previous)));
        Ok(store)
    }

    /// Makes what only a store that writes has: mailboxes; and ends the connections of the one that
    /// wrote before.
    fn begin_alone(&self) {
        self.mailboxes().make_again(self.tables());
        self.end_absent_owners();
    }

    /// Ends the connections that owned tables when the log ended: each table goes to its heir or is
    /// deleted. That the log takes nothing more does not matter: the next start does it again.
    fn end_absent_owners(&self) {
        let mut effects = Effects::new(self.journal.as_deref());
        self.tables().end_absent_owners(&mut effects);
        self.mailboxes().forward_transfers(&mut effects);
        effects.submit();
        self.forward();
    }

    /// Makes true what the records of a batch say, which follow what the store has. For a store
    /// that [follows](Self::recover_to_follow); by one thread at a time.
    ///
    /// A batch of hundreds of records is applied by all cores, each key by one of them in the order
    /// of the log. So a reader sees each record as a whole and each key go forwards, and may see a
    /// part of a step over several keys, or a later change of one key before an earlier one of
    /// another. When this returns, all of the batch can be seen.
    ///
    /// # Errors
    ///
    /// [`RecoverError`] if a record means nothing; all others of the batch have been applied.
    pub fn apply(&self, first: Sequence, batch: &Batch) -> Result<(), RecoverError> {
        let last = first.plus(batch.len() as u64).before();
        if let Some(journal) = &self.journal {
            // Before it can be seen: a snapshot ends where this says.
            journal.applies(last);
        }
        apply_batch(self, first, batch, cores())
    }

    /// The effects are this store's own from now on, and begin with this number. For a store that
    /// [follows](Self::recover_to_follow), once.
    pub fn lead(&self, next: Sequence) {
        let Some(journal) = &self.journal else { return };
        self.let_expire(true);
        journal.lead(next);
        self.begin_alone();
    }

    /// Whether the store only applies what others write.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.journal.as_deref().is_some_and(Journal::follows)
    }

    /// Hands to the log what has been committed. Call it before you wait for an effect, and when
    /// nothing more is to be written for now. Costs one access of memory if another thread is at
    /// it, which then does it for both; otherwise O(what has been committed).
    pub fn forward(&self) {
        if let Some(journal) = &self.journal {
            journal.forward();
        }
    }

    /// The log, if there is one.
    #[must_use]
    pub fn log(&self) -> Option<&Arc<dyn Log>> {
        self.journal.as_deref().map(Journal::log)
    }

    /// The last effect that has a number: every effect that this thread has made or seen has that
    /// one or a lower one, and is durable once the log's watermark has reached it.
    /// [`Sequence::NONE`] without a log.
    #[must_use]
    pub fn last_effect(&self) -> Sequence {
        self.journal
            .as_deref()
            .map_or(Sequence::NONE, Journal::last)
    }

    /// Blocks until everything that this thread has committed or seen is on the disk. Without a log
    /// it returns at once.
    ///
    /// # Errors
    ///
    /// The log has stopped before.
    pub fn sync(&self) -> Result<(), Stopped> {
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let last = journal.last();
        journal.forward();
        journal.log().wait(last)
    }

    /// Writes a snapshot into the folder. Blocks until it is on the disk, while others write on.
    /// The log is not truncated: [`Saved::needed`] says how far it may be.
    ///
    /// # Errors
    ///
    /// [`SaveError`]. The snapshots that were there are still there.
    pub fn save(&self, folder: &Folder) -> Result<Saved, SaveError> {
        let Some(journal) = &self.journal else {
            return Err(SaveError::MemoryOnly);
        };
        journal.forward();
        folder.save(self, &**journal.log(), journal)
    }
}

/// The configuration with bounds of terms that any log can take.
fn bounded(config: &StoreConfig) -> StoreConfig {
    let mut config = config.clone();
    config.term_bounds.bytes = config.term_bounds.bytes.min(MOST_TERM);
    config
}

/// Refuses a log that does not have what the snapshot needs.
fn check_reach(log: &dyn Log, loaded: &crate::disk::Loaded) -> Result<(), RecoverError> {
    let last = log.tail().next.before();
    if loaded.ends > last {
        return Err(RecoverError::Behind {
            snapshot: loaded.ends.get(),
            last: last.get(),
        });
    }
    Ok(())
}
