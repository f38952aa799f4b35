//! A concurrent map in the order of hashes, whose readers take no lock and write nothing shared.
//!
//! It is what tables of rows without an order stand on. It neither hashes nor compares keys by
//! itself: the caller gives the hash of a key, and how a key compares with others of this hash.
//!
//! # How it works
//!
//! Entries are ordered by their hashes, and entries of equal hashes by their keys. The upper bits
//! of a hash choose the shard, the others the *home* in the shard's table: `hash × homes / 2^64`,
//! which never decreases with the hash. An entry is at its home or behind it, in order.
//!
//! ```text
//!   lock   homes   0    1    2    3    4    5   | behind the last home
//!   table ─────> [ 05 | .. | 21 | 22 | 40 | .. ]|[ .. ]
//! ```
//!
//! So the next entry is the next one in the table or in the next shard, and a walk can go on from a
//! key that has been removed, or after the table has grown. Growth copies a table in order, by any
//! factor. A search for a missing key ends at the place that the key would have.
//!
//! A reader notes the version of the shard, finds the place, and validates. A writer holds the lock
//! of the shard, changes the words of the table in place, and ends with the next version. A value
//! is one word, as in the B+tree: what it points to is never written again.
//!
//! # Invariants
//!
//! 1. The entries of a shard ascend strictly by hash and key; no two shards share a hash.
//! 2. No place between the home of an entry and the entry is empty.
//! 3. A shard's lock guards its table: the pointer to it, and the words in it. A reader validates
//!    what it has read of these before it relies on it or follows the pointer of a key or a value.
//!    It may follow the pointer to a table before: that leads to a table that this thread's pin
//!    keeps, whose size never changes.
//! 4. Tables that were replaced, and keys and values that were removed, are retired, each once, by
//!    the thread that unlinked it.
//! 5. The code of the user runs before the first change of an operation, or after the lock was
//!    given back. If it panics before, nothing has happened.
//! 6. A thread that holds the lock of a shard waits for no other lock.
//!
//! # Consistency
//!
//! Operations on one key are linearizable. A scan sees each shard as of one moment. Threads that
//! come to a shard that is being changed wait: the map is not lock-free.
//!
//! # Sources
//!
//! Linear probing in the order of hashes: Amble and Knuth, "Ordered hash tables", The Computer
//! Journal 1974. Optimistic locks: Leis, Scheibner, Kemper, Neumann, "The ART of practical
//! synchronization", DaMoN 2016.

mod table;
mod taken;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use taken::Taken;

use crate::contract::{Direction, Storable, Update};
use crate::key::KeyHead;
use crate::kit::{OwnedKey, PackedValue, Parameters, Spec};
use std::cmp::Ordering as Compared;
use std::ops::Range;
use std::ptr;
use table::{EMPTY, Entry, Table};
use tremula_sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use tremula_sync::reclaim::{Collector, Guard};
use tremula_sync::{
    Arc, CachePadded, Restart, StripedCounter, Version, VersionGuard, VersionLock, retry,
};

/// The fewest homes of a shard that is not empty.
const FEWEST_HOMES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 8 };

/// A shard with more than 4 entries in 5 homes grows: beyond that, sequences of occupied places get
/// long.
const MOST_FULL: (usize, usize) = (4, 5);

/// A shard grows by a quarter, so that at least 64 of 100 homes are taken. In total growth copies
/// each entry about five times, in order; doubling would copy it twice but leave most homes empty.
const GROWTH: (usize, usize) = (5, 4);

/// The places behind the last home, at least.
const TAIL: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// A shard with fewer than 1 entry in this many homes shrinks.
const SHRINK_BELOW: usize = 8;

/// How often a scan reads a shard without its lock before it takes the lock.
const OPTIMISTIC_SCANS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 2 };

/// A key that is looked for.
#[derive(Clone, Copy)]
pub struct Sought<'k, K> {
    /// Its hash. Equal keys have equal hashes.
    pub hash: u64,
    /// Its head.
    pub head: u64,
    /// How a key of the map with this hash compares with it. The order may be any that is total.
    pub compare: &'k dyn Fn(&K) -> Compared,
}

