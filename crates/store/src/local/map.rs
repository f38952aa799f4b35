//! An ordered map that is kept in a directory.

use super::{BadValue, DurableKey, DurableValue};
use super::{Durability, LocalError, LocalOptions, LocalStore};
use crate::database::Database;
use crate::disk::{SaveError, Saved};
use crate::effects::{Effects, Unlogged};
use crate::keyspace::Walk;
use crate::{Expiry, Key, Value};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use thiserror::Error;
use tremula_index::{Direction, Update};
use tremula_log::Stopped;

/// Bytes that a key, a value, or all of a batch may have: as Redis's values.
const MOST_BYTES: usize = 512 << 20;

/// Types of which nothing is owned, and that cannot be exchanged for others.
type Types<K, V> = fn(K, V) -> (K, V);

/// Why a map did not do something. Nothing was changed, unless it says otherwise.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// The log takes nothing more, or its disk is full.
    #[error(transparent)]
    Unlogged(#[from] Unlogged),
    /// The change was made, and is not known to be on the disk: the disk has failed.
    #[error("the change may not be on the disk: {0}")]
    Stopped(#[from] Stopped),
    /// A key, a value or a batch is too long.
    #[error("{what} of {bytes} bytes is longer than {MOST_BYTES}")]
    TooLong {
        /// Which of them.
        what: &'static str,
        /// Its bytes.
        bytes: usize,
    },
    /// A key is kept that is none of the map's type.
    #[error("a key is kept that is none of this map: \"{}\"", .bytes.escape_ascii())]
    BadKey {
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A value is kept that is none of the map's type.
    #[error(transparent)]
    BadValue(#[from] BadValue),
}

/// An ordered map in a directory: a [`BTreeMap`](std::collections::BTreeMap) that is there again
/// after a restart, a kill or a loss of power, shared by any number of threads that read and write.
///
/// It is in memory, in one index; each write goes into a log, and snapshots are made in the
/// background. So reads cost no disk, a write costs what it appends, and a start reads everything.
/// Keys are ordered as their type is, by their [byte form](tremula_index::ByteKey).
///
/// Consistency: each method on one key is linearizable; a [batch](Self::write) is one atomic step,
/// which no reader sees half of, and no crash leaves half of. A [range](Self::range) of up to 1,024
/// entries is of one moment, a longer one is read in parts of which each is. Point methods cost
/// O(log n).
///
/// With [`Durability::Always`] a write has returned only when it is on the disk. Otherwise it may
/// be lost for up to a second, with everything written after it: a crash leaves a state that was,
/// never a mixture. [`sync`](Self::sync) waits once.
///
/// Clones are handles of one map. Dropping the last one closes the directory.
///
/// ```
/// use tremula_store::local::{DurableMap, WriteBatch};
///
/// let directory = tempfile::tempdir()?;
/// let map = DurableMap::<(String, u32), String>::open(directory.path())?;
/// map.insert(&("aspen".to_owned(), 2), &"leaf".to_owned())?;
/// map.insert(&("aspen".to_owned(), 10), &"root".to_owned())?;
///
/// let mut batch = WriteBatch::new();
/// batch.insert(&("birch".to_owned(), 1), &"bark".to_owned());
/// batch.remove(&("aspen".to_owned(), 2));
/// map.write(batch)?; // all of it, or nothing
/// drop(map);
///
/// let map = DurableMap::<(String, u32), String>::open(directory.path())?;
/// let low = ("aspen".to_owned(), 0)..("aspen".to_owned(), u32::MAX);
/// let aspen = map.range(low).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(aspen, [(("aspen".to_owned(), 10), "root".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DurableMap<K, V> {
    store: LocalStore,
    database: usize,
    types: PhantomData<Types<K, V>>,
}

impl<K, V> Clone for DurableMap<K, V> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            database: self.database,
            types: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for DurableMap<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.store.directory().display();
        write!(out, "DurableMap in {directory}, database {}", self.database)
    }
}

/// Opening and closing.
impl<K: DurableKey, V: DurableValue> DurableMap<K, V> {
    pub(super) const fn over(store: LocalStore, database: usize) -> Self {
        Self {
            store,
            database,
            types: PhantomData,
        }
    }

