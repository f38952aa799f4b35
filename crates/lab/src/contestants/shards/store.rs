//! What requesters talk to: a cache in shards, or the same caches behind plain locks.

use bytes::Bytes;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use tremula_shard::{
    CallError, Shards,
    cache::{AppendError, Cache, CacheConfig},
};
use tremula_sync::{CachePadded, RwLock};

/// Bytes that all shards' caches together may hold: eight times the values of the article's load,
/// so that every shard can hold its ids.
pub(super) const BUDGET: usize = 128 << 20;

/// A cache that tasks send requests to.
pub(super) trait Store: Send + Sync + 'static {
    /// Appends to an item.
    fn append(
        &self,
        id: u64,
        bytes: &'static [u8],
    ) -> impl Future<Output = Result<Appended, CallError>> + Send;
    /// The last bytes of an item.
    fn get(
        &self,
        id: u64,
        size: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, CallError>> + Send;
    /// The number of the shard that has the id.
    fn shard_of(&self, id: u64) -> usize;
}

/// One of `shards` shards. A lock or an owner guards it, so one cell is enough.
pub(super) fn cache(shards: usize) -> Cache<u64> {
    Cache::new(CacheConfig::default().budget(BUDGET / shards).cells(1))
}

/// The length of the item after an append.
pub(super) type Appended = Result<usize, AppendError>;

/// Appends. An item that outgrows its shard's budget starts over.
fn append_to(cache: &Cache<u64>, id: u64, bytes: &[u8]) -> Appended {
    match cache.append(&id, bytes) {
        Err(AppendError::OverBudget(..)) => {
            cache.remove(&id);
            cache.append(&id, bytes)
        }
        appended => appended,
    }
}

// Functions of their own, because the type of a closure in a method depends on the method's
// lifetimes.
fn append(id: u64, bytes: &'static [u8]) -> impl FnOnce(&mut Cache<u64>) -> Appended + Send {
    move |cache| append_to(cache, id, bytes)
}

fn get(id: u64, size: usize) -> impl FnOnce(&Cache<u64>) -> Option<Bytes> + Send {
    move |cache| cache.get(&id, size)
}

impl Store for Shards<Cache<u64>> {
    #[inline]
    fn append(
        &self,
        id: u64,
        bytes: &'static [u8],
    ) -> impl Future<Output = Result<Appended, CallError>> + Send {
        self.call(id, append(id, bytes))
    }

    #[inline]
    fn get(
        &self,
        id: u64,
        size: usize,
    ) -> impl Future<Output = Result<Option<Bytes>, CallError>> + Send {
        self.read(id, get(id, size))
    }

    fn shard_of(&self, id: u64) -> usize {
        Self::shard_of(self, id)
    }
}

/// The shards' caches, each behind a readers-writer lock and nothing else: an upper bound.
pub(super) struct PlainLocks {
    caches: Box<[CachePadded<RwLock<Cache<u64>>>]>,
    hasher: RandomState,
}

impl PlainLocks {
    pub(super) fn new(shards: usize) -> Self {
        let cache = |_| CachePadded::new(RwLock::new(cache(shards)));
        Self {
            caches: (0..shards).map(cache).collect(),
            hasher: RandomState::default(),
        }
    }
}

impl Store for PlainLocks {
    async fn append(&self, id: u64, bytes: &'static [u8]) -> Result<Appended, CallError> {
        let cache = self.caches[self.shard_of(id)].write();
        Ok(append_to(&cache, id, bytes))
    }

    async fn get(&self, id: u64, size: usize) -> Result<Option<Bytes>, CallError> {
        Ok(self.caches[self.shard_of(id)].read().get(&id, size))
    }

    #[inline]
    fn shard_of(&self, id: u64) -> usize {
        let hash = self.hasher.hash_one(id) >> 32;
        ((hash * self.caches.len() as u64) >> 32) as usize
    }
}
