//! Steps over several entries at once, and closures under locks: what a log needs of an index.

use crate::contract::{Direction, Implementation, KeyRange};
use crate::ordered_index::OrderedIndex;
use crate::reentry;
use crate::snapshot::Snapshot;
use std::any::Any;
use std::cell::Cell;
use std::cmp::Ordering;
use std::mem::needs_drop;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a closure sees of an index while it holds everything that the closure was promised: no
/// other thread changes these entries meanwhile.
pub trait View<K, V> {
    /// If `key` is present, calls `read` once with its value. Returns whether it did.
    ///
    /// # Panics
    ///
    /// If `key` lies outside the ranges of the step.
    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool;

    /// Visits, ascending, those entries of `range` that lie in the ranges of the step, until
    /// `visit` breaks.
    fn range(&self, range: KeyRange<'_, K>, visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>);
}

/// One atomic step over the ranges that were given to [`Transactional::atomically`]. It sees what
/// it has changed itself.
pub trait Transaction<K, V>: View<K, V> {
    /// Stores `value` under `key`. Returns whether there was a value, which it replaces.
    ///
    /// # Panics
    ///
    /// If `key` lies outside the ranges of the step.
    fn insert(&mut self, key: K, value: V) -> bool;

    /// Removes `key`. Returns whether it was present.
    ///
    /// # Panics
    ///
    /// If `key` lies outside the ranges of the step.
    fn remove(&mut self, key: &K) -> bool;

    /// Removes those entries of `range` that lie in the ranges of the step. Returns how many there
    /// were.
    fn remove_range(&mut self, range: KeyRange<'_, K>) -> usize;
}

/// A leaf, or a base node: a part of an index with a lock of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part<K> {
    /// A key at or below all keys of the part and above those of the part before it; `None` in the
    /// first part. An [`Aspen`](crate::Aspen) may give `None` for a later part, too, if it sees no
    /// entries there: the part may begin where there is no key.
    pub low: Option<K>,
    /// How many entries the part has; `None` if somebody is changing it.
    pub entries: Option<usize>,
    /// How often a thread had to wait for its lock, since the part was made; modulo 2^32.
    pub waits: u64,
    /// How often the lock was taken to write, since the part was made; modulo 2^32.
    pub acquisitions: u64,
    /// How the entries lie in the part, if the engine has several ways: of an
    /// [`Aspen`](crate::Aspen) of numbers `dense`, `gapped` or `sorted`. Empty if there is one way,
    /// or if a writer has the part.
    pub format: &'static str,
}

impl<K> Part<K> {
    pub(crate) const fn new(
        low: Option<K>,
        entries: Option<usize>,
        waits: u64,
        acquisitions: u64,
    ) -> Self {
        Self {
            low,
            entries,
            waits,
            acquisitions,
            format: "",
        }
    }

    pub(crate) const fn with_format(mut self, format: &'static str) -> Self {
        self.format = format;
        self
    }
}

/// How often the parts of an index have changed their grain, for any reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapted {
    /// Parts that were split in two.
    pub splits: u64,
    /// Parts that were joined with a neighbour.
    pub joins: u64,
}

impl Adapted {
    pub(crate) const fn new(splits: u64, joins: u64) -> Self {
        Self { splits, joins }
    }
}

