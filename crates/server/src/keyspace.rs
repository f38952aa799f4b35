//! The databases, each one ordered index.

use crate::{Key, Value};
use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, Engine, KeyRange, LAST_BATCH, OrderedIndex};

/// The number of databases that `SELECT` chooses from. Redis's default, which its clients know.
pub const DATABASES: usize = 16;

/// One database.
pub(crate) type Database = dyn OrderedIndex<Key, Value>;

/// All databases of a server.
pub struct Keyspace {
    databases: Vec<Box<Database>>,
}

impl Keyspace {
    /// Empty databases, each an index of `engine`.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self {
            databases: (0..DATABASES).map(|_| engine.create()).collect(),
        }
    }

    /// The database with this number, which must be below [`DATABASES`].
    #[must_use]
    pub fn database(&self, number: usize) -> &(dyn OrderedIndex<Key, Value> + 'static) {
        &*self.databases[number]
    }

    pub(crate) fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.iter().map(|database| &**database)
    }
}

/// Visits up to `limit` entries of a range. As of one moment up to [`LAST_BATCH`] entries;
/// beyond, each batch is as of one moment and later batches as of later ones.
pub(crate) fn walk(
    database: &Database,
    range: KeyRange<'_, Key>,
    direction: Direction,
    limit: usize,
    mut visit: impl FnMut(&Key, &Value) -> ControlFlow<()>,
) {
    if limit > LAST_BATCH {
        let mut left = limit;
        return database.range(range, direction, &mut |key, value| {
            visit(key, value)?;
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }
    let mut entries = Vec::new();
    database.scan(range, direction, limit, &mut entries);
    for (key, value) in &entries {
        if visit(key, value).is_break() {
            return;
        }
    }
}

/// The bounds of the keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> (Bound<Key>, Bound<Key>) {
    // The smallest key above all of them: the prefix up to its last byte that can be raised,
    // and that one raised.
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

    #[test]
    fn a_walk_keeps_its_limit_below_and_above_one_batch() {
        let keyspace = Keyspace::new(Engine::Locked);
        let database = keyspace.database(0);
        for number in 0..3 * LAST_BATCH {
            database.insert(Key::from(&number.to_be_bytes()[..]), Value::from(&b""[..]));
        }
        for limit in [
            0,
            1,
            LAST_BATCH,
            LAST_BATCH + 1,
            2 * LAST_BATCH + 1,
            usize::MAX,
        ] {
            let mut seen = 0;
            walk(
                database,
                KeyRange::all(),
                Direction::Descending,
                limit,
                |_, _| {
                    seen += 1;
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(seen, limit.min(3 * LAST_BATCH));
        }
    }
}
