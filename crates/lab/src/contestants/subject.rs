//! What the workloads ask of a table in this process.

use crate::{keys::Key, measure::Sample};
use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, KeyRange, OrderedIndex};

/// A concurrent ordered table from keys to `u64`, as the workloads use it.
///
/// The workloads are generic over it, so that calls are static and can be inlined, as they would be
/// in a program that uses the table. Every [`OrderedIndex`] is one, wrapped in an [`Index`].
pub trait Subject<K: Key>: Sync {
    /// Inserts the key or replaces its value. Returns whether the key is new.
    fn insert(&self, key: &K, value: u64) -> bool;

    /// Whether [`insert`](Self::insert) is one call of the table. It is not if the table does not
    /// report whether the key was new, so that the adapter has to work around it.
    fn insert_is_one_step(&self) -> bool {
        true
    }

    /// Replaces the value of a present key in the way that suits the table best.
    fn update(&self, key: &K, value: u64) {
        self.insert(key, value);
    }

    /// Removes the key. Returns whether it was present.
    fn remove(&self, key: &K) -> bool;

    /// The value of the key.
    fn get(&self, key: &K) -> Option<u64>;

    /// Appends the values of the keys to `out`, in the order of the keys.
    fn get_many(&self, keys: &[K], out: &mut Vec<Option<u64>>) {
        out.extend(keys.iter().map(|key| self.get(key)));
    }

    /// The smallest key above `key`.
    fn next(&self, key: &K) -> Option<K>;

