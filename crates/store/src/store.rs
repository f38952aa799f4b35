//! Everything that a server stores.

use crate::answers::Answers;
use crate::cursors::{CursorQuotas, Cursors};
use crate::database::{Database, Kept};
use crate::databases::Databases;
use crate::disk::RecoverError;
use crate::effects::{Effects, Journal, Unlogged};
use crate::engines::{CannotLog, UnfitEngine};
use crate::eviction::{EvictionSettings, Evictor, Policy};
use crate::keyspace::Keyspace;
use crate::mailboxes::{Lease, MailboxQuotas, Mailboxes};
use crate::notes::Notes;
use crate::notices::{Cause, Listener, Notices};
use crate::snapshots::Snapshots;
use crate::table_owner::TableOwner;
use crate::tables::Tables;
use crate::value_cache::{CacheSettings, ValueCache};
use crate::values::Values;
use crate::{Expiry, Value};
use thiserror::Error;
use tremula_index::Engine;
use tremula_log::Sequence;
use tremula_sync::atomic::{AtomicU64, Ordering::Relaxed};
use tremula_sync::system::Arc;
use tremula_sync::{Mutex, MutexGuard};
use tremula_table::term::Bounds;

/// Configuration of a [`Store`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The engine of every database.
    pub engine: Engine,
    /// The cache for large values that clients append to. With `None` they stay in the index.
    pub cache: Option<CacheSettings>,
    /// The bounds of the terms that tables keep.
    pub term_bounds: Bounds,
    /// How keys are evicted; `None` if they never are.
    pub eviction: Option<EvictionSettings>,
    /// The quotas of mailboxes.
    pub mailboxes: MailboxQuotas,
    /// The quotas of the cursors of scans.
    pub cursors: CursorQuotas,
    /// Whether a log has what keys were before their changes.
    pub log_previous: bool,
}

impl StoreConfig {
    /// A configuration with databases of this engine, no cache, and terms of any size.
    #[must_use]
    pub const fn new(engine: Engine) -> Self {
        Self {
            engine,
            cache: None,
            term_bounds: Bounds::NONE,
            eviction: None,
            mailboxes: MailboxQuotas::DEFAULT,
            cursors: CursorQuotas::DEFAULT,
            log_previous: false,
        }
    }

    /// This configuration with a cache.
    #[must_use]
    pub const fn cache(mut self, cache: Option<CacheSettings>) -> Self {
        self.cache = cache;
        self
    }

    /// This configuration with bounds of the terms that tables keep.
    #[must_use]
    pub const fn term_bounds(mut self, bounds: Bounds) -> Self {
        self.term_bounds = bounds;
        self
    }

    /// This configuration with evictions.
    #[must_use]
    pub const fn eviction(mut self, eviction: Option<EvictionSettings>) -> Self {
        self.eviction = eviction;
        self
    }

    /// This configuration with other quotas.
    #[must_use]
    pub const fn quotas(mut self, mailboxes: MailboxQuotas, cursors: CursorQuotas) -> Self {
        self.mailboxes = mailboxes;
        self.cursors = cursors;
        self
    }

    /// This configuration with a log that has what each key was before its change, so that
    /// [events](crate::Event) do; or not.
    ///
    /// A record is longer by that value then, a range is removed in the log key by key, and there
    /// is no cache for values that are appended to: with an append, the log gets the whole value,
    /// and what it was.
    #[must_use]
    pub const fn log_previous(mut self, log_previous: bool) -> Self {
        self.log_previous = log_previous;
        self
    }
}

