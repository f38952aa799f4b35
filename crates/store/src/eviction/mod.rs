//! Which keys go when memory is short.
//!
//! # Accesses
//!
//! A key's last access or its frequency is not in the index, because then a read would write there.
//! It lies in a table of numbers, at a place that the key's hash chooses. Keys that share a place
//! share its number, so a key may look more recent than it is, never less. A number is written only
//! if it changes: a key that is read all the time costs one store a tick, not one a read.
//!
//! # Candidates
//!
//! Several walkers go through the keys of all databases in order, and begin again behind the last
//! one. They step over random numbers of keys, and each is twice as fast as the one before, so that
//! they are soon far from each other. Each eviction looks at the keys that the next few walkers
//! come to. The best candidates seen so far wait in a small pool, and the best of them goes, unless
//! it has been used meanwhile. So all keys are looked at about equally often, whatever their
//! distribution, and those of one eviction are from different places. The bias that is left: a key
//! that is inserted behind the slow walkers has a round before they come to it.

mod policy;

use crate::databases::Databases;
use crate::deadlines::Timed;
use crate::keyspace::Keyspace;
use crate::{DATABASES, Key, Value};
pub use policy::Policy;
use policy::Worth;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::time::{Duration, Instant};
use tremula_index::{Direction, KeyRange, Update};
use tremula_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use tremula_sync::{Arc, LazyLock, Mutex};

/// Walkers. The fastest steps over 64 keys at most, which costs some microseconds.
const WALKERS: usize = 7;

/// Candidates that wait for their eviction. Redis's number.
const POOL: usize = 16;

/// The time in which an access counts as now, in milliseconds. A key that is read all the time is
/// written once in it.
const TICK: u128 = 16;

/// A new key's frequency, so that it is not the first one to go. Redis's number, and so are the
/// next two.
const NEW: u32 = 5;
/// The higher this is, the more accesses each step of a frequency stands for.
const LOG_FACTOR: u32 = 10;
/// A frequency falls by one in this time, in milliseconds.
const DECAY: u128 = 60_000;

/// How keys are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionSettings {
    /// Which keys go.
    pub policy: Policy,
    /// Keys that an eviction looks at.
    pub samples: usize,
    /// Places for the accesses of keys.
    pub places: usize,
}

impl EvictionSettings {
    /// No key is evicted until [another policy](Evictor::set_policy) is chosen.
    pub(crate) const NONE: Self = Self {
        policy: Policy::NoEviction,
        samples: 5,
        places: 1 << 16,
    };
}

/// The state of evictions.
pub struct Evictor {
    /// By its place in [`Policy::ALL`].
    policy: AtomicUsize,
    samples: AtomicUsize,
    /// The places of the next line.
    places: Arc<AtomicUsize>,
    /// Allocated for the first policy that wants it.
    accesses: LazyLock<Accesses, Box<dyn FnOnce() -> Accesses + Send>>,
    sweep: Mutex<Sweep>,
    evicted: AtomicU64,
}

/// Where evictions look next.
#[derive(Default)]
struct Sweep {
    walkers: [Walker; WALKERS],
    /// The walker that steps next.
    next: usize,
    steps: u64,
    /// The best one last.
    pool: Vec<Candidate>,
    stepped_over: Vec<(Key, Value)>,
}

#[derive(Default)]
struct Walker {
    database: usize,
    after: Option<Key>,
    /// Where it is among the keys that expire.
    after_expiring: Option<Timed>,
}

struct Candidate {
    /// The higher, the more worth keeping.
    worth: u32,
    database: usize,
    key: Key,
}

impl Evictor {
    pub(crate) fn new(settings: &EvictionSettings) -> Self {
        let places = Arc::new(AtomicUsize::new(settings.places));
        let chosen = Arc::clone(&places);
        let evictor = Self {
            policy: AtomicUsize::new(settings.policy as usize),
            samples: AtomicUsize::new(settings.samples.max(1)),
            places,
            accesses: LazyLock::new(Box::new(move || Accesses::new(chosen.load(Relaxed)))),
            sweep: Mutex::default(),
            evicted: AtomicU64::new(0),
        };
        if settings.policy.wants_accesses() {
            LazyLock::force(&evictor.accesses);
        }
        evictor
    }

