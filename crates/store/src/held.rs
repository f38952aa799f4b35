//! One atomic step over keys and ranges of several databases, in which any operations may run.
//!
//! The step first holds all that it may touch: the databases by number, and in each the ranges from
//! the smallest key to the largest, so that two steps never wait for each other. Then operations
//! reach the databases as they do otherwise, through [`Databases`]; what they change goes into the
//! log together. Threads that touch other parts of the indexes are not held up.

use crate::access::{Holding, Part};
use crate::databases::{Databases, Running};
use crate::effects::{DATABASES, Effects, Unlogged};
use crate::store::Store;
use crate::value_cache::Evicted;
use crate::{Expiry, Key};
use std::cell::{OnceCell, RefCell};
use std::ops::Bound;
use thiserror::Error;
use tremula_index::KeyRange;

/// What a step holds: a range of a database.
///
/// ```
/// use tremula_store::{Hold, Key};
///
/// let account = Hold::key(0, Key::from(&b"account:7"[..]));
/// let everything = Hold::database(3);
/// assert_eq!((account.database, everything.database), (0, 3));
/// ```
#[derive(Clone, Debug)]
pub struct Hold {
    /// The number of the database.
    pub database: usize,
    /// Where the range begins.
    pub low: Bound<Key>,
    /// Where it ends.
    pub high: Bound<Key>,
}

impl Hold {
    /// One key, which need not be present.
    #[must_use]
    pub fn key(database: usize, key: Key) -> Self {
        Self {
            database,
            low: Bound::Included(key.clone()),
            high: Bound::Included(key),
        }
    }

    /// All keys of a database.
    #[must_use]
    pub const fn database(database: usize) -> Self {
        Self {
            database,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        }
    }

    fn range(&self) -> KeyRange<'_, Key> {
        match (&self.low, &self.high) {
            // An index sorts and finds single keys faster.
            (Bound::Included(low), Bound::Included(high)) if low == high => KeyRange::only(low),
            (low, high) => KeyRange::new(low.as_ref(), high.as_ref()),
        }
    }
}

/// Nothing was held, and nothing has run.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CannotHold {
    /// The engine has no steps over several keys.
    #[error("engine '{0}' has no steps over several keys")]
    NoSteps(&'static str),
    /// The log takes nothing more.
    #[error(transparent)]
    Unlogged(#[from] Unlogged),
}

/// The part of each database that a step holds.
type Holdings<'h> = [Option<&'h dyn Holding>; DATABASES];

struct Held<'h, 's> {
    databases: Holdings<'h>,
    effects: RefCell<&'h mut Effects<'s>>,
    evicted: RefCell<&'h mut Evicted>,
}

impl Running for Held<'_, '_> {
    fn holding(&self, database: usize) -> Option<&dyn Holding> {
        self.databases[database]
    }

    fn note(&self, write: &mut dyn FnMut(&mut Effects<'_>)) {
        write(&mut self.effects.borrow_mut());
    }

    fn expect(&self, changes: usize) {
        self.effects.borrow_mut().expect(changes);
    }

    fn expect_own(&self, changes: usize) {
        self.effects.borrow_mut().expect_own(changes);
    }

    fn evicted(&self, evicted: Evicted) {
        self.evicted.borrow_mut().extend(evicted);
    }
}

/// The ranges that a step holds of one database.
struct Group<'h> {
    database: usize,
    ranges: Vec<KeyRange<'h, Key>>,
}

