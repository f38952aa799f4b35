//! The hash map under `set`, `bag` and `duplicate_bag`.
//!
//! # Why one of our own
//!
//! Beside lookups, ETS needs an order of iteration that survives growth. Then `next` can go on from
//! a key even if it has been deleted, and a traversal of a fixed table, or a `select` in chunks,
//! meets each row once. ETS also needs `update`, `take` and changes of a bag's rows in one step,
//! and no lock between two calls. `papaya`, `dashmap` and `scc::HashMap` have atomic updates. But
//! they iterate by the position in memory, which growth changes; their iterators hold a lock or a
//! guard; and they cannot go on from a key. So each of them would need a second, ordered structure
//! for traversals.
//!
//! # How it works
//!
//! Entries are ordered by their hashes, and entries of equal hashes, which are rare with keyed
//! hashes of 64 bits, by their keys. The upper bits of a hash choose the shard, the others the
//! *home* in the shard's array: `hash × homes / 2^64`, which never decreases with the hash. An
//! entry is at its home or behind it, in order: linear probing in the order of hashes (Amble and
//! Knuth, "Ordered hash tables", The Computer Journal 1974).
//!
//! ```text
//!   homes   0    1    2    3    4    5   | behind the last home
//!         [ 05 | .. | 21 | 22 | 40 | .. ]|[ .. ]
//! ```
//!
//! So the next entry is the next one in the array or in the next shard. Growth copies an array in
//! order, by any factor. A search for a missing key ends at the place that the key would have.
//!
//! # Invariants
//!
//! 1. The entries of a shard ascend strictly by hash and key; no two shards share a hash.
//! 2. No place between the home of an entry and the entry is empty.
//!
//! # Consistency
//!
//! Operations on one key are linearizable. A scan takes a snapshot of one shard after another. A
//! read that meets no writer does not write to shared memory ([`StatisticsLock`]).

use super::{Decision, Edge, Entry, Garbage, Kept, Note, Reported, Span, Store};
use crate::term::Term;
use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::mem;
use tremula_index::{Direction, Shape};
use tremula_sync::{
    Arc, CachePadded, LockDomain, ReadGuard, StatisticsConfig, StatisticsLock, StripedCounter,
    WriteGuard,
};

/// Shards of a map for concurrent writers: more than the threads that write at once on most
/// machines.
const SHARDS: u64 = 64;

/// The fewest homes of a shard that is not empty.
const FEWEST_HOMES: usize = 8;

/// A shard with more than 4 entries in 5 homes grows: beyond that, sequences of occupied places get
/// long.
const MOST_FULL: (usize, usize) = (4, 5);

/// A shard grows by a quarter, so that at least 64 of 100 homes are taken. In total growth copies
/// each entry about five times, in order; doubling would copy it twice but leave most homes empty.
const GROWTH: (usize, usize) = (5, 4);

/// The places behind the last home for which memory is reserved at once.
const TAIL: usize = 8;

/// A shard with fewer than 1 entry in this many homes shrinks.
const SHRINK_BELOW: usize = 8;

/// A concurrent map from terms, compared by `=:=`, to what is kept under them.
pub(in super::super) struct HashStore {
    shards: Box<[CachePadded<StatisticsLock<Shard>>]>,
    /// How many upper bits of a hash choose the shard.
    shard_bits: u32,
    /// The random key of the hashes, so that a client cannot choose keys of equal hashes.
    keys: RandomState,
    len: StripedCounter,
}

struct Slot {
    hash: u64,
    key: Term,
    kept: Kept,
}

#[derive(Default)]
struct Shard {
    /// The homes, and behind them more places for the entries of the last homes.
    places: Vec<Option<Slot>>,
    homes: usize,
    len: usize,
    /// How many upper bits all hashes here have in common.
    shard_bits: u32,
    /// These bits.
    number: u64,
}

const _: () = assert!(size_of::<Option<Slot>>() == 32);

/// A key and its hash.
#[derive(Clone, Copy)]
struct Sought<'a> {
    hash: u64,
    key: &'a Term,
}