    /// Which keys are evicted.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy::ALL[self.policy.load(Relaxed)]
    }

    /// Lets other keys go from now on. What is known of accesses is forgotten, because policies
    /// note different things. O(places).
    ///
    /// Threads that have not seen the change yet may note a few accesses as before; then a few keys
    /// count as used at another time than they were.
    pub fn set_policy(&self, policy: Policy) {
        if policy == self.policy() {
            return;
        }
        if policy.wants_accesses() {
            self.accesses.clear();
        }
        let mut sweep = self.sweep.lock();
        sweep.pool.clear();
        self.policy.store(policy as usize, Relaxed);
    }

    /// Chooses the places for the accesses of keys, until a policy first wants them. From then on
    /// their number stays.
    pub fn set_places(&self, places: usize) {
        self.places.store(places, Relaxed);
    }

    /// The keys that an eviction looks at.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.samples.load(Relaxed)
    }

    /// Changes how many keys an eviction looks at, at least one.
    pub fn set_samples(&self, samples: usize) {
        self.samples.store(samples.max(1), Relaxed);
    }

    /// Whether accesses matter. If not, [`note_access`](Self::note_access) need not be called.
    #[must_use]
    pub fn wants_accesses(&self) -> bool {
        self.policy().wants_accesses()
    }

    /// Notes that a key of a database is being used. O(1), without a lock.
    pub fn note_access(&self, database: usize, key: &[u8]) {
        match self.policy().worth() {
            Worth::Time => self.accesses.note_time(self.accesses.hash(database, key)),
            Worth::Uses => self.accesses.note_use(self.accesses.hash(database, key)),
            Worth::Chance => {}
        }
    }

    /// How long a key of a database has not been used, if the policy goes by that. Keys
    /// share the places of their times, so the key may have been used before. O(1).
    #[must_use]
    pub fn idle(&self, database: usize, key: &[u8]) -> Option<Duration> {
        if self.policy().worth() != Worth::Time {
            return None;
        }
        let last = self.accesses.place(self.accesses.hash(database, key));
        let ticks = self.accesses.now(TICK).saturating_sub(last.load(Relaxed));
        Some(Duration::from_millis(TICK as u64) * ticks)
    }

    /// How often a key of a database is used, from 0 to 255 on a logarithmic scale, if the policy
    /// goes by that. Keys share the places of their numbers, so it may be used less often. O(1).
    #[must_use]
    pub fn frequency(&self, database: usize, key: &[u8]) -> Option<u32> {
        (self.policy().worth() == Worth::Uses).then(|| self.worth(database, key))
    }

    /// The keys evicted so far.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    fn worth(&self, database: usize, key: &[u8]) -> u32 {
        let accesses = &*self.accesses;
        let hash = accesses.hash(database, key);
        match self.policy().worth() {
            Worth::Time => accesses.place(hash).load(Relaxed),
            Worth::Uses => {
                let now = accesses.now(DECAY);
                Frequency::read(accesses.place(hash).load(Relaxed), now).count
            }
            Worth::Chance => mixed(hash ^ accesses.nanoseconds()),
        }
    }

    /// Evicts one key with its value. Returns `false` if there are no keys. O(samples · log n).
    pub(crate) fn evict(&self, databases: Databases<'_>) -> bool {
        let databases = databases.for_eviction();
        if self.policy() == Policy::VolatileTtl {
            return self.evict_next(databases);
        }
        let keyspace = databases.keyspace;
        let mut sweep = self.sweep.lock();
        loop {
            if !sweep.look(self, keyspace) && sweep.pool.is_empty() {
                return false;
            }
            let Some(best) = sweep.pool.pop() else {
                continue;
            };
            let policy = self.policy();
            let is_still = policy.worth() == Worth::Chance
                || self.worth(best.database, best.key.as_bytes()) == best.worth;
            if !is_still {
                continue;
            }
            let database = databases.database(best.database);
            let mut removed = None;
            databases.commit_anyway(|effects| {
                database.update(effects, best.key.clone(), &mut |current| {
                    // Meanwhile it may have become one that does not expire.
                    let goes = |value: &&Value| !policy.is_volatile() || value.expiry().is_some();
                    removed = current.filter(goes).cloned();
                    removed.as_ref().map_or(Update::Keep, |_| Update::Remove)
                });
            });
            if databases.values(best.database).dropped(removed) {
                if self.wants_accesses() {
                    self.accesses.forget(best.database, best.key.as_bytes());
                }
                self.evicted.fetch_add(1, Relaxed);
                return true;
            }
        }
    }
}

