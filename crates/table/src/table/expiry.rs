//! Keys whose rows expire: an extension, which Erlang does not have.

use super::error::Result;
use super::note::Notes;
use super::noting::Noting;
use super::store::{Decision, Note};
use super::times::Millis;
use super::{Kept, Right, Shared, Table, Tables, no_table};
use crate::term::Term;
use tremula_index::Update;
use tremula_sync::Arc;

/// When the rows of a key expire: [`Table::expiry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyExpiry {
    /// The key has no rows.
    NoRows,
    /// They stay until they are removed.
    Never,
    /// At this time, in milliseconds since 1970 began.
    At(u64),
}

/// A key whose time has come: [`Tables::due`]. It may have got another time since.
pub struct Due {
    shared: Arc<Shared>,
    key: Term,
    time: Millis,
}

impl Table {
    /// Shows the time at which the rows of a key expire, if there is one, to `decide`, if the key
    /// has rows, and carries out what it decides: another time or none, or the removal of the rows.
    /// One [step](super#consistency). Returns whether the key had rows. `decide` runs while the key
    /// is locked: it should be short, and must not use the table.
    ///
    /// A time is in milliseconds since 1970 began; 0 counts as 1. It belongs to the key, not to one
    /// of its rows: it stays when rows are replaced, or come and go in a bag, and ends with the
    /// last row, however that goes. So a key that comes anew has no time. Files of
    /// [`tab2file`](Self::tab2file) do not have the times.
    ///
    /// The table does not look at the clock: the rows stay, and are seen, until somebody removes
    /// what is [due](Tables::due).
    ///
    /// O(log n), with one lock for all times of the table, and some 110 bytes for each key that has
    /// a time. The first call of a table waits until no thread is in a step of it.
    ///
    /// ```
    /// use tremula_index::Update;
    /// use tremula_table::{KeyExpiry, Options, Tables};
    ///
    /// let tables = Tables::new();
    /// let table = tables.create("sessions", Options::new())?;
    /// table.insert_row(("ada", 1))?;
    /// assert!(table.update_expiry(&"ada".into(), &mut |_| Update::Put(Some(1_000)))?);
    /// assert_eq!(table.expiry(&"ada".into())?, KeyExpiry::At(1_000));
    /// assert!(tables.due(999, 10).is_empty());
    /// let removed = tables.due(1_000, 10).iter().filter(|due| tables.remove_due(due)).count();
    /// assert_eq!(removed, 1);
    /// assert_eq!(table.expiry(&"ada".into())?, KeyExpiry::NoRows);
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors).
    pub fn update_expiry(
        &self,
        key: &Term,
        decide: &mut dyn FnMut(Option<u64>) -> Update<Option<u64>>,
    ) -> Result<bool> {
        self.change_expiry(&mut Notes::nobody(), key, decide)
    }

    fn change_expiry(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        decide: &mut dyn FnMut(Option<u64>) -> Update<Option<u64>>,
    ) -> Result<bool> {
        const FUNCTION: &str = "expire";
        let shared = &*self.shared;
        if !shared.times.are_used() {
            let _exclusive = self.enter_exclusive(FUNCTION)?;
            shared.times.use_from_now();
        }
        let _guard = self.enter(FUNCTION)?;
        let mut is_there = false;
        shared.decide_expiry(notes, key, &mut |before| {
            is_there = true;
            decide(before)
        });
        Ok(is_there)
    }

    /// When the rows of a key expire. One [step](super#consistency). O(log n). Fails if the caller
    /// [may not read](super#errors). [`update_expiry`](Self::update_expiry) has an example.
    pub fn expiry(&self, key: &Term) -> Result<KeyExpiry> {
        const FUNCTION: &str = "ttl";
        self.check(Right::Read, FUNCTION)?;
        let shared = &*self.shared;
        let _guard = shared.gate.shared().map_err(|_| no_table(FUNCTION))?;
        let mut found = KeyExpiry::NoRows;
        // Under the lock of the key: a removal forgets the time before the rows are gone.
        let look = &mut |kept: Option<&Kept>| {
            if kept.is_some() {
                found = shared
                    .times
                    .get(key)
                    .map_or(KeyExpiry::Never, KeyExpiry::At);
            }
            Decision::Keep
        };
        shared.store.update(key.clone(), look, Note::nobody());
        Ok(found)
    }

    /// The number of keys whose rows expire: exact when nobody writes. O(1).
    #[must_use]
    pub fn expiring_keys(&self) -> usize {
        self.shared.times.len()
    }
}