impl Store {
    /// Holds keys and ranges, of any databases, and calls `run` once: all that it does with the
    /// [`Databases`] that it gets is one atomic step, which others see as a whole or not at all,
    /// also in the log. Linearizable. Threads that touch other parts of the indexes are not held
    /// up; those that touch these wait, so `run` must be brief. It is one moment also for keys that
    /// expire: none is there at first and gone then.
    ///
    /// `changes` is how many keys and ranges `run` changes at most, counted once for each change of
    /// the same key. If there are more, and the store has a log, a crash may cut the step in two.
    ///
    /// Costs O(log n) for each key, and O(n) for each range of n parts of the index; a copy of each
    /// key that is changed. A descending scan in a step passes over all of its range.
    ///
    /// ```
    /// use tremula_store::{Engine, Hold, Key, Store, StoreConfig, Value};
    ///
    /// let store = Store::new(&StoreConfig::new(Engine::Aspen))?;
    /// let (from, to) = (Key::from(&b"from"[..]), Key::from(&b"to"[..]));
    /// let coins = Value::from(&b"100"[..]);
    /// store.commit(|effects| store.database(0).insert(effects, from.clone(), coins))?;
    /// let holds = [Hold::key(0, from.clone()), Hold::key(5, to.clone())];
    /// let has_moved = store.hold(&holds, 2, |databases| {
    ///     let (one, other) = (databases.database(0), databases.database(5));
    ///     let Some(coins) = one.get(&from) else { return Ok(false) };
    ///     databases.commit(|effects| {
    ///         one.remove(effects, &from);
    ///         other.insert(effects, to.clone(), coins);
    ///     })?;
    ///     Ok::<_, tremula_store::Unlogged>(true)
    /// })??;
    /// assert!(has_moved && store.database(5).contains_key(&to));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CannotHold`] if the engine is not
    /// [transactional](tremula_index::Facts::transactional), or the log takes nothing more. Then
    /// `run` has not run.
    ///
    /// # Panics
    ///
    /// If the number of a database is not below [`DATABASES`], or `run` touches what is not held.
    /// If `run` panics, the databases are as before.
    pub fn hold<R>(
        &self,
        holds: &[Hold],
        changes: usize,
        run: impl FnOnce(Databases<'_>) -> R,
    ) -> Result<R, CannotHold> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut sorted: Vec<&Hold> = holds.iter().collect();
        sorted.sort_by_key(|hold| hold.database);
        for hold in sorted {
            match groups.last_mut() {
                Some(group) if group.database == hold.database => group.ranges.push(hold.range()),
                _ => groups.push(Group {
                    database: hold.database,
                    ranges: vec![hold.range()],
                }),
            }
        }
        let without = |group: &&Group<'_>| self.kept(group.database).steps().is_none();
        if let Some(group) = groups.iter().find(without) {
            return Err(CannotHold::NoSteps(self.database(group.database).engine()));
        }
        let free = self.free();
        if let Some(journal) = free.journal {
            journal.admit().map_err(CannotHold::Unlogged)?;
        }
        let listener = free.notices.listener();
        let mut effects = Effects::of_step(free.journal, changes).reported_to(listener);
        let mut evicted = Evicted::new();
        let (mut run, mut ran) = (Some(run), None);
        let clock = OnceCell::new();
        self.enter(&groups, [None; DATABASES], &clock, &mut |databases| {
            let held = Held {
                databases,
                effects: RefCell::new(&mut effects),
                evicted: RefCell::new(&mut evicted),
            };
            let step = Some(&held as &dyn Running);
            ran = run.take().map(|run| run(Databases { step, ..free }));
        });
        effects.end_step();
        effects.report();
        drop(effects);
        for id in evicted {
            free.values(id.database).forget_one(&id.key, id.number);
        }
        Ok(ran.unwrap_or_else(|| unreachable!("a step runs once")))
    }

    /// Holds what these groups name, each database within those before it, and runs.
    fn enter(
        &self,
        groups: &[Group<'_>],
        databases: Holdings<'_>,
        clock: &OnceCell<Expiry>,
        run: &mut dyn FnMut(Holdings<'_>),
    ) {
        let Some((group, rest)) = groups.split_first() else {
            return run(databases);
        };
        let Some(steps) = self.kept(group.database).steps() else {
            unreachable!("it was looked at before");
        };
        steps.atomically(&group.ranges, &mut |step| {
            let part = Part::new(step, clock);
            let mut databases = databases;
            databases[group.database] = Some(&part);
            self.enter(rest, databases, clock, run);
        });
    }
}
