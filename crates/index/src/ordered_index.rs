//! The trait that every index offers.

use crate::contract::{Direction, Implementation, KeyRange, Shape, Update, visit_in_batches};
use crate::form::Form;
use crate::reentry;
use crate::snapshot::{NOT_BEGUN_HERE, SnapshotCursor};
use crate::transactional::Transactional;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// A concurrent ordered map from `K` to `V`, shared by reference between threads.
///
/// The trait is object-safe, so that a table, the server and the lab choose an engine at run
/// time. [`OrderedMap`](crate::OrderedMap) puts friendlier methods on top of it.
///
/// # Consistency
///
/// Every method except [`range`](Self::range), [`len`](Self::len), [`is_empty`](Self::is_empty) and
/// [`shape`](Self::shape) is linearizable in every engine whose [facts](crate::Engine::facts) say
/// [`Scans::OneMoment`](crate::Scans::OneMoment). [`Scans::Ordered`](crate::Scans::Ordered) says
/// what the other engines promise.
///
/// # User code
///
/// `K::cmp`, `K::clone`, `V::clone` and the closures given to [`get_with`](Self::get_with),
/// [`step_with`](Self::step_with) and [`update`](Self::update) may run while the index holds an
/// internal lock: they must be brief and must not call the same index. If a closure does, a debug
/// build panics on every engine. A release build does not check: the thread may wait for ever for a
/// lock that it holds itself, as with `ca_tree`, `locked` and, in `update`, `b_tree`; or the call
/// may work, which no engine promises. All this code may panic: the panic is passed on, the index
/// stays usable, and the operation either happened or did not. The closure of
/// [`range`](Self::range) runs with no lock held and may do anything.
///
/// `K::drop` and `V::drop` run with no lock held and may call the same index: an operation releases
/// its locks before it drops keys and values. Only what is dropped because the user code named
/// above panics may be dropped under a lock.
///
/// # When values are dropped
///
/// A value that was removed or replaced, and a key that was removed, are dropped within 4,096
/// operations of any threads on the index, unless a thread stays inside the index meanwhile (for
/// instance in the closure of [`range`](Self::range)); at the latest they are dropped with the
/// index. So an operation may run the `Drop` of what another thread has removed. If that panics,
/// the panic goes on from there, after the operation has happened. [`remove`](Self::remove),
/// [`insert`](Self::insert), [`update`](Self::update) and the `pop`s return the value itself if no
/// other thread is inside the index, otherwise a copy.
pub trait OrderedIndex<K: Ord + Clone, V: Clone>: Send + Sync {
    /// The engine's name as the command line spells it, for instance `"ca_tree"`.
    fn engine(&self) -> &'static str;

    /// If `key` is present, calls `read` once with its value. Returns whether it did. Copies
    /// nothing.
    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool;

    /// A copy of the value under `key`.
    fn get(&self, key: &K) -> Option<V> {
        let mut found = None;
        self.get_with(key, &mut |value| found = Some(value.clone()));
        found
    }

    /// Whether `key` is present.
    fn contains_key(&self, key: &K) -> bool {
        self.get_with(key, &mut |_| ())
    }

    /// If the key that `form` stands for is present, calls `read` once with its value. Returns
    /// whether it did. Copies nothing if the engine can look for the form.
    #[doc(hidden)]
    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool;

    /// Whether the engine can look for a form as it does for a key.
    #[doc(hidden)]
    fn can_seek(&self, form: &dyn Form<K>) -> bool;

