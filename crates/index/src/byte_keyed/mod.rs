//! The code that the engines of byte keys share: those that use nothing of a key but its byte form,
//! [`Art`] and [`Masstree`].
//!
//! An engine implements four small traits, each next to the code that does the work: [`Trie`], and
//! for the operations on it [`Lookups`], [`Writes`] and [`Walks`]. Their provided methods do the
//! rest: batches of lookups, scans, visits, the first and the last entry. `ordered_index!`
//! implements the ordered index with them.
//!
//! [`Art`]: crate::Art
//! [`Masstree`]: crate::Masstree

mod bounds;
mod item;
mod lookups;
mod record;
mod walks;

pub(crate) use bounds::{AsGiven, Bounds, ByteForm};
pub(crate) use item::{Item, ItemKey, key_of, retire_all};
pub(crate) use lookups::Lookups;
pub(crate) use record::{Record, RecordRef};
pub(crate) use walks::{Hold, Walk, Walks};

use crate::contract::{Storable, Update};
use crate::key::ByteKey;
use tremula_sync::reclaim::{Collector, Guard};
use tremula_sync::{Backoff, Restart, StripedCounter, retry};

/// A trie of keys in their byte forms.
pub(crate) trait Trie<K: ByteKey, V: Storable>: Sized {
    /// How the trie obtains the byte forms of keys.
    type Form: ByteForm<K>;

    /// Frees what was unlinked.
    fn collector(&self) -> &Collector;

    /// Counts the restarts.
    fn restarts(&self) -> &StripedCounter;

    /// Runs `attempt` until it succeeds; counts the restarts.
    #[inline(always)]
    fn persist<R>(&self, attempt: impl FnMut() -> Result<R, Restart>) -> R {
        retry(attempt, || self.restarts().add(1))
    }

    /// Runs `attempt` until it succeeds, at most `times`; counts the restarts.
    fn attempt<R>(
        &self,
        times: usize,
        mut attempt: impl FnMut() -> Result<R, Restart>,
    ) -> Option<R> {
        let backoff = Backoff::new();
        for _ in 0..times {
            if let Ok(done) = attempt() {
                return Some(done);
            }
            self.restarts().add(1);
            backoff.wait();
        }
        None
    }
}

/// Attempts to change one entry. Each has to be repeated after a [`Restart`].
pub(crate) trait Writes<K: ByteKey, V: Storable>: Trie<K, V> {
    /// Stores the entry, and takes it out of `entry`. If the key is present and `replaces` is
    /// false, it leaves both alone. Returns the value that was replaced.
    fn try_put(
        &self,
        entry: &mut Option<(K, V)>,
        replaces: bool,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart>;

    /// Removes a key. Returns its value.
    fn try_remove(&self, key: &K, guard: &Guard<'_>) -> Result<Option<V>, Restart>;

    /// Passes the value to `decide`, which is called once: no restart follows it. Takes the key if
    /// it stores it.
    fn try_update(
        &self,
        key: &mut Option<K>,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart>;
}

/// The methods of an ordered index, for an engine that implements the traits of this module. The
/// engine has fields `collector` and `len`, and methods `describe` for its shape and
/// `check_at_rest` for its invariants.
macro_rules! ordered_index {
    ($name:literal) => {
        fn engine(&self) -> &'static str {
            $name
        }

        fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
            self.find(key, |value| read(value)).is_some()
        }

        #[inline]
        fn get(&self, key: &K) -> Option<V> {
            self.find(key, V::clone)
        }

        fn can_seek(&self, form: &dyn crate::kit::Form<K>) -> bool {
            form.read_bytes(&mut |_| ())
        }

        fn seek(&self, form: &dyn crate::kit::Form<K>, read: &mut dyn FnMut(&V)) -> bool {
            self.find(crate::kit::Sought::Form(form), |value| read(value))
                .is_some()
        }

        fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
            self.look_up_many(keys, out);
        }

        fn insert(&self, key: K, value: V) -> Option<V> {
            let guard = self.collector.pin();
            let mut entry = Some((key, value));
            self.persist(|| self.try_put(&mut entry, true, &guard))
        }

        fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
            let guard = self.collector.pin();
            let mut entry = Some((key, value));
            self.persist(|| self.try_put(&mut entry, false, &guard));
            entry.map_or(Ok(()), |(_, value)| Err(value))
        }

        fn remove(&self, key: &K) -> Option<V> {
            let guard = self.collector.pin();
            self.persist(|| self.try_remove(key, &guard))
        }

        fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
            let guard = self.collector.pin();
            let mut key = Some(key);
            self.persist(|| self.try_update(&mut key, decide, &guard))
        }

        fn first(&self) -> Option<(K, V)> {
            self.first_of(KeyRange::all(), Direction::Ascending)
        }

        fn last(&self) -> Option<(K, V)> {
            self.first_of(KeyRange::all(), Direction::Descending)
        }

        fn next(&self, key: &K) -> Option<(K, V)> {
            let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
            self.first_of(above, Direction::Ascending)
        }

        fn prev(&self, key: &K) -> Option<(K, V)> {
            let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
            self.first_of(below, Direction::Descending)
        }

        fn pop_first(&self) -> Option<(K, V)> {
            self.pop(Direction::Ascending)
        }

        fn pop_last(&self) -> Option<(K, V)> {
            self.pop(Direction::Descending)
        }

        fn scan(
            &self,
            range: KeyRange<'_, K>,
            direction: Direction,
            limit: usize,
            out: &mut Vec<(K, V)>,
        ) {
            self.copy_range(range, direction, limit, out);
        }

        fn range(
            &self,
            range: KeyRange<'_, K>,
            direction: Direction,
            visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
        ) {
            self.visit_range(range, direction, visit);
        }

        fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
            self.cut_range(range)
        }

        fn len(&self) -> usize {
            // The removal of an entry may be counted before its insertion.
            usize::try_from(self.len.sum()).unwrap_or(0)
        }

        fn shape(&self) -> Shape {
            self.describe()
        }

        fn check_invariants(&self) {
            if cfg!(debug_assertions) {
                self.check_at_rest();
            }
        }
    };
}

pub(crate) use ordered_index;
