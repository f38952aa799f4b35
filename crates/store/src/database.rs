//! One database: an index that is read by anyone, and written with [`Effects`] only.

use crate::access::{Access, Holding, Steps};
use crate::deadlines::{Deadlines, Timed};
use crate::effects::before::{puts, removals};
use crate::effects::{Edit, Effects, What};
use crate::notices::Happening;
use crate::{Expiry, Key, Value};
use std::cell::LazyCell;
use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, KeyRange, OrderedIndex, Shape, Snapshot, Transactional, Update};
use tremula_sync::atomic::{AtomicBool, Ordering::Relaxed};
use tremula_sync::reclaim;

/// What is kept of one database.
pub(crate) struct Kept {
    number: u8,
    pub(crate) index: Box<dyn OrderedIndex<Key, Value>>,
    pub(crate) deadlines: Deadlines,
    /// Whether keys expire: not while the log is applied, in which a key's time may change after it
    /// has come.
    pub(crate) expires: AtomicBool,
}

impl Kept {
    pub(crate) fn new(number: u8, index: Box<dyn OrderedIndex<Key, Value>>) -> Self {
        let deadlines = Deadlines::new();
        Self {
            number,
            index,
            deadlines,
            expires: AtomicBool::new(true),
        }
    }

    /// The database, as everyone reaches it.
    #[inline]
    pub(crate) fn free(&self) -> Database<'_> {
        Database {
            kept: self,
            index: Access::Free(&*self.index),
        }
    }

    /// The database in a step that holds a part of it.
    pub(crate) fn held<'a>(&'a self, step: &'a dyn Holding) -> Database<'a> {
        Database {
            kept: self,
            index: Access::Held(step),
        }
    }

    /// Its atomic steps, if the engine has any.
    pub(crate) fn steps(&self) -> Option<&dyn Transactional<Key, Value>> {
        self.index.transactional()
    }
}

/// One database: keys in order, each with a value.
///
/// Reading is free; every write takes the [`Effects`] of a [`commit`](crate::Store::commit). Each
/// operation on one key is linearizable, and so are [`remove_range`](Self::remove_range) and the
/// operations on several keys at once, if the engine is
/// [transactional](tremula_index::Facts::transactional); otherwise these are a step for each key.
///
/// In a step that [holds](crate::Store::hold) a part of the database, every operation is a part of
/// the step, and one on a key that it does not hold panics.
///
/// A key whose value [has expired](Value::has_expired) is not there, although its removal may come
/// later: no read and no decision sees it.
#[derive(Clone, Copy)]
pub struct Database<'a> {
    pub(crate) kept: &'a Kept,
    pub(crate) index: Access<'a>,
}

/// Turns at freeing garbage in one [`Database::tidy`]. A turn frees a quarter of the garbage at
/// least, so this leaves a thousandth of it.
const TURNS: usize = 24;

/// Reading.
impl<'a> Database<'a> {
    /// Lets keys expire from now on, or not.
    pub(crate) fn let_expire(&self, expires: bool) {
        self.kept.expires.store(expires, Relaxed);
    }

    #[inline]
    pub(crate) fn is_alive(&self, value: &Value) -> bool {
        value.expiry().is_none_or(|expiry| !self.is_over(expiry))
    }

    fn is_over(&self, expiry: Expiry) -> bool {
        expiry <= self.index.now() && self.kept.expires.load(Relaxed)
    }

