//! `congee::U64Congee`: an adaptive radix tree with optimistic lock coupling, for keys of eight
//! bytes and values of a word.
//!
//! It has no keys of another length, reports no length, and has no iterator: a scan copies entries
//! into a buffer as long as the scan. No scan can visit the greatest possible key, because the
//! upper bound of a scan is exclusive.

use crate::contestants::Subject;
use ::congee::{U64Congee, epoch};

/// The tree.
pub(super) struct Table(U64Congee<usize>);

/// How many entries the buffer of a scan can hold; a longer scan fills it several times.
const BUFFER: usize = 128;

impl Default for Table {
    fn default() -> Self {
        Self(U64Congee::new())
    }
}

impl Subject<u64> for Table {
    #[inline]
    fn insert(&self, key: &u64, value: u64) -> bool {
        // A word is eight bytes on every machine that the lab is for.
        let old = self.0.insert(*key, value as usize, &epoch::pin());
        old.expect("there is memory").is_none()
    }

    #[inline]
    fn remove(&self, key: &u64) -> bool {
        self.0.remove(*key, &epoch::pin()).is_some()
    }

    #[inline]
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.get(*key, &epoch::pin()).map(|value| value as u64)
    }

    #[inline]
    fn next(&self, key: &u64) -> Option<u64> {
        let mut buffer = [([0; 8], 0)];
        let above = key.checked_add(1)?;
        match self.0.range(above, u64::MAX, &mut buffer, &epoch::pin()) {
            0 => None,
            _ => Some(u64::from_be_bytes(buffer[0].0)),
        }
    }

    #[inline]
    fn scan<F>(&self, from: Option<&u64>, limit: usize, mut visit: F)
    where
        F: FnMut(u64, u64),
    {
        let guard = epoch::pin();
        let mut buffer = [([0; 8], 0); BUFFER];
        let mut from = from.copied().unwrap_or(0);
        let mut left = limit;
        while left > 0 {
            let room = left.min(BUFFER);
            let found = self.0.range(from, u64::MAX, &mut buffer[..room], &guard);
            for (key, value) in &buffer[..found] {
                visit(u64::from_be_bytes(*key), *value as u64);
            }
            if found < room {
                return;
            }
            // This does not overflow: no scan shows the greatest key.
            from = u64::from_be_bytes(buffer[found - 1].0) + 1;
            left -= found;
        }
    }

    fn scans_the_greatest_key(&self) -> bool {
        false
    }

    fn length(&self) -> Option<u64> {
        None
    }
}