/// What a log needs of an index, beside [`update`](crate::OrderedIndex::update), whose closure
/// already sees the old value of a point write and runs once, under the lock: there the write can
/// get its number, so that the order of the numbers is the order of the effects for each key.
///
/// [`OrderedIndex::transactional`] gives it, if the engine's
/// facts say [`transactional`](crate::Facts::transactional).
///
/// The closures run while the index holds locks: they must be brief, and must not call the same
/// index; in a debug build they panic if they do. If a closure panics, or user code that it has
/// called, nothing has happened, and the panic goes on. (If user code of a key panics once more
/// while a step is undone, what the step has done to that key may stay, or an entry that it has
/// taken out is lost; all other keys are as before.) After a step the index may adapt its grain: if
/// user code panics then, the step has happened.
///
/// What a step takes out, or does not need, is dropped when everything is unlocked.
///
/// ```
/// use std::ops::ControlFlow;
/// use tremula_index::{Direction, Engine, KeyRange};
///
/// let accounts = Engine::CaTree.create::<u64, i64>();
/// accounts.insert(1, 100);
/// accounts.insert(2, 0);
/// let steps = accounts.transactional().ok_or("not this engine")?;
///
/// // A thread that reads both accounts sees 100 in all.
/// let (from, to) = (1, 2);
/// steps.atomically(&[KeyRange::only(&from), KeyRange::only(&to)], &mut |step| {
///     let mut balance = 0;
///     step.get_with(&from, &mut |value| balance = *value);
///     step.insert(from, 0);
///     step.insert(to, balance);
/// });
/// assert_eq!(accounts.get(&2), Some(100));
///
/// let mut log = Vec::new();
/// steps.pop_with(Direction::Ascending, &mut |key, _| log.push(*key));
/// steps.remove_range_with(KeyRange::all(), &mut |view| {
///     view.range(KeyRange::all(), &mut |key, _| {
///         log.push(*key);
///         ControlFlow::Continue(())
///     });
/// });
/// assert_eq!(log, [1, 2]);
/// # Ok::<(), &str>(())
/// ```
pub trait Transactional<K: Ord + Clone, V: Clone>: Send + Sync {
    /// Removes and returns the first entry in a direction. Calls `note` exactly once with it before
    /// that, under the lock; not at all if the index is empty. Linearizable.
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)>;

    /// Removes every entry of `range`, as one atomic step, and returns how many there were. Calls
    /// `note` exactly once with a view of them before that, while all of the range is locked; not
    /// at all if the bounds alone show that the range is empty. Linearizable.
    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize;

    /// Calls `step` exactly once while all of these ranges are locked, and makes what it does one
    /// atomic step: every other operation sees all of it, or nothing. Linearizable.
    ///
    /// Locks the parts of the index that these ranges need, from the smallest key to the largest,
    /// so a range of many entries holds up all who use them. A step costs O(log n) for each key
    /// that it touches, a copy of each key that it changes, and keeps what it removes until it
    /// ends.
    ///
    /// # Panics
    ///
    /// If a bound is no key, but a borrowed form of one.
    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    );

    /// What `range` is at one moment. Linearizable. O(entries), with a copy of each; the engine may
    /// have to hold up writers of the range while it copies, but not while the handle lives.
    fn snapshot(&self, range: KeyRange<'_, K>) -> Snapshot<K, V>;

    /// Shows each part of the index in turn, ascending: not as of one moment. Does not wait for a
    /// writer that has locked a part, and then does not tell how many entries that part has. The
    /// closure runs with no lock held and may do anything. Returns what the index has decided so
    /// far. O(parts), with a copy of a key each.
    ///
    /// A [`CaTree`](crate::CaTree) has to count the entries of each part, which takes O(n) for the
    /// whole walk. Meanwhile it holds the part in shared mode: a writer that comes then waits, and
    /// the part counts that as contention.
    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted;
}

/// The closure of a step.
pub(crate) type DoStep<'s, K, V> = dyn FnMut(&mut dyn Transaction<K, V>) + 's;

/// The closure of a visit.
pub(crate) type Visit<'v, K, V> = dyn FnMut(&K, &V) -> ControlFlow<()> + 'v;

/// What an engine implements: the methods of [`Transactional`]. Ranges that come here are not
/// empty.
#[doc(hidden)]
pub trait Steps<K: Ord + Clone, V: Clone>: Implementation<K, V> {
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)>;

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize;

    /// Of the ranges each lies above those before it, and does not touch them.
    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    );

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted;
}

impl<K: Ord + Clone, V: Clone, I: Steps<K, V>> Transactional<K, V> for I {
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)> {
        reentry::check(self);
        Steps::pop_with(self, direction, &mut |key, value| {
            reentry::during(self, || note(key, value));
        })
    }

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize {
        reentry::check(self);
        assert_keys(&range);
        if range.is_empty() {
            return 0;
        }
        Steps::remove_range_with(self, range, &mut |view| {
            reentry::during(self, || note(view));
        })
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        reentry::check(self);
        over.iter().for_each(assert_keys);
        Steps::atomically(self, &in_order(over), &mut |transaction| {
            reentry::during(self, || step(transaction));
        });
    }

    fn snapshot(&self, range: KeyRange<'_, K>) -> Snapshot<K, V> {
        let entries = OrderedIndex::snapshot(self, range);
        Snapshot::new(entries.unwrap_or_else(|| unreachable!("an engine with steps has scans")))
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        reentry::check(self);
        Steps::walk(self, visit)
    }
}