impl<'k, K> Sought<'k, K> {
    /// The key with this hash and this head.
    #[inline]
    pub fn new(hash: u64, head: u64, compare: &'k dyn Fn(&K) -> Compared) -> Self {
        // `EMPTY` is no hash of an entry. The two keys with neighbouring hashes compare otherwise.
        let hash = hash.max(EMPTY + 1);
        Self {
            hash,
            head,
            compare,
        }
    }
}

struct Shard<S: Spec> {
    lock: VersionLock,
    /// Null if it has no entries.
    table: AtomicPtr<Table<S>>,
    /// How many entries the table has. Guarded by the lock.
    len: AtomicUsize,
}

/// Each on cache lines of its own.
type Shards<S> = Box<[CachePadded<Shard<S>>]>;

/// What a [`HashIndex`] looks like now. Exact when no thread is writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Entries.
    pub entries: usize,
    /// Shards.
    pub shards: usize,
    /// Places for entries.
    pub places: usize,
    /// The most places that a search for a key looks at.
    pub longest_probe: usize,
}

/// A concurrent map in the order of hashes. The [module](self) says how it works.
pub struct HashIndex<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    shards: Shards<Parameters<K, V, H>>,
    /// How many upper bits of a hash choose the shard.
    shard_bits: u32,
    len: StripedCounter,
    collector: Arc<Collector>,
}

fn locked() -> Result<(), Restart> {
    Ok(())
}

/// The upper bits of a hash, as a number.
#[inline]
const fn upper_bits(hash: u64, count: u32) -> u64 {
    // Two shifts, because a shift by 64 bits would overflow.
    hash >> 1 >> (63 - count)
}

/// The items in this direction.
fn directed<T>(
    mut items: impl DoubleEndedIterator<Item = T>,
    direction: Direction,
) -> impl Iterator<Item = T> {
    std::iter::from_fn(move || match direction {
        Direction::Ascending => items.next(),
        Direction::Descending => items.next_back(),
    })
}

impl<S: Spec> Shard<S> {
    fn new() -> Self {
        Self {
            lock: VersionLock::new(),
            table: AtomicPtr::new(ptr::null_mut()),
            len: AtomicUsize::new(0),
        }
    }

    fn version(&self) -> Version {
        match self.lock.read() {
            Ok(version) => version,
            Err(Restart) => unreachable!("the lock of a shard is never obsolete"),
        }
    }