    /// Opens the map in a directory, which is made if it is missing: database 0 of the
    /// [`LocalStore`] there. O(bytes), on all cores.
    ///
    /// # Errors
    ///
    /// [`LocalError`]: it is in use, damaged, cannot be written, …
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, LocalError> {
        LocalStore::open(directory).map(|store| store.map(0))
    }

    /// The same, with other options.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(
        directory: impl AsRef<Path>,
        options: &LocalOptions,
    ) -> Result<Self, LocalError> {
        LocalStore::open_with(directory, options).map(|store| store.map(0))
    }

    /// The directory's store.
    #[must_use]
    pub const fn store(&self) -> &LocalStore {
        &self.store
    }

    /// Blocks until everything that this thread has written or seen is on the disk.
    ///
    /// # Errors
    ///
    /// The disk has failed, or the store was closed.
    pub fn sync(&self) -> Result<(), Stopped> {
        self.store.sync()
    }

    /// Makes a snapshot now: [`LocalStore::snapshot`].
    ///
    /// # Errors
    ///
    /// [`SaveError`]. What was there is still there.
    pub fn snapshot(&self) -> Result<Saved, SaveError> {
        self.store.snapshot()
    }

    /// Makes everything durable and closes the directory: [`LocalStore::close`].
    ///
    /// # Errors
    ///
    /// Something did not become durable.
    pub fn close(self) -> Result<(), Stopped> {
        self.store.close()
    }

    fn index(&self) -> Database<'_> {
        self.store.keyspace().database(self.database)
    }
}

/// Reading.
impl<K: DurableKey, V: DurableValue> DurableMap<K, V> {
    /// The value under `key`.
    ///
    /// # Errors
    ///
    /// What is kept there is no value of this type.
    pub fn get(&self, key: &K) -> Result<Option<V>, MapError> {
        let mut found = None;
        self.index().get_with(&form(key), &mut |value| {
            found = Some(V::read(value));
        });
        Ok(found.transpose()?)
    }

    /// Whether `key` is present.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.index().contains_key(&form(key))
    }

    /// When the entry under `key` will expire; `None` if it never does, or is not there.
    #[must_use]
    pub fn expiry(&self, key: &K) -> Option<Expiry> {
        let mut expiry = None;
        self.index().get_with(&form(key), &mut |value| {
            expiry = value.expiry();
        });
        expiry
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    ///
    /// The entry is none of these types.
    pub fn first(&self) -> Result<Option<(K, V)>, MapError> {
        self.index().first().map(typed).transpose()
    }

    /// The entry with the largest key.
    ///
    /// # Errors
    ///
    /// The entry is none of these types.
    pub fn last(&self) -> Result<Option<(K, V)>, MapError> {
        self.index().last().map(typed).transpose()
    }

    /// The number of entries: exact when nobody writes. O(1) in most engines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index().len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index().is_empty()
    }

    /// The entries between two bounds, ascending. Copies up to 1,025 entries at once.
    pub fn range(&self, bounds: impl RangeBounds<K>) -> Range<K, V> {
        self.walk(&bounds, Direction::Ascending)
    }

    /// The entries between two bounds, from the last to the first.
    pub fn range_descending(&self, bounds: impl RangeBounds<K>) -> Range<K, V> {
        self.walk(&bounds, Direction::Descending)
    }

    /// All entries, ascending.
    #[must_use]
    pub fn iter(&self) -> Range<K, V> {
        self.range(..)
    }

    fn walk(&self, bounds: &impl RangeBounds<K>, direction: Direction) -> Range<K, V> {
        let low = bounds.start_bound().map(form);
        let high = bounds.end_bound().map(form);
        Range {
            map: self.clone(),
            walk: Walk::new(low, high, direction, usize::MAX),
        }
    }
}

/// Writing.
impl<K: DurableKey, V: DurableValue> DurableMap<K, V> {
    /// Stores `value` under `key`, and returns the value that it replaced.
    ///
    /// # Errors
    ///
    /// [`MapError`]. If what was there is no value of this type, it was replaced.
    pub fn insert(&self, key: &K, value: &V) -> Result<Option<V>, MapError> {
        let (key, value) = (checked_form(key)?, checked(value)?);
        let old = self.commit(|index, effects| index.insert(effects, key, value))?;
        Ok(old.map(|old| V::read(&old)).transpose()?)
    }