    /// Appends to `out`, for each of `keys` in turn, a copy of its value or `None`. Each lookup is
    /// linearizable by itself, but they need not be of one moment. An engine may overlap the cache
    /// misses of many lookups, so prefer this where keys come in batches.
    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        out.extend(keys.iter().map(|key| self.get(key)));
    }

    /// Stores `value` under `key` and returns the value that it replaced. If an equal key is
    /// present, the index keeps that key.
    fn insert(&self, key: K, value: V) -> Option<V>;

    /// Stores `value` under `key` if the key is absent.
    ///
    /// # Errors
    ///
    /// Returns `value` if the key is present.
    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V>;

    /// Removes `key` and returns its value.
    fn remove(&self, key: &K) -> Option<V>;

    /// Shows the value under `key`, or `None`, to `decide` exactly once and carries out what it
    /// decides, as one atomic step. Returns the value that was replaced or removed, if any.
    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V>;

    /// The entry with the smallest key.
    fn first(&self) -> Option<(K, V)>;

    /// The entry with the largest key.
    fn last(&self) -> Option<(K, V)>;

    /// The entry with the smallest key strictly above `key`, which need not be present.
    fn next(&self, key: &K) -> Option<(K, V)>;

    /// The entry with the largest key strictly below `key`, which need not be present.
    fn prev(&self, key: &K) -> Option<(K, V)>;

    /// If there is a next entry in this direction, as returned by [`next`](Self::next) or
    /// [`prev`](Self::prev), calls `read` once with it. Returns whether it did. Copies nothing in
    /// an engine that can avoid it.
    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        let entry = match direction {
            Direction::Ascending => self.next(key),
            Direction::Descending => self.prev(key),
        };
        entry.map(|(key, value)| read(&key, &value)).is_some()
    }

    /// Removes and returns the entry with the smallest key.
    fn pop_first(&self) -> Option<(K, V)>;

    /// Removes and returns the entry with the largest key.
    fn pop_last(&self) -> Option<(K, V)>;

    /// Appends to `out` copies of the first `limit` entries of `range` in the order of
    /// `direction`, all as of one moment if the engine's facts say
    /// [`Scans::OneMoment`](crate::Scans::OneMoment).
    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    );

    /// Visits the entries of `range` in the order of `direction` until `visit` breaks.
    ///
    /// The closure runs with no lock held: [`scan`](Self::scan) copies the entries out in batches
    /// of [`FIRST_BATCH`](crate::FIRST_BATCH) to [`LAST_BATCH`](crate::LAST_BATCH). Not
    /// linearizable as a whole: each batch is as of one moment, later batches as of later moments.
    /// Keys come in strict order without duplicates, and a key that is present throughout is
    /// visited. Use `scan` or [`snapshot`](Self::snapshot) for one moment.
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        visit_in_batches(
            range,
            direction,
            |rest, size, batch| self.scan(rest, direction, size, batch),
            visit,
        );
    }

    /// A copy of the whole `range`, ascending, as of one moment; `None` from an engine that
    /// cannot give one.
    fn snapshot(&self, range: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        let mut entries = Vec::new();
        self.scan(range, Direction::Ascending, usize::MAX, &mut entries);
        Some(entries)
    }

    /// Begins to read `range`, ascending, as it is at this moment, without copying it now:
    /// [`read_snapshot`](Self::read_snapshot) reads it, and a writer that changes a leaf (some
    /// hundred entries) after this keeps for the cursor what that held: it notes the entry as it
    /// was, and copies the leaf when fifteen others have changed there. So no writer is held up,
    /// however long the cursor lives. Linearizable. O(1).
    ///
    /// `None` from an engine that cannot: all but `b_tree` and `aspen`; and `aspen` where the keys
    /// are numbers, but the values are no plain words (an integer, a float, a `bool`).
    /// [`snapshot`](Self::snapshot) copies the range there.
    ///
    /// ```
    /// use tremula_index::{KeyRange, OlcBTree, OrderedIndex};
    ///
    /// let tree = OlcBTree::<String, u32>::new();
    /// (0..1000).for_each(|n| drop(tree.insert(format!("key {n:04}"), n)));
    /// let mut cursor = tree.begin_snapshot(KeyRange::all()).ok_or("not this engine")?;
    /// tree.remove_range(KeyRange::all());
    /// let mut entries = Vec::new();
    /// while tree.read_snapshot(&mut cursor, 100, &mut entries) {}
    /// assert_eq!(entries.len(), 1000);
    /// # Ok::<(), &str>(())
    /// ```
    fn begin_snapshot(&self, range: KeyRange<'_, K>) -> Option<SnapshotCursor<K, V>> {
        let _ = range;
        None
    }

    /// Appends the next entries of a snapshot to `out`: `wanted`, or up to some hundreds more, or
    /// fewer if it ends. Returns whether it may go on. O(log n + entries); locks a leaf at a time.
    ///
    /// # Panics
    ///
    /// Another index has begun the snapshot.
    fn read_snapshot(
        &self,
        cursor: &mut SnapshotCursor<K, V>,
        wanted: usize,
        out: &mut Vec<(K, V)>,
    ) -> bool {
        let _ = (cursor, wanted, out);
        panic!("{NOT_BEGUN_HERE}");
    }

    /// Removes every entry of `range` and returns how many there were: as one atomic step if the
    /// engine's facts say [`Scans::OneMoment`](crate::Scans::OneMoment).
    fn remove_range(&self, range: KeyRange<'_, K>) -> usize;

    /// The number of entries: exact when quiescent, otherwise off by at most the changes under way.
    fn len(&self) -> usize;

    /// Whether there are no entries, as exact as [`len`](Self::len).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the index looks like now. Visits the whole structure.
    fn shape(&self) -> Shape;

    /// Steps over several entries at once, and closures under locks; `None` from an engine whose
    /// facts do not say [`transactional`](crate::Facts::transactional).
    fn transactional(&self) -> Option<&dyn Transactional<K, V>>;
}