    /// Visits keys and values in ascending order, from the first key that is not below `from` (or
    /// the smallest one) until the table ends or `limit` entries were visited. A table that can
    /// show an entry without copying it does so.
    fn scan<F>(&self, from: Option<&K>, limit: usize, visit: F)
    where
        F: FnMut(K::View<'_>, u64);

    /// Does what [`scan`](Self::scan) does in descending order, from the last key that is not above
    /// `from` (or the greatest one). Returns whether the table can; one that cannot visits nothing.
    fn scan_down<F>(&self, _from: Option<&K>, _limit: usize, _visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        false
    }

    /// A copy of all entries as of one moment, ascending; `None` from a table that cannot give one.
    fn snapshot(&self) -> Option<Vec<(K, u64)>> {
        None
    }

    /// Shows all entries as of one moment, ascending, a part at a time if the table can. Returns
    /// `false` if it cannot give a snapshot.
    fn snapshot_in_parts(&self, mut show: impl FnMut(&[(K, u64)])) -> bool {
        let copy = self.snapshot();
        copy.inspect(|copy| show(copy)).is_some()
    }

    /// Whether a scan can visit the greatest possible key.
    fn scans_the_greatest_key(&self) -> bool {
        true
    }

    /// How many entries the table reports; `None` if it does not report any number.
    fn length(&self) -> Option<u64>;

    /// What it counts about itself, by name; nothing if it counts nothing.
    fn figures(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A task with tables of some type. It is generic in the table, so that its calls are static.
pub(crate) trait Task<K: Key> {
    /// What the task returns.
    type Output;

    /// Does the task; `make` makes an empty table.
    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Self::Output;
}

/// The result of a job: for each of its measurements a sample or what was wrong, or what was wrong
/// with the table as a whole.
pub(crate) type Measured = Result<Vec<Result<Sample, String>>, String>;

/// An index of this project as a table to be measured.
#[derive(Debug)]
pub struct Index<I>(pub I);

impl<I> Index<I> {
    /// Visits at most `limit` entries of the range, in this direction.
    #[inline]
    fn visit<K: Key, F>(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        mut visit: F,
    ) where
        I: OrderedIndex<K, u64>,
        F: FnMut(K::View<'_>, u64),
    {
        let mut left = limit;
        self.0.range(range, direction, &mut |key, value| {
            visit(key.view(), *value);
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }
}

/// In a simulation, what the loop of a workload takes for an operation: the next key, the branch to
/// the kind of operation, the count of what was wrong; or the check of a message's stamp. Some ten
/// instructions.
#[cfg(sim)]
pub(super) fn called() {
    const OPERATION_NS: u64 = 3;
    tremula_sync::sim::work(OPERATION_NS);
}

#[cfg(not(sim))]
#[inline(always)]
pub(super) const fn called() {}

impl<K: Key, I: OrderedIndex<K, u64>> Subject<K> for Index<I> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        called();
        self.0.insert(key.clone(), value).is_none()
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        called();
        self.0.remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        called();
        self.0.get(key)
    }

    #[inline]
    fn get_many(&self, keys: &[K], out: &mut Vec<Option<u64>>) {
        self.0.get_many(keys, out);
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        self.0.next(key).map(|(key, _)| key)
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let range = KeyRange::new(low, Bound::Unbounded);
        self.visit(range, Direction::Ascending, limit, visit);
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let range = KeyRange::new(Bound::Unbounded, high);
        self.visit(range, Direction::Descending, limit, visit);
        true
    }

    fn snapshot(&self) -> Option<Vec<(K, u64)>> {
        self.0.snapshot(KeyRange::all())
    }

    fn snapshot_in_parts(&self, mut show: impl FnMut(&[(K, u64)])) -> bool {
        let Some(mut cursor) = self.0.begin_snapshot(KeyRange::all()) else {
            let copy = self.snapshot();
            return copy.inspect(|copy| show(copy)).is_some();
        };
        let mut part = Vec::new();
        loop {
            let goes_on = self.0.read_snapshot(&mut cursor, ENTRIES_A_PART, &mut part);
            show(&part);
            part.clear();
            if !goes_on {
                return true;
            }
        }
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        self.0.shape().figures
    }
}

/// How much of a snapshot is read at a time.
const ENTRIES_A_PART: usize = 1000;

/// Walks the whole quiescent table, and returns how many entries it has.
///
/// # Errors
///
/// The keys do not ascend, a value does not belong to its key, or the length is not the number of
/// entries.
pub fn check<K: Key, S: Subject<K>>(table: &S) -> Result<u64, String> {
    check_walk::<K>(|visit| table.scan(None, usize::MAX, visit), table.length())
}

/// Does the same as [`check`] with a way to walk a table and the length that it reports.
pub(super) fn check_walk<K: Key>(
    walk: impl FnOnce(&mut dyn FnMut(K::View<'_>, u64)),
    length: Option<u64>,
) -> Result<u64, String> {
    let mut last: Option<K> = None;
    let mut count = 0;
    let mut fault = None;
    walk(&mut |key, value| {
        let key = K::own(key);
        if fault.is_some() {
            // The first fault is enough.
        } else if last.as_ref().is_some_and(|last| *last >= key) {
            fault = Some(format!("key {key:?} follows {last:?} in a scan"));
        } else if K::value_of(key.view()) != value {
            fault = Some(format!("key {key:?} has the value {value}"));
        }
        last = Some(key);
        count += 1;
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    match length {
        Some(length) if length != count => Err(format!("len is {length} but a scan sees {count}")),
        _ => Ok(count),
    }
}

/// An error that says what is wrong, if a count is not as expected.
pub(crate) fn expect(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found} {what}, expected {expected}"))
    }
}

/// Inserts the keys. Returns how many of them were reported as new.
pub(crate) fn insert_all<K: Key, S: Subject<K>>(table: &S, keys: &[K]) -> u64 {
    keys.iter()
        .map(|key| u64::from(table.insert(key, K::value_of(key.view()))))
        .sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tremula_papers::AnyEngine;

    /// What every table must do before it may be measured. One thread does each of its operations
    /// in turn with the given keys, which ascend and are at least five.
    pub(crate) fn does_its_work<K: Key, S: Subject<K>>(table: &S, keys: &[K]) {
        let value = |key: &K| K::value_of(key.view());
        let scanned = |from: Option<&K>, limit: usize| {
            let mut seen = Vec::new();
            table.scan(from, limit, |key, value| seen.push((K::own(key), value)));
            seen
        };
        let entries =
            |keys: &[K]| -> Vec<_> { keys.iter().map(|key| (key.clone(), value(key))).collect() };
        let scans_down = |from: Option<&K>, limit: usize, keys: &[K]| {
            let mut seen = Vec::new();
            if table.scan_down(from, limit, |key, value| seen.push((K::own(key), value))) {
                seen.reverse();
                assert_eq!(seen, entries(keys), "scan of {limit} down from {from:?}");
            } else {
                assert!(seen.is_empty());
            }
        };
        let gives_snapshot_of = |keys: &[K]| {
            let snapshot = table.snapshot();
            assert!(snapshot.is_none_or(|snapshot| snapshot == entries(keys)));
        };
        assert_eq!(check(table), Ok(0));
        scans_down(None, 9, &[]);
        gives_snapshot_of(&[]);
        assert!(scanned(None, 9).is_empty());
        // From the middle outwards, so that not every insert is at an end.
        let middle = keys.len() / 2;
        for key in keys[middle..].iter().chain(keys[..middle].iter().rev()) {
            assert_eq!(table.get(key), None);
            assert!(table.insert(key, 1), "{key:?} is new");
            assert_eq!(table.get(key), Some(1));
            assert!(!table.insert(key, 2), "{key:?} is replaced");
            assert_eq!(table.get(key), Some(2));
            table.update(key, value(key));
            assert_eq!(table.get(key), Some(value(key)));
        }
        assert_eq!(check(table), Ok(keys.len() as u64));
        assert_eq!(scanned(None, usize::MAX), entries(keys));
        scans_down(None, usize::MAX, keys);
        gives_snapshot_of(keys);
        let mut found = Vec::new();
        table.get_many(keys, &mut found);
        assert!(
            found
                .into_iter()
                .eq(keys.iter().map(|key| Some(value(key))))
        );
        for (place, key) in keys.iter().enumerate() {
            assert_eq!(table.next(key).as_ref(), keys.get(place + 1));
            let end = (place + 3).min(keys.len());
            assert_eq!(scanned(Some(key), 3), entries(&keys[place..end]));
            let begin = (place + 1).saturating_sub(3);
            scans_down(Some(key), 3, &keys[begin..=place]);
        }
        let (gone, kept): (Vec<_>, Vec<_>) = keys
            .iter()
            .cloned()
            .enumerate()
            .partition(|(place, _)| place % 2 == 1);
        let [gone, kept] =
            [gone, kept].map(|part| part.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
        for key in &gone {
            assert!(table.remove(key) && !table.remove(key), "{key:?}");
            assert_eq!(table.get(key), None);
        }
        assert_eq!(check(table), Ok(kept.len() as u64));
        // From a key that is not in the table.
        assert_eq!(scanned(Some(&gone[0]), 2), entries(&kept[1..3]));
        scans_down(Some(&gone[1]), 2, &kept[..2]);
        gives_snapshot_of(&kept);
        table.update(&keys[0], 9);
        assert!(check(table).unwrap_err().contains("has the value 9"));
    }

    pub(crate) fn some_integers() -> Vec<u64> {
        let mut keys: Vec<_> = (0..2000_u64)
            .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .collect();
        keys.sort_unstable();
        keys
    }

    /// Some texts, among them keys that are prefixes of the next one.
    pub(crate) fn some_texts() -> Vec<String> {
        let mut keys: Vec<_> = (0..500)
            .flat_map(|i| {
                [
                    format!("user{i}"),
                    format!("user{i}@example.org"),
                    format!("{i}.user@example.com"),
                ]
            })
            .collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn every_engine_does_its_work() {
        for engine in AnyEngine::ALL {
            does_its_work(&Index(engine.create::<u64, u64>()), &some_integers());
            does_its_work(&Index(engine.create::<String, u64>()), &some_texts());
        }
    }
}