    /// Stores `value` under `key` until a time, and returns the value that it replaced. From that
    /// time on the entry is in no answer but [`len`](Self::len), from which it goes a moment later,
    /// with its memory. The time is kept on the disk with the value; a later insertion of the key
    /// ends it.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use tremula_store::Expiry;
    /// use tremula_store::local::DurableMap;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let sessions = DurableMap::<u64, String>::open(directory.path())?;
    /// let tomorrow = SystemTime::now() + Duration::from_secs(24 * 60 * 60);
    /// let expiry = Expiry::try_from(tomorrow)?;
    /// sessions.insert_expiring(&7, &"Ada".to_owned(), expiry)?;
    /// sessions.insert_expiring(&8, &"Bea".to_owned(), Expiry::now())?;
    /// assert_eq!(sessions.get(&7)?, Some("Ada".to_owned()));
    /// assert_eq!(sessions.expiry(&7), Some(expiry));
    /// assert_eq!(sessions.get(&8)?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_expiring(
        &self,
        key: &K,
        value: &V,
        expiry: Expiry,
    ) -> Result<Option<V>, MapError> {
        let (key, value) = (checked_form(key)?, checked(value)?);
        let value = value.expiring(Some(expiry));
        let old = self.commit(|index, effects| index.insert(effects, key, value))?;
        Ok(old.map(|old| V::read(&old)).transpose()?)
    }

    /// Removes `key`, and returns its value.
    ///
    /// # Errors
    ///
    /// [`MapError`]. If what was there is no value of this type, it was removed.
    pub fn remove(&self, key: &K) -> Result<Option<V>, MapError> {
        let key = form(key);
        let old = self.commit(|index, effects| index.remove(effects, &key))?;
        Ok(old.map(|old| V::read(&old)).transpose()?)
    }

    /// Shows the value under `key`, or `None`, to `decide` once, and does what that decides, as one
    /// atomic step. Returns the value that was replaced or removed.
    ///
    /// `decide` runs while the place of the key is locked: it should be short, and must not use
    /// this map.
    ///
    /// ```
    /// use tremula_store::Update;
    /// use tremula_store::local::DurableMap;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let visits = DurableMap::<String, u64>::open(directory.path())?;
    /// for _ in 0..3 {
    ///     visits.update(&"Bern".to_owned(), |count| Update::Put(count.unwrap_or(0) + 1))?;
    /// }
    /// assert_eq!(visits.get(&"Bern".to_owned())?, Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MapError`].
    pub fn update(
        &self,
        key: &K,
        decide: impl FnOnce(Option<V>) -> Update<V>,
    ) -> Result<Option<V>, MapError> {
        let key = checked_form(key)?;
        let mut decide = Some(decide);
        let mut failed = None;
        let old = self.commit(|index, effects| {
            index.update(effects, key, &mut |current| {
                let decided = current
                    .map(|current| V::read(current))
                    .transpose()
                    .map_err(MapError::from)
                    .and_then(|current| {
                        // Called exactly once.
                        let decided = decide.take().map_or(Update::Keep, |decide| decide(current));
                        Ok(match decided {
                            Update::Put(value) => Update::Put(checked(&value)?),
                            Update::Remove => Update::Remove,
                            Update::Keep => Update::Keep,
                        })
                    });
                decided.unwrap_or_else(|error| {
                    failed = Some(error);
                    Update::Keep
                })
            })
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(old.map(|old| V::read(&old)).transpose()?)
    }

    /// Removes the entries between two bounds as one atomic step, and returns how many there were.
    ///
    /// # Errors
    ///
    /// [`MapError`].
    pub fn remove_range(&self, bounds: impl RangeBounds<K>) -> Result<usize, MapError> {
        let low = bounds.start_bound().map(form);
        let high = bounds.end_bound().map(form);
        if is_empty(&low, &high) {
            return Ok(0);
        }
        self.commit(|index, effects| index.remove_range(effects, low.as_ref(), high.as_ref()))
    }

    /// Makes all changes of a batch as one atomic step, in their order.
    ///
    /// # Errors
    ///
    /// [`MapError`].
    pub fn write(&self, batch: WriteBatch<K, V>) -> Result<(), MapError> {
        if batch.bytes > MOST_BYTES {
            let (what, bytes) = ("a batch", batch.bytes);
            return Err(MapError::TooLong { what, bytes });
        }
        self.commit(|index, effects| index.change_together(effects, batch.changes))
    }

    /// Changes something, and waits for the disk as far as it must.
    fn commit<R>(
        &self,
        write: impl FnOnce(Database<'_>, &mut Effects<'_>) -> R,
    ) -> Result<R, MapError> {
        if self.store.is_closed() {
            return Err(Unlogged(Stopped::Closed.into()).into());
        }
        let keyspace = self.store.keyspace();
        let written = keyspace.commit(|effects| write(self.index(), effects))?;
        match self.store.durability() {
            Durability::Always => keyspace.sync()?,
            Durability::EverySecond | Durability::System => keyspace.forward(),
        }
        // A thread that closes the store sets the flag before it hands over what was committed. So
        // either it has handed over this change, or this thread sees the flag.
        if self.store.is_closed() {
            keyspace.sync()?;
        }
        Ok(written)
    }
}

/// Changes that are made as one atomic step: [`DurableMap::write`]. A later change of a key goes
/// before an earlier one.
pub struct WriteBatch<K, V> {
    changes: Vec<(Key, Option<Value>)>,
    bytes: usize,
    types: PhantomData<Types<K, V>>,
}

impl<K, V> Default for WriteBatch<K, V> {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            bytes: 0,
            types: PhantomData,
        }
    }
}

