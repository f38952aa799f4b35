//! `update_counter`.

use super::error::{BadArgument, Problem, Result};
use super::note::Notes;
use super::options::proper;
use super::store::Decision;
use super::{Kept, Table};
use crate::term::{IntoTerm, NotFinite, Term, Tuple};
use num_bigint::BigInt;

const FUNCTION: &str = "update_counter";

/// The forms of an update, for the error.
const FORMS: &str = "an integer, {Pos, Incr} or {Pos, Incr, Threshold, SetValue} of integers, or a list of these tuples";

/// One of the steps of [`Table::update_counter`], as a Rust value: `{Pos, Incr}`, or with
/// [`wrap`](Self::wrap) `{Pos, Incr, Threshold, SetValue}`.
///
/// ```
/// use tremula_table::table::Increment;
/// use tremula_table::{Options, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new())?;
/// table.insert_row(("visits", 9, 0))?;
/// let key = Term::from("visits");
/// // One more visit; after the tenth, the count begins again, and so on with the other element.
/// let steps = [Increment::new(2, 1).wrap(10, 1), Increment::new(3, -1)];
/// assert_eq!(table.update_counter(&key, &steps.into())?, [10, -1]);
/// assert_eq!(table.update_counter(&key, &steps.into())?, [1, -2]);
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Increment {
    position: usize,
    by: i64,
    wrap: Option<(i64, i64)>,
}

impl Increment {
    /// Adds `by` to the element at this position, which is counted from 1.
    pub const fn new(position: usize, by: i64) -> Self {
        let wrap = None;
        Self { position, by, wrap }
    }

    /// Sets the element to `value` if it passes `threshold`: if it becomes greater or, where the
    /// increment is negative, less.
    pub const fn wrap(self, threshold: i64, value: i64) -> Self {
        let wrap = Some((threshold, value));
        Self { wrap, ..self }
    }
}

/// The tuple that [`Table::update_counter`] takes.
impl From<Increment> for Term {
    fn from(Increment { position, by, wrap }: Increment) -> Self {
        match wrap {
            None => (position, by).into(),
            Some((threshold, value)) => (position, by, threshold, value).into(),
        }
    }
}

impl IntoTerm for Increment {
    fn into_term(self) -> std::result::Result<Term, NotFinite> {
        Ok(self.into())
    }
}

struct Step<'a> {
    /// Counted from 1.
    position: Term,
    increment: &'a Term,
    /// The threshold, and the value that the counter gets when it passes the threshold.
    threshold: Option<(&'a Term, &'a Term)>,
}

impl Table {
    /// Adds to elements of a row in one [step](super#consistency): Erlang's `update_counter/3`.
    /// `update` is as in Erlang: an integer for the element behind the key, `{Pos, Incr}`,
    /// `{Pos, Incr, Threshold, SetValue}`, or a list of such tuples, with integers of any size.
    /// Returns the new value, or the list of new values. In Rust, [`Increment`] makes such tuples.
    ///
    /// ```
    /// use tremula_table::table::Increment;
    /// use tremula_table::{Options, Tables, Term};
    ///
    /// let table = Tables::new().create("t", Options::new())?;
    /// table.insert_row(("visits", 9))?;
    /// let key = Term::from("visits");
    /// assert_eq!(table.update_counter(&key, &1.into())?, 10);
    /// let wrapping = Increment::new(2, 1).wrap(10, 0);
    /// assert_eq!(table.update_counter(&key, &wrapping.into())?, 0);
    /// assert_eq!(table.update_counter(&key, &"{2, 5}".parse()?)?, 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), the table is a bag, no row has the key, an element
    /// is missing, not an integer, or the key, or the row would be beyond the
    /// [bounds](crate::term::Bounds) of the node: then no element is changed.
    pub fn update_counter(&self, key: &Term, update: &Term) -> Result<Term> {
        self.count_up(&mut Notes::nobody(), key, update, None)
    }

    /// As [`update_counter`](Self::update_counter), but if no row has the key, `default` is first
    /// inserted with this key, in the same step: Erlang's `update_counter/4`.
    ///
    /// # Errors
    ///
    /// Those of `update_counter`; or the default is needed and too short to have a key.
    pub fn update_counter_or(&self, key: &Term, update: &Term, default: Term) -> Result<Term> {
        self.count_up(&mut Notes::nobody(), key, update, Some(default))
    }

    pub(super) fn count_up(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        update: &Term,
        default: Option<Term>,
    ) -> Result<Term> {
        let wrong = |argument, problem| BadArgument::new(FUNCTION, argument, problem);
        let guard = self.enter(FUNCTION)?;
        self.refuse_bag(FUNCTION)?;
        let (steps, is_list) = self
            .steps(update)
            .map_err(|term| wrong(3, Problem::NotAnUpdate(term, FORMS)))?;
        let default = self.default_row(default, FUNCTION)?;
        let mut count = |row: &mut [Term]| {
            let key_position = self.shared.layout.key_position;
            let mut values = Vec::with_capacity(steps.len());
            for step in &steps {
                values.push(step.apply(row, key_position)?);
            }
            Ok(values)
        };
        let result = self.change_row(notes, key, default.as_ref(), FUNCTION, &mut count);
        drop(guard);
        let mut values: Vec<Term> = result?;
        match values.pop() {
            Some(value) if !is_list => Ok(value),
            last => Ok(Term::list(
                values.into_iter().chain(last).collect::<Vec<_>>(),
            )),
        }
    }

