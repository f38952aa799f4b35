//! What is wrong with a call.

use super::{Access, TableEngine};
use crate::match_spec::SpecError;
use crate::term::{NotFinite, OutOfBounds, Term};
use thiserror::Error;

/// Erlang's `badarg`, with the wrong argument and what is wrong with it.
///
/// ```
/// use tremula_table::{Options, Tables, Term};
///
/// let table = Tables::new().create("t", Options::new())?;
/// let error = table.insert(Term::from(7)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "insert, argument 2: 7 is neither a row (a tuple with a key) nor a proper list of rows"
/// );
/// # Ok::<(), tremula_table::BadArgument>(())
/// ```
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{function}, argument {argument}: {problem}")]
#[non_exhaustive]
pub struct BadArgument {
    /// The function, by its name in Erlang.
    pub function: &'static str,
    /// The argument, counted as in Erlang: the table is the first of most functions.
    pub argument: u8,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The table has been deleted, or never was.
    #[error("there is no such table")]
    NoTable,
    /// The caller may not do this.
    #[error("the table is {0}, and the caller is not its owner")]
    NoAccess(Access),
    /// The caller does not own the table.
    #[error("the caller is not the owner of the table")]
    NotOwner,
    /// Another table has this name.
    #[error("there is a table named {0} already")]
    NameTaken(Term),
    /// A name that is no atom.
    #[error("{0} is no atom, which a name has to be")]
    NotAName(Term),
    /// Not an option, or an option with an invalid value.
    #[error("{0} is no option; for the options see the documentation of Options")]
    NotAnOption(Term),
    /// An engine that the table cannot be on.
    #[error("an {kind} cannot be on the engine {engine}: {why}")]
    Engine {
        /// The engine.
        engine: TableEngine,
        /// The type of the table.
        kind: super::Kind,
        /// Why not.
        why: &'static str,
    },
    /// A row, or what a match specification makes, is beyond the bounds of the tables.
    #[error("{0}")]
    OutOfBounds(#[from] OutOfBounds),
    /// Neither a row nor a proper list of rows.
    #[error("{0} is neither a row (a tuple with a key) nor a proper list of rows")]
    NotRows(Term),
    /// Not a tuple.
    #[error("{0} is no tuple")]
    NotATuple(Term),
    /// A Rust value with a float that no term can hold.
    #[error("{0}")]
    NotFinite(#[from] NotFinite),
    /// A tuple that is too short to have a key.
    #[error("{row} has no element {keypos}, which is the key")]
    NoKey {
        /// The tuple.
        row: Term,
        /// The position of the key.
        keypos: usize,
    },
    /// No row has this key.
    #[error("{0} is not a key in the table")]
    KeyNotFound(Term),
    /// A row lacks this element, or no row can have this position.
    #[error("{0} is not a position in the row")]
    NotAPosition(Term),
    /// The position of the key, which cannot be changed.
    #[error("position {0} is the key's, which cannot be changed")]
    KeyPosition(usize),
    /// Not an update of a counter or an element.
    #[error("{0} is no update: it has to be {1}")]
    NotAnUpdate(Term, &'static str),
    /// The element that an update adds to is not an integer.
    #[error("element {position}, {element}, is no integer")]
    NotAnInteger {
        /// Which element.
        position: Term,
        /// The element.
        element: Term,
    },
    /// The function does not work on this type of table.
    #[error("the table is a {0}, for which this function is not")]
    TableType(super::Kind),
    /// A process that is not an owner of this node, or is gone.
    #[error("{0} is no owner that is there")]
    NoOwner(Term),
    /// The owner owns the table already.
    #[error("{0} is the owner already")]
    IsOwner(Term),
    /// Not an item of `info`.
    #[error("{0} is no item of info")]
    NotAnItem(Term),
    /// A limit that is not a positive integer, or is too great.
    #[error("{0} is no limit: it has to be a positive integer below 2^59")]
    NotALimit(Term),
    /// A continuation of another table.
    #[error("the continuation is not of this table")]
    NotItsContinuation,
    /// Not a pattern or a match specification.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// A match specification that could change the key of a row.
    #[error(
        "clause {clause} of the match specification may change the key: its body {body} has to be '$_', \
         or a tuple with the same as the head, or {{element,{keypos},'$_'}}, at position {keypos}"
    )]
    KeyNotKept {
        /// The clause, counted from 1.
        clause: usize,
        /// Its body.
        body: Term,
        /// The position of the key.
        keypos: usize,
    },
}

pub(crate) type Result<T> = std::result::Result<T, BadArgument>;

impl BadArgument {
    pub(crate) const fn new(function: &'static str, argument: u8, problem: Problem) -> Self {
        Self {
            function,
            argument,
            problem,
        }
    }
}
