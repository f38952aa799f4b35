//! The databases, each one ordered index.

use crate::database::{Database, Kept};
use crate::effects::DATABASES;
use crate::engines::{self, UnfitEngine};
use crate::{Key, Value};
use std::ops::Bound;
use tremula_index::{Direction, Engine, KeyRange, LAST_BATCH};

/// All databases of a server.
pub struct Keyspace {
    databases: Vec<Kept>,
}

impl Keyspace {
    /// Empty databases, each an index of `engine`.
    ///
    /// # Errors
    ///
    /// [`UnfitEngine`] if the engine cannot keep the server's promises.
    pub fn new(engine: Engine) -> Result<Self, UnfitEngine> {
        engines::check(engine)?;
        Ok(Self {
            databases: (0..DATABASES as u8)
                .map(|number| Kept::new(number, engine.create()))
                .collect(),
        })
    }

    /// The database with this number, which must be less than [`DATABASES`].
    #[must_use]
    pub fn database(&self, number: usize) -> Database<'_> {
        self.databases[number].free()
    }

    pub(crate) fn kept(&self, number: usize) -> &Kept {
        &self.databases[number]
    }

    /// Every database, by number.
    pub fn databases(&self) -> impl Iterator<Item = Database<'_>> {
        self.databases.iter().map(Kept::free)
    }
}

/// The largest number of keys for which a range, or a page of keys, is always of one moment.
pub const ONE_MOMENT: usize = LAST_BATCH;

/// Entries that a walk copies at once: one more than [`ONE_MOMENT`], so that the first batch shows
/// whether the range is longer. If it is not, the walk ends with that batch, as of its moment.
pub(crate) const BATCH: usize = ONE_MOMENT + 1;

/// A walk over up to `limit` entries of a range, which may stop after any entry and go on later. Up
/// to [`ONE_MOMENT`] entries, it is of one moment. A longer one copies batches: each batch is of
/// one moment, and later batches are of later moments. Keys come in strict order, and a key that is
/// present throughout is visited.
pub struct Walk {
    low: Bound<Key>,
    high: Bound<Key>,
    direction: Direction,
    /// Entries that may still be copied.
    left: usize,
    batch: std::vec::IntoIter<(Key, Value)>,
    has_ended: bool,
}

impl Walk {
    /// A walk that has not begun.
    #[must_use]
    pub fn new(low: Bound<Key>, high: Bound<Key>, direction: Direction, limit: usize) -> Self {
        Self {
            low,
            high,
            direction,
            left: limit,
            batch: Vec::new().into_iter(),
            has_ended: limit == 0,
        }
    }

    /// The next entry. Copies a batch if the last one has ended.
    pub fn next(&mut self, database: Database<'_>) -> Option<(Key, Value)> {
        if self.batch.len() == 0 && !self.has_ended {
            self.copy(database);
        }
        self.batch.next()
    }

    /// The length of the batch of which [`next`](Self::next) returns the next entry without a copy;
    /// zero if it has to copy one.
    #[must_use]
    pub fn at_hand(&self) -> usize {
        self.batch.len()
    }

    fn copy(&mut self, database: Database<'_>) {
        let wanted = self.left.min(BATCH);
        let range = KeyRange::new(self.low.as_ref(), self.high.as_ref());
        let mut batch = Vec::new();
        database.scan(range, self.direction, wanted, &mut batch);
        self.left -= wanted;
        self.has_ended = batch.len() < wanted || self.left == 0;
        if let Some((last, _)) = batch.last() {
            let behind = Bound::Excluded(last.clone());
            match self.direction {
                Direction::Ascending => self.low = behind,
                Direction::Descending => self.high = behind,
            }
        }
        self.batch = batch.into_iter();
    }
}

/// A range that is longer than a snapshot may be.
#[derive(Debug)]
pub struct TooManyKeys;

/// Copies up to `limit` entries of a range, as of one moment, unless there are more than `most`.
pub fn snapshot(
    database: Database<'_>,
    range: KeyRange<'_, Key>,
    direction: Direction,
    limit: usize,
    most: usize,
) -> Result<Vec<(Key, Value)>, TooManyKeys> {
    let mut entries = Vec::new();
    let wanted = limit.min(most.saturating_add(1));
    database.scan(range, direction, wanted, &mut entries);
    if entries.len() > most {
        return Err(TooManyKeys);
    }
    Ok(entries)
}

