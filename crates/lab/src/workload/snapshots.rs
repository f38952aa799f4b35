//! The updates of `snapshot_beside_writers`, and what a snapshot may show of them.

use super::part_of;
use crate::measure::Span;
use foldhash::HashMap;
use rand::{Rng, RngExt};

/// Writers update keys of their own, and another thread may read the whole table meanwhile.
///
/// The value of a key is the number of the update that wrote it, counted from 1 by each writer; 0
/// if no update wrote it. The updates of a writer come one after the other. So if update n is the
/// last one of a writer that a snapshot shows, it must show exactly the first n updates of that
/// writer.
#[derive(Clone, Debug)]
pub struct SnapshotJob {
    /// What the table is filled with; each writer inserts its part, and updates only that.
    pub keys: Vec<u64>,
    /// The keys that each writer updates, in this order, repeatedly.
    pub streams: Vec<Vec<u64>>,
    /// What is measured, in this order.
    pub company: Vec<Company>,
    /// How long the threads warm up, and how long the updates count.
    pub span: Span,
}

/// What happens beside the writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Nothing.
    Nobody,
    /// Another thread scans the whole table, again and again: what any reader costs the writers.
    Scans,
    /// Another thread takes snapshots of the whole table, one after the other.
    Snapshots,
    /// Another thread takes such snapshots, and reads each in parts.
    Parts,
}

impl Company {
    /// All, in the order of measurement.
    pub const ALL: [Self; 4] = [Self::Nobody, Self::Scans, Self::Snapshots, Self::Parts];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "updates_alone",
            Self::Scans => "updates_beside_scans",
            Self::Snapshots => "updates_beside_snapshots",
            Self::Parts => "updates_beside_snapshots_in_parts",
        }
    }
}

/// The keys that a writer updates: chosen uniformly among its own; none if it has none.
#[must_use]
pub fn update_stream(
    keys: &[u64],
    writer: usize,
    writers: usize,
    length: usize,
    random: &mut impl Rng,
) -> Vec<u64> {
    let own = part_of(keys, writer, writers);
    match own {
        [] => Vec::new(),
        own => (0..length)
            .map(|_| own[random.random_range(0..own.len())])
            .collect(),
    }
}

impl SnapshotJob {
    /// How many threads write.
    #[must_use]
    pub fn writers(&self) -> usize {
        self.streams.len()
    }

    /// Checks the number of entries that a scan or snapshot visited.
    ///
    /// # Errors
    ///
    /// They are not all of the table, or more.
    pub fn check_length(&self, visited: usize) -> Result<(), String> {
        match self.keys.len() {
            keys if keys == visited => Ok(()),
            keys => Err(format!("it shows {visited} entries of {keys}")),
        }
    }

    /// Checks that a copy of the table, ascending, is as of one moment. `done` has the number of
    /// updates that each writer had done at that moment; without it any number is right.
    ///
    /// # Errors
    ///
    /// The copy lacks an entry, has an entry that is not in the table, is out of order, or shows an
    /// update without another one that the same writer did before.
    pub fn check(&self, copy: &[(u64, u64)], done: Option<&[u64]>) -> Result<(), String> {
        self.check_length(copy.len())?;
        if let Some(pair) = copy.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let (key, last) = (pair[1].0, pair[0].0);
            return Err(format!("key {key} follows {last} in a snapshot"));
        }
        let shown: HashMap<u64, u64> = copy.iter().copied().collect();
        for (writer, stream) in self.streams.iter().enumerate() {
            let own = part_of(&self.keys, writer, self.writers());
            self::check(own, stream, &shown, done.map(|done| done[writer]))
                .map_err(|fault| format!("writer {writer}: {fault}"))?;
        }
        Ok(())
    }
}

