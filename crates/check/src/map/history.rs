//! A recorded history of an ordered map, and its checks.

use super::groups::{Group, MapEvent, Parts, groups};
use super::number::Number;
use super::operation::{Kind, Operation, Response};
use super::specification::MapSpecification;
use super::{count, well_formed};
use crate::explain::{explain, shorten};
use crate::history::{Event, History, Malformed};
use crate::search::{Verdict, search};
use std::collections::BTreeMap;

/// What threads did to an ordered map, and its entries before.
///
/// ```
/// use tremula_check::map::{Failure, MapHistory, Operation, Response};
/// use tremula_check::{DEFAULT_BUDGET, Event};
///
/// let stale = MapHistory::new(
///     [],
///     vec![
///         Event::returned(0, 0..=1, Operation::Insert(7, 70), Response::Value(None)),
///         Event::returned(1, 2..=3, Operation::Get(7), Response::Value(None)),
///     ],
/// )?;
/// let failure = stale.check(DEFAULT_BUDGET).unwrap_err();
/// assert!(matches!(failure, Failure::NotLinearizable { .. }));
/// println!("{failure}");
/// # Ok::<(), tremula_check::Malformed>(())
/// ```
#[derive(Clone, Debug)]
pub struct MapHistory {
    initial: BTreeMap<u64, u64>,
    history: History<Operation, Response>,
    /// The kinds of operations that promise less than one moment in this history.
    loose: Vec<Kind>,
    /// The most entries of a `range` that is as of one moment.
    short_range: Option<usize>,
}

/// The cost of checking a history that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of calls in it.
    pub operations: usize,
    /// The number of configurations that were searched.
    pub configurations: usize,
}

/// A fault of a history, explained for a reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// An answer that no map can give.
    #[error("a wrong answer: {0}")]
    Answer(String),
    /// A `len` or an `is_empty` that is further off than it may be.
    #[error("a wrong count: {0}")]
    Count(String),
    /// No order of the calls explains their answers.
    #[error("not linearizable{}; calls that show it: {calls}\n\n{report}", of_key(*key))]
    NotLinearizable {
        /// The key whose calls these are, if it was checked alone.
        key: Option<u64>,
        /// The number of calls left after all unneeded ones were left out.
        calls: usize,
        /// The calls as a table, the longest order found, and where it ended.
        report: String,
    },
    /// The budget was exhausted before an order was found or ruled out.
    #[error(
        "undecided{}: {calls} calls are more than {budget} configurations suffice for; check \
         shorter histories, or allow more",
        of_key(*key)
    )]
    Undecided {
        /// The key whose calls these are, if it was checked alone.
        key: Option<u64>,
        /// The number of calls.
        calls: usize,
        /// The budget.
        budget: usize,
    },
}

fn of_key(key: Option<u64>) -> String {
    key.map_or_else(String::new, |key| format!(" in key {}", Number(key)))
}

impl MapHistory {
    /// A history of calls on a map that had these entries when it began.
    ///
    /// # Errors
    ///
    /// When a call ends before it begins.
    pub fn new(
        initial: impl IntoIterator<Item = (u64, u64)>,
        events: Vec<Event<Operation, Response>>,
    ) -> Result<Self, Malformed> {
        Ok(Self {
            initial: initial.into_iter().collect(),
            history: History::new(events)?,
            loose: Vec::new(),
            short_range: None,
        })
    }

    /// The same history of a map whose operations of these kinds need not be as of one moment. They
    /// must still be right for each key: entries that they found were present, and keys that they
    /// skipped were absent, at some moment of the call.
    #[must_use]
    pub fn loosely(mut self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        self.loose.extend(kinds);
        self
    }

    /// The same history of a map whose `range` is as of one moment if it shows at most `up_to`
    /// entries. Longer ranges are checked for each key.
    #[must_use]
    pub const fn with_ranges_of_one_moment(mut self, up_to: usize) -> Self {
        self.short_range = Some(up_to);
        self
    }

    /// A history whose calls are known to end after they begin.
    pub(crate) fn recorded(
        initial: Vec<(u64, u64)>,
        events: Vec<Event<Operation, Response>>,
    ) -> Self {
        Self {
            initial: initial.into_iter().collect(),
            history: History::sorted(events),
            loose: Vec::new(),
            short_range: None,
        }
    }