    /// The engine's name.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.kept.index.engine()
    }

    /// If `key` is present, calls `read` once with its value. Returns whether it did.
    #[inline]
    pub fn get_with(&self, key: &Key, read: &mut dyn FnMut(&Value)) -> bool {
        let mut over = None;
        loop {
            let (mut is_there, mut found) = (false, None);
            self.index.get_with(key, &mut |value| {
                if self.is_alive(value) {
                    is_there = true;
                    read(value);
                } else {
                    found = value.expiry();
                }
            });
            // The clock was looked at behind the value, and another thread may have given the key a
            // later time in between. What still has a time that was over before is gone.
            if found == over || is_there {
                return is_there;
            }
            over = found;
        }
    }

    /// The value under `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Value> {
        let mut found = None;
        self.get_with(key, &mut |value| found = Some(value.clone()));
        found
    }

    /// Whether `key` is present.
    #[inline]
    #[must_use]
    pub fn contains_key(&self, key: &Key) -> bool {
        self.get_with(key, &mut |_| ())
    }

    /// The entry with the smallest key.
    #[must_use]
    pub fn first(&self) -> Option<(Key, Value)> {
        self.alive(self.index.first(), KeyRange::all(), Direction::Ascending)
    }

    /// The entry with the largest key.
    #[must_use]
    pub fn last(&self) -> Option<(Key, Value)> {
        self.alive(self.index.last(), KeyRange::all(), Direction::Descending)
    }

    /// The entry with the smallest key strictly above `key`.
    #[must_use]
    pub fn next(&self, key: &Key) -> Option<(Key, Value)> {
        let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
        self.alive(self.index.next(key), above, Direction::Ascending)
    }

    /// The entry with the largest key strictly below `key`.
    #[must_use]
    pub fn prev(&self, key: &Key) -> Option<(Key, Value)> {
        let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
        self.alive(self.index.prev(key), below, Direction::Descending)
    }

    /// This entry, which is the first of a range, or the first that has not expired.
    fn alive(
        &self,
        first: Option<(Key, Value)>,
        range: KeyRange<'_, Key>,
        direction: Direction,
    ) -> Option<(Key, Value)> {
        if first.as_ref().is_none_or(|(_, value)| self.is_alive(value)) {
            return first;
        }
        // What lies behind it now need not be what lay behind it then.
        let mut found = Vec::new();
        self.scan(range, direction, 1, &mut found);
        found.pop()
    }

    /// Appends to `out` copies of the first `limit` entries of `range`, as of one moment.
    pub fn scan(
        &self,
        range: KeyRange<'_, Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        let before = out.len();
        let mut wanted = limit;
        loop {
            let began = (!self.kept.deadlines.are_unused()).then(|| self.index.now());
            self.index.scan(range, direction, wanted, out);
            let copied = out.len() - before;
            // None if no key expires.
            let now = LazyCell::new(|| self.index.now());
            let (mut at, mut is_unsure) = (0, false);
            out.retain(|(_, value)| {
                at += 1;
                let expiry = value.expiry().filter(|_| at > before);
                let Some(expiry) = expiry.filter(|_| self.kept.expires.load(Relaxed)) else {
                    return true;
                };
                let is_over = expiry <= *now;
                is_unsure |= is_over && began.is_none_or(|began| expiry > began);
                !is_over
            });
            let is_short = out.len() - before < limit.min(copied);
            if !is_unsure && (!is_short || copied < wanted) {
                out.truncate(before + limit);
                return;
            }
            // Seldom. Some had expired: all anew with more, so that the entries are of one moment.
            // Or the time of one came meanwhile, and nobody can say on which side of the copy.
            out.truncate(before);
            wanted = wanted.saturating_mul(if is_unsure { 1 } else { 2 });
        }
    }

    /// As [`scan`](Self::scan), with the keys that have expired and are not removed yet.
    pub(crate) fn scan_all(
        &self,
        range: KeyRange<'_, Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(Key, Value)>,
    ) {
        self.index.scan(range, direction, limit, out);
    }

    /// What `range` is at one moment, if the engine can say and this is not in a step; without
    /// waiting for writers, if it is `aspen`. Keys that have expired and are not removed yet are in
    /// it.
    #[must_use]
    pub fn snapshot(&self, range: KeyRange<'_, Key>) -> Option<Snapshot<Key, Value>> {
        self.steps()?.snapshot(range)
    }

    /// The number of keys: exact when nobody writes. Those that have expired count until they are
    /// removed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether more than `most` keys lie in a range, counted as by [`len`](Self::len). O(log n +
    /// most), also in a step.
    #[must_use]
    pub fn has_more_than(&self, range: KeyRange<'_, Key>, most: usize) -> bool {
        let mut left = most;
        let mut has_more = false;
        self.index.range(range, &mut |_, _| {
            has_more = left == 0;
            left = left.saturating_sub(1);
            if has_more {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        has_more
    }

    /// The number of keys that will expire: exact when nobody writes.
    #[must_use]
    pub fn expiring(&self) -> usize {
        self.kept.deadlines.len()
    }

    /// When the next keys expire: up to `most` times, the earliest first. O(most).
    #[must_use]
    pub fn next_expiries(&self, most: usize) -> Vec<Expiry> {
        let entries = self.kept.deadlines.behind(None, most);
        entries.iter().map(Timed::expiry).collect()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// What the index looks like now. O(n).
    ///
    /// # Panics
    ///
    /// In a step that holds a part of the database.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let shape = self.index.shape();
        shape.unwrap_or_else(|| panic!("a step does not see the shape of an index"))
    }

    /// Shows the values of several keys, all as of one moment: calls `show` once for each key, with
    /// its value if it has one. The engine's locks are held meanwhile.
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), each value is of
    /// a moment of its own.
    pub fn get_together(&self, keys: &[Key], show: &mut dyn FnMut(usize, Option<&Value>)) {
        let Some(steps) = self.steps().filter(|_| keys.len() > 1) else {
            for (at, key) in keys.iter().enumerate() {
                if !self.get_with(key, &mut |value| show(at, Some(value))) {
                    show(at, None);
                }
            }
            return;
        };
        let ranges: Vec<_> = keys.iter().map(KeyRange::only).collect();
        steps.atomically(&ranges, &mut |step| {
            for (at, key) in keys.iter().enumerate() {
                let mut is_shown = false;
                step.get_with(key, &mut |value| {
                    if self.is_alive(value) {
                        is_shown = true;
                        show(at, Some(value));
                    }
                });
                if !is_shown {
                    show(at, None);
                }
            }
        });
    }

    /// Its atomic steps, if the engine has any.
    pub(crate) fn steps(&self) -> Option<Steps<'a>> {
        self.index.steps()
    }
}