/// The bounds of the keys that begin with `prefix`.
pub fn prefix_bounds(prefix: &[u8]) -> (Bound<Key>, Bound<Key>) {
    // The smallest key above all of them: the prefix up to its last byte below 255, with that byte
    // raised by one.
    let raised = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|last| {
        let mut above = prefix[..=last].to_vec();
        above[last] += 1;
        Key::from(&above[..])
    });
    (
        Bound::Included(Key::from(prefix)),
        raised.map_or(Bound::Unbounded, Bound::Excluded),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Effects;
    use proptest::prelude::*;
    use tremula_index::{Facts, Keys, Scans};

    proptest! {
        #[test]
        fn prefix_bounds_hold_what_begins_with_the_prefix_and_nothing_else(
            prefix in prop::collection::vec(prop::sample::select(&[0, 1, 254, 255][..]), 0..4),
            key in prop::collection::vec(prop::sample::select(&[0, 1, 254, 255][..]), 0..5),
        ) {
            let (low, high) = prefix_bounds(&prefix);
            let range = KeyRange::new(low.as_ref(), high.as_ref());
            prop_assert_eq!(range.contains(&Key::from(&key[..])), key.starts_with(&prefix));
        }
    }

    /// A database with this many keys.
    fn filled(engine: Engine, keys: usize) -> Keyspace {
        let keyspace = Keyspace::new(engine).expect("a fit engine");
        for number in 0..keys {
            let key = Key::from(&number.to_be_bytes()[..]);
            keyspace
                .database(0)
                .insert(&mut Effects::new(None), key, Value::from(&b""[..]));
        }
        keyspace
    }

    fn everything(direction: Direction, limit: usize) -> Walk {
        Walk::new(Bound::Unbounded, Bound::Unbounded, direction, limit)
    }

    #[test]
    fn a_walk_keeps_its_limit_below_and_above_one_batch() {
        for there in [0, ONE_MOMENT, BATCH, 3 * BATCH] {
            let keyspace = filled(Engine::Locked, there);
            for limit in [
                0,
                1,
                ONE_MOMENT,
                BATCH,
                BATCH + 1,
                2 * BATCH,
                3 * BATCH - 1,
                usize::MAX,
            ] {
                let mut walk = everything(Direction::Descending, limit);
                let keys = std::iter::from_fn(|| walk.next(keyspace.database(0)));
                let keys: Vec<Key> = keys.map(|(key, _)| key).collect();
                assert_eq!(keys.len(), limit.min(there), "{limit} of {there}");
                assert!(keys.is_sorted_by(|one, next| one > next));
            }
        }
    }

    #[test]
    fn an_engine_whose_scans_are_of_several_moments_is_refused_with_the_reason() {
        let ordered = Facts::new(Scans::Ordered, Keys::Compared);
        let Err(unfit) = engines::check_facts("skip_list", ordered) else {
            panic!("it was taken");
        };
        let text = unfit.to_string();
        assert!(
            text.starts_with("engine 'skip_list' cannot be served: its scans"),
            "{text}"
        );
        for engine in engines::served_engines() {
            assert!(text.contains(&format!(" {engine}")), "{text}");
            assert!(Keyspace::new(engine).is_ok());
        }
    }

    /// All keys are removed while the walk shows the first one. A walk of several moments would see
    /// that in its second batch, wherever that begins.
    #[test]
    fn a_walk_of_as_many_keys_as_promised_is_of_one_moment() {
        for direction in [Direction::Ascending, Direction::Descending] {
            for keys in [1, 33, 300, ONE_MOMENT - 1, ONE_MOMENT] {
                let keyspace = filled(Engine::Locked, keys);
                let database = keyspace.database(0);
                let mut walk = everything(direction, usize::MAX);
                let mut seen = 0;
                while walk.next(database).is_some() {
                    database.remove_range(
                        &mut Effects::new(None),
                        Bound::Unbounded,
                        Bound::Unbounded,
                    );
                    seen += 1;
                }
                assert_eq!(seen, keys, "{direction:?}");
            }
        }
    }

    /// If the first batch ended at exactly [`ONE_MOMENT`] entries, a key inserted later would be
    /// visited behind a range that was complete, and the two would not be of one moment.
    #[test]
    fn a_walk_sees_nothing_later_behind_as_many_keys_as_promised() {
        let keyspace = filled(Engine::Locked, ONE_MOMENT);
        let database = keyspace.database(0);
        let mut walk = everything(Direction::Ascending, usize::MAX);
        let mut seen = 0;
        while walk.next(database).is_some() {
            let (key, value) = (Key::from(&[u8::MAX][..]), Value::from(&b""[..]));
            database.insert(&mut Effects::new(None), key, value);
            seen += 1;
        }
        assert_eq!(seen, ONE_MOMENT);
    }

    #[test]
    fn a_snapshot_is_refused_beyond_its_limit_and_no_sooner() {
        let keyspace = filled(Engine::Locked, 3 * BATCH);
        let copied = |limit, most| {
            let database = keyspace.database(0);
            let entries = snapshot(database, KeyRange::all(), Direction::Ascending, limit, most);
            entries.map_or(None, |entries| Some(entries.len()))
        };
        assert_eq!(copied(usize::MAX, usize::MAX), Some(3 * BATCH));
        assert_eq!(copied(usize::MAX, 3 * BATCH), Some(3 * BATCH));
        assert_eq!(copied(usize::MAX, 3 * BATCH - 1), None);
        assert_eq!(copied(10, 10), Some(10));
        assert_eq!(copied(11, 10), None);
    }
}