impl Evictor {
    /// Evicts the key that expires next.
    fn evict_next(&self, databases: Databases<'_>) -> bool {
        loop {
            let first = |number: usize| {
                let deadlines = databases.database(number).deadlines();
                Some((deadlines.behind(None, 1).pop()?, number))
            };
            let Some((entry, number)) = (0..DATABASES).filter_map(first).min() else {
                return false;
            };
            let database = databases.database(number);
            let removed = databases.commit_anyway(|effects| database.remove_due(effects, &entry));
            if databases.values(number).dropped(removed) {
                self.evicted.fetch_add(1, Relaxed);
                return true;
            }
        }
    }
}

impl Sweep {
    /// Looks at some keys, and puts the best candidates among them into the pool. Returns `false`
    /// if no database has keys.
    fn look(&mut self, evictor: &Evictor, keyspace: &Keyspace) -> bool {
        for _ in 0..evictor.samples() {
            let found = if evictor.policy().is_volatile() {
                self.step_expiring(keyspace)
            } else {
                self.step(keyspace)
            };
            let Some((database, key)) = found else {
                return false;
            };
            let worth = evictor.worth(database, key.as_bytes());
            // Behind all that are worth more.
            let at = self.pool.partition_point(|other| other.worth > worth);
            let is_there = |other: &Candidate| other.database == database && other.key == key;
            if self.pool.iter().any(is_there) || (at == 0 && self.pool.len() >= POOL) {
                continue;
            }
            let candidate = Candidate {
                worth,
                database,
                key,
            };
            self.pool.insert(at, candidate);
            if self.pool.len() > POOL {
                self.pool.remove(0);
            }
        }
        true
    }

    /// The walker whose turn it is, and how many keys it steps over.
    fn next_walker(&mut self) -> (usize, usize) {
        let number = self.next;
        self.next = (number + 1) % WALKERS;
        self.steps += 1;
        let stride = 1 + mixed(self.steps) as usize % (1 << number);
        (number, stride)
    }

    /// As [`step`](Self::step), through the keys that expire, by time.
    fn step_expiring(&mut self, keyspace: &Keyspace) -> Option<(usize, Key)> {
        let (number, stride) = self.next_walker();
        let walker = &mut self.walkers[number];
        for _ in 0..=DATABASES {
            let database = walker.database;
            let deadlines = keyspace.database(database).deadlines();
            let mut passed = deadlines.behind(walker.after_expiring.as_ref(), stride);
            let is_last = passed.len() < stride;
            let found = passed.pop();
            if is_last {
                walker.database = (database + 1) % DATABASES;
                walker.after_expiring = None;
            } else {
                walker.after_expiring.clone_from(&found);
            }
            if let Some(entry) = found {
                return Some((database, entry.key()));
            }
        }
        None
    }

    /// Moves the next walker on, and returns the key that it comes to, with its database.
    fn step(&mut self, keyspace: &Keyspace) -> Option<(usize, Key)> {
        let (number, stride) = self.next_walker();
        let walker = &mut self.walkers[number];
        // Once through all databases, and the rest of the first one.
        for _ in 0..=DATABASES {
            self.stepped_over.clear();
            let low = walker.after.as_ref();
            keyspace.database(walker.database).scan_all(
                KeyRange::new(
                    low.map_or(Bound::Unbounded, Bound::Excluded),
                    Bound::Unbounded,
                ),
                Direction::Ascending,
                stride,
                &mut self.stepped_over,
            );
            let database = walker.database;
            let is_last = self.stepped_over.len() < stride;
            let found = self.stepped_over.pop().map(|(key, _)| key);
            if is_last {
                walker.database = (database + 1) % DATABASES;
                walker.after = None;
            } else {
                walker.after.clone_from(&found);
            }
            if let Some(key) = found {
                self.stepped_over.clear();
                return Some((database, key));
            }
        }
        None
    }
}