impl<K: DurableKey, V: DurableValue> WriteBatch<K, V> {
    /// A batch without a change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds that `value` is stored under `key`.
    pub fn insert(&mut self, key: &K, value: &V) -> &mut Self {
        let mut bytes = Vec::new();
        value.write(&mut bytes);
        self.change(key, Some(Value::from(bytes)))
    }

    /// Adds that `key` is removed.
    pub fn remove(&mut self, key: &K) -> &mut Self {
        self.change(key, None)
    }

    /// The number of changes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether there is no change.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn change(&mut self, key: &K, value: Option<Value>) -> &mut Self {
        /// What a record has beside key and value, at most.
        const AROUND: usize = 32;
        let key = form(key);
        let length = value.as_ref().map_or(0, |value| value.len());
        self.bytes += key.as_bytes().len() + length + AROUND;
        self.changes.push((key, value));
        self
    }
}

impl<K, V> fmt::Debug for WriteBatch<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "WriteBatch of {} changes", self.changes.len())
    }
}

/// Entries of a [`DurableMap`], in their order. An entry that is none of the map's types is an
/// error, behind which others may follow.
pub struct Range<K, V> {
    map: DurableMap<K, V>,
    walk: Walk,
}

impl<K: DurableKey, V: DurableValue> Iterator for Range<K, V> {
    type Item = Result<(K, V), MapError>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.walk.next(self.map.index())?;
        Some(typed(entry))
    }
}

impl<K, V> fmt::Debug for Range<K, V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Range of {:?}", self.map)
    }
}

impl<K: DurableKey, V: DurableValue> IntoIterator for &DurableMap<K, V> {
    type Item = Result<(K, V), MapError>;
    type IntoIter = Range<K, V>;

    fn into_iter(self) -> Range<K, V> {
        self.iter()
    }
}

fn form<K: DurableKey>(key: &K) -> Key {
    key.with_bytes(|bytes| Key::from(bytes))
}

fn checked_form<K: DurableKey>(key: &K) -> Result<Key, MapError> {
    let key = form(key);
    let bytes = key.as_bytes().len();
    if bytes > MOST_BYTES {
        let what = "a key";
        return Err(MapError::TooLong { what, bytes });
    }
    Ok(key)
}

fn checked<V: DurableValue>(value: &V) -> Result<Value, MapError> {
    let mut bytes = Vec::new();
    value.write(&mut bytes);
    if bytes.len() > MOST_BYTES {
        let (what, bytes) = ("a value", bytes.len());
        return Err(MapError::TooLong { what, bytes });
    }
    Ok(Value::from(bytes))
}

fn typed<K: DurableKey, V: DurableValue>((key, value): (Key, Value)) -> Result<(K, V), MapError> {
    let typed = K::from_bytes(key.as_bytes()).ok_or_else(|| MapError::BadKey {
        bytes: key.as_bytes().to_vec(),
    })?;
    Ok((typed, V::read(&value)?))
}

/// Whether no key lies between two bounds.
fn is_empty(low: &Bound<Key>, high: &Bound<Key>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}
