//! Applying the log behind a snapshot, on all cores.
//!
//! Every thread reads every record, and applies those whose keys are its own, in the log's order.
//! At a record of a range all wait for each other, and one of them applies it.

use super::RecoverError;
use crate::effects::Effects;
use crate::effects::record::{Record, Recorded};
use crate::store::Store;
use crate::{BadRecord, Key, Value};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use tremula_index::Update;
use tremula_log::{Entry, Log, Sequence};
use tremula_sync::system::atomic::{AtomicBool, Ordering};
use tremula_sync::system::mpsc::{Receiver, SyncSender, sync_channel};
use tremula_sync::system::{Barrier, Mutex, thread};

/// Batches that have been read and not applied yet.
const AHEAD: usize = 64;

/// Applies all records from a sequence on to a store that nobody else uses yet. Returns how many
/// there were. Now and then `progress` gets the sequence that has been read.
pub(crate) fn replay(
    store: &Store,
    log: &dyn Log,
    from: Sequence,
    threads: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<u64, RecoverError> {
    let threads = threads.max(1);
    let barrier = Barrier::new(threads);
    let shared = Replaying {
        store,
        from,
        threads,
        barrier: &barrier,
        failed: Mutex::new(None),
        has_failed: AtomicBool::new(false),
    };
    let count = thread::scope(|scope| {
        let mut senders: Vec<SyncSender<Entry>> = Vec::new();
        for number in 0..threads {
            let (sender, receiver) = sync_channel(AHEAD);
            senders.push(sender);
            let shared = &shared;
            scope.spawn(move || shared.apply_all(number, &receiver));
        }
        let mut count = 0;
        for entry in log.read(from)? {
            let entry = entry?;
            let last = entry.last().get();
            count += (last + 1).saturating_sub(entry.first().get().max(from.get()));
            for sender in &senders {
                // Every thread takes what comes until the end.
                let _ = sender.send(entry.clone());
            }
            progress(last);
        }
        Ok::<u64, RecoverError>(count)
    })?;
    match shared.failed.into_inner() {
        Ok(Some((sequence, source))) => Err(RecoverError::Record { sequence, source }),
        Ok(None) | Err(_) => Ok(count),
    }
}

struct Replaying<'a> {
    store: &'a Store,
    from: Sequence,
    threads: usize,
    barrier: &'a Barrier,
    failed: Mutex<Option<(u64, BadRecord)>>,
    has_failed: AtomicBool,
}

impl Replaying<'_> {
    fn apply_all(&self, number: usize, entries: &Receiver<Entry>) {
        for entry in entries {
            let first = entry.first().get();
            for (sequence, record) in (first..).zip(entry.records()) {
                // A batch may have begun before the snapshot did.
                if sequence < self.from.get() {
                    continue;
                }
                match Record::read(record) {
                    Ok(record) => self.apply_own(number, &record),
                    // Every thread reads every record, so all of them see it.
                    Err(error) => self.fail(sequence, error),
                }
            }
        }
    }

    fn fail(&self, sequence: u64, error: BadRecord) {
        self.has_failed.store(true, Ordering::Relaxed);
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert((sequence, error));
        }
    }

    fn apply_own(&self, number: usize, record: &Record<'_>) {
        let Some(key) = record.key() else {
            // All that comes before it has been applied, and nothing that comes behind it.
            self.barrier.wait();
            if number == 0 {
                apply(self.store, record);
            }
            self.barrier.wait();
            return;
        };
        if self.threads == 1 || self.owner(record.database, key) == number {
            apply(self.store, record);
        }
    }

    /// The thread that applies the records of a key.
    fn owner(&self, database: usize, key: &[u8]) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one((database, key)) % self.threads as u64) as usize
    }
}

/// Makes a key, or a range, what the record says.
fn apply(store: &Store, record: &Record<'_>) {
    let mut effects = Effects::new(None);
    let database = store.database(record.database);
    match record.what {
        Recorded::Put(key, value) => {
            let old = database.insert(&mut effects, Key::from(key), Value::from(value));
            store.values(record.database).dropped(old);
        }
        Recorded::Delete(key) => {
            let old = database.remove(&mut effects, &Key::from(key));
            store.values(record.database).dropped(old);
        }
        Recorded::DeleteRange(low, high) => {
            let (low, high) = (low.map(Key::from), high.map(Key::from));
            database.remove_range(&mut effects, low.as_ref(), high.as_ref());
        }
        Recorded::Tail(key, offset, bytes) => {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            apply_tail(store, record.database, Key::from(key), offset, bytes);
        }
    }
}

/// Makes a value `bytes` from `offset` on. If the value is shorter, a later record replaces it, and
/// what lies between does not matter.
fn apply_tail(store: &Store, database: usize, key: Key, offset: usize, bytes: &[u8]) {
    let values = store.values(database);
    let mut effects = Effects::new(None);
    let mut length = 0;
    values.read(&key, |_| 0..0, &mut |whole, _| length = whole);
    if length == offset {
        let appended = values.append(&mut effects, key, bytes, usize::MAX, usize::MAX);
        debug_assert!(appended.is_ok(), "there is no limit");
        return;
    }
    values.update(&mut effects, key, &mut |current| {
        let current = current.unwrap_or_default();
        let kept = &current[..offset.min(current.len())];
        Update::Put(Value::from([kept, bytes].concat()))
    });
}