/// Every engine is an index. In a debug build, a closure that calls the index that is running it
/// panics.
impl<K: Ord + Clone, V: Clone, I: Implementation<K, V> + ?Sized> OrderedIndex<K, V> for I {
    #[inline]
    fn engine(&self) -> &'static str {
        Implementation::engine(self)
    }

    #[inline]
    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        reentry::check(self);
        #[cfg(all(debug_assertions, not(any(loom, shuttle))))]
        let read = &mut |value: &V| reentry::during(self, || read(value));
        Implementation::get_with(self, key, read)
    }

    #[inline]
    fn get(&self, key: &K) -> Option<V> {
        reentry::check(self);
        Implementation::get(self, key)
    }

    #[inline]
    fn contains_key(&self, key: &K) -> bool {
        reentry::check(self);
        Implementation::contains_key(self, key)
    }

    #[inline]
    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        Implementation::can_seek(self, form)
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        reentry::check(self);
        if Implementation::can_seek(self, form) {
            #[cfg(all(debug_assertions, not(any(loom, shuttle))))]
            let read = &mut |value: &V| reentry::during(self, || read(value));
            return Implementation::seek(self, form, read);
        }
        // From the first key on.
        let mut found = None;
        let visit = &mut |key: &K, value: &V| match form.compare(key) {
            Ordering::Greater => ControlFlow::Continue(()),
            Ordering::Equal => {
                found = Some(value.clone());
                ControlFlow::Break(())
            }
            Ordering::Less => ControlFlow::Break(()),
        };
        Implementation::range(self, KeyRange::all(), Direction::Ascending, visit);
        found.map(|value| read(&value)).is_some()
    }

    #[inline]
    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        reentry::check(self);
        Implementation::get_many(self, keys, out);
    }

    #[inline]
    fn insert(&self, key: K, value: V) -> Option<V> {
        reentry::check(self);
        Implementation::insert(self, key, value)
    }

    #[inline]
    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        reentry::check(self);
        Implementation::insert_if_absent(self, key, value)
    }

    #[inline]
    fn remove(&self, key: &K) -> Option<V> {
        reentry::check(self);
        Implementation::remove(self, key)
    }

    #[inline]
    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        reentry::check(self);
        #[cfg(all(debug_assertions, not(any(loom, shuttle))))]
        let decide = &mut |value: Option<&V>| reentry::during(self, || decide(value));
        Implementation::update(self, key, decide)
    }

    #[inline]
    fn first(&self) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::first(self)
    }

    #[inline]
    fn last(&self) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::last(self)
    }

    #[inline]
    fn next(&self, key: &K) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::next(self, key)
    }

    #[inline]
    fn prev(&self, key: &K) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::prev(self, key)
    }

    #[inline]
    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        reentry::check(self);
        #[cfg(all(debug_assertions, not(any(loom, shuttle))))]
        let read = &mut |key: &K, value: &V| reentry::during(self, || read(key, value));
        Implementation::step_with(self, key, direction, read)
    }

    #[inline]
    fn pop_first(&self) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::pop_first(self)
    }

    #[inline]
    fn pop_last(&self) -> Option<(K, V)> {
        reentry::check(self);
        Implementation::pop_last(self)
    }

    #[inline]
    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        reentry::check(self);
        if range
            .forms()
            .all(|form| Implementation::can_seek(self, form))
        {
            return Implementation::scan(self, range, direction, limit, out);
        }
        let mut all = Vec::new();
        Implementation::scan(self, KeyRange::all(), direction, usize::MAX, &mut all);
        let within = all.into_iter().filter(|(key, _)| range.contains(key));
        out.extend(within.take(limit));
    }

    #[inline]
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        reentry::check(self);
        Implementation::range(self, range, direction, visit);
    }

    #[inline]
    fn snapshot(&self, range: KeyRange<'_, K>) -> Option<Vec<(K, V)>> {
        reentry::check(self);
        Implementation::snapshot(self, range)
    }

    fn begin_snapshot(&self, range: KeyRange<'_, K>) -> Option<SnapshotCursor<K, V>> {
        reentry::check(self);
        // A form cannot be copied.
        let is_possible = range.is_of_keys();
        is_possible.then(|| Implementation::begin_snapshot(self, range))?
    }

    fn read_snapshot(
        &self,
        cursor: &mut SnapshotCursor<K, V>,
        wanted: usize,
        out: &mut Vec<(K, V)>,
    ) -> bool {
        reentry::check(self);
        Implementation::read_snapshot(self, cursor, wanted, out)
    }

    #[inline]
    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        reentry::check(self);
        Implementation::remove_range(self, range)
    }

    #[inline]
    fn len(&self) -> usize {
        reentry::check(self);
        Implementation::len(self)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        reentry::check(self);
        Implementation::is_empty(self)
    }

    #[inline]
    fn shape(&self) -> Shape {
        reentry::check(self);
        Implementation::shape(self)
    }

    #[inline]
    fn transactional(&self) -> Option<&dyn Transactional<K, V>> {
        Implementation::transactional(self)
    }
}