/// Writing.
impl<'a> Database<'a> {
    /// Stores `value` under `key`, and returns the value that it replaced.
    #[inline]
    pub fn insert(&self, effects: &mut Effects<'_>, key: Key, mut value: Value) -> Option<Value> {
        // If another thread is just giving the first key a time, that stays noted although it is
        // gone; it is dropped when its time comes.
        if !effects.are_noted() && self.kept.deadlines.are_unused() && value.expiry().is_none() {
            effects.stamp_unlogged(&mut value);
            return self.index.insert(key, value);
        }
        let mut value = Some(value);
        self.update(effects, key, &mut |_| {
            value.take().map_or(Update::Keep, Update::Put)
        })
    }

    /// Removes `key`, and returns its value.
    #[inline]
    pub fn remove(&self, effects: &mut Effects<'_>, key: &Key) -> Option<Value> {
        if !effects.are_noted() && self.kept.deadlines.are_unused() {
            return self.index.remove(key);
        }
        self.update(effects, key.clone(), &mut |_| Update::Remove)
    }

    /// Shows the value under `key`, or `None`, to `decide` exactly once and carries out what it
    /// decides, as one atomic step. Returns the value that was replaced or removed, if any. A value
    /// that is put expires when it says so itself.
    pub fn update(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        decide: &mut dyn FnMut(Option<&Value>) -> Update<Value>,
    ) -> Option<Value> {
        self.update_noting(effects, key, &mut |_, current| decide(current))
    }