fn assert_keys<K>(range: &KeyRange<'_, K>) {
    assert!(
        !range.has_forms(),
        "a bound of a step is a borrowed form of a key: give the key itself"
    );
}

/// Where a range begins: its key, and 1 if it begins behind that.
fn low_of<'k, K>(range: &KeyRange<'k, K>) -> Option<(&'k K, u8)> {
    match range.low {
        Bound::Unbounded => None,
        Bound::Included(low) => Some((low.key(), 0)),
        Bound::Excluded(low) => Some((low.key(), 1)),
    }
}

/// Where a range ends: its key, and 1 if the key is a part of it.
fn high_of<'k, K>(range: &KeyRange<'k, K>) -> Option<(&'k K, u8)> {
    match range.high {
        Bound::Unbounded => None,
        Bound::Included(high) => Some((high.key(), 1)),
        Bound::Excluded(high) => Some((high.key(), 0)),
    }
}

/// Compares where two ranges end.
fn compare_ends<K: Ord>(one: &KeyRange<'_, K>, other: &KeyRange<'_, K>) -> Ordering {
    match (high_of(one), high_of(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        // A range without an upper bound ends last.
        (one, other) => one.is_none().cmp(&other.is_none()),
    }
}

/// The part that two ranges have in common.
fn common<'k, K: Ord>(one: KeyRange<'k, K>, other: KeyRange<'k, K>) -> KeyRange<'k, K> {
    let low = if low_of(&one) >= low_of(&other) {
        one.low
    } else {
        other.low
    };
    let high = if compare_ends(&one, &other).is_le() {
        one.high
    } else {
        other.high
    };
    KeyRange::between(low, high)
}

/// The ranges without the empty ones, ascending. Those that have keys in common become one.
fn in_order<'k, K: Ord>(over: &[KeyRange<'k, K>]) -> Vec<KeyRange<'k, K>> {
    // Most steps are over keys, which need fewer comparisons.
    let keys: Option<Vec<&K>> = over.iter().map(KeyRange::only_key).collect();
    if let Some(mut keys) = keys {
        keys.sort_unstable();
        keys.dedup();
        return keys.into_iter().map(KeyRange::only).collect();
    }
    let mut sorted: Vec<_> = over
        .iter()
        .copied()
        .filter(|range| !range.is_empty())
        .collect();
    // A range without a lower bound comes first: `None` is below all.
    sorted.sort_by(|one, other| low_of(one).cmp(&low_of(other)));
    let mut merged: Vec<KeyRange<'k, K>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if !common(*last, range).is_empty() => {
                if compare_ends(last, &range).is_lt() {
                    last.high = range.high;
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Entries that no other thread changes, because this thread has locked them.
pub(crate) trait ShownParts<K, V> {
    /// `within` is the number of the range, of those that the parts are held for, in which the key
    /// lies.
    fn get_with(&self, within: usize, key: &K, read: &mut dyn FnMut(&V)) -> bool;

    fn visit(
        &self,
        range: KeyRange<'_, K>,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()>;
}

/// The parts of an index that a thread has locked for some ranges.
pub(crate) trait HeldParts<K, V>: ShownParts<K, V> {
    /// An entry, or its value, that has been unlinked and may be put back. Nobody drops it before
    /// [`release`](Self::release).
    type Taken;
    /// What finds an entry again that a `put` has added, if its key is not to be asked.
    type Added;

    /// Stores a value under a key. Takes the value, and the key if it needs it; what it leaves,
    /// also by a panic, is dropped when everything is unlocked. `None` if it has stored nothing.
    /// `within` is as in [`get_with`](ShownParts::get_with).
    fn put(
        &mut self,
        within: usize,
        key: &mut Option<K>,
        value: &mut Option<V>,
    ) -> Option<Change<Self::Taken, Self::Added>>;

    /// Takes an entry out. `within` is as in [`get_with`](ShownParts::get_with).
    fn take(&mut self, within: usize, key: &K) -> Option<Self::Taken>;

    /// Takes out what a `put` of this key has added.
    fn take_added(&mut self, key: &K, added: Self::Added) -> Option<Self::Taken>;

    /// Puts back what a `put` of this key has replaced, or what a `take` has taken. Returns what
    /// the `put` had stored. Takes the key if it needs it. What it has not put back, also by a
    /// panic, is dropped by [`release`](Self::release).
    fn put_back(&mut self, key: &mut Option<K>, taken: Self::Taken) -> Option<Self::Taken>;

    /// Unlocks everything, and only then drops what has been taken.
    fn release(self, taken: Vec<Self::Taken>);
}

/// A view of some ranges of locked parts.
struct Shown<'s, K, H> {
    held: &'s H,
    /// Ascending, without common keys.
    over: &'s [KeyRange<'s, K>],
}