impl Noting<'_, Table> {
    /// See [`Table::update_expiry`].
    pub fn update_expiry(
        &mut self,
        key: &Term,
        decide: &mut dyn FnMut(Option<u64>) -> Update<Option<u64>>,
    ) -> Result<bool> {
        let (table, notes) = self.parts();
        table.change_expiry(notes, key, decide)
    }
}

impl Tables {
    /// Up to `most` keys of all tables whose time is this one or an earlier one. Those of the table
    /// whose first key is due the longest come first, those of one table by their times. A table
    /// that a thread changes in a step over many keys is left out.
    ///
    /// O(`most` · log n); O(1) if no key is due. [`Table::update_expiry`] has an example.
    #[must_use]
    pub fn due(&self, now: u64, most: usize) -> Vec<Due> {
        let mut all = Vec::new();
        for number in self.agenda().due(now, most) {
            // A table that is being deleted leaves the agenda then.
            let Some(shared) = self.numbered(number) else {
                continue;
            };
            if shared.gate.is_exclusive() {
                continue;
            }
            let due = shared.times.due(now, most - all.len());
            all.extend(due.into_iter().map(|(key, time)| Due {
                shared: Arc::clone(&shared),
                key,
                time,
            }));
            if all.len() == most {
                break;
            }
        }
        all
    }

    /// Removes the rows of a key, if it still has the time that was due. One
    /// [step](super#consistency). Returns whether it did. O(log n).
    pub fn remove_due(&self, due: &Due) -> bool {
        due.shared.expire(&mut Notes::nobody(), &due.key, due.time)
    }

    /// The number of keys in all tables whose rows expire. O(1).
    #[must_use]
    pub fn expiring_keys(&self) -> usize {
        self.agenda().keys()
    }
}

impl Noting<'_, Tables> {
    /// See [`Tables::remove_due`].
    pub fn remove_due(&mut self, due: &Due) -> bool {
        let (_, notes) = self.parts();
        due.shared.expire(notes, &due.key, due.time)
    }
}

impl Shared {
    /// Lets `decide` decide about the time of a key that has rows. The caller holds the gate, and
    /// the table may have times.
    fn decide_expiry(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        decide: &mut dyn FnMut(Option<u64>) -> Update<Option<u64>>,
    ) {
        let mut of_rows = notes.rows_of(self);
        let decide = &mut |kept: Option<&Kept>| {
            if kept.is_none() {
                return Decision::Keep;
            }
            let before = self.times.get(key);
            match decide(before) {
                Update::Put(after) => {
                    let after = after.map(|time| time.max(1));
                    if after == before {
                        return Decision::Keep;
                    }
                    Decision::Expire(after)
                }
                Update::Keep => Decision::Keep,
                Update::Remove => Decision::Remove,
            }
        };
        let removed = self.store.update(key.clone(), decide, of_rows.note());
        if let Some(kept) = removed {
            self.count(-(self.layout.count_rows(&kept) as isize));
        }
    }

    /// Removes the rows of a key that has this time. Returns whether it did.
    fn expire(&self, notes: &mut Notes<'_>, key: &Term, time: Millis) -> bool {
        let Ok(_guard) = self.gate.shared() else {
            return false;
        };
        let mut is_removed = false;
        self.decide_expiry(notes, key, &mut |its| {
            is_removed = its == Some(time);
            if is_removed {
                Update::Remove
            } else {
                Update::Keep
            }
        });
        is_removed
    }