    /// Like [`update`](Self::update), but `decide` may note an effect of its own. What it decides
    /// is noted if it puts or removes; a value in the cache is not: that is up to `decide`, and so
    /// is its version.
    pub(crate) fn update_noting(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        decide: &mut dyn FnMut(&mut Effects<'_>, Option<&Value>) -> Update<Value>,
    ) -> Option<Value> {
        let noted = key.clone();
        let old = self.index.update(key, &mut |current| {
            let mut decided = decide(effects, current.filter(|value| self.is_alive(value)));
            match (&mut decided, current) {
                (Update::Put(value), _) => {
                    if value.cached().is_none() {
                        effects.put(self.kept.number, &noted, current, value);
                    }
                    self.note_expiry(&noted, current, value.expiry());
                    self.report_put(effects, &noted, current, value.expiry());
                }
                (Update::Remove, Some(before)) => {
                    effects.delete(self.kept.number, &noted, current);
                    self.note_expiry(&noted, current, None);
                    self.report_removed(effects, &noted, before);
                }
                (Update::Keep | Update::Remove, _) => {}
            }
            decided
        });
        effects.submit();
        old.filter(|old| self.is_alive(old))
    }

    /// Shows the value under `key` to `decide`, if there is one, and lets the key expire when it
    /// decides, or removes it, as one atomic step. Returns whether the key was there, and its value
    /// if it was removed.
    pub fn update_expiry(
        &self,
        effects: &mut Effects<'_>,
        key: Key,
        decide: &mut dyn FnMut(&Value) -> Update<Option<Expiry>>,
    ) -> (bool, Option<Value>) {
        let noted = key.clone();
        let (mut is_there, mut is_removed) = (false, false);
        let old = self.index.update(key, &mut |current| {
            let Some(value) = current.filter(|value| self.is_alive(value)) else {
                return Update::Keep;
            };
            is_there = true;
            match decide(value) {
                Update::Keep => Update::Keep,
                Update::Remove => {
                    is_removed = true;
                    effects.delete(self.kept.number, &noted, current);
                    self.note_expiry(&noted, current, None);
                    self.report_removed(effects, &noted, value);
                    Update::Remove
                }
                // Made again, it is a change with a version of its own, whatever the time is now.
                Update::Put(expiry) if expiry == value.expiry() && !effects.are_again() => {
                    if expiry.is_some() {
                        effects.notice(self.kept.number, &noted, Happening::Expires);
                    }
                    Update::Keep
                }
                Update::Put(expiry) => {
                    let version = effects.expire(self.kept.number, &noted, value, expiry);
                    self.note_expiry(&noted, current, expiry);
                    let happening = expiry.map_or(Happening::Persists, |_| Happening::Expires);
                    effects.notice(self.kept.number, &noted, happening);
                    let mut value = value.clone().expiring(expiry);
                    value.stamp(version);
                    Update::Put(value)
                }
            }
        });
        effects.submit();
        (is_there, old.filter(|_| is_removed))
    }

    /// Removes a key whose time has come, unless it has another time by now. Returns its value.
    pub(crate) fn remove_due(&self, effects: &mut Effects<'_>, entry: &Timed) -> Option<Value> {
        let key = entry.key();
        let noted = key.clone();
        let old = self.index.update(key, &mut |current| {
            self.kept.deadlines.drop_entry(entry);
            let expiry = current.and_then(Value::expiry);
            if expiry != Some(entry.expiry()) {
                return Update::Keep;
            }
            effects.delete(self.kept.number, &noted, current);
            if let Some(current) = current {
                self.report_removed(effects, &noted, current);
            }
            Update::Remove
        });
        effects.submit();
        self.kept.deadlines.count_over(old.is_some().into());
        old
    }

    /// The keys that will expire, by time.
    pub(crate) const fn deadlines(&self) -> &'a Deadlines {
        &self.kept.deadlines
    }

