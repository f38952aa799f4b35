//! The map of words under keys that their heads determine, and values of any type.

use super::words::{Batch, Change, Cursor, Entry, Keys, Locks, Reading, Words};
use crate::contract::{Direction, KeyRange, Update};
use crate::form::{Form, Sought};
use crate::key::KeyHead;
use crate::key::head::{head_of_form, head_of_sought};
use crate::kit::{OwnedValue, Packed, Spec, key_of_head};
use crate::transactional::{self, Adapted, DoStep, HeldParts, Part, ShownParts, Visit};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::ptr;
use tremula_sync::reclaim::{Collector, Guard};

/// A map of keys that their heads determine.
pub(super) struct Numbers<S, const UNITS: usize> {
    words: Words<UNITS>,
    /// For values that are not words. They lie in boxes, which a reader may be looking at.
    collector: Collector,
    /// Drops the values. Stored, so that the type needs no bounds on keys and values.
    free: fn(&mut Words<UNITS>),
    owns: PhantomData<fn(S) -> S>,
}

/// The value of a word.
fn packed<S: Spec>(word: u64) -> Packed<S::Value> {
    Packed::of_word(ptr::with_exposed_provenance_mut(word as usize))
}

/// The word of a value, which belongs to the map from now on.
#[inline]
fn word_of<S: Spec>(value: S::Value) -> u64 {
    let value = OwnedValue::new(value);
    let word = value.word().expose_provenance() as u64;
    value.give();
    word
}

/// Drops values that this thread has unlinked.
fn retire<S: Spec>(words: Vec<u64>, guard: Option<&Guard<'_>>) {
    // What is a word needs no drop.
    if let Some(guard) = guard {
        // SAFETY: this thread has unlinked the values, and retires them once.
        unsafe { guard.defer_each(words, |word| drop(packed::<S>(word).take())) };
    }
}

/// A number for each key, in their order: the head without the bits that tell nothing, so that the
/// numbers of short keys which follow one another do so too.
#[inline(always)]
fn number_of<S: Spec>(key: &S::Key) -> u64 {
    S::Head::head(key) >> S::Head::SPARE_BITS
}

/// The key of a number.
#[inline(always)]
fn key_of<S: Spec>(number: u64) -> S::Key {
    key_of_head::<S>(number << S::Head::SPARE_BITS)
}

/// The key of a number, if there is a key with this number.
fn key_at<S: Spec>(number: u64) -> Option<S::Key> {
    let head = number << S::Head::SPARE_BITS;
    // A number above those of all keys loses bits.
    let has_head = head >> S::Head::SPARE_BITS == number;
    let key = has_head.then(|| S::Head::key(head)).flatten();
    key.filter(|key| number_of::<S>(key) == number)
}

/// The greatest number that is not above a bound, and whether it is below. (A bound may be a form
/// that is longer than any key.)
fn number_below<S: Spec>(bound: Sought<'_, S::Key>) -> (u64, bool) {
    let head = head_of_sought::<S::Key, S::Head>(bound);
    let number = head >> S::Head::SPARE_BITS;
    (number, number << S::Head::SPARE_BITS != head)
}

/// The keys of a range; `None` if it has no keys.
fn keys_of<S: Spec>(range: KeyRange<'_, S::Key>) -> Option<Keys> {
    let first = match range.low {
        Bound::Unbounded => 0,
        Bound::Included(low) => match number_below::<S>(low) {
            (below, true) => below.checked_add(1)?,
            (number, false) => number,
        },
        Bound::Excluded(low) => number_below::<S>(low).0.checked_add(1)?,
    };
    let last = match range.high {
        Bound::Unbounded => u64::MAX,
        Bound::Included(high) => number_below::<S>(high).0,
        Bound::Excluded(high) => match number_below::<S>(high) {
            (below, true) => below,
            (number, false) => number.checked_sub(1)?,
        },
    };
    (first <= last).then_some(Keys { first, last })
}

