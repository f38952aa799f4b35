//! A cache of byte strings that grow at the end.
//!
//! As in Gorilla's memory structure (PVLDB 8(12), 2015, section 4.2), the ids are spread over cells
//! with a lock each. Threads that use items share a cell's lock; a thread that adds or removes an
//! item takes it exclusively. Each item has a lock of its own, which readers share.
//!
//! Invariants:
//!
//! 1. An item is used only under its cell's lock, shared or exclusive, so that nothing is appended
//!    to an item that has been evicted.
//! 2. A chunk never moves, and its filled part never changes: lent bytes stay as they were.
//! 3. While no append is under way, `held` is the sum of the memory that the items account for.
//! 4. The tick of an item's entry in `ages` is never later than its last use. So if the item of a
//!    cell's first entry has not been used since, it is the least recently used item of the cell.

mod body;

use body::Body;
use bytes::Bytes;
use foldhash::fast::RandomState;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroUsize;
use std::ops::Range;
use tremula_sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use tremula_sync::{CachePadded, Mutex, RwLock};

/// The configuration of a [`Cache`].
///
/// ```
/// use tremula_shard::cache::{Cache, CacheConfig};
///
/// let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(1 << 20).keep_evicted(true));
/// assert_eq!(cache.shape().budget, 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Bytes that all items together may hold. The default is 64 MiB.
    pub budget: usize,
    /// The most bytes that an item may have. The default is no limit.
    pub longest: usize,
    /// The number of cells, each with a lock, over which the items are spread. The default is 64.
    pub cells: NonZeroUsize,
    /// Whether [`Cache::take_evicted`] gives the ids of evicted items. By default it does not.
    pub keep_evicted: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            budget: 64 << 20,
            longest: usize::MAX,
            cells: NonZeroUsize::new(64).expect("not 0"),
            keep_evicted: false,
        }
    }
}

impl CacheConfig {
    /// Sets the bytes that all items together may hold.
    #[must_use]
    pub const fn budget(mut self, budget: usize) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the most bytes that an item may have.
    #[must_use]
    pub const fn longest(mut self, longest: usize) -> Self {
        self.longest = longest;
        self
    }

    /// Sets the number of cells; 0 means 1.
    #[must_use]
    pub const fn cells(mut self, cells: usize) -> Self {
        self.cells = match NonZeroUsize::new(cells) {
            Some(cells) => cells,
            None => NonZeroUsize::MIN,
        };
        self
    }

    /// Sets whether the cache keeps the ids of evicted items.
    #[must_use]
    pub const fn keep_evicted(mut self, keep_evicted: bool) -> Self {
        self.keep_evicted = keep_evicted;
        self
    }
}

/// Why bytes were not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The item would be longer than items may be.
    #[error("the item has {length} bytes; with {appended} more it would have more than {longest}")]
    TooLong {
        /// Bytes that the item has.
        length: usize,
        /// Bytes to be appended.
        appended: usize,
        /// Bytes that an item may have.
        longest: usize,
    },
    /// The item would exceed the whole budget.
    #[error("an item of {0} bytes does not fit in the cache's budget of {1}")]
    OverBudget(usize, usize),
}

/// What a [`Cache`] has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheShape {
    /// Items that are there.
    pub items: usize,
    /// Bytes that they hold: the appended bytes, the free room of their chunks, and the bookkeeping
    /// of each item. Lent bytes of items that are gone do not count.
    pub held: usize,
    /// Bytes that they may hold.
    pub budget: usize,
    /// Items that were evicted because others needed memory.
    pub evictions: u64,
}

/// A cache of byte strings that grow at the end, within a budget of bytes.
///
/// Every operation on one item is linearizable. When the budget is spent, the item that was least
/// recently appended to or read is evicted. A clock that ticks whenever memory is taken measures
/// recency: uses within one tick count as one. While threads append, the held memory may exceed the
/// budget by at most what they are adding.
///
/// Appending copies the appended bytes once. Reading copies nothing if the range was appended in
/// one piece and has at least a KiB. The chunk stays in memory as long as bytes lent from it.
///
/// ```
/// use tremula_shard::cache::Cache;
///
/// let cache: Cache<u64> = Cache::default();
/// cache.append(&7, b"one ").unwrap();
/// assert_eq!(cache.append(&7, b"two"), Ok(7));
/// assert_eq!(cache.get(&7, 3).unwrap(), "two");
/// assert_eq!(cache.get(&7, 100).unwrap(), "one two");
/// assert_eq!(cache.get(&8, 1), None);
/// ```
pub struct Cache<K> {
    cells: Box<[CachePadded<Cell<K>>]>,
    hasher: RandomState,
    budget: usize,
    longest: usize,
    /// Bytes that the items hold. Briefly below 0 if eviction precedes the count of an append.
    held: AtomicIsize,
    /// Ticks whenever memory is taken.
    clock: AtomicU64,
    evictions: AtomicU64,
    /// The ids of evicted items, if the configuration asks to keep them.
    evicted: Option<Mutex<Vec<K>>>,
}

