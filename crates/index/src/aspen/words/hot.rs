//! Hot leaves: the format of a leaf to which several threads append.
//!
//! ```text
//!   leaf: locked, and left so ──> table: keys from … to …
//!                                   bucket  lock  count, last thread  key value  key value …
//!                                   bucket  lock  …
//! ```
//!
//! The entries of a hot leaf lie in a hash table of buckets, and each bucket has a lock of its own.
//! So threads that insert neighbouring keys meet seldom, and a key is unique because its bucket is
//! locked. The lock of the leaf itself stays locked as long as the leaf is hot: a thread that comes
//! to any other leaf pays nothing for there being hot ones.
//!
//! A thread that holds the locks of all buckets holds the leaf. Only such a thread changes the
//! table's range, closes the table, or takes over the lock of the leaf. So a thread that has come
//! to a bucket by whatever hint needs to know no more than that the bucket is not obsolete and that
//! the key is in the table's range, both at one version of the bucket.
//!
//! Source: Cha, Hao, Wang, Zhang, Akella, Yu, "Blink-hash: An Adaptive Hybrid Index for In-Memory
//! Time-Series Databases", VLDB 2023, for leaves that are hash tables where threads append.

use super::format::Entry;
use super::ranges::Keys;
use super::snapshots::Moment;
use crate::contract::Direction;
use crate::kit::prefetch_to_write;
use tremula_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tremula_sync::{Mutex, Restart, VersionGuard, VersionLock, thread_index};

/// Buckets of a table: a power of two.
const BUCKETS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };
/// Entries of a bucket.
pub(super) const BUCKET_ENTRIES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 14 };
/// The most hot leaves of a map.
const MOST_TABLES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };
/// A table that one thread alone has filled this often in a row is quiet. Threads that share a
/// processor take turns that are longer than filling a table takes.
const LONE_DRAINS: u64 = if cfg!(any(loom, shuttle)) { 1 } else { 8 };
/// A table that this number of scans in a row have found as it was before is quiet.
const QUIET_POLLS: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 1000 };
/// Words behind the buckets. A reader with an old version of a leaf may take the table for a block
/// before it knows better, and look as far as the largest block reaches.
const BEHIND: usize = {
    let most = super::place::HEAD_WORDS + 2 * (super::place::MOST_SLOTS + 2 * super::place::WINDOW);
    let words = BUCKETS * (2 + 2 * BUCKET_ENTRIES);
    most.saturating_sub(words)
};

/// The end of a leaf at which threads append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aspen) enum End {
    Low,
    High,
}

/// A part of the entries. Its lock guards the rest of it.
#[repr(C)]
#[cfg_attr(not(any(loom, shuttle)), repr(align(256)))]
struct Bucket {
    lock: VersionLock,
    /// How many entries there are, in the low byte; above it a bit for each thread that has
    /// inserted some.
    state: AtomicU64,
    entries: [[AtomicU64; 2]; BUCKET_ENTRIES],
    /// Up to which moment it is preserved for snapshots.
    preserved: AtomicU64,
}

const WRITERS_AT: u32 = 8;
const COUNT: u64 = (1 << WRITERS_AT) - 1;

impl Bucket {
    fn new() -> Self {
        let word = || AtomicU64::new(0);
        Self {
            lock: VersionLock::new_obsolete(),
            state: word(),
            entries: std::array::from_fn(|_| [word(), word()]),
            preserved: word(),
        }
    }

    /// Preserves the entries, which are about to change, up to now. Shows them if they have not
    /// been, with the moment up to which they were.
    fn preserve(&self, now: Moment, show: impl FnOnce(Moment, &[Entry])) {
        let preserved = self.preserved.load(Ordering::Relaxed);
        if preserved < now {
            let entries: [Entry; BUCKET_ENTRIES] = std::array::from_fn(|at| self.entry(at));
            show(preserved, &entries[..self.count()]);
            self.preserved.store(now, Ordering::Relaxed);
        }
    }

    #[inline]
    fn count(&self) -> usize {
        let count = (self.state.load(Ordering::Relaxed) & COUNT) as usize;
        // A reader that has not validated yet may see anything.
        count.min(BUCKET_ENTRIES)
    }

    #[inline]
    fn entry(&self, at: usize) -> Entry {
        let [key, value] = &self.entries[at];
        (key.load(Ordering::Relaxed), value.load(Ordering::Relaxed))
    }

    fn set(&self, at: usize, (key, value): Entry) {
        self.entries[at][0].store(key, Ordering::Relaxed);
        self.entries[at][1].store(value, Ordering::Relaxed);
    }