impl HashStore {
    /// An empty map; `concurrent` if many threads will write to it.
    pub(in super::super) fn new(concurrent: bool) -> Self {
        let count: u64 = if concurrent { SHARDS } else { 1 };
        let shard_bits = count.ilog2();
        let domain = Arc::new(LockDomain::new(StatisticsConfig::default()));
        let lock = |number| {
            let shard = Shard {
                shard_bits,
                number,
                ..Shard::default()
            };
            CachePadded::new(StatisticsLock::new(shard, Arc::clone(&domain)))
        };
        Self {
            shards: (0..count).map(lock).collect(),
            shard_bits,
            keys: RandomState::new(),
            len: StripedCounter::new(),
        }
    }

    #[inline]
    fn seek<'a>(&self, key: &'a Term) -> Sought<'a> {
        let mut hasher = self.keys.build_hasher();
        key.hash_exact(&mut hasher);
        Sought {
            hash: hasher.finish(),
            key,
        }
    }

    #[inline]
    fn index_of(&self, hash: u64) -> usize {
        upper_bits(hash, self.shard_bits) as usize
    }

    #[inline]
    fn read(&self, hash: u64) -> ReadGuard<'_, Shard> {
        self.shards[self.index_of(hash)].read()
    }

    #[inline]
    fn write(&self, hash: u64) -> WriteGuard<'_, Shard> {
        self.shards[self.index_of(hash)].write()
    }

    /// The shards from that of `low` to that of `high`, in this direction.
    fn shards_of(
        &self,
        low: Option<Sought<'_>>,
        high: Option<Sought<'_>>,
        direction: Direction,
    ) -> impl Iterator<Item = &StatisticsLock<Shard>> {
        let first = low.map_or(0, |sought| self.index_of(sought.hash));
        let last = high.map_or(self.shards.len() - 1, |sought| self.index_of(sought.hash));
        let shards = directed(first..(last + 1).max(first), direction);
        shards.map(|index| &*self.shards[index])
    }

    /// The first entry strictly between these keys in this direction.
    fn first_between(
        &self,
        low: Option<Sought<'_>>,
        high: Option<Sought<'_>>,
        direction: Direction,
    ) -> Option<Entry> {
        self.shards_of(low, high, direction).find_map(|shard| {
            let shard = shard.read();
            let slot = shard.between(low, high, direction).next()?;
            Some((slot.key.clone(), slot.kept.clone()))
        })
    }

    fn beyond<'a>(&self, edge: Edge<'a>) -> Option<Sought<'a>> {
        match edge {
            Edge::Open => None,
            Edge::Beyond(key) => Some(self.seek(key)),
            Edge::Bound(bound) => unreachable!("{bound} is no place in the order of hashes"),
        }
    }
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

/// The upper bits of a hash, as a number.
#[inline]
const fn upper_bits(hash: u64, count: u32) -> u64 {
    // Two shifts, because a shift by 64 bits would overflow.
    hash >> 1 >> (63 - count)
}

impl Slot {
    #[inline]
    fn compare(&self, sought: Sought<'_>) -> Ordering {
        match self.hash.cmp(&sought.hash) {
            Ordering::Equal => self.key.cmp_exact(sought.key),
            decided => decided,
        }
    }
}