struct Cell<K> {
    items: RwLock<Items<K>>,
    /// The tick of the first entry of `ages`; `u64::MAX` if the cell is empty.
    oldest: AtomicU64,
}

struct Items<K> {
    map: HashMap<K, Item, RandomState>,
    /// See invariant 4. The second number makes the keys unique.
    ages: BTreeMap<(u64, u64), K>,
    next_place: u64,
}

struct Item {
    /// The tick of the last use.
    used: AtomicU64,
    /// The key of its entry in `ages`.
    age: (u64, u64),
    body: RwLock<Body>,
}

impl<K> Items<K> {
    /// The memory of an item besides its chunks: its entries in both maps, at their average fill.
    const ITEM: usize = (size_of::<(K, Item)>() + size_of::<((u64, u64), K)>()) * 3 / 2;
}

impl<K: Hash + Eq + Clone> Default for Cache<K> {
    fn default() -> Self {
        Self::new(CacheConfig::default())
    }
}

impl<K: Hash + Eq + Clone> Cache<K> {
    /// An empty cache.
    #[must_use]
    pub fn new(config: CacheConfig) -> Self {
        let hasher = RandomState::default();
        let cell = || {
            CachePadded::new(Cell {
                items: RwLock::new(Items {
                    map: HashMap::with_hasher(hasher.clone()),
                    ages: BTreeMap::new(),
                    next_place: 0,
                }),
                oldest: AtomicU64::new(u64::MAX),
            })
        };
        let cells = config.cells.get().next_power_of_two();
        Self {
            cells: (0..cells).map(|_| cell()).collect(),
            hasher,
            // The account may be negative: so the budget must fit in an `isize`.
            budget: config.budget.min(isize::MAX.cast_unsigned()),
            longest: config.longest,
            held: AtomicIsize::new(0),
            clock: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            evicted: config.keep_evicted.then(|| Mutex::new(Vec::new())),
        }
    }

    #[inline]
    fn cell<Q: Hash + ?Sized>(&self, id: &Q) -> &Cell<K> {
        // The map inside the cell chooses its buckets by other bits.
        let hash = self.hasher.hash_one(id) >> 32;
        &self.cells[hash as usize & (self.cells.len() - 1)]
    }

    /// Notes a use. Writes shared memory only at the first use in a tick.
    #[inline]
    fn touch(&self, item: &Item) {
        // Relaxed, like all accesses to ticks: they order nothing. An eviction that sees an old
        // tick evicts an item a little too early.
        let now = self.clock.load(Ordering::Relaxed);
        if item.used.load(Ordering::Relaxed) != now {
            item.used.store(now, Ordering::Relaxed);
        }
    }

