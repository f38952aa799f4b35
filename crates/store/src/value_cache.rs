//! The cache of values that are appended to: the shards of [`tremula_shard::cache::Cache`].
//!
//! Each value in the cache has a number that no other value ever had. In the index, the key maps to
//! that number. So an operation on a number may come late without harm: if the key has got another
//! value meanwhile, nothing refers to the number any more.

use crate::Key;
use bytes::Bytes;
use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use tremula_shard::cache::{Cache, CacheConfig};
use tremula_shard::{Config, Shards, StartError, Strategy};
use tremula_sync::atomic::{AtomicU64, Ordering};

/// Default length from which a value that is appended to moves to the cache. Copying a shorter
/// value costs less than a call to the cache.
pub const CACHED_FROM: usize = 4096;

/// The smallest size of a cache, in bytes: room for some values in every shard.
pub const LEAST_CACHE: usize = 1 << 20;

/// The number of shards, for any number of workers. Each shard has an equal part of the bytes, and
/// a value must fit into one.
const SHARDS: usize = 8;

/// How large values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// The strategy of the shards.
    pub strategy: Strategy,
    /// Bytes that all values in the cache may hold together.
    pub bytes: usize,
    /// Length, in bytes, from which a value that is appended to moves to the cache.
    pub from: usize,
}

/// The identity of a cached value: its number, and its key, which an eviction reports.
#[derive(Clone, Debug)]
pub(crate) struct CachedId {
    /// The number of the value in the cache.
    pub number: u64,
    /// The database of its key.
    pub database: usize,
    /// Its key.
    pub key: Key,
}

impl Borrow<u64> for CachedId {
    fn borrow(&self) -> &u64 {
        &self.number
    }
}

impl Hash for CachedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialEq for CachedId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for CachedId {}

/// The outcome of an append.
pub(crate) enum Appended {
    /// The new length of the value.
    To(usize),
    /// The value would be too long, and is unchanged.
    TooLong,
    /// The value is too large for the cache, which has removed it. Holds its bytes.
    NoRoom(Bytes),
    /// The value has been evicted.
    Gone,
}

pub(crate) struct ValueCache {
    shards: Shards<Cache<CachedId>>,
    pub(crate) from: usize,
    next: AtomicU64,
}

/// The values that were evicted to make room.
pub(crate) type Evicted = Vec<CachedId>;

impl ValueCache {
    pub(crate) fn start(settings: &CacheSettings) -> Result<Self, StartError> {
        let limits = CacheConfig::default()
            .budget(settings.bytes / SHARDS)
            .keep_evicted(true);
        let config = Config::new(settings.strategy).shards(SHARDS);
        Ok(Self {
            shards: Shards::start(config, move |_| Cache::new(limits))?,
            from: settings.from,
            next: AtomicU64::new(0),
        })
    }

    /// Calls the shard of a number. `None` also if the shard cannot answer: then the value is lost.
    fn ask<R: Send + 'static>(
        &self,
        number: u64,
        evicted: &mut Evicted,
        ask: impl FnOnce(&Cache<CachedId>) -> Option<R> + Send + 'static,
    ) -> Option<R> {
        let call = self.shards.read(number, move |cache: &Cache<CachedId>| {
            let answer = ask(cache);
            (answer, cache.take_evicted())
        });
        let (answer, gone) = call.wait().ok()?;
        evicted.extend(gone);
        answer
    }

    /// Puts the concatenation of two pieces into the cache. Returns its number, or `None` if it is
    /// too large.
    pub(crate) fn begin(
        &self,
        database: usize,
        key: &Key,
        pieces: [&[u8]; 2],
        evicted: &mut Evicted,
    ) -> Option<u64> {
        // Relaxed: the numbers need only be distinct.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = CachedId {
            number,
            database,
            key: key.clone(),
        };
        let bytes = Bytes::from(pieces.concat());
        self.ask(number, evicted, move |cache| {
            cache.append(&id, &bytes).ok().map(|_| number)
        })
    }

    /// Appends to a value, whose new length may be at most `longest` bytes.
    pub(crate) fn append(
        &self,
        id: CachedId,
        suffix: &[u8],
        longest: usize,
        evicted: &mut Evicted,
    ) -> Appended {
        let suffix = Bytes::copy_from_slice(suffix);
        let appended = self.ask(id.number, evicted, move |cache| {
            let length = cache.length(&id.number)?;
            if suffix.len() > longest.saturating_sub(length) {
                return Some(Appended::TooLong);
            }
            Some(match cache.append(&id, &suffix) {
                Ok(length) => Appended::To(length),
                Err(_) => {
                    let bytes = cache.get(&id.number, usize::MAX)?;
                    cache.remove(&id.number);
                    Appended::NoRoom(bytes)
                }
            })
        });
        appended.unwrap_or(Appended::Gone)
    }

    /// The length of a value, and the range of its bytes that `part` chooses by the length.
    pub(crate) fn read(
        &self,
        number: u64,
        evicted: &mut Evicted,
        part: impl Fn(usize) -> Range<usize> + Send + 'static,
    ) -> Option<(usize, Bytes)> {
        self.ask(number, evicted, move |cache| cache.read(&number, part))
    }

    /// Removes and returns a value. `None` if it has been evicted.
    pub(crate) fn take(&self, number: u64, evicted: &mut Evicted) -> Option<Bytes> {
        self.ask(number, evicted, move |cache| {
            let bytes = cache.get(&number, usize::MAX);
            cache.remove(&number);
            bytes
        })
    }

    /// Runs `tidy` where each shard is used, which may be a thread of its own.
    pub(crate) fn tidy(&self, tidy: fn()) {
        for shard in 0..SHARDS as u64 {
            self.ask(shard, &mut Vec::new(), move |_| {
                tidy();
                Some(())
            });
        }
    }

    /// Removes a value. Returns whether it was there.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let removed = self.ask(number, &mut Vec::new(), move |cache| {
            cache.remove(&number).then_some(())
        });
        removed.is_some()
    }
}
