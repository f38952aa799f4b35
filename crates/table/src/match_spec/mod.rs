//! Match specifications: a small language, written as terms, that selects rows and says what to
//! make of them.
//!
//! A specification is a list of clauses `{Head, Guards, Body}`. The first clause whose head matches
//! a row and whose guards are all `true` gives the value of its body's last expression.
//! [`MatchSpec`] is a specification that has been checked and compiled; a [`Matcher`] runs it on
//! rows; [`match_spec!`](crate::match_spec!) writes one in Rust. Source: the user guide of the
//! Erlang Run-Time System, "Match Specifications in Erlang", the dialect of ETS, and a running
//! Erlang 25.
//!
//! | file | holds |
//! |---|---|
//! | `compile/` | from a term to a program: patterns (`head`), guards and bodies (`expression`) |
//! | `program`, `function` | the parts of a program; the table of functions |
//! | `run`, `evaluate/` | running a program; the values of functions |
//! | `budget` | what a program may make, and how much it may do |
//! | `range/` | which keys of an `ordered_set` can match: [`KeyInterval`], [`KeyBound`] |
//! | `builder/` | the macro |
//! | `error` | what is wrong with a specification, and where |
//!
//! # The language
//!
//! - **Head.** A tuple is matched field by field. `'_'` matches anything. `'$0'`, `'$1'`, … bind
//!   the first value that they meet, and after that match only what is identical (`=:=`) to it. A
//!   map matches maps that have its keys and possibly more; its keys are constants. Everything else
//!   matches what is identical to it; a float zero matches only the zero with the same sign. The
//!   whole head may be a variable or `'_'`. A head that is another term matches no row, but it can
//!   match a term given to [`Matcher::run_term`], as in `match_spec_run`.
//! - **Guards and body.** `'$N'` is a variable's value, `'$_'` the row, `'$$'` the list of all
//!   variables' values by their numbers, `{const, T}` is `T`, `{{…}}` makes a tuple, `[…]` a list,
//!   `#{…}` a map, and `{Function, Argument…}` is a call. Everything else stands for itself.
//! - **Exceptions.** A function without a value (`{hd, []}`, `{'+', a, 1}`) makes the clause fail
//!   in a guard, even inside `orelse`. In a body its value is `'EXIT'`, and evaluation continues:
//!   `{{{hd, []}, 1}}` is `{'EXIT', 1}`.
//!
//! The functions:
//!
//! - of types: `is_atom is_binary is_bitstring is_boolean is_float is_function is_integer is_list
//!   is_map is_number is_pid is_port is_record/3 is_reference is_tuple`
//! - of booleans: `and or andalso orelse` (of one argument and more; `andthen` is `andalso`), `not
//!   xor`
//! - comparisons: `== /= =:= =/= < =< > >=`
//! - of numbers: `+ -` (one or two arguments) `* / div rem band bor bxor bnot bsl bsr abs ceil
//!   float floor round trunc`, and of any terms `max min`
//! - of nested terms: `element hd tl length map_get map_size is_map_key tuple_size size byte_size
//!   bit_size binary_part/2,3`
//! - of places: `node/0,1 self`
//!
//! # Differences from Erlang 25
//!
//! - `is_bitstring`, `is_boolean`, `ceil`, `floor`, `max`, `min` and `tuple_size` exist, with the
//!   meaning that they have in the guards of the language.
//! - Results may be integers of up to 262,144 bits ([`Limits::INTEGER_BITS`]); a longer result is
//!   an exception. In Erlang the limit is higher: 4,194,304 bits from OTP 27 on.
//! - Big integers become the nearest floats; Erlang 25 is sometimes one bit off.
//! - Variables have numbers of up to 64 bits. Erlang 25 cuts off those of more than 32 bits.
//! - A map in the key of a pattern matches larger maps in an `ordered_set`, too. Erlang 25 looks up
//!   the key that is this map.
//! - A map made with a duplicate key has it once, with the last value (in the order of the keys as
//!   written in the specification's map). Erlang 25 makes a broken map in some such cases.
//! - [`Environment`] defines `{self}` and `{node}`.
//!
//! # Costs
//!
//! Compiling takes time in proportion to the specification. Running uses no recursion, and
//! allocates only for values that it makes: a flat head with a comparison is two tests of the
//! fields in place. The language has no loop, so a run on one row ends soon, and a traversal of a
//! table may stop between any two rows. Taking the rest of a list (`tl`, or a variable as a
//! pattern's tail) copies it, because a list here is contiguous.
//!
//! [`Limits::INTEGER_BITS`]: crate::term::Limits::INTEGER_BITS

mod budget;
#[macro_use]
mod builder;
mod compile;
mod error;
mod evaluate;
mod function;
mod program;
mod range;
mod replace;
mod run;