    /// Appends to an item, which is created if it does not exist. Returns the item's new length.
    ///
    /// O(bytes), and the evictions that they cause.
    ///
    /// # Errors
    ///
    /// The item would become too long, or would exceed the whole budget. It is unchanged.
    pub fn append<Q>(&self, id: &Q, bytes: &[u8]) -> Result<usize, AppendError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let cell = self.cell(id);
        let items = cell.items.read();
        let (length, grown) = match items.map.get(id) {
            Some(item) => self.append_to(item, bytes)?,
            None => {
                drop(items);
                return self.append_to_new(cell, id, bytes);
            }
        };
        drop(items);
        self.account(grown);
        Ok(length)
    }

    #[cold]
    fn append_to_new<Q>(&self, cell: &Cell<K>, id: &Q, bytes: &[u8]) -> Result<usize, AppendError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut guard = cell.items.write();
        let items = &mut *guard;
        let (length, grown) = match items.map.get(id) {
            Some(item) => self.append_to(item, bytes)?, // another thread was faster
            None => {
                self.check(0, bytes.len())?;
                let now = self.clock.load(Ordering::Relaxed);
                let mut item = Item {
                    used: AtomicU64::new(now),
                    age: (now, items.next_place),
                    body: RwLock::new(Body::default()),
                };
                let (length, grown) = self.append_to(&item, bytes)?;
                item.age.0 = item.used.load(Ordering::Relaxed);
                items.next_place += 1;
                items.ages.insert(item.age, id.to_owned());
                items.map.insert(id.to_owned(), item);
                cell.note_oldest(items);
                (length, grown + Items::<K>::ITEM)
            }
        };
        drop(guard);
        self.account(grown);
        Ok(length)
    }

    fn check(&self, length: usize, appended: usize) -> Result<(), AppendError> {
        if appended > self.longest.saturating_sub(length) {
            return Err(AppendError::TooLong {
                length,
                appended,
                longest: self.longest,
            });
        }
        let least = (length + appended).saturating_add(Items::<K>::ITEM);
        if least > self.budget {
            return Err(AppendError::OverBudget(length + appended, self.budget));
        }
        Ok(())
    }

    /// Returns the item's new length, and how many more bytes it holds.
    #[inline]
    fn append_to(&self, item: &Item, bytes: &[u8]) -> Result<(usize, usize), AppendError> {
        let mut body = item.body.write();
        self.check(body.len(), bytes.len())?;
        let before = body.held();
        body.append(bytes);
        let answer = (body.len(), body.held() - before);
        drop(body);
        self.touch(item);
        Ok(answer)
    }

    /// Adds the memory that an append has taken, and evicts items until the budget holds. The
    /// calling thread holds no lock.
    #[inline]
    fn account(&self, grown: usize) {
        if grown == 0 {
            return;
        }
        self.clock.fetch_add(1, Ordering::Relaxed);
        // Relaxed, here and below: a sum that orders nothing.
        self.held.fetch_add(grown.cast_signed(), Ordering::Relaxed);
        while self.held.load(Ordering::Relaxed) > self.budget.cast_signed() && self.evict_one() {}
    }

    /// Evicts the least recently used item. `false` if there is no item.
    #[cold]
    fn evict_one(&self) -> bool {
        loop {
            let oldest = |cell: &&CachePadded<Cell<K>>| cell.oldest.load(Ordering::Relaxed);
            let Some(cell) = self.cells.iter().min_by_key(oldest) else {
                return false;
            };
            let mut guard = cell.items.write();
            let items = &mut *guard;
            let Some((age, id)) = items.ages.pop_first() else {
                // Another thread has emptied the cell, or every cell is empty.
                if oldest(&cell) == u64::MAX {
                    return false;
                }
                cell.note_oldest(items);
                continue;
            };
            let item = items.map.get_mut(&id).expect("each age has an item");
            let used = item.used.load(Ordering::Relaxed);
            if used > age.0 {
                // Used since: its new entry comes later. Another cell may have the first one now.
                item.age = (used, items.next_place);
                items.next_place += 1;
                items.ages.insert(item.age, id);
                cell.note_oldest(items);
                continue;
            }
            let evicted = items.map.remove(&id);
            cell.note_oldest(items);
            drop(guard);
            if let Some(ids) = &self.evicted {
                ids.lock().push(id);
            }
            self.release(evicted);
            self.evictions.fetch_add(1, Ordering::Relaxed);
            return true;
        }
    }

    /// Subtracts what an item held from the account.
    fn release(&self, item: Option<Item>) {
        if let Some(item) = item {
            let held = item.body.read().held() + Items::<K>::ITEM;
            self.held.fetch_sub(held.cast_signed(), Ordering::Relaxed);
        }
    }

    /// The length of an item and a range of its bytes, which `range` chooses by the length and
    /// which is cut at the end of the item. `None` if the item does not exist. Counts as a use.
    ///
    /// O(log chunks) if nothing must be copied, else O(range).
    ///
    /// ```
    /// use tremula_shard::cache::Cache;
    ///
    /// let cache: Cache<String> = Cache::default();
    /// cache.append("song", b"tremula").unwrap();
    /// let (length, half) = cache.read("song", |length| length / 2..length).unwrap();
    /// assert_eq!((length, &half[..]), (7, &b"mula"[..]));
    /// ```
    #[must_use]
    pub fn read<Q>(&self, id: &Q, range: impl Fn(usize) -> Range<usize>) -> Option<(usize, Bytes)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let items = self.cell(id).items.read();
        let item = items.map.get(id)?;
        self.touch(item);
        let body = item.body.read();
        let length = body.len();
        let range = range(length);
        let end = range.end.min(length);
        let start = range.start.min(end);
        if let Ok(bytes) = body.read(start, end) {
            return Some((length, bytes));
        }
        drop(body);
        let mut body = item.body.write();
        let before = body.held();
        body.close();
        let grown = body.held() - before;
        // The range chosen before still lies within the item, because items only grow.
        let bytes = body.read(start, end).ok();
        drop(body);
        drop(items);
        self.account(grown);
        Some((length, bytes?))
    }

    /// The last `size` bytes of an item, or all if it has fewer; `None` if it does not exist.
    ///
    /// O(log chunks) if nothing must be copied, else O(size).
    #[must_use]
    pub fn get<Q>(&self, id: &Q, size: usize) -> Option<Bytes>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_, bytes) = self.read(id, |length| length.saturating_sub(size)..length)?;
        Some(bytes)
    }

    /// The bytes of an item in `range`, which counts from its beginning and is cut at its end;
    /// `None` if the item does not exist.
    ///
    /// O(log chunks) if nothing must be copied, else O(range).
    ///
    /// ```
    /// use tremula_shard::cache::Cache;
    ///
    /// let cache: Cache<String> = Cache::default();
    /// cache.append("song", b"tremula tremula").unwrap();
    /// assert_eq!(cache.range("song", 4..9).unwrap(), "ula t");
    /// assert_eq!(cache.range("song", 8..99).unwrap(), "tremula");
    /// ```
    #[must_use]
    pub fn range<Q>(&self, id: &Q, range: Range<usize>) -> Option<Bytes>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_, bytes) = self.read(id, |_| range.clone())?;
        Some(bytes)
    }

    /// The length of an item; `None` if it does not exist. Counts as a use. O(1).
    #[must_use]
    pub fn length<Q>(&self, id: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let items = self.cell(id).items.read();
        let item = items.map.get(id)?;
        self.touch(item);
        let length = item.body.read().len();
        Some(length)
    }

    /// Removes an item. Returns whether it existed. O(chunks).
    pub fn remove<Q>(&self, id: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let cell = self.cell(id);
        let mut items = cell.items.write();
        let removed = items.map.remove(id);
        if let Some(item) = &removed {
            items.ages.remove(&item.age);
            cell.note_oldest(&items);
        }
        drop(items);
        let was_there = removed.is_some();
        self.release(removed);
        was_there
    }

    /// Takes the ids of the items evicted since the last call, if the configuration keeps them, so
    /// that a program that knows of items elsewhere can forget them. O(ids).
    #[must_use]
    pub fn take_evicted(&self) -> Vec<K> {
        let taken = self
            .evicted
            .as_ref()
            .map(|ids| std::mem::take(&mut *ids.lock()));
        taken.unwrap_or_default()
    }

    /// What the cache has counted. Exact when nobody appends. O(cells).
    #[must_use]
    pub fn shape(&self) -> CacheShape {
        let items = self.cells.iter().map(|cell| cell.items.read().map.len());
        CacheShape {
            items: items.sum(),
            held: usize::try_from(self.held.load(Ordering::Relaxed)).unwrap_or(0),
            budget: self.budget,
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }
}

impl<K> Cell<K> {
    fn note_oldest(&self, items: &Items<K>) {
        let first = items.ages.first_key_value();
        let tick = first.map_or(u64::MAX, |((tick, _), _)| *tick);
        self.oldest.store(tick, Ordering::Relaxed);
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for Cache<K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape().fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_the_sum_of_the_items() {
        let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(300_000));
        for step in 0..20_000_u64 {
            let id = step * step % 97;
            let bytes = vec![step as u8; (step % 61 * step % 1500) as usize];
            cache.append(&id, &bytes).unwrap();
            let _ = cache.get(&(step % 97), (step % 5000) as usize);
        }
        let cells = cache.cells.iter().map(|cell| cell.items.read());
        let sum: usize = cells
            .flat_map(|items| {
                assert_eq!(items.map.len(), items.ages.len());
                let held = |item: &Item| item.body.read().held() + Items::<u64>::ITEM;
                items.map.values().map(held).collect::<Vec<_>>()
            })
            .sum();
        let shape = cache.shape();
        assert_eq!(shape.held, sum);
        assert!(
            shape.held <= shape.budget && shape.evictions > 100,
            "{shape:?}"
        );
    }
}