    /// Where a key is, or how many entries there are.
    #[inline]
    fn find(&self, key: u64) -> Result<usize, usize> {
        let count = self.count();
        let found = (0..count).find(|at| self.entries[*at][0].load(Ordering::Relaxed) == key);
        found.ok_or(count)
    }

    fn push(&self, entry: Entry, writers: u64) {
        let count = self.count();
        self.set(count, entry);
        let state = self.state.load(Ordering::Relaxed);
        self.state.store((state + 1) | writers, Ordering::Relaxed);
    }

    fn remove(&self, at: usize) {
        let last = self.count() - 1;
        self.set(at, self.entry(last));
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state - 1, Ordering::Relaxed);
    }
}

/// The bit of this thread in the state of a bucket.
fn writer() -> u64 {
    1 << (WRITERS_AT as usize + thread_index() % (64 - WRITERS_AT as usize))
}

/// The hash table of a hot leaf. Its address fits into a place.
#[repr(C, align(512))]
pub(super) struct Table {
    buckets: [Bucket; BUCKETS],
    behind: [AtomicU64; BEHIND],
    /// The rest changes only while all buckets are locked.
    low: AtomicU64,
    last: AtomicU64,
    leaf: AtomicU32,
    is_low_end: AtomicU32,
    /// How often the buckets had changed when a scan saw them last.
    seen: AtomicU64,
    /// Scans in a row that have found the table as it was.
    polls: AtomicU64,
    /// How often in a row one thread alone has filled it.
    alone: AtomicU64,
}

/// The bucket of a key, which this thread has locked.
pub(super) struct HeldBucket<'a> {
    table: &'a Table,
    bucket: &'a Bucket,
    lock: VersionGuard<'a>,
    /// Where the key is, or how many entries there are.
    at: Result<usize, usize>,
}

impl Table {
    fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| Bucket::new()),
            behind: std::array::from_fn(|_| AtomicU64::new(0)),
            low: AtomicU64::new(0),
            last: AtomicU64::new(0),
            leaf: AtomicU32::new(0),
            is_low_end: AtomicU32::new(0),
            seen: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            alone: AtomicU64::new(0),
        }
    }

    #[inline]
    fn bucket(&self, key: u64) -> &Bucket {
        const SHIFT: u32 = u64::BITS - BUCKETS.ilog2();
        &self.buckets[(key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> SHIFT) as usize]
    }

    /// Whether a key is in the range. It says nothing unless a bucket is locked or validated.
    #[inline]
    fn covers(&self, key: u64) -> bool {
        self.low.load(Ordering::Relaxed) <= key && key <= self.last.load(Ordering::Relaxed)
    }

    /// The number of the leaf whose table this is or was.
    pub(super) fn leaf(&self) -> u32 {
        self.leaf.load(Ordering::Relaxed)
    }

    /// Reads something about a key, if the key belongs here.
    #[inline]
    fn read<R>(&self, key: u64, read: impl FnOnce(&Bucket) -> R) -> Result<R, Restart> {
        let bucket = self.bucket(key);
        let version = bucket.lock.read()?;
        let (covers, found) = (self.covers(key), read(bucket));
        bucket.lock.validate(version)?;
        if covers { Ok(found) } else { Err(Restart) }
    }

    /// The value of a key, if the key belongs here.
    pub(super) fn get(&self, key: u64) -> Result<Option<u64>, Restart> {
        self.read(key, |bucket| {
            let at = bucket.find(key).ok()?;
            Some(bucket.entry(at).1)
        })
    }

    /// Whether a key belongs here.
    pub(super) fn has(&self, key: u64) -> bool {
        self.read(key, |_| ()).is_ok()
    }

    /// Locks the bucket of a key, if the key belongs here.
    #[inline]
    pub(super) fn hold(&self, key: u64) -> Result<HeldBucket<'_>, Restart> {
        let bucket = self.bucket(key);
        // Most buckets have entries in the first lines only.
        let line = std::ptr::from_ref(bucket).cast::<[u64; 8]>();
        (0..3).for_each(|at| prefetch_to_write(line.wrapping_add(at)));
        let lock = bucket.lock.lock()?;
        if !self.covers(key) {
            lock.unchanged();
            return Err(Restart);
        }
        Ok(HeldBucket {
            table: self,
            bucket,
            lock,
            at: bucket.find(key),
        })
    }

    /// Locks all buckets, if a key belongs here. A thread waits here as for the lock of a leaf.
    pub(super) fn hold_all(&self, key: u64) -> Option<Whole<'_>> {
        let mut locks = Vec::with_capacity(BUCKETS);
        for bucket in &self.buckets {
            locks.push(bucket.lock.lock().ok()?);
        }
        let whole = Whole { table: self, locks };
        if self.covers(key) {
            return Some(whole);
        }
        whole.release();
        None
    }

    /// Begins to use a table for a leaf. Only the thread that has taken it from the unused ones may
    /// call this.
    pub(super) fn open(&self, leaf: u32, keys: Keys, end: End, preserved: Moment) -> Whole<'_> {
        let whole = Whole {
            table: self,
            locks: (self.buckets.iter())
                .map(|bucket| bucket.lock.renew())
                .collect(),
        };
        self.leaf.store(leaf, Ordering::Relaxed);
        self.alone.store(0, Ordering::Relaxed);
        self.polls.store(0, Ordering::Relaxed);
        self.is_low_end
            .store(u32::from(end == End::Low), Ordering::Relaxed);
        for bucket in &self.buckets {
            bucket.preserved.store(preserved, Ordering::Relaxed);
        }
        whole.refill(keys, &[]);
        whole
    }

    /// Checks that each entry belongs to the table and is found. Returns the number of entries.
    pub(super) fn check(&self, low: u64, last: u64) -> usize {
        let mut entries = 0;
        self.each(|(key, value)| {
            entries += 1;
            assert!((low..=last).contains(&key), "a key belongs to its leaf");
            assert_eq!(self.get(key), Ok(Some(value)), "a key is found");
        });
        entries
    }

    /// Shows each entry. No other thread may use the map meanwhile.
    pub(super) fn each(&self, mut show: impl FnMut(Entry)) {
        for bucket in &self.buckets {
            (0..bucket.count()).for_each(|at| show(bucket.entry(at)));
        }
    }
}