/// The entries that a scan has collected.
struct Collected<'o, S: Spec> {
    /// Entries whose values are words are put here at once, unless the scan holds locks, under
    /// which no key is made, or starts again and may do so.
    out: &'o mut Vec<(S::Key, S::Value)>,
    before: usize,
    is_deferred: bool,
    /// Others only when all have been validated.
    entries: Vec<Entry>,
}

impl<S: Spec> super::words::Sink for Collected<'_, S> {
    #[inline]
    fn take(&mut self, entries: &[Entry]) {
        if Packed::<S::Value>::is_word() && !self.is_deferred {
            let pairs = entries.iter().map(|(number, word)| {
                // SAFETY: the value is a word.
                (key_of::<S>(*number), unsafe { packed::<S>(*word).take() })
            });
            self.out.extend(pairs);
        } else {
            self.entries.extend_from_slice(entries);
        }
    }

    fn defer(&mut self) {
        self.is_deferred = true;
    }

    fn clear(&mut self) {
        self.out.truncate(self.before);
        self.entries.clear();
        self.is_deferred = true;
    }
}

/// The only entry of a scan.
impl super::words::Sink for Option<Entry> {
    fn take(&mut self, entries: &[Entry]) {
        *self = entries.first().copied();
    }

    fn clear(&mut self) {
        *self = None;
    }
}

impl<S: Spec, const UNITS: usize> Numbers<S, UNITS> {
    pub(super) fn new() -> Self {
        Self {
            words: Words::new(),
            collector: Collector::new(),
            free: free::<S, UNITS>,
            owns: PhantomData,
        }
    }

