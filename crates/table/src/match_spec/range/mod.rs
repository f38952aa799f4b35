//! Which keys a specification can match: the ranges of an ordered table that it has to visit.

mod bound;
mod plan;
mod stream;
mod whole;

pub use bound::KeyBound;

use super::MatchSpec;
use crate::term::{Exact, Term};
use bound::Side;
use std::cmp::Ordering;
use std::fmt;

/// Keys side by side in the term order.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec: Term = "[{{{user, '$1'}, '_'}, [{'>=', '$1', 10}, {'<', '$1', 20}], ['$_']}]".parse()?;
/// let intervals = MatchSpec::compile(&spec)?.key_intervals(0);
/// let [users] = intervals.as_slice() else { panic!("one interval") };
/// assert!(users.contains(&"{user, 10}".parse()?));
/// assert!(!users.contains(&"{user, 20}".parse()?));
/// assert!(users.key().is_none(), "it is more than one key");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInterval {
    /// Where it begins; `None` before all keys.
    pub low: Option<KeyBound>,
    /// Where it ends; `None` behind all keys.
    pub high: Option<KeyBound>,
}

impl KeyInterval {
    /// All keys.
    pub const ALL: Self = Self {
        low: None,
        high: None,
    };

    /// The one key that it has, and those that equal it (`==`): there `1.0` may be stored for `1`.
    #[must_use]
    pub fn key(&self) -> Option<&Term> {
        let (low, high) = (self.low.as_ref()?, self.high.as_ref()?);
        let one =
            low.side() == Side::Before && high.side() == Side::Behind && low.is_of_same_keys(high);
        one.then(|| low.key()).flatten()
    }

    /// Whether it has this key.
    #[must_use]
    pub fn contains(&self, key: &Term) -> bool {
        let after_low = |low: &KeyBound| low.cmp_key(key) == Ordering::Less;
        let before_high = |high: &KeyBound| high.cmp_key(key) == Ordering::Greater;
        self.low.as_ref().is_none_or(after_low) && self.high.as_ref().is_none_or(before_high)
    }

    /// Whether it can have no key.
    fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) => low >= high,
            _ => false,
        }
    }
}

/// For people: `5`, `{user,'_'}`, `from 3 to 9`, `behind {user,7}, before {user,9}`, `all keys`.
impl fmt::Display for KeyInterval {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.low, &self.high) {
            (Some(low), Some(high))
                if low.side() == Side::Before
                    && high.side() == Side::Behind
                    && low.is_of_same_keys(high) =>
            {
                write!(formatter, "{low}")
            }
            (None, None) => formatter.write_str("all keys"),
            (low, high) => {
                if let Some(low) = low {
                    let word = match low.side() {
                        Side::Before => "from",
                        Side::Behind => "behind",
                    };
                    write!(formatter, "{word} {low}")?;
                }
                if let Some(high) = high {
                    let space = if low.is_some() { " " } else { "" };
                    let word = match high.side() {
                        Side::Before => "before",
                        Side::Behind => "to",
                    };
                    write!(formatter, "{space}{word} {high}")?;
                }
                Ok(())
            }
        }
    }
}

/// How many elements rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSize {
    Any,
    Only(usize),
}

impl MatchSpec {
    /// The rows of which the specification says `true` if their keys lie in these
    /// [intervals](Self::key_intervals), and of no others. `None` if there is more to it, or if the
    /// intervals are but of single keys.
    pub(crate) fn whole_intervals(
        &self,
        key_position: usize,
    ) -> Option<(RowSize, Vec<KeyInterval>)> {
        let mut clauses = self.program.clauses.iter();
        let size = whole::whole(clauses.next()?, &self.program, key_position)?;
        if !clauses.all(|one| whole::whole(one, &self.program, key_position) == Some(size)) {
            return None;
        }
        let intervals = self.key_intervals(key_position);
        let single = intervals.iter().all(|interval| interval.key().is_some());
        (!single).then_some((size, intervals))
    }