    /// The steps of an update, and whether they are in a list; or the term that is not a step.
    fn steps<'a>(&self, update: &'a Term) -> std::result::Result<(Vec<Step<'a>>, bool), Term> {
        if is_integer(update) {
            let step = Step {
                position: Term::from(self.shared.options.keypos + 1),
                increment: update,
                threshold: None,
            };
            return Ok((vec![step], false));
        }
        if let Some(step) = Step::of(update) {
            return Ok((vec![step], false));
        }
        let list = proper(update).ok_or_else(|| update.clone())?;
        let steps = list.iter().map(|term| Step::of(term).ok_or(term.clone()));
        Ok((steps.collect::<std::result::Result<_, _>>()?, true))
    }

    /// Fails if a key of the table may have several rows.
    pub(super) fn refuse_bag(&self, function: &'static str) -> Result<()> {
        let kind = self.shared.options.kind;
        if kind.is_bag() {
            return Err(BadArgument::new(function, 1, Problem::TableType(kind)));
        }
        Ok(())
    }

    /// The default as a row. Only [`change_row`](Self::change_row) checks that it has a key, if it
    /// needs the default.
    pub(super) fn default_row(
        &self,
        default: Option<Term>,
        function: &'static str,
    ) -> Result<Option<Tuple>> {
        match default {
            None => Ok(None),
            Some(Term::Tuple(row)) => Ok(Some(row)),
            Some(other) => Err(BadArgument::new(function, 4, Problem::NotATuple(other))),
        }
    }

    /// Lets `change` change the row with this key, or if there is no such row the default with this
    /// key, in one step. If `change` fails, nothing is changed, and the error blames the third
    /// argument. The caller holds the gate.
    pub(super) fn change_row<R>(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        default: Option<&Tuple>,
        function: &'static str,
        change: &mut dyn FnMut(&mut [Term]) -> std::result::Result<R, Problem>,
    ) -> Result<R> {
        let layout = &self.shared.layout;
        let wrong = |argument, problem| BadArgument::new(function, argument, problem);
        let mut result = Err(wrong(2, Problem::KeyNotFound(key.clone())));
        let decide = &mut |kept: Option<&Kept>| {
            let mut row = match (kept, default) {
                (Some(kept), _) => layout.row(key, kept).to_vec(),
                (None, Some(default)) => {
                    let mut row = default.to_vec();
                    let Some(place) = row.get_mut(layout.key_position) else {
                        let problem = Problem::NoKey {
                            row: default.clone().into(),
                            keypos: layout.key_position + 1,
                        };
                        result = Err(wrong(4, problem));
                        return Decision::Keep;
                    };
                    *place = key.clone();
                    row
                }
                (None, None) => return Decision::Keep,
            };
            result = change(&mut row).map_err(|problem| wrong(3, problem));
            if result.is_err() {
                return Decision::Keep;
            }
            let row = Tuple::new(row);
            if let Err(error) = self.shared.check_kept(&row) {
                result = Err(wrong(3, error.into()));
                return Decision::Keep;
            }
            self.shared.row_sizes.note(row.len());
            Decision::Put(layout.keep(row))
        };
        let mut of_rows = notes.rows_of(&self.shared);
        let store = &self.shared.store;
        store.update(layout.new_key(key), decide, of_rows.note());
        result
    }

    /// The element at this position (from 1), which must not be the key's.
    pub(super) fn element_of<'a>(
        row: &'a mut [Term],
        position: &Term,
        key_position: usize,
    ) -> std::result::Result<&'a mut Term, Problem> {
        let wrong = || Problem::NotAPosition(position.clone());
        let Term::Integer(number) = position else {
            return Err(wrong());
        };
        let number = usize::try_from(*number).map_err(|_| wrong())?;
        let place = number.checked_sub(1).ok_or_else(wrong)?;
        if place == key_position {
            return Err(Problem::KeyPosition(place + 1));
        }
        row.get_mut(place).ok_or_else(wrong)
    }
}

impl<'a> Step<'a> {
    fn of(term: &'a Term) -> Option<Self> {
        let Term::Tuple(tuple) = term else {
            return None;
        };
        let (position, increment, threshold) = match tuple.elements() {
            [position, increment] => (position, increment, None),
            [position, increment, threshold, value] => {
                (position, increment, Some((threshold, value)))
            }
            _ => return None,
        };
        tuple.iter().all(is_integer).then(|| Self {
            position: position.clone(),
            increment,
            threshold,
        })
    }

    /// Adds to one element and returns its new value.
    fn apply(&self, row: &mut [Term], key_position: usize) -> std::result::Result<Term, Problem> {
        let element = Table::element_of(row, &self.position, key_position)?;
        let Some(mut value) = add(element, self.increment) else {
            return Err(Problem::NotAnInteger {
                position: self.position.clone(),
                element: element.clone(),
            });
        };
        if let Some((threshold, start)) = self.threshold {
            let is_down = *self.increment < 0;
            if is_down && value < *threshold || !is_down && value > *threshold {
                value = start.clone();
            }
        }
        *element = value.clone();
        Ok(value)
    }
}

const fn is_integer(term: &Term) -> bool {
    matches!(term, Term::Integer(_) | Term::BigInteger(_))
}

/// The sum of two integers; `None` if one of the terms is not an integer.
fn add(one: &Term, two: &Term) -> Option<Term> {
    if let (Term::Integer(one), Term::Integer(two)) = (one, two)
        && let Some(sum) = one.checked_add(*two)
    {
        return Some(Term::Integer(sum));
    }
    Some(Term::from(big(one)? + big(two)?))
}

fn big(term: &Term) -> Option<BigInt> {
    match term {
        Term::Integer(value) => Some(BigInt::from(*value)),
        Term::BigInteger(value) => Some(value.value().clone()),
        _ => None,
    }
}