/// The number of the range in which a key lies. `near` is looked at first, and then what follows
/// it: most steps go from one range to the next.
#[track_caller]
fn within<K: Ord>(over: &[KeyRange<'_, K>], near: usize, key: &K) -> usize {
    for at in [near, near + 1] {
        if over.get(at).is_some_and(|range| range.contains(key)) {
            return at;
        }
    }
    let above = over.partition_point(|range| range.starts_before(key));
    let range = above.checked_sub(1).and_then(|at| over.get(at));
    assert!(
        range.is_some_and(|range| range.ends_after(key)),
        "a key lies outside the ranges of its step: name it in the call of `atomically`"
    );
    above - 1
}

impl<K: Ord, V, H: ShownParts<K, V>> View<K, V> for Shown<'_, K, H> {
    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.held.get_with(within(self.over, 0, key), key, read)
    }

    fn range(&self, range: KeyRange<'_, K>, visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>) {
        assert_keys(&range);
        let _ = self.over.iter().try_for_each(|allowed| {
            let within = common(*allowed, range);
            if within.is_empty() {
                return ControlFlow::Continue(());
            }
            self.held.visit(within, visit)
        });
    }
}

/// Shows the entries of a range, which this thread has locked, to `note`.
pub(crate) fn show<K: Ord, V, H: ShownParts<K, V>>(
    held: &H,
    range: KeyRange<'_, K>,
    note: &mut dyn FnMut(&dyn View<K, V>),
) {
    note(&Shown {
        held,
        over: &[range],
    });
}

/// What a step has done to a key.
pub(crate) enum Change<T, A> {
    Nothing,
    Added(A),
    /// Removed it, or replaced its value.
    Took(T),
}

/// How to undo a change of a key.
type Undo<K, T, A> = (Option<K>, Change<T, A>);

/// What a panic carries.
type Payload = Box<dyn Any + Send>;

/// A step under way, and how to undo it. User code that is run by `drop` may call the index, so
/// whatever it drops is kept until everything is unlocked.
struct Step<'s, K, V, H: HeldParts<K, V>> {
    held: H,
    over: &'s [KeyRange<'s, K>],
    /// The number of the range that was used last.
    near: Cell<usize>,
    /// Copies of the keys that were to be changed, in order, and what has become of that.
    undo: Vec<Undo<K, H::Taken, H::Added>>,
    /// What was given to `insert`, and not needed.
    unneeded: Vec<(Option<K>, Option<V>)>,
}

