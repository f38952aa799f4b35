//! `update_element`.

use super::Table;
use super::error::{Problem, Result};
use super::note::Notes;
use super::options::proper;
use crate::term::Term;

const FUNCTION: &str = "update_element";

/// The forms of an update, for the error.
const FORMS: &str = "{Pos, Value}, or a list of such tuples";

impl Table {
    /// Changes elements of a row in one [step](super#consistency): Erlang's `update_element/3`.
    /// `update` is `{Pos, Value}` or a list of such pairs. Returns whether a row has the key.
    ///
    /// ```
    /// use tremula_table::{Options, Tables, Term};
    ///
    /// let table = Tables::new().create("t", Options::new())?;
    /// table.insert("{1, a, b}".parse().unwrap())?;
    /// assert!(table.update_element(&Term::from(1), &"{3, c}".parse().unwrap())?);
    /// assert_eq!(table.lookup_element(&Term::from(1), 3)?.to_string(), "c");
    /// # Ok::<(), tremula_table::BadArgument>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller [may not write](super#errors), the table is a bag, the row has no such element or
    /// it is the key, or the row would be beyond the [bounds](crate::term::Bounds) of the node:
    /// then no element is changed.
    pub fn update_element(&self, key: &Term, update: &Term) -> Result<bool> {
        self.change_elements(&mut Notes::nobody(), key, update, None)
    }

    /// As [`update_element`](Self::update_element), but if no row has the key, `default` is first
    /// inserted with this key, in the same step: `update_element/4`, new in OTP 27.
    ///
    /// # Errors
    ///
    /// Those of `update_element`; or the default is needed and too short to have a key.
    pub fn update_element_or(&self, key: &Term, update: &Term, default: Term) -> Result<bool> {
        self.change_elements(&mut Notes::nobody(), key, update, Some(default))
    }

    pub(super) fn change_elements(
        &self,
        notes: &mut Notes<'_>,
        key: &Term,
        update: &Term,
        default: Option<Term>,
    ) -> Result<bool> {
        let _guard = self.enter(FUNCTION)?;
        self.refuse_bag(FUNCTION)?;
        let default = self.default_row(default, FUNCTION)?;
        let key_position = self.shared.layout.key_position;
        // As in Erlang, the update is looked at only if there is a row.
        let mut change = |row: &mut [Term]| {
            let pairs = pairs(update).map_err(|term| Problem::NotAnUpdate(term, FORMS))?;
            for (position, value) in pairs {
                *Self::element_of(row, position, key_position)? = value.clone();
            }
            Ok(())
        };
        let changed = self.change_row(notes, key, default.as_ref(), FUNCTION, &mut change);
        match changed {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.problem, Problem::KeyNotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The positions and values of an update, or the term that is not an update.
fn pairs(update: &Term) -> std::result::Result<Vec<(&Term, &Term)>, Term> {
    if let Some(pair) = pair(update) {
        return Ok(vec![pair]);
    }
    let list = proper(update).ok_or_else(|| update.clone())?;
    let pairs = list.iter().map(|term| pair(term).ok_or(term.clone()));
    pairs.collect()
}

fn pair(term: &Term) -> Option<(&Term, &Term)> {
    let Term::Tuple(tuple) = term else {
        return None;
    };
    match tuple.elements() {
        [position @ Term::Integer(_), value] => Some((position, value)),
        _ => None,
    }
}
