//! One thread works on a table: a plain `BTreeMap`, or a table that many threads could share.

use super::{
    contestant::{Contestant, Entrant, Measures, Samples, Side, Started, Starter, samples},
    subject::{Measured, Subject, Task, check, check_walk, expect},
};
use crate::{
    LabError,
    case::ContestantKind,
    keys::{Key, Keys},
    measure::{Lap, Sample, Timed, together, together_for},
    workload::{SEQUENTIAL_SCAN, SequentialJob, SequentialOperation, SequentialWork},
};
use std::{
    collections::BTreeMap,
    hint::black_box,
    ops::Bound,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How many operations the thread does before it looks at the time again.
const STRIDE: usize = 64;

/// The divisor of the keys that are inserted into another table before inserting counts.
const WARM_UP_PART: usize = 8;

/// A table that belongs to one thread.
trait Sequential<K: Key>: Send {
    fn insert(&mut self, key: &K, value: u64) -> bool;
    fn update(&mut self, key: &K, value: u64);
    fn remove(&mut self, key: &K) -> bool;
    fn get(&self, key: &K) -> Option<u64>;
    fn scan<F: FnMut(K::View<'_>, u64)>(&self, from: &K, limit: usize, visit: F);

    /// The number of its entries, found by visiting each one.
    fn entries(&self) -> Result<u64, String>;
}

impl<K: Key> Sequential<K> for BTreeMap<K, u64> {
    #[inline]
    fn insert(&mut self, key: &K, value: u64) -> bool {
        Self::insert(self, key.clone(), value).is_none()
    }

    #[inline]
    fn update(&mut self, key: &K, value: u64) {
        if let Some(present) = self.get_mut(key) {
            *present = value;
        }
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        Self::remove(self, key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        Self::get(self, key).copied()
    }

    #[inline]
    fn scan<F: FnMut(K::View<'_>, u64)>(&self, from: &K, limit: usize, mut visit: F) {
        let range = self.range::<K, _>((Bound::Included(from), Bound::Unbounded));
        for (key, value) in range.take(limit) {
            visit(key.view(), *value);
        }
    }

    fn entries(&self) -> Result<u64, String> {
        let walk = |visit: &mut dyn FnMut(K::View<'_>, u64)| {
            for (key, value) in self {
                visit(key.view(), *value);
            }
        };
        check_walk::<K>(walk, Some(self.len() as u64))
    }
}

/// A shareable table that one thread uses alone.
struct Unshared<'a, S>(&'a S);

impl<K: Key, S: Subject<K>> Sequential<K> for Unshared<'_, S> {
    #[inline]
    fn insert(&mut self, key: &K, value: u64) -> bool {
        self.0.insert(key, value)
    }

    #[inline]
    fn update(&mut self, key: &K, value: u64) {
        self.0.update(key, value);
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.0.remove(key)
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.get(key)
    }

    #[inline]
    fn scan<F: FnMut(K::View<'_>, u64)>(&self, from: &K, limit: usize, visit: F) {
        self.0.scan(Some(from), limit, visit);
    }

    fn entries(&self) -> Result<u64, String> {
        check(self.0)
    }
}

impl<K: Key> Task<K> for &SequentialJob<K> {
    type Output = Measured;

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Measured {
        let (warm, table) = (make(), make());
        measure(self, Unshared(&warm), Unshared(&table))
    }
}

/// Warms up with one table, and then does the measured operations on the other.
fn measure<K: Key, T: Sequential<K>>(job: &SequentialJob<K>, warm: T, table: T) -> Measured {
    let keys = &job.keys.loaded;
    insert_all(&Mutex::new(warm), &keys[..keys.len() / WARM_UP_PART])?;
    // The only thread takes the lock once, before it begins.
    let table = Mutex::new(table);
    let mut inserted = Some(insert_all(&table, keys)?);
    let greatest = keys.iter().max().map_or(0, |key| K::head_of(key.view()));
    let mut samples = Vec::new();
    for operation in &job.operations {
        samples.push(match operation {
            SequentialOperation::Insert => Ok(inserted.take().ok_or("all is inserted once")?),
            SequentialOperation::Lookup => timed(&table, job, |table, key| {
                u64::from(table.get(key) != Some(K::value_of(key.view())))
            }),
            SequentialOperation::Update => timed(&table, job, |table, key| {
                table.update(key, K::value_of(key.view()));
                0
            }),
            SequentialOperation::Scan => timed(&table, job, |table, key| {
                u64::from(!scans_rightly(table, key, greatest))
            }),
            SequentialOperation::Remove => Ok(remove_all(&table, keys)?),
        });
    }
    let removed = job.operations.contains(&SequentialOperation::Remove);
    let left = if removed { 0 } else { keys.len() as u64 };
    expect("entries", lock(&table).entries()?, left)?;
    Ok(samples)
}

/// Takes the lock. No other thread uses the table, so none can have panicked with it.
fn lock<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Inserts all keys, each of which is new, once.
fn insert_all<K: Key, T: Sequential<K>>(table: &Mutex<T>, keys: &[K]) -> Result<Sample, String> {
    let timed = together(1, |_| {
        let mut table = lock(table);
        let insert = |key: &K| u64::from(table.insert(key, K::value_of(key.view())));
        keys.iter().map(insert).sum::<u64>()
    });
    all_of("keys reported as new", keys, &timed)
}

/// Removes all keys, in the order in which they were inserted.
fn remove_all<K: Key, T: Sequential<K>>(table: &Mutex<T>, keys: &[K]) -> Result<Sample, String> {
    expect("entries", lock(table).entries()?, keys.len() as u64)?;
    let timed = together(1, |_| {
        let mut table = lock(table);
        let remove = |key: &K| u64::from(table.remove(key));
        keys.iter().map(remove).sum::<u64>()
    });
    all_of("keys removed", keys, &timed)
}

fn all_of<K>(what: &str, keys: &[K], timed: &Timed<u64>) -> Result<Sample, String> {
    expect(what, timed.results.iter().sum(), keys.len() as u64)?;
    Ok(Sample::new(keys.len() as u64, timed.elapsed))
}

/// Does one operation with the keys of the stream, again and again, until the time is up. The
/// operation returns how many of its results were wrong.
fn timed<K: Key, T: Sequential<K>>(
    table: &Mutex<T>,
    job: &SequentialJob<K>,
    operation: impl Fn(&mut T, &K) -> u64 + Sync,
) -> Result<Sample, String> {
    let timed = together_for(1, job.span, |_, lap: &mut Lap<'_>| {
        let mut table = lock(table);
        let mut faults = 0;
        loop {
            for stride in job.stream.chunks(STRIDE) {
                for key in stride {
                    faults += operation(&mut table, key);
                }
                if !lap.done(stride.len() as u64) {
                    return black_box(faults);
                }
            }
        }
    });
    expect("wrong results", timed.results.iter().sum(), 0)?;
    Ok(Sample::new(timed.operations, timed.elapsed))
}