    /// The calls.
    #[must_use]
    pub const fn history(&self) -> &History<Operation, Response> {
        &self.history
    }

    /// Checks everything that the map promises (see the [module](super)). Each search may visit at
    /// most `budget` configurations. Suits any number of point operations, and some thousands of
    /// others if the map is small.
    ///
    /// # Errors
    ///
    /// What is wrong, or that the budget did not suffice.
    pub fn check(&self, budget: usize) -> Result<Checked, Failure> {
        self.check_answers()?;
        let configurations = self
            .place(|event| self.is_of_one_moment(event), budget)
            // If one key alone shows the fault, it shows it better.
            .map_err(|failure| self.place(|_| false, budget).err().unwrap_or(failure))?;
        self.check_counts()?;
        Ok(self.checked(configurations))
    }

    /// Whether a call is promised to happen at one moment.
    fn is_of_one_moment(&self, event: &MapEvent) -> bool {
        let kind = event.operation.kind();
        let promised = match (kind, event.response(), self.short_range) {
            (Kind::Range, Some(Response::Entries(entries)), Some(up_to)) => entries.len() <= up_to,
            _ => kind.of_one_moment(),
        };
        promised && !self.loose.contains(&kind)
    }

    /// Checks what the calls say of single keys: everything for point operations, but not that
    /// scans and other operations on several keys are as of one moment. Suits any number of calls,
    /// if there are not many more than ten thousand per key.
    ///
    /// # Errors
    ///
    /// What is wrong with the first bad key, or that the budget did not suffice for it.
    pub fn check_by_key(&self, budget: usize) -> Result<Checked, Failure> {
        self.check_answers()?;
        let configurations = self.place(|_| false, budget)?;
        self.check_counts()?;
        Ok(self.checked(configurations))
    }

    /// Searches for an order of the calls on each group of keys that the strict ones tie together.
    /// Returns the number of configurations visited.
    fn place(&self, strict: impl Fn(&MapEvent) -> bool, budget: usize) -> Result<usize, Failure> {
        let groups = groups(self.history.events(), &self.initial, strict);
        groups.into_iter().try_fold(0, |configurations, group| {
            let initial = group.keys.iter();
            let initial = initial.filter_map(|key| Some((*key, *self.initial.get(key)?)));
            let specification = MapSpecification::new(initial);
            Ok(configurations + place(group, specification, budget)?)
        })
    }

    fn checked(&self, configurations: usize) -> Checked {
        Checked {
            operations: self.history.events().len(),
            configurations,
        }
    }

    /// Checks each answer by itself.
    fn check_answers(&self) -> Result<(), Failure> {
        self.history.events().iter().try_for_each(|event| {
            event.response().map_or(Ok(()), |response| {
                well_formed::check(&event.operation, response).map_err(Failure::Answer)
            })
        })
    }

    /// Checks the counts, after the answers on which they are based are known to be right.
    fn check_counts(&self) -> Result<(), Failure> {
        count::check(self.history.events(), self.initial.len()).map_err(Failure::Count)
    }
}

/// Searches for an order of the calls on a group of keys. Returns the number of configurations
/// visited.
fn place(group: Group, specification: MapSpecification, budget: usize) -> Result<usize, Failure> {
    let key = match group.keys[..] {
        [only] => Some(only),
        _ => None,
    };
    let specification = Parts(specification);
    let history = History::sorted(group.parts);
    match search(&specification, &history, budget) {
        Verdict::Linearizable(found) => Ok(found.configurations),
        Verdict::Undecided => Err(Failure::Undecided {
            key,
            calls: history.events().len(),
            budget,
        }),
        Verdict::Stuck(stuck) => {
            let short = shorten(&specification, &history, budget);
            let (history, stuck) = match short {
                Some(short) => match search(&specification, &short, budget) {
                    Verdict::Stuck(stuck) => (short, stuck),
                    _ => (history, stuck),
                },
                None => (history, stuck),
            };
            Err(Failure::NotLinearizable {
                key,
                calls: history.events().len(),
                report: explain(&specification, &history, &stuck),
            })
        }
    }
}