    /// Keeps the values that this thread comes to, if they are not words.
    #[inline(always)]
    fn pin(&self) -> Option<Guard<'_>> {
        (!Packed::<S::Value>::is_word()).then(|| self.collector.pin())
    }

    /// Hands out a value that this thread has unlinked.
    #[inline(always)]
    fn hand_out(word: u64, guard: Option<&Guard<'_>>) -> S::Value {
        let value = packed::<S>(word);
        match guard {
            // SAFETY: unlinked by this thread, which keeps no reference to it.
            Some(guard) => unsafe { value.hand_out(guard) },
            // SAFETY: the value is a word.
            None => unsafe { value.take() },
        }
    }

    /// Whether a form determines the key that it stands for.
    pub(super) fn can_seek(&self, form: &dyn Form<S::Key>) -> bool {
        head_of_form::<S::Key, S::Head>(form).is_some()
    }

    #[inline]
    pub(super) fn get_with<'k, R>(
        &self,
        key: impl Into<Sought<'k, S::Key>>,
        read: impl FnOnce(&S::Value) -> R,
    ) -> Option<R> {
        let (number, is_below) = number_below::<S>(key.into());
        if is_below {
            return None;
        }
        if Packed::<S::Value>::is_word() {
            // SAFETY: the value is a word.
            return self
                .words
                .get(number)
                .map(|word| unsafe { packed::<S>(word).with(read) });
        }
        let _guard = self.collector.pin();
        // SAFETY: read and validated while this thread was pinned.
        self.words
            .get(number)
            .map(|word| unsafe { packed::<S>(word).with(read) })
    }

    pub(super) fn get_many(&self, keys: &[S::Key], out: &mut Vec<Option<S::Value>>) {
        out.reserve(keys.len());
        let _guard = self.pin();
        self.words
            .get_many(keys.iter().map(number_of::<S>), |word| {
                // SAFETY: as in `get_with`.
                out.push(word.map(|word| unsafe { packed::<S>(word).with(S::Value::clone) }));
            });
    }

    #[inline]
    pub(super) fn insert(&self, key: S::Key, value: S::Value) -> Option<S::Value> {
        // First, since it may panic: a word is not dropped.
        let number = number_of::<S>(&key);
        let guard = self.pin();
        let word = word_of::<S>(value);
        let old = self.words.change(number, |_| Change::Put(word))?;
        Some(Self::hand_out(old, guard.as_ref()))
    }

    pub(super) fn insert_if_absent(&self, key: S::Key, value: S::Value) -> Result<(), S::Value> {
        let number = number_of::<S>(&key);
        let mut value = Some(value);
        self.words
            .change(number, |old| match value.take_if(|_| old.is_none()) {
                Some(value) => Change::Put(word_of::<S>(value)),
                None => Change::Keep,
            });
        value.map_or(Ok(()), Err)
    }

    pub(super) fn update(
        &self,
        key: S::Key,
        decide: impl FnOnce(Option<&S::Value>) -> Update<S::Value>,
    ) -> Option<S::Value> {
        let guard = self.pin();
        let old = self.words.change(number_of::<S>(&key), |old| {
            let decision = match old {
                // SAFETY: the value is in a leaf that this thread has locked.
                Some(word) => unsafe { packed::<S>(word).with(|value| decide(Some(value))) },
                None => decide(None),
            };
            match decision {
                Update::Put(value) => Change::Put(word_of::<S>(value)),
                Update::Keep => Change::Keep,
                Update::Remove => Change::Remove,
            }
        })?;
        Some(Self::hand_out(old, guard.as_ref()))
    }

    #[inline]
    pub(super) fn remove(&self, key: &S::Key) -> Option<S::Value> {
        let guard = self.pin();
        let old = self.words.remove(number_of::<S>(key))?;
        Some(Self::hand_out(old, guard.as_ref()))
    }

    pub(super) fn pop(
        &self,
        direction: Direction,
        mut note: impl FnMut(&S::Key, &S::Value),
    ) -> Option<(S::Key, S::Value)> {
        let guard = self.pin();
        let mut popped = None;
        let (_, word) = self.words.pop(direction, |(number, word)| {
            // Made before the entry is removed, since it may panic.
            let key = popped.insert(key_of::<S>(number));
            // SAFETY: the value is in a leaf that this thread has locked.
            unsafe { packed::<S>(word).with(|value| note(key, value)) };
        })?;
        let value = Self::hand_out(word, guard.as_ref());
        popped.map(|key| (key, value))
    }

    pub(super) fn nearest(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
    ) -> Option<(S::Key, S::Value)> {
        self.nearest_with(range, direction, |key, value| (key.clone(), value.clone()))
    }

    /// Calls `read` with the entry behind a key in a direction. Returns whether there is one.
    pub(super) fn step_with(
        &self,
        key: &S::Key,
        direction: Direction,
        read: &mut dyn FnMut(&S::Key, &S::Value),
    ) -> bool {
        let behind = KeyRange::all().behind(key, direction);
        self.nearest_with(behind, direction, read).is_some()
    }

    fn nearest_with<R>(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        read: impl FnOnce(&S::Key, &S::Value) -> R,
    ) -> Option<R> {
        let _guard = self.pin();
        let mut entry: Option<Entry> = None;
        self.words
            .collect(keys_of::<S>(range)?, direction, 1, &mut entry);
        let (number, word) = entry?;
        let key = key_of::<S>(number);
        // SAFETY: as in `get_with`.
        Some(unsafe { packed::<S>(word).with(|value| read(&key, value)) })
    }

    pub(super) fn scan(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(S::Key, S::Value)>,
    ) {
        self.gather(range, out, |keys, collected| {
            self.words.collect(keys, direction, limit, collected);
        });
    }

    /// The same, without a try to do it as if there were no writers.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn snapshot_beside_writers(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
    ) -> Vec<(S::Key, S::Value)> {
        let mut out = Vec::new();
        self.gather(range, &mut out, |keys, collected| {
            self.words
                .collect_beside_writers(keys, direction, limit, collected);
        });
        out
    }

    /// Begins a snapshot that is read part by part; `None` if values lie in boxes, which are kept
    /// from being freed only as long as a thread is pinned.
    pub(super) fn begin_snapshot(&self, range: KeyRange<'_, S::Key>) -> Option<Reading> {
        let is_possible = Packed::<S::Value>::is_word();
        is_possible.then(|| self.words.begin_snapshot(keys_of::<S>(range)))
    }

    /// Appends the next entries of a snapshot, `wanted` at least unless it ends. Returns whether it
    /// goes on.
    pub(super) fn read_snapshot(
        &self,
        reading: &mut Reading,
        wanted: usize,
        out: &mut Vec<(S::Key, S::Value)>,
    ) -> bool {
        let before = out.len();
        let mut collected = Collected::<S> {
            out,
            before,
            is_deferred: false,
            entries: Vec::new(),
        };
        self.words.read_snapshot(reading, wanted, &mut collected)
    }

    /// Copies the entries of a range that `collect` collects.
    #[inline(always)]
    fn gather(
        &self,
        range: KeyRange<'_, S::Key>,
        out: &mut Vec<(S::Key, S::Value)>,
        collect: impl FnOnce(Keys, &mut Collected<'_, S>),
    ) {
        let Some(keys) = keys_of::<S>(range) else {
            return;
        };
        let _guard = self.pin();
        let before = out.len();
        let mut collected = Collected::<S> {
            out,
            before,
            is_deferred: false,
            entries: Vec::new(),
        };
        collect(keys, &mut collected);
        let Collected { out, entries, .. } = collected;
        out.extend(entries.into_iter().map(|(number, word)| {
            // SAFETY: as in `get_with`.
            let value = unsafe { packed::<S>(word).with(S::Value::clone) };
            (key_of::<S>(number), value)
        }));
    }

    pub(super) fn visit(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        mut visit: impl FnMut(&S::Key, &S::Value) -> ControlFlow<()>,
    ) {
        let mut cursor = keys_of::<S>(range).map(Cursor::new);
        let mut entries = Batch::new();
        while cursor.is_some() {
            // Unpinned after each batch, so that what other threads remove meanwhile is freed
            // however long the visit takes.
            let _guard = self.pin();
            self.words.advance(&mut cursor, direction, &mut entries);
            for (number, word) in entries.iter() {
                let key = key_of::<S>(*number);
                // SAFETY: as in `get_with`.
                if unsafe { packed::<S>(*word).with(|value| visit(&key, value)) }.is_break() {
                    return;
                }
            }
        }
    }

    /// Removes a range. Calls `note` once before that, with all leaves of the range locked.
    pub(super) fn remove_range(
        &self,
        range: KeyRange<'_, S::Key>,
        note: impl FnOnce(&HeldNumbers<'_, S, UNITS>),
    ) -> usize {
        let keys = keys_of::<S>(range);
        let held = self.lock(keys.as_slice());
        note(&held);
        let HeldNumbers { locks, guard, .. } = held;
        let Some(keys) = keys else {
            return 0;
        };
        let mut removed = Vec::new();
        let count = self.words.remove_range(locks, keys, |word| {
            if guard.is_some() {
                removed.push(word);
            }
        });
        retire::<S>(removed, guard.as_ref());
        count
    }

    /// Locks the leaves of ascending ranges.
    fn lock(&self, over: &[Keys]) -> HeldNumbers<'_, S, UNITS> {
        let guard = self.pin();
        HeldNumbers {
            locks: self.words.lock(over),
            guard,
            owns: PhantomData,
        }
    }

    pub(super) fn atomically(
        &self,
        over: &[KeyRange<'_, S::Key>],
        step: &mut DoStep<'_, S::Key, S::Value>,
    ) {
        let mut keys: Vec<Keys> = over
            .iter()
            .filter_map(|range| keys_of::<S>(*range))
            .collect();
        // Where heads and `Ord` disagree, they do not ascend yet.
        keys.sort_unstable_by_key(|keys| keys.first);
        transactional::run(self.lock(&keys), over, step);
    }

    pub(super) fn walk(&self, visit: &mut dyn FnMut(&Part<S::Key>) -> ControlFlow<()>) -> Adapted {
        let mut next = Some(0);
        while let Some(number) = next {
            let leaf = self.words.pass(number);
            // No other leaf begins with the number 0.
            let low =
                (number > 0).then(|| key_at::<S>(number).or_else(|| key_at::<S>(leaf.first?)));
            let waits = leaf.waits.into();
            let part = Part::new(low.flatten(), leaf.entries, waits, leaf.changes);
            let part = part.with_format(leaf.format);
            next = match visit(&part) {
                ControlFlow::Continue(()) => leaf.next,
                ControlFlow::Break(()) => None,
            };
        }
        let (splits, joins) = self.words.adapted();
        Adapted::new(splits, joins)
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, u64)> {
        self.words.figures(Packed::<S::Value>::bytes_beside())
    }

    #[cfg(any(test, loom, shuttle))]
    pub(super) fn heat(&self, key: &S::Key) {
        self.words
            .heat_at(number_of::<S>(key), super::words::End::High);
    }

    pub(super) fn check_at_rest(&self) {
        self.words.check_at_rest();
    }
}

/// The leaves that a thread has locked.
pub(super) struct HeldNumbers<'n, S: Spec, const UNITS: usize> {
    locks: Locks<'n, UNITS>,
    guard: Option<Guard<'n>>,
    owns: PhantomData<S>,
}