/// What is known of the accesses to keys.
struct Accesses {
    places: Box<[AtomicU32]>,
    hasher: RandomState,
    began: Instant,
}

/// How often keys of one place were used, on a logarithmic scale, as of a time.
struct Frequency {
    count: u32,
}

impl Frequency {
    /// The frequency that a place holds, less what it has lost until `now`.
    fn read(place: u32, now: u32) -> Self {
        let (since, count) = (place >> 8, place & 0xff);
        let passed = now.wrapping_sub(since) & 0x00ff_ffff;
        Self {
            count: count.saturating_sub(passed),
        }
    }
}

impl Accesses {
    fn new(places: usize) -> Self {
        Self {
            places: (0..places.next_power_of_two())
                .map(|_| AtomicU32::new(0))
                .collect(),
            hasher: RandomState::new(),
            began: Instant::now(),
        }
    }

    fn hash(&self, database: usize, key: &[u8]) -> u64 {
        self.hasher.hash_one((database, key))
    }

    fn place(&self, hash: u64) -> &AtomicU32 {
        // The number of places is a power of two.
        &self.places[hash as usize & (self.places.len() - 1)]
    }

    /// The time in units of `unit` milliseconds, from 1 on.
    fn now(&self, unit: u128) -> u32 {
        (self.began.elapsed().as_millis() / unit) as u32 + 1
    }

    fn nanoseconds(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn note_time(&self, hash: u64) {
        let (place, now) = (self.place(hash), self.now(TICK));
        if place.load(Relaxed) != now {
            place.store(now, Relaxed);
        }
    }

    fn note_use(&self, hash: u64) {
        let (place, now) = (self.place(hash), self.now(DECAY));
        let before = place.load(Relaxed);
        let mut count = Frequency::read(before, now).count;
        if count < NEW {
            count = NEW;
        } else if count < u32::from(u8::MAX) {
            // Counts up with a probability that falls as the count grows.
            let odds = (count - NEW) * LOG_FACTOR + 1;
            if mixed(hash ^ self.nanoseconds()).is_multiple_of(odds) {
                count += 1;
            }
        }
        // A lost race loses one access.
        let after = now << 8 | count;
        if after != before {
            place.store(after, Relaxed);
        }
    }

    /// Makes every key one that was never used.
    fn clear(&self) {
        self.places.iter().for_each(|place| place.store(0, Relaxed));
    }

    /// Makes the key's place that of a key that was never used.
    fn forget(&self, database: usize, key: &[u8]) {
        self.place(self.hash(database, key)).store(0, Relaxed);
    }
}

/// A number whose bits all depend on all bits of `seed`: the last step of splitmix64 (Steele et
/// al., "Fast splittable pseudorandom number generators", 2014).
fn mixed(seed: u64) -> u32 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Effects;
    use crate::{Engine, Store, StoreConfig};

    const KEYS: u32 = 1000;

    /// A store with keys that were all used once, in two databases.
    fn filled(policy: Policy) -> Store {
        let settings = EvictionSettings {
            policy,
            samples: 5,
            places: 1 << 16,
        };
        let config = StoreConfig::new(Engine::Aspen).eviction(Some(settings));
        let store = Store::new(&config).expect("a fit engine");
        for number in 0..KEYS {
            let key = number.to_be_bytes();
            let database = number as usize % 2;
            store.database(database).insert(
                &mut Effects::new(None),
                Key::from(&key[..]),
                Value::from(&b"v"[..]),
            );
            note(&store, number);
        }
        store
    }

    fn note(store: &Store, number: u32) {
        let evictor = store.eviction();
        evictor.note_access(number as usize % 2, &number.to_be_bytes());
    }