/// Whether a scan from a present key visits what follows that key: in order (as far as the first
/// eight bytes decide), each value belonging to its key, and as many entries as asked for unless
/// the table ends.
#[inline]
fn scans_rightly<K: Key, T: Sequential<K>>(table: &T, from: &K, greatest: u64) -> bool {
    let first = K::head_of(from.view());
    let (mut seen, mut last, mut faults) = (0, first, 0_u64);
    table.scan(from, SEQUENTIAL_SCAN, |key, value| {
        let head = K::head_of(key);
        faults += u64::from(head < last) + u64::from(value != K::value_of(key));
        faults += u64::from(seen == 0 && head != first);
        last = head;
        seen += 1;
    });
    let ended = seen == SEQUENTIAL_SCAN || (0 < seen && seen < SEQUENTIAL_SCAN && last == greatest);
    faults == 0 && ended
}

/// The standard library's `BTreeMap`, without a lock, as a contestant.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainBTreeMap;

impl Entrant for PlainBTreeMap {
    fn name(&self) -> &'static str {
        "btreemap"
    }

    fn about(&self) -> &'static str {
        "std's BTreeMap, without a lock, for one thread"
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Sequential]
    }

    fn start(&self, _kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        Ok(Contestant::Sequential(Box::new(*self)))
    }
}