pub use builder::{
    Expression, Functions, IntoExpression, Variable, all_variables, call, expansion, whole_row,
};
pub use error::{SpecError, SpecProblem, Step};
#[cfg(any(test, fuzzing))]
pub(crate) use function::every_function;
pub(crate) use range::RowSize;
pub use range::{KeyBound, KeyInterval};
pub use run::Matcher;

use crate::term::{Atom, Pid, Term};
use program::Program;

/// A compiled match specification. It is immutable: threads may share it, each with a [`Matcher`]
/// of its own.
///
/// ```
/// use tremula_table::{MatchSpec, Term};
///
/// let spec = "[{{'$1', '$2'}, [{'>', '$2', 10}], [{{'$1', {'*', '$2', 2}}}]}]".parse()?;
/// let spec = MatchSpec::compile(&spec)?;
/// let Term::Tuple(row) = "{a, 17}".parse()? else { panic!("a row") };
/// assert_eq!(spec.run(&row), Some("{a, 34}".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MatchSpec {
    program: Program,
}

/// The values of `{self}` and `{node}`.
///
/// ```
/// use tremula_table::match_spec::{Environment, MatchSpec};
/// use tremula_table::term::{Atom, Tuple};
///
/// let environment = Environment::default().node(Atom::new("here@example")?);
/// let spec = MatchSpec::compile_in(&"[{'_', [], [{node}]}]".parse()?, &environment)?;
/// assert_eq!(spec.run(&Tuple::from((1,))), Some("here@example".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// `{self}`: the calling process.
    pub myself: Pid,
    /// `{node}`: its node.
    pub node: Atom,
}

/// A process that does not exist, on a node that is not distributed.
impl Default for Environment {
    fn default() -> Self {
        Self {
            myself: Pid::new(Atom::NO_NODE, 0, 0, 0),
            node: Atom::NO_NODE,
        }
    }
}

impl Environment {
    /// Sets the value of `{self}`.
    #[must_use]
    pub fn myself(mut self, myself: Pid) -> Self {
        self.myself = myself;
        self
    }

    /// Sets the value of `{node}`.
    #[must_use]
    pub const fn node(mut self, node: Atom) -> Self {
        self.node = node;
        self
    }
}

/// What a pattern alone returns for the rows that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// The list of its variables' values, in the order of their numbers: `match/2`.
    Bindings,
    /// The row: `match_object/2`.
    Row,
    /// `true`: `match_delete/2`.
    True,
}

impl MatchSpec {
    /// Checks and compiles a specification: `ets:match_spec_compile/1`. Takes time and memory in
    /// proportion to its length, and uses no recursion.
    ///
    /// A specification without clauses is refused, as by Erlang's `match_spec_compile`;
    /// `ets:select` accepts it and finds nothing.
    ///
    /// # Errors
    ///
    /// The term is no specification: the error has the wrong part and the path to it.
    pub fn compile(spec: &Term) -> Result<Self, SpecError> {
        Self::compile_in(spec, &Environment::default())
    }

    /// Does the same as [`compile`](Self::compile), with values for `{self}` and `{node}`.
    ///
    /// # Errors
    ///
    /// Those of [`compile`](Self::compile).
    pub fn compile_in(spec: &Term, environment: &Environment) -> Result<Self, SpecError> {
        let program = compile::compile(spec, environment)?;
        Ok(Self { program })
    }

    /// Runs a specification on one term: `ets:test_ms/2`, for trying out. `None` if no clause
    /// matches. (Erlang says `false` in that case, which is also what it says of a result `false`.)
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term};
    ///
    /// let spec = "[{{'$1', '$2'}, [{is_list, '$2'}], [{{'$1', {length, '$2'}}}]}]".parse()?;
    /// assert_eq!(MatchSpec::test(&spec, &"{a, [x, y]}".parse()?)?, Some("{a, 2}".parse()?));
    /// assert_eq!(MatchSpec::test(&spec, &"{a, b}".parse()?)?, None);
    /// assert_eq!(MatchSpec::test(&spec, &Term::from(1))?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The specification is none.
    pub fn test(spec: &Term, term: &Term) -> Result<Option<Term>, SpecError> {
        Ok(Self::compile(spec)?.matcher().run_term(term))
    }

    /// The specification with a single clause that is only a pattern, for `match/2`,
    /// `match_object/2` and `match_delete/2`.
    ///
    /// ```
    /// use tremula_table::{MatchSpec, Term, match_spec::Returns};
    ///
    /// let spec = MatchSpec::from_pattern(&"{'$2', '$1', '_'}".parse()?, Returns::Bindings)?;
    /// let Term::Tuple(row) = "{a, b, c}".parse()? else { panic!("a row") };
    /// assert_eq!(spec.run(&row), Some("[b, a]".parse()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A map in the pattern has a variable or `'_'` as a key.
    pub fn from_pattern(pattern: &Term, returns: Returns) -> Result<Self, SpecError> {
        let program = compile::compile_pattern(pattern, returns)?;
        Ok(Self { program })
    }
}

#[cfg(test)]
mod tests;