    /// Gives a key that has rows this time, or none: an effect that a log has.
    pub(super) fn set_expiry_again(&self, key: &Term, time: Option<Millis>) {
        if !self.times.are_used() {
            let Ok(_exclusive) = self.gate.exclusive() else {
                return;
            };
            self.times.use_from_now();
        }
        if let Ok(_guard) = self.gate.shared() {
            self.decide_expiry(&mut Notes::known(), key, &mut |_| Update::Put(time));
        }
    }
}

impl std::fmt::Debug for Due {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shared, key, time } = self;
        write!(formatter, "Due({}, {key}, {time})", shared.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, MatchSpec, Options};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};
    use std::collections::BTreeMap;

    const KEYS: i64 = 6;

    /// The rows of each key, by their second elements, and its time.
    type Model = BTreeMap<i64, (Vec<i64>, Option<u64>)>;

    fn row(key: i64, value: i64) -> Term {
        Term::tuple([Term::from(key), Term::from(value)])
    }

    /// The key, and in an `ordered_set` now and then the float that is the same key there.
    fn key_term(table: &Table, key: i64, random: &mut StdRng) -> Term {
        if table.kind() == Kind::OrderedSet && random.random() {
            return Term::try_from(key as f64).unwrap();
        }
        Term::from(key)
    }

    fn write(tables: &Tables, table: &Table, model: &mut Model, random: &mut StdRng) {
        let key = random.random_range(0..KEYS);
        let value = random.random_range(0..3);
        let name = key_term(table, key, random);
        let put = |model: &mut Model, key: i64| {
            let (rows, _) = model.entry(key).or_default();
            match table.kind() {
                Kind::Bag if rows.contains(&value) => {}
                Kind::Bag | Kind::DuplicateBag => rows.push(value),
                Kind::Set | Kind::OrderedSet => *rows = vec![value],
            }
        };
        match random.random_range(0..24) {
            0..=6 => {
                table.insert(row(key, value)).unwrap();
                put(model, key);
            }
            7 => {
                let other = (key + 1) % KEYS;
                table
                    .insert(Term::list([row(key, value), row(other, value)]))
                    .unwrap();
                put(model, key);
                put(model, other);
            }
            8 | 9 => {
                table.delete_key(&name).unwrap();
                model.remove(&key);
            }
            10 => {
                let taken = table.take(&name).unwrap();
                let rows = model.remove(&key).map_or(0, |(rows, _)| rows.len());
                assert_eq!(taken.len(), rows);
            }
            11 | 12 => {
                table.delete_object(&row(key, value)).unwrap();
                if let Some((rows, _)) = model.get_mut(&key) {
                    rows.retain(|its| *its != value);
                }
            }
            13 => {
                let spec = format!("[{{{{'$1', '_'}}, [{{'<', '$1', {key}}}], [true]}}]");
                let spec = MatchSpec::compile(&spec.parse().unwrap()).unwrap();
                table.select_delete(&spec).unwrap();
                model.retain(|its, _| *its >= key);
            }
            14 => {
                let spec = format!("[{{{{'_', {value}}}, [], [true]}}]");
                let spec = MatchSpec::compile(&spec.parse().unwrap()).unwrap();
                table.select_delete(&spec).unwrap();
                for (rows, _) in model.values_mut() {
                    rows.retain(|its| *its != value);
                }
            }
            15 if random.random() => {
                table.delete_all_objects().unwrap();
                model.clear();
            }
            15 => {
                table.init_table([row(key, value)]).unwrap();
                *model = Model::from([(key, (vec![value], None))]);
            }
            16..=19 => {
                let time = random.random_range(0..100_u64);
                let mut seen = None;
                let decided = |before| {
                    seen = Some(before);
                    match time {
                        0..10 => Update::Keep,
                        10..20 => Update::Remove,
                        20..40 => Update::Put(None),
                        time => Update::Put(Some(time)),
                    }
                };
                let is_there = table.update_expiry(&name, &mut { decided }).unwrap();
                assert_eq!(is_there, model.contains_key(&key));
                match (time, model.get_mut(&key)) {
                    (0..10, _) | (_, None) => {}
                    (10..20, Some(_)) => drop(model.remove(&key)),
                    (20..40, Some((_, its))) => *its = None,
                    (time, Some((_, its))) => *its = Some(time),
                }
            }
            _ => {
                let (now, most) = (random.random_range(0..120), random.random_range(1..4));
                let due = tables.due(now, most);
                let mut wanted: Vec<_> = model
                    .iter()
                    .filter_map(|(key, (_, time))| Some((time.filter(|its| *its <= now)?, *key)))
                    .collect();
                wanted.sort_unstable();
                wanted.truncate(most);
                let found: Vec<_> = due.iter().map(|due| due.time).collect();
                let times: Vec<_> = wanted.iter().map(|(time, _)| *time).collect();
                assert_eq!(found, times, "{due:?} of {wanted:?} at {now}");
                for due in due {
                    let key = due.key.clone();
                    let key = (0..KEYS).find(|its| key == *its).unwrap();
                    assert!(tables.remove_due(&due));
                    assert!(!tables.remove_due(&due), "it is gone");
                    model.remove(&key);
                }
            }
        }
        model.retain(|_, (rows, _)| !rows.is_empty());
    }

    /// Fails if a key has another time than the model, if a time outlives the rows of its key
    /// whatever removes them, if a key is due too early or not at all, or if the lists disagree.
    #[test]
    fn times_are_those_of_a_model() {
        let mut random = StdRng::seed_from_u64(24);
        for round in 0..40 {
            let tables = Tables::new();
            let kind = Kind::ALL[round % 4];
            let table = tables.create("t", Options::new().kind(kind)).unwrap();
            let mut model = Model::new();
            for _ in 0..500 {
                write(&tables, &table, &mut model, &mut random);
                let shared = &table.shared;
                shared.times.check(|key| shared.store.has(key));
                for key in 0..KEYS {
                    let wanted = match model.get(&key) {
                        None => KeyExpiry::NoRows,
                        Some((_, None)) => KeyExpiry::Never,
                        Some((_, Some(time))) => KeyExpiry::At(*time),
                    };
                    let name = key_term(&table, key, &mut random);
                    assert_eq!(table.expiry(&name), Ok(wanted), "{kind} {key}");
                }
                let rows = model.values().map(|(rows, _)| rows.len()).sum();
                assert_eq!(table.size(), Ok(rows));
                let expiring = model.values().filter(|(_, time)| time.is_some()).count();
                assert_eq!(table.expiring_keys(), expiring);
                assert_eq!(tables.expiring_keys(), expiring);
            }
            table.delete().unwrap();
            assert_eq!(tables.expiring_keys(), 0);
            assert!(tables.due(u64::MAX, 10).is_empty());
        }
    }

    /// Fails if one table keeps another's keys from being due, or a deleted table is met.
    #[test]
    fn the_key_that_is_due_the_longest_comes_first() {
        let tables = Tables::new();
        let make = |name: &str| tables.create(name, Options::new()).unwrap();
        let (one, other, deleted) = (make("one"), make("other"), make("deleted"));
        for (table, times) in [(&one, 100..200), (&other, 50..60), (&deleted, 1..9)] {
            for time in times {
                table.insert_row((time, 0)).unwrap();
                let key = Term::from(time);
                let decide = &mut |_| Update::Put(Some(time));
                assert!(table.update_expiry(&key, decide).unwrap());
            }
        }
        deleted.delete().unwrap();
        let mut times = Vec::new();
        loop {
            let due = tables.due(1_000, 7);
            if due.is_empty() {
                break;
            }
            assert!(due.iter().all(|due| tables.remove_due(due)));
            times.extend(due.iter().map(|due| due.time));
        }
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(times.len(), 110);
        assert!(tables.due(u64::MAX, 1).is_empty());
    }
}