    /// How many of the keys that `chosen` chooses are left.
    fn left(store: &Store, chosen: impl Fn(u32) -> bool) -> usize {
        let there = |number: &u32| {
            let key = Key::from(&number.to_be_bytes()[..]);
            store.database(*number as usize % 2).contains_key(&key)
        };
        (0..KEYS)
            .filter(|number| chosen(*number))
            .filter(there)
            .count()
    }

    /// Half of the keys go. A tenth is in use, in a way that the policy values.
    fn survivors_in_use(policy: Policy) -> (usize, usize) {
        let in_use = |number: u32| number.is_multiple_of(10);
        let store = filled(policy);
        std::thread::sleep(std::time::Duration::from_millis(3 * TICK as u64));
        for _ in 0..200 {
            (0..KEYS)
                .filter(|number| in_use(*number))
                .for_each(|number| note(&store, number));
        }
        for _ in 0..KEYS / 2 {
            assert!(store.evict_one());
        }
        assert_eq!(left(&store, |_| true), KEYS as usize / 2);
        let evictor = store.evictor().expect("an evictor");
        assert_eq!(evictor.evicted(), u64::from(KEYS) / 2);
        (left(&store, in_use), left(&store, |number| !in_use(number)))
    }

    #[test]
    fn keys_in_use_survive_others() {
        for policy in [Policy::Lru, Policy::Lfu] {
            let (in_use, others) = survivors_in_use(policy);
            assert_eq!(in_use + others, KEYS as usize / 2);
            assert!(in_use >= 95, "{policy}: {in_use} of 100");
        }
    }

    #[test]
    fn random_evictions_spare_nobody() {
        let (in_use, _) = survivors_in_use(Policy::Random);
        assert!((20..80).contains(&in_use), "{in_use} of 100");
    }

    #[test]
    fn evictions_end_when_no_key_is_left() {
        let store = filled(Policy::Lru);
        for _ in 0..KEYS {
            assert!(store.evict_one());
        }
        assert!(!store.evict_one());
        assert!(store.databases().all(|database| database.is_empty()));
        assert!(
            !Store::new(&StoreConfig::new(Engine::Aspen))
                .expect("a fit engine")
                .evict_one()
        );
    }

    #[test]
    fn a_policy_changes_while_keys_are_used() {
        let store = filled(Policy::NoEviction);
        assert!(store.evictor().is_none() && !store.evict_one());
        let evictor = store.eviction();
        evictor.set_policy(Policy::Lfu);
        let (used, other) = (0_u32.to_be_bytes(), 2_u32.to_be_bytes());
        (0..100).for_each(|_| note(&store, 0));
        let frequency = |key| evictor.frequency(0, key).expect("it is counted");
        assert!(frequency(&used) > frequency(&other));
        assert_eq!(evictor.idle(0, &used), None);
        evictor.set_policy(Policy::Lru);
        note(&store, 0);
        assert_eq!(evictor.frequency(0, &used), None);
        let idle = |key| evictor.idle(0, key).expect("it is noted");
        assert!(idle(&used) < Duration::from_secs(60) && idle(&used) <= idle(&other));
        assert!(store.evict_one() && evictor.evicted() == 1);
        evictor.set_policy(Policy::Random);
        assert!(store.evict_one());
        evictor.set_policy(Policy::NoEviction);
        assert!(!store.evict_one());
    }

    #[test]
    fn places_are_made_for_the_first_policy_that_wants_them() {
        let store = filled(Policy::NoEviction);
        let evictor = store.eviction();
        evictor.set_places(1 << 8);
        evictor.set_policy(Policy::Lru);
        assert_eq!(evictor.accesses.places.len(), 1 << 8);
        evictor.set_places(1 << 9);
        evictor.set_policy(Policy::Lfu);
        assert_eq!(evictor.accesses.places.len(), 1 << 8, "they stay");
    }

    #[test]
    fn policies_have_the_names_that_redis_gives_them() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        let error = "volatile-mru".parse::<Policy>().unwrap_err();
        assert!(
            error.contains("'volatile-mru'") && error.contains("volatile-lru"),
            "{error}"
        );
    }
}
