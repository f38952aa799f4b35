//! The array of a shard: entries in the order of their hashes.

use super::Sought;
use crate::key::KeyHead;
use crate::kit::{PackedValue, Spec, StoredKey, ValueSlot, on_unwind};
use std::cmp::Ordering as Compared;
use std::iter;
use std::ptr;
use tremula_sync::Restart;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The hash of a place without an entry. No entry has it.
pub(super) const EMPTY: u64 = 0;

/// A place for an entry: four words, guarded by the lock of the shard.
pub(super) struct Place<S: Spec> {
    hash: AtomicU64,
    head: AtomicU64,
    key: AtomicPtr<()>,
    value: ValueSlot<S>,
}

/// An entry as it is in a place: words that own nothing.
pub(super) struct Entry<S: Spec> {
    pub(super) hash: u64,
    pub(super) key: StoredKey<S>,
    pub(super) value: PackedValue<S>,
}

impl<S: Spec> Clone for Entry<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Spec> Copy for Entry<S> {}

impl<S: Spec> Entry<S> {
    /// Copies of key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`] and [`PackedValue::with`].
    pub(super) unsafe fn to_pair(self) -> (S::Key, S::Value) {
        // SAFETY: passed on to the caller.
        unsafe { (self.key.to_key(), self.value.with(S::Value::clone)) }
    }

    /// Frees key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::free`] and [`PackedValue::take`].
    pub(super) unsafe fn free(self) {
        // SAFETY: passed on to the caller.
        let free_key = || unsafe { self.key.free() };
        // SAFETY: passed on to the caller.
        on_unwind(free_key, || drop(unsafe { self.value.take() }));
        free_key();
    }
}

impl<S: Spec> Place<S> {
    fn empty() -> Self {
        Self {
            hash: AtomicU64::new(EMPTY),
            head: AtomicU64::new(0),
            key: AtomicPtr::new(ptr::null_mut()),
            value: ValueSlot::empty(),
        }
    }

    #[inline]
    pub(super) fn hash(&self) -> u64 {
        self.hash.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn key(&self) -> StoredKey<S> {
        let head = self.head.load(Ordering::Relaxed);
        StoredKey::of_words(head, self.key.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn value(&self) -> &ValueSlot<S> {
        &self.value
    }

    /// What is here, unvalidated if an optimistic reader asks.
    #[inline]
    pub(super) fn entry(&self) -> Entry<S> {
        Entry {
            hash: self.hash(),
            key: self.key(),
            value: self.value.load(),
        }
    }

    #[inline]
    fn put(&self, entry: Entry<S>) {
        self.hash.store(entry.hash, Ordering::Relaxed);
        self.head.store(entry.key.head, Ordering::Relaxed);
        self.key.store(entry.key.word, Ordering::Relaxed);
        self.value.store(entry.value);
    }

    fn clear(&self) {
        self.hash.store(EMPTY, Ordering::Relaxed);
    }
}

/// The places of a shard. How many there are never changes.
pub(super) struct Table<S: Spec> {
    /// The homes, and behind them more places for the entries of the last homes.
    pub(super) places: Box<[Place<S>]>,
    pub(super) homes: usize,
    /// How many upper bits all hashes here have in common.
    shard_bits: u32,
}

impl<S: Spec> Table<S> {
    pub(super) fn new(homes: usize, tail: usize, shard_bits: u32) -> Self {
        let places = iter::repeat_with(Place::empty).take(homes + tail);
        Self {
            places: places.collect(),
            homes,
            shard_bits,
        }
    }

    /// The first place for an entry with this hash.
    #[inline]
    pub(super) fn home(&self, hash: u64) -> usize {
        let own_bits = hash << self.shard_bits;
        ((u128::from(own_bits) * self.homes as u128) >> 64) as usize
    }

    /// The place of the key; if the table lacks it, the place that it would have: an empty one,
    /// that of a greater entry, or the one behind the last. An optimistic reader says by `sound`
    /// whether what it has read so far is valid.
    #[inline]
    pub(super) fn find(
        &self,
        sought: &Sought<'_, S::Key>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Result<usize, usize>, Restart> {
        let mut at = self.home(sought.hash);
        while let Some(place) = self.places.get(at) {
            let hash = place.hash();
            if hash == EMPTY || hash > sought.hash {
                break;
            }
            if hash == sought.hash {
                match self.compare(place, sought, &sound)? {
                    Compared::Less => {}
                    Compared::Equal => return Ok(Ok(at)),
                    Compared::Greater => break,
                }
            }
            at += 1;
        }
        Ok(Err(at))
    }

    /// How the key of a place compares with one of the same hash.
    #[inline]
    fn compare(
        &self,
        place: &Place<S>,
        sought: &Sought<'_, S::Key>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Compared, Restart> {
        let key = place.key();
        if key.head == sought.head && S::Head::is_only_of_one(key.head) {
            return Ok(Compared::Equal);
        }
        sound()?;
        // SAFETY: `sound` says that no thread changed the shard while the key was read. So it is
        // the key of an entry that was there after this thread was pinned.
        Ok(unsafe { key.with(sought.compare) })
    }

    /// Adds an entry at the place that [`find`](Self::find) gave for it. Returns whether there was
    /// an empty place for it.
    pub(super) fn add(&self, at: usize, entry: Entry<S>) -> bool {
        let empty = |place: &Place<S>| place.hash() == EMPTY;
        let Some(offset) = self.places[at..].iter().position(empty) else {
            return false;
        };
        for to in (at + 1..=at + offset).rev() {
            self.places[to].put(self.places[to - 1].entry());
        }
        self.places[at].put(entry);
        true
    }

    /// Removes the entry at a place. Those that follow without a gap and are not at home move one
    /// place towards it.
    pub(super) fn remove(&self, mut at: usize) {
        while let Some(next) = self.places.get(at + 1)
            && next.hash() != EMPTY
            && self.home(next.hash()) <= at
        {
            self.places[at].put(next.entry());
            at += 1;
        }
        self.places[at].clear();
    }

    /// Copies the entries, in their order, to a table with room for them.
    pub(super) fn copy_to(&self, other: &Self) {
        let mut at = 0;
        for entry in self.entries() {
            at = other.home(entry.hash).max(at);
            other.places[at].put(entry);
            at += 1;
        }
    }

    /// The entries, in their order.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = Entry<S>> {
        let entries = self.places.iter().map(Place::entry);
        entries.filter(|entry| entry.hash != EMPTY)
    }

    /// How many places behind the homes the entries would take in a table with another number of
    /// homes.
    pub(super) fn tail_for(&self, homes: usize) -> usize {
        let other = Self {
            places: Box::default(),
            homes,
            shard_bits: self.shard_bits,
        };
        let end = self
            .entries()
            .fold(0, |end, entry| other.home(entry.hash).max(end) + 1);
        end.saturating_sub(homes)
    }
}
