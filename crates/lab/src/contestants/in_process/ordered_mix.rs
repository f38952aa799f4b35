//! Streams of updates, lookups and sequences of `next` on a half filled range.

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::Key,
    measure::{Lap, Sample, together_for},
    workload::{self, Kind, MixJob, Operation, SEQUENCE_STEPS},
};
use std::hint::black_box;

/// How many operations a thread does before it looks at the time again.
pub(super) const STRIDE: usize = 64;

impl Task<u64> for &MixJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        for key in &self.prefill {
            let key = u64::from(*key);
            table.insert(&key, u64::value_of(key));
        }
        let timed = together_for(self.streams.len(), self.span, |thread, lap| {
            work_off(&table, &self.streams[thread], self.range, lap)
        });
        let mut total = Tally::default();
        for tally in &timed.results {
            total.inserted += tally.inserted;
            total.removed += tally.removed;
            total.faults += tally.faults;
        }
        expect("wrong results", total.faults, 0)?;
        let left = (self.prefill.len() as u64 + total.inserted).checked_sub(total.removed);
        expect("entries", check(&table)?, left.unwrap_or(0))?;
        Ok(vec![Ok(Sample::new(timed.operations, timed.elapsed))])
    }
}

/// What one thread has changed and seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Inserts that added a new key.
    pub(super) inserted: u64,
    /// Removes that found their key.
    pub(super) removed: u64,
    /// Results that cannot be right whatever other threads do.
    pub(super) faults: u64,
}

/// Runs the stream against the table again and again, each time with rotated keys, until the time
/// is up.
pub(super) fn work_off<S: Subject<u64>>(
    table: &S,
    stream: &[Operation],
    range: u32,
    lap: &mut Lap<'_>,
) -> Tally {
    let mut tally = Tally::default();
    let mut offset = 0;
    let step = workload::rotation_step(range);
    loop {
        for stride in stream.chunks(STRIDE) {
            for operation in stride {
                let key = u64::from(workload::rotate(operation.key(), offset, range));
                operate(table, operation.kind(), key, &mut tally);
            }
            if !lap.done(stride.len() as u64) {
                return black_box(tally);
            }
        }
        offset = workload::rotate(offset, step, range);
    }
}

#[inline]
pub(super) fn operate<S: Subject<u64>>(table: &S, kind: Kind, key: u64, tally: &mut Tally) {
    match kind {
        Kind::Lookup => {
            if let Some(value) = table.get(&key) {
                tally.faults += u64::from(value != u64::value_of(key));
            }
        }
        Kind::Insert => tally.inserted += u64::from(table.insert(&key, u64::value_of(key))),
        Kind::Remove => tally.removed += u64::from(table.remove(&key)),
        Kind::Sequence => {
            let mut key = key;
            for _ in 0..SEQUENCE_STEPS {
                let Some(next) = table.next(&key) else { break };
                tally.faults += u64::from(next <= key);
                key = next;
            }
        }
    }
}
