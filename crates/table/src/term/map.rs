//! Maps.

use super::extent::{Extent, Shared, share};
use super::order::{Numbers, compare};
use super::{Term, reclaim};

/// Keys with values; each key occurs once under `=:=`.
///
/// The entries are contiguous in the order of their keys, the *map order*: the term order, except
/// that all integers come before floats. So a lookup is a binary search, and maps are compared,
/// hashed and printed the same regardless of how they were made. Changing one entry of a large map
/// copies it; tables seldom do that.
#[derive(Clone, Default)]
pub struct Map(
    /// `None` if it is empty.
    Option<Shared<(), (Term, Term)>>,
);

impl Map {
    /// A map of these entries; of entries with the same key, the last counts. Takes the time to
    /// sort them.
    ///
    /// ```
    /// use tremula_table::{Term, term::Map};
    ///
    /// let map = Map::new(vec![(Term::from(1), Term::NIL), (Term::from(1), Term::from(2))]);
    /// assert_eq!(map.get(&Term::from(1)), Some(&Term::from(2)));
    /// ```
    #[must_use]
    pub fn new(mut entries: Vec<(Term, Term)>) -> Self {
        sort(&mut entries);
        // The first of two entries with equal keys stays, with the value of the second.
        entries.dedup_by(|later, earlier| {
            let same = earlier.0.is_identical(&later.0);
            if same {
                std::mem::swap(&mut earlier.1, &mut later.1);
            }
            same
        });
        Self::sorted(entries)
    }

    /// A map of these entries, or `None` if a key occurs twice.
    #[must_use]
    pub fn from_distinct(mut entries: Vec<(Term, Term)>) -> Option<Self> {
        sort(&mut entries);
        let twice = entries
            .windows(2)
            .any(|pair| pair[0].0.is_identical(&pair[1].0));
        (!twice).then(|| Self::sorted(entries))
    }

    fn sorted(entries: Vec<(Term, Term)>) -> Self {
        let some = !entries.is_empty();
        Self(some.then(|| share((), entries.into_iter())))
    }

    /// The entries in map order.
    #[inline]
    #[must_use]
    pub fn entries(&self) -> &[(Term, Term)] {
        self.0.as_ref().map_or(&[], |entries| &entries.slice)
    }

    pub(super) fn extent(&self) -> Extent {
        let header = self.0.as_ref().map(|entries| &entries.header.header);
        header.map_or(Extent::default(), |header| header.extent)
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of the key identical (`=:=`) to this one. Takes logarithmic time.
    #[must_use]
    pub fn get(&self, key: &Term) -> Option<&Term> {
        let entries = self.entries();
        let place = entries
            .binary_search_by(|(other, _)| compare(other, key, Numbers::ByType))
            .ok()?;
        Some(&entries[place].1)
    }
}

/// Pairs up alternating keys and values.
pub(crate) fn pairs(mut values: impl Iterator<Item = Term>) -> Vec<(Term, Term)> {
    std::iter::from_fn(|| Some((values.next()?, values.next()?))).collect()
}

/// Sorts by map order; entries with equal keys keep their order.
fn sort(entries: &mut [(Term, Term)]) {
    entries.sort_by(|one, two| compare(&one.0, &two.0, Numbers::ByType));
}

impl Drop for Map {
    #[inline]
    fn drop(&mut self) {
        if let Some(entries) = self.0.take() {
            reclaim::release(entries, |entries| Term::Map(Self(Some(entries))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        text.parse().unwrap()
    }

    #[test]
    fn keys_are_told_apart_by_identity() {
        let map = Map::new(vec![
            (term("1.0"), term("float")),
            (term("2"), term("two")),
            (term("1"), term("one")),
        ]);
        assert_eq!(map.get(&term("1")), Some(&term("one")));
        assert_eq!(map.get(&term("1.0")), Some(&term("float")));
        assert_eq!(map.get(&term("2.0")), None);
        let keys: Vec<_> = map
            .entries()
            .iter()
            .map(|(key, _)| key.to_string())
            .collect();
        assert_eq!(keys, ["1", "2", "1.0"], "integers come before floats");
    }

    #[test]
    fn of_equal_keys_the_last_stays_or_none_is_allowed() {
        let entries: Vec<_> = (0..9).map(|n| (Term::from(n % 2), Term::from(n))).collect();
        let map = Map::new(entries.clone());
        assert_eq!(Term::from(map).to_string(), "#{0 => 8,1 => 7}");
        assert!(Map::from_distinct(entries).is_none());
    }
}
