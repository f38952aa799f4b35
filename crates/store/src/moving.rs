//! Values that go from one key to another, also of another database, as one atomic step.
//!
//! Each database is an index of its own. A step over two of them first holds what it needs of the
//! one with the lower number, so that two threads never wait for each other.

use crate::database::Database;
use crate::databases::Databases;
use crate::effects::before::puts;
use crate::effects::{Edit, Effects, What};
use crate::{Key, Value};
use std::ops::{Bound, ControlFlow};
use tremula_index::{KeyRange, Part, Transaction};

/// A key of a database.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The number of the database.
    pub database: usize,
    /// The key.
    pub key: &'a Key,
}

/// What a value does on its way to another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether it is no longer where it was.
    pub leaves: bool,
    /// Whether it may take the place of another value.
    pub replaces: bool,
}

/// What came of it.
#[derive(Debug)]
pub enum Moved {
    /// The value is there. Holds the value that it replaced.
    Done(Option<Value>),
    /// There was no value.
    Absent,
    /// Another value is where it should go.
    Taken,
    /// The value lies in the cache, by its old key. Nothing has changed: take it out of the cache
    /// first.
    Cached,
}

type Step<'s> = dyn Transaction<Key, Value> + 's;

/// What a step over both keys finds there: a value on its way.
struct Found {
    value: Option<Value>,
    old: Option<Value>,
    /// What is under the key that it goes to, also if its time is over.
    before: Option<Value>,
}

impl Found {
    fn look(
        (source, from, first): (Database<'_>, &Key, &Step<'_>),
        (target, to, second): (Database<'_>, &Key, &Step<'_>),
    ) -> Self {
        let (mut value, mut old) = (None, None);
        first.get_with(from, &mut |found: &Value| value = Some(found.clone()));
        second.get_with(to, &mut |found: &Value| old = Some(found.clone()));
        Self {
            value: value.filter(|value| source.is_alive(value)),
            before: old.clone(),
            old: old.filter(|old| target.is_alive(old)),
        }
    }

    /// The value, if it goes; else why it does not.
    fn decide(self, way: Way) -> Result<(Value, Option<Value>, Option<Value>), Moved> {
        match self.value {
            None => Err(Moved::Absent),
            Some(_) if self.old.is_some() && !way.replaces => Err(Moved::Taken),
            Some(value) if value.cached().is_some() => Err(Moved::Cached),
            Some(value) => Ok((value, self.old, self.before)),
        }
    }
}

impl Databases<'_> {
    /// Lets the value of one key be that of another, as one atomic step: both are seen as they were
    /// before, or as they are afterwards. Long bytes are shared, not copied.
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), it is several
    /// steps: for a moment the value can be under both keys. O(log n). The key expires when the one
    /// before did.
    ///
    /// ```
    /// use tremula_store::{Engine, Key, Moved, Place, Store, StoreConfig, Value, Way};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (one, other) = (Key::from(&b"one"[..]), Key::from(&b"other"[..]));
    /// let value = Value::from(&b"1"[..]);
    /// store.commit(|effects| store.database(0).insert(effects, one.clone(), value))?;
    /// let from = Place { database: 0, key: &one };
    /// let to = Place { database: 7, key: &other };
    /// let way = Way { leaves: true, replaces: false };
    /// let moved = store.commit(|effects| store.free().carry(effects, from, to, way))?;
    /// assert!(matches!(moved, Moved::Done(None)));
    /// assert!(store.database(0).is_empty() && store.database(7).contains_key(&other));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If a database's number is not below [`DATABASES`](crate::DATABASES), or if both places are
    /// the same.
    pub fn carry(
        &self,
        effects: &mut Effects<'_>,
        from: Place<'_>,
        to: Place<'_>,
        way: Way,
    ) -> Moved {
        let is_same = from.database == to.database;
        assert!(!is_same || from.key != to.key, "a value that goes nowhere");
        let (source, target) = (self.database(from.database), self.database(to.database));
        let (Some(first), Some(second)) = (source.steps(), target.steps()) else {
            return in_parts(effects, (source, from.key), (target, to.key), way);
        };
        let mut moved = Moved::Absent;
        let mut settle = |decided: Result<(Value, Option<Value>, Option<Value>), Moved>| {
            let (mut value, old, before) = match decided {
                Ok(decided) => decided,
                Err(why) => {
                    moved = why;
                    return None;
                }
            };
            if way.leaves {
                source.note_expiry(from.key, Some(&value), None);
                source.report_removed(effects, from.key, &value);
            }
            target.note_expiry(to.key, before.as_ref(), value.expiry());
            target.report_put(effects, to.key, before.as_ref(), value.expiry());
            let mut changes = Vec::new();
            if effects.are_logged() {
                let what = What::Put(to.key.clone(), value.clone());
                let before = effects.before(before.as_ref());
                changes.push((target.number(), Edit { what, before }));
                if way.leaves {
                    let what = What::Delete(from.key.clone());
                    let before = effects.before(Some(&value));
                    changes.push((source.number(), Edit { what, before }));
                }
            }
            value.stamp(effects.steps(changes).take());
            moved = Moved::Done(old);
            Some(value)
        };
        let (of_source, of_target) = ([KeyRange::only(from.key)], [KeyRange::only(to.key)]);
        if is_same {
            first.atomically(&[of_source[0], of_target[0]], &mut |step| {
                let found = Found::look((source, from.key, &*step), (target, to.key, &*step));
                let Some(value) = settle(found.decide(way)) else {
                    return;
                };
                if way.leaves {
                    step.remove(from.key);
                }
                step.insert(to.key.clone(), value);
            });
        } else {
            let mut both = |one: &mut Step<'_>, other: &mut Step<'_>| {
                let found = Found::look((source, from.key, &*one), (target, to.key, &*other));
                let Some(value) = settle(found.decide(way)) else {
                    return;
                };
                if way.leaves {
                    one.remove(from.key);
                }
                other.insert(to.key.clone(), value);
            };
            if from.database < to.database {
                first.atomically(&of_source, &mut |one| {
                    second.atomically(&of_target, &mut |other| both(one, other));
                });
            } else {
                second.atomically(&of_target, &mut |other| {
                    first.atomically(&of_source, &mut |one| both(one, other));
                });
            }
        }
        effects.submit();
        moved
    }
}