impl Started for PlainBTreeMap {
    fn name(&self) -> &'static str {
        Entrant::name(self)
    }

    fn version(&self) -> String {
        "std".to_owned()
    }
}

impl Measures<SequentialWork> for PlainBTreeMap {
    fn measure(&mut self, job: &SequentialWork) -> Samples {
        let measured = match job {
            Keys::Integers(job) => measure(job, BTreeMap::new(), BTreeMap::new()),
            Keys::Texts(job) => measure(job, BTreeMap::new(), BTreeMap::new()),
        };
        samples(Entrant::name(self), measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{keys::KeyList, measure::Span};
    use std::time::Duration;

    /// What a table does wrong.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    enum Fault {
        #[default]
        Nothing,
        ForgetsInserts,
        ForeignValue,
        WrongUpdate,
        SkipsFirst,
        EndsEarly,
        KeepsRemoved,
    }

    #[derive(Default)]
    struct Faulty {
        fault: Fault,
        entries: BTreeMap<u64, u64>,
    }

    impl Sequential<u64> for Faulty {
        fn insert(&mut self, key: &u64, value: u64) -> bool {
            if self.fault == Fault::ForgetsInserts && key % 2 == 1 {
                return true;
            }
            self.entries.insert(*key, value).is_none()
        }

        fn update(&mut self, key: &u64, value: u64) {
            let wrong = u64::from(self.fault == Fault::WrongUpdate);
            self.entries.insert(*key, value ^ wrong);
        }

        fn remove(&mut self, key: &u64) -> bool {
            if self.fault == Fault::KeepsRemoved && key % 2 == 1 {
                return true;
            }
            self.entries.remove(key).is_some()
        }

        fn get(&self, key: &u64) -> Option<u64> {
            let wrong = u64::from(self.fault == Fault::ForeignValue);
            self.entries.get(key).map(|value| value ^ wrong)
        }

        fn scan<F: FnMut(u64, u64)>(&self, from: &u64, limit: usize, mut visit: F) {
            let skipped = usize::from(self.fault == Fault::SkipsFirst);
            let missing = usize::from(self.fault == Fault::EndsEarly);
            let range = self.entries.range(from..).skip(skipped);
            for (key, value) in range.take(limit - missing) {
                visit(*key, *value);
            }
        }

        fn entries(&self) -> Result<u64, String> {
            Sequential::entries(&self.entries)
        }
    }

    fn measured(fault: Fault) -> Result<usize, String> {
        let keys: Vec<u64> = (0..1000).map(|i| i * 7).collect();
        let job = SequentialJob {
            stream: keys.clone(),
            keys: KeyList {
                loaded: keys,
                fresh: Vec::new(),
            },
            operations: SequentialOperation::ALL.into(),
            span: Span::warmed(Duration::from_millis(4)),
        };
        let table = || Faulty {
            fault,
            ..Faulty::default()
        };
        let samples: Result<Vec<_>, _> = measure(&job, table(), table())?.into_iter().collect();
        Ok(samples?.len())
    }

    #[test]
    fn only_a_right_table_is_believed() {
        assert_eq!(measured(Fault::Nothing), Ok(5));
        for fault in [
            Fault::ForgetsInserts,
            Fault::ForeignValue,
            Fault::WrongUpdate,
            Fault::SkipsFirst,
            Fault::EndsEarly,
            Fault::KeepsRemoved,
        ] {
            assert!(measured(fault).is_err(), "{fault:?}");
        }
    }
}