    /// The keys of an `ordered_set` that the specification can match: intervals in ascending order,
    /// apart from each other. Rows with other keys need not be visited; those with these keys may
    /// match or not. `key_position` is counted from 0.
    ///
    /// Taken into account are what a head has at the key's place, be it a whole key or the first
    /// parts of a tuple or a list, and guards that compare a variable there with a constant, alone
    /// or under `andalso` and `and`. A bound `1` makes the interval of all that equals it, `1.0`, too,
    /// though the pattern matches but `1`.
    #[must_use]
    pub fn key_intervals(&self, key_position: usize) -> Vec<KeyInterval> {
        let clauses = self.program.clauses.iter();
        let mut intervals: Vec<_> = clauses
            .filter_map(|clause| plan::interval(clause, &self.program, key_position))
            .map(plan::Plan::interval)
            .filter(|interval| !interval.is_empty())
            .collect();
        // What begins before all keys is first: `None` is less than any bound.
        intervals.sort_by(|one, two| one.low.cmp(&two.low));
        let mut apart: Vec<KeyInterval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match apart.last_mut() {
                Some(last) if meets(last, &interval) => {
                    let ends_later = match (&last.high, &interval.high) {
                        (None, _) => false,
                        (Some(_), None) => true,
                        (Some(high), Some(later)) => high < later,
                    };
                    if ends_later {
                        last.high = interval.high;
                    }
                }
                _ => apart.push(interval),
            }
        }
        apart
    }

    /// The keys of a table whose keys are told apart by `=:=` (a `set` or a bag) that the
    /// specification can match, if it tells them one by one; `None` if the whole table has to be
    /// visited. `key_position` is counted from 0.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term, match_spec::Returns};
    ///
    /// let spec = MatchSpec::from_pattern(&"{a, '$1'}".parse()?, Returns::Bindings)?;
    /// assert_eq!(spec.exact_keys(0), Some(vec!["a".parse()?]));
    /// assert_eq!(spec.exact_keys(1), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn exact_keys(&self, key_position: usize) -> Option<Vec<Term>> {
        let clauses = self.program.clauses.iter();
        let mut keys = clauses
            .filter_map(|clause| plan::interval(clause, &self.program, key_position))
            .map(|plan| plan.exact_key().map(Exact))
            .collect::<Option<Vec<_>>>()?;
        keys.sort();
        keys.dedup();
        Some(keys.into_iter().map(|Exact(key)| key).collect())
    }

    /// What a search of an `ordered_set` visits, in words. `key_position` is counted from 0. Of a
    /// specification that says `true` of every row with these keys it tells that `select_delete` does
    /// not visit them, but removes the range in one step.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term};
    ///
    /// let explain = |spec: &str| -> Result<_, Box<dyn std::error::Error>> {
    ///     Ok(MatchSpec::compile(&spec.parse()?)?.explain(0))
    /// };
    /// assert_eq!(explain("[{{5, '_'}, [], ['$_']}]")?, "visits the key 5");
    /// assert_eq!(
    ///     explain("[{{{user, 17, '_'}}, [], ['$_']}, {{'$1'}, [{'<', '$1', 9}], ['$_']}]")?,
    ///     "visits the keys before 9; {user,17,'_'}",
    /// );
    /// assert_eq!(explain("[{{'_', 1}, [], ['$_']}]")?, "visits all keys");
    /// assert_eq!(explain("[{{}, [], ['$_']}]")?, "visits no key");
    /// assert_eq!(
    ///     explain("[{{{user, '$1'}, '_'}, [{'<', '$1', 9}], [true]}]")?,
    ///     "visits the keys from {user,'_'} before {user,9}; \
    ///      if all rows have 2 elements, select_delete removes them as a range",
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn explain(&self, key_position: usize) -> String {
        let intervals = self.key_intervals(key_position);
        let visits = match intervals.as_slice() {
            [] => return "visits no key".into(),
            [one] if *one == KeyInterval::ALL => "visits all keys".into(),
            [one] if one.key().is_some() => format!("visits the key {one}"),
            all => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                format!("visits the keys {}", all.join("; "))
            }
        };
        let removes = "select_delete removes them as a range";
        match self.whole_intervals(key_position) {
            None => visits,
            Some((RowSize::Any, _)) => format!("{visits}; {removes}"),
            Some((RowSize::Only(size), _)) => {
                let elements = if size == 1 { "element" } else { "elements" };
                format!("{visits}; if all rows have {size} {elements}, {removes}")
            }
        }
    }
}

/// Whether no key can be between two intervals, of which the second does not begin earlier.
fn meets(first: &KeyInterval, second: &KeyInterval) -> bool {
    match (&first.high, &second.low) {
        (Some(high), Some(low)) => low <= high,
        _ => true,
    }
}