    fn lock(&self) -> VersionGuard<'_> {
        match self.lock.lock() {
            Ok(guard) => guard,
            Err(Restart) => unreachable!("the lock of a shard is never obsolete"),
        }
    }

    /// The table at some moment since the thread was pinned.
    #[inline]
    fn table<'g>(&self, _: &'g Guard<'_>) -> Option<&'g Table<S>> {
        // Acquire: pairs with the Release in `replace`, for what the table was made with.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: it was linked after the thread was pinned, so it is not freed before the thread
        // unpins. It is shared, and only its atomic words change.
        unsafe { table.as_ref() }
    }

    /// Replaces the table, and retires the old one. The caller holds the lock.
    fn replace(&self, new: Option<Table<S>>, guard: &Guard<'_>) {
        let new = new.map_or(ptr::null_mut(), |new| Box::into_raw(Box::new(new)));
        let old = self.table.load(Ordering::Relaxed);
        // Release: pairs with the Acquire in `table`.
        self.table.store(new, Ordering::Release);
        if !old.is_null() {
            // SAFETY: a box that this thread has just unlinked, and that is freed only here, when
            // every thread that could have come to it has unpinned.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(old))) };
        }
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Relaxed);
    }

    /// Copies the entries to a table with this number of homes, and at least `tail` places behind
    /// them.
    fn resize(&self, homes: usize, tail: usize, shard_bits: u32, guard: &Guard<'_>) {
        let old = self.table(guard);
        let needed = old.map_or(0, |old| old.tail_for(homes));
        let new = Table::new(homes, tail.max(needed + TAIL), shard_bits);
        if let Some(old) = old {
            old.copy_to(&new);
        }
        self.replace(Some(new), guard);
    }

    /// Adds an entry whose key the shard lacks. The caller holds the lock. Runs no code of the
    /// user's but comparisons with keys of the same hash.
    fn add(
        &self,
        entry: Entry<S>,
        sought: &Sought<'_, S::Key>,
        shard_bits: u32,
        guard: &Guard<'_>,
    ) {
        let homes = self.table(guard).map_or(0, |table| table.homes);
        if (self.len() + 1) * MOST_FULL.1 > homes * MOST_FULL.0 {
            let homes = (homes * GROWTH.0 / GROWTH.1)
                .max(homes + 1)
                .max(FEWEST_HOMES);
            self.resize(homes, TAIL, shard_bits, guard);
        }
        loop {
            let Some(table) = self.table(guard) else {
                unreachable!("a shard has a table before it has an entry");
            };
            let Ok(Ok(at) | Err(at)) = table.find(sought, locked) else {
                unreachable!("a thread that holds the lock need not validate");
            };
            if table.add(at, entry) {
                break;
            }
            // All places from there to the end are taken.
            let tail = 2 * (table.places.len() - table.homes);
            self.resize(table.homes, tail, shard_bits, guard);
        }
        self.set_len(self.len() + 1);
    }

    /// Removes the entry at a place, and shrinks the table if few are left.
    fn remove(&self, table: &Table<S>, at: usize, shard_bits: u32, guard: &Guard<'_>) {
        table.remove(at);
        let len = self.len() - 1;
        self.set_len(len);
        if len == 0 {
            self.replace(None, guard);
        } else if len * SHRINK_BELOW < table.homes && table.homes > FEWEST_HOMES {
            self.resize((len * 2).max(FEWEST_HOMES), TAIL, shard_bits, guard);
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> HashIndex<K, V, H> {
    /// An empty map of this number of shards, rounded up to a power of two: as many as threads that
    /// write at once, or more.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let shards = shards.next_power_of_two();
        Self {
            shards: (0..shards)
                .map(|_| CachePadded::new(Shard::new()))
                .collect(),
            shard_bits: shards.ilog2(),
            len: StripedCounter::new(),
            collector: Arc::new(Collector::new()),
        }
    }

    #[inline]
    fn index_of(&self, hash: u64) -> usize {
        upper_bits(hash, self.shard_bits) as usize
    }

    /// Calls `read` once with the value under a key, if the map has the key.
    #[inline]
    pub fn get_with<R>(&self, sought: &Sought<'_, K>, read: impl FnOnce(&V) -> R) -> Option<R> {
        let guard = self.collector.pin();
        let shard = &self.shards[self.index_of(sought.hash)];
        let look_up = || {
            let version = shard.version();
            let still = || shard.lock.validate(version);
            let value = match shard.table(&guard) {
                None => None,
                Some(table) => {
                    let found = table.find(sought, still)?;
                    found.ok().map(|at| table.places[at].value().load())
                }
            };
            still()?;
            Ok(value)
        };
        let value = retry(look_up, || ())?;
        // SAFETY: the value was read from an entry and validated while the thread was pinned.
        Some(unsafe { value.with(read) })
    }

    /// Calls `decide` once with the value under a key, and carries out its decision in the same
    /// step. `key` makes the key that is kept if it was not there. Returns what was replaced or
    /// removed.
    ///
    /// `decide` and `key` run under the lock of the shard: they must be brief and must not use the
    /// map.
    pub fn update(
        &self,
        sought: &Sought<'_, K>,
        key: impl FnOnce() -> K,
        decide: impl FnOnce(Option<&V>) -> Update<V>,
    ) -> Option<V> {
        let guard = self.collector.pin();
        let shard = &self.shards[self.index_of(sought.hash)];
        let lock = shard.lock();
        let place = shard.table(&guard).and_then(|table| {
            let found = table.find(sought, locked).ok()?;
            Some((table, found.ok()?))
        });
        let Some((table, at)) = place else {
            let Update::Put(value) = decide(None) else {
                lock.unchanged();
                return None;
            };
            let key = OwnedKey::new(key());
            let value = PackedValue::new(value);
            let key = key.give();
            let hash = sought.hash;
            shard.add(Entry { hash, key, value }, sought, self.shard_bits, &guard);
            drop(lock);
            self.len.add(1);
            return None;
        };
        let slot = table.places[at].value();
        let old = slot.load();
        // SAFETY: the value is in a shard that this thread has locked.
        match unsafe { old.with(|value| decide(Some(value))) } {
            Update::Put(value) => {
                slot.store(PackedValue::new(value));
                drop(lock);
            }
            Update::Remove => {
                let key = table.places[at].key();
                shard.remove(table, at, self.shard_bits, &guard);
                drop(lock);
                self.len.add(-1);
                // SAFETY: this thread alone has just unlinked it, and keeps no reference to it.
                unsafe { key.retire(&guard) };
            }
            Update::Keep => {
                lock.unchanged();
                return None;
            }
        }
        // SAFETY: this thread alone has just unlinked the value, and keeps no reference to it.
        Some(unsafe { old.hand_out(&guard) })
    }

    /// Calls `read` once with the first entry strictly between two keys in a direction, if there is
    /// one.
    pub fn first_between<R>(
        &self,
        low: Option<&Sought<'_, K>>,
        high: Option<&Sought<'_, K>>,
        direction: Direction,
        read: impl FnOnce(&K, &V) -> R,
    ) -> Option<R> {
        let guard = self.collector.pin();
        for index in directed(self.shards_of(low, high), direction) {
            let entry = self.copy_of(index, low, high, direction, 1, &guard).pop();
            if let Some(Entry { key, value, .. }) = entry {
                // SAFETY: the entry was read and validated while the thread was pinned.
                return Some(unsafe { key.with(|key| value.with(|value| read(key, value))) });
            }
        }
        None
    }

    /// Appends the first `limit` entries strictly between two keys in this direction to `out`. Each
    /// shard is seen as of one moment.
    pub fn scan(
        &self,
        low: Option<&Sought<'_, K>>,
        high: Option<&Sought<'_, K>>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        let end = out.len().saturating_add(limit);
        for index in directed(self.shards_of(low, high), direction) {
            if out.len() == end {
                return;
            }
            let guard = self.collector.pin();
            let left = end - out.len();
            let entries = self.copy_of(index, low, high, direction, left, &guard);
            // SAFETY: the entries were read and validated while the thread was pinned.
            out.extend(entries.into_iter().map(|entry| unsafe { entry.to_pair() }));
        }
    }

    /// The shards from that of `low` to that of `high`.
    fn shards_of(&self, low: Option<&Sought<'_, K>>, high: Option<&Sought<'_, K>>) -> Range<usize> {
        let first = low.map_or(0, |low| self.index_of(low.hash));
        let last = high.map_or(self.shards.len() - 1, |high| self.index_of(high.hash));
        first..(last + 1).max(first)
    }

    /// The first `limit` entries of a shard strictly between two keys in a direction, as of one
    /// moment.
    fn copy_of(
        &self,
        index: usize,
        low: Option<&Sought<'_, K>>,
        high: Option<&Sought<'_, K>>,
        direction: Direction,
        limit: usize,
        guard: &Guard<'_>,
    ) -> Vec<Entry<Parameters<K, V, H>>> {
        let shard = &self.shards[index];
        let copy = |sound: &dyn Fn() -> Result<(), Restart>| -> Result<_, Restart> {
            let Some(table) = shard.table(guard) else {
                return Ok(Vec::new());
            };
            let here = |end: Option<&Sought<'_, K>>, behind: usize, open: usize| {
                // A key of another shard is before or behind every entry of this one.
                match end.map(|end| (self.index_of(end.hash).cmp(&index), end)) {
                    None => Ok(open),
                    Some((Compared::Less, _)) => Ok(0),
                    Some((Compared::Greater, _)) => Ok(table.places.len()),
                    Some((Compared::Equal, end)) => {
                        table.find(end, sound).map(|found| match found {
                            Ok(at) => at + behind,
                            Err(at) => at,
                        })
                    }
                }
            };
            let first = here(low, 1, 0)?;
            let end = here(high, 0, table.places.len())?.max(first);
            let entries = table.places[first..end].iter().map(|place| place.entry());
            let entries = directed(entries, direction).filter(|entry| entry.hash != EMPTY);
            let entries: Vec<_> = entries.take(limit).collect();
            sound()?;
            Ok(entries)
        };
        for _ in 0..OPTIMISTIC_SCANS {
            let version = shard.version();
            if let Ok(entries) = copy(&|| shard.lock.validate(version)) {
                return entries;
            }
        }
        let lock = shard.lock();
        let entries = copy(&locked);
        lock.unchanged();
        entries.unwrap_or_else(|Restart| {
            unreachable!("a thread that holds the lock need not validate")
        })
    }

    /// Takes every entry out, shard after shard, each in one step. They are freed as what is
    /// returned goes on, or is dropped, and no thread can be looking at them.
    pub fn take_all(&self) -> Vec<Taken<K, V, H>> {
        let guard = self.collector.pin();
        let take = |shard: &CachePadded<Shard<_>>| {
            let lock = shard.lock();
            let table = shard.table.load(Ordering::Relaxed);
            if table.is_null() {
                lock.unchanged();
                return None;
            }
            // Release: as in `replace`. It writes null, which leads to nothing.
            shard.table.store(ptr::null_mut(), Ordering::Release);
            self.len.add(-(shard.len() as isize));
            shard.set_len(0);
            drop(lock);
            // SAFETY: this thread has just unlinked it.
            Some(unsafe { Taken::new(table, Arc::clone(&self.collector)) })
        };
        let taken = self.shards.iter().filter_map(take).collect();
        drop(guard);
        taken
    }

    /// The number of entries: exact when no thread is writing.
    pub fn len(&self) -> usize {
        // The sum can be negative: an insertion may be counted after the removal of its entry.
        usize::try_from(self.len.sum()).unwrap_or(0)
    }

    /// Whether there are no entries; as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the structure takes, without what keys and values have on the heap besides.
    pub fn bytes(&self) -> usize {
        let guard = self.collector.pin();
        let places =
            |shard: &CachePadded<Shard<_>>| shard.table(&guard).map_or(0, |t| t.places.len());
        let places: usize = self.shards.iter().map(places).sum();
        size_of::<Self>()
            + size_of_val(&*self.shards)
            + places * size_of::<table::Place<Parameters<K, V, H>>>()
    }

    /// What the map looks like. Visits all of it.
    ///
    /// # Panics
    ///
    /// In a debug build, if the invariants do not hold.
    pub fn figures(&self) -> Figures {
        let guard = self.collector.pin();
        let mut figures = Figures {
            shards: self.shards.len(),
            ..Figures::default()
        };
        for (index, shard) in self.shards.iter().enumerate() {
            let lock = shard.lock();
            if let Some(table) = shard.table(&guard) {
                figures.places += table.places.len();
                figures.entries += shard.len();
                let (mut count, mut last, mut taken) = (0, 0, 0);
                for (at, place) in table.places.iter().enumerate() {
                    let hash = place.hash();
                    if hash == EMPTY {
                        taken = at + 1;
                        continue;
                    }
                    let home = table.home(hash);
                    figures.longest_probe = figures.longest_probe.max(at - home + 1);
                    count += 1;
                    debug_assert!(taken <= home, "invariant 2: an empty place before an entry");
                    debug_assert!(last <= hash, "invariant 1: hashes ascend");
                    debug_assert_eq!(self.index_of(hash), index, "invariant 1: of this shard");
                    last = hash;
                }
                debug_assert_eq!(count, shard.len(), "a shard knows how many entries it has");
            }
            lock.unchanged();
        }
        figures
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for HashIndex<K, V, H> {
    fn drop(&mut self) {
        for shard in &self.shards {
            let table = shard.table.load(Ordering::Relaxed);
            if !table.is_null() {
                // SAFETY: no other thread uses the map any more.
                let mut taken =
                    unsafe { Taken::<K, V, H>::new(table, Arc::clone(&self.collector)) };
                taken.free_now();
            }
        }
    }
}
