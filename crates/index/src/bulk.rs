//! Checks that the input of a bulk load is sorted, as its caller claims.

use std::fmt;

/// The input of a bulk load is not in strictly ascending order of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotSorted {
    /// The index in the input, from 0, of the first entry whose key is not above the key before it.
    pub position: usize,
}

impl fmt::Display for NotSorted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the key of entry {} (counted from 0) is not above the key before it; sort the \
             entries by key and remove duplicates, or insert them one by one",
            self.position
        )
    }
}

impl std::error::Error for NotSorted {}

/// Yields the entries as long as their keys ascend strictly, and ends after a [`NotSorted`].
///
/// It keeps an entry back until it has compared the next one with it, so it copies nothing.
pub(crate) struct Ascending<I: Iterator> {
    entries: I,
    /// The entry before the next one.
    kept: Option<I::Item>,
    /// How many entries have been taken from the input.
    taken: usize,
}

impl<K: Ord, V, I: Iterator<Item = (K, V)>> Ascending<I> {
    pub(crate) fn new(mut entries: I) -> Self {
        let kept = entries.next();
        Self {
            entries,
            taken: usize::from(kept.is_some()),
            kept,
        }
    }
}

impl<K: Ord, V, I: Iterator<Item = (K, V)>> Iterator for Ascending<I> {
    type Item = Result<(K, V), NotSorted>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.kept.take()?;
        if let Some(next) = self.entries.next() {
            if next.0 <= entry.0 {
                return Some(Err(NotSorted {
                    position: self.taken,
                }));
            }
            self.taken += 1;
            self.kept = Some(next);
        }
        Some(Ok(entry))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn load(keys: &[u32]) -> Result<Vec<u32>, NotSorted> {
        let entries = Ascending::new(keys.iter().map(|key| (*key, ())));
        entries.map(|entry| entry.map(|(key, ())| key)).collect()
    }

    #[test]
    fn ascending_entries_come_through() {
        assert_eq!(load(&[]), Ok(vec![]));
        assert_eq!(load(&[7]), Ok(vec![7]));
        assert_eq!(load(&[1, 2, 9]), Ok(vec![1, 2, 9]));
    }

    #[test]
    fn the_first_entry_out_of_order_is_named() {
        assert_eq!(load(&[1, 2, 2, 1]), Err(NotSorted { position: 2 }));
        assert_eq!(load(&[5, 4]), Err(NotSorted { position: 1 }));
        assert_eq!(load(&[1, 3, 5, 4, 2]), Err(NotSorted { position: 3 }));
        let message = NotSorted { position: 3 }.to_string();
        assert!(message.contains("entry 3"), "{message}");
    }
}
