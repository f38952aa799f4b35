//! Applying the log behind a snapshot, and batches of a log that another process writes, on all
//! cores.
//!
//! Every thread reads every record, and applies those whose keys, or rows of tables, are its own,
//! in the log's order. At a record of a range, or of a whole table, all wait for each other, and
//! one of them applies it.

use super::RecoverError;
use crate::effects::Effects;
use crate::effects::mail::Mail;
use crate::effects::record::{Record, Recorded};
use crate::store::Store;
use crate::{BadRecord, Key, Lifetime, Value, Version};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use tremula_index::Update;
use tremula_log::{Batch, Entry, Log, Records, Sequence};
use tremula_sync::system::mpsc::{Receiver, SyncSender, sync_channel};
use tremula_sync::system::{Barrier, Mutex, thread};
use tremula_table::table::effect::{OwnedEffect, Subject};
use tremula_table::term::Limits;

/// Batches that have been read and not applied yet.
const AHEAD: usize = 64;

/// Records of one batch from which on it is applied by several threads: one thread takes longer for
/// these than it takes to start the others, some tens of microseconds each.
pub(crate) const SHARED_FROM: usize = if cfg!(debug_assertions) { 64 } else { 512 };

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
    let shared = Replaying::new(store, from, threads);
    let count = thread::scope(|scope| {
        let mut senders: Vec<SyncSender<Entry>> = Vec::new();
        // A single thread is this one.
        for number in (0..threads).filter(|_| threads > 1) {
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
            if threads == 1 {
                shared.apply_batch(0, entry.first(), entry.records());
            }
            progress(last);
        }
        Ok::<u64, RecoverError>(count)
    })?;
    shared.end().map(|()| count)
}

/// Applies a batch whose first record has this sequence, and returns when all of it is applied.
/// With `threads` above 1, a batch of at least [`SHARED_FROM`] records is applied by several
/// threads.
pub(crate) fn apply_batch(
    store: &Store,
    first: Sequence,
    batch: &Batch,
    threads: usize,
) -> Result<(), RecoverError> {
    let is_shared = threads > 1 && batch.len() >= SHARED_FROM;
    if !is_shared || !apply_shared(store, first, batch, threads)? {
        let alone = Replaying::new(store, first, 1);
        alone.apply_batch(0, first, batch.records());
        alone.end()?;
    }
    Ok(())
}

/// Applies a batch by this thread and others. Returns false, and has done nothing, if the system
/// refuses a thread.
fn apply_shared(
    store: &Store,
    first: Sequence,
    batch: &Batch,
    threads: usize,
) -> Result<bool, RecoverError> {
    let shared = &Replaying::new(store, first, threads);
    let is_begun = thread::scope(|scope| {
        let mut begin = Vec::new();
        for number in 1..threads {
            let (sender, receiver) = sync_channel(1);
            let apply = move || {
                // No thread waits for the others before it is certain that all are there.
                if let Ok(()) = receiver.recv() {
                    shared.apply_batch(number, first, batch.records());
                }
            };
            if thread::Builder::new().spawn_scoped(scope, apply).is_err() {
                return false;
            }
            begin.push(sender);
        }
        for sender in begin {
            let _ = sender.send(());
        }
        shared.apply_batch(0, first, batch.records());
        true
    });
    shared.end().map(|()| is_begun)
}

struct Replaying<'a> {
    store: &'a Store,
    from: Sequence,
    threads: usize,
    barrier: Barrier,
    failed: Mutex<Option<RecoverError>>,
}

impl<'a> Replaying<'a> {
    fn new(store: &'a Store, from: Sequence, threads: usize) -> Self {
        Self {
            store,
            from,
            threads,
            barrier: Barrier::new(threads),
            failed: Mutex::new(None),
        }
    }