    /// Notes when a key expires from now on. To be called under its lock.
    #[inline]
    pub(crate) fn note_expiry(&self, key: &Key, current: Option<&Value>, after: Option<Expiry>) {
        let before = current.and_then(Value::expiry);
        let is_over = before.is_some_and(|expiry| self.is_over(expiry));
        self.kept.deadlines.count_over(is_over.into());
        self.kept.deadlines.change(key, before, after);
    }

    /// Frees what has been unlinked, as far as no thread is inside the index. The index does so by
    /// itself while it is used; call it after a step that has removed much. O(garbage).
    pub fn tidy(&self) {
        let key = Key::from(&b""[..]);
        for _ in 0..TURNS {
            reclaim::turn_next();
            let _ = self.contains_key(&key);
        }
    }

    /// The number of the database, as effects have it.
    pub(crate) const fn number(&self) -> u8 {
        self.kept.number
    }

    /// Removes every entry between two bounds, as one atomic step, and returns how many there were.
    pub fn remove_range(
        &self,
        effects: &mut Effects<'_>,
        low: Bound<&Key>,
        high: Bound<&Key>,
    ) -> usize {
        let range = KeyRange::new(low, high);
        let is_plain = !effects.are_logged() && self.kept.deadlines.are_unused();
        let Some(steps) = self.steps().filter(|_| !is_plain) else {
            // What is noted of times is dropped when they come, if the engine has no steps.
            return self.index.remove_range(range);
        };
        let mut expired = 0;
        let removed = steps.remove_range_with(range, &mut |view| {
            if effects.have_before() {
                effects.step(self.kept.number, removals(effects, view, range));
            } else {
                effects.delete_range(self.kept.number, low, high);
            }
            if self.kept.deadlines.are_unused() {
                return;
            }
            view.range(range, &mut |key, value| {
                if let Some(expiry) = value.expiry() {
                    expired += usize::from(self.is_over(expiry));
                    self.kept.deadlines.change(key, Some(expiry), None);
                }
                ControlFlow::Continue(())
            });
        });
        effects.submit();
        self.kept.deadlines.count_over(expired);
        removed - expired
    }