/// Why [`Store::new`] failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The engine cannot keep the store's promises.
    #[error(transparent)]
    Engine(#[from] UnfitEngine),
    /// The engine cannot keep a log.
    #[error(transparent)]
    CannotLog(#[from] CannotLog),
    /// What is on the disk cannot be made a store again.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The operating system refused the cache's worker threads.
    #[error("cannot start the cache: {0}")]
    Cache(#[from] tremula_shard::StartError),
}

/// The databases, tables and mailboxes of a server. All of its methods may be called by any thread
/// at any time.
pub struct Store {
    keyspace: Keyspace,
    cache: Option<ValueCache>,
    tables: Tables,
    mailboxes: Arc<Mailboxes>,
    snapshots: Arc<Snapshots>,
    cursors: Mutex<Cursors>,
    evictor: Evictor,
    expired_table_keys: AtomicU64,
    notices: Notices,
    pub(crate) answers: Answers,
    pub(crate) notes: Notes,
    pub(crate) journal: Option<Arc<Journal>>,
    /// The first record of its log that is about it: before that it was empty.
    pub(crate) origin: Sequence,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if the engine cannot keep the store's promises, or if the operating system
    /// refuses the cache's worker threads.
    pub fn new(config: &StoreConfig) -> Result<Self, OpenError> {
        Self::made(config, false)
    }

    /// An empty store, which gets a log if it `is_logged`.
    pub(crate) fn made(config: &StoreConfig, is_logged: bool) -> Result<Self, OpenError> {
        let cache = config.cache.as_ref().filter(|_| !config.log_previous);
        Ok(Self {
            keyspace: Keyspace::new(config.engine)?,
            cache: cache.map(ValueCache::start).transpose()?,
            tables: Tables::new(config.term_bounds, is_logged),
            mailboxes: Arc::new(Mailboxes::new(config.mailboxes)),
            snapshots: Arc::default(),
            cursors: Mutex::new(Cursors::new(config.cursors)),
            evictor: Evictor::new(config.eviction.as_ref().unwrap_or(&EvictionSettings::NONE)),
            expired_table_keys: AtomicU64::new(0),
            notices: Notices::default(),
            answers: Answers::default(),
            notes: Notes::default(),
            journal: None,
            origin: Sequence::FIRST,
        })
    }

    pub(crate) const fn origin(&self) -> Sequence {
        self.origin
    }

    /// The databases, as everyone reaches them: not in a step.
    #[must_use]
    pub fn free(&self) -> Databases<'_> {
        Databases {
            keyspace: &self.keyspace,
            cache: self.cache.as_ref(),
            journal: self.journal.as_deref(),
            step: None,
            notices: &self.notices,
            answers: &self.answers,
            cause: Cause::Caller(""),
        }
    }

    /// Names who gets the notices of changes of keys, while that is [turned on](Self::let_listen).
    /// There can be one; returns whether there was none before.
    ///
    /// ```
    /// use std::sync::mpsc::{Sender, channel};
    /// use tremula_store::{Engine, Happening, Key, Listener, Notice, Store, StoreConfig, Value};
    ///
    /// struct Forward(Sender<Notice>);
    ///
    /// impl Listener for Forward {
    ///     fn changed(&self, notices: Vec<Notice>) {
    ///         notices.into_iter().for_each(|notice| self.0.send(notice).expect("a listener"));
    ///     }
    /// }
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (sender, notices) = channel();
    /// assert!(store.listen(Box::new(Forward(sender))));
    /// store.let_listen(true);
    /// let (key, value) = (Key::from(&b"tree"[..]), Value::from(&b"aspen"[..]));
    /// store.commit(|effects| store.database(3).insert(effects, key.clone(), value))?;
    /// let notice = notices.recv()?;
    /// assert_eq!((notice.database, notice.key), (3, key));
    /// assert_eq!(notice.happening, Happening::Put { is_new: true, expires: false });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn listen(&self, listener: Box<dyn Listener>) -> bool {
        self.notices.set(listener)
    }

    /// Gives notices of the writes that begin from now on, or none. Where there are none, a write
    /// pays a look at a flag.
    pub fn let_listen(&self, is_on: bool) {
        self.notices.turn(is_on);
    }

    /// The index of the database with this number.
    ///
    /// # Panics
    ///
    /// If the number is not below [`DATABASES`](crate::DATABASES).
    #[must_use]
    pub fn database(&self, number: usize) -> Database<'_> {
        self.keyspace.database(number)
    }

    /// The indexes of all databases, by number.
    pub fn databases(&self) -> impl Iterator<Item = Database<'_>> {
        self.keyspace.databases()
    }

    /// The values of the database with this number, in the index or in the cache.
    #[must_use]
    pub fn values(&self, number: usize) -> Values<'_> {
        self.free().values(number)
    }

    pub(crate) fn kept(&self, number: usize) -> &Kept {
        self.keyspace.kept(number)
    }

    /// Runs `write` with the [`Effects`] that every write needs, and sees to it that the log gets
    /// them. Without a log it only runs it.
    ///
    /// The effects are in the log, and on the way to the disk, once somebody has called
    /// [`forward`](Self::forward); call it before you wait for them.
    ///
    /// ```
    /// use tremula_store::{Engine, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (key, value) = (Key::from(&b"tree"[..]), Value::from(&b"aspen"[..]));
    /// let old = store.commit(|effects| store.database(0).insert(effects, key, value))?;
    /// assert!(old.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unlogged`] if the log takes nothing more, or its disk is full. Then `write` has not run.
    #[inline]
    pub fn commit<R>(&self, write: impl FnOnce(&mut Effects<'_>) -> R) -> Result<R, Unlogged> {
        self.free().commit(write)
    }

    /// Every table.
    #[must_use]
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// A new owner of tables, whose heirs may be mailboxes.
    #[must_use]
    pub fn table_owner(&self) -> TableOwner {
        TableOwner::new(&self.tables, &self.mailboxes, self.journal.as_ref())
    }

    /// Every mailbox.
    #[must_use]
    pub fn mailboxes(&self) -> &Mailboxes {
        &self.mailboxes
    }

    /// Ends a lease whose messages the client has received, and returns them to be dropped. If the
    /// mailbox is kept, the log has it as soon as it takes more.
    pub fn delivered(&self, lease: Lease) -> Vec<Value> {
        let mut effects = Effects::new(self.journal.as_deref());
        let messages = lease.delivered(&mut effects);
        effects.submit();
        messages
    }

    /// Counters of what snapshots have copied.
    #[must_use]
    pub const fn snapshots(&self) -> &Arc<Snapshots> {
        &self.snapshots
    }

    /// The cursors of scans. If a thread panics while it holds them, the worst outcome is an
    /// unknown cursor.
    pub fn cursors(&self) -> MutexGuard<'_, Cursors> {
        self.cursors.lock()
    }

    /// What is known of accesses and evictions, if keys are evicted.
    #[must_use]
    pub fn evictor(&self) -> Option<&Evictor> {
        (self.evictor.policy() != Policy::NoEviction).then_some(&self.evictor)
    }

    /// The state of evictions, also while no keys are evicted: what changes the policy.
    #[must_use]
    pub const fn eviction(&self) -> &Evictor {
        &self.evictor
    }

    /// Evicts one key with its value, by the configured policy. Returns `false` if no key is left,
    /// or keys are not evicted, or the store only follows.
    pub fn evict_one(&self) -> bool {
        if self.follows() {
            return false;
        }
        self.evictor()
            .is_some_and(|evictor| evictor.evict(self.free()))
    }

    /// Removes keys whose time has come, up to about this many in each database and in all tables
    /// together. Returns how many, and whether there may be more; the log has their removals as it
    /// has others. No read sees such a key of a database before either, so for these it is a matter
    /// of memory when to call it. The rows of a table are seen until they are removed here.
    ///
    /// O(1) if no key's time has come, and O(log n) for each key that is removed. Rows of a table
    /// that a thread changes in a step over many keys are left for the next call.
    ///
    /// ```
    /// use tremula_store::{Engine, Expiry, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (key, value) = (Key::from(&b"gone"[..]), Value::from(&b"soon"[..]));
    /// let value = value.expiring(Some(Expiry::now()));
    /// store.commit(|effects| store.database(0).insert(effects, key.clone(), value))?;
    /// assert_eq!(store.database(0).get(&key).as_deref(), None);
    /// assert_eq!(store.database(0).len(), 1);
    /// assert_eq!(store.expire(100)?, (1, false));
    /// assert_eq!(store.database(0).len(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unlogged`] if the log takes nothing more. The keys that are left stay unseen.
    pub fn expire(&self, most: usize) -> Result<(usize, bool), Unlogged> {
        if self.follows() {
            return Ok((0, false));
        }
        let (mut count, mut is_more) = (0, false);
        for (number, database) in self.databases().enumerate() {
            if database.deadlines().are_unused() {
                continue;
            }
            let due = database.deadlines().due(Expiry::now(), most);
            is_more |= due.len() == most;
            for entry in &due {
                let removed = self.commit(|effects| database.remove_due(effects, entry))?;
                count += usize::from(removed.is_some());
                self.values(number).dropped(removed);
            }
        }
        let due = self.tables.due(Expiry::now(), most);
        is_more |= due.len() == most;
        for entry in &due {
            let is_removed = self.commit(|effects| self.tables.remove_due(effects, entry))?;
            count += usize::from(is_removed);
            self.expired_table_keys
                .fetch_add(is_removed.into(), Relaxed);
        }
        Ok((count, is_more))
    }

    /// The keys of databases that are gone because their time had come, or were written anew then.
    #[must_use]
    pub fn expired(&self) -> u64 {
        self.databases()
            .map(|database| database.deadlines().over())
            .sum()
    }

    /// The keys of tables whose rows were removed because their time had come.
    #[must_use]
    pub fn expired_table_keys(&self) -> u64 {
        self.expired_table_keys.load(Relaxed)
    }

    /// Lets keys expire from now on, or not.
    pub(crate) fn let_expire(&self, expires: bool) {
        self.databases()
            .for_each(|database| database.let_expire(expires));
    }

    /// Frees what the databases have unlinked, as far as no thread is inside them, and what is kept
    /// for the next records of the log. They do the former by themselves while they are used; call
    /// it, now and then, when nobody uses them. O(garbage).
    ///
    /// `tidy_thread` also runs on every other thread that holds values: the cache's workers.
    pub fn tidy(&self, tidy_thread: fn()) {
        self.databases().for_each(|database| database.tidy());
        if let Some(journal) = &self.journal {
            journal.tidy();
        }
        if let Some(cache) = &self.cache {
            cache.tidy(tidy_thread);
        }
    }
}