impl Shard {
    /// The first place for an entry with this hash. The shard must have homes.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        let own_bits = hash << self.shard_bits;
        ((u128::from(own_bits) * self.homes as u128) >> 64) as usize
    }

    /// The place of the key; if the shard lacks it, the place that it would have: an empty one,
    /// that of a greater entry, or the one behind the last.
    #[inline]
    fn find(&self, sought: Sought<'_>) -> Result<usize, usize> {
        if self.homes == 0 {
            return Err(0);
        }
        let mut place = self.home(sought.hash);
        while let Some(Some(slot)) = self.places.get(place) {
            match slot.compare(sought) {
                Ordering::Less => place += 1,
                Ordering::Equal => return Ok(place),
                Ordering::Greater => break,
            }
        }
        Err(place)
    }

    #[inline]
    fn get(&self, sought: Sought<'_>) -> Option<&Slot> {
        self.places.get(self.find(sought).ok()?)?.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, sought: Sought<'_>) -> Option<&mut Slot> {
        let place = self.find(sought).ok()?;
        self.places.get_mut(place)?.as_mut()
    }

    /// Adds an entry whose key the shard lacks.
    fn add(&mut self, slot: Slot) {
        if (self.len + 1) * MOST_FULL.1 > self.homes * MOST_FULL.0 {
            self.resize((self.homes * GROWTH.0 / GROWTH.1).max(FEWEST_HOMES));
        }
        let sought = Sought {
            hash: slot.hash,
            key: &slot.key,
        };
        let (Ok(place) | Err(place)) = self.find(sought);
        let occupied = self.places[place..].iter().position(Option::is_none);
        let empty = place + occupied.unwrap_or(self.places.len() - place);
        if empty == self.places.len() {
            if empty == self.places.capacity() {
                // `push` would double the capacity.
                self.places.reserve_exact(TAIL);
            }
            self.places.push(None);
        }
        self.places[place..=empty].rotate_right(1);
        self.places[place] = Some(slot);
        self.len += 1;
    }

    fn remove(&mut self, sought: Sought<'_>) -> Option<Slot> {
        let place = self.find(sought).ok()?;
        let removed = self.places[place].take();
        // Entries that follow without a gap and are not at home move one place towards it.
        let mut end = place + 1;
        while let Some(Some(slot)) = self.places.get(end)
            && self.home(slot.hash) < end
        {
            end += 1;
        }
        self.places[place..end].rotate_left(1);
        self.removed(1);
        removed
    }

    /// Subtracts removed entries from the length, and shrinks the shard if few are left.
    fn removed(&mut self, count: usize) {
        self.len -= count;
        if self.len == 0 {
            self.places = Vec::new();
            self.homes = 0;
        } else if self.len * SHRINK_BELOW < self.homes && self.homes > FEWEST_HOMES {
            self.resize((self.len * 2).max(FEWEST_HOMES));
        }
    }

    /// Copies the entries, in their order, to an array with this many homes.
    fn resize(&mut self, homes: usize) {
        let old = mem::take(&mut self.places);
        self.homes = homes;
        let mut places = Vec::with_capacity(homes + TAIL);
        for slot in old.into_iter().flatten() {
            let home = self.home(slot.hash);
            places.resize_with(places.len().max(home), || None);
            places.push(Some(slot));
        }
        places.resize_with(places.len().max(homes), || None);
        self.places = places;
    }

    /// The entries strictly between these keys, in this direction.
    fn between<'a>(
        &'a self,
        low: Option<Sought<'_>>,
        high: Option<Sought<'_>>,
        direction: Direction,
    ) -> impl Iterator<Item = &'a Slot> {
        let (first, end) = self.places_between(low, high);
        directed(self.places[first..end].iter(), direction).filter_map(Option::as_ref)
    }

    /// The places of the entries strictly between these keys.
    fn places_between(&self, low: Option<Sought<'_>>, high: Option<Sought<'_>>) -> (usize, usize) {
        // A key of another shard is before or behind every entry of this one.
        let shard_of = |sought: Sought<'_>| upper_bits(sought.hash, self.shard_bits);
        let place = |sought: Sought<'_>, behind: bool| match shard_of(sought).cmp(&self.number) {
            Ordering::Less => 0,
            Ordering::Greater => self.places.len(),
            Ordering::Equal => match self.find(sought) {
                Ok(place) => place + usize::from(behind),
                Err(place) => place,
            },
        };
        let first = low.map_or(0, |low| place(low, true));
        let end = high.map_or(self.places.len(), |high| place(high, false));
        (first, end.max(first))
    }
}