impl<'s, K: Ord + Clone, V, H: HeldParts<K, V>> Step<'s, K, V, H> {
    fn new(held: H, over: &'s [KeyRange<'s, K>]) -> Self {
        Self {
            held,
            over,
            near: Cell::new(0),
            undo: Vec::with_capacity(over.len()),
            unneeded: Vec::new(),
        }
    }

    fn shown(&self) -> Shown<'_, K, H> {
        Shown {
            held: &self.held,
            over: self.over,
        }
    }

    /// The number of the range in which a key lies.
    #[track_caller]
    fn within(&self, key: &K) -> usize {
        let at = within(self.over, self.near.get(), key);
        self.near.set(at);
        at
    }

    /// Takes the key at `at` of `undo`. Returns whether it was present.
    fn take(&mut self, at: usize) -> bool {
        let within = self.undo[at].0.as_ref().map_or(0, |key| self.within(key));
        let (key, change) = &mut self.undo[at];
        let taken = key.as_ref().and_then(|key| self.held.take(within, key));
        let was_present = taken.is_some();
        if let Some(taken) = taken {
            *change = Change::Took(taken);
        }
        was_present
    }

    /// Undoes all changes, the last one first. If user code panics in one of them, goes on with the
    /// others. Returns what is to be dropped when everything is unlocked.
    fn undo(&mut self) -> (Vec<H::Taken>, Vec<Payload>) {
        let (mut dropped, mut panics) = (Vec::new(), Vec::new());
        for (key, change) in self.undo.iter_mut().rev() {
            let held = &mut self.held;
            let change = std::mem::replace(change, Change::Nothing);
            let undone = catch_unwind(AssertUnwindSafe(|| match change {
                Change::Nothing => None,
                Change::Added(added) => key.as_ref().and_then(|key| held.take_added(key, added)),
                Change::Took(taken) => held.put_back(key, taken),
            }));
            match undone {
                Ok(taken) => dropped.extend(taken),
                Err(panic) => panics.push(panic),
            }
        }
        (dropped, panics)
    }

    /// What the changes have taken out of the index.
    fn take_all(&mut self) -> impl Iterator<Item = H::Taken> {
        self.undo.iter_mut().filter_map(|(_, change)| {
            match std::mem::replace(change, Change::Nothing) {
                Change::Took(taken) => Some(taken),
                Change::Nothing | Change::Added(_) => None,
            }
        })
    }
}

impl<K: Ord + Clone, V, H: HeldParts<K, V>> View<K, V> for Step<'_, K, V, H> {
    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.held.get_with(self.within(key), key, read)
    }

    fn range(&self, range: KeyRange<'_, K>, visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>) {
        self.shown().range(range, visit);
    }
}

impl<K: Ord + Clone, V, H: HeldParts<K, V>> Transaction<K, V> for Step<'_, K, V, H> {
    fn insert(&mut self, key: K, value: V) -> bool {
        let at = self.unneeded.len();
        self.unneeded.push((Some(key), Some(value)));
        let within = self.unneeded[at]
            .0
            .as_ref()
            .map_or(0, |key| self.within(key));
        let (key, value) = &mut self.unneeded[at];
        self.undo.push((key.clone(), Change::Nothing));
        let done = self.held.put(within, key, value).unwrap_or(Change::Nothing);
        let was_present = matches!(done, Change::Took(_));
        if let Some((_, change)) = self.undo.last_mut() {
            *change = done;
        }
        if value.is_none() && (key.is_none() || !needs_drop::<K>()) {
            self.unneeded.pop();
        }
        was_present
    }

    fn remove(&mut self, key: &K) -> bool {
        self.undo.push((Some(key.clone()), Change::Nothing));
        self.take(self.undo.len() - 1)
    }

    fn remove_range(&mut self, range: KeyRange<'_, K>) -> usize {
        let first = self.undo.len();
        let shown = Shown {
            held: &self.held,
            over: self.over,
        };
        shown.range(range, &mut |key, _| {
            self.undo.push((Some(key.clone()), Change::Nothing));
            ControlFlow::Continue(())
        });
        (first..self.undo.len()).filter(|at| self.take(*at)).count()
    }
}

/// Runs a step over ranges whose parts this thread has locked, and unlocks them.
pub(crate) fn run<K: Ord + Clone, V, H: HeldParts<K, V>>(
    held: H,
    over: &[KeyRange<'_, K>],
    step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
) {
    let mut this = Step::new(held, over);
    let outcome = catch_unwind(AssertUnwindSafe(|| step(&mut this)));
    let (taken, panics) = if outcome.is_ok() {
        (this.take_all().collect(), Vec::new())
    } else {
        this.undo()
    };
    // The rest of `this` is dropped at the end.
    this.held.release(taken);
    drop(panics);
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}
