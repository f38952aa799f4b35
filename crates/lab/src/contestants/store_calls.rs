//! The store of the server as a contestant: its calls, without sockets and commands.
//!
//! It does those mixes of `ets_throughput` that look up, insert and remove. A row is a key of four
//! bytes with an empty value, or with a binary.

use super::contestant::{
    Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
};
use crate::{
    LabError,
    case::{Case, ContestantKind},
    measure::{Lap, Sample, together_for},
    workload::{
        self, BINARY_BYTES, EtsJob, EtsMix, Kind as Operation, Purpose, RowJob, Rows, generator,
    },
};
use rand::RngExt;
use std::{collections::BTreeSet, hint::black_box};
use tremula_store::{Direction, Engine, Key, KeyRange, Store, StoreConfig, Unlogged, Value};

/// The store, with its default engine, no log and no cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreCalls;

impl Entrant for StoreCalls {
    fn name(&self) -> &'static str {
        "store_calls"
    }

    fn about(&self) -> &'static str {
        "the store of the server in this process: its calls, without sockets"
    }

    fn side(&self) -> Side {
        Side::Variant
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Rows]
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        let is_other = |workload: &str| {
            let mix = workload.parse::<EtsMix>();
            mix.is_ok_and(|mix| mix.needs_order() || mix.selects.is_some())
        };
        if asked.experiment != "ets_throughput" || asked.workload.is_some_and(is_other) {
            return Some("it only looks up, inserts and removes");
        }
        None
    }

    fn start(&self, _kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        Ok(Contestant::Rows(Box::new(*self)))
    }
}

impl Started for StoreCalls {
    fn name(&self) -> &'static str {
        Entrant::name(self)
    }

    fn version(&self) -> String {
        own_version()
    }

    fn check_against_model(&mut self, _case: &Case, seed: u64) -> Result<(), LabError> {
        check_against_model(seed).map_err(|fault| LabError::Wrong {
            engine: Entrant::name(self),
            fault,
        })
    }
}

impl Measures<RowJob> for StoreCalls {
    fn measure(&mut self, job: &RowJob) -> Samples {
        let measured = match job {
            RowJob::Mix(job) => measure(job),
            RowJob::Bench(_) => Err("it does no operations of ets_bench".to_owned()),
        };
        samples(Entrant::name(self), measured.map(|sample| vec![Ok(sample)]))
    }
}

/// The database of the store that is used.
const DATABASE: usize = 0;

struct Calls {
    store: Store,
    rows: Rows,
}

impl Calls {
    fn new(rows: Rows) -> Result<Self, String> {
        let store = Store::new(&StoreConfig::new(Engine::Aspen));
        let store = store.map_err(|error| error.to_string())?;
        Ok(Self { store, rows })
    }

    /// Whether the key is there, with a value that can be right.
    #[inline]
    fn get(&self, key: u32) -> (bool, bool) {
        let length = self.length();
        let mut is_right = true;
        let mut read = |value: &Value| is_right = value.len() == length;
        let database = self.store.database(DATABASE);
        let is_there = database.get_with(&key_of(key), &mut read);
        (is_there, is_right)
    }

    #[inline]
    fn insert(&self, key: u32) -> Result<bool, Unlogged> {
        let value = Value::from(&[0; BINARY_BYTES][..self.length()]);
        let database = self.store.database(DATABASE);
        let replaced = self
            .store
            .commit(|effects| database.insert(effects, key_of(key), value))?;
        Ok(replaced.is_some())
    }

    #[inline]
    fn remove(&self, key: u32) -> Result<bool, Unlogged> {
        let database = self.store.database(DATABASE);
        let removed = self
            .store
            .commit(|effects| database.remove(effects, &key_of(key)))?;
        Ok(removed.is_some())
    }

    fn length(&self) -> usize {
        match self.rows {
            Rows::Int => 0,
            Rows::IntBinary => BINARY_BYTES,
        }
    }