    /// Stores values under their keys, all as one atomic step. If a key comes twice, its last value
    /// stays. Returns the values that were replaced.
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), each key is a
    /// step of its own.
    pub fn insert_together(
        &self,
        effects: &mut Effects<'_>,
        mut entries: Vec<(Key, Value)>,
    ) -> Vec<Value> {
        let Some(steps) = self.steps().filter(|_| entries.len() > 1) else {
            return entries
                .into_iter()
                .filter_map(|(key, value)| self.insert(effects, key, value))
                .collect();
        };
        let mut replaced = Vec::with_capacity(entries.len());
        // The step goes from key to key. Of two values of a key the later one stays the later one.
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let keys: Vec<Key> = entries.iter().map(|(key, _)| key.clone()).collect();
        let ranges: Vec<_> = keys.iter().map(KeyRange::only).collect();
        let mut entries = Some(entries);
        steps.atomically(&ranges, &mut |step| {
            let entries = entries.take().unwrap_or_default();
            let mut versions = effects.step(self.kept.number, puts(effects, step, &entries));
            for (key, mut value) in entries {
                let mut before = None;
                step.get_with(&key, &mut |old| before = Some(old.clone()));
                self.note_expiry(&key, before.as_ref(), value.expiry());
                self.report_put(effects, &key, before.as_ref(), value.expiry());
                replaced.extend(before);
                value.stamp(versions.take());
                step.insert(key, value);
            }
        });
        effects.submit();
        replaced
    }

    /// Removes keys, all as one atomic step. Returns the values of those that were present.
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), each key is a
    /// step of its own.
    pub fn remove_together(&self, effects: &mut Effects<'_>, keys: &[Key]) -> Vec<Value> {
        let Some(steps) = self.steps().filter(|_| keys.len() > 1) else {
            return keys
                .iter()
                .filter_map(|key| self.remove(effects, key))
                .collect();
        };
        let mut removed = Vec::new();
        let ranges: Vec<_> = keys.iter().map(KeyRange::only).collect();
        steps.atomically(&ranges, &mut |step| {
            let mut changes = Vec::new();
            for key in keys {
                let mut before = effects.before(None);
                step.get_with(key, &mut |old| {
                    before = effects.before(Some(old));
                    self.note_expiry(key, Some(old), None);
                    self.report_removed(effects, key, old);
                    removed.extend(self.is_alive(old).then(|| old.clone()));
                });
                if step.remove(key) && effects.are_logged() {
                    let what = What::Delete(key.clone());
                    changes.push(Edit { what, before });
                }
            }
            effects.step(self.kept.number, changes);
        });
        effects.submit();
        removed
    }

    /// Stores values under their keys, and removes the keys that come without one, all as one
    /// atomic step and in their order.
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), each key is a
    /// step of its own.
    pub fn change_together(
        &self,
        effects: &mut Effects<'_>,
        mut changes: Vec<(Key, Option<Value>)>,
    ) {
        let Some(steps) = self.steps().filter(|_| changes.len() > 1) else {
            for (key, value) in changes {
                match value {
                    Some(value) => drop(self.insert(effects, key, value)),
                    None => drop(self.remove(effects, &key)),
                }
            }
            return;
        };
        // The step goes from key to key. Of several changes of a key it makes the last one.
        changes.reverse();
        changes.sort_by(|(one, _), (other, _)| one.cmp(other));
        changes.dedup_by(|(earlier, _), (last, _)| earlier == last);
        let keys: Vec<Key> = changes.iter().map(|(key, _)| key.clone()).collect();
        let ranges: Vec<_> = keys.iter().map(KeyRange::only).collect();
        let mut changes = Some(changes);
        steps.atomically(&ranges, &mut |step| {
            let changes = changes.take().unwrap_or_default();
            let mut noted = Vec::new();
            for (key, value) in &changes {
                let mut before = None;
                step.get_with(key, &mut |old| before = Some(old.clone()));
                let (before, after) = (before.as_ref(), value.as_ref().and_then(Value::expiry));
                self.note_expiry(key, before, after);
                match (value, before) {
                    (Some(_), _) => self.report_put(effects, key, before, after),
                    (None, Some(before)) => self.report_removed(effects, key, before),
                    (None, None) => {}
                }
                if !effects.are_logged() {
                    continue;
                }
                let what = match value {
                    Some(value) => What::Put(key.clone(), value.clone()),
                    None if before.is_some() => What::Delete(key.clone()),
                    // It has no number.
                    None => continue,
                };
                let before = effects.before(before);
                noted.push(Edit { what, before });
            }
            let mut versions = effects.step(self.kept.number, noted);
            for (key, value) in changes {
                match value {
                    Some(mut value) => {
                        value.stamp(versions.take());
                        step.insert(key, value);
                    }
                    None => {
                        if step.remove(&key) {
                            versions.take();
                        }
                    }
                }
            }
        });
        effects.submit();
    }

    /// Visits the keys that have not expired, ascending, from a bound on, in batches; each batch is
    /// of one moment.
    pub(crate) fn visit_from(
        &self,
        low: Bound<&Key>,
        visit: &mut dyn FnMut(&Key) -> ControlFlow<()>,
    ) {
        let range = KeyRange::new(low, Bound::Unbounded);
        self.index.range(range, &mut |key, value| {
            if self.is_alive(value) {
                visit(key)
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    /// Visits every entry, ascending, in batches; each batch is of one moment. Keys that have
    /// expired and are not removed yet are among them.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Key, &Value) -> ControlFlow<()>) {
        self.index.range(KeyRange::all(), visit);
    }
}