/// Checks what a copy shows of one writer.
fn check(
    own: &[u64],
    stream: &[u64],
    shown: &HashMap<u64, u64>,
    done: Option<u64>,
) -> Result<(), String> {
    let mut newest = 0;
    for key in own {
        let value = shown.get(key);
        newest = newest.max(*value.ok_or_else(|| format!("a snapshot lacks key {key}"))?);
    }
    if done.is_some_and(|done| done != newest) {
        let done = done.unwrap_or_default();
        return Err(format!("update {newest} is the last one of {done}"));
    }
    // The last update of each key up to the newest: those before have been overwritten.
    let mut expected = HashMap::default();
    let length = stream.len() as u64;
    let first = newest.saturating_sub(length) + 1;
    for number in (first..=newest).rev() {
        let key = stream[((number - 1) % length) as usize];
        expected.entry(key).or_insert(number);
    }
    for key in own {
        let (value, expected) = (shown[key], expected.get(key).copied().unwrap_or(0));
        if value != expected {
            return Err(format!(
                "a snapshot shows update {newest}, and of key {key} update {value}, not {expected}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};
    use std::{collections::BTreeMap, time::Duration};

    fn job() -> SnapshotJob {
        let keys: Vec<u64> = (0..101).map(|i| i * 5).collect();
        let stream = |writer| {
            let random = &mut generator(1, Purpose::Choices, 0, writer);
            update_stream(&keys, writer, 2, 60, random)
        };
        SnapshotJob {
            streams: (0..2).map(stream).collect(),
            keys,
            company: Company::ALL.into(),
            span: Span::warmed(Duration::ZERO),
        }
    }

    /// The table after each writer has done this number of updates.
    fn table(job: &SnapshotJob, done: [u64; 2]) -> Vec<(u64, u64)> {
        let mut table: BTreeMap<u64, u64> = job.keys.iter().map(|key| (*key, 0)).collect();
        for (stream, done) in job.streams.iter().zip(done) {
            for number in 1..=done {
                let key = stream[(number as usize - 1) % stream.len()];
                table.insert(key, number);
            }
        }
        table.into_iter().collect()
    }

    #[test]
    fn a_writer_updates_its_own_keys_only() {
        let job = job();
        for (writer, stream) in job.streams.iter().enumerate() {
            let own = part_of(&job.keys, writer, 2);
            assert!(stream.len() == 60 && stream.iter().all(|key| own.contains(key)));
        }
        let random = &mut generator(1, Purpose::Choices, 0, 0);
        assert!(update_stream(&[7], 0, 2, 60, random).is_empty());
    }

    #[test]
    fn what_the_table_held_at_a_moment_is_right() {
        let job = job();
        for done in [[0, 0], [1, 0], [17, 60], [61, 59], [1000, 3]] {
            assert_eq!(job.check(&table(&job, done), Some(&done)), Ok(()));
            assert_eq!(job.check(&table(&job, done), None), Ok(()));
        }
    }

    #[test]
    fn what_the_table_held_at_no_moment_is_wrong() {
        let job = job();
        let right = table(&job, [30, 40]);
        let wrong = |copy: &[(u64, u64)]| job.check(copy, None).unwrap_err();
        assert!(wrong(&right[1..]).contains("100 entries of 101"));
        let mut swapped = right.clone();
        swapped.swap(3, 4);
        assert!(wrong(&swapped).contains("follows"));
        let mut other = right.clone();
        other[100].0 += 1;
        assert!(wrong(&other).contains("lacks key 500"));
        // An earlier state of a key beside a later one of another.
        let mut torn = right.clone();
        let late = table(&job, [31, 40]);
        let changed = (0..right.len()).find(|&at| right[at] != late[at]).unwrap();
        let newest = right.iter().position(|entry| entry.1 == 30).unwrap();
        torn[changed] = late[changed];
        torn[newest].1 = table(&job, [29, 40])[newest].1;
        if changed != newest {
            assert!(wrong(&torn).contains("shows update 31"), "{torn:?}");
        }
        let lost = job.check(&right, Some(&[30, 41])).unwrap_err();
        assert!(lost.contains("writer 1: update 40 is the last one of 41"));
    }
}
