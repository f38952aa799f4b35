//! Which keys a specification can match: the ranges that a search of an ordered table has to visit.

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

/// A contiguous range of keys in the term order.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec = "[{{{user, '$1'}, '_'}, [{'>=', '$1', 10}, {'<', '$1', 20}], ['$_']}]";
/// let spec: Term = spec.parse()?;
/// let intervals = MatchSpec::compile(&spec)?.key_intervals(0);
/// let [users] = intervals.as_slice() else { panic!("one interval") };
/// assert!(users.contains(&"{user, 10}".parse()?));
/// assert!(!users.contains(&"{user, 20}".parse()?));
/// assert!(users.key().is_none(), "it is more than one key");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInterval {
    /// Where it begins; `None` for the beginning of all keys.
    pub low: Option<KeyBound>,
    /// Where it ends; `None` for the end of all keys.
    pub high: Option<KeyBound>,
}

impl KeyInterval {
    /// All keys.
    pub const ALL: Self = Self {
        low: None,
        high: None,
    };

    /// The only key of the interval, and those that equal it (`==`): for `1`, the table may have
    /// `1.0`.
    #[must_use]
    pub fn key(&self) -> Option<&Term> {
        self.only()?.key()
    }

    /// The bound before its keys, if the interval has exactly those.
    fn only(&self) -> Option<&KeyBound> {
        let (low, high) = (self.low.as_ref()?, self.high.as_ref()?);
        let only =
            low.side() == Side::Before && high.side() == Side::Behind && low.is_of_same_keys(high);
        only.then_some(low)
    }

    /// Whether it contains this key.
    #[must_use]
    pub fn contains(&self, key: &Term) -> bool {
        let after_low = |low: &KeyBound| low.cmp_key(key) == Ordering::Less;
        let before_high = |high: &KeyBound| high.cmp_key(key) == Ordering::Greater;
        self.low.as_ref().is_none_or(after_low) && self.high.as_ref().is_none_or(before_high)
    }

    /// The interval as a term: `{Low, High}`, each `[]` or a bound.
    pub(crate) fn to_term(&self) -> Term {
        let term = |bound: &Option<KeyBound>| bound.as_ref().map_or(Term::NIL, KeyBound::to_term);
        Term::tuple([term(&self.low), term(&self.high)])
    }

    /// Reads what [`to_term`](Self::to_term) made; `None` if the term is no interval.
    pub(crate) fn from_term(term: &Term) -> Option<Self> {
        let Term::Tuple(ends) = term else { return None };
        let [low, high] = ends.elements() else {
            return None;
        };
        let bound = |term: &Term| match term.is_nil() {
            true => Some(None),
            false => KeyBound::from_term(term).map(Some),
        };
        Some(Self {
            low: bound(low)?,
            high: bound(high)?,
        })
    }

    /// Whether it can contain no key.
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
        if let Some(keys) = self.only() {
            return write!(formatter, "{keys}");
        }
        match (&self.low, &self.high) {
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

/// How many elements the rows of a specification have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowSize {
    Any,
    Only(usize),
}

impl MatchSpec {
    /// A size of rows, and [intervals](Self::key_intervals): the specification says `true` exactly
    /// of the rows of this size whose keys are in the intervals. `None` if it has other conditions,
    /// or if every interval is a single key.
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

    /// The keys of an `ordered_set` that the specification can match: disjoint intervals in
    /// ascending order. Rows with other keys need not be visited; rows with these keys may match or
    /// not. `key_position` is counted from 0.
    ///
    /// The intervals take into account what a head has in the key's position (a whole key or the
    /// first parts of a tuple or a list), and guards that compare a variable there with a constant,
    /// alone or under `andalso` and `and`. A bound `1` includes everything that equals it, such as
    /// `1.0`, though the pattern matches only `1`.
    #[must_use]
    pub fn key_intervals(&self, key_position: usize) -> Vec<KeyInterval> {
        let clauses = self.program.clauses.iter();
        let mut intervals: Vec<_> = clauses
            .filter_map(|clause| plan::interval(clause, &self.program, key_position))
            .map(plan::Plan::interval)
            .filter(|interval| !interval.is_empty())
            .collect();
        // An interval without a lower bound sorts first: `None` is less than any bound.
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

    /// The keys that the specification can match in a table whose keys differ by `=:=` (a `set` or
    /// a bag), if the specification names them one by one; `None` if a search has to visit the
    /// whole table. `key_position` is counted from 0.
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

    /// What a search of an `ordered_set` visits, in words. `key_position` is counted from 0. If the
    /// specification says `true` of every row with these keys, the text says that `select_delete`
    /// removes the range in one step instead of visiting the rows.
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

/// Whether no key can lie between two intervals; the second does not begin earlier than the first.
fn meets(first: &KeyInterval, second: &KeyInterval) -> bool {
    match (&first.high, &second.low) {
        (Some(high), Some(low)) => low <= high,
        _ => true,
    }
}