impl<S: Spec, const UNITS: usize> ShownParts<S::Key, S::Value> for HeldNumbers<'_, S, UNITS> {
    fn get_with(&self, _: usize, key: &S::Key, read: &mut dyn FnMut(&S::Value)) -> bool {
        let word = self.locks.get(number_of::<S>(key));
        // SAFETY: the value is in a leaf that this thread has locked.
        word.map(|word| unsafe { packed::<S>(word).with(read) })
            .is_some()
    }

    fn visit(
        &self,
        range: KeyRange<'_, S::Key>,
        visit: &mut Visit<'_, S::Key, S::Value>,
    ) -> ControlFlow<()> {
        let Some(keys) = keys_of::<S>(range) else {
            return ControlFlow::Continue(());
        };
        self.locks.visit(keys, |(number, word)| {
            let key = key_of::<S>(number);
            // SAFETY: as in `get_with`.
            unsafe { packed::<S>(word).with(|value| visit(&key, value)) }
        })
    }
}

/// To undo a step, no number is computed again: so no user code runs then.
impl<S: Spec, const UNITS: usize> HeldParts<S::Key, S::Value> for HeldNumbers<'_, S, UNITS> {
    /// A number and the word that was under it.
    type Taken = Entry;
    /// The number.
    type Added = u64;

    fn put(
        &mut self,
        _: usize,
        key: &mut Option<S::Key>,
        value: &mut Option<S::Value>,
    ) -> Option<transactional::Change<Entry, u64>> {
        let number = number_of::<S>(key.as_ref()?);
        let place = self.locks.place(number);
        let old = self.locks.put(place, word_of::<S>(value.take()?));
        Some(match old {
            Some(word) => transactional::Change::Took((number, word)),
            None => transactional::Change::Added(number),
        })
    }

    fn take(&mut self, _: usize, key: &S::Key) -> Option<Entry> {
        let number = number_of::<S>(key);
        let place = self.locks.place(number);
        self.locks.take(place).map(|word| (number, word))
    }

    fn take_added(&mut self, _: &S::Key, number: u64) -> Option<Entry> {
        let place = self.locks.place(number);
        self.locks.take(place).map(|word| (number, word))
    }

    fn put_back(&mut self, _: &mut Option<S::Key>, (number, word): Entry) -> Option<Entry> {
        let place = self.locks.place(number);
        self.locks.put(place, word).map(|word| (number, word))
    }

    fn release(self, taken: Vec<Entry>) {
        self.locks.release();
        let words = taken.into_iter().map(|(_, word)| word).collect();
        retire::<S>(words, self.guard.as_ref());
    }
}

impl<S, const UNITS: usize> Drop for Numbers<S, UNITS> {
    fn drop(&mut self) {
        (self.free)(&mut self.words);
    }
}

/// Drops the values of a map that is being dropped.
fn free<S: Spec, const UNITS: usize>(words: &mut Words<UNITS>) {
    if !Packed::<S::Value>::is_word() {
        // SAFETY: no other thread uses the map any more, and each value is in one leaf.
        words.each_value(|word| drop(unsafe { packed::<S>(word).take() }));
    }
}
