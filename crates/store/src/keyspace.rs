//! The databases, each one ordered index.

use crate::engines::{self, UnfitEngine};
use crate::{Key, Value};
use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, Engine, KeyRange, LAST_BATCH, OrderedIndex};

/// The number of databases that `SELECT` chooses from. Redis's default, which its clients know.
pub const DATABASES: usize = 16;

/// One database.
pub type Database = dyn OrderedIndex<Key, Value>;

/// All databases of a server.
pub struct Keyspace {
    databases: Vec<Box<Database>>,
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
            databases: (0..DATABASES).map(|_| engine.create()).collect(),
        })
    }

    /// The database with this number, which must be less than [`DATABASES`].
    #[must_use]
    pub fn database(&self, number: usize) -> &Database {
        &*self.databases[number]
    }

    /// Every database, by number.
    pub fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.iter().map(|database| &**database)
    }
}

/// The largest number of keys for which a range, or a page of keys, is always of one moment.
pub const ONE_MOMENT: usize = LAST_BATCH;

/// Entries that a walk copies at once: one more than [`ONE_MOMENT`], so that the first batch shows
/// whether the range is longer. If it is not, the walk ends with that batch, as of its moment.
const BATCH: usize = ONE_MOMENT + 1;

/// Visits up to `limit` entries of a range. Up to [`ONE_MOMENT`] entries, the visit is of one
/// moment. A longer one copies batches: each batch is of one moment, and later batches are of later
/// moments. Keys come in strict order, and a key that is present throughout is visited.
pub fn walk(
    database: &Database,
    range: KeyRange<'_, Key>,
    direction: Direction,
    limit: usize,
    mut visit: impl FnMut(&Key, &Value) -> ControlFlow<()>,
) {
    let mut left = limit;
    let mut entries = Vec::new();
    let mut resume: Option<Key> = None;
    loop {
        let rest = match (&resume, direction) {
            (None, _) => range,
            (Some(key), _) => range.behind(key, direction),
        };
        let wanted = left.min(BATCH);
        database.scan(rest, direction, wanted, &mut entries);
        for (key, value) in &entries {
            if visit(key, value).is_break() {
                return;
            }
        }
        left -= wanted;
        if entries.len() < wanted || left == 0 {
            return;
        }
        resume = entries.pop().map(|(key, _)| key);
        entries.clear();
    }
}

/// A range that is longer than a snapshot may be.
#[derive(Debug)]
pub struct TooManyKeys;

/// Copies up to `limit` entries of a range, as of one moment, unless there are more than `most`.
pub fn snapshot(
    database: &Database,
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
            keyspace.database(0).insert(key, Value::from(&b""[..]));
        }
        keyspace
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
                let mut seen = 0;
                let visit = |_: &Key, _: &Value| {
                    seen += 1;
                    ControlFlow::Continue(())
                };
                let direction = Direction::Descending;
                walk(
                    keyspace.database(0),
                    KeyRange::all(),
                    direction,
                    limit,
                    visit,
                );
                assert_eq!(seen, limit.min(there), "{limit} of {there}");
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
                let mut seen = 0;
                walk(database, KeyRange::all(), direction, usize::MAX, |_, _| {
                    database.remove_range(KeyRange::all());
                    seen += 1;
                    ControlFlow::Continue(())
                });
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
        let mut seen = 0;
        let all = KeyRange::all();
        walk(database, all, Direction::Ascending, usize::MAX, |_, _| {
            database.insert(Key::from(&[u8::MAX][..]), Value::from(&b""[..]));
            seen += 1;
            ControlFlow::Continue(())
        });
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