/// As [`Store::carry`], in several steps.
fn in_parts(
    effects: &mut Effects<'_>,
    (source, from): (Database<'_>, &Key),
    (target, to): (Database<'_>, &Key),
    way: Way,
) -> Moved {
    let found = Found {
        value: source.get(from),
        old: target.get(to),
        before: None,
    };
    let value = match found.decide(way) {
        Ok((value, ..)) => value,
        Err(why) => return why,
    };
    let old = target.insert(effects, to.clone(), value);
    if way.leaves {
        source.remove(effects, from);
    }
    Moved::Done(old)
}

impl Database<'_> {
    /// Stores values under their keys, all as one atomic step, if none of the keys is present.
    /// Returns whether it did. If a key comes twice, its last value stays. O(k log n).
    ///
    /// If the engine is not [transactional](tremula_index::Facts::transactional), each key is
    /// looked up and stored in a step of its own.
    ///
    /// ```
    /// use tremula_store::{Engine, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let entry = |key: &[u8]| (Key::from(key), Value::from(&b"1"[..]));
    /// let database = store.database(0);
    /// let mut insert = |keys: &[&[u8]]| {
    ///     let entries = keys.iter().map(|key| entry(key)).collect();
    ///     store.commit(|effects| database.insert_together_if_absent(effects, entries))
    /// };
    /// assert!(insert(&[b"a", b"b"])?);
    /// assert!(!insert(&[b"b", b"c"])?);
    /// assert_eq!(database.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_together_if_absent(
        &self,
        effects: &mut Effects<'_>,
        mut entries: Vec<(Key, Value)>,
    ) -> bool {
        // The step goes from key to key. Of two values of a key the later one stays the later one.
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let keys: Vec<Key> = entries.iter().map(|(key, _)| key.clone()).collect();
        let Some(steps) = self.steps() else {
            if keys.iter().any(|key| self.contains_key(key)) {
                return false;
            }
            self.insert_together(effects, entries);
            return true;
        };
        let ranges: Vec<_> = keys.iter().map(KeyRange::only).collect();
        let mut entries = Some(entries);
        let mut is_stored = false;
        steps.atomically(&ranges, &mut |step| {
            let mut is_taken = false;
            for key in &keys {
                step.get_with(key, &mut |value| is_taken |= self.is_alive(value));
            }
            is_stored = !is_taken;
            let entries = entries.take().filter(|_| is_stored).unwrap_or_default();
            let mut versions = effects.step(self.number(), puts(effects, step, &entries));
            for (key, mut value) in entries {
                // One may be there that has expired.
                let mut before = None;
                step.get_with(&key, &mut |old| before = Some(old.clone()));
                self.note_expiry(&key, before.as_ref(), value.expiry());
                self.report_put(effects, &key, before.as_ref(), value.expiry());
                value.stamp(versions.take());
                step.insert(key, value);
            }
        });
        effects.submit();
        is_stored
    }

    /// A key, each with the same chance if nobody writes; `None` if there are no keys. `random` is
    /// any number, of which each should come as often.
    ///
    /// O(n / 64), because it counts the parts of the index; O(n) if the engine is not
    /// [transactional](tremula_index::Facts::transactional).
    ///
    /// ```
    /// use tremula_store::{Engine, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (key, value) = (Key::from(&b"tree"[..]), Value::from(&b"aspen"[..]));
    /// assert_eq!(store.database(0).random_key(7), None);
    /// store.commit(|effects| store.database(0).insert(effects, key.clone(), value))?;
    /// assert_eq!(store.database(0).random_key(7), Some(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn random_key(&self, random: u64) -> Option<Key> {
        let count = self.len().max(1) as u64;
        // Below the number of keys.
        let mut skipped = (random % count) as usize;
        let mut low: Option<Key> = None;
        if let Some(steps) = self.steps() {
            steps.walk(&mut |part: &Part<Key>| {
                let entries = part.entries.unwrap_or(0);
                if part.low.is_some() {
                    low.clone_from(&part.low);
                }
                if skipped < entries {
                    return ControlFlow::Break(());
                }
                skipped -= entries;
                ControlFlow::Continue(())
            });
        }
        let mut found = None;
        let low = low.as_ref().map_or(Bound::Unbounded, Bound::Included);
        self.visit_from(low, &mut |key| {
            found = Some(key.clone());
            if skipped == 0 {
                return ControlFlow::Break(());
            }
            skipped -= 1;
            ControlFlow::Continue(())
        });
        // Keys may have gone meanwhile.
        found.or_else(|| self.first().map(|(key, _)| key))
    }
}