impl Store for HashStore {
    fn engine(&self) -> &'static str {
        "hash"
    }

    fn get_with(&self, key: &Term, read: &mut dyn FnMut(&Kept)) -> bool {
        let sought = self.seek(key);
        let shard = self.read(sought.hash);
        shard.get(sought).map(|slot| read(&slot.kept)).is_some()
    }

    fn insert(&self, key: Term, kept: Kept, note: Note<'_>) -> Option<Kept> {
        let sought = self.seek(&key);
        let hash = sought.hash;
        let mut shard = self.write(hash);
        note.put(&key, &kept);
        if let Some(slot) = shard.get_mut(sought) {
            return Some(mem::replace(&mut slot.kept, kept));
        }
        shard.add(Slot { hash, key, kept });
        self.len.add(1);
        None
    }

    fn insert_if_absent(&self, key: Term, kept: Kept, note: Note<'_>) -> bool {
        let sought = self.seek(&key);
        let hash = sought.hash;
        let mut shard = self.write(hash);
        let absent = shard.get(sought).is_none();
        if absent {
            note.put(&key, &kept);
            shard.add(Slot { hash, key, kept });
            self.len.add(1);
        }
        absent
    }

    fn remove(&self, key: &Term, note: Note<'_>) -> Option<Kept> {
        let sought = self.seek(key);
        let mut shard = self.write(sought.hash);
        let removed = shard.remove(sought)?;
        self.len.add(-1);
        note.removed(key);
        drop(shard);
        Some(removed.kept)
    }

    fn update(
        &self,
        key: Term,
        decide: &mut dyn FnMut(Option<&Kept>) -> Decision,
        mut note: Note<'_>,
    ) -> Option<Kept> {
        let sought = self.seek(&key);
        let hash = sought.hash;
        let mut shard = self.write(hash);
        match shard.get_mut(sought) {
            Some(slot) => {
                let decision = decide(Some(&slot.kept));
                note.decided(&key, true, &decision);
                match decision {
                    Decision::Put(kept) | Decision::Add(kept, _) => {
                        Some(mem::replace(&mut slot.kept, kept))
                    }
                    Decision::Keep | Decision::Expire(_) => None,
                    Decision::Remove => {
                        let removed = shard.remove(sought);
                        self.len.add(-1);
                        drop(shard);
                        removed.map(|slot| slot.kept)
                    }
                }
            }
            None => {
                let decision = decide(None);
                note.decided(&key, false, &decision);
                if let Decision::Put(kept) | Decision::Add(kept, _) = decision {
                    shard.add(Slot { hash, key, kept });
                    self.len.add(1);
                }
                None
            }
        }
    }

    fn end(&self, direction: Direction) -> Option<Entry> {
        self.first_between(None, None, direction)
    }

    fn step_with(
        &self,
        key: &Term,
        direction: Direction,
        read: &mut dyn FnMut(&Term, &Kept),
    ) -> bool {
        let from = Some(self.seek(key));
        let entry = match direction {
            Direction::Ascending => self.first_between(from, None, direction),
            Direction::Descending => self.first_between(None, from, direction),
        };
        entry.map(|(key, kept)| read(&key, &kept)).is_some()
    }

    fn scan(&self, span: Span<'_>, direction: Direction, limit: usize, out: &mut Vec<Entry>) {
        let (low, high) = (self.beyond(span.low), self.beyond(span.high));
        let end = out.len().saturating_add(limit);
        for shard in self.shards_of(low, high, direction) {
            let left = end - out.len();
            if left == 0 {
                return;
            }
            let shard = shard.read();
            let entries = shard.between(low, high, direction).take(left);
            out.extend(entries.map(|slot| (slot.key.clone(), slot.kept.clone())));
        }
    }

    fn take_all(&self, _: Reported) -> Option<Garbage> {
        let mut garbage = Garbage::default();
        for shard in &self.shards {
            let mut shard = shard.write();
            let places = mem::take(&mut shard.places);
            self.len.add(-(shard.len as isize));
            (shard.len, shard.homes) = (0, 0);
            drop(shard);
            garbage.add(places);
        }
        Some(garbage)
    }

    fn len(&self) -> usize {
        // The sum can be negative: an insertion may be counted after the removal of its entry.
        usize::try_from(self.len.sum()).unwrap_or(0)
    }

    fn structure_bytes(&self) -> usize {
        let places = self
            .shards
            .iter()
            .map(|shard| shard.read().places.capacity());
        size_of::<Self>()
            + size_of_val(&*self.shards)
            + size_of::<LockDomain>()
            + places.sum::<usize>() * size_of::<Option<Slot>>()
    }

    fn shape(&self) -> Shape {
        let (mut entries, mut longest, mut places) = (0, 0, 0);
        for shard in &self.shards {
            let shard = shard.read();
            places += shard.places.capacity();
            entries += shard.len;
            let distance = |(place, slot): (usize, &Option<Slot>)| {
                Some(place - shard.home(slot.as_ref()?.hash))
            };
            let farthest = shard.places.iter().enumerate().filter_map(distance).max();
            longest = longest.max(farthest.map_or(0, |distance| distance + 1));
        }
        let bytes = self.structure_bytes();
        Shape::new(
            self.engine(),
            vec![
                ("entries", entries as u64),
                ("shards", self.shards.len() as u64),
                ("places", places as u64),
                ("longest_probe", longest as u64),
                ("bytes", bytes as u64),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Tuple;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicBool;

    fn layout() -> super::super::Layout {
        super::super::Layout {
            key_position: 0,
            is_bag: false,
            by_value: false,
            compressed: false,
            has_equals: AtomicBool::new(false),
        }
    }

    fn kept(value: i64) -> Kept {
        layout().keep(Tuple::new([Term::from(0), Term::from(value)]))
    }

    fn value(key: &Term, kept: &Kept) -> Term {
        layout().row(key, kept)[1].clone()
    }

    /// Checks the invariants of the module for every shard.
    fn check(store: &HashStore) {
        for (number, shard) in store.shards.iter().enumerate() {
            let shard = shard.read();
            let mut last = None;
            let mut count = 0;
            for (place, slot) in shard.places.iter().enumerate() {
                let Some(slot) = slot else { continue };
                assert_eq!(store.index_of(slot.hash), number);
                let home = shard.home(slot.hash);
                assert!(home <= place && shard.places[home..place].iter().all(Option::is_some));
                assert!(last < Some(slot.hash), "keys of one hash are not met here");
                last = Some(slot.hash);
                count += 1;
            }
            assert_eq!(count, shard.len);
            assert!(shard.len * MOST_FULL.1 <= shard.homes * MOST_FULL.0);
        }
    }

    #[test]
    fn random_operations_do_what_they_do_to_a_map() {
        for concurrent in [false, true] {
            let store = HashStore::new(concurrent);
            let mut model = BTreeMap::new();
            let mut state = 7_u64;
            for step in 0..60_000_u64 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // The map grows for a while, then shrinks.
                let grows = step % 20_000 < 12_000;
                let key = (state >> 33) % if grows { 4_000 } else { 8_000 };
                let term = Term::from(key);
                let number = step as i64;
                match (state >> 20) % 4 {
                    0 | 1 if grows => {
                        let old = store.insert(term.clone(), kept(number), Note::nobody());
                        let old = old.map(|old| value(&term, &old));
                        assert_eq!(old, model.insert(key, number).map(Term::from));
                    }
                    2 => {
                        let put = store.insert_if_absent(term, kept(number), Note::nobody());
                        assert_eq!(put, !model.contains_key(&key));
                        model.entry(key).or_insert(number);
                    }
                    _ => {
                        let old = store.remove(&term, Note::nobody());
                        let old = old.map(|old| value(&term, &old));
                        assert_eq!(old, model.remove(&key).map(Term::from));
                    }
                }
                if step % 5_000 == 0 {
                    check(&store);
                }
            }
            check(&store);
            assert_eq!(store.len(), model.len());
            let mut all = Vec::new();
            store.scan(Span::ALL, Direction::Ascending, usize::MAX, &mut all);
            let mut back = Vec::new();
            store.scan(Span::ALL, Direction::Descending, usize::MAX, &mut back);
            back.reverse();
            let keys = |all: &[Entry]| all.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            assert_eq!(keys(&all), keys(&back));
            let mut by_steps = Vec::new();
            let mut next = store.end(Direction::Ascending).map(|(key, _)| key);
            while let Some(key) = next.take() {
                let read = &mut |key: &Term, _: &Kept| next = Some(key.clone());
                store.step_with(&key, Direction::Ascending, read);
                by_steps.push(key);
            }
            assert_eq!(keys(&all), by_steps);
            let mut sorted = by_steps;
            sorted.sort();
            assert_eq!(
                sorted,
                model.keys().map(|key| Term::from(*key)).collect::<Vec<_>>()
            );
            assert!(store.clear(Reported::done()).free(&mut || true));
            assert_eq!((store.len(), store.shape().get("places")), (0, Some(0)));
        }
    }
}