impl<'a> HeldBucket<'a> {
    pub(super) fn table(&self) -> &'a Table {
        self.table
    }

    /// The value of the key.
    pub(super) fn value(&self) -> Option<u64> {
        self.at.ok().map(|at| self.bucket.entry(at).1)
    }

    /// Preserves the entries of the bucket, as [`Bucket::preserve`] says.
    pub(super) fn preserve(&self, now: Moment, show: impl FnOnce(Moment, &[Entry])) {
        self.bucket.preserve(now, show);
    }

    /// Whether the key is missing and there is no room for it.
    pub(super) fn is_full(&self) -> bool {
        self.at == Err(BUCKET_ENTRIES)
    }

    /// Puts a value under the key, and unlocks. There is room.
    pub(super) fn put(self, key: u64, value: u64) {
        match self.at {
            Ok(at) => self.bucket.set(at, (key, value)),
            Err(_) => self.bucket.push((key, value), writer()),
        }
        drop(self.lock);
    }

    /// Removes the key, and unlocks.
    pub(super) fn remove(self) {
        match self.at {
            Ok(at) => {
                self.bucket.remove(at);
                drop(self.lock);
            }
            Err(_) => self.lock.unchanged(),
        }
    }

    /// Unlocks. Nothing has changed.
    pub(super) fn release(self) {
        self.lock.unchanged();
    }
}

/// A table, all of whose buckets this thread has locked: so it holds the leaf.
pub(super) struct Whole<'a> {
    pub(super) table: &'a Table,
    locks: Vec<VersionGuard<'a>>,
}

