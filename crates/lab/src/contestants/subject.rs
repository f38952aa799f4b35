//! What the workloads ask of a table in this process.

use std::ops::ControlFlow;
use tremula_index::{Direction, KeyRange, OrderedIndex};

/// A concurrent ordered table from `u64` to `u64`, as the workloads use it.
///
/// The workloads are generic over it, so that each table is called statically and can be
/// inlined, as it would be in a program that uses it. Every [`OrderedIndex`] is one; a rival
/// needs these five calls only.
pub trait Subject: Sync {
    /// Inserts the key or replaces its value; whether the key is new.
    fn insert(&self, key: u64, value: u64) -> bool;

    /// Removes the key; whether it was there.
    fn remove(&self, key: u64) -> bool;

    /// The value of the key.
    fn get(&self, key: u64) -> Option<u64>;

    /// The smallest key above `key`.
    fn next(&self, key: u64) -> Option<u64>;

    /// Walks the whole quiescent table, and returns how many entries it has.
    ///
    /// # Errors
    ///
    /// Keys that do not ascend, a value that is not its key's, or a length that is not the
    /// number of entries.
    fn check(&self) -> Result<u64, String>;
}

impl<I: OrderedIndex<u64, u64> + ?Sized> Subject for I {
    #[inline]
    fn insert(&self, key: u64, value: u64) -> bool {
        OrderedIndex::insert(self, key, value).is_none()
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        OrderedIndex::remove(self, &key).is_some()
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u64> {
        OrderedIndex::get(self, &key)
    }

    #[inline]
    fn next(&self, key: u64) -> Option<u64> {
        OrderedIndex::next(self, &key).map(|(key, _)| key)
    }

    fn check(&self) -> Result<u64, String> {
        let mut last = None;
        let mut count = 0;
        let mut fault = None;
        self.range(KeyRange::all(), Direction::Ascending, &mut |key, value| {
            if last.is_some_and(|last| last >= *key) {
                fault = Some(format!("key {key} follows {last:?} in a scan"));
            } else if value_of(*key) != *value {
                fault = Some(format!("key {key} has the value {value}"));
            }
            last = Some(*key);
            count += 1;
            if fault.is_some() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        if self.len() as u64 != count {
            return Err(format!("len is {} but a scan sees {count}", self.len()));
        }
        Ok(count)
    }
}

/// The value that every workload stores under a key, so that each value found can be checked.
#[inline]
pub(crate) const fn value_of(key: u64) -> u64 {
    !key
}

#[cfg(test)]
mod tests {
    use super::*;
    use tremula_index::Engine;

    #[test]
    fn a_right_table_passes_and_a_foreign_value_does_not() {
        for engine in Engine::ALL {
            let index = engine.create::<u64, u64>();
            for key in [5, 1, 3] {
                assert!(Subject::insert(&*index, key, value_of(key)));
            }
            assert_eq!(index.check(), Ok(3));
            assert_eq!(Subject::next(&*index, 1), Some(3));
            assert!(Subject::remove(&*index, 1) && !Subject::remove(&*index, 1));
            Subject::insert(&*index, 9, 9);
            assert!(index.check().unwrap_err().contains("key 9"));
        }
    }
}