    /// Checks that the database has as many keys as it says, in order.
    fn check(&self) -> Result<(), String> {
        let mut found = Vec::new();
        let database = self.store.database(DATABASE);
        database.scan(
            KeyRange::all(),
            Direction::Ascending,
            usize::MAX,
            &mut found,
        );
        let length = database.len();
        if found.len() != length {
            return Err(format!("{length} keys, but {} are found", found.len()));
        }
        if !found.is_sorted_by(|one, other| one.0 < other.0) {
            return Err("keys are out of order".to_owned());
        }
        Ok(())
    }
}

fn key_of(number: u32) -> Key {
    Key::from(&number.to_be_bytes()[..])
}

/// How many operations a thread does before it looks at the time again.
const STRIDE: usize = 64;

fn measure(job: &EtsJob) -> Result<Sample, String> {
    let refused = |error: Unlogged| error.to_string();
    let calls = Calls::new(job.rows)?;
    for &key in &job.prefill {
        calls.insert(key).map_err(refused)?;
    }
    let timed = together_for(job.streams.len(), job.span, |thread, lap| {
        work_off(&calls, job, &job.streams[thread], lap)
    });
    let faults: Result<Vec<u64>, Unlogged> = timed.results.into_iter().collect();
    let faults: u64 = faults.map_err(refused)?.into_iter().sum();
    if faults > 0 {
        return Err(format!("{faults} wrong results, expected 0"));
    }
    calls.check()?;
    Ok(Sample::new(timed.operations, timed.elapsed))
}

/// Runs the stream again and again, each time with rotated keys, until the time is up. Returns how
/// many results cannot be right.
fn work_off(
    calls: &Calls,
    job: &EtsJob,
    stream: &[workload::Operation],
    lap: &mut Lap<'_>,
) -> Result<u64, Unlogged> {
    let (mut faults, mut offset) = (0, 0);
    let step = workload::rotation_step(job.range);
    loop {
        for stride in stream.chunks(STRIDE) {
            for operation in stride {
                let key = workload::rotate(operation.key(), offset, job.range);
                match operation.kind() {
                    Operation::Lookup => faults += u64::from(!calls.get(key).1),
                    Operation::Insert => drop(black_box(calls.insert(key)?)),
                    Operation::Remove => drop(black_box(calls.remove(key)?)),
                    Operation::Sequence => faults += 1,
                }
            }
            if !lap.done(stride.len() as u64) {
                return Ok(black_box(faults));
            }
        }
        offset = workload::rotate(offset, step, job.range);
    }
}

/// Compares the answers to random operations with those of a set.
fn check_against_model(seed: u64) -> Result<(), String> {
    const KEYS: u32 = 500;
    const OPERATIONS: usize = 4000;
    let calls = Calls::new(Rows::IntBinary)?;
    let mut model = BTreeSet::new();
    let random = &mut generator(seed, Purpose::Stream, 0, 0);
    for _ in 0..OPERATIONS {
        let key = random.random_range(0..KEYS);
        let (answer, expected) = match random.random_range(0..3) {
            0 => (calls.insert(key), !model.insert(key)),
            1 => (calls.remove(key), model.remove(&key)),
            _ => (Ok(calls.get(key) == (true, true)), model.contains(&key)),
        };
        let answer = answer.map_err(|error| error.to_string())?;
        if answer != expected {
            return Err(format!("{key} was there: {answer}, expected {expected}"));
        }
    }
    calls.check()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Span;
    use std::time::Duration;

    #[test]
    fn the_store_answers_as_the_model_does() {
        assert_eq!(check_against_model(5), Ok(()));
    }

    #[test]
    fn the_store_does_the_mixes_that_it_can() {
        let kinds = [Operation::Lookup, Operation::Insert, Operation::Remove];
        let stream = (0..999).map(|n| workload::Operation::new(kinds[n as usize % 3], n));
        for rows in Rows::ALL {
            let job = EtsJob {
                mix: EtsMix::ALL[0],
                rows,
                range: 1000,
                prefill: (0..1000).step_by(2).collect(),
                streams: vec![stream.clone().collect(); 2],
                span: Span::warmed(Duration::from_millis(2)),
            };
            assert!(measure(&job).unwrap().operations > 0);
        }
    }
}