impl Whole<'_> {
    pub(super) fn keys(&self) -> Keys {
        Keys {
            first: self.table.low.load(Ordering::Relaxed),
            last: self.table.last.load(Ordering::Relaxed),
        }
    }

    pub(super) fn end(&self) -> End {
        match self.table.is_low_end.load(Ordering::Relaxed) {
            0 => End::High,
            _ => End::Low,
        }
    }

    /// Preserves the entries of all buckets.
    pub(super) fn preserve(&self, now: Moment, mut show: impl FnMut(Moment, &[Entry])) {
        for bucket in &self.table.buckets {
            bucket.preserve(now, &mut show);
        }
    }

    /// Whether there is no room for a key.
    pub(super) fn is_full_for(&self, key: u64) -> bool {
        self.table.bucket(key).find(key) == Err(BUCKET_ENTRIES)
    }

    /// Notes that the table is full. Returns whether one thread alone has filled it again and
    /// again.
    pub(super) fn is_one_threads(&self) -> bool {
        let writers = (self.table.buckets.iter())
            .map(|bucket| bucket.state.load(Ordering::Relaxed) >> WRITERS_AT)
            .fold(0, |all, some| all | some);
        let alone = match writers.count_ones() {
            0 | 1 => self.table.alone.load(Ordering::Relaxed) + 1,
            _ => 0,
        };
        self.table.alone.store(alone, Ordering::Relaxed);
        alone >= LONE_DRAINS
    }

    /// The entries with these keys, in no order.
    pub(super) fn entries(&self, keys: Keys) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.table.each(|entry| {
            if (keys.first..=keys.last).contains(&entry.0) {
                entries.push(entry);
            }
        });
        entries
    }

    /// The first `limit` entries of a range, in order.
    pub(super) fn sorted(&self, keys: Keys, direction: Direction, limit: usize) -> Vec<Entry> {
        let mut entries = self.entries(keys);
        let order = |entry: &Entry| match direction {
            Direction::Ascending => entry.0,
            Direction::Descending => !entry.0,
        };
        if limit < entries.len() {
            entries.select_nth_unstable_by_key(limit, order);
            entries.truncate(limit);
        }
        entries.sort_unstable_by_key(order);
        entries
    }

    /// Notes that a scan has come. Returns whether many have come and found nothing changed.
    pub(super) fn is_polled_in_vain(&self) -> bool {
        let table = self.table;
        let changes = self.locks.iter().map(VersionGuard::changes).sum();
        let polls = if table.seen.swap(changes, Ordering::Relaxed) == changes {
            table.polls.load(Ordering::Relaxed) + 1
        } else {
            0
        };
        table.polls.store(polls, Ordering::Relaxed);
        polls >= QUIET_POLLS
    }

    /// Leaves these of its entries in the table, and gives it another range.
    pub(super) fn refill(&self, keys: Keys, entries: &[Entry]) {
        self.table.low.store(keys.first, Ordering::Relaxed);
        self.table.last.store(keys.last, Ordering::Relaxed);
        for bucket in &self.table.buckets {
            bucket.state.store(0, Ordering::Relaxed);
        }
        for entry in entries {
            self.table.bucket(entry.0).push(*entry, 0);
        }
    }

    /// Unlocks all buckets. Nothing has changed.
    pub(super) fn release(self) {
        self.locks.into_iter().for_each(VersionGuard::unchanged);
    }

    /// Unlocks all buckets for the last time, until the table is opened again. A thread that
    /// waits for one goes back to the leaf.
    fn close(self) {
        self.locks.into_iter().for_each(VersionGuard::obsolete);
    }
}

/// The tables of a map, which stay where they are until it is dropped.
pub(super) struct Tables {
    pool: Mutex<Pool>,
}

struct Pool {
    /// Never null: each came from a box, and is freed when the tables are.
    all: Vec<*mut Table>,
    unused: Vec<*mut Table>,
}

// SAFETY: the tables belong to the map, and nothing is tied to a thread.
unsafe impl Send for Tables {}
// SAFETY: all of a table that changes is atomic; the list of tables is behind a mutex.
unsafe impl Sync for Tables {}

impl Tables {
    pub(super) fn new() -> Self {
        Self {
            pool: Mutex::new(Pool {
                all: Vec::new(),
                unused: Vec::new(),
            }),
        }
    }

    /// A table that is not in use; `None` if the map has as many hot leaves as it may have.
    pub(super) fn take(&self) -> Option<&Table> {
        let mut pool = self.pool.lock();
        let table = match pool.unused.pop() {
            Some(table) => table,
            None if pool.all.len() == MOST_TABLES => return None,
            None => {
                let table = Box::into_raw(Box::new(Table::new()));
                pool.all.push(table);
                table
            }
        };
        // SAFETY: tables live as long as `self`.
        Some(unsafe { &*table })
    }

    /// Gives back a table that has not been opened.
    pub(super) fn give_back(&self, table: &Table) {
        let table = std::ptr::from_ref(table).cast_mut();
        self.pool.lock().unused.push(table);
    }

    /// Closes a table and gives it back.
    pub(super) fn close(&self, whole: Whole<'_>) {
        let table = whole.table;
        whole.close();
        self.give_back(table);
    }

    /// What all tables take.
    pub(super) fn bytes(&self) -> usize {
        self.pool.lock().all.len() * size_of::<Table>()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        for table in self.pool.lock().all.drain(..) {
            // SAFETY: it came from a box in `take`, and nobody has it any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}