    /// The first error, if there was one.
    fn end(&self) -> Result<(), RecoverError> {
        match self.failed.lock().map(|mut failed| failed.take()) {
            Ok(Some(error)) => Err(error),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    fn apply_all(&self, number: usize, entries: &Receiver<Entry>) {
        for entry in entries {
            self.apply_batch(number, entry.first(), entry.records());
        }
    }

    fn apply_batch(&self, number: usize, first: Sequence, records: Records<'_>) {
        for (sequence, record) in (first.get()..).zip(records) {
            // A batch may have begun before the snapshot did.
            if sequence < self.from.get() {
                continue;
            }
            let applied = Record::read(record)
                .map_err(|source| RecoverError::Record { sequence, source })
                .and_then(|record| self.apply_own(number, sequence, &record));
            if let Err(error) = applied
                && let Ok(mut failed) = self.failed.lock()
            {
                // Every thread goes on to the end, so that no other waits for it in vain.
                failed.get_or_insert(error);
            }
        }
    }

    fn apply_own(
        &self,
        number: usize,
        sequence: u64,
        record: &Record<'_>,
    ) -> Result<(), RecoverError> {
        let owner = match record {
            Record::Database(database, what, _) => {
                what.key().map(|key| self.owner((database, key)))
            }
            Record::Table(Subject::Key(table), _) => Some(self.owner(table)),
            Record::Table(Subject::Table(_), _) => None,
            Record::Mail(mailbox, _) => Some(self.owner(mailbox)),
            // By one thread, in the log's order.
            Record::Answer(..) | Record::Note(..) => Some(0),
            Record::Nothing => return Ok(()),
        };
        let Some(owner) = owner else {
            // All that comes before it has been applied, and nothing that comes behind it.
            self.barrier.wait();
            let applied = if number == 0 {
                apply(self.store, sequence, record)
            } else {
                Ok(())
            };
            self.barrier.wait();
            return applied;
        };
        if owner == number {
            return apply(self.store, sequence, record);
        }
        Ok(())
    }

    /// The thread that applies the records of a key, or of the rows of a table.
    fn owner(&self, subject: impl Hash) -> usize {
        if self.threads == 1 {
            return 0;
        }
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(subject) % self.threads as u64) as usize
    }
}

/// Makes true what the record says.
fn apply(store: &Store, sequence: u64, record: &Record<'_>) -> Result<(), RecoverError> {
    match record {
        Record::Nothing => (),
        Record::Answer(id, answer) => store.answers.enter(id, Version::wrapping(sequence), answer),
        Record::Note(name, text) => store.notes.apply(name, Version::wrapping(sequence), text),
        Record::Database(database, what, _) => {
            let version = Version::wrapping(sequence);
            apply_to_database(store, *database, version, what);
        }
        Record::Mail(_, record) => {
            let mail = Mail::read(record);
            let mail = mail.map_err(|source| RecoverError::Record { sequence, source })?;
            store.mailboxes().apply(mail);
        }
        Record::Table(_, effect) => {
            let effect = OwnedEffect::decode(effect, &Limits::NONE).map_err(BadRecord::from);
            let effect = effect.map_err(|source| RecoverError::Record { sequence, source })?;
            let applied = store.tables().apply(&effect.borrow());
            applied.map_err(|source| RecoverError::Table {
                sequence,
                source: Box::new(source),
            })?;
        }
    }
    Ok(())
}

/// Makes a key, or a range, what the record says. A value that is made so has the record's version.
fn apply_to_database(store: &Store, number: usize, version: Version, what: &Recorded<'_>) {
    let mut effects = Effects::again(version);
    let database = store.database(number);
    match *what {
        Recorded::Put(key, value, expiry) => {
            let value = Value::from(value).expiring(expiry);
            let old = database.insert(&mut effects, Key::from(key), value);
            store.values(number).dropped(old);
        }
        Recorded::Expire(key, expiry) => {
            database.update_expiry(&mut effects, Key::from(key), &mut |_| Update::Put(expiry));
        }
        Recorded::Delete(key) => {
            let old = database.remove(&mut effects, &Key::from(key));
            store.values(number).dropped(old);
        }
        Recorded::DeleteRange(low, high) => {
            let (low, high) = (low.map(Key::from), high.map(Key::from));
            database.remove_range(&mut effects, low.as_ref(), high.as_ref());
        }
        Recorded::Tail(key, offset, bytes) => {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            apply_tail(store, number, &mut effects, Key::from(key), offset, bytes);
        }
    }
}

/// Makes a value `bytes` from `offset` on. If the value is shorter, a later record replaces it, and
/// what lies between does not matter.
fn apply_tail(
    store: &Store,
    database: usize,
    effects: &mut Effects<'_>,
    key: Key,
    offset: usize,
    bytes: &[u8],
) {
    let values = store.values(database);
    let mut length = 0;
    values.read(&key, |_| 0..0, &mut |whole, _| length = whole);
    if length == offset {
        let appended = values.append(effects, key, bytes, usize::MAX, usize::MAX);
        debug_assert!(appended.is_ok(), "there is no limit");
        return;
    }
    values.update(effects, key, Lifetime::Kept, &mut |current| {
        let current = current.unwrap_or_default();
        let kept = &current[..offset.min(current.len())];
        Update::Put(Value::from([kept, bytes].concat()))
    });
}
